"""Sums of products with wrong twins: what a kernel computes as a relation, and one error each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32 = jnp.float32
Call = Callable[..., Any]
BLOCK = 8


def matmul(wrong: str = "", block: int = BLOCK, scratch: bool = True, dtype: Any = F32) -> Call:
    """x @ y over a grid (i, j, k), the tail of k masked, summed in scratch or in the output."""

    def call(x: Any, y: Any) -> Any:
        (m, k), n = x.shape, y.shape[1]
        steps = pl.cdiv(k, block)

        def body(x: Any, y: Any, o: Any, *rest: Any) -> None:
            acc = rest[0] if scratch else o
            step = pl.program_id(2)
            first = step == 0
            if wrong == "zeroed once":
                first = first & (pl.program_id(0) + pl.program_id(1) == 0)
            if wrong == "reset late":
                first = step == 1

            @pl.when(first)
            def _() -> None:
                acc[...] = jnp.zeros_like(acc)

            left = k - step * block + (wrong == "mask off by one") - (wrong == "mask short")
            if wrong == "mask local":
                left = k
            u, v = x[...], y[...]
            rows, columns = (lax.broadcasted_iota(jnp.int32, a.shape, d) for a, d in ((u, 1), (v, 0)))
            if wrong != "mask of y alone":
                u = jnp.where(rows < left, u, 0)
            if wrong == "times the mask":
                v = v * (columns < left).astype(v.dtype)
            elif wrong != "mask of x alone":
                v = jnp.where(columns < left, v, 0)
            if wrong == "transposed":
                v = v.T
            found = jnp.dot(u, v, preferred_element_type=F32)
            if wrong == "drops the last":
                found = jnp.where(step == steps - 1, 0, found)
            if wrong == "=":
                acc[...] = found
            else:
                acc[...] += found
            if wrong == "doubled":
                acc[...] += jnp.where(step == steps - 1, found, 0)
            if scratch:

                @pl.when(step == (0 if wrong == "stored at first" else steps - 1))
                def _() -> None:
                    o[...] = acc[...].astype(o.dtype)

        def of_y(i: Any, j: Any, s: Any) -> Any:
            return (s, i) if wrong == "wrong block of y" else (j, s) if wrong == "turned" else (s, j)

        return pl.pallas_call(
            body,
            grid=(pl.cdiv(m, block), pl.cdiv(n, block), steps),
            in_specs=[pl.BlockSpec((block, block), lambda i, j, s: (i, s)), pl.BlockSpec((block, block), of_y)],
            out_specs=pl.BlockSpec((block, block), lambda i, j, s: (i, j)),
            out_shape=jax.ShapeDtypeStruct((m, n), dtype),
            scratch_shapes=[pltpu.VMEM((block, block), F32)] if scratch else [],
        )(x, y)

    return call


def whole_rows(wrong: str = "", block: int = BLOCK) -> Call:
    """x @ y over a grid (j, i): all of k at once."""

    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = jnp.dot(x[...], y[...], preferred_element_type=F32)

    def call(x: Any, y: Any) -> Any:
        (m, k), n = x.shape, y.shape[1]
        place = (lambda j, i: (j, i)) if wrong == "turned" else (lambda j, i: (i, j))
        return pl.pallas_call(
            body,
            grid=(pl.cdiv(n, block), pl.cdiv(m, block)),
            in_specs=[pl.BlockSpec((block, k), lambda j, i: (i, 0)), pl.BlockSpec((k, block), lambda j, i: (0, j))],
            out_specs=pl.BlockSpec((block, block), place),
            out_shape=jax.ShapeDtypeStruct((m, n), F32),
        )(x, y)

    return call


def transposed(wrong: str = "", block: int = BLOCK) -> Call:
    """x.T, block by block."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[...] if wrong == "not within" else x[...].T

    def call(x: Any) -> Any:
        m, n = x.shape
        source = (lambda i, j: (i, j)) if wrong == "block" else (lambda i, j: (j, i))
        return pl.pallas_call(
            body,
            grid=(pl.cdiv(n, block), pl.cdiv(m, block)),
            in_specs=[pl.BlockSpec((block, block), source)],
            out_specs=pl.BlockSpec((block, block), lambda i, j: (i, j)),
            out_shape=jax.ShapeDtypeStruct((n, m), x.dtype),
        )(x)

    return call


def row_sums(wrong: str = "", block: int = BLOCK) -> Call:
    """x.sum(1), kept, over blocks of columns with a ragged tail; added in the output."""

    def call(x: Any) -> Any:
        m, n = x.shape

        def body(x: Any, o: Any) -> None:
            j = pl.program_id(1)

            @pl.when(j == 0)
            def _() -> None:
                o[...] = jnp.zeros_like(o)

            v = x[...]
            if wrong != "no mask":
                left = n - j * block + (wrong == "mask off by one")
                v = jnp.where(lax.broadcasted_iota(jnp.int32, v.shape, 1) < left, v, 0)
            total = v.sum(1, keepdims=True)
            o[...] = total if wrong == "=" else o[...] + total

        return pl.pallas_call(
            body,
            grid=(pl.cdiv(m, block), pl.cdiv(n, block)),
            in_specs=[pl.BlockSpec((block, block), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((block, 1), lambda i, j: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((m, 1), x.dtype),
        )(x)

    return call


def turns(wrong: str = "", block: int = BLOCK) -> Call:
    """2 x - 1 through a grid that runs backwards, and a slice of each window."""

    def body(x: Any, o: Any) -> None:
        half = block // 2
        o[:half] = x[:half] * 2 - 1
        o[pl.ds(half, half)] = x[pl.ds(half - (wrong == "rows"), half)] * 2 - 1

    def call(x: Any) -> Any:
        m, n = x.shape
        last = m // block - 1
        back = pl.BlockSpec((block, n), lambda i: (last - i, 0))
        out = pl.BlockSpec((block, n), lambda i: (last - 1 - i if wrong == "misses a block" else last - i, 0))
        return pl.pallas_call(
            body, grid=(m // block,), in_specs=[back], out_specs=out, out_shape=jax.ShapeDtypeStruct((m, n), F32)
        )(x)

    return call
