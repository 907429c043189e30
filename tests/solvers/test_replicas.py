"""Maps with several places per element: four engines that share only the claim give one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layoutproof.core.claim import And, At, Claim, Differ, Equal, LexLess, NotAmong, Outside
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.solvers import brute, digits, isl, smt
from layoutproof.solvers.count import count, one_by_one
from layoutproof.solvers.digits.counts import tally
from layoutproof.solvers.sumset import cuts, gap, inside, saturated, sums, superincreasing
from tests.solvers.claims import M, N, box, covers, in_bounds, injective, mapping

pytestmark = pytest.mark.slow

PROFILE = settings(suppress_health_check=[HealthCheck.too_slow])
UNKNOWN = "unknown"


def answer(solver: Any, claim: Claim) -> Any:
    try:
        return solver.decide(claim)
    except Undecided:
        return UNKNOWN


def distinct(m: IndexMap) -> Claim:
    points = {"element": m.domain, "one": m.replicas, "other": m.replicas}
    return Claim(points, And((LexLess("one", "other"), Equal(At(m, "element", "one"), At(m, "element", "other")))))


def among(m: IndexMap, other: IndexMap) -> Claim:
    replica = "replica" if m.replicas.extents else ""
    points = {"element": m.domain} | ({replica: m.replicas} if replica else {})
    return Claim(points, NotAmong(At(m, "element", replica), other, "element"))


def same_replicas(m: IndexMap, other: IndexMap) -> Claim:
    replica = "replica" if m.replicas.extents else ""
    points = {"element": m.domain} | ({replica: m.replicas} if replica else {})
    return Claim(points, Differ(At(m, "element", replica), At(other, "element", replica)))


Piece = tuple[int, int, str, int, tuple[int, ...]]
"""(0 for the index or 1 for the replica, which entry, "//" or "%" or "", divisor, coefficient of each coordinate)."""


def linear(
    domain: Sequence[int],
    replicas: Sequence[int],
    pieces: Sequence[Piece],
    start: Sequence[int],
    extents: Sequence[int],
) -> IndexMap:
    def place(index: Any, replica: Any, on: Any) -> Any:
        totals = list(start)
        for side, entry, operation, by, coefficients in pieces:
            value = (index, replica)[side][entry]
            value = value // by if operation == "//" else value % by if operation == "%" else value
            totals = [total + value * c for total, c in zip(totals, coefficients, strict=True)]
        return tuple(totals)

    return IndexMap(box(*domain), box(*extents), place, box(*replicas))


@st.composite
def maps(draw: st.DrawFn, domain: Sequence[int], coordinates: int) -> IndexMap:
    """Strided maps whose index and replica are split here and there; coordinates mostly have digits of their own."""
    replicas = draw(st.lists(st.integers(1, 4), max_size=2))
    pieces: list[Piece] = []
    for side, extents in enumerate((domain, replicas)):
        for entry, extent in enumerate(extents):
            by = draw(st.sampled_from([0, 0, *range(2, extent)]))
            for operation in ("//", "%") if by else ("",):
                coefficients = [0] * coordinates
                coefficients[draw(st.integers(0, coordinates - 1))] = draw(
                    st.sampled_from([1, 1, 2, 3, 4, -1, -2, 6, 9, 0])
                )
                if draw(st.integers(0, 5)) == 0:
                    coefficients[draw(st.integers(0, coordinates - 1))] = draw(st.sampled_from([1, 2, -3]))
                pieces.append((side, entry, operation, by, tuple(coefficients)))
    start = [draw(st.sampled_from([0, 0, 0, 1, -1])) for _ in range(coordinates)]
    extents = [draw(st.integers(1, 14)) for _ in range(coordinates)]
    return linear(domain, replicas, pieces, start, extents)


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    domain = draw(st.lists(st.integers(1, 6), min_size=1, max_size=2))
    coordinates = draw(st.integers(1, 3))
    m = draw(maps(domain, coordinates))
    kind = draw(st.sampled_from(["injective", "distinct", "outside", "unreached", "among", "more", "differ"]))
    if kind == "injective":
        return injective(m)
    if kind == "distinct":
        return distinct(m)
    if kind == "outside":
        return in_bounds(m)
    if kind == "unreached":
        return covers(m)
    if kind == "among":
        return among(m, draw(maps(domain, coordinates)))
    step, extent = draw(st.integers(0, 6)), draw(st.integers(1, 3))

    def further(index: Any, replica: Any, on: Any) -> Any:
        first, *rest = m.place(index, replica[:-1], on)
        return (first + step * replica[-1], *rest)

    more = IndexMap(m.domain, m.range, further, box(*m.replicas.extents, extent))
    if kind == "more":
        return draw(st.sampled_from([among(m, more), among(more, m)]))

    def moved(index: Any, replica: Any, on: Any) -> Any:
        first, *rest = m.place(index, replica, on)
        return (first + step * index[-1], *rest)

    return same_replicas(m, IndexMap(m.domain, m.range, moved, m.replicas))


@PROFILE
@given(claims())
def test_engines_agree_on_replicas(claim: Claim) -> None:
    """brute == isl == smt, and == digits wherever digits decide, in verdict and in counterexample."""
    truth = brute.decide(claim)
    assert answer(isl, claim) == truth
    assert answer(digits, claim) in (truth, UNKNOWN)
    assert answer(smt, claim) == truth
    if truth is not None:
        assert brute.violates(claim, truth)


@PROFILE
@given(st.data())
def test_counts_agree(data: st.DataObject) -> None:
    """Places, bounds and load as counted by structure are those of looking at every element and replica."""
    domain = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=2))
    m = data.draw(maps(domain, data.draw(st.integers(1, 3))))
    assert count(m) == one_by_one(m)


LARGE = mapping((1 << 20, 3, 1 << 16), lambda _, i, j, k, c: (i, 3 * k + j + c), (1 << 20, 3 << 16), replicas=(2,))


@pytest.mark.parametrize(
    ("claim", "smallest"),
    [
        (injective(mapping((4, 4), lambda _, i, j, c: (i + 2 * c, j), replicas=(2,))), (2, 0)),
        (injective(mapping((4, 4), lambda _, i, j, c: (i + 4 * c, j), replicas=(2,))), None),
        (injective(mapping((1 << 30, 2), lambda _, i, j, c: (2 * i + j, c), replicas=(3,))), None),
        (injective(LARGE), (0, 1, 0)),
        (injective(mapping((3, 5), lambda _, i, j, c: (4 * i + j, c), replicas=(2,))), (1, 0)),
    ],
)
def test_elements_that_share_a_place(claim: Claim, smallest: tuple[int, ...] | None) -> None:
    """Decided by structure whatever the extents; the second element of the smallest pair is as written here."""
    found = digits.decide(claim)
    assert (None if found is None else found["second"]) == smallest


def test_replicas_alone() -> None:
    """6 = 2 * 3 replicas of which 4 differ; gaps between elements do not matter, nor do elements that overlap."""
    m = mapping((5,), lambda _, i, a, b: (i, 2 * a + 2 * b), replicas=(2, 3))
    assert digits.decide(distinct(m)) == {"element": (0,), "one": (0, 1), "other": (1, 0)} == brute.decide(distinct(m))
    apart = mapping((5,), lambda _, i, a, b: (i // 5, 3 * a + b), replicas=(2, 3))
    assert digits.decide(distinct(apart)) is None
    overlapping = mapping((5,), lambda _, i, a: 2 * i + a * 2, replicas=(2,))
    assert digits.decide(distinct(overlapping)) is None


def test_holes_by_axis() -> None:
    """The smallest hole is on the last axis that has one; 0 itself before all others."""
    m = mapping((2, 2), lambda _, i, j, c: (2 * i + 3 * c, j + 1), (6, 3), replicas=(2,))
    assert digits.decide(covers(m)) == {"place": (0, 0)} == brute.decide(covers(m))
    low = mapping((2, 2), lambda _, i, j, c: (2 * i + 3 * c, j), (6, 2), replicas=(2,))
    assert digits.decide(covers(low)) == {"place": (1, 0)} == brute.decide(covers(low))
    full = mapping((3, 2), lambda _, i, j, c: (2 * i + c, j), (6, 2), replicas=(2,))
    assert digits.decide(covers(full)) is None
    behind = mapping((3,), lambda _, i, c: 2 * i + 5 * c - 4, (4,), replicas=(2,))
    assert digits.decide(covers(behind)) == {"place": (2,)} == brute.decide(covers(behind))


def test_sets_that_are_spelled_differently() -> None:
    """{0, 2, 4} + {0, 3} + {0, 6} in three ways: C2 of the paper reduces it to two lists that differ."""
    three = mapping((2,), lambda _, i, a, b, c: 50 * i + 2 * a + 3 * b + 6 * c, replicas=(3, 2, 2))
    two = mapping((2,), lambda _, i, a, b: 50 * i + 2 * a + 3 * b, replicas=(6, 2))
    other = mapping((2,), lambda _, i, a, b: 50 * i + 2 * a + 3 * b, replicas=(3, 4))
    for left in (three, two, other):
        for right in (three, two, other):
            assert digits.decide(among(left, right)) is None
    short = mapping((2,), lambda _, i, a, b: 50 * i + 2 * a + 3 * b, replicas=(3, 3))
    assert digits.decide(among(short, other)) is None
    assert (
        digits.decide(among(other, short)) == {"element": (0,), "replica": (0, 3)} == brute.decide(among(other, short))
    )


def test_a_place_in_another_index_is_not_enough() -> None:
    """Each element's own replicas count: a shift by one is missing although some other element is there."""
    m = mapping((8,), lambda _, i: i)
    assert digits.decide(among(m, mapping((8,), lambda _, i, c: i + c, replicas=(2,)))) is None
    moved = mapping((8,), lambda _, i, c: i + 1 + c, replicas=(2,))
    assert digits.decide(among(m, moved)) == {"element": (0,)} == brute.decide(among(m, moved))
    wrapped = mapping((8,), lambda _, i, c: i % 4 + 4 * c, replicas=(2,))
    assert digits.decide(among(m, wrapped)) is None
    assert digits.decide(among(wrapped, m)) == {"element": (0,), "replica": (1,)} == brute.decide(among(wrapped, m))


def test_sizes_that_are_not_known() -> None:
    """Replicas apart by whole arrays: proved for all sizes; the same replicas of the same map: proved."""
    m = mapping((N, M), lambda on, i, j, c: (i + c * on.size(N), j), replicas=(3,))
    assert digits.decide(injective(m)) is None
    assert digits.decide(distinct(m)) is None
    again = mapping((N, M), lambda on, i, j, c: (on.size(N) * c + i, j), replicas=(3,))
    assert digits.decide(among(m, again)) is None
    close = mapping((N, M), lambda on, i, j, c: (i + c, j), replicas=(3,))
    with pytest.raises(Undecided):
        digits.decide(injective(close))


def test_many_replicas_are_left_to_others() -> None:
    """z3 writes replicas out one by one, so it leaves a million of them to the engines that need not."""
    m = mapping((4,), lambda _, i, c: (i, c), replicas=(1 << 20,))
    assert digits.decide(among(m, m)) is None
    with pytest.raises(Undecided, match="replicas"):
        smt.decide(among(m, m))


def test_points_in_another_order() -> None:
    """The smallest violation depends on the order of the points; digits find it for one order only, and say so."""
    m = mapping((4, 4), lambda _, i, j, c: (i + 2 * c, j), (5, 4), replicas=(2,))
    claim = injective(m)
    turned = Claim(dict(reversed(claim.points.items())), claim.violation)
    with pytest.raises(Undecided, match="another order"):
        digits.decide(turned)
    assert isl.decide(turned) == brute.decide(turned)
    outside = Claim({"replica": m.replicas, "index": m.domain}, Outside(At(m, "index", "replica")))
    with pytest.raises(Undecided, match="another order"):
        digits.decide(outside)


steps = st.lists(st.tuples(st.integers(1, 5), st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12, -1, -3, -4])), max_size=4)


def listed(some: Sequence[tuple[int, int]]) -> set[int]:
    found = {0}
    for extent, stride in some:
        found = {value + stride * k for value in found for k in range(extent)}
    return found


@PROFILE
@given(steps, steps, st.integers(-5, 5))
def test_sums_are_those_listed(some: list[tuple[int, int]], more: list[tuple[int, int]], start: int) -> None:
    """Bit sets, normal forms and tests on strides alone say what listing every sum says."""
    low, bits = sums(some)
    values = listed(some)
    assert {low + k for k in range(bits.bit_length()) if bits >> k & 1} == values
    assert inside(sums(some), sums(more)) == (values <= listed(more))
    assert {low + value for value in listed(saturated(some))} == values
    assert next(k for k in range(1, 999) if min(values) + k not in values) == gap(some)
    combinations = 1
    for extent, _ in some:
        combinations *= extent
    if superincreasing(some):
        assert len(values) == combinations
    ordered = sorted(some, key=lambda each: abs(each[1]))
    groups, first = [], 0
    for end, part in cuts(ordered, start):
        groups.append({part + value for value in listed(ordered[first:end])})
        first = end
    assert (start + min(values) <= 0 <= start + max(values) and -start in values) == all(0 in group for group in groups)


def test_counting_by_structure_needs_no_enumeration() -> None:
    """2**40 elements on 2**20 owners: counted without looking at one; three of four places of each are free."""
    m = mapping((1 << 20, 1 << 20), lambda _, i, j: (i, 4 * j), (1 << 20, 1 << 22))
    assert tally(m).places == 1 << 40
    assert tally(m).high == ((1 << 20) - 1, (1 << 22) - 4)
    owners = mapping((1 << 20, 1 << 20), lambda _, i, _j: i, (1 << 20,))
    assert (tally(owners).places, tally(owners).fewest, tally(owners).most) == (1 << 20, 1 << 20, 1 << 20)
