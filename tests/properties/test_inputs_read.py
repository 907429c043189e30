"""`inputs_read`: the remainder that a floor division leaves unread is an error, what a kernel does not need is none."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.finding import Finding
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_text import read_kernel
from layoutproof.pallas.judge import judge


def kernel(grid: Any, *inputs: dict[str, Any], **more: Any) -> Kernel:
    """A kernel with these inputs, named x0, x1 .., and one small output."""
    rows = [{"name": f"x{k}", **row} for k, row in enumerate(inputs)]
    more.setdefault("outputs", [{"name": "o", "array": "f32[8,128]"}])
    return read_kernel({"grid": grid, "inputs": rows, **more}, ELEMENT_BITS)[0]


def asked(kernel: Kernel, **how: Any) -> dict[str, Finding]:
    """What is found of each input, by its name."""
    return {finding.subject: finding for finding in judge(kernel, names=["inputs_read"], **how)}


def word(finding: Finding) -> str:
    """How a report calls it."""
    verdict = finding.verdict.value
    return verdict if verdict == "proved" or finding.severity == "error" else finding.severity


def of(array: str, block: Any, index: str | None, grid: Any, **more: Any) -> Finding:
    """What is found of one input."""
    (found,) = asked(kernel(grid, {"array": array, "block": block, "index": index, **more})).values()
    return found


def matmul(m: Any, n: Any, k: Any, grid: list[Any], **more: Any) -> Kernel:
    """A matmul at blocks of 256 with this grid."""
    return kernel(
        grid,
        {"array": f"f32[{m},{k}]", "block": [256, 256], "index": "(i, j, k) -> (i, k)"},
        {"array": f"f32[{k},{n}]", "block": [256, 256], "index": "(i, j, k) -> (k, j)"},
        outputs=[{"name": "o", "array": f"f32[{m},{n}]", "block": [256, 256], "index": "(i, j, k) -> (i, j)"}],
        **more,
    )


def test_the_tail_of_a_sum() -> None:
    """`k // bk`: both operands, the smallest element that nobody reads, and what to write instead."""
    found = asked(matmul(1024, 1024, 1000, [4, 4, 1000 // 256]))
    assert [word(f) for f in found.values()] == ["refuted", "refuted"]
    assert found["x0"].counterexample == {"element": (0, 768)}
    assert found["x1"].counterexample == {"element": (768, 0)}
    for finding in found.values():
        assert "768:1000" in finding.reason
        assert "grid dimension 2 floor-divides 1000 by 256: use pl.cdiv(1000, 256) = 4" in finding.fix
    assert {word(f) for f in asked(matmul(1024, 1024, 1024, [4, 4, 4])).values()} == {"proved"}
    assert {word(f) for f in asked(matmul(1024, 1024, 1000, [4, 4, 4])).values()} == {"proved"}


def test_for_all_sizes() -> None:
    """The floor is refuted at the smallest size that has a remainder; pl.cdiv is proved, and so is K % 256 == 0."""
    up = ["cdiv(M, 256)", "cdiv(N, 256)"]
    floor = matmul("M", "N", "K", [*up, "K // 256"])
    found = asked(floor)["x0"]
    assert word(found) == "refuted"
    assert found.counterexample == {"element": (0, 256), "sizes": {"M": 1, "N": 1, "K": 257}}
    assert "use pl.cdiv(K, 256)" in found.fix
    assert word(asked(floor, where="K % 256 == 0")["x0"]) == "proved"
    assert {word(f) for f in asked(matmul("M", "N", "K", [*up, "cdiv(K, 256)"])).values()} == {"proved"}


@pytest.mark.parametrize(("extent", "said"), [(256 * 10**9, "proved"), (256 * 10**9 + 100, "refuted")])
def test_a_thousand_million_programs(extent: int, said: str) -> None:
    """Decided for all of them at once."""
    found = of(f"f32[{extent}]", [256], "i -> i", [10**9])
    assert word(found) == said
    if said == "refuted":
        assert found.counterexample == {"element": (256 * 10**9,)}


@pytest.mark.parametrize(
    ("array", "block", "index", "grid", "said"),
    [
        ("f32[1000]", [256], "i -> i", [3], "refuted"),
        ("f32[1000]", [256], "i -> 2 - i", [3], "refuted"),
        ("f32[300]", [256], "i -> i", [1], "refuted"),  # one whole block, and the next is one program away
        ("f32[1000,512]", [256, 128], "i -> (i % 3, i // 3)", [12], "refuted"),  # a flattened grid
        ("f32[1000]", [256], "i -> min(i, 2)", [3], "refuted"),  # the grid falls short, whatever is clamped
        ("f32[1000]", ["Element(256)"], "i -> 256 * i", [3], "refuted"),
        ("f32[1000]", ["BoundedSlice(256)"], "i -> ds(256 * i, 256)", [3], "refuted"),
        ("f32[10,1000]", [None, 256], "(i, j) -> (i, j)", [10, 3], "refuted"),
        ("f32[1000]", [256], "i -> i", [4], "proved"),
        ("f32[100]", [256], "i -> i", [1], "proved"),
        ("f32[1000]", None, None, [3], "proved"),
        ("f32[1002]", ["Element(10)"], "i -> 8 * i", [125], "proved"),
        ("f32[1000]", [100], "i -> 2 * i", [5], "info"),  # even blocks
        ("f32[300]", [256], "i -> 2 * i", [1], "info"),
        ("f32[1000]", [256], "i -> 0", [3], "info"),  # block 0 only
        ("f32[300]", [256], "i -> 0", [3], "info"),
        ("f32[1024]", [256], "i -> i", [3], "warning"),  # no remainder: one block short, or it is not needed
        ("f32[1024]", [256], "i -> i", [2], "info"),
        ("f32[512]", [256], "i -> i", [1], "info"),  # the first of two
        ("f32[1000]", [256], "i -> min(i, 2)", [4], "warning"),  # clamped below the last block
        ("f32[1000]", [256], "i -> min(i, 3)", [5], "proved"),
        ("f32[1000]", [256], "i -> min(i, 1)", [4], "info"),
        ("f32[1000]", [256], "i -> select(i == 3, 2, i)", [4], "warning"),
        ("f32[1024]", [256], "i -> min(i, 2)", [4], "warning"),
        ("f32[1000]", [256], "i -> max(i - 1, 0)", [4], "info"),  # the block before
        ("f32[1000]", [256], "i -> i + 1", [3], "info"),  # the block after
        ("f32[1000]", [256], "i -> i", [2], "info"),
        ("f32[999]", ["Element(3)"], "i -> 2 * i", [498], "info"),  # windows that overlap drop what does not fit
        ("f32[1000]", ["Element(4)"], "i -> 3 * i", [332], "info"),
        ("f32[1000]", ["BoundedSlice(256)"], "i -> ds(256 * i, 200)", [3], "info"),
        ("f32[10,100]", [None, 30], "i -> (i, 0)", [10], "info"),
        ("f32[1100]", [128], "(i, j) -> select(j * 128 <= i * 128 + 127, j, 0)", [4, 4], "info"),  # causal
    ],
)
def test_what_is_an_error_and_what_is_not(array: str, block: Any, index: str | None, grid: Any, said: str) -> None:
    """The same with three buffers: how a window is fetched changes nothing."""
    assert word(of(array, block, index, grid)) == said
    assert word(of(array, block, index, grid, buffers=3)) == said


def test_what_is_not_asked() -> None:
    """Operands that a table addresses, that have no window, and parts of arrays."""
    tables = {"t": {"array": "s32[3]", "assume": ["0 <= t < 4"]}}
    row = {"array": "f32[1000]", "block": [256]}
    assert asked(kernel([3], {**row, "index": "i -> t[i]"}, tables=tables)) == {}
    assert asked(kernel([3], {"array": "f32[1000]", "memory": "any"})) == {}


def test_an_array_that_is_given_twice() -> None:
    """What one operand leaves, the other reads: the rest by a block of its own, or neither of the two."""
    bulk = {"array": "f32[1000]", "block": [256], "index": "i -> i"}
    rest = {"array": "f32[1000]", "block": [8], "index": "i -> 96 + i", "same_as": "x0"}
    assert word(asked(kernel([3], bulk, rest))["x0"]) == "info"
    assert word(asked(kernel([3], bulk, {**rest, "same_as": ""}))["x0"]) == "refuted"
    # blocks that end where the rest begins, that are the whole rest, and that begin where the array ends
    for block, index, said in (
        (8, "i -> 95", "refuted"),
        (8, "i -> 96", "info"),
        (1, "i -> 999", "info"),
        (8, "i -> 125", "refuted"),
    ):
        other = {"array": "f32[1000]", "block": [block], "index": index, "same_as": "x0"}
        assert word(asked(kernel([3], bulk, other))["x0"]) == said, index
    gram = [{"array": "f32[1000,1000]", "block": [256, 256]} for _ in range(2)]
    left = gram[0] | {"index": "(i, j, k) -> (i, k)"}
    right = gram[1] | {"index": "(i, j, k) -> (j, k)", "same_as": "x0"}
    assert {word(f) for f in asked(kernel([4, 4, 3], left, right)).values()} == {"refuted"}


def test_an_input_that_is_updated_in_place() -> None:
    """What is not read keeps its values: a warning, as for the output."""
    row = {"array": "f32[1000]", "block": [256], "index": "i -> i"}
    found = asked(kernel([3], row, outputs=[{"name": "o", **row}], aliases={"x0": "o"}))
    assert word(found["x0"]) == "warning"


@given(
    st.integers(1, 14), st.integers(1, 5), st.integers(-2, 3), st.integers(-3, 4), st.integers(1, 6), st.integers(1, 3)
)
@example(7, 3, 1, 0, 2, 1)
@example(7, 3, 2, 0, 1, 1)
def test_against_plain_ints(extent: int, block: int, by: int, start: int, programs: int, other: int) -> None:
    """Proved where every element is read; an error only where exactly the elements behind the whole blocks are not."""
    found = of(f"f32[{extent}]", [block], f"(i, j) -> {by} * i + {start} + j // {other}", [programs, other])
    places = [by * i + start + j // other for i, j in itertools.product(range(programs), range(other))]
    read = {e for p in places for e in range(p * block, (p + 1) * block) if 0 <= e < extent}
    left = sorted(set(range(extent)) - read)
    if not left:
        assert word(found) == "proved"
        return
    assert found.counterexample == {"element": (left[0],)}
    remainder = list(range(math.floor(extent / block) * block, extent))
    if word(found) == "refuted":
        assert left == remainder
    elif word(found) == "warning":
        # one block short, and no remainder
        assert not remainder
        assert left == list(range(extent - block, extent))
        assert extent >= 3 * block
    else:
        assert word(found) == "info"
        # what is no error: no remainder, or one block whose successor no further program would read
        assert left != remainder or len(read) == 0 or extent // block == 1 or by == 0
        assert remainder or left != list(range(extent - block, extent)) or extent < 3 * block or by == 0
