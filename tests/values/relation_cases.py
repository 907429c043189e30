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


def in_place(wrong: str = "", block: int = BLOCK) -> Call:
    """x + 2 y in the place of x, in every second block of rows; the others keep what x has."""

    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + (1 if wrong == "once" else 2) * y[...]

    def call(x: Any, y: Any) -> Any:
        rows = pl.BlockSpec((block, x.shape[1]), lambda i: (2 * i, 0))
        beside = pl.BlockSpec((block, x.shape[1]), lambda i: (2 * i + 1, 0))
        blocks = pl.cdiv(x.shape[0], block)
        return pl.pallas_call(
            body,
            grid=((blocks if wrong == "beside" else blocks + 1) // 2,),
            in_specs=[rows, beside if wrong == "of the next" else rows],
            out_specs=beside if wrong == "beside" else rows,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            input_output_aliases={} if wrong == "no alias" else {0: 0},
        )(x, y)

    return call


def every_second(x: Any, y: Any, block: int = BLOCK) -> Any:
    """What `in_place` computes."""
    return jnp.where((jnp.arange(x.shape[0]) // block % 2 == 0)[:, None], x + 2 * y, x)


def chunks(wrong: str = "", step: int = 4) -> Call:
    """x @ y in one program, a chunk of the contracted dimension in each of many iterations of a loop."""

    def call(x: Any, y: Any) -> Any:
        (m, k), n = x.shape, y.shape[1]
        steps = k // step

        def body(x: Any, y: Any, o: Any) -> None:
            def more(s: Any, acc: Any) -> Any:
                found = jnp.dot(x[:, pl.ds(s * step, step)], y[pl.ds(s * step, step), :], preferred_element_type=F32)
                if wrong == "twice":
                    return acc + jnp.where(s == steps - 1, 2 * found, found)
                return found if wrong == "=" else acc + found

            first, last = (wrong == "not the first"), steps - (wrong == "not the last")
            o[...] = lax.fori_loop(int(first), last, more, jnp.zeros((m, n), F32))

        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((m, n), F32))(x, y)

    return call


def rows_in_turn(wrong: str = "") -> Call:
    """2 x, a row in each iteration of a loop that stores."""

    def body(x: Any, o: Any) -> None:
        def more(i: Any, _: Any) -> Any:
            o[pl.ds(0 if wrong == "all in one" else i, 1), :] = 2 * x[pl.ds(i, 1), :]
            if wrong == "the first again":

                @pl.when(i == 70)
                def _() -> None:
                    o[0:1, :] = x[0:1, :]

            return 0

        lax.fori_loop(0, x.shape[0] - (wrong == "not the last"), more, 0)

    return lambda x: pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def in_scratch(wrong: str = "", block: int = 4) -> Call:
    """The sums of rows: a loop adds chunks to scratch memory, in each of two programs of a row of blocks."""

    def call(x: Any) -> Any:
        m, n = x.shape
        half = n // 2

        def body(x: Any, o: Any, acc: Any) -> None:
            @pl.when(pl.program_id(1) == (1 if wrong == "zeroed late" else 0))
            def _() -> None:
                acc[...] = jnp.zeros_like(acc)

            def more(s: Any, _: Any) -> Any:
                found = x[:, pl.ds(s * block, block)].sum(1, keepdims=True)
                if wrong == "=":
                    acc[...] = found
                else:
                    acc[...] += found
                return 0

            lax.fori_loop(0, half // block, more, 0)

            @pl.when(pl.program_id(1) == 1)
            def _() -> None:
                o[...] = acc[...]

        return pl.pallas_call(
            body,
            grid=(m // 8, 2),
            in_specs=[pl.BlockSpec((8, half), lambda i, j: (i, 0 if wrong == "the first half" else j))],
            out_specs=pl.BlockSpec((8, 1), lambda i, j: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((m, 1), F32),
            scratch_shapes=[pltpu.VMEM((8, 1), F32)],
        )(x)

    return call


def scanned(wrong: str = "", back: bool = False) -> Call:
    """(x.sum(0), the running sums), row by row."""

    def call(x: Any) -> Any:
        def more(held: Any, row: Any) -> Any:
            now = held + row
            if wrong == "twice":
                now = now + row
            return now, held if wrong == "before" else now

        begin = x[0] if wrong == "the first twice" else jnp.zeros(x.shape[1:], x.dtype)
        return lax.scan(more, begin, x, reverse=back != (wrong == "backwards"))

    return call


def summed_in_turn(wrong: str = "") -> Call:
    """x.sum(0), row by row in a loop whose end is a size."""

    def call(x: Any) -> Any:
        n = x.shape[0]
        low, high = int(wrong == "not the first"), n - (wrong == "not the last")

        def more(i: Any, held: Any) -> Any:
            return held + x[n - 1 - i if wrong == "" else i] * (2 if wrong == "twice" else 1)

        return lax.fori_loop(low, high, more, jnp.zeros(x.shape[1:], x.dtype))

    return call


def shifted_in_place(block: int = BLOCK) -> Call:
    """Block i of rows becomes what block i - 4 is by then, in one buffer; the first four stay."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    def call(x: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(x.shape[0] // block - 4,),
            in_specs=[pl.BlockSpec((block, x.shape[1]), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((block, x.shape[1]), lambda i: (i + 4, 0)),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            input_output_aliases={0: 0},
        )(x)

    return call


def spread(x: Any, block: int = BLOCK) -> Any:
    """What `shifted_in_place` computes of at most eight blocks."""
    return jnp.concatenate([x[: 4 * block], x[: x.shape[0] - 4 * block]])
