"""Three engines that share only the claim give one answer: the same verdict and the same counterexample."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from layoutproof.core.claim import And, At, Claim, Differ, Equal, LexLess, NotAmong, Or, Outside, Uncovered
from layoutproof.core.errors import Undecided
from layoutproof.core.expression import parse_condition
from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import symbol
from layoutproof.core.term import Term, less, maximum, minimum, select
from layoutproof.solvers import brute, isl, smt
from tests.solvers.claims import M, N, box, covers, flattened, in_bounds, injective, mapping, same

pytestmark = pytest.mark.slow

UNKNOWN = "unknown"
PROFILE = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def answer(solver: Any, claim: Claim) -> Any:
    try:
        return solver.decide(claim)
    except Undecided:
        return UNKNOWN


def terms(names: list[str], rich: bool = True) -> st.SearchStrategy[Term]:
    """Quasi-affine expressions over the names, with min, max and select where `rich`."""
    leaf = st.sampled_from(names).map(lambda name: Term("name", name)) | st.integers(-3, 9).map(
        lambda n: Term("int", n)
    )

    def grow(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        by = st.integers(1, 6)
        choices = [
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
            st.tuples(inner, st.integers(-3, 5)).map(lambda p: p[0] * p[1]),
            st.tuples(inner, by).map(lambda p: p[0] // p[1]),
            st.tuples(inner, by).map(lambda p: p[0] % p[1]),
        ]
        if rich:
            choices += [
                st.tuples(inner, inner).map(lambda p: minimum(*p)),
                st.tuples(inner, inner).map(lambda p: maximum(*p)),
                st.tuples(inner, inner, inner).map(lambda p: select(less(p[0], p[1]), p[2], p[0])),
            ]
        return st.one_of(choices)

    return st.recursive(leaf, grow, max_leaves=4)


def from_terms(
    domain: tuple[Any, ...], range_: tuple[Any, ...], results: list[Term], replicas: tuple[Any, ...] = ()
) -> IndexMap:
    names = [f"i{k}" for k in range(len(domain) + len(replicas))]

    def place(index: Any, replica: Any, on: Any) -> Any:
        entries = dict(zip(names, (*index, *replica), strict=True))
        return tuple(result.evaluate(entries, on) for result in results)

    return IndexMap(box(*domain), box(*range_), place, box(*replicas))


@st.composite
def maps(draw: st.DrawFn, domain: tuple[Any, ...], coordinates: int, replicas: tuple[int, ...] = ()) -> IndexMap:
    names = [f"i{k}" for k in range(len(domain) + len(replicas))]
    range_ = tuple(draw(st.integers(1, 12)) for _ in range(coordinates))
    results = [draw(terms(names)) for _ in range(coordinates)]
    return from_terms(domain, range_, results, replicas)


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    domain = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    while sum(1 for e in domain if e > 3) > 2:
        domain = domain[:-1]
    coordinates = draw(st.integers(1, 3))
    replicas = draw(st.sampled_from([(), (), (2,)]))
    m = draw(maps(domain, coordinates, replicas))
    points = {"index": m.domain}
    kind = draw(st.sampled_from(["injective", "ordered", "among", "outside", "differ", "unreached", "either"]))
    if kind == "injective":
        points = {"first": m.domain, "second": m.domain}
        one, other = At(m, "first"), At(m, "second")
        if replicas:
            points |= {"replica1": m.replicas, "replica2": m.replicas}
            one, other = At(m, "first", "replica1"), At(m, "second", "replica2")
        return Claim(points, And((LexLess("first", "second"), Equal(one, other))))
    if kind == "among":
        sets = draw(maps(domain, coordinates, draw(st.sampled_from([(), (3,), (2, 2)]))))
        points |= {"replica": m.replicas} if replicas else {}
        return Claim(points, NotAmong(At(m, "index", "replica" if replicas else ""), sets, "index"))
    if kind == "ordered" and not replicas:
        points = {"first": m.domain, "second": m.domain}
        late = Outside(At(draw(maps(domain, coordinates)), "second"))
        return Claim(points, And((LexLess("first", "second"), Outside(At(m, "first")), late)))
    if kind == "unreached":
        return Claim({"place": m.range}, Uncovered(m, "place"))
    at = At(m, "index", "replica" if replicas else "")
    if replicas:
        points |= {"replica": m.replicas}
    if kind == "outside":
        return Claim(points, Outside(at))
    other_map = draw(maps(domain, coordinates))
    differ = Differ(at, At(other_map, "index"))
    return Claim(
        points, differ if kind == "differ" else Or((And((Outside(at), differ)), Outside(At(other_map, "index"))))
    )


def only(row: int, column: int) -> IndexMap:
    """A map of 3x3 that lies outside its range at one element alone."""
    return mapping((3, 3), lambda on, i, j: on.select(on.logical_and(on.equal(i, row), on.equal(j, column)), 1, 0))


@pytest.mark.parametrize("solver", [brute, isl, smt])
def test_before_is_lexicographic(solver: Any) -> None:
    """(1, 0) does not come before (0, 2), and (0, 2) does come before (1, 0); no point comes before itself."""
    for first, second, is_before in (((1, 0), (0, 2), False), ((0, 2), (1, 0), True), ((1, 1), (1, 1), False)):
        parts = (
            LexLess("first", "second"),
            Outside(At(only(*first), "first")),
            Outside(At(only(*second), "second")),
        )
        claim = Claim({"first": box(3, 3), "second": box(3, 3)}, And(parts))
        assert solver.decide(claim) == ({"first": first, "second": second} if is_before else None)


@pytest.mark.parametrize("solver", [brute, isl, smt])
def test_smallest_sizes(solver: Any) -> None:
    """The smallest maximum wins over the smallest first size, and only then the order of the symbols."""
    m = mapping((N, M), lambda _, i, j: i + j, (4,))
    assert solver.decide(in_bounds(m)) == {"sizes": (3, 3), "index": (2, 2)}
    assert solver.decide(in_bounds(m, "N + 1 < M")) == {"sizes": (2, 4), "index": (1, 3)}
    assert solver.decide(in_bounds(m, "M < N and N < 5")) == {"sizes": (4, 2), "index": (3, 1)}


@pytest.mark.parametrize("solver", [brute, isl, smt])
def test_sets_of_places(solver: Any) -> None:
    """Replicas at i + 4*c for c below 3 are among those for c below 4, in any order; not the other way round."""
    few = mapping((4,), lambda _, i, c: i + 4 * (2 - c), (12,), replicas=(3,))
    many = mapping((4,), lambda _, i, c, d: i + 4 * (c + 2 * d), (16,), replicas=(2, 2))
    points = {"index": few.domain, "replica": few.replicas}
    assert solver.decide(Claim(points, NotAmong(At(few, "index", "replica"), many, "index"))) is None
    points = {"index": many.domain, "replica": many.replicas}
    missing = solver.decide(Claim(points, NotAmong(At(many, "index", "replica"), few, "index")))
    assert missing == {"index": (0,), "replica": (1, 1)}


@PROFILE
@given(claims())
def test_engines_agree_on_constant_sizes(claim: Claim) -> None:
    """brute == isl == smt, in verdict and in counterexample."""
    truth = answer(brute, claim)
    assume(truth != UNKNOWN)
    assert answer(isl, claim) == truth
    assert answer(smt, claim) == truth
    if truth is not None:
        assert brute.violates(claim, truth)


@st.composite
def tiling_claims(draw: st.DrawFn) -> Claim:
    """Tilings of small boxes in any digit order, natural or flat; every other one has an extent that is off by one."""
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 6)))
    tile = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    order = draw(st.permutations(range(4)))
    fault = draw(st.sampled_from([0, 0, -1, 1]))

    def digits(on: Any, i: Any, j: Any) -> Any:
        natural = (i // tile[0], j // tile[1], i % tile[0], j % tile[1])
        return tuple(natural[k] for k in order)

    extents = [-(-shape[0] // tile[0]), -(-shape[1] // tile[1]), *tile]
    faulty = draw(st.integers(0, 3))
    extents[faulty] = max(1, extents[faulty] + fault)
    m = mapping(shape, digits, [extents[k] for k in order])
    if draw(st.booleans()):
        m = flattened(m)
    kind = draw(st.sampled_from([injective, in_bounds, covers, same]))
    if kind is not same:
        return kind(m)
    wrong = draw(st.sampled_from([0, 0, 1]))

    def respelled(index: Any, replica: Any, on: Any) -> Any:
        i, j = index
        return m.place((i // tile[0] * tile[0] + i % tile[0], j + (i // 3) * wrong), replica, on)

    return same(m, IndexMap(m.domain, m.range, respelled))


@PROFILE
@given(tiling_claims())
def test_engines_agree_on_tilings(claim: Claim) -> None:
    """brute == isl == smt on layouts as they occur, proved ones and those with one extent off by one."""
    truth = brute.decide(claim)
    assert answer(smt, claim) == truth
    # of a flat 1 x 36 one call of isl may need more than its part of the budget
    found = answer(isl, claim)
    assert found == truth or (isinstance(claim.violation, Uncovered) and found == UNKNOWN)


@st.composite
def symbolic_claims(draw: st.DrawFn) -> Claim:
    n, m = symbol("N"), symbol("M")
    extents = st.sampled_from([n, m, n + 1, 2 * m, (n + 3) // 4, 3, 5])
    domain = tuple(draw(st.lists(extents, min_size=1, max_size=2)))
    names = [f"i{k}" for k in range(len(domain))]
    coordinates = draw(st.integers(1, 2))
    results = [draw(terms([*names, "N"], rich=False)) for _ in range(coordinates)]
    ranges = tuple(draw(st.sampled_from([n, m, n + m, (m + 1) // 2, 4])) for _ in range(coordinates))
    # N and M stand in the range, so that the map's terms may speak of them
    index_map = from_terms(domain, (*ranges, n, m), [*results, Term("int", 0), Term("int", 0)])
    where = draw(st.sampled_from([None, "N % 2 == 0", "N <= M", "N >= 3 and M < 9", "M % 4 == 1 or N == 2"]))
    condition = None if where is None else parse_condition(where)
    kind = draw(st.sampled_from(["injective", "outside", "unreached"]))
    if kind == "unreached":
        return Claim({"place": index_map.range}, Uncovered(index_map, "place"), where=condition)
    if kind == "outside":
        return Claim({"index": index_map.domain}, Outside(At(index_map, "index")), where=condition)
    same = Equal(At(index_map, "first"), At(index_map, "second"))
    points = {"first": index_map.domain, "second": index_map.domain}
    return Claim(points, And((LexLess("first", "second"), same)), where=condition)


@PROFILE
@given(claim=symbolic_claims())
def test_engines_agree_on_symbolic_sizes(claim: Claim) -> None:
    """isl == smt, wherever smt may be asked, and both refute what brute refutes, by the same sizes and points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brute, "CAP", 3000)
        truth = answer(brute, claim)
    by_isl, by_smt = answer(isl, claim), answer(smt, claim)
    assert by_isl != UNKNOWN
    assert truth in (by_isl, UNKNOWN)
    assert by_smt == by_isl or (isinstance(claim.violation, Uncovered) and by_smt == UNKNOWN)
    assert by_isl is None or brute.violates(claim, by_isl)
