"""Kernels of Mosaic GPU: of each pair the right one is proved whole, and of the wrong one its question speaks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.pallas.mosaic_gpu import helpers
from jax.experimental import pallas as pl
from jax.experimental.mosaic.gpu import core as mosaic_gpu_core
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from tests.gpu_lowering import lowered_for_cuda
from tests.pallas.mosaic_gpu_limits import ROWS as OF_LIMITS
from tests.pallas.mosaic_gpu_limits import SHARED, allocating
from tests.pallas.mosaic_gpu_ops import MosaicGpuOp, ops, pretended
from tests.pallas.mosaic_gpu_page import GROUPS, SEEN, on_gpu, pairs, public_rows, row
from tests.pallas.mosaic_gpu_pairs import PAIRS, ROWS, TILED, F, H, kernel
from tests.pallas.mosaic_gpu_remote_pairs import REMOTE_PAIRS
from tests.pallas.mosaic_gpu_tensor_pairs import TENSOR_PAIRS
from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="the primitives are read from jax 0.10.2"),
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mosaic_gpu.md"


def decided(function: Any, args: tuple[Any, ...], target: str | None = "mosaic_gpu") -> list[Finding]:
    found = lp.kernels(function, *args, target=target).findings
    return [f for f in found if f.asked and f.severity == "error" and f.verdict is not Verdict.PROVED]


ALL = PAIRS | THREAD_PAIRS | TENSOR_PAIRS | REMOTE_PAIRS


@pytest.mark.parametrize("name", ALL)
def test_the_right_one_is_proved_whole(name: str) -> None:
    assert not decided(ALL[name].make(), ALL[name].args)


@pytest.mark.parametrize("name", ALL)
def test_the_wrong_one_is_refuted_by_its_question(name: str) -> None:
    pair = ALL[name]
    spoken = [f for f in decided(pair.make(**pair.wrong), pair.args) if f.question == pair.question]
    assert Verdict.REFUTED in {f.verdict for f in spoken}
    # a program, an iteration or an element at which it goes wrong
    assert all(f.counterexample for f in spoken if f.verdict is Verdict.REFUTED)


@pytest.mark.parametrize("name", ALL)
def test_jax_lowers_both_for_a_gpu(name: str) -> None:
    """So the right one is one that a GPU can be given, and of the error JAX says nothing; it needs no GPU for that."""
    pair = ALL[name]
    for made in (pair.make(), pair.make(**pair.wrong)):
        assert lowered_for_cuda(jax.jit(made), *pair.args).as_text()


def test_what_happens_in_no_program_is_not_refuted() -> None:
    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        rows = pl.ds(lax.axis_index("i") * 64, 64)
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], smem, barrier)
        plgpu.barrier_wait(barrier)
        plgpu.copy_smem_to_gmem(smem, o_gmem.at[rows])
        plgpu.wait_smem_to_gmem(0)

        @pl.when(lax.axis_index("i") > 7)
        def _() -> None:
            smem[...] = smem[...] + 1
            plgpu.copy_smem_to_gmem(smem, o_gmem.at[rows])
            plgpu.wait_smem_to_gmem(0)

    scratch = plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()
    assert not decided(kernel(body, (256, 128), jnp.float32, {"i": 4}, *scratch), ROWS)


def test_a_box_that_the_end_of_the_array_cuts_is_clipped() -> None:
    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        rows = pl.ds(lax.axis_index("i") * 64, 64)
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], smem, barrier)
        plgpu.barrier_wait(barrier)
        plgpu.copy_smem_to_gmem(smem, o_gmem.at[rows])
        plgpu.wait_smem_to_gmem(0)

    scratch = plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()
    args = (jax.ShapeDtypeStruct((200, 128), jnp.float32),)
    assert not decided(kernel(body, (200, 128), jnp.float32, {"i": 4}, *scratch), args)
    found = decided(kernel(body, (200, 128), jnp.float32, {"i": 5}, *scratch), args)
    assert {(f.question, f.verdict) for f in found} == {("body_in_bounds", Verdict.REFUTED)}


@pytest.mark.parametrize(("kib", "barriers"), SHARED)
def test_shared_memory_is_227_kib_without_a_byte(kib: int, barriers: int) -> None:
    found = lp.kernels(allocating(kib, barriers), OF_LIMITS, target="mosaic_gpu").findings
    assert {f.verdict for f in found if f.question == "memory_budget"} == {Verdict(SHARED[kib, barriers])}


def shared_bytes_of_jax(function: Any, args: Any) -> int:
    """The bytes that JAX asks the launch for, as it says when no byte is there."""
    with (
        mock.patch.object(mosaic_gpu_core, "_SMEM_SIZE_BOUND", -1),
        pytest.raises(ValueError, match="smem_bytes=") as caught,
    ):
        lowered_for_cuda(jax.jit(function), *args)
    (found,) = re.findall(r"smem_bytes=(\d+) > ", str(caught.value))
    return int(found)


def shared_bytes_said(function: Any, args: Any) -> int:
    found = lp.kernels(function, *args, target="mosaic_gpu").findings
    return sum(int(f.figures["bytes"]) for f in found if f.question == "memory_budget" and f.subject == "shared memory")


@pytest.mark.parametrize("name", PAIRS | THREAD_PAIRS)
def test_shared_memory_is_what_jax_asks_for(name: str) -> None:
    pair = ALL[name]
    assert shared_bytes_said(pair.make(), pair.args) == shared_bytes_of_jax(pair.make(), pair.args)


@pytest.mark.parametrize(
    "op", [op for op in ops() if op.name.startswith(("attention", "hopper"))], ids=lambda op: op.name
)
def test_shared_memory_of_the_wheel_is_what_jax_asks_for(op: MosaicGpuOp) -> None:
    """Attention reduces, and JAX adds 2 KiB for that; of several calls the first one is lowered first."""
    with pretended(op.chip):
        function, args = op.build()
        of_jax = shared_bytes_of_jax(function, args)
        found = lp.kernels(function, *args, target="mosaic_gpu").findings
    bytes_ = [f.figures["bytes"] for f in found if f.question == "memory_budget" and f.subject == "shared memory"]
    assert of_jax in bytes_


@pytest.mark.parametrize(("columns", "verdict"), [(256, Verdict.PROVED), (260, Verdict.REFUTED)])
def test_tensor_memory_is_512_columns(columns: int, verdict: Verdict) -> None:
    def body(x_gmem: Any, o_gmem: Any, one: Any, other: Any) -> None:
        for part in (one, other):
            plgpu.async_store_tmem(part, plgpu.load(x_gmem, (), layout=plgpu.Layout.TCGEN05, optimized=False))
        plgpu.commit_tmem()
        o_gmem[...] = plgpu.async_load_tmem(one) + plgpu.async_load_tmem(other)

    function = plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((128, columns), jnp.float32),
        scratch_types=[plgpu.TMEM((128, columns), jnp.float32)] * 2,
    )
    found = lp.kernels(function, jax.ShapeDtypeStruct((128, columns), jnp.float32), target="mosaic_gpu").findings
    assert {f.verdict for f in found if f.question == "memory_budget"} == {verdict}
    assert {f.verdict for f in found if f.question == "dma_order"} == {Verdict.PROVED}


def handed_to_the_first(cluster_barrier: Any) -> Any:
    """a b of f16[256,64] and f16[64,128] by two programs, each of which stores its part of a to tensor memory."""

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, a_t: Any, acc: Any, full: Any, done: Any, met: Any) -> None:
        x = lax.axis_index("x")
        rows = pl.ds(x * 128, 128)
        plgpu.copy_gmem_to_smem(a.at[rows], a_s, full)
        plgpu.barrier_wait(full)
        plgpu.copy_gmem_to_smem(b.at[:, pl.ds(x * 64, 64)], b_s, full)
        plgpu.barrier_wait(full)
        plgpu.async_store_tmem(a_t, plgpu.load(a_s, (), layout=plgpu.Layout.TCGEN05, optimized=False))
        plgpu.commit_tmem()
        plgpu.barrier_arrive(met)
        plgpu.barrier_wait(met)
        plgpu.tcgen05_mma(acc, a_t, b_s, done, accumulate=False, collective_axis="x")
        plgpu.barrier_wait(done)
        o[rows] = plgpu.async_load_tmem(acc)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((256, 128), F),
        cluster=(2,),
        cluster_names=("x",),
        scratch_types=[
            plgpu.SMEM((128, 64), H, transforms=TILED),
            plgpu.SMEM((64, 64), H, transforms=TILED),
            plgpu.TMEM((128, 64), H, packed=True, collective=True),
            plgpu.TMEM((128, 128), F, collective=True),
            plgpu.Barrier(),
            plgpu.Barrier(orders_tensor_core=True),
            cluster_barrier,
        ],
    )


@pytest.mark.parametrize("orders", [True, False])
def test_a_barrier_of_a_cluster_that_does_not_order_tensor_memory_is_unknown(orders: bool) -> None:
    """JAX's own tests of products of two programs rest on one; PTX asks for a fence."""
    barrier = plgpu.ClusterBarrier(collective_axes=("x",), orders_tensor_core=orders)
    args = jax.ShapeDtypeStruct((256, 64), jnp.float16), jax.ShapeDtypeStruct((64, 128), jnp.float16)
    found = lp.kernels(handed_to_the_first(barrier), *args).findings
    verdicts = {f.verdict for f in found if f.question == "dma_order"}
    assert verdicts == {Verdict.PROVED} if orders else min(verdicts) is Verdict.UNKNOWN


def scaled(refilled: str = "late", seen: bool = True) -> Any:
    """A product of 128 x 128 x 128 with scales, which come to tensor memory by a copy that nothing waits for but it.

    refilled: when the shared memory of the scales is filled again.  seen: whether the product's end is waited for.
    """

    def body(
        a: Any, b: Any, scales: Any, o: Any, a_s: Any, b_s: Any, s_s: Any, acc: Any, a_t: Any, b_t: Any, *barriers: Any
    ) -> None:
        full, again, done = barriers
        for source, target in ((a, a_s), (b, b_s), (scales, s_s)):
            plgpu.copy_gmem_to_smem(source, target, full)
        plgpu.barrier_wait(full)
        plgpu.async_copy_scales_to_tmem(s_s, a_t)
        plgpu.async_copy_scales_to_tmem(s_s, b_t)
        turned = plgpu.transpose_ref(b_s, (1, 0))
        plgpu.tcgen05_mma(acc, a_s, turned, done, a_scale=a_t, b_scale=b_t, accumulate=False)
        if refilled == "early":
            plgpu.copy_gmem_to_smem(scales, s_s, again)
            plgpu.barrier_wait(again)
        if seen:
            plgpu.barrier_wait(done)
        if refilled == "late":
            plgpu.copy_gmem_to_smem(scales, s_s, again)
            plgpu.barrier_wait(again)
        o[...] = plgpu.async_load_tmem(acc)

    eight, of_scales = jnp.float8_e4m3fn, jnp.float8_e8m0fnu
    rows = (plgpu.TilingTransform((8, 128)), plgpu.SwizzleTransform(128))
    lies = plgpu.TMEM((128, 4), of_scales, layout=plgpu.TMEMLayout.SCALES_LAYOUT)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((128, 128), F),
        scratch_types=[
            plgpu.SMEM((128, 128), eight, transforms=rows),
            plgpu.SMEM((128, 128), eight, transforms=rows),
            plgpu.SMEM((1, 1, 32, 16), of_scales),
            plgpu.TMEM((128, 128), F),
            lies,
            lies,
            plgpu.Barrier(num_arrivals=3),
            plgpu.Barrier(),
            plgpu.Barrier(orders_tensor_core=True),
        ],
    )


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        ({}, Verdict.PROVED),
        ({"refilled": "early"}, Verdict.REFUTED),
        ({"refilled": "late", "seen": False}, Verdict.REFUTED),
        ({"refilled": "never", "seen": False}, Verdict.REFUTED),
    ],
)
def test_scales_are_copied_until_their_product_has_ended(wrong: dict[str, Any], verdict: Verdict) -> None:
    eight = jax.ShapeDtypeStruct((128, 128), jnp.float8_e4m3fn)
    scales = jax.ShapeDtypeStruct((1, 1, 32, 16), jnp.float8_e8m0fnu)
    found = [f for f in lp.kernels(scaled(**wrong), eight, eight, scales).findings if f.severity == "error"]
    assert min(f.verdict for f in found if f.question == "dma_order") is verdict
    # what is said of tiles is said of other products
    (tiles,) = (f for f in found if f.question == "tcgen05_tiles")
    assert tiles.verdict is Verdict.UNKNOWN
    assert Said("bodies.tensor_scales").of(tiles.reason)
    left = {f.question for f in found if f.verdict is not Verdict.PROVED and f.asked}
    assert wrong or left == {"tcgen05_tiles"}


@pytest.mark.parametrize(("second", "verdict"), [(1, Verdict.PROVED), (0, Verdict.REFUTED)])
def test_two_warps_store_to_global_memory(second: int, verdict: Verdict) -> None:
    def body(o_gmem: Any) -> None:
        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _() -> None:
            warp = lax.axis_index("warp")

            @pl.when(warp < 2)
            def _() -> None:
                o_gmem[warp * second] = warp

        if not second:
            o_gmem[1] = 0

    found = lp.kernels(plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((2,), jnp.int32))).findings
    assert min(f.verdict for f in found if f.question == "body_races" and f.severity == "error") is verdict


@pytest.mark.parametrize(("second", "verdict"), [(1, Verdict.PROVED), (0, Verdict.REFUTED)])
def test_two_warps_meet_in_shared_memory(second: int, verdict: Verdict) -> None:
    def body(o_gmem: Any, smem: Any) -> None:
        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _() -> None:
            warp = lax.axis_index("warp")

            @pl.when(warp < 2)
            def _() -> None:
                smem[warp * second] = warp

        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _() -> None:
            @pl.when(lax.axis_index("warp") == 3)
            def _() -> None:
                for k in range(2):
                    o_gmem[k] = smem[k * second]

    out = jax.ShapeDtypeStruct((2,), jnp.int32)
    function = plgpu.kernel(body, out_type=out, scratch_types=[plgpu.SMEM((2,), jnp.int32)])
    found = [f for f in lp.kernels(function).findings if f.asked and f.severity == "error"]
    assert verdict in {f.verdict for f in found if f.question == "body_races"}
    assert all(f.verdict is Verdict.PROVED for f in found) is (verdict is Verdict.PROVED)


@pytest.mark.parametrize("what", ["code", "warps and warpgroups wait"])
def test_what_warps_do_is_named_where_it_is_not_modelled(what: str) -> None:
    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], smem, barrier)
        if what != "warps and warpgroups wait":
            plgpu.barrier_wait(barrier)
        if what == "code":
            helpers.inline_ptx("membar.gl;")

        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _() -> None:
            if what == "warps and warpgroups wait":
                pl.when(lax.axis_index("warp") == 0)(lambda: plgpu.barrier_wait(barrier))

            @pl.when(lax.axis_index("warp") < 1)
            def _() -> None:
                plgpu.copy_smem_to_gmem(smem, o_gmem.at[pl.ds(0, 64)])
                plgpu.wait_smem_to_gmem(0)

        if what == "warps and warpgroups wait":
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(64, 64)], smem, barrier)
            plgpu.barrier_wait(barrier)

    function = plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        scratch_types=[plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()],
    )
    result = lp.kernels(function, *ROWS)
    words = {
        "code": Said("bodies.inline_operation", operation="membar.gl"),
        "warps and warpgroups wait": Said("bodies.warps_wait"),
    }
    (found,) = (f for f in result.findings if f.question == "dma_order")
    assert found.verdict is Verdict.UNKNOWN
    assert words[what].of(found.reason)


def threads(grid: int = 4) -> Any:
    """Each of two threads copies 32 of the 64 rows of its program."""

    def body(x_gmem: Any, o_gmem: Any) -> None:
        rows = lax.axis_index("i") * 64 + lax.axis_index("wg") * 32
        o_gmem[pl.ds(rows, 32)] = x_gmem[pl.ds(rows, 32)]

    out = jax.ShapeDtypeStruct((256, 128), jnp.float32)
    return plgpu.kernel(body, out_type=out, grid=(grid,), grid_names=("i",), num_threads=2, thread_name="wg")


def test_threads_that_share_nothing_are_proved() -> None:
    assert not decided(threads(), ROWS)


def test_of_threads_places_are_refuted() -> None:
    found = decided(threads(grid=5), ROWS)
    assert ("body_in_bounds", Verdict.REFUTED) in {(f.question, f.verdict) for f in found}


def test_memory_that_comes_after_another_scope_is_not_judged() -> None:
    """Both scopes may have one place, and the copy of the first may still be under way when the second begins."""

    def body(x_gmem: Any, o_gmem: Any) -> None:
        def first(smem: Any, barrier: Any) -> None:
            @pl.when(lax.axis_index("wg") == 0)
            def _() -> None:
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], smem, barrier)

        def second(smem: Any) -> None:
            @pl.when(lax.axis_index("wg") == 1)
            def _() -> None:
                smem[...] = jnp.zeros((64, 128), jnp.float32)
                o_gmem[pl.ds(0, 64)] = smem[...]

        memory = plgpu.SMEM((64, 128), jnp.float32)
        pl.run_scoped(first, memory, plgpu.Barrier(), collective_axes="wg")
        pl.run_scoped(second, memory, collective_axes="wg")

    out = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    function = plgpu.kernel(body, out_type=out, num_threads=2, thread_name="wg")
    found = decided(function, ROWS)
    assert ("dma_order", Verdict.UNKNOWN) in {(f.question, f.verdict) for f in found}
    assert any(Said("bodies.scope_ended", memory="scoped1").of(f.reason) for f in found)


@pytest.mark.parametrize("what", ["a leader", "two axes", "reduction"])
def test_what_is_not_modelled_is_named_and_never_green(what: str) -> None:
    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        axes: dict[str, Any] = {}
        if what != "reduction":
            along = "c" if what == "a leader" else ("c", "d")
            axes = {"collective_axes": along, "leader_tracked": plgpu.CopyPartition.PARTITIONED(0)}
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], smem, barrier, **axes)
        plgpu.barrier_wait(barrier)
        plgpu.copy_smem_to_gmem(smem, o_gmem.at[pl.ds(0, 64)], reduction_op="add" if what == "reduction" else None)
        plgpu.wait_smem_to_gmem(0)

    function = plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        grid=(1,),
        grid_names=("i",),
        cluster=(4 if what == "a leader" else 2, 1),
        cluster_names=("c", "d"),
        scratch_types=[plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()],
    )
    result = lp.kernels(function, *ROWS)
    words = {
        "a leader": Said("bodies.cluster_part"),
        "two axes": Said("bodies.cluster_axes", axes=2),
        "reduction": Said("bodies.copy_combines"),
    }
    assert result.exit_code == 3
    assert any(words[what].of(f.reason) for f in result.findings if f.question == "dma_order")


@pytest.mark.parametrize("op", list(ops()), ids=lambda op: op.name)
def test_the_page_says_what_a_run_says(op: MosaicGpuOp) -> None:
    assert row(op) in PAGE.read_text().splitlines()


NOT_AS_DOCUMENTED = {
    "blackwell_matmul_mgpu.matmul_kernel collective",
    "collective_matmul_mgpu.all_gather_lhs_matmul, 3 GPUs",
}
"""Of the wheel: a loop over work without `cluster_axes`, which JAX's documentation demands in clusters, and arrivals of
several steps that are counted together (`tests/pallas/mosaic_gpu_remote_pairs.py` has the like of it, right and wrong).
"""


def test_the_page_refutes_no_right_kernel_of_the_wheel() -> None:
    table = PAGE.read_text().partition("## The kernels of the wheel")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if "_mgpu." in line and line.startswith("| ")]
    assert [cells[0].removeprefix("| ") for cells in rows] == [op.name for op in ops()]
    assert {cells[0].removeprefix("| ") for cells in rows if cells[3] == "refuted"} == NOT_AS_DOCUMENTED


def test_the_page_has_the_kernels_of_tokamax_and_refutes_none() -> None:
    rows = [*public_rows()]
    assert set(rows) <= set(PAGE.read_text().splitlines())
    assert not [row for row in rows if row.split(" | ")[3] == "refuted"]


def test_the_page_has_what_a_gpu_showed_and_nothing_that_is_proved_was_wrong() -> None:
    seen = json.loads(SEEN.read_text("utf-8"))["seen"]
    assert set(on_gpu()) <= set(PAGE.read_text().splitlines())
    assert {one["group"] for one in seen} <= set(GROUPS)
    assert not [one["name"] for one in seen if one["said"] == "proved" and one["saw"] != "right"]


def test_the_page_has_all_pairs() -> None:
    assert set(pairs()) <= set(PAGE.read_text().splitlines())
