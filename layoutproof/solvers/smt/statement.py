"""A claim written out in one dialect: the assumptions, and the violation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from layoutproof.core.claim import (
    And,
    At,
    Claim,
    Differ,
    Equal,
    Formula,
    LexLess,
    NotAmong,
    NotExists,
    NotViolated,
    Or,
    Outside,
    PlacePredicate,
    SizeCondition,
    Uncovered,
)
from layoutproof.core.errors import BudgetExceeded, Unsupported
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.result import Point
from layoutproof.core.size import Extent
from layoutproof.solvers.interval import Interval
from layoutproof.solvers.smt.bounded import Bounded, BoundedNumbers, Condition, Dialect, bounds, term_of
from layoutproof.solvers.smt.plain import Plain

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import ExprRef

MOST_REPLICAS = 256
"""Replicas of one element that are written out one by one."""


WRITTEN_OUT = 2048
"""Elements times replicas whose places are written out one by one, where whether one is reached is asked."""


def few(index_map: IndexMap) -> bool:
    """Whether the places of a map can be written out: its sizes are known, and there are not too many."""
    extents = (*index_map.domain.extents, *index_map.replicas.extents)
    return not index_map.sizes() and math.prod(int(extent) for extent in extents) <= WRITTEN_OUT


class Statement:
    """`violated` under `dialect.assumed`; a condition is a bool where the bounds of the values decide it.

    `sizes` are the ints to put in for the size symbols, or up to where they are unknowns (infinity for no end).
    An entry of a point is an int where the box leaves it no choice. Raises Undecided for unreached places where the
    dialect has no quantifiers.
    """

    def __init__(self, claim: Claim, dialect: Dialect, sizes: Mapping[str, int] | float) -> None:
        self.dialect = dialect
        self.possible: Any = True
        self.sizes: dict[str, Any] = {
            name: sizes[name] if isinstance(sizes, Mapping) else self._size(f"size {name}", sizes)
            for name in claim.sizes()
        }
        # smallest largest size first: with one symbol that is the symbol itself
        self.largest = [] if isinstance(sizes, Mapping) or len(self.sizes) < 2 else [self._size("largest size", sizes)]
        for size in self.sizes.values() if self.largest else ():
            dialect.assumed.append(dialect.logical_not(dialect.less(self.largest[0].term, size.term)))
        self.on = BoundedNumbers(dialect, self.sizes)
        if claim.where is not None:
            self._assume(claim.where.evaluate({}, self.on))
        self.points: dict[str, Index] = {
            name: tuple(self._entry(f"{name}[{k}]", extent) for k, extent in enumerate(space.extents))
            for name, space in claim.points.items()
        }
        self.violated: Any = self.on.logical_and(self.possible, self._holds(claim.violation))

    def unknowns(self) -> list[ExprRef]:
        """Terms of the sizes, the largest before all, then of the points: the order in which a violation is small."""
        row = (*self.largest, *self.sizes.values(), *(entry for point in self.points.values() for entry in point))
        return [entry.term for entry in row if type(entry) is not int]

    def point(self, values: Sequence[int]) -> Point:
        """The point at which the unknowns have these values."""
        rest = iter(values[len(self.largest) :])

        def read(entries: Iterable[object]) -> tuple[int, ...]:
            return tuple(entry if type(entry) is int else next(rest) for entry in entries)

        sizes = {"sizes": read(self.sizes.values())} if self.sizes else {}
        return sizes | {name: read(entries) for name, entries in self.points.items()}

    def _size(self, name: str, highest: float) -> Bounded:
        size = self._variable(name, 1, highest)
        self.dialect.assumed.append(self.dialect.logical_not(self.dialect.less(size.term, self.dialect.constant(1))))
        if type(highest) is int:
            self.dialect.assumed.append(self.dialect.below(size.term, self.dialect.constant(highest + 1)))
        return size

    def _variable(self, name: str, low: int, high: float) -> Bounded:
        self.dialect.note(low, high)
        return Bounded(self.dialect, Interval(low, high), self.dialect.variable(name, low))

    def _entry(self, name: str, extent: Extent) -> Bounded | int:
        size = self.on.size(extent)
        within = bounds(size)
        highest = (within - 1).high
        if highest < 0:
            self.possible = False
        if highest < 0 or within.low == within.high == 1:
            return 0
        entry = self._variable(name, 0, highest)
        self.dialect.assumed.append(self.dialect.below(entry.term, term_of(self.dialect, size)))
        return entry

    def _assume(self, condition: Condition) -> None:
        if type(condition) is bool:
            self.possible = self.possible and condition
        else:
            self.dialect.assumed.append(condition)

    def _holds(self, formula: Formula) -> Condition:
        on = self.on
        match formula:
            case LexLess(first, second):
                before: Any = False
                for a, b in reversed(list(zip(self.points[first], self.points[second], strict=True))):
                    before = on.logical_or(on.less(a, b), on.logical_and(on.equal(a, b), before))
                return before
            case Equal(left, right):
                return self._equal(left, right)
            case Differ(left, right):
                return on.logical_not(self._equal(left, right))
            case Outside(place, extents):
                box = place.map.range.extents if extents is None else extents
                pairs = zip(self._at(place), box, strict=True)
                return self._any(on.logical_or(on.less(v, 0), on.logical_not(on.less(v, on.size(e)))) for v, e in pairs)
            case NotAmong(place, index_map, point):
                here, replicas = self._at(place), self._replicas(index_map)
                places = [index_map.place(self.points[point], replica, on) for replica in replicas]
                return reduce(on.logical_and, [on.logical_not(self._all_equal(here, there)) for there in places], True)
            case Uncovered(index_map, point):
                return self._unreached(index_map, self.points[point])
            case NotViolated():
                raise Unsupported("that no point violates a claim needs for-all inside exists; isl decides that")
            case NotExists():
                raise Unsupported("that no further point exists needs for-all inside exists; isl decides that")
            case SizeCondition(condition):
                return condition.evaluate({}, on)
            case PlacePredicate(places, condition):
                return condition(tuple(self._at(place) for place in places), on)
            case And(parts):
                return reduce(on.logical_and, [self._holds(part) for part in parts], True)
            case Or(parts):
                return self._any(self._holds(part) for part in parts)

    def _unreached(self, index_map: IndexMap, target: Index) -> Condition:
        """No replica of any element is placed at the target: a condition under a for-all."""
        dialect, on = self.dialect, self.on
        box = (*index_map.domain.extents, *index_map.replicas.extents)
        rank = len(index_map.domain.extents)
        if few(index_map):
            places = {index_map.place(row[:rank], row[rank:], on) for row in product(*[range(int(e)) for e in box])}
            reached = [self._all_equal(target, place) for place in sorted(places)]
            return reduce(on.logical_and, map(on.logical_not, reached), True)
        if not isinstance(dialect, Plain):
            raise Unsupported("an unreached place needs for-all inside exists")
        before, possible, doubts = len(dialect.assumed), self.possible, dialect.doubts
        entries = tuple(self._entry(f"reached[{k}]", extent) for k, extent in enumerate(box))
        held = self._all_equal(index_map.place(entries[:rank], entries[rank:], on), target)
        # the assumptions on the element, divisors in doubt among them, are a part of being placed there
        inside, empty = dialect.assumed[before:], not self.possible and possible
        del dialect.assumed[before:]
        self.possible, dialect.doubts = possible, doubts
        if empty or held is False:
            return True
        whole = dialect.conjunction([*inside, *([] if held is True else [held])])
        return dialect.for_none([entry.term for entry in entries if not isinstance(entry, int)], whole)

    def _any(self, conditions: Iterable[Condition]) -> Condition:
        return reduce(self.on.logical_or, conditions, False)

    def _replicas(self, index_map: IndexMap) -> Iterable[Index]:
        extents = [self.on.size(extent) for extent in index_map.replicas.extents]
        if not all(type(extent) is int for extent in extents):
            raise Unsupported("the number of replicas is not known, and each has to be looked at")
        count = math.prod(extents)
        if count > MOST_REPLICAS:
            raise BudgetExceeded(f"there are {count} replicas to look at; z3 is asked about {MOST_REPLICAS} at most")
        return product(*map(range, extents))

    def _equal(self, left: At, right: At) -> Condition:
        return self._all_equal(self._at(left), self._at(right))

    def _all_equal(self, left: Index, right: Index) -> Condition:
        return reduce(self.on.logical_and, [self.on.equal(a, b) for a, b in zip(left, right, strict=True)], True)

    def _at(self, where: At) -> Index:
        return where.map.place(self.points[where.point], self.points[where.replica] if where.replica else (), self.on)
