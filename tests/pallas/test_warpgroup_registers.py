"""Warpgroups, clusters, registers that warpgroups ask for, and accumulators: each limit at its edge and beyond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from tests.gpu_lowering import lowered_for_cuda
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="limits of jax 0.10.2"),
]

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
ROWS = jax.ShapeDtypeStruct((4, 128), jnp.int32)


def made(body: Callable[..., None], warpgroups: int, cluster: Sequence[int] = (), grid: int = 4) -> Any:
    """A kernel of some warpgroups; what it computes does not matter."""
    together = {"cluster": tuple(cluster), "cluster_names": tuple("cd"[: len(cluster)])} if cluster else {}
    return plgpu.kernel(
        body,
        out_type=ROWS,
        grid=(grid,),
        grid_names=("i",),
        num_threads=warpgroups,
        thread_name="wg",
        **together,
    )


def asked(function: Any, subject: str) -> list[Finding]:
    """What the question says of a subject."""
    found = lp.kernels(function, ROWS).findings
    return [f for f in found if f.question == "warpgroup_registers" and f.subject == subject]


def setting(amounts: Sequence[int | None], under: str = "always") -> Any:
    """Each warpgroup asks for so many registers, None for none; it asks for more than 160, and gives back to less.

    under: what else decides whether it does: nothing, the id of the program, how often a loop runs, or data of each.
    """

    def body(x_gmem: Any, o_gmem: Any) -> None:
        def requests() -> None:
            for warpgroup, many in enumerate(amounts):
                if many is not None:
                    action = "increase" if many > 160 else "decrease"
                    pl.when(lax.axis_index("wg") == warpgroup)(
                        lambda n=many, a=action: plgpu.set_max_registers(n, action=a)
                    )

        if under == "always":
            requests()
        elif under == "program":
            pl.when(lax.axis_index("i") > 1)(requests)
        elif under == "loop":
            lax.fori_loop(0, lax.axis_index("i"), lambda k, carry: requests(), None)
        else:
            pl.when(x_gmem[lax.axis_index("wg"), 0] > 3)(requests)

    return made(body, len(amounts))


@pytest.mark.parametrize("under", ["always", "program", "loop"])
@pytest.mark.parametrize(
    ("amounts", "verdict", "held"),
    [
        ((232, 232, 40), PROVED, 0),
        # 240 and 240 with the 40 of the third one are 520
        ((240, 240, 40), REFUTED, 240 + 40),
        # the others keep their thirds of 512 while each of two waits
        ((232, 232, None), REFUTED, 170 + 170),
        # one gets 216 of what the last one gives back, and two have their fourths
        ((216, 216, 216, 24), REFUTED, 216 + 128 + 24),
        ((168, 168, 168, 32), REFUTED, 168 + 168 + 32),
        ((160, 160, 160, 32), PROVED, 0),
        # a fourth of 512 is all that the last one can keep
        ((168, 168, 40, 160), PROVED, 0),
        ((256, None), PROVED, 0),
        ((256, 256), PROVED, 0),
        # each of three begins with 168, a multiple of 8: 504, and not 512
        ((240, 232, 40), UNKNOWN, 0),
    ],
)
def test_registers_of_all_warpgroups(amounts: Sequence[int | None], verdict: Verdict, held: int, under: str) -> None:
    """512 for each of 128 threads; JAX lowers them all."""
    function = setting(amounts, under)
    worst = min(asked(function, "registers"), key=lambda f: f.verdict)
    assert worst.verdict is verdict, worst.reason
    if verdict is REFUTED:
        assert Said("pallas.warpgroup_registers_waits", held=held, all=512).of(worst.reason)
    if verdict is UNKNOWN:
        assert Said("pallas.warpgroup_registers_rounded", share=168, rounded=504).of(worst.reason)
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


@pytest.mark.parametrize(
    ("requests", "verdict"),
    [
        # all of three wait for 256 before one of them gives back
        ([[(256, True), (24, False)]] * 3, REFUTED),
        # one after the other
        ([[(24, False), (256, True), (24, False)]] * 3, PROVED),
        # the second one gets 256 if the first one is not before it
        ([[(24, False), (256, True)], [(256, True), (24, False)], [(24, False)]], UNKNOWN),
        ([[(24, False), (168, True)]] * 3, PROVED),
        ([[(24, False), (176, True)]] * 3, REFUTED),
        ([[(40, False)], [(232, True)], [(232, True)]], PROVED),
        ([[(40, False)], [(232, True), (120, False)], [(232, True), (240, False)]], PROVED),
    ],
)
def test_each_order_of_requests_is_looked_at(requests: list[list[tuple[int, bool]]], verdict: Verdict) -> None:
    """One after the other of one warpgroup, in any order with those of others."""

    def body(x_gmem: Any, o_gmem: Any) -> None:
        for warpgroup, own in enumerate(requests):

            def does(own: list[tuple[int, bool]] = own) -> None:
                for many, more in own:
                    plgpu.set_max_registers(many, action="increase" if more else "decrease")

            pl.when(lax.axis_index("wg") == warpgroup)(does)

    worst = min(asked(made(body, len(requests)), "registers"), key=lambda f: f.verdict)
    assert worst.verdict is verdict, worst.reason


@pytest.mark.parametrize(("warpgroups", "verdict"), [(8, PROVED), (9, REFUTED), (16, REFUTED)])
def test_a_block_has_1024_threads(warpgroups: int, verdict: Verdict) -> None:
    """JAX takes 16 warpgroups."""
    function = made(lambda x, o: None, warpgroups)
    (found,) = asked(function, "threads")
    assert found.verdict is verdict
    if verdict is REFUTED:
        assert Said("pallas.warpgroup_registers_threads", threads=128 * warpgroups).of(found.reason)
    assert lowered_for_cuda(jax.jit(function), ROWS).as_text()


@pytest.mark.parametrize(
    ("cluster", "verdict"), [((16,), PROVED), ((4, 4), PROVED), ((17,), REFUTED), ((4, 8), REFUTED)]
)
def test_a_cluster_has_16_blocks(cluster: Sequence[int], verdict: Verdict) -> None:
    function = made(lambda x, o: None, 1, cluster)
    (found,) = asked(function, "cluster")
    assert found.verdict is verdict
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
