"""`lp.legal` says of tiles and stages of kernels of Mosaic GPU what `lp.kernels` says of each."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

import jax

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.pallas.from_jax.user import argument
from layoutproof.searching import configurations
from layoutproof.searching.configurations import BODIES, Legal
from tests.pallas.mosaic_gpu_ops import pretended
from tests.searching import gpu_functions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="of another jax"),
]

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
PLUS_ONE = {"rows": [64, 96, 256, 512], "columns": [2, 64, 128], "stages": [1, 2, 4]}
PRODUCT = {"tile_m": [64, 96, 128], "tile_n": [64, 100, 128, 192, 256], "tile_k": [64, 128], "swizzle": [128]}


def attention(q: Any, k: Any, v: Any, *, block_q: int, block_kv: int, steps: int) -> Any:
    from jax.experimental.pallas.ops.gpu import attention_mgpu as own

    return own.attention(q, k, v, own.TuningConfig(block_q, block_kv, steps))


def matmul(a: Any, b: Any, *, tile_m: int, tile_n: int, tile_k: int, steps: int) -> Any:
    from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as own

    return own.matmul(a, b, None, own.TuningConfig(tile_m, tile_n, tile_k, steps))


def every(parameters: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    for values in itertools.product(*parameters.values()):
        yield dict(zip(parameters, values, strict=True))


def of(function: Any, args: Sequence[str], parameters: Mapping[str, Sequence[int]]) -> Legal:
    return lp.legal(function, *args, target="mosaic_gpu", parameters=parameters)


def by_kernels(function: Any, args: Sequence[str], configuration: Mapping[str, int]) -> Verdict:
    """The worst of the same questions, of `lp.kernels`, which asks all of them and more."""
    shapes = [argument(text) for text in args]
    try:
        asked = lp.kernels(functools.partial(function, **configuration), *shapes, target="mosaic_gpu").findings
    except LayoutError:
        return REFUTED
    return min(f.verdict for f in asked if f.severity == "error" and f.question in BODIES)


@pytest.mark.parametrize(
    ("function", "args", "parameters", "said"),
    [
        (gpu_functions.plus_one, ("f32[512,256]",), PLUS_ONE, {"memory_budget", "tma_box", "outputs_stored"}),
        (gpu_functions.product, ("f16[256,256]",) * 2, PRODUCT, {"wgmma_tiles", "outputs_stored"}),
        (attention, ("f16[1,1024,1,64]",) * 3,
         {"block_q": [64, 100, 256], "block_kv": [64, 96, 256], "steps": [1, 2, 6]}, {"memory_budget"}),
    ],
)  # fmt: skip
def test_verdicts_are_those_of_kernels(function: Any, args: Any, parameters: Any, said: set[str]) -> None:
    """Of each configuration; all together more than 60, of which some are legal and some are refused by each rule."""
    legal = of(function, args, parameters)
    with pretended("h100"):
        answers = [legal(**each) for each in every(parameters)]
        known = [by_kernels(function, args, each) for each in every(parameters)]
    assert [a.rules for a in answers] == known
    assert Counter(known)[PROVED] >= 4
    assert said <= {a.question for a in answers if a.verdict is REFUTED}
    assert [a.verdict for a in answers] == [a.rules for a in answers]


@pytest.mark.parametrize(
    ("function", "args", "right", "wrong", "question"),
    [
        (gpu_functions.plus_one, ("f32[512,256]",), {"rows": 256, "columns": 64, "stages": 3},
         {"rows": 256, "columns": 64, "stages": 4}, "memory_budget"),
        (gpu_functions.sums_in_tensor_memory, ("f32[128,64]",), {"columns": 128, "sums": 4},
         {"columns": 128, "sums": 5}, "memory_budget"),
        (gpu_functions.plus_one, ("f32[1024,256]",), {"rows": 256, "columns": 32, "stages": 1},
         {"rows": 512, "columns": 32, "stages": 1}, "tma_box"),
        (gpu_functions.plus_one, ("f32[512,256]",), {"rows": 64, "columns": 4, "stages": 1},
         {"rows": 64, "columns": 2, "stages": 1}, "tma_box"),
        (gpu_functions.plus_one, ("f32[512,256]",), {"rows": 64, "columns": 64, "stages": 1},
         {"rows": 96, "columns": 64, "stages": 1}, "outputs_stored"),
        (gpu_functions.product, ("f16[256,256]",) * 2, {"tile_m": 64, "tile_n": 64, "tile_k": 64, "swizzle": 128},
         {"tile_m": 32, "tile_n": 64, "tile_k": 64, "swizzle": 128}, "wgmma_tiles"),
        (gpu_functions.on_tensor_memory, ("f16[256,256]",) * 2,
         {"tile_m": 128, "tile_n": 64, "tile_k": 64, "swizzle": 128},
         {"tile_m": 64, "tile_n": 64, "tile_k": 64, "swizzle": 128}, "tcgen05_tiles"),
        (gpu_functions.with_registers, ("f32[384,128]",), {"warpgroups": 3, "registers": 232, "producer": 40},
         {"warpgroups": 3, "registers": 240, "producer": 40}, "warpgroup_registers"),
        (gpu_functions.with_registers, ("f32[384,128]",), {"warpgroups": 3, "registers": 232, "producer": 40},
         {"warpgroups": 3, "registers": 232, "producer": 44}, "warpgroup_registers"),
        (gpu_functions.by_blocks, ("f32[512,128]",), {"rows": 64, "steps": 8}, {"rows": 64, "steps": 7},
         "outputs_covered"),
        (attention, ("f16[1,512,2,64]",) * 3, {"block_q": 64, "block_kv": 64, "steps": 2},
         {"block_q": 100, "block_kv": 64, "steps": 2}, ""),
    ],
)  # fmt: skip
def test_what_refuses_it_is_named(function: Any, args: Any, right: Any, wrong: Any, question: str) -> None:
    """Each wrong one differs in one number from one that nothing refuses."""
    legal = of(function, args, {name: sorted({right[name], wrong[name]}) for name in right})
    with pretended("h100"):
        assert legal(**right).verdict is not REFUTED
        answer = legal(**wrong)
    assert (answer.verdict, answer.question) == (REFUTED, question)
    assert answer.reason


def test_the_bytes_of_shared_memory_are_those_of_its_arrays() -> None:
    """4 buffers of 64 x 128 floats of 4 bytes, a barrier of 8; the limit is 227 KiB less a byte. Programs: 512 / 64."""
    legal = of(gpu_functions.plus_one, ("f32[512,256]",), PLUS_ONE)
    answer = legal(rows=64, columns=128, stages=4)
    assert (answer.smem_bytes, answer.smem_limit, answer.steps) == (4 * 64 * 128 * 4 + 8, 227 * 1024 - 1, 8)
    assert (answer.vmem_bytes, answer.traffic) == (None, None)
    assert answer.as_dict()["smem_bytes"] == answer.smem_bytes


@pytest.mark.parametrize(
    ("target", "verdict"), [("h100", REFUTED), ("H200", REFUTED), ("b200", PROVED), ("mosaic_gpu", PROVED)]
)
def test_hopper_has_no_tensor_memory(target: str, verdict: Verdict) -> None:
    """As of `lp.kernels`, with the same name of a GPU; shared memory is the same on all."""
    configuration = {"columns": 64, "sums": 1}
    legal = lp.legal(
        gpu_functions.sums_in_tensor_memory, "f32[128,64]", target=target, parameters={"columns": [64], "sums": [1]}
    )
    assert legal(**configuration).rules is verdict
    function = functools.partial(gpu_functions.sums_in_tensor_memory, **configuration)
    found = lp.kernels(function, argument("f32[128,64]"), target=target).findings
    assert min(f.verdict for f in found if f.severity == "error") is verdict
    legal = lp.legal(gpu_functions.plus_one, "f32[512,256]", target=target, parameters=PLUS_ONE)
    assert legal(rows=64, columns=64, stages=1).verdict is PROVED


@pytest.mark.parametrize(
    ("function", "target", "verdict"),
    [
        (gpu_functions.product, "h100", PROVED),
        (gpu_functions.product, "b200", REFUTED),
        (gpu_functions.product, "mosaic_gpu", PROVED),
        (gpu_functions.on_tensor_memory, "b200", PROVED),
        (gpu_functions.on_tensor_memory, "mosaic_gpu", PROVED),
    ],
)
def test_products_are_of_one_generation(function: Any, target: str, verdict: Verdict) -> None:
    sizes = {"tile_m": 128, "tile_n": 64, "tile_k": 64, "swizzle": 128}
    legal = lp.legal(
        function, *["f16[256,256]"] * 2, target=target, parameters={name: [size] for name, size in sizes.items()}
    )
    answer = legal(**sizes)
    assert answer.rules is verdict
    assert verdict is PROVED or answer.question == "gpu_instructions"


def test_programs_that_overlap_are_refused() -> None:
    """Two tiles of 64 rows, 32 apart, both write 32 rows."""
    parameters = {"rows": [64], "columns": [64], "stages": [1], "step": [32, 64]}
    legal = of(gpu_functions.plus_one, ("f32[128,256]",), parameters)
    assert legal(rows=64, columns=64, stages=1, step=64).verdict is PROVED
    answer = legal(rows=64, columns=64, stages=1, step=32)
    assert (answer.verdict, answer.question) == (REFUTED, "body_races")


def test_a_pipeline_in_a_body_is_no_step() -> None:
    """A place of the grid for each of 132 multiprocessors, with 3 threads."""
    shapes = "f16[512,1024]", "f16[1024,512]"
    legal = of(matmul, shapes, {"tile_m": [128], "tile_n": [128], "tile_k": [64], "steps": [9]})
    with pretended("h100"):
        answer = legal(tile_m=128, tile_n=128, tile_k=64, steps=9)
    assert (answer.verdict, answer.question, answer.steps) == (REFUTED, "memory_budget", 132 * 3)


def test_a_body_that_is_not_read_is_unknown() -> None:
    """Its shared memory is not known; what its blocks leave out is refuted all the same."""
    legal = of(gpu_functions.by_blocks, ("f32[512,128]",), {"rows": [64], "steps": [7, 8]})
    assert [legal(rows=64, steps=steps).verdict for steps in (7, 8)] == [REFUTED, UNKNOWN]
    assert legal(rows=64, steps=8).smem_bytes is None


def test_what_a_function_asks_of_a_gpu_that_is_not_there_refuses_no_tile() -> None:
    """The number of multiprocessors. What it says of a tile itself is a refusal, with a GPU or without."""
    parameters = {"tile_m": [128], "tile_n": [100, 128], "tile_k": [64], "steps": [2]}
    legal = of(matmul, ("f16[512,256]", "f16[256,512]"), parameters)
    told = {n: legal(tile_m=128, tile_n=n, tile_k=64, steps=2) for n in (100, 128)}
    assert (told[128].verdict, told[128].rules) == (UNKNOWN, UNKNOWN)
    sizes = {"block_q": 64, "block_kv": 64, "steps": 2}
    # of CUDA it asserts that it is there
    assert of(attention, ("f16[1,512,2,64]",) * 3, {k: [v] for k, v in sizes.items()})(**sizes).verdict is UNKNOWN
    with pretended("h100"):
        legal = of(matmul, ("f16[512,256]", "f16[256,512]"), parameters)
        told = {n: legal(tile_m=128, tile_n=n, tile_k=64, steps=2) for n in (100, 128)}
    assert [each.verdict for each in told.values()] == [REFUTED, PROVED]


def test_space_has_the_legal_ones() -> None:
    legal = of(gpu_functions.plus_one, ("f32[512,256]",), PLUS_ONE)
    found = [answer.configuration for answer in legal.space()]
    assert all(legal(**each).verdict is PROVED for each in found)
    assert len(found) == sum(legal(**each).verdict is PROVED for each in every(PLUS_ONE)) > 4


def test_each_is_traced_and_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    judge = configurations.judge

    def counted(kernel: Any, **options: Any) -> Any:
        asked.extend(options["names"])
        return judge(kernel, **options)

    monkeypatch.setattr(configurations, "judge", counted)
    legal = of(gpu_functions.plus_one, ("f32[512,256]",), PLUS_ONE)
    first = legal(rows=64, columns=64, stages=2)
    assert asked == list(BODIES)
    assert legal(rows=64, columns=64, stages=2) is first
    assert asked == list(BODIES)
    asked.clear()
    assert legal(rows=512, columns=128, stages=4).question == "memory_budget"
    assert len(asked) < 3


def test_the_fault_that_is_planted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no question of shared memory what does not fit is called legal: the comparison above would fail."""
    monkeypatch.setattr(configurations, "BODIES", tuple(name for name in BODIES if name != "memory_budget"))
    legal = of(gpu_functions.plus_one, ("f32[512,256]",), PLUS_ONE)
    configuration = {"rows": 256, "columns": 64, "stages": 4}
    with monkeypatch.context() as patch:
        patch.setattr(configurations._ConfiguredCall, "over", lambda self: False)
        assert legal(**configuration).rules is PROVED
    assert by_kernels(gpu_functions.plus_one, ("f32[512,256]",), configuration) is REFUTED
