"""The structural engine: a layout's coordinates as linear forms over digits, decided by their coefficients.

Applies when divisors nest (tiles do). Cost depends on the number of digits, never on the size of the array. Constants
are decided both ways with the smallest counterexample; for symbolic sizes it only proves, and proves for all sizes.

The facts used: digits of different indices and positions vary independently over a box that contains every valid
index, and each single digit can be 1 while all others are 0.
"""

from __future__ import annotations

from functools import cmp_to_key, lru_cache
from operator import itemgetter
from typing import Any

from layoutproof.core.assume import alternatives, substitution
from layoutproof.core.claim import All, At, Before, Claim, Differ, Holds, Outside, Same, Unreached
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import Point
from layoutproof.core.size import surely_less
from layoutproof.solvers.digits.number import Digit, DigitNumbers, Sum, bounds, index_of, magnitude

_PLAIN = DigitNumbers()


def decide(claim: Claim, effort: int = 1) -> Point | None:
    """None when no violation exists, else the smallest one; Undecided when digits do not settle it."""
    if claim.where is None:
        point = _violation(claim, _PLAIN)
    else:
        # sizes that satisfy one alternative or the other: proved when it is proved under each
        found = [_violation(claim, DigitNumbers(substitution(case))) for case in alternatives(claim.where)]
        point = next((p for p in found if p is not None), None)
    if point is not None and claim.sizes():
        raise Undecided("digits do not look for the smallest sizes")
    return point


def _violation(claim: Claim, on: DigitNumbers) -> Point | None:
    match claim.violation:
        case All((Before(first, second), Same(At(left, p, ""), At(right, q, "")))) if left is right and (p, q) == (
            first,
            second,
        ):
            index = _injective(left, on)
            return None if index is None else {first: (0,) * len(index), second: index}
        case Outside(At(m, point, ""), extents):
            index = _outside(m, extents or m.range.extents, on)
            return None if index is None else {point: index}
        case Differ(At(left, point, ""), At(right, same, "")) if point == same:
            index = _differ(left, right, on)
            return None if index is None else {point: index}
        case Unreached(m, _):
            _covers(m, on)
            return None
        case Holds(condition):
            return {} if condition.evaluate({}, on) else None
    raise Undecided("digits do not know this kind of claim")


def _indices(m: IndexMap, on: DigitNumbers) -> tuple[list[Digit], tuple[Any, ...]]:
    if m.copies.extents:
        raise Undecided("digits do not combine copies")
    roots: list[Digit] = []
    index: list[Any] = []
    for dimension, extent in enumerate(m.domain.extents):
        size = on.size(extent)
        if type(size) is int and size == 1:
            index.append(Sum(()))
            continue
        digit = Digit(dimension, size, 1)
        roots.append(digit)
        index.append(Sum(((1, digit),)))
    return roots, tuple(index)


@lru_cache(maxsize=8)
def _placed(m: IndexMap, on: DigitNumbers) -> tuple[list[Digit], tuple[Any, ...]]:
    """The digits of an index and the coordinates of its place; kept, because claims come in groups about one map."""
    roots, index = _indices(m, on)
    return roots, m.place(index, (), on)


def _form(coordinate: Any) -> tuple[dict[Digit, Any], Any]:
    if type(coordinate) is Sum:
        return coordinate.over_leaves(), coordinate.constant
    return {}, coordinate


def _leaves(roots: list[Digit]) -> list[Digit]:
    """All digits in lexicographic order of the indices they make."""
    return [leaf for root in roots for leaf in root.leaves()]


def _injective(m: IndexMap, on: DigitNumbers) -> tuple[int, ...] | None:
    roots, coordinates = _placed(m, on)
    rank = len(m.domain.extents)
    known: set[Digit] = set()
    waiting = []
    for coordinate in coordinates:
        if type(coordinate) is Sum:
            form = coordinate.over_leaves()
            if len(form) == 1 and type(next(iter(form.values()))) is int:
                known.update(form)
            else:
                waiting.append(form)
    progress = True
    while progress and waiting:
        progress = False
        later = []
        for form in waiting:
            unknown = {d: c for d, c in form.items() if d not in known}
            if _decodes(unknown):
                known.update(unknown)
                progress = True
            else:
                later.append(form)
        waiting = later
    missing = [leaf for leaf in _leaves(roots) if leaf not in known]
    if not missing:
        return None
    if waiting or not all(type(leaf.extent) is int for leaf in missing):
        raise Undecided("digits overlap within a coordinate")
    # every digit that shows is known, so two indices collide iff they differ in hidden digits only
    return index_of(rank, {missing[-1]: 1})


def _decodes(form: dict[Digit, Any]) -> bool:
    """Whether the digits can be read back from the sum: each outweighs all lighter ones together."""
    constant = all(type(c) is int for c in form.values())
    sizes = [(abs(c) if constant else magnitude(c), d.extent) for d, c in form.items()]
    sizes.sort(key=itemgetter(0) if constant else cmp_to_key(_by_size))
    span: Any = 0
    for coefficient, extent in sizes:
        if not surely_less(span, coefficient):
            return False
        span = span + coefficient * (extent - 1)
    return True


def _by_size(left: tuple[Any, Any], right: tuple[Any, Any]) -> int:
    return -1 if surely_less(left[0], right[0] + 1) else 1 if surely_less(right[0], left[0] + 1) else 0


def _outside(m: IndexMap, extents: tuple[Any, ...], on: DigitNumbers) -> tuple[int, ...] | None:
    roots, coordinates = _placed(m, on)
    rank = len(m.domain.extents)
    violations: list[tuple[int, ...]] = []
    for coordinate, extent in zip(coordinates, extents, strict=True):
        form, constant = _form(coordinate)
        low, high = bounds(form, constant) if form else (constant, constant)
        if type(extent) is int and type(low) is int and type(high) is int:
            if low >= 0 and high < extent:
                continue
        else:
            extent = on.size(extent)
        if surely_less(-1, low) and surely_less(high, extent):
            continue
        if not all(type(n) is int for n in (low, high, extent)):
            raise Undecided("digits cannot bound a coordinate for all sizes")
        leaves = _leaves(roots)
        if high >= extent:
            violations.append(_smallest_above(form, extent - constant, leaves, rank))
        if low < 0:
            flipped = {d: -c for d, c in form.items()}
            violations.append(_smallest_above(flipped, constant + 1, leaves, rank))
    if not violations:
        return None
    smallest = min(violations)
    if not m.domain.is_constant():
        raise Undecided("digits do not look for the smallest sizes")
    if any(entry >= on.size(extent) for entry, extent in zip(smallest, m.domain.extents, strict=True)):
        raise Undecided("the smallest digits out of bounds belong to padding")
    return smallest


def _smallest_above(form: dict[Digit, int], bound: int, leaves: list[Digit], rank: int) -> tuple[int, ...]:
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
    return index_of(rank, values)


def _differ(left: IndexMap, right: IndexMap, on: DigitNumbers) -> tuple[int, ...] | None:
    roots, index = _indices(left, on)
    pairs = list(zip(left.place(index, (), on), right.place(index, (), on), strict=True))
    differing: set[Digit] = set()
    for one, other in pairs:
        form, constant = _form(one - other)
        if constant != 0:
            if type(constant) is not int or any(type(d.extent) is not int for d in form):
                raise Undecided("digits cannot rule out a difference for all sizes")
            return (0,) * len(index)
        differing.update(form)
    if not differing:
        return None
    leaves = [leaf for leaf in _leaves(roots) if leaf in differing]
    if not all(type(root.extent) is int for root in roots):
        raise Undecided("digits cannot rule out a difference for all sizes")
    # everything smaller has all differing digits 0, and there the maps agree
    return index_of(len(index), {leaves[-1]: 1})


def _covers(m: IndexMap, on: DigitNumbers) -> None:
    elements, places = on.size(m.domain.count()), on.size(m.range.count())
    if elements != places:
        raise Undecided("digits do not look for the first hole")
    if _outside(m, m.range.extents, on) is not None or _injective(m, on) is not None:
        raise Undecided("digits count places only for maps that are injective and in bounds")
