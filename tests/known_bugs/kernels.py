"""Kernels in which a known bug of JAX or libtpu is met, each with a switch for its twin in which it is not."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def f32(*dims: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def i32(*dims: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, jnp.int32)


def copied(x: Any, o: Any) -> None:
    o[...] = x[...]


def hbm_copy(source: Any, met: bool) -> Any:
    """jax-ml/jax#39744: the second operand is not read, or is."""

    def kernel(s: Any, u: Any, o: Any, near: Any) -> None:
        if not met:
            pltpu.sync_copy(u.at[pl.ds(0, 1), :], near.at[:, :128])
        pltpu.sync_copy(s.at[pl.ds(0, 1), :], near)
        pltpu.sync_copy(near, o)

    whole = [pl.BlockSpec(dims, memory_space=pltpu.HBM) for dims in ((2, 256), (16, 128), (1, 256))]
    call = pl.pallas_call(
        kernel, out_shape=f32(1, 256), in_specs=whole[:2], out_specs=whole[2], grid=(1,),
        scratch_shapes=[pltpu.VMEM((1, 256), jnp.float32)],
    )  # fmt: skip
    return call(source, jnp.ones((16, 128), jnp.float32))


def element_window(x: Any, met: bool) -> Any:
    window = pl.BlockSpec((pl.Element(8, (8 if met else 0, 0)), pl.Element(128)), lambda i: (8 * i, 0))
    return pl.pallas_call(copied, grid=(2,), in_specs=[window], out_specs=ROWS, out_shape=f32(16, 128))(x)


def by_table(table: Any, x: Any, buffers: int, stores: bool) -> Any:
    """jax-ml/jax#39179."""

    def kernel(t: Any, x: Any, o: Any) -> None:
        if stores:
            t[1] = 3
        o[...] = x[...]

    mode = pl.Buffered(buffers)
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(6,),
        in_specs=[pl.BlockSpec((None, 8, 128), lambda i, t: (t[i], 0, 0), pipeline_mode=mode)],
        out_specs=pl.BlockSpec((None, 8, 128), lambda i, t: (i, 0, 0)),
    )
    return pl.pallas_call(kernel, grid_spec=grid, out_shape=f32(6, 8, 128))(table, x)


def row_before(x: Any, met: bool) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.broadcast_to(x[pl.program_id(0) - met], (8, 128))

    return pl.pallas_call(kernel, grid=(1,), out_shape=f32(8, 128))(x)


def long_grid(x: Any, met: bool) -> Any:
    return pl.pallas_call(copied, grid=(3 + met,), in_specs=[ROWS], out_specs=ROWS, out_shape=f32(24, 128))(x)


def one_block(x: Any, at: int) -> Any:
    block = pl.BlockSpec((8, 128), lambda i: (at, 0))
    return pl.pallas_call(copied, grid=(2,), in_specs=[block], out_specs=ROWS, out_shape=f32(16, 128))(x)


def with_table(table: Any, x: Any) -> Any:
    def kernel(t: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    block = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[block], out_specs=block)
    return pl.pallas_call(kernel, grid_spec=grid, out_shape=f32(16, 128))(table, x)


def masked(x: Any, met: bool) -> Any:
    def kernel(x: Any, o: Any) -> None:
        keep = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) < 4
        o[...] = x[...] * keep.astype(jnp.float32) if met else jnp.where(keep, x[...], 0.0)

    return pl.pallas_call(kernel, grid=(2,), in_specs=[ROWS], out_specs=ROWS, out_shape=f32(16, 128))(x)


def aliased(x: Any, y: Any, met: bool) -> Any:
    """jax-ml/jax#24023."""

    def kernel(x: Any, y: Any, o: Any, p: Any) -> None:
        if not met:
            o[...], p[...] = x[...], y[...]

    shapes = (f32(8, 128), f32(8, 128))
    return pl.pallas_call(kernel, grid=(1,), out_shape=shapes, input_output_aliases={0: 0, 1: 1})(x, y)
