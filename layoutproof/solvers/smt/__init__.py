"""Z3: bit-vectors for constant sizes; integers, with products and symbolic divisors, for run-time sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import z3

from layoutproof.core.claim import All, Any_, At, Before, Claim, Differ, Formula, Holds, Outside, Same, Unreached
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import Index
from layoutproof.core.result import Point
from layoutproof.core.size import Extent
from layoutproof.solvers.smt.bounded import Bounded, BoundedNumbers, bounds, plus, term_of
from layoutproof.solvers.smt.dialects import Bits, Integers, Widths
from layoutproof.solvers.smt.search import Search

BUDGET = 20_000_000
"""Steps of z3 (`rlimit`) spent at effort 1; deterministic where seconds are not."""


def decide(claim: Claim, effort: int = 1) -> Point | None:
    """The smallest violation, or None when none exists for any sizes >= 1 that satisfy `claim.where`.

    Raises Undecided when the budget is spent, and for what z3 is not asked here: unreached places, xor of symbolic
    sizes, divisors that may be 0 or negative.
    """
    try:
        return _decide(claim, BUDGET * effort)
    except z3.Z3Exception as error:
        raise Undecided(f"z3 cannot: {error}") from None


def _decide(claim: Claim, budget: int) -> Point | None:
    dialect: Bits | Integers
    if claim.sizes():
        dialect = Integers()
    else:
        widths = Widths()
        _Statement(claim, widths)
        dialect = Bits(widths.width)
    statement = _Statement(claim, dialect)
    if statement.violated is False:
        return None
    _divisors_are_positive(dialect, budget)
    search = Search(_solver(dialect), budget)
    search.solver.add(*dialect.assumed)
    if statement.violated is not True:
        search.solver.add(statement.violated)
    if not search.possible():
        return None
    rows = statement.rows()
    free = [v for v in rows if type(v) is not int]
    values = iter(search.smallest([v.term for v in free], [int(v.low) for v in free], at_most))
    return statement.point([v if type(v) is int else next(values) for v in rows])


def at_most(term: Any, value: int) -> Any:
    return z3.ULE(term, value) if z3.is_bv(term) else term <= value


def _solver(dialect):
    return z3.Solver() if isinstance(dialect, Integers) else z3.SolverFor("QF_BV")


def _divisors_are_positive(dialect: Bits | Integers, budget: int) -> None:
    for before, divisor in dialect.doubts:
        search = Search(z3.Solver(), budget)
        search.solver.add(*dialect.assumed[:before], divisor < 1)
        if search.possible():
            raise Undecided(f"divides by {divisor}, which may be 0 or negative")


class _Statement:
    def __init__(self, claim: Claim, dialect: Any) -> None:
        self.claim = claim
        self.dialect = dialect
        self.sizes: dict[str, Any] = {}
        for name in claim.sizes():
            self.sizes[name] = self._variable(name, 1, math.inf)
            dialect.assumed.append(dialect.at_least(self.sizes[name].term, 1))
        self.on = BoundedNumbers(dialect, self.sizes)
        if len(self.sizes) > 1:
            self.largest = self._variable("largest size", 1, math.inf)
            dialect.assumed += [dialect.opposite(dialect.less(self.largest.term, s.term)) for s in self.sizes.values()]
        if claim.where is not None:
            self._assume(claim.where.evaluate({}, self.on))
        self.points: dict[str, Index] = {}
        for name, space in claim.points.items():
            self.points[name] = tuple(self._entry(f"{name}[{k}]", e) for k, e in enumerate(space.extents))
        self.violated: Any = self._holds(claim.violation)

    def _variable(self, name: str, low: int, high: float) -> Bounded:
        self.dialect.note(low, high)
        return Bounded(self.dialect, low, high, self.dialect.variable(name))

    def _entry(self, name: str, extent: Extent) -> Any:
        size = self.on.size(extent)
        most = plus(bounds(size)[1], -1)
        if most < 0:
            self._assume(False)
        if most <= 0:
            return 0
        entry = self._variable(name, 0, most)
        self.dialect.assumed.append(self.dialect.below(entry.term, term_of(self.dialect, size)))
        return entry

    def _assume(self, condition: Any) -> None:
        if condition is not True:
            self.dialect.assumed.append(self.dialect.never() if condition is False else condition)

    def rows(self) -> list[Any]:
        largest = [self.largest] if len(self.sizes) > 1 else []
        return [*largest, *self.sizes.values(), *(v for point in self.points.values() for v in point)]

    def point(self, values: list[int]) -> Point:
        values = values[1:] if len(self.sizes) > 1 else values
        at = len(self.sizes)
        found = {"sizes": tuple(values[:at])} if at else {}
        for name, point in self.points.items():
            found[name] = tuple(values[at : at + len(point)])
            at += len(point)
        return found

    def _holds(self, formula: Formula) -> Any:
        on = self.on
        match formula:
            case Before(first, second):
                before: Any = False
                for a, b in reversed(list(zip(self.points[first], self.points[second], strict=True))):
                    before = on.either(on.less(a, b), on.both(on.equal(a, b), before))
                return before
            case Same(left, right):
                return self._equal(left, right)
            case Differ(left, right):
                return on.opposite(self._equal(left, right))
            case Outside(place, extents):
                box = place.map.range.extents if extents is None else extents
                pairs = zip(self._at(place), box, strict=True)
                return self._any(on.either(on.less(v, 0), on.opposite(on.less(v, on.size(e)))) for v, e in pairs)
            case Unreached():
                raise Undecided("unreached places need for-all inside exists, which z3 is not asked here")
            case Holds(condition):
                return condition.evaluate({}, on)
            case All(parts):
                return reduce(on.both, (self._holds(part) for part in parts), True)
            case Any_(parts):
                return self._any(self._holds(part) for part in parts)

    def _any(self, conditions: Iterable[Any]) -> Any:
        return reduce(self.on.either, conditions, False)

    def _equal(self, left: At, right: At) -> Any:
        pairs = zip(self._at(left), self._at(right), strict=True)
        return reduce(self.on.both, (self.on.equal(a, b) for a, b in pairs), True)

    def _at(self, where: At) -> Index:
        return where.map.place(self.points[where.point], self.points[where.copy] if where.copy else (), self.on)
