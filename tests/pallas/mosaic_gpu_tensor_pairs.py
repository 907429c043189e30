"""Kernels of Mosaic GPU for Blackwell (tensor memory, warps), each right and with one error, as of `PAIRS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax._src.lib.mlir.dialects import nvvm
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from tests.pallas.mosaic_gpu_pairs import FACTORS, TILED, F, H, Pair


def _once(condition: Any, body: Callable[[], None], always: bool = False) -> None:
    """Does something under a condition, or always."""
    if always:
        body()
    else:
        pl.when(condition)(body)


def multiplied(
    awaited: bool = True,
    early: bool = False,
    commit: bool = True,
    other: int = 0,
    accumulate: bool = False,
    slots: int = 2,
    column: int = 0,
    arrivals: int = 2,
    left: bool = False,
) -> Any:
    """f16[512,256] @ f16[256,512] in tiles of 128 x 128 x 64 by one thread, with two slots."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, acc: Any, full: Any, used: Any, done: Any) -> None:
        rows, columns = pl.ds(lax.axis_index("m") * 128, 128), pl.ds(lax.axis_index("n") * 128, 128)
        part = acc.at[:, pl.ds(lax.axis_index("n") * column, 128)]

        def turn(k: Any, carry: None) -> None:
            at, deep = lax.rem(k, 2), pl.ds(k * 64, 64)
            slot = lax.rem(k, slots)
            if awaited:
                pl.when(k >= 2)(lambda: plgpu.barrier_wait(used.at[at]))
            plgpu.copy_gmem_to_smem(a.at[rows, deep], a_s.at[slot], full.at[at])
            plgpu.copy_gmem_to_smem(b.at[deep, columns], b_s.at[slot], full.at[at])
            plgpu.barrier_wait(full.at[at])
            behind = lax.rem(k + other, 2)
            plgpu.tcgen05_mma(part, a_s.at[slot], b_s.at[slot], used.at[behind], accumulate=accumulate or k > 0)

        lax.fori_loop(0, 4, turn, None)
        if commit:
            plgpu.tcgen05_commit_arrive(done)
        if not early:
            plgpu.barrier_wait(done)
        o_s[...] = plgpu.async_load_tmem(part).astype(H)
        if early:
            plgpu.barrier_wait(done)
        if left:
            plgpu.wait_load_tmem()
            plgpu.tcgen05_mma(part, a_s.at[0], b_s.at[0])
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o.at[rows, columns])
        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 512), H),
        grid=(4, 4),
        grid_names=("m", "n"),
        scratch_types=[
            plgpu.SMEM((2, 128, 64), H, transforms=TILED),
            plgpu.SMEM((2, 64, 128), H, transforms=TILED),
            plgpu.SMEM((128, 128), H, transforms=TILED),
            plgpu.TMEM((128, 256), F),
            plgpu.Barrier(num_arrivals=arrivals, num_barriers=2),
            plgpu.Barrier(num_barriers=2, orders_tensor_core=True),
            plgpu.Barrier(orders_tensor_core=True),
        ],
    )


def piped(done: bool = True) -> Any:
    """The same by `emit_pipeline`."""

    def body(a: Any, b: Any, o: Any, o_s: Any, acc: Any, used: Any, all_done: Any) -> None:
        m, n = lax.axis_index("m"), lax.axis_index("n")

        def turn(at: Any, a_s: Any, b_s: Any) -> None:
            plgpu.tcgen05_mma(acc, a_s, b_s, used, accumulate=at[0] > 0)
            if done:
                plgpu.barrier_wait(used)

        plgpu.emit_pipeline(
            turn,
            grid=(4,),
            in_specs=[
                plgpu.BlockSpec((128, 64), lambda k: (m, k), transforms=TILED),
                plgpu.BlockSpec((64, 128), lambda k: (k, n), transforms=TILED),
            ],
            max_concurrent_steps=2,
        )(a, b)
        plgpu.tcgen05_commit_arrive(all_done)
        plgpu.barrier_wait(all_done)
        o_s[...] = plgpu.async_load_tmem(acc).astype(H)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o.at[pl.ds(m * 128, 128), pl.ds(n * 128, 128)])
        plgpu.wait_smem_to_gmem(0)

    barrier = plgpu.Barrier(orders_tensor_core=True)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 512), H),
        grid=(4, 4),
        grid_names=("m", "n"),
        scratch_types=[plgpu.SMEM((128, 128), H, transforms=TILED), plgpu.TMEM((128, 128), F), barrier, barrier],
    )


def by_warps(
    warps: bool = False,
    drained: bool = True,
    ordered: bool = True,
    free: bool = True,
    sums: int = 2,
    by: int = 1,
    every: bool = False,
    gone: bool = True,
    filled: bool = True,
) -> Any:
    """The same, 128 rows in each of 4 programs: a warp fetches, one multiplies into 2 sums in turn, a thread stores."""

    def body(
        a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, acc: Any, full: Any, used: Any, done: Any, stored: Any
    ) -> None:
        rows = pl.ds(lax.axis_index("m") * 128, 128)

        @pl.when(lax.axis_index("wg") == 0)
        def _multiplies() -> None:
            @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
            def _() -> None:
                warp = lax.axis_index("warp")

                @pl.when(warp == 0)
                def _fetches() -> None:
                    def turn(k: Any, carry: None) -> None:
                        at, deep, columns = (
                            lax.rem(k, 2),
                            pl.ds(lax.rem(k, 4) * 64, 64),
                            pl.ds(lax.div(k, 4) * 128, 128),
                        )
                        if gone:
                            pl.when(k >= 2)(lambda: plgpu.barrier_wait(used.at[at]))
                        plgpu.copy_gmem_to_smem(a.at[rows, deep], a_s.at[at], full.at[at])
                        plgpu.copy_gmem_to_smem(b.at[deep, columns], b_s.at[at], full.at[at])

                    lax.fori_loop(0, 16, turn, None)

                def _products() -> None:
                    def turn(k: Any, carry: None) -> None:
                        at, n = lax.rem(k, 2), lax.div(k, 4)
                        part = acc.at[:, pl.ds(lax.rem(n, sums) * 128, 128)]
                        if free:
                            pl.when((lax.rem(k, 4) == 0) & (n >= 2))(
                                lambda: plgpu.barrier_wait(stored.at[lax.rem(n, 2)])
                            )
                        if filled:
                            plgpu.barrier_wait(full.at[at])
                        more = lax.rem(k, 4) > 0
                        plgpu.tcgen05_mma(part, a_s.at[at], b_s.at[at], used.at[at], accumulate=more)
                        if by == 1:
                            _once(
                                lax.rem(k, 4) == 3, lambda: plgpu.tcgen05_commit_arrive(done.at[lax.rem(n, 2)]), every
                            )

                    lax.fori_loop(0, 16, turn, None)

                _once(warp == 1, _products, warps)
                if by != 1:

                    @pl.when(warp == by)
                    def _commits() -> None:
                        def turn(n: Any, carry: None) -> None:
                            plgpu.tcgen05_commit_arrive(done.at[lax.rem(n, 2)])

                        lax.fori_loop(0, 2, turn, None)

        @pl.when(lax.axis_index("wg") == 1)
        def _stores() -> None:
            def turn(n: Any, carry: None) -> None:
                plgpu.barrier_wait(done.at[lax.rem(n, 2)])
                plgpu.wait_smem_to_gmem(0)
                o_s[...] = plgpu.async_load_tmem(acc.at[:, pl.ds(lax.rem(n, sums) * 128, 128)]).astype(H)
                if drained:
                    plgpu.wait_load_tmem()
                plgpu.barrier_arrive(stored.at[lax.rem(n, 2)])
                plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(o_s, o.at[rows, pl.ds(n * 128, 128)])

            lax.fori_loop(0, 4, turn, None)
            plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 512), H),
        grid=(4,),
        grid_names=("m",),
        num_threads=2,
        thread_name="wg",
        scratch_types=[
            plgpu.SMEM((2, 128, 64), H, transforms=TILED),
            plgpu.SMEM((2, 64, 128), H, transforms=TILED),
            plgpu.SMEM((128, 128), H, transforms=TILED),
            plgpu.TMEM((128, 256), F),
            plgpu.Barrier(num_arrivals=2, num_barriers=2),
            plgpu.Barrier(num_barriers=2, orders_tensor_core=True),
            plgpu.Barrier(num_barriers=2, orders_tensor_core=True),
            plgpu.Barrier(num_barriers=2, orders_tensor_core=ordered),
        ],
    )


def from_tensor(commit: bool = True, begun: bool = True, columns: int = 128, kept: bool = True) -> Any:
    """f16[128,128] @ f16[128,128] + 1, whose left operand and whose sum a thread stores to tensor memory."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, a_t: Any, acc: Any, full: Any, done: Any) -> None:
        plgpu.copy_gmem_to_smem(a, a_s, full)
        plgpu.copy_gmem_to_smem(b, b_s, full)
        plgpu.barrier_wait(full)
        if begun:
            ones = jax.numpy.full((128, 128), 1, F)
            plgpu.async_store_tmem(acc, plgpu.layout_cast(ones, plgpu.Layout.TCGEN05))
        packed = plgpu.load(a_s, (slice(None), pl.ds(0, columns)), layout=plgpu.Layout.TCGEN05)
        plgpu.async_store_tmem(a_t.at[:, pl.ds(0, columns)], packed)
        if commit:
            plgpu.commit_tmem()
        plgpu.tcgen05_mma(acc, a_t, b_s, done)
        if not kept:
            plgpu.async_store_tmem(a_t, plgpu.load(a_s, (), layout=plgpu.Layout.TCGEN05))
            plgpu.commit_tmem()
        plgpu.barrier_wait(done)
        o_s[...] = plgpu.async_load_tmem(acc).astype(H)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o)
        plgpu.wait_smem_to_gmem(0)

    tile = plgpu.SMEM((128, 128), H, transforms=TILED)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((128, 128), H),
        scratch_types=[
            *(tile, tile, tile),
            plgpu.TMEM((128, 128), H, packed=True),
            plgpu.TMEM((128, 128), F),
            plgpu.Barrier(num_arrivals=2),
            plgpu.Barrier(orders_tensor_core=True),
        ],
    )


def fence(before: bool) -> None:
    """`tcgen05.fence`: what was done on tensor memory, before an arrival; what is done there, after a wait."""

    @plgpu.inline_mgpu()
    def code(_: Any) -> None:
        kinds = nvvm.Tcgen05FenceKind
        nvvm.tcgen05_fence(kinds.BEFORE_THREAD_SYNC if before else kinds.AFTER_THREAD_SYNC)

    code()


def doubled(before: bool = True, after: bool = True, used: bool = True, commit: bool = True) -> Any:
    """2 (a b) + a b of f16[128,128]: a thread doubles the sum in its place, and its barrier orders nothing there."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, acc: Any, full: Any, done: Any, twice: Any) -> None:
        @pl.when(lax.axis_index("wg") == 0)
        def _() -> None:
            plgpu.copy_gmem_to_smem(a, a_s, full)
            plgpu.copy_gmem_to_smem(b, b_s, full)
            plgpu.barrier_wait(full)
            plgpu.tcgen05_mma(acc, a_s, b_s, done, accumulate=False)
            plgpu.barrier_wait(twice)
            if after:
                fence(before=False)
            plgpu.tcgen05_mma(acc, a_s, b_s, done)

        @pl.when(lax.axis_index("wg") == 1)
        def _() -> None:
            plgpu.barrier_wait(done)
            found = plgpu.async_load_tmem(acc)
            zeros = plgpu.layout_cast(jax.numpy.zeros_like(found), plgpu.Layout.TCGEN05)
            plgpu.async_store_tmem(acc, found * 2 if used else zeros)
            if commit:
                plgpu.commit_tmem()
            if before:
                fence(before=True)
            plgpu.barrier_arrive(twice)
            plgpu.barrier_wait(done)
            o_s[...] = plgpu.async_load_tmem(acc).astype(H)
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_s, o)
            plgpu.wait_smem_to_gmem(0)

    tile = plgpu.SMEM((128, 128), H, transforms=TILED)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((128, 128), H),
        num_threads=2,
        thread_name="wg",
        scratch_types=[
            *(tile, tile, tile),
            plgpu.TMEM((128, 128), F),
            plgpu.Barrier(num_arrivals=2),
            plgpu.Barrier(orders_tensor_core=True),
            plgpu.Barrier(),
        ],
    )


def in_one_place(apart: bool = False) -> Any:
    """(a b) b of f16[128,128]: the left operand of the second product has the place of the first one's sum."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, place: Any, acc: Any, full: Any, done: Any) -> None:
        first, left = place
        plgpu.copy_gmem_to_smem(a, a_s, full)
        plgpu.copy_gmem_to_smem(b, b_s, full)
        plgpu.barrier_wait(full)
        plgpu.tcgen05_mma(first, a_s, b_s, done.at[0], accumulate=False)
        plgpu.barrier_wait(done.at[0])
        found = plgpu.async_load_tmem(first, layout=plgpu.Layout.TCGEN05)
        plgpu.wait_load_tmem()
        plgpu.async_store_tmem(left, found.astype(H))
        plgpu.commit_tmem()
        plgpu.tcgen05_mma(acc, left, b_s, done.at[1], accumulate=False)
        plgpu.barrier_wait(done.at[1])
        if apart:
            # half of its columns are those of the operand
            o_s[...] = plgpu.async_load_tmem(first).astype(H)
        else:
            o_s[...] = plgpu.async_load_tmem(acc).astype(H)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o)
        plgpu.wait_smem_to_gmem(0)

    tile = plgpu.SMEM((128, 128), H, transforms=TILED)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((128, 128), H),
        scratch_types=[
            *(tile, tile, tile),
            plgpu.RefUnion(plgpu.TMEM((128, 128), F), plgpu.TMEM((128, 128), H, packed=True)),
            plgpu.TMEM((128, 128), F),
            plgpu.Barrier(num_arrivals=2),
            plgpu.Barrier(num_barriers=2, orders_tensor_core=True),
        ],
    )


def of_two(all_of_them: bool = True, both: bool = False, early: bool = False, gone: bool = True) -> Any:
    """f16[512,256] @ f16[256,512] by clusters of 2 that multiply together: tiles of 256 x 128, half of it in each."""

    def body(
        a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, acc: Any, full: Any, used: Any, done: Any, stored: Any
    ) -> None:
        mine = lax.axis_index("c")
        rows = lax.axis_index("m") * 256

        def tile(n: Any, carry: None) -> None:
            columns = pl.ds(n * 128, 128)

            @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
            def _() -> None:
                warp = lax.axis_index("warp")

                @pl.when(warp == 0)
                def _fetches() -> None:
                    def turn(k: Any, carry: None) -> None:
                        at, deep = lax.rem(k, 2), pl.ds(k * 64, 64)
                        if gone:
                            pl.when((k >= 2) | (n > 0))(lambda: plgpu.barrier_wait(used.at[at]))
                        for source, target, half in (
                            (a.at[pl.ds(rows, 256), deep], a_s, 0),
                            (b.at[deep, columns], b_s, 1),
                        ):
                            plgpu.copy_gmem_to_smem(
                                source,
                                target.at[at],
                                full.at[at],
                                collective_axes="c",
                                leader_tracked=plgpu.CopyPartition.PARTITIONED(half),
                            )

                    lax.fori_loop(0, 4, turn, None)

                @pl.when((warp == 1) & ((mine == 0) | both))
                def _multiplies() -> None:
                    def turn(k: Any, carry: None) -> None:
                        at = lax.rem(k, 2)
                        plgpu.barrier_wait(full.at[at])
                        plgpu.tcgen05_mma(
                            acc, a_s.at[at], b_s.at[at], used.at[at], accumulate=k > 0, collective_axis="c"
                        )

                    lax.fori_loop(0, 4, turn, None)
                    plgpu.tcgen05_commit_arrive(done, collective_axis="c")

            if not early:
                plgpu.barrier_wait(done)
            plgpu.wait_smem_to_gmem(0)
            o_s[...] = plgpu.async_load_tmem(acc).astype(H)
            plgpu.wait_load_tmem()
            if early:
                plgpu.barrier_wait(done)
            plgpu.barrier_arrive(stored)
            plgpu.barrier_wait(stored)
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_s, o.at[pl.ds(rows + mine * 128, 128), columns])

        lax.fori_loop(0, 4, tile, None)
        plgpu.wait_smem_to_gmem(0)

    ordered: Any = {"orders_tensor_core": True}
    shared = plgpu.ClusterBarrier(collective_axes=("c",), **ordered)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 512), H),
        grid=(2,),
        grid_names=("m",),
        cluster=(2,),
        cluster_names=("c",),
        scratch_types=[
            plgpu.SMEM((2, 128, 64), H, transforms=TILED),
            plgpu.SMEM((2, 64, 64), H, transforms=TILED),
            plgpu.SMEM((128, 128), H, transforms=TILED),
            plgpu.TMEM((128, 128), F, collective=True),
            plgpu.Barrier(num_arrivals=2, num_barriers=2),
            plgpu.Barrier(num_barriers=2, **ordered),
            plgpu.Barrier(**ordered),
            shared if all_of_them else plgpu.Barrier(**ordered),
        ],
    )


def given_out(drained: bool = True, awaited: bool = True, whole: bool = True, ends: bool = True) -> Any:
    """x + 1 of f32[1024,128] in clusters of 2 that take the next 64 rows of what is left (cluster launch control)."""

    def body(x: Any, o: Any, x_s: Any, o_s: Any, full: Any) -> None:
        mine, wg = lax.axis_index("c"), lax.axis_index("wg")
        axes: Any = {"cluster_axes": ("c",)} if whole else {}

        @plgpu.dynamic_scheduling_loop(grid_names=("i",), thread_axis="wg", **axes)
        def _(info: Any) -> None:
            rows = pl.ds(info.index[0] * 64 + mine * 32, 32)

            @pl.when(wg == 1)
            def _computes() -> None:
                plgpu.copy_gmem_to_smem(x.at[rows], x_s, full)
                if awaited:
                    plgpu.barrier_wait(full)
                if drained:
                    plgpu.wait_smem_to_gmem(0)
                o_s[...] = x_s[...] + 1
                plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(o_s, o.at[rows])

        if ends:
            plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((1024, 128), F),
        grid=(16,),
        grid_names=("i",),
        cluster=(2,),
        cluster_names=("c",),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((32, 128), F), plgpu.SMEM((32, 128), F), plgpu.Barrier()],
    )


MANY = (jax.ShapeDtypeStruct((1024, 128), F),)
SQUARES = (jax.ShapeDtypeStruct((128, 128), H), jax.ShapeDtypeStruct((128, 128), H))
TENSOR_PAIRS = {
    "tensor: sum read before its MMAs end": Pair(
        multiplied,
        FACTORS,
        {"early": True},
        "dma_order",
        "the load comes before the wait for the MMAs",
    ),
    "tensor: a slot that its MMA may still read": Pair(
        multiplied,
        FACTORS,
        {"awaited": False},
        "dma_order",
        "turn 2 fetches into slot 0, which turn 0 multiplies",
    ),
    "tensor: no arrival behind the MMAs": Pair(
        multiplied, FACTORS, {"commit": False}, "dma_order", "arrival 1 of 0 is waited for"
    ),
    "tensor: an arrival on the other slot": Pair(
        multiplied,
        FACTORS,
        {"other": 1},
        "dma_order",
        "the MMA of turn 0 arrives at slot 1, and turn 2 waits for slot 0",
    ),
    "tensor: added to nothing": Pair(
        multiplied, FACTORS, {"accumulate": True}, "initialised", "turn 0 adds to 128 x 128 that nothing has written"
    ),
    "tensor: a ring of one": Pair(
        multiplied, FACTORS, {"slots": 1}, "dma_order", "turn 1 fetches into slot 0, which turn 0 multiplies"
    ),
    "tensor: columns that are not there": Pair(
        multiplied, FACTORS, {"column": 128}, "body_in_bounds", "2 x 128 + 128 = 384 columns of 256"
    ),
    "tensor: filled by one of two": Pair(
        multiplied, FACTORS, {"arrivals": 1}, "dma_order", "2 copies end 2 phases of 1 arrival, and one is waited for"
    ),
    "tensor: an MMA at the end": Pair(
        multiplied, FACTORS, {"left": True}, "dma_order", "no arrival comes behind the last MMA"
    ),
    "tensor: pipeline, and MMAs left running": Pair(
        piped, FACTORS, {"done": False}, "dma_order", "slot 0 is fetched again in turn 0"
    ),
    "warps: all of them multiply": Pair(
        by_warps, FACTORS, {"warps": True}, "dma_order", "4 warps add to one sum without an order"
    ),
    "warps: released before the load has ended": Pair(
        by_warps, FACTORS, {"drained": False}, "dma_order", "tile 2 overwrites what the load of tile 0 reads"
    ),
    "warps: a barrier that does not order them": Pair(
        by_warps, FACTORS, {"ordered": False}, "dma_order", "the load of tile 0 and the MMA of tile 2, in one sum"
    ),
    "warps: a sum overwritten too early": Pair(
        by_warps, FACTORS, {"free": False}, "dma_order", "tile 2 overwrites the sum that tile 0 is loaded from"
    ),
    "warps: one sum for two": Pair(
        by_warps, FACTORS, {"sums": 1}, "dma_order", "tile 1 overwrites the sum that tile 0 is loaded from"
    ),
    "warps: an arrival that another warp asks for": Pair(
        by_warps, FACTORS, {"by": 2}, "dma_order", "warp 2 has started no MMA: its arrival waits for none"
    ),
    "warps: an arrival in each turn": Pair(
        by_warps, FACTORS, {"every": True}, "dma_order", "4 phases end, and one is waited for"
    ),
    "warps: fetched before the MMA ends": Pair(
        by_warps, FACTORS, {"gone": False}, "dma_order", "turn 2 fetches into slot 0, which turn 0 multiplies"
    ),
    "warps: multiplied before the fetch": Pair(
        by_warps, FACTORS, {"filled": False}, "dma_order", "nothing orders the copy of turn 0 and its MMA"
    ),
    "operand: stored and not committed": Pair(
        from_tensor, SQUARES, {"commit": False}, "dma_order", "a store to tensor memory, then its MMA"
    ),
    "operand: a sum that begins with nothing": Pair(
        from_tensor, SQUARES, {"begun": False}, "initialised", "the MMA adds to 128 x 128 that nothing has written"
    ),
    "operand: half of it stored": Pair(
        from_tensor, SQUARES, {"columns": 64}, "initialised", "64 columns stored, 128 read"
    ),
    "operand: overwritten too early": Pair(
        from_tensor, SQUARES, {"kept": False}, "dma_order", "the store comes before the MMA is waited for"
    ),
    "sum in its place: no fence before the arrival": Pair(
        doubled, SQUARES, {"before": False}, "dma_order", "a store and the MMA after it: the barrier orders no sums"
    ),
    "sum in its place: no fence after the wait": Pair(
        doubled, SQUARES, {"after": False}, "dma_order", "a store and the MMA after it: the barrier orders no sums"
    ),
    "sum in its place: stored before it was loaded": Pair(
        doubled, SQUARES, {"used": False}, "dma_order", "zeros go there while the load may still read"
    ),
    "sum in its place: stored and not committed": Pair(
        doubled, SQUARES, {"commit": False}, "dma_order", "the store may run when the next MMA adds"
    ),
    "operand: over a sum that comes later": Pair(
        in_one_place, SQUARES, {"apart": True}, "initialised", "64 of 128 columns hold the operand"
    ),
    "given out: results overwritten early": Pair(
        given_out, MANY, {"drained": False}, "dma_order", "turn 1 stores to what turn 0 copies out"
    ),
    "given out: load before the copy has ended": Pair(
        given_out, MANY, {"awaited": False}, "dma_order", "the load comes at once behind its copy"
    ),
    "given out: each waits for its own answer": Pair(
        given_out,
        MANY,
        {"whole": False},
        "dma_order",
        "the answer of turn 2 comes where the other one reads that of turn 0",
    ),
    "given out: end before the copy out has": Pair(
        given_out, MANY, {"ends": False}, "dma_order", "the last turn leaves its copy running"
    ),
    "two: each waits for itself": Pair(
        of_two, FACTORS, {"all_of_them": False}, "dma_order", "tile 1 overwrites what the other one loads"
    ),
    "two: sums read early": Pair(of_two, FACTORS, {"early": True}, "dma_order", "the load comes before the wait"),
    "two: fetched before the MMA ends": Pair(
        of_two, FACTORS, {"gone": False}, "dma_order", "turn 2 fetches into slot 0, which turn 0 multiplies"
    ),
}
