"""Functions that make kernels of Mosaic GPU, whose tiles and stages are their arguments.

Nothing in them refuses a size: what is wrong with one is for the rules to say.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

F, H = jnp.float32, jnp.float16


def plus_one(x: Any, *, rows: int, columns: int, stages: int, step: int | None = None) -> Any:
    """x + 1, a tile in each program, through `stages` buffers of which each turn takes the next.

    step: rows from one program to the next, None = as many as it has.
    """
    m, n = x.shape
    step = rows if step is None else step

    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        at = pl.ds(lax.axis_index("i") * step, rows)

        def turn(k: Any, carry: None) -> None:
            here, slot = (at, pl.ds(k * columns, columns)), lax.rem(k, stages)
            plgpu.wait_smem_to_gmem(stages - 1, wait_read_only=True)
            plgpu.copy_gmem_to_smem(x_gmem.at[here], smem.at[slot], barrier)
            plgpu.barrier_wait(barrier)
            smem[slot] = smem[slot] + 1
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(smem.at[slot], o_gmem.at[here])

        lax.fori_loop(0, n // columns, turn, None)
        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // step,),
        grid_names=("i",),
        scratch_types=[plgpu.SMEM((stages, rows, columns), x.dtype), plgpu.Barrier()],
    )(x)


def product(a: Any, b: Any, *, tile_m: int, tile_n: int, tile_k: int, swizzle: int = 128) -> Any:
    """a b of f16, a tile of the result in each program, summed from one tile of each operand after the other."""
    (m, k), n = a.shape, b.shape[1]
    tiled = plgpu.TilingTransform((8, swizzle // 2)), plgpu.SwizzleTransform(swizzle)

    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, a_s: Any, b_s: Any, o_s: Any, barrier: Any) -> None:
        rows = pl.ds(lax.axis_index("m") * tile_m, tile_m)
        columns = pl.ds(lax.axis_index("n") * tile_n, tile_n)

        def sums(acc: Any) -> Any:
            def turn(t: Any, carry: None) -> None:
                inner = pl.ds(t * tile_k, tile_k)
                plgpu.copy_gmem_to_smem(a_gmem.at[rows, inner], a_s, barrier)
                plgpu.copy_gmem_to_smem(b_gmem.at[inner, columns], b_s, barrier)
                plgpu.barrier_wait(barrier)
                plgpu.wgmma(acc, a_s, b_s)
                plgpu.wgmma_wait(0)

            lax.fori_loop(0, k // tile_k, turn, None)
            return acc[...]

        o_s[...] = pl.run_scoped(sums, plgpu.ACC((tile_m, tile_n), F)).astype(H)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o_gmem.at[rows, columns])
        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((m, n), H),
        grid=(m // tile_m, n // tile_n),
        grid_names=("m", "n"),
        scratch_types=[
            plgpu.SMEM((tile_m, tile_k), H, transforms=tiled),
            plgpu.SMEM((tile_k, tile_n), H, transforms=tiled),
            plgpu.SMEM((tile_m, tile_n), H, transforms=tiled),
            plgpu.Barrier(num_arrivals=2),
        ],
    )(a, b)


def sums_in_tensor_memory(x: Any, *, columns: int, sums: int) -> Any:
    """x, past which it allocates tensor memory for so many sums."""

    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any, *sum_refs: Any) -> None:
        plgpu.copy_gmem_to_smem(x_gmem, smem, barrier)
        plgpu.barrier_wait(barrier)
        for one in sum_refs:
            plgpu.async_store_tmem(one, jnp.zeros((128, columns), F))
        plgpu.commit_tmem()
        plgpu.copy_smem_to_gmem(smem, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    memory = [plgpu.TMEM((128, columns), F) for _ in range(sums)]
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(1,),
        grid_names=("i",),
        scratch_types=[plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier(), *memory],
    )(x)


def on_tensor_memory(a: Any, b: Any, *, tile_m: int, tile_n: int, tile_k: int, swizzle: int = 128) -> Any:
    """a b of f16 by products on tensor memory, a tile of the result in each program; like `product`."""
    (m, k), n = a.shape, b.shape[1]
    tiled = plgpu.TilingTransform((8, swizzle // 2)), plgpu.SwizzleTransform(swizzle)

    def body(
        a_gmem: Any, b_gmem: Any, o_gmem: Any, a_s: Any, b_s: Any, o_s: Any, acc: Any, come: Any, done: Any
    ) -> None:
        rows = pl.ds(lax.axis_index("m") * tile_m, tile_m)
        columns = pl.ds(lax.axis_index("n") * tile_n, tile_n)

        def turn(t: Any, carry: None) -> None:
            inner = pl.ds(t * tile_k, tile_k)
            plgpu.copy_gmem_to_smem(a_gmem.at[rows, inner], a_s, come)
            plgpu.copy_gmem_to_smem(b_gmem.at[inner, columns], b_s, come)
            plgpu.barrier_wait(come)
            plgpu.tcgen05_mma(acc, a_s, b_s, done, accumulate=t > 0)
            plgpu.barrier_wait(done)

        lax.fori_loop(0, k // tile_k, turn, None)
        o_s[...] = plgpu.async_load_tmem(acc).astype(H)
        plgpu.wait_load_tmem()
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o_gmem.at[rows, columns])
        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((m, n), H),
        grid=(m // tile_m, n // tile_n),
        grid_names=("m", "n"),
        scratch_types=[
            plgpu.SMEM((tile_m, tile_k), H, transforms=tiled),
            plgpu.SMEM((tile_k, tile_n), H, transforms=tiled),
            plgpu.SMEM((tile_m, tile_n), H, transforms=tiled),
            plgpu.TMEM((tile_m, tile_n), F),
            plgpu.Barrier(num_arrivals=2),
            plgpu.Barrier(orders_tensor_core=True),
        ],
    )(a, b)


def with_registers(x: Any, *, warpgroups: int, registers: int, producer: int) -> Any:
    """x, by warpgroups of which the last one asks for `producer` registers and each other one for `registers`."""

    def body(x_gmem: Any, o_gmem: Any) -> None:
        wg = lax.axis_index("wg")

        @pl.when(wg == warpgroups - 1)
        def _() -> None:
            plgpu.set_max_registers(producer, action="decrease")

        @pl.when(wg != warpgroups - 1)
        def _() -> None:
            plgpu.set_max_registers(registers, action="increase")

        rows = pl.ds(wg * (x.shape[0] // warpgroups), x.shape[0] // warpgroups)
        o_gmem[rows] = x_gmem[rows]

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(1,),
        grid_names=("i",),
        num_threads=warpgroups,
        thread_name="wg",
    )(x)


def by_blocks(x: Any, *, rows: int, steps: int) -> Any:
    """x + 1 by a `pallas_call` for Mosaic GPU."""

    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + 1

    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(steps,),
        in_specs=[spec],
        out_specs=spec,
        compiler_params=plgpu.CompilerParams(),
    )(x)
