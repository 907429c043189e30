"""Code of a GPU's compiler in a kernel (`inline_mgpu`): what is read of it, and what it orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import llvm, memref, nvvm
from jax.experimental import pallas as pl
from jax.experimental.mosaic import gpu as mgpu
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.ir.program import CodeStep
from layoutproof.pallas.from_jax.inline_code import inline_code
from tests.pallas.mosaic_gpu_pairs import F
from tests.pallas.mosaic_gpu_thread_pairs import bar
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="as of jax 0.10.2"),
]

ROWS = (jax.ShapeDtypeStruct((128, 128), F),)


def open_of(function: Any) -> dict[str, Finding]:
    found = lp.kernels(function, *ROWS, target="mosaic_gpu").findings
    return {f.question: f for f in found if f.asked and f.severity == "error" and f.verdict is not Verdict.PROVED}


def asm(text: str, *operands: Any, constraints: str = "", effects: bool = True) -> None:
    void = ir.Type.parse("!llvm.void")
    llvm.inline_asm(void, list(operands), text, constraints, has_side_effects=effects)


def read(code: Callable[..., Any], *types: tuple[tuple[int, ...], Any, Any]) -> tuple[CodeStep, ...] | None:
    avals = [jax.core.ShapedArray(shape, dtype) for shape, dtype, _ in types]
    params = {
        "flat_arg_types": tuple(layout for *_, layout in types),
        "pytree_args": jax.tree.structure(tuple(types), is_leaf=lambda one: one in types),
        "mgpu_fn": code,
    }
    return inline_code(params, avals)


NUMBER = ((), jnp.int32, plgpu.Layout.WG_SPLAT)
SQUARE = ((64, 64), F, plgpu.Layout.WGMMA)


def word(number: int) -> Any:
    return mgpu.c(number, ir.IntegerType.get_signless(32))


def test_what_code_does_beside_computing_is_read() -> None:
    assert read(lambda _: asm("bar.sync 5, 288;")) == (CodeStep("llvm.inline_asm", "bar.sync 5, 288;"),)
    passed = read(lambda _, n: asm("bar.arrive $0, 64;", n.registers[()], constraints="r"), NUMBER)
    assert passed == (CodeStep("llvm.inline_asm", "bar.arrive $0, 64;", ("$0",)),)
    made = read(lambda _: nvvm.barrier(barrier_id=word(4), number_of_threads=word(64)))
    assert made is not None
    assert [(one.name, one.operands) for one in made] == [("nvvm.barrier", (4, 64))]


def test_what_computes_in_registers_alone_is_left_out() -> None:
    assert read(lambda _, x: (x * x).reduce("add", 1), SQUARE) == ()
    assert read(lambda _: asm("mov.b32 t, 1;", effects=False)) == ()


@pytest.mark.parametrize("text", ["st.shared.u32 [t], 1;", "@p mov.b32 t, 1;", "bar.sync 5;"])
def test_assembly_that_says_it_has_no_effects_is_looked_at(text: str) -> None:
    found = read(lambda _: asm(text, effects=False))
    assert found is not None
    assert found[0].text.endswith(text)


def test_a_number_in_the_code_of_each_lane_is_none() -> None:
    """One register of an array of 128 numbers, one in each lane."""
    lanes = ((128,), jnp.int32, plgpu.Layout.WG_STRIDED((128,), vec_size=1))
    found = read(lambda _, n: asm("bar.sync $0, 64;", n.registers.flat[0], constraints="r"), lanes)
    assert found == (CodeStep("llvm.inline_asm", "bar.sync $0, 64;", (None,)),)


def test_code_that_depends_on_the_gpu_or_raises_is_not_read() -> None:
    def asks(_: Any) -> None:
        if mgpu.utils.get_arch().major > 9:
            asm("bar.sync 5, 64;")

    assert read(asks) is None
    assert read(lambda launch: launch.cluster_size) is None


def in_order(counts: tuple[int, int] = (256, 256), number: int = 4, code: Any = None, twice: bool = False) -> Any:
    """x, by two warpgroups: one fetches, and a named barrier says when the other one may store."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any) -> None:
        wg = lax.axis_index("wg")

        @pl.when(wg == 0)
        def _() -> None:
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], x_s, full)
            plgpu.barrier_wait(full)
            x_s[...] = x_s[...] * 2
            bar("arrive", number, counts[0])
            if twice:
                bar("arrive", number, counts[0])

        @pl.when(wg == 1)
        def _() -> None:
            bar("sync", number, counts[1])
            if code is not None:
                plgpu.inline_mgpu()(code)()
            o_gmem[pl.ds(0, 64)] = x_s[...]
            if twice:
                bar("sync", number, counts[1])

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 128), F),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.Barrier()],
    )


def test_a_named_barrier_orders_what_threads_store() -> None:
    assert not open_of(in_order())
    # 6 is free, too, and fences touch nothing
    assert not open_of(in_order(number=6, code=lambda _: asm("fence.proxy.async;")))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        # the barrier of warpgroup 1, which JAX waits at
        ({"number": 2}, Said("bodies.named_other", number=2)),
        # the hardware wants one number of threads in a phase
        ({"counts": (256, 384)}, Said("bodies.named_other", number=4)),
        # both are in one phase if the other thread is late
        ({"twice": True}, Said("bodies.named_early")),
        # a warpgroup alone is more
        ({"counts": (96, 96)}, Said("bodies.named_arrivals")),
    ],
)
def test_named_barriers_whose_phases_are_not_known_are_never_green(options: dict[str, Any], said: Said) -> None:
    found = open_of(in_order(**options))["dma_order"]
    assert found.verdict is Verdict.UNKNOWN
    assert said.of(found.reason)


@pytest.mark.parametrize("text", ["membar.gl;", "bar.sync 4;", "bar.red.popc.u32 p, 4, 64, q;"])
def test_other_code_is_refused_by_its_words(text: str) -> None:
    found = open_of(in_order(code=lambda _: asm(text)))["dma_order"]
    assert found.verdict is Verdict.UNKNOWN
    assert Said("bodies.inline_operation", operation=text.rstrip(";")).of(found.reason)


def test_code_that_stores_is_refused() -> None:
    def stores(_: Any) -> None:
        memory = memref.alloca(ir.MemRefType.get((1,), ir.IntegerType.get_signless(32)), [], [])
        memref.store(word(1), memory, [mgpu.c(0, ir.IndexType.get())])

    found = open_of(in_order(code=stores))["dma_order"]
    assert found.verdict is Verdict.UNKNOWN
    assert Said("bodies.inline_operation", operation="memref.alloca").of(found.reason)


def test_a_number_that_lanes_may_differ_in_decides_nothing() -> None:
    def body(x_gmem: Any, o_gmem: Any) -> None:
        result = plgpu.ShapeDtypeStruct((), jnp.int32, plgpu.Layout.WG_SPLAT)

        @plgpu.inline_mgpu(return_type=result)
        def lane(_: Any) -> Any:
            return mgpu.FragmentedArray.splat(mgpu.utils.thread_idx(), (), is_signed=True)

        o_gmem[pl.ds(0, 64)] = x_gmem[pl.ds(lane() * 0, 64)]

    found = open_of(plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((64, 128), F)))
    assert found["body_in_bounds"].verdict is Verdict.UNKNOWN
    assert Said("bodies.inline_number").of(found["body_in_bounds"].reason)


def after_warps(needs: str = "", early: bool = False) -> Any:
    """x: of a warpgroup one warp fetches, and all wait and store, with no barriers of JAX around what warps do."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any, free: Any) -> None:
        wg = lax.axis_index("wg")

        @pl.when(wg == 0)
        def _() -> None:
            if early:
                plgpu.barrier_wait(free)

            @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
            def _() -> None:
                @pl.when(lax.axis_index("warp") == 2)
                def _() -> None:
                    plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], x_s, full)

                if needs:

                    @pl.when(lax.axis_index("warp") == 1)
                    def _() -> None:
                        plgpu.barrier_wait(free)

            if needs == "itself":
                plgpu.barrier_arrive(free)
            if needs != "nothing":
                plgpu.barrier_wait(full)
            o_gmem[pl.ds(0, 64)] = x_s[...]

        @pl.when(wg == 1)
        def _() -> None:
            if needs != "itself":
                plgpu.barrier_arrive(free)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 128), F),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.Barrier(), plgpu.Barrier()],
        compiler_params=plgpu.CompilerParams(unsafe_no_auto_barriers=True),
    )


def test_what_a_warpgroup_does_after_its_warps_is_read_without_barriers() -> None:
    assert not open_of(after_warps())
    assert not open_of(after_warps(needs="another thread"))


@pytest.mark.parametrize("options", [{"needs": "itself"}, {"needs": "nothing"}, {"early": True}])
def test_a_warpgroup_that_its_warps_do_not_wait_for_is_never_green(options: dict[str, Any]) -> None:
    """A warp waits for an arrival in which it takes part later, nothing is waited for, or all wait before."""
    assert open_of(after_warps(**options))["dma_order"].verdict is not Verdict.PROVED
