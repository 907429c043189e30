"""Kernels of Mosaic GPU, each right and with one error, by which question speaks of the error.

Each error is one by the numbers: `why` has them. `python -m benchmarks.on_gpu` runs them on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

F, H = jnp.float32, jnp.float16
TILED = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


@dataclass(frozen=True)
class Pair:
    """make: the function, right without arguments.  wrong: the arguments that make it wrong.  why: by the numbers."""

    make: Callable[..., Callable[..., Any]]
    args: tuple[Any, ...]
    wrong: dict[str, Any]
    question: str
    why: str


def kernel(body: Callable[..., None], shape: tuple[int, ...], dtype: Any, grid: dict[str, int], *scratch: Any) -> Any:
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct(shape, dtype),
        grid=tuple(grid.values()),
        grid_names=tuple(grid),
        scratch_types=list(scratch),
    )


def add_one(
    wait: bool = True, commit: bool = True, leave: bool = False, grid: int = 4, step: int = 64, arrivals: int = 1
) -> Any:
    """x + 1 of f32[256,128], 64 rows in each of 4 programs."""

    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        rows = pl.ds(lax.axis_index("i") * step, 64)
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], smem, barrier)
        if wait:
            plgpu.barrier_wait(barrier)
        smem[...] = smem[...] + 1
        if commit:
            plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(smem, o_gmem.at[rows])
        if not leave:
            plgpu.wait_smem_to_gmem(0)

    barrier = plgpu.Barrier(num_arrivals=arrivals)
    return kernel(body, (256, 128), F, {"i": grid}, plgpu.SMEM((64, 128), F), barrier)


def refilled(commit: bool = True) -> Any:
    """x + 1 of f32[256,128], 64 rows in each of 4 programs, in memory that is cleared before a copy fills it."""

    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        rows = pl.ds(lax.axis_index("i") * 64, 64)
        smem[...] = jnp.zeros((64, 128), F)
        if commit:
            plgpu.commit_smem()
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], smem, barrier)
        plgpu.barrier_wait(barrier)
        o_gmem[rows] = smem[...] + 1

    return kernel(body, (256, 128), F, {"i": 4}, plgpu.SMEM((64, 128), F), plgpu.Barrier())


def doubled(allowed: int = 1, slots: int = 2, commit_early: bool = False) -> Any:
    """2 x of f32[512,128] by one program, in 8 parts of 64 rows, with two buffers of results."""

    def body(x_gmem: Any, o_gmem: Any, smem: Any, out: Any, barrier: Any) -> None:
        def turn(k: Any, carry: None) -> None:
            rows, slot = pl.ds(k * 64, 64), lax.rem(k, 2) if slots == 2 else k
            plgpu.copy_gmem_to_smem(x_gmem.at[rows], smem, barrier)
            plgpu.barrier_wait(barrier)
            plgpu.wait_smem_to_gmem(allowed, wait_read_only=True)
            if commit_early:
                plgpu.commit_smem()
            out[slot] = smem[...] * 2
            if not commit_early:
                plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(out.at[slot], o_gmem.at[rows])

        lax.fori_loop(0, 8, turn, None)
        plgpu.wait_smem_to_gmem(0)

    rows = plgpu.SMEM((64, 128), F)
    return kernel(body, (512, 128), F, {"i": 1}, rows, plgpu.SMEM((2, 64, 128), F), plgpu.Barrier())


def matmul(
    wait: bool = True, done: bool = True, commit: bool = True, arrivals: int = 2, turns: int = 4, start: int = 0
) -> Any:
    """f16[512,256] @ f16[256,512] in tiles of 128 x 128 x 64, two slots by hand."""
    m, n, tm, tn, tk = 512, 512, 128, 128, 64

    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, a_s: Any, b_s: Any, o_s: Any, bars: Any) -> None:
        rows, columns = pl.ds(lax.axis_index("m") * tm, tm), pl.ds(lax.axis_index("n") * tn, tn)

        def fetch(k: Any, slot: Any) -> None:
            deep = pl.ds((k + start) * tk, tk)
            plgpu.copy_gmem_to_smem(a_gmem.at[rows, deep], a_s.at[slot], bars.at[slot])
            plgpu.copy_gmem_to_smem(b_gmem.at[deep, columns], b_s.at[slot], bars.at[slot])

        for slot in range(2):
            fetch(slot, slot)

        def sums(acc: Any) -> Any:
            def turn(k: Any, carry: None) -> None:
                slot = lax.rem(k, 2)
                if wait:
                    plgpu.barrier_wait(bars.at[slot])
                plgpu.wgmma(acc, a_s.at[slot], b_s.at[slot])
                if done:
                    plgpu.wgmma_wait(0)

                @pl.when(k + 2 < turns)
                def _() -> None:
                    fetch(k + 2, slot)

            lax.fori_loop(0, turns, turn, None)
            return acc[...]

        o_s[...] = pl.run_scoped(sums, plgpu.ACC((tm, tn), F)).astype(H)
        if commit:
            plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o_gmem.at[rows, columns])
        plgpu.wait_smem_to_gmem(0)

    return kernel(
        body,
        (m, n),
        H,
        {"m": 4, "n": 4},
        plgpu.SMEM((2, tm, tk), H, transforms=TILED),
        plgpu.SMEM((2, tk, tn), H, transforms=TILED),
        plgpu.SMEM((tm, tn), H, transforms=TILED),
        plgpu.Barrier(num_arrivals=arrivals, num_barriers=2),
    )


def piped(done: bool = True, steps: int = 2, turns: int = 4, transposed: bool = False, filled: bool = True) -> Any:
    """The same by `emit_pipeline`."""
    m, n, tm, tn, tk = 512, 512, 128, 128, 64

    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, o_s: Any) -> None:
        mi, ni = lax.axis_index("m"), lax.axis_index("n")

        def sums(acc: Any) -> Any:
            def turn(_: Any, a_s: Any, b_s: Any) -> None:
                plgpu.wgmma(acc, a_s, plgpu.transpose_ref(b_s, (1, 0)) if transposed else b_s)
                if done:
                    plgpu.wgmma_wait(0)

            b_block = (tn, tk) if transposed else (tk, tn)
            plgpu.emit_pipeline(
                turn,
                grid=(turns,),
                in_specs=[
                    plgpu.BlockSpec((tm, tk), lambda k: (mi, k), transforms=TILED),
                    plgpu.BlockSpec(b_block, lambda k: (ni, k) if transposed else (k, ni), transforms=TILED),
                ],
                max_concurrent_steps=steps,
            )(a_gmem, b_gmem)
            return acc[...]

        summed = pl.run_scoped(sums, plgpu.ACC((tm, tn), F)).astype(H)
        if filled:
            o_s[...] = summed
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o_gmem.at[pl.ds(mi * tm, tm), pl.ds(ni * tn, tn)])
        plgpu.wait_smem_to_gmem(0)

    return kernel(body, (m, n), H, {"m": 4, "n": 4}, plgpu.SMEM((tm, tn), H, transforms=TILED))


def piped_out(short: int = 0) -> Any:
    """x + 1 by `emit_pipeline`, whose output it copies, too."""

    def body(x_gmem: Any, o_gmem: Any) -> None:
        def turn(_: Any, x_s: Any, o_s: Any) -> None:
            o_s[...] = x_s[...] + 1

        spec = plgpu.BlockSpec((64, 128), lambda k: (k, 0))
        plgpu.emit_pipeline(turn, grid=(4 - short,), in_specs=[spec], out_specs=[spec], max_concurrent_steps=2)(
            x_gmem, o_gmem
        )

    return kernel(body, (256, 128), F, {"i": 1})


def halves(grouped: bool = True) -> Any:
    """x + 1, of which each program copies out two halves in one group, part after part of 64 rows."""

    def body(x_gmem: Any, o_gmem: Any, smem: Any, out: Any, barrier: Any) -> None:
        def turn(k: Any, carry: None) -> None:
            first = lax.axis_index("i") * 128 + k * 64
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(first, 64)], smem, barrier)
            plgpu.barrier_wait(barrier)
            plgpu.wait_smem_to_gmem(0)
            out[...] = smem[...] + 1
            plgpu.commit_smem()
            for half in range(2):
                rows = pl.ds(half * 32, 32)
                plgpu.copy_smem_to_gmem(out.at[rows], o_gmem.at[pl.ds(first + half * 32, 32)], commit_group=False)
            if grouped:
                plgpu.commit_smem_to_gmem_group()

        lax.fori_loop(0, 2, turn, None)
        plgpu.wait_smem_to_gmem(0)

    rows = plgpu.SMEM((64, 128), F)
    return kernel(body, (256, 128), F, {"i": 2}, rows, rows, plgpu.Barrier())


def from_registers(done: bool = True) -> Any:
    """f16[512,256] @ f16[256,512] in tiles of 64 x 128 x 64, whose left operand is loaded into registers."""

    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, b_s: Any, o_s: Any, bar: Any) -> None:
        rows, columns = pl.ds(lax.axis_index("m") * 64, 64), pl.ds(lax.axis_index("n") * 128, 128)

        def sums(acc: Any) -> Any:
            def turn(k: Any, carry: None) -> None:
                deep = pl.ds(k * 64, 64)
                plgpu.copy_gmem_to_smem(b_gmem.at[deep, columns], b_s, bar)
                a = plgpu.load(a_gmem, (rows, deep), layout=plgpu.Layout.WGMMA, optimized=False)
                plgpu.barrier_wait(bar)
                plgpu.wgmma(acc, a, b_s)
                if done:
                    plgpu.wgmma_wait(0)

            lax.fori_loop(0, 4, turn, None)
            return acc[...]

        o_s[...] = pl.run_scoped(sums, plgpu.ACC((64, 128), F)).astype(H)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_s, o_gmem.at[rows, columns])
        plgpu.wait_smem_to_gmem(0)

    tiles = plgpu.SMEM((64, 128), H, transforms=TILED)
    return kernel(body, (512, 512), H, {"m": 8, "n": 4}, tiles, tiles, plgpu.Barrier())


ROWS = (jax.ShapeDtypeStruct((256, 128), F),)
LONG = (jax.ShapeDtypeStruct((512, 128), F),)
FACTORS = (jax.ShapeDtypeStruct((512, 256), H), jax.ShapeDtypeStruct((256, 512), H))
TURNED = (jax.ShapeDtypeStruct((512, 256), H), jax.ShapeDtypeStruct((512, 256), H))
SQUARES = (jax.ShapeDtypeStruct((64, 64), H),) * 2
WANTED: dict[tuple[Any, ...], Callable[..., Any]] = {
    ROWS: lambda x: x + 1,
    LONG: lambda x: 2 * x,
    FACTORS: lambda a, b: (a.astype(F) @ b.astype(F)).astype(H),
    TURNED: lambda a, b: (a.astype(F) @ b.astype(F).T).astype(H),
    SQUARES: lambda a, b: 3 * (a.astype(F) @ b.astype(F)),
}
"""What the right kernels of one warpgroup, of several and of clusters compute, by what they are given."""

PAIRS = {
    "load before the wait": Pair(
        add_one, ROWS, {"wait": False}, "dma_order", "no wait, and the copy may not have ended"
    ),
    "copy out without a commit": Pair(
        add_one, ROWS, {"commit": False}, "commit_smem", "line by line: a store, then a copy of the same 64 x 128"
    ),
    "filled without a commit": Pair(
        refilled, ROWS, {"commit": False}, "commit_smem", "64 x 128 stored, and the same 64 x 128 filled"
    ),
    "end before the copy has": Pair(
        add_one, ROWS, {"leave": True}, "dma_order", "1 copy is started and 0 are waited for when the memory goes"
    ),
    "grid too long": Pair(add_one, ROWS, {"grid": 5}, "body_in_bounds", "program 4 starts at row 256 of 256"),
    "grid too short": Pair(add_one, ROWS, {"grid": 3}, "outputs_stored", "3 x 64 = 192 rows of 256"),
    "programs that overlap": Pair(
        add_one, ROWS, {"step": 32}, "body_races", "programs 0 and 1 write rows 0:64 and 32:96"
    ),
    "a barrier that wants two arrivals": Pair(
        add_one, ROWS, {"arrivals": 2}, "dma_order", "one copy is one arrival of the 2 that are waited for"
    ),
    "one buffer fewer waited for": Pair(
        doubled, LONG, {"allowed": 2}, "dma_order", "turn 2 stores to slot 0 while 2 copies, of slots 0 and 1, may run"
    ),
    "slots that run out": Pair(doubled, LONG, {"slots": 1}, "body_in_bounds", "turn 2 stores to slot 2 of 2"),
    "a commit before the store": Pair(
        doubled, LONG, {"commit_early": True}, "commit_smem", "between the store and the copy there is none"
    ),
    "MMA before the wait": Pair(matmul, FACTORS, {"wait": False}, "dma_order", "turn 0 multiplies what is in flight"),
    "fetch before the MMA ends": Pair(
        matmul, FACTORS, {"done": False}, "dma_order", "turn 0 fetches into slot 0, which its MMA reads"
    ),
    "MMA, and no commit before the copy": Pair(
        matmul, FACTORS, {"commit": False}, "commit_smem", "a store of 128 x 128, then a copy of it"
    ),
    "a barrier that counts 1 of 2": Pair(
        matmul, FACTORS, {"arrivals": 1}, "dma_order", "2 copies end 2 phases of 1 arrival, and one is waited for"
    ),
    "K off by a tile": Pair(matmul, FACTORS, {"start": 1}, "body_in_bounds", "turn 3 fetches 256:320 of 256"),
    "more turns than tiles": Pair(matmul, FACTORS, {"turns": 5}, "body_in_bounds", "turn 4 starts at 256 of 256"),
    "pipeline, and no wait for the MMA": Pair(
        piped, FACTORS, {"done": False}, "dma_order", "slot 0 is fetched again at the end of turn 0"
    ),
    "pipeline, and nothing stored": Pair(
        piped, FACTORS, {"filled": False}, "initialised", "nothing stores to the memory that is copied out"
    ),
    "transposed, and no wait for the MMA": Pair(
        partial(piped, transposed=True), TURNED, {"done": False}, "dma_order", "slot 0 is fetched again in turn 0"
    ),
    "two copies, and no group": Pair(
        halves, ROWS, {"grouped": False}, "dma_order", "2 copies are in no group, and the wait of turn 1 is for groups"
    ),
    "from registers, and no wait for the MMA": Pair(
        from_registers, FACTORS, {"done": False}, "dma_order", "turn 1 fetches into what the MMA of turn 0 reads"
    ),
    "pipeline that ends early": Pair(piped_out, ROWS, {"short": 1}, "outputs_stored", "3 x 64 = 192 rows of 256"),
}
