"""Instructions of one generation: what Hopper alone has, and what Blackwell alone has, by the name of a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.bodies import mosaic_gpu as read
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.hardware.mosaic_gpu import NOT_EVERYWHERE, OTHER_NAMES
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.pallas.mosaic_gpu_ops import MosaicGpuOp, ops, pretended
from tests.pallas.mosaic_gpu_pairs import PAIRS
from tests.pallas.mosaic_gpu_tensor_pairs import TENSOR_PAIRS
from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="limits of jax 0.10.2"),
]

PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED
TILED = plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128)


def of_hopper(o_gmem: Any, a: Any, b: Any, acc: Any) -> None:
    plgpu.wgmma(acc, a, b)
    plgpu.wgmma_wait(0)


def of_blackwell(o_gmem: Any, a: Any, b: Any, acc: Any, barrier: Any) -> None:
    plgpu.tcgen05_mma(acc, a, b, barrier, accumulate=False)
    plgpu.barrier_wait(barrier)


def of_all(o_gmem: Any, a: Any, b: Any) -> None:
    plgpu.copy_smem_to_gmem(a, o_gmem)
    plgpu.wait_smem_to_gmem(0)


BARRIER = plgpu.Barrier(orders_tensor_core=True)
BODIES = {
    "wgmma": (of_hopper, [plgpu.ACC((128, 128), jnp.float32)]),
    "tcgen05": (of_blackwell, [plgpu.TMEM((128, 128), jnp.float32), BARRIER]),
    "none": (of_all, []),
}


def made(instructions: str) -> Any:
    """A kernel with instructions of a kind."""
    body, more = BODIES[instructions]
    operands = [plgpu.SMEM((128, 128), jnp.float16, transforms=TILED)] * 2
    out = jax.ShapeDtypeStruct((128, 128), jnp.float16)
    return plgpu.kernel(body, out_type=out, grid=(1,), grid_names=("i",), scratch_types=[*operands, *more])


def asked(function: Any, target: str) -> list[Finding]:
    found = lp.kernels(function, target=target).findings
    return [f for f in found if f.question == "gpu_instructions" and f.asked]


@pytest.mark.parametrize(
    ("instructions", "chip", "verdict"),
    [
        ("wgmma", "h100", PROVED),
        ("wgmma", "H200", PROVED),
        ("wgmma", "b200", REFUTED),
        ("tcgen05", "h100", REFUTED),
        ("tcgen05", "h200", REFUTED),
        ("tcgen05", "B200", PROVED),
    ],
)
def test_a_gpu_has_the_instructions_of_its_generation(instructions: str, chip: str, verdict: Verdict) -> None:
    (found,) = asked(made(instructions), chip)
    assert found.verdict is verdict
    if verdict is REFUTED:
        others = {"wgmma": "H100 and H200", "tcgen05": "B200"}[instructions]
        assert Said("pallas.gpu_instructions_lacks", chip=chip.upper(), instructions=instructions, others=others).of(
            found.reason
        )
        # the line of the product, and what the other generation has in its place
        line = BODIES[instructions][0].__code__.co_firstlineno + 1
        assert (Path(found.file).name, found.line) == (Path(__file__).name, line)
        other = {"wgmma": "tcgen05_mma", "tcgen05": "wgmma"}[instructions]
        assert f"plgpu.{other}" in found.hint


@pytest.mark.parametrize("instructions", ["wgmma", "tcgen05"])
def test_nothing_is_asked_where_no_gpu_is_named(instructions: str) -> None:
    assert not asked(made(instructions), "mosaic_gpu")


@pytest.mark.parametrize("chip", sorted(OTHER_NAMES))
def test_nothing_is_asked_of_what_every_gpu_has(chip: str) -> None:
    assert not asked(made("none"), chip)


def test_all_that_is_noted_has_a_generation() -> None:
    """Copies are noted by their own rule, where they are of one."""
    assert read.NOT_EVERYWHERE | {"copy_gmem_to_smem"} == set(NOT_EVERYWHERE)


GIVEN_OUT = [name for name in TENSOR_PAIRS | THREAD_PAIRS if name.startswith("given out")]


@pytest.mark.parametrize("name", sorted(PAIRS | THREAD_PAIRS | TENSOR_PAIRS))
def test_right_kernels_are_of_one_generation(name: str) -> None:
    """Tensor memory, and work that a GPU gives out, are of Blackwell; no kernel has instructions of both."""
    pair = (PAIRS | THREAD_PAIRS | TENSOR_PAIRS)[name]
    calls = [call for call in kernels_of(pair.make(), pair.args) if isinstance(call, Kernel)]
    blackwell = name in GIVEN_OUT or any(call.tensor for call in calls)
    told = {
        chip: {f.verdict for call in calls for f in judge(call, target=chip, names=["gpu_instructions"]) if f.asked}
        for chip in ("h100", "b200")
    }
    right, wrong = ("b200", "h100") if blackwell else ("h100", "b200")
    assert told[right] <= {PROVED}
    assert told[wrong] <= {REFUTED}


NAMED_AXIS = "blackwell_ragged_dot_mgpu.ragged_dot_kernel"
"""Without a cluster it asks for an axis that is not there, and is not traced."""


OF_BOTH = "all_gather_mgpu", "reduce_scatter_mgpu"
"""They load and store alone, which each of the GPUs can."""
OF_ONE = [op for op in ops() if op.name != NAMED_AXIS and not op.name.startswith(OF_BOTH)]


@pytest.mark.parametrize("op", OF_ONE, ids=lambda op: op.name)
def test_kernels_of_the_wheel_are_of_their_own_generation(op: MosaicGpuOp) -> None:
    with pretended(op.chip, op.devices):
        function, arguments = op.build()
        calls = [call for call in kernels_of(function, arguments) if isinstance(call, Kernel)]
    other = "b200" if op.chip == "h100" else "h100"
    told = {
        chip: {f.verdict for call in calls for f in judge(call, target=chip, names=["gpu_instructions"]) if f.asked}
        for chip in (op.chip, other)
    }
    assert told == {op.chip: {PROVED}, other: {REFUTED}}
