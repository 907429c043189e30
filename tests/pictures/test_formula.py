"""Formulas: as people write them, and equal to `place` on every point that is tried."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_map
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.space import Space
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.pictures.formula import coordinates, formula_latex, formula_text, offset, symbols, traced
from layoutproof.registry.read import map_of, read_layout
from tests.questions.layouts_at_random import xla_layouts

pytestmark = pytest.mark.slow

TEXTS = {
    "f32[3,5]{1,0:T(2,2)}": (
        "(i, j) -> (i // 2, j // 2, i % 2, j % 2)",
        "offset = 12*floor(i/2) + 4*floor(j/2) + 2*Mod(i,2) + Mod(j,2)",
    ),
    # tiles that hold the whole array change nothing, and the formula says so
    "f32[8,128]{1,0:T(8,128)}": ("(i, j) -> (i // 8, j // 128, i % 8, j % 128)", "offset = 128*i + j"),
    "bf16[N,M]{1,0:T(8,128)(2,1)}": (
        "(i, j) -> (i // 8, j // 128, i % 8 // 2, j % 128, i % 8 % 2, 0)",
        "offset = 1024*ceiling(M/128)*floor(i/8) + 1024*floor(j/128) + 256*floor(Mod(i,8)/2) + 2*Mod(j,128) + Mod(i,2)",
    ),
    "f32[2,7,8]{2,1,0:T(*,*,3)}": (
        "(i, j, k) -> (((i * 7 + j) * 8 + k) // 3, ((i * 7 + j) * 8 + k) % 3)",
        "offset = 56*i + 8*j + k",
    ),
    "f32[3,5] strides (-4,1)": ("(i, j) -> (8 + i * (-4) + j * 1)", "offset = -4*i + j + 8"),
    "f32[]": ("() -> ()", "offset = 0"),
    "f32[i,5]{1,0}": ("(i0, j) -> (i0, j)", "offset = 5*i0 + j"),
}


@pytest.mark.parametrize("layout", TEXTS)
def test_text(layout: str) -> None:
    """The map on the first line, and for a memory its offset on the second, heaviest term first."""
    assert formula_text(layout) == "\n".join(TEXTS[layout])


def test_maps_without_memory_have_no_offset() -> None:
    """A user's map shows its coordinates only."""
    assert formula_text("(i < 10, j < N) -> (min(i, 3), j % 4)") == "(i, j) -> (min(i, 3), j % 4)"


def test_replicas_are_named() -> None:
    """Where an element has several places, the formula takes the replica as well."""
    m = IndexMap(Space(("i",), (8,)), Space(("lane",), (16,)), lambda x, c, _: (x[0] + 8 * c[0],), Space(("r",), (2,)))
    assert formula_text(m) == "(i) replica (r) -> (i + 8 * r)\nlane = 8*r + i"
    assert formula_latex(m) == r"\left(i, r\right) \mapsto \left(8 r + i\right)"


def test_latex() -> None:
    """Floors as brackets, remainders as mod, ceilings for padded sizes."""
    assert formula_latex("f32[3,N]{1,0:T(2,2)}") == (
        r"\mathrm{offset}(i, j) = 4 \left\lceil{\frac{N}{2}}\right\rceil \left\lfloor{\frac{i}{2}}\right\rfloor"
        r" + 4 \left\lfloor{\frac{j}{2}}\right\rfloor + 2 \left(i \bmod 2\right) + \left(j \bmod 2\right)"
    )


def value(expression: Any, m: IndexMap, index: tuple[int, ...], sizes: dict[str, int]) -> int:
    """A formula with numbers put in."""
    known = dict(zip(symbols(m).values(), index, strict=True))
    known |= {sympy.Symbol(name, integer=True, positive=True): number for name, number in sizes.items()}
    exact = sympy.sympify(expression).subs(known, simultaneous=True)
    number = exact.replace(sympy.Function("xor", integer=True), lambda a, b: sympy.Integer(int(a) ^ int(b)))
    assert number.is_Integer, f"{expression} at {known} is {number}"
    return int(number)


@given(xla_layouts(), st.data())
def test_the_offset_is_what_place_says(layout: XlaLayout, data: st.DataObject) -> None:
    """The simplified sum equals the offset of `place` on any index of any layout."""
    m = layout.index_map()
    if 0 in layout.dims:
        return
    formula = offset(m)
    for _ in range(5):
        index = tuple(data.draw(st.integers(0, extent - 1)) for extent in layout.dims)
        assert value(formula, m, index, {}) == m.flat().at(index)[0]


@pytest.mark.parametrize(
    "text",
    [
        "bf16[N,M]{1,0:T(8,128)(2,1)}",
        "f32[N,7,M]{2,1,0:T(*,8,4)(*,3)}",
        "f32[2*N,M]{0,1:T(4)(3,2)}",
        "(i < N, j < M) -> (xor(i, 5), min(i, 3) * 2 - j, select(i < j, i, N), max(j, M // 3) % 4)",
        "(i < N, j < M) -> (select(i == j and not (i < 2), 1, 0), (i * M + j) // 3, min(N, M) // 2 + j % (N + 1))",
        "(i < N, j < M) -> (select(i < 2 or M <= j, 7 // (i + 1), (i - j) % 5), (i - j) // 3)",
    ],
)
@given(st.data())
@settings(max_examples=25)
def test_run_time_sizes_and_case_distinctions(text: str, data: st.DataObject) -> None:
    """Formulas over size symbols equal `place` for all sizes and indices tried."""
    m = map_of(read_layout(text))
    sizes = {name: data.draw(st.integers(1, 40), label=name) for name in m.sizes()}
    on = Numbers(sizes)
    index = tuple(data.draw(st.integers(0, on.size(extent) - 1)) for extent in m.domain.extents)
    formulas = [offset(m)] if m.memory is not None else coordinates(m)
    place = (m.flat() if m.memory is not None else m).place(index, (), on)
    assert [value(formula, m, index, sizes) for formula in formulas] == list(place)


def test_what_is_left_out_is_always_zero() -> None:
    """Divisions that change nothing are left out, and those that change only the last index are not."""
    m = map_of(read_layout("(i < 9, j < 7) -> (i // 4 % 2, (i + j) // 14, i * j % 48, (i + 1) // 9, i // 9 + j % 7)"))
    formulas = coordinates(m)
    for i in range(9):
        for j in range(7):
            assert [value(formula, m, (i, j), {}) for formula in formulas] == list(m.at((i, j)))
    assert formulas[-1] == symbols(m)["j"]


@pytest.mark.parametrize("body", ["3 // (i - i)", "3 % (i - i)"])
def test_divisions_by_zero_have_no_formula(body: str) -> None:
    """What divides by zero for every index is refused, not shown as sympy's infinity."""
    with pytest.raises(LayoutError, match="divides by zero"):
        formula_latex(f"(i < 4) -> ({body})")


@given(xla_layouts())
@settings(max_examples=50)
def test_the_traced_map_can_be_read_back(layout: XlaLayout) -> None:
    """The first line is the project's own map language: read again, it gives the same places."""
    m = layout.index_map()
    index, _, terms = traced(m)
    if not index or 0 in layout.dims:
        return
    names, again = parse_map(f"({', '.join(index)}) -> ({', '.join(map(str, terms))},)")
    last = tuple(extent - 1 for extent in layout.dims)
    at = dict(zip(names, last, strict=True))
    assert tuple(term.evaluate(at, Numbers()) for term in again) == m.at(last)
