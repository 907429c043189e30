"""Enumeration on arrays: the same as point by point, of many more elements, and nothing where 64 bits do not do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core.budget import budget
from layoutproof.core.claim import And, At, Claim, Equal, LexLess, NotAmong, Or, Outside, PlacePredicate, Uncovered
from layoutproof.core.errors import BudgetExceeded, Undecided, Unsupported
from layoutproof.solvers import brute, tables
from tests.solvers.claims import N, covers, in_bounds, injective, mapping, same
from tests.solvers.test_agree import maps

pytestmark = pytest.mark.slow


def one_by_one(claim: Claim) -> Any:
    try:
        return brute._one_by_one(claim, 1)
    except Undecided:
        return "undecided"


def on_arrays(claim: Claim) -> Any:
    try:
        return tables.decide(claim)
    except Undecided:
        return "undecided"


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    """Every kind of formula, about maps of few elements that divide, choose and repeat."""
    domain = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=2)))
    replicas = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    kind = draw(st.sampled_from(KINDS))
    m = draw(maps(domain, 2, replicas if kind in ROOM else ()))
    if kind == "repeated":
        points = {"element": m.domain, "one": m.replicas, "other": m.replicas}
        return Claim(points, And((LexLess("one", "other"), Equal(At(m, "element", "one"), At(m, "element", "other")))))
    if kind == "same replica":
        points = {"first": m.domain, "second": m.domain, "one": m.replicas}
        return Claim(points, And((LexLess("first", "second"), Equal(At(m, "first", "one"), At(m, "second", "one")))))
    if kind in ("injective", "in bounds", "covers"):
        return {"injective": injective, "in bounds": in_bounds, "covers": covers}[kind](m)
    other = draw(maps(domain, 2, replicas if kind == "among" else ()))
    if kind == "same":
        return same(m, other)
    if kind == "among":
        return Claim({"element": m.domain}, NotAmong(At(m, "element"), other, "element"))
    if kind == "predicate":
        odd = PlacePredicate((At(m, "element"),), lambda places, on: on.equal(places[0][0] % 3, places[0][1]))
        return Claim({"element": m.domain}, Or((odd, Outside(At(other, "element")))))
    pair = {"first": m.domain, "second": m.domain}
    return Claim(pair, And((LexLess("first", "second"), Equal(At(m, "first"), At(other, "second")))))


KINDS = ("injective", "in bounds", "covers", "repeated", "same replica", "same", "among", "predicate", "mixed")
ROOM = ("injective", "in bounds", "covers", "repeated", "same replica")
"""Kinds of claims about a map that may have replicas."""


@settings(suppress_health_check=list(HealthCheck))
@given(claims())
def test_the_same_as_point_by_point(claim: Claim) -> None:
    """The same verdict and the same smallest violation; where a place divides by zero neither answers."""
    # arrays work out whole chunks: what stands behind the first violation may divide by zero
    assert on_arrays(claim) in (one_by_one(claim), "undecided")


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_chunks_are_taken_in_order(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """However few elements are worked out at once, the violation is the smallest."""
    monkeypatch.setattr(tables, "CHUNK", chunk)
    m = mapping((5, 6, 7), lambda _, i, j, k: (i + j, (k * 5 + i) % 6), (9, 6))
    for claim in (
        injective(m),
        in_bounds(m),
        covers(m),
        same(m, mapping((5, 6, 7), lambda _, i, j, k: (i + j, k % 6))),
    ):
        assert tables.decide(claim) == brute._one_by_one(claim, 1)


def test_places_that_together_pass_64_bits() -> None:
    """Coordinates of 40 bits each: no number holds both, and their ranks do."""
    big = 1 << 40
    apart = mapping((100, 50), lambda _, i, j: (i * big, j * big))
    assert tables.decide(injective(apart)) is None
    meet = mapping((100, 50), lambda _, i, j: (i * big, (j + i) % 7 * big))
    assert (
        tables.decide(injective(meet)) == brute._one_by_one(injective(meet), 1) == {"first": (0, 0), "second": (0, 7)}
    )


def test_nothing_is_said_where_64_bits_do_not_do() -> None:
    """A step that may pass 64 bits would wrap, so that different places look alike: plain ints are asked."""
    wraps = mapping((4, 1000), lambda _, i, j: (i * (1 << 62) + j, 0))
    with pytest.raises(Unsupported, match="64 bits"):
        tables.decide(injective(wraps))
    assert tables.decide(injective(mapping((2, 1000), lambda _, i, j: (i * (1 << 61) + j, 0)))) is None
    far = mapping((4000,), lambda _, i: (i, 0), (1 << 40, 1 << 40))
    with pytest.raises(Unsupported, match="64 bits"):
        tables.decide(covers(far))


def test_what_is_no_question_for_arrays() -> None:
    """Sizes that are not known, and more elements than are sorted."""
    with pytest.raises(Undecided, match="constant sizes"):
        tables.decide(injective(mapping((N,), lambda _, i: i)))
    many = mapping((20_000, 1000), lambda _, i, j: (i * i + j,))
    with pytest.raises(Undecided, match="more than 10000000"):
        tables.decide(injective(many))
    assert tables.decide(in_bounds(many, extents=(5000,))) == {"index": (64, 904)}


def test_more_dimensions_than_arrays_have() -> None:
    """Claims about bodies name many numbers: whoever cannot look at them says so, and the next way is asked."""
    claim = in_bounds(mapping((1,) * 70, lambda _, *index: (sum(index),)), extents=(1,))
    with pytest.raises(Unsupported, match="at most 32 dimensions, not 70"):
        tables.decide(claim, 1000)
    assert brute.bounded_search(claim) is None


def test_sizes_that_the_condition_excludes() -> None:
    """A condition over constants that does not hold leaves nothing to violate."""
    from layoutproof.core.expression import parse_condition

    late = in_bounds(mapping((5000,), lambda _, i: i, (4999,)))
    assert tables.decide(replace(late, where=parse_condition("1 == 1"))) == {"index": (4999,)}
    assert tables.decide(replace(late, where=parse_condition("1 == 2"))) is None


@pytest.mark.parametrize(
    ("question", "verdict", "counterexample"),
    [
        (("injective", "f32[27,81]{1,0:T(8,128)}", "brute"), "proved", None),
        (("injective", "(i < 1000000) -> (i*i,)", None), "proved", None),
        (("injective", "(i < 1000000) -> (i*i % 999983,)", None), "refuted", {"first": (0,), "second": (999983,)}),
        (("covers", "Sw<3,0,3> o (600,64):(64,1)", None), "proved", None),
        (("covers", "Sw<2,1,3> o (60,50):(64,1)", None), "refuted", {"place": (48,)}),
        (("covers", "(i < 300000) -> (i*i % 300007,) in [300000]", None), "refuted", {"place": (3,)}),
        (
            ("injective", f"({','.join('3' * 10)}):(9941,1171,92,7,7919,30031,61,17011,45007,88883)", None),
            "refuted",
            None,
        ),
    ],
)
def test_what_no_other_engine_reaches(
    question: tuple[str, str, str | None], verdict: str, counterexample: dict[str, Any] | None
) -> None:
    """Products of an index with itself, swizzles of factors that are no powers of two, many colliding strides."""
    name, layout, engine = question
    found = lp.ask(name, layout, engine=engine)
    assert found.verdict.value == verdict, found.reason
    if counterexample is not None:
        assert found.counterexample == counterexample
    elif verdict == "refuted":
        m = lp.read_layout(layout).index_map()
        assert m.at(found.counterexample["first"]) == m.at(found.counterexample["second"])


def test_a_hole_is_looked_for_once_more() -> None:
    """The place that is said to be free is compared with every element's, and a place with an element is no hole."""
    m = mapping((3_000,), lambda _, i: (i * i % 3001,), (3000,))
    claim = Claim({"place": m.range}, Uncovered(m, "place"))
    found = tables.decide(claim)
    assert found is not None
    assert brute.violates(claim, found)
    assert all(not brute.violates(claim, {"place": (k,)}) for k in range(found["place"][0]))


def test_pairs_and_holes_are_sorted_before_z3_is_asked() -> None:
    """Up to the most that is ever sorted, a bounded search decides; a claim about one index is cut off before that."""
    squares = mapping((6_000_000,), lambda _, i: i * i, (36 * 10**12,))
    assert brute.bounded_search(injective(squares)) is None
    assert brute.bounded_search(covers(squares)) == {"place": (2,)}
    with pytest.raises(Undecided, match="first 20000"):
        brute.bounded_search(in_bounds(squares))


def test_rows_are_counted_as_steps() -> None:
    claim = in_bounds(mapping((1000, 1000), lambda _, i, j: (i + j,), (2000,)))
    with budget(100_000) as mine:
        assert tables.decide(claim) is None
    assert mine.left < 100_000
    with budget(100), pytest.raises(BudgetExceeded):
        tables.decide(claim, weight=50)
