"""Layout expressions in Python: each operator against its equation on plain ints, and every refusal by name."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.algebra import axe
from layoutproof.registry.expressions import operator, operator_module, operators

GRID, ATOM = "S[(8,8):(8,1)]", "S[(2,3):(3,1)]"

RESULTS: list[tuple[dict[str, Any], str]] = [
    ({"tile": [GRID, ATOM]}, "S[(8,2,8,3):(48,3,6,1)] on (16,24)"),
    ({"tile": ["S[2:2] + R[2:1]", "S[4:1]"]}, "S[(2,4):(8,1)] + R[2:4] on (8)"),
    ({"slice": ["S[(2,8,3,8):(192,8,64,1)] on (16,24)", "0:8, 8:24"]}, "S[(8,2,8):(8,64,1)] + 64 on (8,16)"),
    ({"slice": ["S[(2,8,3,8):(192,8,64,1)] on (16,24)", [[0, 8], [8, 24]]]}, "S[(8,2,8):(8,64,1)] + 64 on (8,16)"),
    ({"slice": [GRID, "6:, :"]}, "S[16:1] + 48 on (2,8)"),
    ({"slice": ["S[(N,8):(8,1)]", "n:n+1, 0:8"]}, "S[8:1] + 8*n on (1,8)"),
    ({"sum": ["S[(2,2):(8,2)]", "S[(2,2):(4,1)]"]}, "S[16:1] on (4,4)"),
    ({"group": ["S[64:1]", "(8,8)"]}, "S[(8,8):(8,1)] on (8,8)"),
    ({"group": ["S[64:1]", [8, 8]]}, "S[(8,8):(8,1)] on (8,8)"),
    ({"canonical": "S[(1,4,8):(7,8,1)] + R[3:-2] + 4"}, "S[32:1] + R[3:2]"),
    ({"storage": "S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)]"}, "S[(32,64):(128,1)]"),
    ({"storage": ["S[(2,8):(1@core,1@vmem)]", "vmem"]}, "S[8:1@vmem]"),
    ({"fuse": "S[(2,32):(1@warpid,1@laneid)]"}, "S[64:1@tx]"),
    ({"fuse": ["S[(2,4,32):(1@wgid,1@wid_in_wg,1@laneid)]", "wid_in_wg, laneid"]}, "S[(2,128):(1@wgid,1@tid_in_wg)]"),
    ({"compose": ["(6,2):(8,2)", "(4,3):(3,1)"]}, "((2,2),3):((24,2),8)"),
    ({"divide": ["(4,2,3):(2,1,8)", "4:2"]}, "((2,2),(2,3)):((4,1),(2,8))"),
    ({"product": ["(4,2):(1,4)", "3:1"]}, "((4,2),3):((1,4),8)"),
    ({"blocked_product": ["(2,5):(5,1)", "(3,4):(1,3)"]}, "((2,3),(5,4)):((5,10),(1,30))"),
    ({"raked_product": ["(2,5):(5,1)", "(3,4):(1,3)"]}, "((3,2),(4,5)):((10,5),(30,1))"),
    ({"coalesce": "(2,(1,6)):(1,(6,2))"}, "12:1"),
    ({"slice": [{"tile": [GRID, ATOM]}, "0:2, 0:3"]}, "S[6:1] on (2,3)"),
]


@pytest.mark.parametrize(("expression", "result"), RESULTS, ids=str)
def test_what_an_expression_is(expression: dict[str, Any], result: str) -> None:
    """The layout, read again from its text, with the equation that was proved."""
    layout = lp.read_layout(expression)
    assert str(layout) == result
    assert layout == lp.read_layout(result)
    (name,) = expression
    assert layout.derivation[-1].startswith(f"{result} = {name}(")
    assert layout.derivation[-1].endswith(operator(name).equation)
    assert pickle.loads(pickle.dumps(layout)).derivation == layout.derivation


def test_every_operator_is_tried() -> None:
    """Each has a result here, and its page has an example that is so."""
    assert {name for expression, _ in RESULTS for name in expression} == set(operators())
    for name in operators():
        page = operator_module(name).__doc__
        assert "Example: `{" + name in page
        assert "Source: " in page


def test_the_inner_steps_come_first() -> None:
    """A nested expression says both of its steps, the inner one once."""
    inner = {"tile": [GRID, ATOM]}
    found = lp.read_layout({"sum": [inner, inner]}).derivation
    assert [step.partition(" = ")[2].partition("(")[0] for step in found] == ["tile", "sum"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tiel": [GRID, ATOM]}, "unknown layout language or operator 'tiel'; did you mean 'tile'?"),
    ({"tile": [GRID]}, "tile is written {tile: [A, B]}; got 1 operand"),
    ({"slice": GRID}, "slice is written {slice: [A, box]}; got 1 operand"),
    ({"tile": [GRID, "S[2:1]"]}, "tile: the shapes (8, 8) and (2) have different ranks"),
    ({"tile": [GRID, "f32[3]{0}"]}, "tile is about Axe layouts, not f32[3]{0}"),
    ({"compose": [GRID, "4:1"]}, "compose is about CuTe layouts, not S[(8,8):(8,1)]"),
    ({"slice": ["S[8:1]", "6:12"]}, "slice: the slice [6, 12) of dimension 0 is not within 0..8"),
    ({"slice": [GRID, "3"]}, "slice: the box 3 has 1 dimensions, the shape (8, 8) has 2"),
    ({"slice": ["S[8:1]", "3"]}, 'slice: a box is begin:end for each dimension, as in "0:8, 4:8", not 3'),
    ({"slice": ["S[8:1]", 3]}, 'slice: a box is begin:end for each dimension, as in "0:8, 4:8", not 3'),
    ({"slice": ["S[8:1]", [[0, 1.5]]]}, "slice: a box is begin:end for each dimension"),
    ({"group": ["S[64:1]", "(8,9)"]}, "group: the shape (8, 9) has 72 elements but the layout S[64:1] has 64"),
    ({"group": ["S[64:1]", 64.0]}, 'group: a shape is written "(8,8)", not 64.0'),
    ({"group": ["S[(6,2):(1,9)]", "(4,3)"]}, "do not split at the shape (4, 3)"),
    ({"slice": ["S[(4,4):(100,1)] on (16)", "3:6"]}, "the slice [3, 6) of the extents (4, 4) is no product of digits"),
    ({"fuse": "S[(2,64):(1@warpid,1@laneid)]"}, "laneid goes from 0 to 63"),
    ({"fuse": ["S[4:1@laneid]", "laneid"]}, 'fuse: a pair of axes is written "warpid, laneid", the slower first, not '),
    ({"storage": "S[(2,8):(1@core,1@vmem)]"}, "whether core is memory is not known; name the memory axes"),
    ({"storage": ["S[8:1]", "vmem"]}, "storage: the layout S[8:1] has no axis 'vmem'; it has m"),
    ({"compose": ["(6,2):(1,7)", "(3,2):(2,3)"]}, "which gives 7 at 5 instead of 8"),
    ({"tile": [{"slice": ["S[8:1]", "6:12"]}, "S[2:1]"]}, "slice: the slice [6, 12)"),
    ({"tile": [GRID, ATOM], "sum": [GRID, ATOM]}, "a mapping with one key, the language"),
    ({"canonical": 5}, "a layout is a text, a mapping, or an object"),
]


@pytest.mark.parametrize(("expression", "error"), REFUSED, ids=str)
def test_what_is_refused(expression: dict[str, Any], error: str) -> None:
    """An error that says why, never a layout."""
    with pytest.raises(lp.LayoutError) as caught:
        lp.read_layout(expression)
    assert error in str(caught.value)


def test_what_depends_on_sizes_is_unknown() -> None:
    """Of a layout with sizes a missing result is no proof that there is none; the answer is a finding."""
    expression = {"slice": ["S[(N,4):(M,1)] on (4*N)", "a:a+6"]}
    with pytest.raises(lp.Undecided, match="it is not known that the slice of 6 from a fits"):
        lp.read_layout(expression)
    found = lp.ask("injective", expression)
    assert (found.verdict, found.exit_code) == (lp.Verdict.UNKNOWN, 3)
    assert "is not known" in found.reason


def test_nested_too_deep_is_an_error() -> None:
    """No recursion of Python's reaches the caller."""
    deep: Any = "S[4:1]"
    for _ in range(5000):
        deep = {"canonical": deep}
    with pytest.raises(lp.LayoutError, match="deep"):
        lp.read_layout(deep)


def test_operands_may_be_layouts() -> None:
    """Objects as well as texts, and lp.algebra gives the same."""
    grid, atom = lp.read_layout(GRID), lp.read_layout(ATOM)
    assert lp.read_layout({"tile": [grid, ATOM]}) == axe.tile(grid, (8, 8), atom, (2, 3))


extents = st.integers(1, 4)
strides = st.integers(-6, 6)


@st.composite
def boxes(draw: st.DrawFn) -> str:
    """An Axe layout of two dimensions, as text."""
    e, s = [draw(extents) for _ in range(2)], [draw(strides) for _ in range(2)]
    replica = draw(st.sampled_from(["", " + R[2:5]", " + R[(2,3):(1,-4)] + 7"]))
    return f"S[({e[0]},{e[1]}):({s[0]},{s[1]})]{replica}"


def places(layout: Any, index: tuple[int, ...], shape: tuple[int, ...]) -> set[int]:
    """Where an element is, on axis m."""
    return {place["m"] for place in axe.forward(layout, index, shape)}


@given(boxes(), boxes(), st.sampled_from(["tile", "sum"]))
def test_the_equations_on_plain_ints(left: str, right: str, name: str) -> None:
    """T(x || y) = A(x) * span(B) + B(y), and without the span for the sum: by enumeration."""
    a, b = lp.read_layout(left), lp.read_layout(right)
    outer, inner = a.box(), b.box()
    found = lp.read_layout({name: [left, right]})
    factor = axe.span(b, "m") if name == "tile" else 1
    for x in itertools.product(*map(range, outer)):
        for y in itertools.product(*map(range, inner)):
            both = tuple(i * n + j for i, j, n in zip(x, y, inner, strict=True))
            wanted = {p * factor + q for p in places(a, x, outer) for q in places(b, y, inner)}
            assert places(found, both, found.box()) == wanted


@given(boxes(), st.data())
def test_a_slice_on_plain_ints(text: str, data: st.DataObject) -> None:
    """T(u) = A(u + begin), by enumeration."""
    layout = lp.read_layout(text)
    begins = [data.draw(st.integers(0, extent - 1)) for extent in layout.box()]
    ends = [data.draw(st.integers(b + 1, extent)) for b, extent in zip(begins, layout.box(), strict=True)]
    box = ", ".join(f"{b}:{e}" for b, e in zip(begins, ends, strict=True))
    found = lp.read_layout({"slice": [text, box]})
    for u in itertools.product(*(range(e - b) for b, e in zip(begins, ends, strict=True))):
        moved = tuple(i + b for i, b in zip(u, begins, strict=True))
        assert places(found, u, found.box()) == places(layout, moved, layout.box())
