"""Enumeration on arrays: every point is tried as in `brute`, a million at a time; pairs are found by sorting places.

Elements that share a place stand side by side once places are sorted, so n elements take n log n steps, not n * n. It
is exact: it answers only where intervals have shown that 64 bits are enough for every step of `place`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutproof.core.budget import spend
from layoutproof.core.claim import (
    And,
    At,
    Claim,
    Differ,
    Equal,
    Formula,
    LexLess,
    NotAmong,
    Or,
    Outside,
    PlacePredicate,
    SizeCondition,
    Uncovered,
    allows,
)
from layoutproof.core.errors import BudgetExceeded, Unsupported
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.result import Point
from layoutproof.solvers.arrays import CHUNK, LARGEST, ArrayNumbers, boxes, within_numbers
from layoutproof.solvers.interval import ends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.int64]

ROWS = 512
"""Rows of a formula of weight 1 that are worked out in one step of a budget."""
MOST = 10_000_000
"""Elements and replicas whose places are sorted or marked at effort 1: a second, and at most 400 megabytes."""

LARGEST_TABLE = 100_000_000
"""The same at any effort: more do not fit into the memory of a small machine."""

EACH = 256
"""Replicas that are looked at one after the other."""

Ints = tuple[int, ...]
Values = Callable[[Index, Numbers], tuple[Any, ...]]
"""A function of an index, on any kind of number."""


def decide(claim: Claim, most: int = MOST, weight: int = 1) -> Point | None:
    """The smallest violation of a claim of constant sizes, or None when no choice of points violates it.

    Raises Undecided for what does not run on arrays, and over `most` rows where none of the first is a violation.

    >>> from layoutproof.core.space import Space
    >>> line = IndexMap(Space(("i",), (5000,)), Space(("o",), (9,)), lambda x, c, on: (x[0] % 4999,))
    >>> pair = {"first": line.domain, "second": line.domain}
    >>> decide(Claim(pair, And((LexLess("first", "second"), Equal(At(line, "first"), At(line, "second"))))))
    {'first': (0,), 'second': (4999,)}
    """
    import numpy as np

    if claim.sizes():
        raise Unsupported("tables are of constant sizes")
    if not allows(claim.where, INTS):
        return None
    with np.errstate(divide="raise"):
        try:
            return _decide(claim, min(most, LARGEST_TABLE), weight)
        except (FloatingPointError, ZeroDivisionError):
            raise Unsupported("the map divides by zero") from None
        except OverflowError:
            raise Unsupported("a step of the map may not fit into 64 bits") from None


def work(claim: Claim) -> float:
    """Rows that `decide` works out at most; infinity for symbolic sizes."""
    if claim.sizes():
        return inf
    pair = _pair(claim)
    if pair is not None:
        return prod(_extents(claim, (*pair.elements[:1], *pair.replicas[:1])))
    if isinstance(claim.violation, Uncovered):
        m = claim.violation.map
        return prod(int(extent) for extent in (*m.domain.extents, *m.replicas.extents))
    return prod(_extents(claim, tuple(claim.points)))


def sorts(claim: Claim) -> bool:
    """Whether `decide` sorts or marks places, and has no smallest violation before it has seen all of them."""
    return isinstance(claim.violation, Uncovered) or _pair(claim) is not None


def _decide(claim: Claim, most: int, weight: int) -> Point | None:
    pair = _pair(claim)
    if pair is not None:
        return (_shared if len(pair.elements) == 2 else _repeated)(claim, pair, most)
    if isinstance(claim.violation, Uncovered):
        return _unreached(claim, claim.violation.map, claim.violation.point, most)
    return _first(claim, most, weight)


class _PointPair(NamedTuple):
    """Two points of one box, the first before the second, at one place of a map: names of the points."""

    map: IndexMap
    elements: tuple[str, ...]
    replicas: tuple[str, ...]


def _pair(claim: Claim) -> _PointPair | None:
    match claim.violation:
        case And((LexLess(first, second), Equal(At(left, p, c), At(right, q, d)))) if left is right:
            index, replica = tuple(dict.fromkeys((p, q))), tuple(dict.fromkeys(filter(None, (c, d))))
            found = _PointPair(left, index, replica)
            kind = (len(index), len(replica))
            named = (first, second) == (index if kind in ((2, 0), (2, 2)) else replica if kind == (1, 2) else ())
            if not named or tuple(claim.points) != index + replica or bool(c) != bool(d):
                return None
            boxes_ = [{_extents(claim, (name,)) for name in names} for names in (index, replica)]
            return found if all(len(box) <= 1 for box in boxes_) else None
    return None


def _extents(claim: Claim, names: tuple[str, ...]) -> Ints:
    return tuple([int(extent) for name in names for extent in claim.points[name].extents])


class _IndexRows(NamedTuple):
    """Something worked out of every index of a box, with the smallest and largest value that each entry may have."""

    extents: Ints
    values: Values
    within: list[tuple[int, int]]

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[int, tuple[Any, ...], Ints]]:
        """(number of the first index, the entries, the shape they broadcast to), in the order of indices.

        size: indices that are worked out at once.
        """
        import numpy as np

        on, start = ArrayNumbers(np), 0
        for box in boxes(self.extents, size):
            shape = tuple([part.stop - part.start for part in box])
            yield start, self.values(tuple(np.ogrid[box]) if box else (), on), shape
            start += prod(shape)


def _rows(extents: Ints, values: Values, most: int) -> _IndexRows:
    if prod(extents) > most:
        raise BudgetExceeded(f"there are more than {most} places to sort")
    within, on = within_numbers(LARGEST)
    found = values(tuple([within(0, max(0, extent - 1)) for extent in extents]), on)
    return _IndexRows(extents, values, [ends(entry) for entry in found])


def _placed(m: IndexMap, extents: Ints, rank: int, most: int) -> _IndexRows:
    """The places of a box of indices, the replica behind the index."""
    return _rows(extents, lambda row, on: m.place(row[:rank], row[rank:], on), most)


def _keys(rows: _IndexRows) -> Column:
    """One number for each row, the same for two rows exactly where all entries are."""
    import numpy as np

    spans = [high - low + 1 for low, high in rows.within]
    if prod(spans) > LARGEST:
        return _ranks(rows)
    keys = np.empty(prod(rows.extents), dtype=np.int64)
    for start, entries, shape in rows.chunks():
        key: Any = 0
        for entry, span, (low, _) in zip(entries, spans, rows.within, strict=True):
            key = key * span + (entry - low)
        keys[start : start + prod(shape)] = np.broadcast_to(key, shape).reshape(-1)
    return keys


def _ranks(rows: _IndexRows) -> Column:
    """The same where the entries of a row together do not fit into 64 bits: ranks take their stead."""
    import numpy as np

    keys = np.zeros(prod(rows.extents), dtype=np.int64)
    for number in range(len(rows.within)):
        column = np.empty(len(keys), dtype=np.int64)
        for start, entries, shape in rows.chunks():
            column[start : start + prod(shape)] = np.broadcast_to(entries[number], shape).reshape(-1)
        different, column = np.unique(column, return_inverse=True)
        keys = np.unique(keys * len(different) + column.reshape(-1), return_inverse=True)[1].reshape(-1)
    return keys


def _meeting(keys: Column, owners: int = 1) -> tuple[int, int] | None:
    """The smallest row with the key of a later one, and that one, where each `owners` rows are of one element."""
    import numpy as np

    order = np.argsort(keys, kind="stable")
    sorted_, element = keys[order], order // owners
    meet = (sorted_[1:] == sorted_[:-1]) & (element[1:] != element[:-1])
    if not meet.any():
        return None
    first, second = element[:-1][meet], element[1:][meet]
    smallest = first.min()
    return int(smallest), int(second[first == smallest].min())


def _distinct(keys: Column) -> bool:
    """Whether no two are equal; without the order of the rows, which takes longer."""
    import numpy as np

    low, high = int(keys.min()), int(keys.max())
    if high - low < 8 * len(keys):
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        seen[keys - low] = True
        return bool(np.count_nonzero(seen) == len(keys))
    sorted_ = np.sort(keys)
    return not bool((sorted_[1:] == sorted_[:-1]).any())


def _shared(claim: Claim, pair: _PointPair, most: int) -> Point | None:
    """Two elements, and a replica of each if there are any, with one place."""
    index, replica = _extents(claim, pair.elements[:1]), _extents(claim, pair.replicas[:1])
    if 0 in (*index, *replica):
        return None
    keys = _keys(_placed(pair.map, index + replica, len(index), most))
    if _distinct(keys):
        return None
    many = prod(replica)
    found = _meeting(keys, many)
    if found is None:
        return None
    one, other = [keys[row * many : (row + 1) * many].tolist() for row in found]
    chosen = next((a, other.index(key)) for a, key in enumerate(one) if key in other)
    points = [_index(row, index) for row in found] + [_index(row, replica) for row in chosen if replica]
    return dict(zip(claim.points, points, strict=True))


def _repeated(claim: Claim, pair: _PointPair, most: int) -> Point | None:
    """An element and two replicas of it with one place."""
    import numpy as np

    index, replica = _extents(claim, pair.elements[:1]), _extents(claim, pair.replicas[:1])
    if 0 in (*index, *replica):
        return None
    keys = _keys(_placed(pair.map, index + replica, len(index), most)).reshape(-1, prod(replica))
    sorted_ = np.sort(keys, axis=1)
    meet = (sorted_[:, 1:] == sorted_[:, :-1]).any(axis=1)
    if not meet.any():
        return None
    element = int(meet.argmax())
    found = _meeting(keys[element])
    assert found is not None
    points = [_index(element, index), *[_index(row, replica) for row in found]]
    return dict(zip(claim.points, points, strict=True))


def _unreached(claim: Claim, m: IndexMap, point: str, most: int) -> Point | None:
    """The smallest place of the box without an element."""
    import numpy as np

    box = _extents(claim, (point,))
    if prod(box) > LARGEST:
        raise OverflowError
    rank = len(m.domain.extents)
    rows = _placed(m, tuple([int(e) for e in (*m.domain.extents, *m.replicas.extents)]), rank, most)
    # n rows reach at most n places, so one of the first n + 1 is free or there are no more
    seen = np.zeros(min(prod(box), prod(rows.extents) + 1), dtype=np.bool_)
    for _, entries, shape in rows.chunks() if seen.size and 0 not in rows.extents else ():
        inside: Any = True
        for entry, extent in zip(entries, box, strict=True):
            inside = inside & (entry >= 0) & (entry < extent)
        inside = np.broadcast_to(inside, shape)
        places: Any = 0
        for entry, extent in zip(entries, box, strict=True):
            places = places * extent + np.broadcast_to(entry, shape)[inside]
        places = np.broadcast_to(places, (int(np.count_nonzero(inside)),))
        seen[places[places < seen.size]] = True
    if seen.all():
        return None
    return {point: _index(int(seen.argmin()), box)}


def _first(claim: Claim, most: int, weight: int) -> Point | None:
    """The first row of all points, one after the other, that is a violation."""
    import numpy as np

    extents = _extents(claim, tuple(claim.points))
    if 0 in extents:
        return None

    def holds(row: Index, on: Numbers) -> tuple[object, ...]:
        points, start = {}, 0
        for name, space in claim.points.items():
            points[name] = row[start : start + len(space.extents)]
            start += len(space.extents)
        return (_holds(claim.violation, points, on),)

    within, on = within_numbers(LARGEST)
    holds(tuple([within(0, extent - 1) for extent in extents]), on)
    size = max(1, min(CHUNK // weight, most))
    for start, (held,), shape in _IndexRows(extents, holds, []).chunks(size):
        if start >= most:
            raise BudgetExceeded(f"none of the first {start} combinations of points is a violation")
        # a value that does not depend on a point is computed once for all of its rows
        spend(1 + int(np.size(held)) * weight // ROWS)
        violated = np.broadcast_to(held, shape)
        if violated.any():
            row = _index(start + int(violated.reshape(-1).argmax()), extents)
            points, at = {}, 0
            for name, space in claim.points.items():
                points[name] = row[at : at + len(space.extents)]
                at += len(space.extents)
            return points
    return None


def _holds(formula: Formula, points: Mapping[str, Index], on: Numbers) -> object:
    """A formula on any kind of number; the meaning is that of `brute`."""
    match formula:
        case LexLess(first, second):
            before: Any = False
            for a, b in reversed(list(zip(points[first], points[second], strict=True))):
                before = on.logical_or(on.less(a, b), on.logical_and(on.equal(a, b), before))
            return before
        case Equal(left, right):
            return _equal(_at(left, points, on), _at(right, points, on), on)
        case Differ(left, right):
            return on.logical_not(_equal(_at(left, points, on), _at(right, points, on), on))
        case Outside(place, extents):
            box = place.map.range.extents if extents is None else extents
            outside: Any = False
            for value, extent in zip(_at(place, points, on), box, strict=True):
                beyond = on.logical_or(on.less(value, 0), on.logical_not(on.less(value, on.size(extent))))
                outside = on.logical_or(outside, beyond)
            return outside
        case NotAmong(place, m, point):
            here, replicas = _at(place, points, on), [int(extent) for extent in m.replicas.extents]
            if prod(replicas) > EACH:
                raise BudgetExceeded(f"there are more than {EACH} replicas to look at one after the other")
            each = itertools.product(*map(range, replicas))
            apart = [on.logical_not(_equal(here, m.place(points[point], replica, on), on)) for replica in each]
            return reduce(on.logical_and, apart, True)
        case SizeCondition(condition):
            return condition.evaluate({}, on)
        case PlacePredicate(places, condition):
            return condition(tuple([_at(place, points, on) for place in places]), on)
        case And(parts):
            return reduce(on.logical_and, [_holds(part, points, on) for part in parts], True)
        case Or(parts):
            return reduce(on.logical_or, [_holds(part, points, on) for part in parts], False)
    raise Unsupported(f"{type(formula).__name__} is not worked out on arrays")


def _equal(left: Index, right: Index, on: Numbers) -> object:
    return reduce(on.logical_and, [on.equal(a, b) for a, b in zip(left, right, strict=True)], True)


def _at(where: At, points: Mapping[str, Index], on: Numbers) -> Index:
    return where.map.place(points[where.point], points[where.replica] if where.replica else (), on)


def _index(row: int, extents: Ints) -> Ints:
    """The index with this number in lexicographic order."""
    found: list[int] = []
    for extent in reversed(extents):
        row, entry = divmod(row, extent)
        found.append(entry)
    return tuple(reversed(found))
