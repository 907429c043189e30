"""Layouts as the objects of isl, Z3 and sympy: each says at every point what `place` says."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import islpy
import pytest
import sympy
import z3

import layoutproof as lp
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.pictures.formula import proof
from layoutproof.questions.convert import language_of
from layoutproof.registry.read import language, languages, map_of, read_layout
from layoutproof.solvers.isl import relation

pytestmark = pytest.mark.slow

LAYOUTS = (
    *(
        "f32[3,5]{1,0:T(2,2)}",
        "bf16[5,6]{1,0:T(4,3)(2,1)}",
        "f32[2,3,4]{0,1,2:T(*,3)}",
        "f32[]",
        "s4[7]{0:T(4)L(8)E(4)}",
    ),
    *("f32[N,M]{1,0:T(2,3)}", "f32[N,4]{0,1}", "f32[3,M]{1,0:T(2,b)}", "f32[i,5]{1,0}"),
    *("f32[3,5] strides (-4,1)", "f32[N,4] strides (4,1) offset N", "f32[N,M] strides (M,1)"),
    *(
        "f32 ((2,3),(2,2)):((1,8),(2,24))",
        "(N,4):(4,1)",
        "Sw<2,0,3> o 0 o (8,4):(4,1)",
        "f16 Sw<1,1,1> o 3 o (4,4):(4,1)",
    ),
    *("S[(8,4):(4@lane,1@reg)]", "S[(2,4,8):(32,1,4)] on (8,8)", "S[(2,3):(3,1)] + R[2:7] + 3", "S[(N,4):(4@a,1@b)]"),
    *("f32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2)", "f32[7,5] blockspec (None, 2) (i) -> (i, 1) grid (7)"),
    *("f32[N,4] blockspec (2, 4) (i) -> (i, 0) grid (cdiv(N, 2))",),
    *(
        "f32[8,6]{1,0} sharded {devices=[2,1]<=[2]}",
        "f32[4,6]{1,0} sharded {devices=[2,1,2]<=[4] last_tile_dim_replicate}",
    ),
    *("i=1 -> (1); i=2 -> (3); where out dims are: [offset (size 4)]",),
    *("(i < 7, j < 5) -> (i // 3, (i + j) % 4, min(i, j))", "(i < N, j < 4) -> (select(i < j, i, N), xor(j, 3))"),
    *("(i < 6) -> ((0 - i) // 4, (i - 5) % 3)", "(i < 4, i0 < 3) -> (i0 * 2, i)"),
)
LAYOUTS += tuple(
    text
    for name in sorted({*languages()} - {"kernel", *(language_of(read_layout(text)) for text in LAYOUTS)})
    for text in re.findall(r'read\("([^"]+)"\)', inspect.getdoc(language(name).read) or "")
)
"""Some of each language, of a new one what its own `read` shows; sizes with names are given values below."""

SIZES = ({"N": 1, "M": 1, "b": 1, "i": 1}, {"N": 3, "M": 4, "b": 2, "i": 2}, {"N": 5, "M": 3, "b": 4, "i": 4})


def points(m: IndexMap, sizes: Mapping[str, int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """(index, replica, coordinates) of every element, by `place` on plain ints."""
    on = Numbers(sizes)
    boxes = [[range(on.size(extent)) for extent in space.extents] for space in (m.domain, m.replicas)]
    for index in itertools.product(*boxes[0]):
        for replica in itertools.product(*boxes[1]):
            yield index, replica, m.place(index, replica, on)


def cases() -> list[tuple[str, dict[str, int]]]:
    """Each layout, with some values where it has sizes."""
    names = {text: map_of(read_layout(text)).sizes() for text in LAYOUTS}
    return [
        (text, {name: s[name] for name in names[text]}) for text in LAYOUTS for s in SIZES[: 3 if names[text] else 1]
    ]


def test_every_language_is_asked() -> None:
    """A new language gets a row here; a kernel has several maps and is none."""
    assert {language_of(read_layout(text)) for text in LAYOUTS} == set(languages()) - {"kernel"}


ISL_CANNOT = {
    "f32[3,M]{1,0:T(2,b)}": "divides by the size b, which isl cannot",
    "f32[N,M] strides (M,1)": "multiplies i with the size M: isl cannot",
}


@pytest.mark.parametrize(("text", "sizes"), cases())
def test_isl_relates_each_element_to_its_places(text: str, sizes: dict[str, int]) -> None:
    """Exactly the pairs of `place`, at some sizes; parameters below 1 have none."""
    if text in ISL_CANNOT:
        with pytest.raises(lp.Undecided, match=ISL_CANNOT[text]):
            lp.as_isl(text)
        return
    m, relation = map_of(read_layout(text)), lp.as_isl(text)
    assert isinstance(relation, islpy.Map)
    nothing = relation
    for name, value in sizes.items():
        position = relation.find_dim_by_name(islpy.dim_type.param, name)
        nothing = nothing.fix_val(islpy.dim_type.param, position, islpy.Val(0))
        relation = relation.fix_val(islpy.dim_type.param, position, islpy.Val(value))
    if sizes:
        assert nothing.is_empty()
        relation = relation.project_out(islpy.dim_type.param, 0, len(sizes))
    found: set[tuple[int, ...]] = set()
    rank = len(m.domain.extents)

    def note(point: Any) -> None:
        every = range(point.space.dim(islpy.dim_type.set))
        found.add(tuple(point.get_coordinate_val(islpy.dim_type.set, k).to_python() for k in every))

    pairs = relation.move_dims(islpy.dim_type.out, 0, islpy.dim_type.in_, 0, rank).range()
    pairs.foreach_point(note)
    assert found == {(*index, *place) for index, _, place in points(m, sizes)}


@pytest.mark.parametrize(("text", "sizes"), cases())
def test_z3_evaluates_to_the_places(text: str, sizes: dict[str, int]) -> None:
    """Coordinates, offset and padding, at every point; what is assumed holds there and not one step outside."""
    m, terms = map_of(read_layout(text)), lp.as_z3(text)
    on = Numbers(sizes)
    known = [(unknown, z3.IntVal(sizes[name])) for name, unknown in terms.sizes.items()]
    unknowns = [*terms.index.values(), *terms.replica.values()]

    def value(term: Any, at: tuple[int, ...]) -> Any:
        return z3.simplify(z3.substitute(term, *known, *zip(unknowns, map(z3.IntVal, at), strict=True)))

    for index, replica, place in points(m, sizes):
        at = (*index, *replica)
        assert [value(term, at).as_long() for term in terms.place.values()] == list(place)
        assert all(z3.is_true(value(condition, at)) for condition in terms.assumptions)
        if m.memory is not None:
            assert value(terms.offset, at).as_long() == m.flat().place(index, replica, on)[0]
    extents = [on.size(extent) for extent in (*m.domain.extents, *m.replicas.extents)]
    for k, extent in enumerate(extents):
        outside = tuple(extent if d == k else 0 for d in range(len(extents)))
        assert not all(z3.is_true(value(condition, outside)) for condition in terms.assumptions)
    if m.memory is not None:
        padding = z3.simplify(z3.substitute(terms.padding, *known)).as_long()
        assert padding == on.size(m.memory.allotted) - on.size(m.domain.count())


@pytest.mark.parametrize(("text", "sizes"), cases())
def test_sympy_evaluates_to_the_places(text: str, sizes: dict[str, int]) -> None:
    """The simplified closed forms, at every point."""
    m, forms = map_of(read_layout(text)), lp.as_sympy(text)
    on = Numbers(sizes)
    known = {unknown: sizes[name] for name, unknown in forms.sizes.items()}
    unknowns = [*forms.index.values(), *forms.replica.values()]

    def value(form: Any, at: tuple[int, ...]) -> int:
        exact = sympy.sympify(form).subs({**known, **dict(zip(unknowns, at, strict=False))}, simultaneous=True)
        xor = exact.replace(sympy.Function("xor", integer=True), lambda a, b: sympy.Integer(int(a) ^ int(b)))
        assert xor.is_Integer, xor
        return int(xor)

    for index, replica, place in points(m, sizes):
        at = (*index, *replica)
        assert [value(form, at) for form in forms.place.values()] == list(place)
        if m.memory is not None:
            assert value(forms.offset, at) == m.flat().place(index, replica, on)[0]
    if m.memory is not None:
        assert value(forms.padding, ()) == on.size(m.memory.allotted) - on.size(m.domain.count())


@pytest.mark.parametrize("text", LAYOUTS)
def test_every_closed_form_is_proved_to_be_the_map(text: str) -> None:
    """For all elements and all sizes, by the engines: the form is read back as a map."""
    found = proof(map_of(read_layout(text)))
    if "xor" in text and "N" in text:
        # no engine takes an xor beside a size; the test above puts numbers in
        assert found.verdict is lp.Verdict.UNKNOWN
        return
    assert found.verdict is lp.Verdict.PROVED


def test_a_wrong_closed_form_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof looks at the form, not at the map twice."""
    from layoutproof.pictures import formula

    right = formula.coordinates
    monkeypatch.setattr(formula, "coordinates", lambda m: [entry + 1 for entry in right(m)])
    found = proof(map_of(read_layout("(i < 7, j < 5) -> (i // 3, j)")))
    assert found.verdict is lp.Verdict.REFUTED


@pytest.mark.parametrize(
    ("text", "axis", "form"),
    [
        ("S[(2,2,2,4):(16,8,4,1)]", "m", "x"),
        ("S[(4,8):(1@m,4@m)] on (4,8)", "m", "i + 4*j"),
        ("S[(2,4,8):(32,8,1)] on (8,8)", "m", "8*i + j"),
        ("((2,4),3):((1,2),8)", "offset", "i + 8*j"),
        ("(i < N) -> (i // 6 * 6 + i // 2 % 3 * 2 + i % 2)", "p0", "i"),
        ("(i < N) -> (i % 12 // 4 * 4 + i % 4)", "p0", "Mod(i, 12)"),
        ("(i < N) -> (i // 4 // 3)", "p0", "floor(i/12)"),
    ],
)
def test_raw_sums_are_simplified(text: str, axis: str, form: str) -> None:
    """Digits of one number that stand beside each other are that number again."""
    assert str(lp.as_sympy(text).place[axis]) == form


@pytest.mark.parametrize("as_other", [lp.as_isl, lp.as_sympy])
def test_what_divides_by_zero_everywhere_is_refused(as_other: Any) -> None:
    with pytest.raises(lp.LayoutError, match="divides by zero"):
        as_other("(i < 4) -> (3 // (i - i))")


def test_an_index_that_has_no_place_satisfies_no_assumption() -> None:
    """Where a divisor varies and may be 0."""
    terms = lp.as_z3("(i < 4, j < 3) -> (i // j)")
    solver = z3.Solver()
    solver.add(*terms.assumptions, terms.index["j"] == 0)
    assert solver.check() == z3.unsat


def test_isl_maps_can_be_joined_with_a_users_own() -> None:
    """They are in islpy's default context; isl prints no error of ours."""
    tiled = lp.as_isl("f32[4,6]{1,0:T(2,3)}")
    rows = islpy.Set("{ [i, j] : i = 1 and 0 <= j < 6 }")
    assert tiled.intersect_domain(rows).range().count_val().to_python() == 6


def test_a_size_that_isl_reads_as_a_word_is_said() -> None:
    with pytest.raises(lp.Undecided, match="'mod' as a word of its own"):
        lp.as_isl("f32[mod,5]{1,0}")


def test_the_budget_of_isl_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a number that is not exact, and no error of isl's."""
    monkeypatch.setattr(relation, "BUDGET", 50)
    with pytest.raises(lp.Undecided, match="isl operations"):
        lp.as_isl("f32[N,M]{1,0:T(8,128)}")
