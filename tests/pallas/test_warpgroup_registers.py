"""Warpgroups, clusters, registers that warpgroups ask for, and accumulators: each limit at its edge and beyond."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from tests.gpu_lowering import lowered_for_cuda
from tests.pallas.mosaic_gpu_limits import AMOUNTS, CLUSTERS, ORDERS, ROWS, THREADS, asking, made, setting
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="limits of jax 0.10.2"),
]

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


def asked(function: Any, subject: str) -> list[Finding]:
    """What the question says of a subject."""
    found = lp.kernels(function, ROWS).findings
    return [f for f in found if f.question == "warpgroup_registers" and f.subject == subject]


@pytest.mark.parametrize("under", ["always", "program", "loop"])
@pytest.mark.parametrize("amounts", AMOUNTS)
def test_registers_of_all_warpgroups(amounts: tuple[int | None, ...], under: str) -> None:
    """512 for each of 128 threads, or 504 where three begin with 168; JAX lowers them all."""
    said, held = AMOUNTS[amounts]
    verdict = Verdict(said)
    function = setting(amounts, under)
    worst = min(asked(function, "registers"), key=lambda f: f.verdict)
    assert worst.verdict is verdict, worst.reason
    if verdict is REFUTED:
        all_ = 512 // len(amounts) // 8 * 8 * len(amounts)
        assert Said("pallas.warpgroup_registers_waits", held=held, all=all_).of(worst.reason)
    assert lowered_for_cuda(jax.jit(function), ROWS).as_text()


def test_what_data_decide_is_unknown_where_it_may_be_too_much() -> None:
    worst = min(asked(setting((232, 232, 40), "data"), "registers"), key=lambda f: f.verdict)
    assert worst.verdict is UNKNOWN
    assert Said("pallas.warpgroup_registers_perhaps").of(worst.reason)
    # whoever of them does it, it is there
    assert {f.verdict for f in asked(setting((168, 40, 40), "data"), "registers")} == {PROVED}


@pytest.mark.parametrize("many", [0, 16, 20, 24, 28, 40, 100, 232, 250, 255, 256, 260, 264])
def test_what_a_thread_can_ask_for_is_what_jax_takes(many: int) -> None:
    """24 to 256, a multiple of 8."""
    function = setting((many,))
    try:
        lowered_for_cuda(jax.jit(function), ROWS)
        taken = True
    except Exception:
        # what the verifier of MLIR raises
        taken = False
    (found, *_) = asked(function, "registers")
    assert found.verdict is (PROVED if taken else REFUTED)
    assert taken or Said("pallas.warpgroup_registers_amount", registers=many).of(found.reason)


@pytest.mark.parametrize("name", ORDERS)
def test_each_order_of_requests_is_looked_at(name: str) -> None:
    """One after the other of one warpgroup, in any order with those of others."""
    requests, verdict = ORDERS[name]
    worst = min(asked(asking(requests), "registers"), key=lambda f: f.verdict)
    assert worst.verdict is Verdict(verdict), worst.reason


@pytest.mark.parametrize("warpgroups", THREADS)
def test_a_block_has_1024_threads(warpgroups: int) -> None:
    """JAX takes 16 warpgroups."""
    function = made(lambda x, o: None, warpgroups)
    (found,) = asked(function, "threads")
    assert found.verdict is Verdict(THREADS[warpgroups])
    if found.verdict is REFUTED:
        assert Said("pallas.warpgroup_registers_threads", threads=128 * warpgroups).of(found.reason)
    assert lowered_for_cuda(jax.jit(function), ROWS).as_text()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_has_16_blocks(cluster: tuple[int, ...]) -> None:
    function = made(lambda x, o: None, 1, cluster)
    (found,) = asked(function, "cluster")
    assert found.verdict is Verdict(CLUSTERS[cluster])
    assert lowered_for_cuda(jax.jit(function), ROWS).as_text()


def sums(*shapes: tuple[int, int], dtype: Any = jnp.float32, one_by_one: bool = False) -> Any:
    """Products with accumulators of these shapes, all at once or one after the other."""
    tiled = plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128)

    def multiply(*refs: Any) -> None:
        count = len(refs) // 3
        for acc, a, b in zip(refs[:count], refs[count : 2 * count], refs[2 * count :], strict=True):
            plgpu.wgmma(acc, a, b)
        plgpu.wgmma_wait(0)

    def scope(*some: tuple[int, int]) -> None:
        accs = [plgpu.ACC(shape, dtype) for shape in some]
        left = [plgpu.SMEM((m, 64), jnp.float16, transforms=tiled) for m, _ in some]
        right = [plgpu.SMEM((64, n), jnp.float16, transforms=tiled) for _, n in some]
        pl.run_scoped(multiply, *accs, *left, *right)

    def body(o_gmem: Any) -> None:
        for some in [[shape] for shape in shapes] if one_by_one else [shapes]:
            scope(*some)

    return plgpu.kernel(body, out_type=ROWS, grid=(1,), grid_names=("i",))


@pytest.mark.parametrize(
    ("function", "registers"),
    [
        (sums((64, 256)), 128),
        (sums((64, 256), (64, 192)), 224),
        (sums((64, 256), (64, 256)), 256),
        (sums((64, 256), (64, 256), one_by_one=True), 128),
        (sums((128, 256)), 256),
        (sums((128, 256), dtype=jnp.float16), 128),
        (sums((256, 256), dtype=jnp.float16), 256),
    ],
)
def test_accumulators_of_one_moment_spill_beyond_255(function: Any, registers: int) -> None:
    """JAX takes them all: a warning, which decides nothing."""
    (found,) = [f for f in lp.kernels(function).findings if f.subject == "accumulators"]
    assert found.severity == "warning"
    assert found.figures["registers"] == registers
    assert found.verdict is (REFUTED if registers > 255 else PROVED)
    if registers > 255:
        assert Said("pallas.warpgroup_registers_spills", registers=registers, most=255).of(found.reason)
    assert lowered_for_cuda(jax.jit(function)).as_text()
