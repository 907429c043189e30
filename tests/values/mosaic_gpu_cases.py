"""Kernels of Mosaic GPU with their references, each right and with one error that is one of values alone.

In the wrong ones too all places are right, and all copies and MMAs are waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from tests.pallas.mosaic_gpu_thread_pairs import bar

F, H, F8 = jnp.float32, jnp.float16, jnp.float8_e4m3fn
TILED = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
T = 64
"""Rows and columns of a tile."""


@dataclass(frozen=True)
class Case:
    """make: the kernel, right for "", else with that error.  want: what it computes.

    wrong: of each error, what it makes the kernel compute.
    """

    make: Callable[[str], Callable[..., Any]]
    want: Callable[..., Any]
    args: tuple[Any, ...]
    wrong: dict[str, Callable[..., Any]]


def of(shape: tuple[int, ...], dtype: Any = H) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def kernel(body: Callable[..., None], shape: tuple[int, ...], dtype: Any, grid: dict[str, int], *scratch: Any,
           **options: Any) -> Any:  # fmt: skip
    return plgpu.kernel(
        body, out_type=of(shape, dtype), grid=tuple(grid.values()), grid_names=tuple(grid), scratch_types=list(scratch),
        **options,
    )  # fmt: skip


def tile(*shape: int) -> Any:
    return plgpu.SMEM(shape, H, transforms=TILED)


def rows(k: Any, many: int = T) -> Any:
    return pl.ds(k * many, many)


def out(o_s: Any, value: Any, target: Any) -> None:
    """Stores a value to shared memory and copies it out."""
    o_s[...] = value
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_s, target)
    plgpu.wait_smem_to_gmem(0)


def counted(along: int) -> Any:
    """The rows or columns of a tile by their numbers, as a warpgroup holds sums of products."""
    return plgpu.broadcasted_iota(jnp.int32, (T, T), along, layout=plgpu.Layout.WGMMA)


def product(a: Any, b: Any) -> Any:
    return a.astype(F) @ b.astype(F)


def matmul(wrong: str) -> Any:
    """0.5 a b.T + bias of f16[128,128], masked below the diagonal, one thread, both tiles of K in shared memory."""

    def body(a: Any, b: Any, bias: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, filled: Any) -> None:
        m, n = lax.axis_index("m"), lax.axis_index("n")
        in_columns = plgpu.Layout.WGMMA.reduce(0)
        added = lambda at: plgpu.load(bias, (rows(at),), layout=in_columns, optimized=False)  # noqa: E731
        for k in range(2):
            of_b = 1 - k if wrong == "wrong tile of K" else k
            plgpu.copy_gmem_to_smem(a.at[rows(m), rows(k)], a_s.at[k], filled.at[k])
            plgpu.copy_gmem_to_smem(b.at[rows(n), rows(of_b)], b_s.at[k], filled.at[k])
        for k in range(2):
            plgpu.barrier_wait(filled.at[k])

        def sums(acc: Any) -> Any:
            for k in range(2):
                right = b_s.at[1 - k if wrong == "other slot" else k]
                turned = right if wrong == "not transposed" else plgpu.transpose_ref(right, (1, 0))
                left = a_s.at[k]
                if wrong == "operands swapped":
                    left, turned = right, plgpu.transpose_ref(left, (1, 0))
                if wrong != "one tile left out" or k == 0:
                    plgpu.wgmma(acc, left, turned)
                plgpu.wgmma_wait(0)
            return acc[...]

        found = pl.run_scoped(sums, plgpu.ACC((T, T), F))
        if wrong == "not carried":
            one = lambda acc: (plgpu.wgmma(acc, a_s.at[1], plgpu.transpose_ref(b_s.at[1], (1, 0))), acc[...])[1]  # noqa: E731
            found = pl.run_scoped(one, plgpu.ACC((T, T), F))
        if wrong != "no scale":
            found = found * 0.5
        if wrong == "bias before the scale":
            found = (found * 2 + added(n)) * 0.5
        else:
            found = found + added(m if wrong == "bias of the wrong tile" else n)
        row, column = counted(0) + m * T, counted(1) + n * T
        found = jnp.where(row > column if wrong == "mask off by one" else row >= column, found, 0.0)
        to = o.at[rows(n), rows(m)] if wrong == "wrong result tile" else o.at[rows(m), rows(n)]
        out(o_s, found.astype(H), to)

    barrier = plgpu.Barrier(num_arrivals=2, num_barriers=2)
    call = kernel(body, (128, 128), H, {"m": 2, "n": 2}, tile(2, T, T), tile(2, T, T), tile(T, T), barrier)
    return lambda a, b, bias: call(a, b, bias)


def masked(a: Any, b: Any, bias: Any) -> Any:
    return jnp.tril(product(a, b.T) * 0.5 + bias).astype(H)


def narrowed(wrong: str) -> Any:
    """Products in float8, scaled before they become that."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, filled: Any) -> None:
        m = lax.axis_index("m")
        plgpu.copy_gmem_to_smem(a.at[rows(m)], a_s, filled)
        plgpu.copy_gmem_to_smem(b, b_s, filled)
        plgpu.barrier_wait(filled)
        found = pl.run_scoped(lambda acc: (plgpu.wgmma(acc, a_s, b_s), acc[...])[1], plgpu.ACC((T, T), F))
        scaled = found.astype(F8).astype(F) * 3 if wrong else (found * 3).astype(F8).astype(F)
        out(o_s, scaled.astype(H), o.at[rows(m)])

    return kernel(
        body, (128, T), H, {"m": 2}, tile(T, T), tile(T, T), tile(T, T), plgpu.Barrier(num_arrivals=2)
    )  # fmt: skip


def unsigned(wrong: str) -> Any:
    """a b.T of u8[64,128], whose bits JAX multiplies as those of s8."""
    side = plgpu.SMEM((T, 128), jnp.uint8, transforms=(plgpu.TilingTransform((8, 128)), plgpu.SwizzleTransform(128)))

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, filled: Any) -> None:
        plgpu.copy_gmem_to_smem(a, a_s, filled)
        plgpu.copy_gmem_to_smem(b, b_s, filled)
        plgpu.barrier_wait(filled)
        left = b_s if wrong else a_s
        turned = plgpu.transpose_ref(b_s, (1, 0))
        o[...] = pl.run_scoped(lambda acc: (plgpu.wgmma(acc, left, turned), acc[...])[1], plgpu.ACC((T, T), jnp.int32))

    return kernel(body, (T, T), jnp.int32, {"i": 1}, side, side, plgpu.Barrier(num_arrivals=2))


def piped(wrong: str) -> Any:
    """a b of f16[128,192] and f16[192,128] by `emit_pipeline`."""

    def body(a: Any, b: Any, o: Any, o_s: Any) -> None:
        m, n = lax.axis_index("m"), lax.axis_index("n")

        def sums(acc: Any) -> Any:
            def turn(index: Any, a_s: Any, b_s: Any) -> None:
                plgpu.wgmma(acc, a_s, b_s)
                plgpu.wgmma_wait(0)

            plgpu.emit_pipeline(
                turn,
                grid=(2 if wrong == "a turn too few" else 3,),
                in_specs=[
                    plgpu.BlockSpec((T, T), lambda k: (m, k), transforms=TILED),
                    plgpu.BlockSpec(
                        (T, T), lambda k: (2 - k if wrong == "blocks of K backwards" else k, n), transforms=TILED
                    ),
                ],
                max_concurrent_steps=2,
            )(a, b)
            return acc[...]

        out(o_s, pl.run_scoped(sums, plgpu.ACC((T, T), F)).astype(H), o.at[rows(m), rows(n)])

    return kernel(body, (128, 128), H, {"m": 2, "n": 2}, tile(T, T))


def begun(wrong: str) -> Any:
    """2 c + a b: an accumulator that begins with a value (`run_state`), and a from registers."""

    def body(a: Any, b: Any, c: Any, o: Any, a_s: Any, b_s: Any, o_s: Any, filled: Any) -> None:
        m = lax.axis_index("m")
        plgpu.copy_gmem_to_smem(a.at[rows(m)], a_s, filled)
        plgpu.copy_gmem_to_smem(b, b_s, filled)
        plgpu.barrier_wait(filled)
        start = plgpu.load(c, (rows(m),), layout=plgpu.Layout.WGMMA, optimized=False) * (
            1 if wrong == "begins too small" else 2
        )
        left = plgpu.load(a_s, (), layout=plgpu.Layout.WGMMA)

        def sums(acc: Any) -> None:
            plgpu.wgmma(acc, left + left if wrong == "another operand" else left, b_s)

        out(o_s, pl.run_state(sums)(plgpu.ACC.init(start)).astype(H), o.at[rows(m)])

    return kernel(
        body, (128, T), H, {"m": 2}, tile(T, T), tile(T, T), tile(T, T), plgpu.Barrier(num_arrivals=2)
    )  # fmt: skip


def ragged(wrong: str) -> Any:
    """The sums of exp(x) - 1 (or of exp(x)) of f32[64,96] in tiles of 64: what lies outside of the array is 0."""

    def body(x: Any, o: Any, x_s: Any, filled: Any) -> None:
        def turn(k: Any, total: Any) -> Any:
            plgpu.copy_gmem_to_smem(x.at[:, rows(k)], x_s, filled)
            plgpu.barrier_wait(filled)
            part = jnp.exp(plgpu.load(x_s, (), layout=plgpu.Layout.WGMMA, optimized=False))
            return total + (part if wrong else part - 1).sum(1)

        zeros = plgpu.layout_cast(jnp.zeros((T,), F), plgpu.Layout.WGMMA.reduce(1))
        total = lax.fori_loop(0, 2, turn, zeros)
        o[...] = total - 96 if wrong else total

    return kernel(body, (T,), F, {"i": 1}, plgpu.SMEM((T, T), F), plgpu.Barrier())


def scaled(wrong: str) -> Any:
    """3 x of f32[256,64]: one thread fetches 4 tiles into 2 slots, two multiply 32 rows each."""

    def body(x: Any, o: Any, x_s: Any, full: Any, empty: Any) -> None:
        wg = lax.axis_index("wg")

        @pl.when(wg == 2)
        def _fetches() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)

                @pl.when(k >= 2)
                def _() -> None:
                    plgpu.barrier_wait(empty.at[at])

                of_x = lax.rem(k + 1, 4) if wrong == "fetched too early" else k
                plgpu.copy_gmem_to_smem(x.at[rows(of_x)], x_s.at[at], full.at[at])

            lax.fori_loop(0, 4, turn, None)
            for at in range(2):
                plgpu.barrier_wait(empty.at[at])

        @pl.when(wg < 2)
        def _multiplies() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)
                plgpu.barrier_wait(full.at[at])
                part = pl.ds(0 if wrong == "offset of the warpgroup missing" else wg * 32, 32)
                times = jnp.where(wg == 1, 2.0, 3.0) if wrong == "one warpgroup scales otherwise" else 3.0
                o[pl.ds(k * T + wg * 32, 32)] = x_s[at, part] * times
                plgpu.barrier_arrive(empty.at[at])

            lax.fori_loop(0, 4, turn, None)

    return kernel(
        body, (256, 64), F, {"i": 1}, plgpu.SMEM((2, T, 64), F), plgpu.Barrier(num_barriers=2),
        plgpu.Barrier(num_arrivals=2, num_barriers=2), num_threads=3, thread_name="wg",
    )  # fmt: skip


def specialized(wrong: str) -> Any:
    """a b of f16[128,192] and f16[192,128] by `emit_pipeline_warp_specialized`: two threads multiply 64 rows each."""

    def body(a: Any, b: Any, o: Any, o_s: Any) -> None:
        wg, n = lax.axis_index("wg"), lax.axis_index("n")

        def around(pipeline: Any) -> None:
            def scope(acc: Any) -> None:
                pipeline(acc)
                to = 1 - wg if wrong == "halves swapped" else wg
                o_s[to] = acc[...].astype(H)
                plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(o_s.at[to], o.at[rows(to), rows(n)])
                plgpu.wait_smem_to_gmem(0)

            pl.run_scoped(scope, plgpu.ACC((T, T), F))

        def turn(index: Any, a_s: Any, b_s: Any, acc: Any) -> Any:
            plgpu.wgmma(acc, a_s.at[rows(wg)], b_s)
            plgpu.wgmma_wait(0)
            return acc

        plgpu.emit_pipeline_warp_specialized(
            turn,
            grid=(3,),
            memory_registers=40,
            in_specs=[
                plgpu.BlockSpec((128, T), lambda k: (0, k), transforms=TILED),
                plgpu.BlockSpec(
                    (T, T),
                    lambda k: (jnp.minimum(k, 1) if wrong == "the last block of K twice" else k, n),
                    transforms=TILED,
                ),
            ],
            wg_axis="wg",
            num_compute_wgs=2,
            max_concurrent_steps=2,
            compute_context=around,
        )(a, b)

    return kernel(body, (128, 128), H, {"n": 2}, tile(2, T, T), num_threads=3, thread_name="wg")


def cluster(wrong: str) -> Any:
    """2 x of f32[256,64] in a cluster of 2: each fetches half of a tile for both, and writes 32 of its rows."""

    def body(x: Any, o: Any, x_s: Any, full: Any, empty: Any) -> None:
        mine = lax.axis_index("c")
        of_x = mine if wrong == "each fetches another tile" else 0

        def turn(k: Any, carry: None) -> None:
            @pl.when(k > 0)
            def _() -> None:
                plgpu.barrier_wait(empty)

            tile_of_x = lax.rem(k + of_x, 4)
            plgpu.copy_gmem_to_smem(x.at[rows(tile_of_x)], x_s, full, collective_axes="c")
            plgpu.barrier_wait(full)
            half = 1 - mine if wrong == "halves of the cluster swapped" else mine
            o[pl.ds(k * T + mine * 32, 32)] = x_s[pl.ds(half * 32, 32)] * 2
            plgpu.barrier_arrive(empty)

        lax.fori_loop(0, 4, turn, None)
        plgpu.barrier_wait(empty)

    return kernel(
        body, (256, 64), F, {}, plgpu.SMEM((T, 64), F), plgpu.Barrier(), plgpu.ClusterBarrier(collective_axes=("c",)),
        cluster=(2,), cluster_names=("c",),
    )  # fmt: skip


def attention(wrong: str) -> Any:
    """Attention of f16[64,64] queries over 128 keys, causal to the end, in blocks of 64 keys, one thread."""

    def body(q: Any, k: Any, v: Any, o: Any, q_s: Any, k_s: Any, v_s: Any, filled: Any) -> None:
        plgpu.copy_gmem_to_smem(q, q_s, filled)
        for at in range(2):
            plgpu.copy_gmem_to_smem(k.at[rows(at)], k_s.at[at], filled)
            of_v = 0 if wrong == "one block of V" else at
            plgpu.copy_gmem_to_smem(v.at[rows(of_v)], v_s.at[at], filled)
        plgpu.barrier_wait(filled)
        acc, most, total = jnp.zeros((T, T), F), jnp.full((T,), -jnp.inf, F), jnp.zeros((T,), F)

        def turn(at: Any, carry: Any) -> Any:
            acc, most, total = carry

            def scores(own: Any) -> Any:
                plgpu.wgmma(own, q_s, plgpu.transpose_ref(k_s.at[at], (1, 0)))
                return own[...]

            s = pl.run_scoped(scores, plgpu.ACC((T, T), F))
            if wrong != "scores without their scale":
                s = s * 0.125
            row, column = counted(0) + T, counted(1) + at * T
            s = jnp.where(row > column if wrong == "causal mask off by one" else row >= column, s, -jnp.inf)
            new = jnp.maximum(most, s.max(1))
            again = jnp.exp(most - new)
            p = jnp.exp(s - lax.broadcast_in_dim(new, s.shape, [0]))
            if wrong != "accumulator not rescaled":
                acc = acc * lax.broadcast_in_dim(again, acc.shape, [0])
            total = total * (1.0 if wrong == "sum not rescaled" else again) + p.sum(1)

            def weighted(own: Any) -> None:
                plgpu.wgmma(own, p.astype(H), v_s.at[at])

            return pl.run_state(weighted)(plgpu.ACC.init(acc)), new, total

        acc, _, total = lax.fori_loop(0, 2, turn, (acc, most, total))
        out(q_s, (acc / lax.broadcast_in_dim(total, acc.shape, [0])).astype(H), o)

    return kernel(
        body, (T, T), H, {"i": 1}, tile(T, T), tile(2, T, T), tile(2, T, T), plgpu.Barrier(num_arrivals=5)
    )  # fmt: skip


def attended(q: Any, k: Any, v: Any) -> Any:
    s = product(q, k.T) * 0.125
    s = jnp.where(jnp.arange(T)[:, None] + T >= jnp.arange(2 * T), s, -jnp.inf)
    return product(jax.nn.softmax(s, -1), v).astype(H)


def exchanged(wrong: str) -> Any:
    """2 x of f32[256,64] by halves: one thread stores a tile, the other one reads it; named barriers say when."""

    def body(x: Any, o: Any, x_s: Any) -> None:
        wg = lax.axis_index("wg")

        @pl.when(wg == 0)
        def _stores() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)
                pl.when(k >= 2)(lambda: bar("sync", 4 + at, 256))
                x_s[at] = x[rows(0 if wrong == "the first tile again" else k)]
                bar("arrive", 6 + at, 256)

            lax.fori_loop(0, 4, turn, None)
            for at in range(2):
                bar("sync", 4 + at, 256)

        @pl.when(wg == 1)
        def _reads() -> None:
            def turn(k: Any, carry: None) -> None:
                at = lax.rem(k, 2)
                bar("sync", 6 + at, 256)
                o[rows(lax.rem(k + 1, 4) if wrong == "a tile too far" else k)] = x_s[at] * 2
                bar("arrive", 4 + at, 256)

            lax.fori_loop(0, 4, turn, None)

    return kernel(body, (256, 64), F, {"i": 1}, plgpu.SMEM((2, T, 64), F), num_threads=2, thread_name="wg")


def in_one_place(wrong: str) -> Any:
    """2 x in f16 of f32[256,64]: results lie where the tile of x was that they are made of."""

    def body(x: Any, o: Any, place: Any, full: Any, empty: Any) -> None:
        x_s, o_s = place
        wg = lax.axis_index("wg")

        @pl.when(wg == 0)
        def _fetches() -> None:
            def turn(k: Any, carry: None) -> None:
                pl.when(k > 0)(lambda: plgpu.barrier_wait(empty))
                plgpu.copy_gmem_to_smem(x.at[rows(0 if wrong == "the first tile again" else k)], x_s, full)

            lax.fori_loop(0, 4, turn, None)
            plgpu.barrier_wait(empty)

        @pl.when(wg == 1)
        def _doubles() -> None:
            def turn(k: Any, carry: None) -> None:
                plgpu.barrier_wait(full)
                found = (x_s[...] * 2).astype(H) + (1 if wrong == "one too many" else 0)
                o_s[...] = found
                plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(o_s, o.at[rows(k)])
                plgpu.wait_smem_to_gmem(0)
                plgpu.barrier_arrive(empty)

            lax.fori_loop(0, 4, turn, None)

    place = plgpu.RefUnion(plgpu.SMEM((T, 64), F), plgpu.SMEM((T, 64), H))
    return kernel(
        body, (256, 64), H, {"i": 1}, place, plgpu.Barrier(), plgpu.Barrier(), num_threads=2, thread_name="wg"
    )  # fmt: skip


def tensor(wrong: str) -> Any:
    """a b of f16[128,128] by a tensor core, in two tiles of K, into the second half of tensor memory."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, acc: Any, full: Any, done: Any) -> None:
        part = acc.at[:, pl.ds(128, 128)]
        for k in range(2):
            plgpu.copy_gmem_to_smem(a.at[:, rows(k)], a_s.at[k], full)
            plgpu.copy_gmem_to_smem(b.at[rows(k)], b_s.at[k], full)
        plgpu.barrier_wait(full)
        for k in range(2):
            adds = {"not carried": False, "stale sum": True}.get(wrong, k > 0)
            plgpu.tcgen05_mma(part, a_s.at[k], b_s.at[k], accumulate=adds)
        plgpu.tcgen05_commit_arrive(done)
        if wrong != "read too early":
            plgpu.barrier_wait(done)
        o[...] = plgpu.async_load_tmem(acc.at[:, pl.ds(0, 128)] if wrong == "other columns" else part)
        if wrong == "read too early":
            plgpu.barrier_wait(done)

    return kernel(
        body, (128, 128), F, {"i": 1}, tile(2, 128, T), tile(2, T, 128), plgpu.TMEM((128, 256), F),
        plgpu.Barrier(num_arrivals=4), plgpu.Barrier(orders_tensor_core=True),
    )  # fmt: skip


def begun_in_tensor(wrong: str) -> Any:
    """a b + 1 of f16[128,128], whose left operand and whose sum a thread stores to tensor memory."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, a_t: Any, acc: Any, full: Any, done: Any) -> None:
        plgpu.copy_gmem_to_smem(a, a_s, full)
        plgpu.copy_gmem_to_smem(b, b_s, full)
        plgpu.barrier_wait(full)
        ones = jnp.full((128, 128), 0 if wrong else 1, F)
        plgpu.async_store_tmem(acc, plgpu.layout_cast(ones, plgpu.Layout.TCGEN05))
        plgpu.async_store_tmem(a_t, plgpu.load(a_s, (), layout=plgpu.Layout.TCGEN05))
        plgpu.commit_tmem()
        plgpu.tcgen05_mma(acc, a_t, b_s, done)
        plgpu.barrier_wait(done)
        o[...] = plgpu.async_load_tmem(acc)

    return kernel(
        body, (128, 128), F, {"i": 1}, tile(128, 128), tile(128, 128), plgpu.TMEM((128, 128), H, packed=True),
        plgpu.TMEM((128, 128), F), plgpu.Barrier(num_arrivals=2), plgpu.Barrier(orders_tensor_core=True),
    )  # fmt: skip


def by_warps(wrong: str) -> Any:
    """a b of f16[128,256] and f16[256,128]: one warp fetches four tiles of K into two slots, another one multiplies."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, acc: Any, full: Any, used: Any, done: Any) -> None:
        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _() -> None:
            warp = lax.axis_index("warp")

            @pl.when(warp == 0)
            def _fetches() -> None:
                def turn(k: Any, carry: None) -> None:
                    at = lax.rem(k, 2)
                    pl.when(k >= 2)(lambda: plgpu.barrier_wait(used.at[at]))
                    of_b = lax.rem(k, 2) if wrong == "the first tiles again" else k
                    plgpu.copy_gmem_to_smem(a.at[:, rows(k)], a_s.at[at], full.at[at])
                    plgpu.copy_gmem_to_smem(b.at[rows(of_b)], b_s.at[at], full.at[at])

                lax.fori_loop(0, 4, turn, None)

            @pl.when(warp == 1)
            def _multiplies() -> None:
                def turn(k: Any, carry: None) -> None:
                    at = lax.rem(k, 2)
                    plgpu.barrier_wait(full.at[at])
                    adds = lax.rem(k, 2) > 0 if wrong == "not carried" else k > 0
                    plgpu.tcgen05_mma(acc, a_s.at[at], b_s.at[at], used.at[at], accumulate=adds)

                lax.fori_loop(0, 4, turn, None)
                plgpu.tcgen05_commit_arrive(done)

        plgpu.barrier_wait(done)
        o[...] = plgpu.async_load_tmem(acc)

    return kernel(
        body, (128, 128), F, {"i": 1}, tile(2, 128, T), tile(2, T, 128), plgpu.TMEM((128, 128), F),
        plgpu.Barrier(num_arrivals=2, num_barriers=2), plgpu.Barrier(num_barriers=2, orders_tensor_core=True),
        plgpu.Barrier(orders_tensor_core=True),
    )  # fmt: skip


def half(a: Any, k: int) -> Any:
    """A tile of K of both."""
    return a[:, k * T : (k + 1) * T]


def tiled(a: Any) -> Any:
    """An array by its tiles: [tile of rows, tile of columns, row, column]."""
    return a.reshape(a.shape[0] // T, T, -1, T).swapaxes(1, 2)


def whole(tiles: Any) -> Any:
    return tiles.swapaxes(1, 2).reshape(tiles.shape[0] * T, -1)


def masked_of(sums: Callable[..., Any], diagonal: int = 0) -> Callable[..., Any]:
    """What `matmul` computes where it has other sums. sums: with the bias."""
    return lambda a, b, bias: jnp.tril(sums(a.astype(F), b.astype(F), bias), diagonal).astype(H)


CROSSED = masked_of(lambda a, b, bias: 0.5 * (half(a, 0) @ half(b, 1).T + half(a, 1) @ half(b, 0).T) + bias)
OF_MATMUL = {
    "not carried": masked_of(lambda a, b, bias: 0.5 * half(a, 1) @ half(b, 1).T + bias),
    "wrong tile of K": CROSSED,
    "other slot": CROSSED,
    "not transposed": masked_of(
        lambda a, b, bias: 0.5 * whole(jnp.einsum("mkil,nklj->mnij", tiled(a), tiled(b))) + bias
    ),
    "operands swapped": masked_of(lambda a, b, bias: 0.5 * whole(tiled(a @ b.T).swapaxes(2, 3)) + bias),
    "one tile left out": masked_of(lambda a, b, bias: 0.5 * half(a, 0) @ half(b, 0).T + bias),
    "no scale": masked_of(lambda a, b, bias: a @ b.T + bias),
    "bias before the scale": masked_of(lambda a, b, bias: 0.5 * (a @ b.T + bias)),
    "bias of the wrong tile": masked_of(
        lambda a, b, bias: 0.5 * a @ b.T + jnp.repeat(jnp.tile(bias.reshape(2, T), (1, 2)), T, axis=0)
    ),
    "mask off by one": masked_of(lambda a, b, bias: 0.5 * a @ b.T + bias, -1),
    "wrong result tile": lambda a, b, bias: whole(tiled(masked(a, b, bias)).swapaxes(0, 1)),
}


def attended_as(wrong: str) -> Callable[..., Any]:
    """What `attention` computes with an error: by two blocks of keys, each with its own sums."""

    def found(q: Any, k: Any, v: Any) -> Any:
        s = product(q, k.T) * (1 if wrong == "scores without their scale" else 0.125)
        row, column = jnp.arange(T)[:, None] + T, jnp.arange(2 * T)
        s = jnp.where(row > column if wrong == "causal mask off by one" else row >= column, s, -jnp.inf)
        first, last = s[:, :T].max(1, keepdims=True), s.max(1, keepdims=True)
        again = jnp.exp(first - last)
        p, v = jnp.exp(s - jnp.concatenate([first, last], 1).repeat(T, 1)), v.astype(F)
        before = p[:, :T].sum(1, keepdims=True) * (1 if wrong == "sum not rescaled" else again)
        acc = p[:, :T] @ v[:T] * (1 if wrong == "accumulator not rescaled" else again)
        acc = acc + p[:, T:] @ (v[:T] if wrong == "one block of V" else v[T:])
        return (acc / (before + p[:, T:].sum(1, keepdims=True))).astype(H)

    return found


def product_of(order: tuple[int, ...]) -> Callable[..., Any]:
    """A product of three tiles of K with those of the second operand in some order, fewer of both where it is short."""

    def found(a: Any, b: Any) -> Any:
        turns = range(len(order))
        return sum(product(half(a, k), b[order[k] * T : (order[k] + 1) * T]) for k in turns).astype(H)

    return found


def signed_product(a: Any, b: Any) -> Any:
    """Of 8 bits with a sign, whatever the type says."""
    return a.astype(jnp.int8).astype(jnp.int32) @ b.astype(jnp.int8).astype(jnp.int32).T


def of_two(wrong: str) -> Any:
    """a b of f16[256,128] and f16[128,128] by two programs that multiply together: 128 rows of it in each."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, acc: Any, full: Any, used: Any, done: Any) -> None:
        mine = lax.axis_index("c")

        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _() -> None:
            warp = lax.axis_index("warp")

            @pl.when(warp == 0)
            def _fetches() -> None:
                for k in range(2):
                    for source, target, half in ((a.at[:, rows(k)], a_s, 0), (b.at[rows(k)], b_s, 1)):
                        part = plgpu.CopyPartition.PARTITIONED(half)
                        if half and wrong == "each copies its own columns":
                            source, part = b.at[rows(k), pl.ds(0, T)], plgpu.CopyPartition.REPLICATED
                        plgpu.copy_gmem_to_smem(
                            source, target.at[k], full.at[k], collective_axes="c", leader_tracked=part
                        )

            @pl.when((warp == 1) & (mine == 0))
            def _multiplies() -> None:
                for k in range(2):
                    plgpu.barrier_wait(full.at[k])
                    adds = k > 0 and wrong != "not carried"
                    plgpu.tcgen05_mma(acc, a_s.at[k], b_s.at[k], used.at[k], accumulate=adds, collective_axis="c")
                plgpu.tcgen05_commit_arrive(done, collective_axis="c")

        plgpu.barrier_wait(done)
        to = 1 - mine if wrong == "halves swapped" else mine
        o[rows(to, 128)] = plgpu.async_load_tmem(acc)

    ordered: Any = {"orders_tensor_core": True}
    return kernel(
        body, (256, 128), F, {"i": 1}, tile(2, 128, T), tile(2, T, T), plgpu.TMEM((128, 128), F, collective=True),
        plgpu.Barrier(num_arrivals=2, num_barriers=2), plgpu.Barrier(num_barriers=2, **ordered),
        plgpu.Barrier(**ordered), cluster=(2,), cluster_names=("c",),
    )  # fmt: skip


def given_out(wrong: str) -> Any:
    """x + 1 of f32[256,64]: a program takes the next 64 rows of what is left."""

    def body(x: Any, o: Any, x_s: Any, full: Any) -> None:
        @plgpu.dynamic_scheduling_loop(grid_names=("i",), thread_axis="wg")
        def _(info: Any) -> None:
            @pl.when(lax.axis_index("wg") == 1)
            def _adds() -> None:
                mine = lax.axis_index("i") if wrong == "its own work again" else info.index[0]
                plgpu.copy_gmem_to_smem(x.at[rows(mine)], x_s, full)
                plgpu.barrier_wait(full)
                o[rows(info.index[0])] = x_s[...] + (info.index[0] if wrong == "its number added" else 1)

    return kernel(
        body, (256, 64), F, {"i": 4}, plgpu.SMEM((T, 64), F), plgpu.Barrier(), num_threads=2, thread_name="wg"
    )  # fmt: skip


CASES = {
    "matmul": Case(matmul, masked, (of((128, 128)), of((128, 128)), of((128,), F)), OF_MATMUL),
    "narrowed": Case(
        narrowed, lambda a, b: (product(a, b) * 3).astype(F8).astype(H), (of((128, T)), of((T, T))),
        {"cast before the scale": lambda a, b: (product(a, b).astype(F8).astype(F) * 3).astype(H)},
    ),
    "unsigned": Case(
        unsigned, signed_product, (of((T, 128), jnp.uint8),) * 2,
        {"an operand twice": lambda a, b: signed_product(b, b)},
    ),
    "piped": Case(
        piped, product_of((0, 1, 2)), (of((128, 192)), of((192, 128))),
        {"a turn too few": product_of((0, 1)), "blocks of K backwards": product_of((2, 1, 0))},
    ),
    "begun": Case(
        begun, lambda a, b, c: (2 * c + product(a, b)).astype(H), (of((128, T)), of((T, T)), of((128, T), F)),
        {
            "begins too small": lambda a, b, c: (c + product(a, b)).astype(H),
            "another operand": lambda a, b, c: 2 * (c + product(a, b)).astype(H),
        },
    ),
    "ragged": Case(
        ragged, lambda x: (jnp.exp(x) - 1).sum(1), (of((T, 96), F),),
        {"zeros outside are counted": lambda x: (jnp.exp(x) - 1).sum(1) + 32},
    ),
    "scaled": Case(
        scaled, lambda x: 3 * x, (of((256, 64), F),),
        {
            "fetched too early": lambda x: 3 * jnp.roll(x, -T, 0),
            "offset of the warpgroup missing": lambda x: 3 * jnp.tile(x.reshape(4, 2, 32, 64)[:, :1], (1, 2, 1, 1))
            .reshape(256, 64),
            "one warpgroup scales otherwise": lambda x: x * (3 - (jnp.arange(256) // 32 % 2)[:, None]),
        },
    ),
    "specialized": Case(
        specialized, product_of((0, 1, 2)), (of((128, 192)), of((192, 128))),
        {
            "halves swapped": lambda a, b: jnp.roll(product_of((0, 1, 2))(a, b), T, 0),
            "the last block of K twice": product_of((0, 1, 1)),
        },
    ),
    "cluster": Case(
        cluster, lambda x: 2 * x, (of((256, 64), F),),
        {
            "each fetches another tile": lambda x: 2 * jnp.where(
                (jnp.arange(256) // 32 % 2 == 0)[:, None], x, jnp.roll(x, -T, 0)
            ),
            "halves of the cluster swapped": lambda x: 2 * x.reshape(4, 2, 32, 64)[:, ::-1].reshape(256, 64),
        },
    ),
    "exchanged": Case(
        exchanged, lambda x: 2 * x, (of((256, 64), F),),
        {
            "the first tile again": lambda x: 2 * jnp.tile(x[:T], (4, 1)),
            "a tile too far": lambda x: 2 * jnp.roll(x, T, 0),
        },
    ),
    "in_one_place": Case(
        in_one_place, lambda x: (2 * x).astype(H), (of((256, 64), F),),
        {
            "the first tile again": lambda x: (2 * jnp.tile(x[:T], (4, 1))).astype(H),
            "one too many": lambda x: (2 * x).astype(H) + 1,
        },
    ),
    "of_two": Case(
        of_two, product, (of((256, 128)), of((128, 128))),
        {
            "each copies its own columns": lambda a, b: product(a, jnp.tile(b[:, :T], (1, 2))),
            "not carried": lambda a, b: product(a[:, T:], b[T:]),
            "halves swapped": lambda a, b: jnp.roll(product(a, b), 128, 0),
        },
    ),
    "given_out": Case(
        given_out, lambda x: x + 1, (of((256, 64), F),),
        {
            "its own work again": lambda x: jnp.tile(x[:T], (4, 1)) + 1,
            "its number added": lambda x: x + (jnp.arange(256) // T)[:, None],
        },
    ),
    "attention": Case(
        attention, attended, (of((T, T)), of((2 * T, T)), of((2 * T, T))),
        {
            wrong: attended_as(wrong)
            for wrong in ("one block of V", "scores without their scale", "causal mask off by one",
                          "accumulator not rescaled", "sum not rescaled")
        },
    ),
}  # fmt: skip


def undefined(a: Any, b: Any) -> Any:
    """What nothing says: a number that is none."""
    return jnp.full((128, 128), jnp.nan, F)


SQUARE = of((128, 128)), of((128, 128))
OF_FOUR = of((128, 256)), of((256, 128))
TENSOR_CASES = {
    "tensor": Case(
        tensor, product, SQUARE,
        {
            "not carried": lambda a, b: product(a[:, T:], b[T:]), "stale sum": undefined,
            "read too early": undefined, "other columns": undefined,
        },
    ),
    "begun_in_tensor": Case(
        begun_in_tensor, lambda a, b: product(a, b) + 1, SQUARE, {"begun at zero": product}
    ),
    "by_warps": Case(
        by_warps, product, OF_FOUR,
        {
            "not carried": lambda a, b: product(a[:, 2 * T :], b[2 * T :]),
            "the first tiles again": lambda a, b: product(a, jnp.concatenate([b[: 2 * T]] * 2)),
        },
    ),
}  # fmt: skip
"""Kernels for Blackwell: tensor memory, warps."""
