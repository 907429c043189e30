"""A kernel whose amounts are terms over parameters: bound to ints it is the kernel that the numbers would have made."""

from __future__ import annotations

from typing import Any

import pytest

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import symbol
from layoutproof.core.term import value_of
from layoutproof.kernel.kernel import Block, Kernel
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.kernel.kernel_text import read_kernel
from layoutproof.pallas.judge import judge
from layoutproof.solvers.interval import Interval, IntervalNumbers


def mapping(m: Any = "m", k: Any = "k", bm: Any = "bm", bk: Any = "bk", off: Any = "off") -> dict[str, Any]:
    """A kernel with names, or with numbers in their places."""
    return {
        "grid": [f"cdiv({m}, {bm})", f"cdiv({k}, {bk})"],
        "inputs": [
            {
                "name": "x",
                "array": f"bf16[{m},{k}]",
                "block": [bm, bk],
                "index": f"(a, b) -> (a, (b + {off}) // {off})",
            },
            {"name": "y", "array": f"f32[{k}]", "block": [f"Element({bk}, (1, 0))"], "index": f"(a, b) -> (b * {bk},)"},
        ],
        "outputs": [{"array": f"f32[{m},{k}]", "block": [bm, None], "index": "(a, b) -> (a, t[b])"}],
        "tables": {"t": {"array": f"s32[{m}]", "assume": [f"0 <= t < {k}"]}},
        "scratch": [{"array": f"f32[{bm},{bk}]"}],
        "scoped": [{"array": f"f32[2,{bk}]"}],
    }


NAMES = ("m", "k", "bm", "bk", "off")


def parametric() -> Kernel:
    return read_kernel(mapping(), ELEMENT_BITS, NAMES)[0]


@pytest.mark.parametrize("numbers", [(100, 64, 16, 32, 2), (7, 5, 3, 5, 1), (1, 1, 1, 1, 1)])
def test_bound_is_as_written_with_numbers(numbers: tuple[int, ...]) -> None:
    written, _ = read_kernel(mapping(*numbers), ELEMENT_BITS)
    assert mapping_of(parametric().bind(dict(zip(NAMES, numbers, strict=True)))) == mapping_of(written)


def test_parameters_are_every_name_that_is_no_grid_index() -> None:
    assert sorted(parametric().parameters()) == sorted(NAMES)
    assert parametric().bind(dict.fromkeys(NAMES, 4)).parameters() == ()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"inputs": [{"array": "f32[m]", "block": ["bm - 8"]}]},
            "inputs[0]: block, dimension 0 must be at least 1, not 0",
        ),
        ({"inputs": [{"array": "f32[m - 9]"}]}, "inputs[0]: array, dimension 0 must be at least 0, not -1"),
        ({"scratch": [{"array": "f32[m - 9]"}]}, "scratch[0], dimension 0 must be at least 0, not -1"),
        ({"grid": ["m // (m - 8)"]}, "a size of the kernel divides by 0"),
        (
            {
                "inputs": [{"name": "x", "array": "f32[m]"}],
                "outputs": [{"name": "o", "array": "f32[k]"}],
                "aliases": {"x": "o"},
            },
            "aliases share one buffer, so shape and element type are equal: x f32[8] and o f32[4]",
        ),
    ],
)  # fmt: skip
def test_rules_that_need_the_numbers_are_asked_when_they_are_there(change: dict[str, Any], why: str) -> None:
    """The same rules that hold of numbers in a text, and in the same words."""
    kernel, _ = read_kernel({"grid": [1], "inputs": [{"array": "f32[m]"}], **change}, ELEMENT_BITS, NAMES)
    with pytest.raises(LayoutError) as caught:
        kernel.bind({"m": 8, "k": 4, "bm": 8})
    assert caught.value.problem == why


def test_a_parameter_without_a_value_is_unknown() -> None:
    with pytest.raises(Undecided, match="bk"):
        parametric().bind({"m": 8, "k": 8, "bm": 8, "off": 1})


def test_nothing_is_proved_of_a_kernel_that_is_not_bound() -> None:
    with pytest.raises(Undecided, match="has still to be chosen"):
        judge(parametric())


def test_a_block_that_is_the_whole_array_may_be_empty() -> None:
    text = {"grid": [1], "inputs": [{"array": "f32[m - 8]"}]}
    empty = read_kernel(text, ELEMENT_BITS, NAMES)[0].bind({"m": 8})
    assert mapping_of(empty) == mapping_of(read_kernel({**text, "inputs": [{"array": "f32[0]"}]}, ELEMENT_BITS)[0])


def test_an_amount_on_intervals_holds_that_of_every_choice() -> None:
    (rows, _), on = parametric().grid, IntervalNumbers()
    box = {"m": 100, "bm": Interval(8, 48)}
    bounds = value_of(rows, box, on)
    assert (bounds.low, bounds.high) == (2, 18)
    exact = [value_of(rows, {"m": 100, "bm": bm}, Numbers()) for bm in range(8, 49)]
    assert bounds.low <= min(exact) <= max(exact) <= bounds.high


@pytest.mark.parametrize("names", [("m", "n", "k"), ("i", "j", "k")])
def test_sizes_may_be_named_as_a_grid_index_that_nobody_named(names: tuple[str, ...]) -> None:
    """i, j, k are what a grid without names gets; `m, n, k` are what people call the sizes of a product."""
    m, n, k = names
    text = {
        "grid": [f"cdiv({m}, 8)", f"cdiv({n}, 8)", f"cdiv({k}, 8)"],
        "inputs": [{"array": f"f32[{m},{k}]", "block": [8, 8], "index": f"(a, b, c) -> (a, c + {k} - {k})"}],
    }
    bound = read_kernel(text, ELEMENT_BITS, names)[0].bind({m: 16, n: 24, k: 32})
    assert bound.grid == (2, 3, 4)
    assert [
        t.evaluate(dict(zip(bound.grid_names, (1, 2, 3), strict=True)), Numbers()) for t in bound.operands[0].index
    ] == [1, 3]


@pytest.mark.parametrize(
    ("block", "returned", "start"),
    [
        (Block("blocked", 8), 3, 24),
        (Block("squeezed", 1), 3, 3),
        (Block("element", 8, 2, 1), 3, 1),
        (Block("element", 8), 3, 3),
        (Block("bounded", 8), 3, 3),
    ],
)
def test_where_a_block_starts(block: Block, returned: int, start: int) -> None:
    assert block.start(returned) == start
    assert block.start(Interval(returned, returned + 1), IntervalNumbers()).low == start


def test_where_a_block_of_a_symbolic_size_starts() -> None:
    assert Block("blocked", symbol("N")).start(3, Numbers({"N": 5})) == 15
