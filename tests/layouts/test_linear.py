"""Triton's linear layouts: text, place and what is proved of them, against what Triton prints and documents."""

from __future__ import annotations

import itertools
from functools import reduce
from operator import xor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.layouts.linear import LinearLayout, looks_like, read

# printed by Triton for getCoreMatrixLinearLayout of #ttg.nvmma_shared<{swizzlingByteWidth = 128, elementBitWidth = 16}>
CORE_MATRIX = """\
 - offset=1 -> (0, 1)
   offset=2 -> (0, 2)
   offset=4 -> (0, 4)
   offset=8 -> (0, 8)
   offset=16 -> (0, 16)
   offset=32 -> (0, 32)
   offset=64 -> (1, 8)
   offset=128 -> (2, 16)
   offset=256 -> (4, 32)
where out dims are: [dim0 (size 8), dim1 (size 64)]"""

# test/TritonGPU of triton: amd_in_thread_transpose, the layout it expects
TRANSPOSED = """\
 - register=1 -> (1, 0)
   register=2 -> (2, 0)
   register=4 -> (0, 1)
   register=8 -> (0, 2)
 - lane=1 -> (0, 4)
   lane=2 -> (0, 8)
   lane=4 -> (0, 16)
   lane=8 -> (4, 0)
   lane=16 -> (8, 0)
   lane=32 -> (16, 0)
 - warp is a size 1 dimension
 - block is a size 1 dimension
where out dims are: [dim0 (size 32), dim1 (size 32)]"""


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    widths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    outs = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    inputs = [
        (f"in{n}", tuple(tuple(draw(st.integers(0, 2**out - 1)) for out in outs) for _ in range(width)))
        for n, width in enumerate(widths)
    ]
    return LinearLayout(tuple(inputs), tuple((f"out{n}", 2**out) for n, out in enumerate(outs)))


@given(layouts())
def test_place_is_the_xor_of_bases(layout: LinearLayout) -> None:
    """Every index goes to the xor of the bases of its bits; and the text reads back, in either form."""
    m = layout.index_map()
    for index in itertools.product(*[range(2 ** len(bases)) for _, bases in layout.inputs]):
        chosen = [
            basis
            for entry, (_, bases) in zip(index, layout.inputs, strict=True)
            for k, basis in enumerate(bases)
            if entry >> k & 1
        ]
        wanted = tuple(reduce(xor, [basis[d] for basis in chosen], 0) for d in range(len(layout.outputs)))
        assert m.at(index) == wanted
    assert lp.read_layout(str(layout)) == lp.read_layout(layout.triton()) == layout


@settings(max_examples=40)
@given(layouts())
def test_properties_by_enumeration(layout: LinearLayout) -> None:
    """injective and covers are what the list of places says; every place is inside."""
    m = layout.index_map()
    places = [m.at(i) for i in itertools.product(*[range(e) for e in m.domain.extents])]  # type: ignore[arg-type]
    found = {name: lp.ask(name, layout).verdict.value for name in ("injective", "covers", "in_bounds")}
    assert found == {
        "injective": "proved" if len(set(places)) == len(places) else "refuted",
        "covers": "proved" if len(set(places)) == m.range.count() else "refuted",
        "in_bounds": "proved",
    }


@pytest.mark.parametrize("text", [CORE_MATRIX, TRANSPOSED])
def test_triton_text_is_printed_again(text: str) -> None:
    """What Triton prints is read, and printed again letter by letter."""
    layout = lp.read_layout(text)
    assert isinstance(layout, LinearLayout)
    assert layout.triton() == text
    assert lp.ask("bijective", layout).verdict is lp.Verdict.PROVED


def test_the_example_in_tritons_header() -> None:
    """include/triton/Tools/LinearLayout.h: L(t, w) of the swizzled 4x4 layout, the whole table."""
    layout = {"in": {"t": [[1, 1], [2, 2]], "w": [[0, 1], [0, 2]]}, "out": ["x", "y"]}
    table = lp.table({"linear": layout})
    assert table.tolist() == [
        [[0, 0], [0, 1], [0, 2], [0, 3]],
        [[1, 1], [1, 0], [1, 3], [1, 2]],
        [[2, 2], [2, 3], [2, 0], [2, 1]],
        [[3, 3], [3, 2], [3, 1], [3, 0]],
    ]


def test_a_swizzle_of_triton_is_that_of_cute() -> None:
    """128-byte swizzle, 16-bit elements: Triton's offset -> (row, column) undoes CuTe's Sw<3,3,3> o (8,64):(64,1)."""
    to_element = lp.read_layout(CORE_MATRIX).index_map()
    to_offset = lp.read_layout("Sw<3,3,3> o 0 o (8,64):(64,1)").index_map()
    assert [to_offset.at(to_element.at((x,))) for x in range(512)] == [(x,) for x in range(512)]


@pytest.mark.parametrize(
    ("name", "text", "counterexample"),
    [
        ("injective", "lane=1 -> (1); lane=2 -> (2); warp=1 -> (3)", {"first": (0, 0), "second": (3, 1)}),
        ("injective", "lane=1 -> (0, 1); lane=2 -> (0, 0)", {"first": (0,), "second": (2,)}),
        ("covers", "lane=1 -> (1); lane=2 -> (4)", {"place": (2,)}),
        ("covers", "lane=1 -> (3); lane=2 -> (3); where out dims are: [x (size 4)]", {"place": (1,)}),
        ("injective", "lane=1 -> (5); lane=2 -> (6); lane=4 -> (2)", None),
        ("covers", "lane=1 -> (5); lane=2 -> (6); lane=4 -> (2)", None),
    ],
)
def test_by_rank(name: str, text: str, counterexample: Any) -> None:
    """Dependent bases collide at the smallest dependency; missing ones leave the smallest hole."""
    assert lp.ask(name, text).counterexample == counterexample


def test_2_to_the_31_is_no_limit() -> None:
    """Triton's output sizes end at 2**31; here a layout of 2**60 elements is decided, by rank."""
    bases = [[3 << k if k < 59 else 1 << k] for k in range(60)]
    layout = {"linear": {"in": {"x": bases}, "out": ["y"]}}
    assert lp.ask("bijective", layout).decided_by == "bits"
    bases[59] = [1]
    broken = lp.ask("injective", {"linear": {"in": {"x": bases}, "out": ["y"]}})
    # 3<<k is bits k and k+1, so all of 3<<0 .. 3<<58 give bits 0 and 59; 1 alone with none of bit 59 is new
    assert broken.verdict is lp.Verdict.PROVED
    bases[59] = [3]
    assert lp.ask("injective", {"linear": {"in": {"x": bases}, "out": ["y"]}}).counterexample == {
        "first": (0,),
        "second": (2**59 + 1,),
    }


def test_what_looks_linear() -> None:
    """A basis or a list of outputs; an index map is not one."""
    assert looks_like(CORE_MATRIX)
    assert looks_like("x=1 -> (1)")
    assert not looks_like("(i < 4, j < 8) -> (i, j)")
    assert not looks_like("f32[3,5]")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "x=1 -> (1); x=4 -> (2)",
            "the basis x=2 is missing or out of order\n  x=1 -> (1); x=4 -> (2)\n              ^ column 13",
        ),
        (
            "x=1 -> (1); y",
            "a line is 'lane=1 -> (0, 1)', 'lane is a size 1 dimension' or 'where out dims are: [dim0 (size 8)]'\n"
            "  x=1 -> (1); y\n              ^ column 13",
        ),
        ("x=1 -> (a)", "a basis is integers in round brackets, as in (0, 1)\n  x=1 -> (a)\n  ^ column 1"),
        ("x=1 -> (-1)", "x=1 has the base -1; bases are 0 .. 2**62 - 1\n  x=1 -> (-1)"),
        ("x=1 -> (1, 2); x=2 -> (1)", "x=2 has 1 coordinates for 2 output dimensions\n  x=1 -> (1, 2); x=2 -> (1)"),
        (
            "x=1 -> (1); x is a size 1 dimension",
            "x has bases, so its size is not 1\n  x=1 -> (1); x is a size 1 dimension\n              ^ column 13",
        ),
        (
            "x=1 -> (4); where out dims are: [a (size 4)]",
            "x=1 has the base 4, outside a of size 4\n  x=1 -> (4); where out dims are: [a (size 4)]",
        ),
        (
            "x=1 -> (1); where out dims are: [a (size 3)]",
            "the size of a must be a power of two, not 3\n  x=1 -> (1); where out dims are: [a (size 3)]",
        ),
        (
            "x=1 -> (1); where out dims are: [a b]",
            "'a b' is no new output dimension\n  x=1 -> (1); where out dims are: [a b]\n              ^ column 13",
        ),
        (
            "where out dims are: [a]; x=1 -> (1)",
            "nothing may follow the output dimensions\n  where out dims are: [a]; x=1 -> (1)\n"
            "                           ^ column 26",
        ),
        (
            "where out dims are: [a]",
            "a linear layout has at least one input and one output dimension\n  where out dims are: [a]",
        ),
        ({"in": {}, "out": ["x"]}, "in gives each input its bases, {lane: [[0, 1], [1, 0]]}, not {}"),
        ({"in": {"x": [[1]]}}, "a linear layout is a text, or a mapping with in and out; got in"),
        ({"in": {"x": 1}, "out": ["y"]}, "the bases of x are a list such as [[0, 1], [1, 0]], not 1"),
        ({"in": {"x": [1]}, "out": ["y"]}, "a basis of x is a list of integers, one per output; got 1"),
        ({"in": {"x": [[1]]}, "out": ["y", "y"]}, "out names a dimension twice: y, y"),
        ({"in": {"x": [[1]]}, "out": "y"}, "out is a list of names, or names with sizes, not 'y'"),
        ({"in": {"x": [[1]]}, "out": {"y": 2.0}}, "the size of y must be a power of two, not 2.0"),
        ({"in": {"x": [[0]] * 63}, "out": ["y"]}, "x has 63 bases; the most is 62"),
        ({"in": {"x y": [[1]]}, "out": ["y"]}, "'x y' is no name of a dimension: letters, digits and _"),
        ({"in": {"x": [[1]]}, "out": {"a; b": 2}}, "'a; b' is no name of a dimension: letters, digits and _"),
        (7, "a linear layout is a text, or a mapping with in and out; got 7"),
    ],
)
def test_what_is_refused(value: Any, message: str) -> None:
    """What makes Triton abort the process is a LayoutError here, with the value, the rule and the place."""
    with pytest.raises(LayoutError) as caught:
        read(value)
    assert str(caught.value) == message
