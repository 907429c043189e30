"""Kernels of Mosaic GPU whose threads (warpgroups) share memory, each right and with one error, as of `PAIRS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import llvm
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from tests.pallas.mosaic_gpu_pairs import FACTORS, LONG, ROWS, SQUARES, TILED, F, H, Pair


def kernel(body: Callable[..., None], shape: tuple[int, ...], dtype: Any, threads: int, *scratch: Any) -> Any:
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct(shape, dtype),
        grid=(2,),
        grid_names=("i",),
        num_threads=threads,
        thread_name="wg",
        scratch_types=list(scratch),
    )


def _see_the_last(empty: Any) -> None:
    """Waits for the last release of each of two slots: JAX's interpreter wants each phase to be seen."""
    for at in range(2):
        plgpu.barrier_wait(empty.at[at])


def handed(
    filled: bool = True,
    released: str = "after",
    awaited: bool = True,
    commit: str = "own",
    drained: bool = True,
    turns: int = 4,
    arrivals: tuple[int, int] = (1, 1),
    twice: bool = False,
    guarded: bool = True,
) -> Any:
    """2 x of f32[512,128], 256 rows in each of 2 programs: one thread fetches 4 parts into 2 slots, one computes."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, o_s: Any, full: Any, empty: Any) -> None:
        wg, first = lax.axis_index("wg"), lax.axis_index("i") * 256

        @pl.when(wg == 0)
        def _fetches() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)
                if awaited:

                    @pl.when(k >= 2)
                    def _() -> None:
                        plgpu.barrier_wait(empty.at[at])

                for _ in range(2 if twice else 1):
                    plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(first + k * 64, 64)], x_s.at[at], full.at[at])
                if commit == "other":
                    plgpu.commit_smem()

            lax.fori_loop(0, 4, turn, None)
            if awaited:
                _see_the_last(empty)

        @pl.when(wg == 1)
        def _computes() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)
                if filled:
                    plgpu.barrier_wait(full.at[at])
                if released == "before":
                    plgpu.barrier_arrive(empty.at[at])
                if drained:
                    plgpu.wait_smem_to_gmem(0)
                o_s[...] = x_s[at] * 2
                if released == "after":
                    plgpu.barrier_arrive(empty.at[at])
                if commit == "own":
                    plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(o_s, o_gmem.at[pl.ds(first + k * 64, 64)])

            lax.fori_loop(0, turns, turn, None)
            if guarded:
                plgpu.wait_smem_to_gmem(0)

    return kernel(
        body,
        (512, 128),
        F,
        2,
        plgpu.SMEM((2, 64, 128), F),
        plgpu.SMEM((64, 128), F),
        plgpu.Barrier(num_arrivals=arrivals[0], num_barriers=2),
        plgpu.Barrier(num_arrivals=arrivals[1], num_barriers=2),
    )


def shared_by_two(arrivals: int = 2, half: int = 32) -> Any:
    """The same with two threads that compute, each half of the rows of a slot."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any, empty: Any) -> None:
        wg, first = lax.axis_index("wg"), lax.axis_index("i") * 256

        @pl.when(wg == 2)
        def _fetches() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)

                @pl.when(k >= 2)
                def _() -> None:
                    plgpu.barrier_wait(empty.at[at])

                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(first + k * 64, 64)], x_s.at[at], full.at[at])

            lax.fori_loop(0, 4, turn, None)
            _see_the_last(empty)

        @pl.when(wg < 2)
        def _computes() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)
                plgpu.barrier_wait(full.at[at])
                o_gmem[pl.ds(first + k * 64 + wg * half, 32)] = x_s[at, pl.ds(wg * 32, 32)] * 2
                plgpu.barrier_arrive(empty.at[at])

            lax.fori_loop(0, 4, turn, None)

    scratch = plgpu.SMEM((2, 64, 128), F), plgpu.Barrier(num_barriers=2)
    return kernel(body, (512, 128), F, 3, *scratch, plgpu.Barrier(num_arrivals=arrivals, num_barriers=2))


def stored_for_another(met: bool = True, back: bool = True, rows: int = 64) -> Any:
    """One thread stores what the other one reads, part after part, with a barrier each way."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, stored: Any, taken: Any) -> None:
        wg, first = lax.axis_index("wg"), lax.axis_index("i") * 256

        @pl.when(wg == 0)
        def _stores() -> None:
            def turn(k: Any, carry: None) -> None:
                if back:

                    @pl.when(k > 0)
                    def _() -> None:
                        plgpu.barrier_wait(taken)

                x_s[pl.ds(0, rows)] = x_gmem[pl.ds(first + k * 64, rows)] * 2
                plgpu.barrier_arrive(stored)

            lax.fori_loop(0, 4, turn, None)
            if back:
                plgpu.barrier_wait(taken)

        @pl.when(wg == 1)
        def _reads() -> None:
            def turn(k: Any, carry: None) -> None:
                if met:
                    plgpu.barrier_wait(stored)
                o_gmem[pl.ds(first + k * 64, 64)] = x_s[...]
                plgpu.barrier_arrive(taken)

            lax.fori_loop(0, 4, turn, None)

    return kernel(body, (512, 128), F, 2, plgpu.SMEM((64, 128), F), plgpu.Barrier(), plgpu.Barrier())


def multiplied(done: bool = True, slots: int = 2, both: int = 2, leave: int = 0) -> Any:
    """f16[512,256] @ f16[256,512], 256 rows in each of 2 programs: one thread fetches, two multiply 128 rows each."""

    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, a_s: Any, b_s: Any, o_s: Any, full: Any, empty: Any) -> None:
        wg, first = lax.axis_index("wg"), lax.axis_index("i") * 256

        @pl.when(wg == 2)
        def _fetches() -> None:
            def turn(k: Any, carry: None) -> None:
                at, deep = lax.rem(lax.rem(k, 4), slots), pl.ds(lax.rem(k, 4) * 64, 64)
                columns = pl.ds(lax.div(k, 4) * 128, 128)

                @pl.when(k >= slots)
                def _() -> None:
                    plgpu.barrier_wait(empty.at[at])

                plgpu.copy_gmem_to_smem(a_gmem.at[pl.ds(first, 256), deep], a_s.at[at], full.at[at])
                plgpu.copy_gmem_to_smem(b_gmem.at[deep, columns], b_s.at[at], full.at[at])

            lax.fori_loop(0, 16, turn, None)
            _see_the_last(empty)

        @pl.when(wg < 2)
        def _multiplies() -> None:
            rows = pl.ds(wg * 128, 128)

            @pl.loop(0, 4)
            def _(n: Any) -> None:
                def sums(acc: Any) -> Any:
                    def turn(k: Any, carry: None) -> None:
                        at = lax.rem(k, slots)
                        plgpu.barrier_wait(full.at[at])
                        plgpu.wgmma(acc, a_s.at[at, rows], b_s.at[at])
                        if done:
                            plgpu.wgmma_wait(leave)
                        plgpu.barrier_arrive(empty.at[at])

                    lax.fori_loop(0, 4, turn, None)
                    return acc[...]

                summed = pl.run_scoped(sums, plgpu.ACC((128, 128), F)).astype(H)
                plgpu.wait_smem_to_gmem(0)
                o_s[rows] = summed
                plgpu.commit_smem()
                part = o_gmem.at[pl.ds(first + wg * 128, 128), pl.ds(n * 128, 128)]
                plgpu.copy_smem_to_gmem(o_s.at[rows], part)

            plgpu.wait_smem_to_gmem(0)

    return kernel(
        body,
        (512, 512),
        H,
        3,
        plgpu.SMEM((2, 256, 64), H, transforms=TILED),
        plgpu.SMEM((2, 64, 128), H, transforms=TILED),
        plgpu.SMEM((256, 128), H, transforms=TILED),
        plgpu.Barrier(num_arrivals=2, num_barriers=2),
        plgpu.Barrier(num_arrivals=both, num_barriers=2),
    )


def spread(met: bool = True, all_of_them: bool = True, wanted: int = 1) -> Any:
    """2 x of f32[512,128] in a cluster of 2: each fetches half of a part of 64 rows for both, and writes 32 of them."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any, empty: Any) -> None:
        mine = lax.axis_index("c")

        def turn(k: Any, carry: None) -> None:
            if met:

                @pl.when(k > 0)
                def _() -> None:
                    plgpu.barrier_wait(empty)

            rows = pl.ds(k * 64, 64)
            plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_s, full, collective_axes="c")
            plgpu.barrier_wait(full)
            o_gmem[pl.ds(k * 64 + mine * 32, 32)] = x_s[pl.ds(mine * 32, 32)] * 2
            plgpu.barrier_arrive(empty)

        lax.fori_loop(0, 8, turn, None)
        if met:
            plgpu.barrier_wait(empty)

    shared = plgpu.ClusterBarrier(collective_axes=("c",), num_arrivals=wanted)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 128), F),
        cluster=(2,),
        cluster_names=("c",),
        scratch_types=[
            plgpu.SMEM((64, 128), F),
            plgpu.Barrier(),
            shared if all_of_them else plgpu.Barrier(),
        ],
    )


def squared(axes: tuple[str, ...] = ("c", "d")) -> Any:
    """The same in a cluster of 2 x 2, of which those along c fetch together, and those along d have other parts.

    axes: along which a barrier counts arrivals.
    """

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any, empty: Any) -> None:
        half = lax.axis_index("c") * 32

        def turn(k: Any, carry: None) -> None:
            first = (lax.axis_index("d") * 4 + k) * 64
            pl.when(k > 0)(lambda: plgpu.barrier_wait(empty))
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(first, 64)], x_s, full, collective_axes="c")
            plgpu.barrier_wait(full)
            o_gmem[pl.ds(first + half, 32)] = x_s[pl.ds(half, 32)] * 2
            plgpu.barrier_arrive(empty)

        lax.fori_loop(0, 4, turn, None)
        plgpu.barrier_wait(empty)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 128), F),
        cluster=(2, 2),
        cluster_names=("c", "d"),
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.Barrier(), plgpu.ClusterBarrier(collective_axes=axes)],
    )


def spread_over_all(axes: Any = (("c", "d"),)) -> Any:
    """The same in a cluster of 2 x 2, of which each fetches a quarter of a part for all, and writes 16 rows.

    axes: along which a barrier counts arrivals: of both together, or of each.
    """

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any, empty: Any) -> None:
        quarter = (lax.axis_index("c") * 2 + lax.axis_index("d")) * 16

        def turn(k: Any, carry: None) -> None:
            pl.when(k > 0)(lambda: plgpu.barrier_wait(empty))
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(k * 64, 64)], x_s, full, collective_axes=("c", "d"))
            plgpu.barrier_wait(full)
            o_gmem[pl.ds(k * 64 + quarter, 16)] = x_s[pl.ds(quarter, 16)] * 2
            plgpu.barrier_arrive(empty)

        lax.fori_loop(0, 8, turn, None)
        plgpu.barrier_wait(empty)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 128), F),
        cluster=(2, 2),
        cluster_names=("c", "d"),
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.Barrier(), plgpu.ClusterBarrier(collective_axes=axes)],
    )


def exchanged(met: bool = True, all_of_them: bool = True, arrives: str = "after", threads: int = 1) -> Any:
    """2 x of f32[512,128] in clusters of 2, or by 2 threads: each stores 128 rows, and takes those of the other one.

    They go through an array in global memory, of which each part is written and read once.
    """

    def body(x_gmem: Any, s_gmem: Any, o_gmem: Any, barrier: Any) -> None:
        mine, first = lax.axis_index("c" if threads == 1 else "wg"), lax.axis_index("i") * 256
        if arrives == "before":
            plgpu.barrier_arrive(barrier)
        s_gmem[pl.ds(first + mine * 128, 128)] = x_gmem[pl.ds(first + mine * 128, 128)] * 2
        if arrives == "after":
            plgpu.barrier_arrive(barrier)
        if met:
            plgpu.barrier_wait(barrier)
        other = pl.ds(first + (1 - mine) * 128, 128)
        o_gmem[other] = s_gmem[other]

    mesh: dict[str, Any] = {"cluster": (2,), "cluster_names": ("c",)}
    barrier: Any = plgpu.ClusterBarrier(collective_axes=("c",)) if all_of_them else plgpu.Barrier()
    if threads > 1:
        mesh, barrier = {"num_threads": threads, "thread_name": "wg"}, plgpu.Barrier(num_arrivals=threads)
    out = jax.ShapeDtypeStruct((512, 128), F)
    return plgpu.kernel(body, out_type=out, grid=(2,), grid_names=("i",), **mesh, scratch_types=[barrier])


def exchanged_by_threads(met: bool = True, arrives: str = "after") -> Any:
    """As of `exchanged`, by two threads of each of two programs."""
    return exchanged(met, arrives=arrives, threads=2)


def stored_by(one: bool = True) -> Any:
    """2 x of f32[256,128], stored by one program of a cluster, or by both, which need not write the same."""

    def body(x_gmem: Any, o_gmem: Any) -> None:
        def stores() -> None:
            o_gmem[...] = x_gmem[...] * 2

        if one:
            pl.when(lax.axis_index("c") == 0)(stores)
        else:
            stores()

    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((256, 128), F), cluster=(2,), cluster_names=("c",))


def stored_over(reads_only: bool = False) -> Any:
    """2 x of f32[256,128], which one program of a cluster stores over what the other one has copied there."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any, copied: Any) -> None:
        @pl.when(lax.axis_index("c") == 0)
        def _() -> None:
            plgpu.copy_gmem_to_smem(x_gmem, x_s, full)
            plgpu.barrier_wait(full)
            plgpu.copy_smem_to_gmem(x_s, o_gmem)
            plgpu.wait_smem_to_gmem(0, wait_read_only=reads_only)

        plgpu.barrier_arrive(copied)
        plgpu.barrier_wait(copied)

        @pl.when(lax.axis_index("c") == 1)
        def _() -> None:
            o_gmem[...] = x_gmem[...] * 2

    scratch = [plgpu.SMEM((256, 128), F), plgpu.Barrier(), plgpu.ClusterBarrier(collective_axes=("c",))]
    out = jax.ShapeDtypeStruct((256, 128), F)
    return plgpu.kernel(body, out_type=out, cluster=(2,), cluster_names=("c",), scratch_types=scratch)


def spread_factors(all_of_them: bool = True, met: bool = True) -> Any:
    """f16[512,256] @ f16[256,512] in clusters of 2, of 128 rows each, that fetch the right operand together."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, full: Any, empty: Any) -> None:
        wg, mine = lax.axis_index("wg"), pl.ds(lax.axis_index("m") * 256 + lax.axis_index("c") * 128, 128)
        columns = pl.ds(lax.axis_index("n") * 128, 128)

        @pl.when(wg == 0)
        def _fetches() -> None:
            def turn(k: Any, carry: None) -> None:
                at, deep = lax.rem(k, 2), pl.ds(k * 64, 64)
                if met:
                    pl.when(k >= 2)(lambda: plgpu.barrier_wait(empty.at[at]))
                plgpu.copy_gmem_to_smem(a.at[mine, deep], a_s.at[at], full.at[at])
                plgpu.copy_gmem_to_smem(b.at[deep, columns], b_s.at[at], full.at[at], collective_axes="c")

            lax.fori_loop(0, 4, turn, None)
            if met:
                _see_the_last(empty)

        @pl.when(wg == 1)
        def _multiplies() -> None:
            def sums(acc: Any) -> Any:
                def turn(k: Any, carry: None) -> None:
                    at = lax.rem(k, 2)
                    plgpu.barrier_wait(full.at[at])
                    plgpu.wgmma(acc, a_s.at[at], b_s.at[at])
                    plgpu.wgmma_wait(0)
                    plgpu.barrier_arrive(empty.at[at])

                lax.fori_loop(0, 4, turn, None)
                return acc[...]

            o_s[...] = pl.run_scoped(sums, plgpu.ACC((128, 128), F)).astype(H)
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_s, o.at[mine, columns])
            plgpu.wait_smem_to_gmem(0)

    shared = plgpu.ClusterBarrier(collective_axes=("c",), num_barriers=2)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 512), H),
        grid=(2, 4),
        grid_names=("m", "n"),
        cluster=(2,),
        cluster_names=("c",),
        num_threads=2,
        thread_name="wg",
        scratch_types=[
            plgpu.SMEM((2, 128, 64), H, transforms=TILED),
            plgpu.SMEM((2, 64, 128), H, transforms=TILED),
            plgpu.SMEM((128, 128), H, transforms=TILED),
            plgpu.Barrier(num_arrivals=2, num_barriers=2),
            shared if all_of_them else plgpu.Barrier(num_barriers=2),
        ],
    )


def bar(operation: str, number: Any, num_threads: int) -> None:
    """`bar.sync` or `bar.arrive` on a named barrier of so many threads; JAX 0.12 interprets code with these names."""

    @plgpu.inline_mgpu(arg_types=(plgpu.Layout.WG_SPLAT,))
    def bar_op(_: Any, barrier_id: Any) -> None:
        text, void = f"bar.{operation} $0, {num_threads};", ir.Type.parse("!llvm.void")
        llvm.inline_asm(void, [barrier_id.registers[()]], text, "r", has_side_effects=True)

    bar_op(jax.numpy.int32(number))


def by_name(awaited: bool = True, released: str = "after", many: int = 160) -> Any:
    """2 x as of `handed`: a warp fetches, and named barriers say that a slot may be filled."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any) -> None:
        wg, first = lax.axis_index("wg"), lax.axis_index("i") * 256

        @pl.when(wg == 0)
        def _fetches() -> None:
            @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
            def _() -> None:
                @pl.when(lax.axis_index("warp") == 0)
                def _() -> None:
                    def turn(k: Any, carry: None) -> None:
                        at = lax.rem(k, 2)
                        if awaited:
                            bar("sync", 4 + at, many)
                        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(first + k * 64, 64)], x_s.at[at], full.at[at])

                    lax.fori_loop(0, 4, turn, None)

        @pl.when(wg == 1)
        def _computes() -> None:
            for at in range(2):
                bar("arrive", 4 + at, many)

            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)
                plgpu.barrier_wait(full.at[at])
                if released == "before":
                    bar("arrive", 4 + at, many)
                o_gmem[pl.ds(first + k * 64, 64)] = x_s[at] * 2
                if released == "after":
                    bar("arrive", 4 + at, many)

            lax.fori_loop(0, 4, turn, None)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((512, 128), F),
        grid=(2,),
        grid_names=("i",),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((2, 64, 128), F), plgpu.Barrier(num_barriers=2)],
        compiler_params=plgpu.CompilerParams(unsafe_no_auto_barriers=True),
    )


def two_sums(first: int = 0, cleared: int = 0) -> Any:
    """3 a b of f16[64,64]: one of two sums is loaded and stored while the MMA of the other one runs."""

    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, a_s: Any, b_s: Any, full: Any) -> None:
        wg = lax.axis_index("wg")

        @pl.when(wg == 0)
        def _fetches() -> None:
            plgpu.copy_gmem_to_smem(a_gmem, a_s, full)
            plgpu.copy_gmem_to_smem(b_gmem, b_s, full)

        @pl.when(wg == 1)
        def _multiplies() -> None:
            plgpu.barrier_wait(full)

            def sums(one: Any, other: Any) -> Any:
                plgpu.wgmma(one, a_s, b_s)
                plgpu.wgmma(other, a_s, b_s)
                both = (one, other)
                found = plgpu.wgmma_accumulator_load(both[first], wait_n=1)
                both[cleared][...] = found
                plgpu.wgmma(both[cleared], a_s, b_s)
                return one[...] + other[...]

            o_gmem[...] = pl.run_scoped(sums, plgpu.ACC((64, 64), F), plgpu.ACC((64, 64), F))

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 64), F),
        num_threads=2,
        thread_name="wg",
        scratch_types=[*[plgpu.SMEM((64, 64), H, transforms=TILED)] * 2, plgpu.Barrier(num_arrivals=2)],
    )


def one_place(released: str = "after", read_after: bool = False) -> Any:
    """2 x as of `handed`, in f16: what comes in and what goes out have one place."""

    def body(x_gmem: Any, o_gmem: Any, place: Any, full: Any, empty: Any) -> None:
        wg, first = lax.axis_index("wg"), lax.axis_index("i") * 256
        x_s, o_s = place

        @pl.when(wg == 0)
        def _fetches() -> None:
            def turn(k: Any, carry: None) -> None:
                @pl.when(k >= 1)
                def _() -> None:
                    plgpu.barrier_wait(empty)

                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(first + k * 64, 64)], x_s, full)

            lax.fori_loop(0, 4, turn, None)
            plgpu.barrier_wait(empty)

        @pl.when(wg == 1)
        def _computes() -> None:
            def turn(k: Any, carry: None) -> None:
                plgpu.barrier_wait(full)
                found = x_s[...]
                if released == "before":
                    plgpu.barrier_arrive(empty)
                o_s[...] = (found * 2).astype(H)
                plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(o_s, o_gmem.at[pl.ds(first + k * 64, 64)])
                plgpu.wait_smem_to_gmem(0)
                if read_after:
                    o_gmem[pl.ds(first + k * 64, 64)] = x_s[...].astype(H)
                if released == "after":
                    plgpu.barrier_arrive(empty)

            lax.fori_loop(0, 4, turn, None)

    place = plgpu.RefUnion(plgpu.SMEM((64, 128), F), plgpu.SMEM((64, 128), H))
    return kernel(body, (512, 128), H, 2, place, plgpu.Barrier(), plgpu.Barrier())


THREAD_PAIRS = {
    "threads: load before the copy has ended": Pair(
        handed, LONG, {"filled": False}, "dma_order", "nothing orders the copy of turn 0 and the load"
    ),
    "threads: a slot that is never released": Pair(
        handed, LONG, {"released": "never"}, "dma_order", "turn 2 waits for arrival 1 of 0"
    ),
    "threads: released before the load": Pair(
        handed, LONG, {"released": "before"}, "dma_order", "turn 2 fetches into slot 0, which turn 0 reads"
    ),
    "threads: a slot that is not waited for": Pair(
        handed, LONG, {"awaited": False}, "dma_order", "turn 2 fetches into slot 0, which turn 0 reads"
    ),
    "threads: no commit before the copy out": Pair(
        handed, LONG, {"commit": "none"}, "commit_smem", "a store, then a copy of the same 64 x 128"
    ),
    "threads: a commit by the other thread": Pair(
        handed, LONG, {"commit": "other"}, "commit_smem", "thread 0 commits, thread 1 has stored"
    ),
    "threads: results overwritten early": Pair(
        handed, LONG, {"drained": False}, "dma_order", "turn 1 stores to what turn 0 copies out"
    ),
    "threads: end before the copy out has": Pair(
        handed, LONG, {"guarded": False}, "dma_order", "the copy of turn 3 is not waited for"
    ),
    "threads: a turn too many": Pair(handed, LONG, {"turns": 5}, "dma_order", "turn 4 waits for arrival 3 of 2"),
    "threads: a turn too few": Pair(handed, LONG, {"turns": 3}, "outputs_stored", "3 x 64 = 192 rows of 256"),
    "threads: a slot that two have to fill": Pair(
        handed, LONG, {"arrivals": (2, 1)}, "dma_order", "one copy is 1 arrival of the 2 of a phase"
    ),
    "threads: a slot that two have to release": Pair(
        handed, LONG, {"arrivals": (1, 2)}, "dma_order", "one thread releases it, once a turn"
    ),
    "threads: filled twice in a turn": Pair(
        handed, LONG, {"twice": True}, "dma_order", "2 phases of 1 arrival end, and one is waited for"
    ),
    "threads: one of two releases": Pair(
        shared_by_two, LONG, {"arrivals": 1}, "dma_order", "thread 0 releases what thread 1 still reads"
    ),
    "threads: both write one half": Pair(
        shared_by_two, LONG, {"half": 0}, "outputs_stored", "threads 0 and 1 both write rows 0:32 of 64"
    ),
    "threads: read before it is stored": Pair(
        stored_for_another, LONG, {"met": False}, "body_races", "nothing orders the store and the load of turn 0"
    ),
    "threads: stored before it was read": Pair(
        stored_for_another, LONG, {"back": False}, "body_races", "the store of turn 1 and the load of turn 0"
    ),
    "threads: half of it stored": Pair(
        stored_for_another, LONG, {"rows": 32}, "initialised", "rows 0:32 are stored, and 0:64 are read"
    ),
    "threads: released before the MMA ends": Pair(
        multiplied, FACTORS, {"done": False}, "dma_order", "turn 2 fetches into slot 0, which an MMA of turn 0 reads"
    ),
    "threads: an MMA left running": Pair(
        multiplied, FACTORS, {"leave": 1}, "dma_order", "the release of slot 0 leaves its own MMA running"
    ),
    "threads: one of two that multiply releases": Pair(
        multiplied, FACTORS, {"both": 1}, "dma_order", "thread 0 releases what thread 1 still multiplies"
    ),
    "cluster: a part that is not waited for": Pair(
        spread, LONG, {"met": False}, "dma_order", "turn 1 of one fetches for both into what the other reads in turn 0"
    ),
    "cluster: a barrier of one program": Pair(
        spread, LONG, {"all_of_them": False}, "dma_order", "each waits for itself, and fetches for both"
    ),
    "cluster: along c, with a barrier along d": Pair(
        squared, LONG, {"axes": ("d",)}, "dma_order", "turn 1 fetches for both along c, and the barrier counts d alone"
    ),
    "cluster: for all along two axes, with a barrier along each": Pair(
        spread_over_all, LONG, {"axes": ("c", "d")}, "dma_order", "3 of 4 are waited for, and all of them fetch"
    ),
    "cluster: operands released for one": Pair(
        spread_factors, FACTORS, {"all_of_them": False}, "dma_order", "turn 2 fetches for both what one multiplies"
    ),
    "cluster: operands that are not waited for": Pair(
        spread_factors, FACTORS, {"met": False}, "dma_order", "turn 2 fetches into slot 0, which turn 0 multiplies"
    ),
    "cluster: a barrier that wants two arrivals of each": Pair(
        spread, LONG, {"wanted": 2}, "dma_order", "turn 1 waits for 4 arrivals, and each of the 2 has arrived once"
    ),
    "cluster: a load without a wait for the store": Pair(
        exchanged, LONG * 2, {"met": False}, "body_races", "each loads from global memory what the other one stores"
    ),
    "cluster: a barrier of one program, and global memory": Pair(
        exchanged,
        LONG * 2,
        {"all_of_them": False},
        "body_races",
        "each waits for itself, and loads what the other stores",
    ),
    "cluster: an arrival before the store": Pair(
        exchanged,
        LONG * 2,
        {"arrives": "before"},
        "body_races",
        "the arrival says that 128 rows are stored, and comes first",
    ),
    "threads: a load without a wait for the store": Pair(
        exchanged_by_threads, LONG * 2, {"met": False}, "body_races", "each loads what the other thread stores"
    ),
    "threads: an arrival before the store": Pair(
        exchanged_by_threads, LONG * 2, {"arrives": "before"}, "body_races", "the store comes after the arrival"
    ),
    "cluster: both store to one place": Pair(
        stored_by, ROWS, {"one": False}, "body_races", "256 x 128 by two programs without a barrier"
    ),
    "cluster: a store over a copy that has been read alone": Pair(
        stored_over,
        ROWS,
        {"reads_only": True},
        "body_races",
        "the copy has read 256 x 128, and may not have written them",
    ),
    "threads: a named barrier without its wait": Pair(
        by_name, LONG, {"awaited": False}, "dma_order", "turn 2 fetches into slot 0, which turn 0 reads"
    ),
    "threads: an arrival on a named barrier before the load": Pair(
        by_name, LONG, {"released": "before"}, "dma_order", "turn 2 fetches into slot 0, which turn 0 reads"
    ),
    "threads: a named barrier of more threads than come": Pair(
        by_name, LONG, {"many": 192}, "dma_order", "a warp and a warpgroup are 160 threads of 192"
    ),
    "threads: a sum loaded while its MMA runs": Pair(
        two_sums, SQUARES, {"first": 1}, "dma_order", "1 MMA runs on after the wait: that of the second sum"
    ),
    "threads: a sum stored while its MMA runs": Pair(
        two_sums, SQUARES, {"cleared": 1}, "dma_order", "1 MMA runs on after the wait: that of the second sum"
    ),
    "threads: one place filled before its results are out": Pair(
        one_place, LONG, {"released": "before"}, "dma_order", "turn 1 fetches into what turn 0 copies out"
    ),
    "threads: one place read after its results are stored": Pair(
        one_place, LONG, {"read_after": True}, "initialised", "the results lie where the operand lay"
    ),
}
