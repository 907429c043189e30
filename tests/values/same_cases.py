"""Kernels with their references and wrong twins: what a family gets right, and one error each."""

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


def matmul(wrong: str = "", m: int = 32, k: int = 48, n: int = 32, block: int = 32) -> Call:
    """x @ y, the last block of k masked."""

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        step = pl.program_id(2)

        @pl.when(step == (1 if wrong == "reset late" else 0))
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        left = k - step * block + (wrong == "mask off by one") - (wrong == "mask short")
        u = jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, 1) < left, x[...], 0)
        v = jnp.where(lax.broadcasted_iota(jnp.int32, y.shape, 0) < left, y[...], 0)
        acc[...] += jnp.dot(u, v if wrong != "transposed" else v.T, preferred_element_type=F32)

        @pl.when(step == pl.num_programs(2) - 1)
        def _() -> None:
            o[...] = acc[...]

    def call(x: Any, y: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(m // block, n // block, pl.cdiv(k, block)),
            in_specs=[
                pl.BlockSpec((block, block), lambda i, j, s: (i, s)),
                pl.BlockSpec((block, block), lambda i, j, s: (s, j)),
            ],
            out_specs=pl.BlockSpec((block, block), lambda i, j, s: (i, j)),
            out_shape=jax.ShapeDtypeStruct((m, n), F32),
            scratch_shapes=[pltpu.VMEM((block, block), F32)],
        )(x, y)

    return call


def softmax(wrong: str = "", rows: int = 16, columns: int = 24, block: int = 8) -> Call:
    """The softmax of rows, online over blocks of columns."""

    def body(x: Any, o: Any, m: Any, total: Any) -> None:
        step = pl.program_id(1)

        @pl.when(step == 0)
        def _() -> None:
            m[...] = jnp.full_like(m, 0.0 if wrong == "starts at 0" else -jnp.inf)
            total[...] = jnp.zeros_like(total)

        v = x[...]
        new = jnp.maximum(m[...], v.max(1, keepdims=True))
        scale = 1.0 if wrong == "not rescaled" else jnp.exp(m[...] - new)
        total[...] = total[...] * scale + jnp.exp(v - new).sum(1, keepdims=True)
        m[...] = new
        o[...] = jnp.concatenate([new, total[...]], 1)

    def call(x: Any) -> Any:
        held = pl.pallas_call(
            body,
            grid=(rows // block, columns // block),
            in_specs=[pl.BlockSpec((block, block), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((block, 2), lambda i, j: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((rows, 2), F32),
            scratch_shapes=[pltpu.VMEM((block, 1), F32)] * 2,
        )(x)
        return jnp.exp(x - held[:, :1]) / held[:, 1:]

    return call


def rows_of(function: Call, rows: int = 16, columns: int = 32) -> Call:
    """A kernel that computes a function of rows."""

    def body(x: Any, o: Any) -> None:
        o[...] = function(x[...])

    def call(x: Any) -> Any:
        spec = pl.BlockSpec((8, columns), lambda i: (i, 0))
        shape = jax.ShapeDtypeStruct((rows, columns), F32)
        return pl.pallas_call(body, grid=(rows // 8,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)

    return call


def copied(wrong: str = "", parts: int = 3) -> Call:
    """2 x by copies into two slots."""

    def body(x: Any, o: Any, slots: Any, arrived: Any) -> None:
        def get(i: Any) -> Any:
            return pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], slots.at[i % 2], arrived.at[i % 2])

        get(0).start()
        for i in range(parts):
            if i + 1 < parts:
                get(i + 1).start()
            if wrong != "no wait":
                get(i).wait()
            o[pl.ds((i if wrong != "rows" else (i + 1) % parts) * 8, 8)] = slots[i % 2] * 2

    def call(x: Any) -> Any:
        return pl.pallas_call(
            body,
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_shape=jax.ShapeDtypeStruct((8 * parts, 128), F32),
            scratch_shapes=[pltpu.VMEM((2, 8, 128), F32), pltpu.SemaphoreType.DMA((2,))],
        )(x)

    return call
