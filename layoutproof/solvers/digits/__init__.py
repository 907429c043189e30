"""The structural engine: a layout's coordinates as linear forms over digits, decided by their coefficients.

Applies when divisors nest (tiles do). Cost depends on the number of digits, never on the size of the array. Constants
are decided both ways with the smallest counterexample; for symbolic sizes it only proves, and proves for all sizes.

The facts used: digits of different indices and positions vary independently over a box that contains every valid
index, in the order of the indices; and each single digit can be 1 while all others are 0. So nothing in the box proves
a claim, and the box's smallest violation is the claim's own if it is an index; if not, another engine is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from layoutproof.core.claim import (
    And,
    At,
    Claim,
    Differ,
    Equal,
    LexLess,
    NotAmong,
    Outside,
    SizeCondition,
    Uncovered,
    outline,
)
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.index_map import IndexMap, Permutation, permutation
from layoutproof.core.numbers import Numeral
from layoutproof.core.result import Point
from layoutproof.core.size import Extent, product, surely_less
from layoutproof.core.substitution import alternatives, substitution
from layoutproof.solvers.digits import permuted, sets
from layoutproof.solvers.digits.number import (
    Digit,
    DigitNumbers,
    DigitSum,
    ascending,
    bounds,
    decoded,
    ends,
    index_of,
    leaves_of,
    readable,
)
from layoutproof.solvers.unpermuted import before

MOST_TURNING = 6
"""Digits whose coefficients have a sign that depends on sizes; each doubles the corners that are looked at."""

DIGITS = DigitNumbers()
"""Digits that know nothing of run-time sizes."""

JOINING = DigitNumbers(joins=True)
"""The same; those of constant extents may be joined."""

_Beyond = tuple[Any, int, int, int]
"""(coordinate, its smallest value, its largest value, the extent that one of them leaves)."""


def decide(claim: Claim, effort: int = 1) -> Point | None:
    """None when no violation exists, else the smallest one; Undecided when digits do not settle it."""
    if not outline(claim).whole:
        raise Unsupported("digits decide claims about whole domains")
    if not claim.sizes():
        return _each_violation(claim, False)
    try:
        point = _each_violation(claim, False)
    except Unsupported as unsupported:
        try:
            point = _each_violation(claim, True)
        except Undecided:
            raise unsupported from None
    if point is not None:
        raise Unsupported("digits do not look for the smallest sizes")
    return point


def _each_violation(claim: Claim, joins: bool) -> Point | None:
    if claim.where is None:
        return _violation(claim, JOINING if joins else DIGITS)
    # sizes that satisfy one alternative or the other: proved when it is proved under each
    found = [_violation(claim, DigitNumbers(substitution(case), joins)) for case in alternatives(claim.where)]
    return next((p for p in found if p is not None), None)


def violation(claim: Claim, sizes: Mapping[str, int]) -> Point | None:
    """As `decide`, with these numbers for the sizes; the point has none. Undecided also where padding is in doubt."""
    if not outline(claim).whole:
        raise Unsupported("digits decide claims about whole domains")
    return _violation(claim, DigitNumbers(sizes))


def _violation(claim: Claim, on: DigitNumbers) -> Point | None:
    match claim.violation:
        case And((LexLess(first, second), Equal(At(left, p, c), At(right, q, d)))) if left is right:
            if (p, q) == (first, second) and bool(c) == bool(d):
                return _named(claim, _shared(before(left), on), (p, q, c, d))
            if p == q and (c, d) == (first, second):
                return _named(claim, _repeated(before(left), on), (p, c, d))
        case Outside(At(m, point, replica), extents):
            box = extents or m.range.extents
            try:
                found = _outside(_before_within(m, box, on), box, on)
            except Unsupported:
                if permutation(m) is None:
                    raise
                found = _outside(before(m), box, on, permutation(m))
            return _named(claim, found, (point, replica))
        case Differ(left, right) if left.point == right.point and (
            left.replica == right.replica or not (left.replica and right.replica)
        ):
            return _named(claim, _differ(left, right, on), (left.point, left.replica or right.replica))
        case NotAmong(place, m, point) if place.point == point:
            return _named(claim, _not_among(place, m, on), (point, place.replica))
        case Uncovered(m, point):
            box = claim.points[point].extents
            plain = _before_within(m, box, on)
            if plain is m and permutation(m) is not None:
                return _named(claim, _first_permuted_hole(m, box, on), (point,))
            hole = _covers(plain, box, on)
            if hole is not None and plain is not m:
                hole = _first_permuted_hole(m, box, on)
            return _named(claim, hole, (point,))
        case SizeCondition(condition):
            return {} if condition.evaluate({}, on) else None
    raise Unsupported("digits do not know this kind of claim")


def _before_within(m: IndexMap, box: tuple[Extent, ...], on: DigitNumbers) -> IndexMap:
    """The map without a permutation of its places at the end, where that permutes those of a box among themselves."""
    found = permutation(m)
    return before(m) if found is not None and found.keeps(on.size(box[found.axis])) else m


def _first_permuted_hole(m: IndexMap, box: tuple[Extent, ...], on: DigitNumbers) -> tuple[int, ...] | None:
    """The first place of a box that no element has, where places are permuted at the end."""
    found, plain = permutation(m), before(m)
    assert found is not None
    _, coordinates = placed(plain, on)
    if len(coordinates) != 1:
        raise Unsupported("digits find the first hole behind a permutation of one coordinate alone")
    extent = on.size(box[0])
    if type(extent) is not int:
        raise Unsupported("digits do not look for the first hole")
    full = _covers(plain, box, on)
    hole = permuted.first_hole(coordinates[0], found, extent, extent if full is None else full[0])
    return None if hole is None else (hole,)


def _named(claim: Claim, found: tuple[int, ...] | None, names: tuple[str, ...]) -> Point | None:
    """The points with these names, whose entries stand in a row in `found`; "" names none."""
    if found is None:
        return None
    asked = tuple([name for name in names if name])
    if asked != tuple(claim.points):
        raise Unsupported("digits find the smallest violation for another order of the points")
    points, start = {}, 0
    for name in asked:
        end = start + len(claim.points[name].extents)
        points[name] = found[start:end]
        start = end
    return points


def _digits(extents: Iterable[Extent], first: int, on: DigitNumbers) -> tuple[list[Digit], tuple[Numeral, ...]]:
    """A point of a box on digits, its entries numbered from `first`."""
    roots: list[Digit] = []
    point: list[Any] = []
    for dimension, extent in enumerate(extents, first):
        size = extent if type(extent) is int else on.size(extent)
        if type(size) is int and size == 1:
            point.append(DigitSum(()))
            continue
        digit = Digit(dimension, size, 1, on.joins)
        roots.append(digit)
        point.append(DigitSum(((1, digit),)))
    return roots, tuple(point)


@lru_cache(maxsize=8)
def placed(m: IndexMap, on: DigitNumbers) -> tuple[list[Digit], tuple[Any, ...]]:
    """The digits of an index and then of a replica, and the coordinates; kept, because claims come in groups."""
    roots, index = _digits(m.domain.extents, 0, on)
    if not m.replicas.extents:
        return roots, m.place(index, (), on)
    more, replica = _digits(m.replicas.extents, len(index), on)
    return roots + more, m.place(index, replica, on)


def _shared(m: IndexMap, on: DigitNumbers) -> tuple[int, ...] | None:
    """Two indices, and a replica of each if there are any, with one place."""
    roots, coordinates = placed(m, on)
    rank, more = len(m.domain.extents), len(m.replicas.extents)
    known, waiting = readable(coordinates)
    leaves = leaves_of(roots)
    moving = [leaf for leaf in leaves if leaf.dimension < rank] if more else leaves
    hidden = [leaf for leaf in moving if leaf not in known]
    if not hidden:
        return None
    if not waiting and all(type(leaf.extent) is int for leaf in hidden):
        # every digit that shows is known, so two indices collide iff they differ in hidden digits only
        return (0,) * rank + index_of(rank + more, roots, {hidden[-1]: 1})[:rank] + (0,) * (2 * more)
    free = [leaf for leaf in leaves if leaf.dimension >= rank]
    found = sets.collision(sets.forms_of(coordinates, roots), moving, free)
    if found is None:
        return None
    first, second, one, other = (index_of(rank + more, roots, values) for values in found)
    return (*first[:rank], *second[:rank], *one[rank:], *other[rank:])


def _repeated(m: IndexMap, on: DigitNumbers) -> tuple[int, ...] | None:
    """An index and two replicas of it with one place."""
    roots, coordinates = placed(m, on)
    rank, more = len(m.domain.extents), len(m.replicas.extents)
    moving = leaves_of([root for root in roots if root.dimension >= rank])
    # the index is the same on both sides, so its digits cancel
    forms = [{d: c for d, c in sets.form_of(part)[0].items() if d.dimension >= rank} for part in coordinates]
    if decoded(set(), forms)[0].issuperset(moving):
        return None
    found = sets.collision(sets.forms_of(coordinates, roots), moving, ())
    if found is None:
        return None
    first, second = (index_of(rank + more, roots, values)[rank:] for values in found[:2])
    return (*(0,) * rank, *first, *second)


def _outside(
    m: IndexMap, extents: tuple[Extent, ...], on: DigitNumbers, moved: Permutation | None = None
) -> tuple[int, ...] | None:
    """The first index and replica with a coordinate outside of its extent; moved: the permutation of one at the end."""
    roots, coordinates = placed(m, on)
    beyond: list[_Beyond] = []
    for axis, (coordinate, extent) in enumerate(zip(coordinates, extents, strict=True)):
        if moved is not None and axis == moved.axis:
            beyond.append(_permuted_ends(coordinate, on.size(extent), moved))
        elif (reached := _beyond(coordinate, extent, on)) is not None:
            beyond.append(reached)
    if not beyond:
        return None
    box = [on.size(extent) for extent in m.domain.extents + m.replicas.extents]
    if not all(type(extent) is int for extent in box):
        raise Unsupported("digits do not look for the smallest sizes")
    leaves = leaves_of(roots)
    violations = [values for each in beyond for values in _first_beyond(each, leaves)]
    if moved is not None:
        edge = on.size(extents[moved.axis])
        violations += permuted.moved_beyond(coordinates[moved.axis], moved, edge, leaves)
    if not violations:
        return None
    return index_of(len(box), roots, min(violations, key=lambda values: sets.order(values, leaves)))


def _beyond(coordinate: Any, extent: Any, on: DigitNumbers) -> _Beyond | None:
    """A coordinate that may leave its extent, as constants; None where it does not."""
    try:
        low, high = ends(coordinate)
    except Unsupported:
        if _corners_inside(coordinate, on.size(extent)):
            return None
        raise
    if type(extent) is int and type(low) is int and type(high) is int:
        return None if low >= 0 and high < extent else (coordinate, low, high, extent)
    extent = on.size(extent)
    if surely_less(-1, low) and surely_less(high, extent):
        return None
    if not all(type(n) is int for n in (low, high, extent)):
        raise Unsupported("digits cannot bound a coordinate for all sizes")
    return coordinate, low, high, extent


def _permuted_ends(coordinate: Any, edge: Any, moved: Permutation) -> _Beyond:
    """A coordinate that is permuted at the end, with what the permutation leaves where it is; edge: its extent."""
    low, high = ends(coordinate)
    if not all(type(n) is int for n in (low, high, edge)):
        raise Unsupported("digits cannot bound a permuted coordinate for all sizes")
    return coordinate, low, high, moved.around(edge)[1]


def _first_beyond(of: _Beyond, leaves: list[Digit]) -> Iterator[sets.Values]:
    """The first digits with the coordinate at or above its extent, and the first below 0."""
    coordinate, low, high, extent = of
    form, constant = sets.form_of(coordinate)
    if high >= extent:
        yield _smallest_above(form, extent - constant, leaves)
    if low < 0:
        yield _smallest_above({d: -c for d, c in form.items()}, constant + 1, leaves)


def _corners_inside(coordinate: DigitSum, extent: Any) -> bool:
    """Whether 0 <= coordinate < extent for all sizes, where the sign of some coefficients depends on sizes.

    A multilinear form is largest and smallest at corners of the box: each such digit is 0 or its last value.
    """
    form, constant = sets.form_of(coordinate)
    fixed, turning = {}, []
    for digit, coefficient in form.items():
        if surely_less(-1, coefficient) or surely_less(coefficient, 1):
            fixed[digit] = coefficient
        else:
            turning.append(coefficient * (digit.extent - 1))
    if len(turning) > MOST_TURNING:
        return False
    low, high = bounds(fixed, constant)
    corners: list[Any] = [0]
    for reach in turning:
        corners += [corner + reach for corner in corners]
    return all(surely_less(-1, low + corner) and surely_less(high + corner, extent) for corner in corners)


def _smallest_above(form: dict[Digit, int], bound: int, leaves: list[Digit]) -> sets.Values:
    """The lexicographically smallest digits with sum >= bound, given that the largest sum reaches it."""
    reach = sum(c * (d.extent - 1) for d, c in form.items() if c > 0)
    values: dict[Digit, int] = {}
    for leaf in leaves:
        coefficient = form.get(leaf, 0)
        if coefficient <= 0:
            continue
        reach -= coefficient * (leaf.extent - 1)
        value = max(0, -(-(bound - reach) // coefficient))
        if value:
            values[leaf] = value
            bound -= coefficient * value
    return values


def _differ(left: At, right: At, on: DigitNumbers) -> tuple[int, ...] | None:
    first, second = permutation(left.map), permutation(right.map)
    if first is second is None:
        return _difference(left, right, on)
    plain, plain2 = (replace(at, map=before(at.map)) for at in (left, right))
    if first is not None and second is not None and first.same(second):
        return _difference(plain, plain2, on)
    try:
        return _difference(left, right, on)
    except Unsupported:
        return _difference(plain, plain2, on, (first, second))


def _difference(
    left: At, right: At, on: DigitNumbers, moved: tuple[Permutation | None, Permutation | None] = (None, None)
) -> tuple[int, ...] | None:
    """The first index and replica at which two maps differ; moved: the permutation of the places of each at the end."""
    roots, entries, places = _both_placed(left, right, on)
    constants = all(type(root.extent) is int for root in roots)
    differing: set[Digit] = set()
    found: list[sets.Values] = []
    turned = {each.axis for each in moved if each is not None}
    for axis, (one, other) in enumerate(zip(*places, strict=True)):
        if axis not in turned:
            form = _differing(one, other)
            if form is None:
                return (0,) * entries
            differing.update(form)
            continue
        if constants and not on.sizes and permuted.is_of_bits(one) and permuted.is_of_bits(other):
            raise Unsupported("digits leave an exclusive or of single bits to the engine of bits")
        by, by2 = (each if each is not None and each.axis == axis else None for each in moved)
        first = permuted.first_difference((one, other), (by, by2), leaves_of(roots))
        if first is not None:
            found.append(first)
    if not differing and not found:
        return None
    if not constants:
        raise Unsupported("digits cannot rule out a difference for all sizes")
    leaves = leaves_of(roots)
    if differing:
        # everything smaller has all differing digits 0, and there the maps agree
        found.append({[leaf for leaf in leaves if leaf in differing][-1]: 1})
    first = min(found, key=lambda values: sets.order(values, leaves))
    return index_of(entries, roots, first)


def _both_placed(
    left: At, right: At, on: DigitNumbers
) -> tuple[list[Digit], int, tuple[tuple[Numeral, ...], tuple[Numeral, ...]]]:
    """(digits of one index and one replica, how many entries these have, where each of two maps puts them)."""
    replicas = [at.map.replicas.extents for at in (left, right) if at.replica]
    if len(replicas) == 2 and replicas[0] != replicas[1]:
        raise Unsupported("digits compare replicas of one box only")
    roots, index = _digits(left.map.domain.extents, 0, on)
    replica: tuple[Any, ...] = ()
    if replicas:
        more, replica = _digits(replicas[0], len(index), on)
        roots = roots + more
    one, other = (at.map.place(index, replica if at.replica else (), on) for at in (left, right))
    return roots, len(index) + len(replica), (one, other)


def _differing(one: Numeral, other: Numeral) -> Collection[Digit] | None:
    """The digits by which two coordinates differ; None where they differ when every digit is 0."""
    if type(one) is type(other) is DigitSum and one.terms == other.terms and one.constant == other.constant:
        return ()
    if sets.form_of(one) == sets.form_of(other):
        return ()
    form, constant = sets.form_of(one - other)
    if constant == 0:
        return form
    if type(constant) is not int or any(type(d.extent) is not int for d in form):
        raise Unsupported("digits cannot rule out a difference for all sizes")
    return None


def _not_among(place: At, m: IndexMap, on: DigitNumbers) -> tuple[int, ...] | None:
    """An index and a replica with a place that no replica of `m` has."""
    given = place.map.domain.extents + (place.map.replicas.extents if place.replica else ())
    roots, point = _digits(given, 0, on)
    rank = len(place.map.domain.extents)
    chosen, replica = _digits(m.replicas.extents, len(point), on)
    one = place.map.place(point[:rank], point[rank:], on)
    other = m.place(point[:rank], replica, on)
    differences = [a - b for a, b in zip(one, other, strict=True)]
    try:
        forms = sets.forms_of(differences, roots + chosen)
    except Undecided:
        # for sizes that are not known it is enough that each replica is where its namesake is
        alike = place.replica and place.map.replicas.extents == m.replicas.extents
        if alike and _differ(place, At(m, place.point, place.replica), on) is None:
            return None
        raise
    if not all(sets.is_exact(root) for root in chosen):
        raise Unsupported("digits cannot split the replicas evenly")
    found = sets.missing(forms, leaves_of(roots), leaves_of(chosen))
    return None if found is None else index_of(len(point), roots, found)


def _each_covered(coordinates: Sequence[Numeral], box: Sequence[Numeral]) -> bool:
    """Whether each coordinate takes every value of its extent, for all sizes, independently of the others."""
    seen: set[Digit] = set()
    for coordinate, extent in zip(coordinates, box, strict=True):
        form, constant = sets.form_of(coordinate)
        if not seen.isdisjoint(form) or not surely_less(constant, 1):
            return False
        seen.update(form)
        # the values are all of constant .. constant + reach: each digit counts in steps no longer than that
        reach: Any = 0
        for digit, coefficient in ascending(form):
            if not surely_less(0, coefficient) or not surely_less(coefficient, reach + 2):
                return False
            reach = reach + coefficient * (digit.extent - 1)
        if not surely_less(extent, constant + reach + 2):
            return False
    return True


def _covers(m: IndexMap, box: tuple[Extent, ...], on: DigitNumbers) -> tuple[int, ...] | None:
    roots, coordinates = placed(m, on)
    elements, places = on.size(m.domain.count() * m.replicas.count()), on.size(product(box))
    if elements == places:
        known, _ = readable(coordinates)
        if known.issuperset(leaves_of(roots)) and _outside(m, box, on) is None:
            return None
    if type(elements) is not int or type(places) is not int:
        exact = all(sets.is_exact(root) and surely_less(0, root.extent) for root in roots)
        if exact and _each_covered(coordinates, [on.size(extent) for extent in box]):
            return None
        raise Unsupported("digits do not look for the first hole")
    if not all(sets.is_exact(root) for root in roots):
        raise Unsupported("digits cannot split the index evenly, so some of what they reach is no element's place")
    return sets.hole(sets.forms_of(coordinates, roots), [on.size(extent) for extent in box])
