"""Exact integer sets (islpy): every quasi-affine claim, for constant sizes and for run-time sizes alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import islpy as isl

from layoutproof.core.claim import All, Any_, At, Before, Claim, Differ, Formula, Holds, Outside, Same, Unreached
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import Extent

BUDGET = 300_000
"""Operations of isl at effort 1. Layouts of tools in use need below 10,000; 300,000 can take some seconds."""

_SET = isl.dim_type.set
_IN = isl.dim_type.in_


def decide(claim: Claim, effort: float = 1) -> Point | None:
    """The smallest violation, or None when none exists for any sizes >= 1 that satisfy `claim.where`.

    Raises Undecided when the budget is spent, and for what is not quasi-affine: products of two values that vary,
    divisors that vary, xor.

    >>> from layoutproof.core.space import Space
    >>> line = IndexMap(Space(("i",), (5,)), Space(("o",), (3,)), lambda x, c, on: (x[0] % 3,))
    >>> pair = {"first": line.domain, "second": line.domain}
    >>> decide(Claim(pair, All((Before("first", "second"), Same(At(line, "first"), At(line, "second"))))))
    {'first': (0,), 'second': (3,)}
    """
    budget = int(BUDGET * effort)
    context = isl.Context()
    # isl's own default prints every error to stderr, and another setting aborts the process
    context.set_on_error(isl.on_error.CONTINUE)
    context.set_max_operations(budget)
    try:
        return _decide(claim, context)
    except isl.Error as error:
        if "maximal number of operations" in str(error):
            raise Undecided(f"the budget of {budget} isl operations is spent") from None
        raise Undecided(f"isl cannot: {str(error).partition(' in /')[0]}") from None
    except RecursionError:
        # islpy's own answer to an int divided by one of its functions
        raise Undecided("divides by a value that varies, which isl cannot: a divisor must be a constant") from None


def _decide(claim: Claim, context: Any) -> Point | None:
    sizes = claim.sizes()
    # the largest size goes first: the lexicographic minimum then has the smallest sizes
    largest = ("the largest size",) if sizes else ()
    entries = [f"{name}[{k}]" for name, space in claim.points.items() for k in range(len(space.extents))]
    frame = _Frame(context, (*largest, *(f"the size {name}" for name in sizes), *entries))
    on = _Affine(frame, {name: frame.variable(k) for k, name in enumerate(sizes, 1)})
    points: dict[str, Index] = {}
    assumed = [on.opposite(on.less(frame.variable(0), size)) for size in on.sizes.values()]
    assumed += [on.less(0, size) for size in on.sizes.values()]
    start = len(largest) + len(sizes)
    for name, space in claim.points.items():
        points[name] = tuple(frame.variable(start + k) for k in range(len(space.extents)))
        assumed += _inside(points[name], space.extents, on)
        start += len(space.extents)
    if claim.where is not None:
        assumed.append(claim.where.evaluate({}, on))
    bad = _violations(claim.violation, points, on, reduce(on.both, assumed, frame.everything))
    if bad.is_empty():
        return None
    row = _smallest(bad, context, len(frame.labels))[len(largest) :]
    found = {"sizes": row[: len(sizes)]} if sizes else {}
    start = len(sizes)
    for name, point in points.items():
        found[name] = row[start : start + len(point)]
        start += len(point)
    return found


def _smallest(some: Any, context: Any, count: int) -> tuple[int, ...]:
    """The lexicographically smallest point of a set that is not empty."""
    # islpy 2026.2.2: lexmin fails on { [i, i] : i mod 2 = 0 and .. } ("affine expression involves some of the domain
    # dimensions"), and dim_min_val takes 0 for the minimum of a part that has rational points only
    rows = []
    for part in [isl.Set.from_basic_set(basic) for basic in some.get_basic_sets() if not basic.is_empty()]:
        row = []
        for k in range(count):
            row.append(part.dim_min_val(k))
            part = part.fix_val(_SET, k, row[-1])
        rows.append(row)
    # reading numbers out must not fail half-way
    context.set_max_operations(0)
    return min(tuple(value.to_python() for value in row) for row in rows)


def _violations(formula: Formula, points: Mapping[str, Index], on: _Affine, within: Any) -> Any:
    """Where the formula holds, as a part of the set `within`."""

    def at(where: At) -> Index:
        return where.map.place(points[where.point], points[where.copy] if where.copy else (), on)

    def any_of(conditions: Iterable[Any]) -> Any:
        # one part at a time: each stays a small set, where the condition alone may be a large one
        return reduce(on.either, [on.both(within, condition) for condition in conditions], on.frame.nothing)

    match formula:
        case Before(first, second):
            result, equal = on.frame.nothing, within
            for a, b in zip(points[first], points[second], strict=True):
                result = on.either(result, on.both(equal, on.less(a, b)))
                equal = on.both(equal, on.equal(a, b))
            return result
        case Same(left, right):
            return reduce(on.both, [on.equal(a, b) for a, b in zip(at(left), at(right), strict=True)], within)
        case Differ(left, right):
            return any_of(on.opposite(on.equal(a, b)) for a, b in zip(at(left), at(right), strict=True))
        case Outside(place, extents):
            box = place.map.range.extents if extents is None else extents
            return any_of(on.opposite(condition) for condition in _inside(at(place), box, on))
        case Unreached(index_map, point):
            return within.subtract(_reached(index_map, points[point], on))
        case Holds(condition):
            return on.both(within, condition.evaluate({}, on))
        case All(parts):
            return reduce(lambda left, part: _violations(part, points, on, left), parts, within)
        case Any_(parts):
            return reduce(on.either, [_violations(part, points, on, within) for part in parts], on.frame.nothing)


def _reached(index_map: IndexMap, point: Index, on: _Affine) -> Any:
    """Where some index, with some copy, has its place at `point`."""
    domain, copies = index_map.domain.extents, index_map.copies.extents
    count, more = len(on.frame.labels), len(domain) + len(copies)
    frame = _Frame(on.frame.context, (*on.frame.labels, *(f"index[{k}]" for k in range(more))))
    wide = _Affine(frame, {name: frame.widen(size) for name, size in on.sizes.items()})
    added = tuple(frame.variable(count + k) for k in range(more))
    index, copy = added[: len(domain)], added[len(domain) :]
    places = zip(index_map.place(index, copy, wide), point, strict=True)
    conditions = [
        *_inside(index, domain, wide),
        *_inside(copy, copies, wide),
        *(wide.equal(coordinate, frame.widen(entry)) for coordinate, entry in places),
    ]
    return reduce(wide.both, conditions, frame.everything).project_out(_SET, count, more)


def _inside(point: Index, extents: Sequence[Extent], on: _Affine) -> list[Any]:
    pairs = list(zip(point, extents, strict=True))
    return [on.less(-1, entry) for entry, _ in pairs] + [on.less(entry, on.size(extent)) for entry, extent in pairs]


class _Frame:
    """The variables of one set, by position; `labels` name them in messages."""

    def __init__(self, context: Any, labels: Sequence[str]) -> None:
        self.context = context
        self.labels = tuple(labels)
        space = isl.Space.set_alloc(context, 0, len(self.labels))
        self.local = isl.LocalSpace.from_space(space)
        self.everything = isl.Set.universe(space)
        self.nothing = isl.Set.empty(space)

    def variable(self, position: int) -> _Quasi:
        return _Quasi(isl.PwAff.var_on_domain(self.local, _SET, position), self)

    def widen(self, value: _Quasi) -> _Quasi:
        """A value of a frame with the first of these variables."""
        return _Quasi(value.pw.add_dims(_IN, len(self.labels) - len(value.frame.labels)), self)

    def constant(self, value: int) -> Any:
        if -(1 << 62) < value < 1 << 62:
            return isl.Val(value, self.context)
        # in pieces that fit a C long; isl's reader of longer ones reports a spent budget as a syntax error
        high, low = divmod(value, 1 << 32)
        return self.constant(high).mul(self.constant(1 << 32)).add(self.constant(low))

    def function(self, value: Any) -> Any:
        """An int or a quasi-affine value as isl's piecewise function."""
        return isl.PwAff.val_on_domain(self.everything, self.constant(value)) if type(value) is int else value.pw

    def involved(self, value: _Quasi) -> str:
        """The variables that a value depends on, in words."""
        return " and ".join(label for k, label in enumerate(self.labels) if value.pw.involves_dims(_IN, k, 1))


class _Quasi:
    """A quasi-affine function of a frame's variables."""

    __slots__ = ("frame", "pw")

    def __init__(self, pw: Any, frame: _Frame) -> None:
        self.pw, self.frame = pw, frame

    def __add__(self, other: Any) -> _Quasi:
        if type(other) is int:
            return _Quasi(self.pw.add_constant_val(self.frame.constant(other)), self.frame)
        return _Quasi(self.pw.add(other.pw), self.frame)

    __radd__ = __add__

    def __neg__(self) -> _Quasi:
        return _Quasi(self.pw.neg(), self.frame)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> _Quasi:
        if type(other) is int:
            return _Quasi(self.pw.scale_val(self.frame.constant(other)), self.frame)
        if not self.pw.is_cst() and not other.pw.is_cst():
            factors = f"{self.frame.involved(self)} with {self.frame.involved(other)}"
            raise Undecided(f"multiplies {factors}: isl cannot multiply two values that vary")
        return _Quasi(self.pw.mul(other.pw), self.frame)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> _Quasi:
        divisor = self._divisor(other)
        if type(divisor) is int:
            return _Quasi(self.pw.scale_down_val(self.frame.constant(divisor)).floor(), self.frame)
        return _Quasi(self.pw.div(divisor.pw).floor(), self.frame)

    def __mod__(self, other: Any) -> Any:
        return self - (self // other) * other

    def __rfloordiv__(self, other: Any) -> Any:
        return (self * 0 + other) // self

    def __rmod__(self, other: Any) -> Any:
        return (self * 0 + other) % self

    def _divisor(self, value: Any) -> Any:
        """`value`, known to be positive and constant at least piece by piece."""
        if type(value) is int:
            if value < 1:
                raise Undecided(f"divides by {value}, which is not positive")
        elif not value.pw.is_cst():
            raise Undecided(f"divides by {self.frame.involved(value)}, which isl cannot: it is no constant")
        elif not value.pw.le_set(self.frame.function(0)).is_empty():
            raise Undecided("divides by a value that may be 0 or negative")
        return value


class _Affine(Numbers):
    """The kind: ints and `_Quasi`s; its truth values are bools and sets."""

    def __init__(self, frame: _Frame, sizes: Mapping[str, Any]) -> None:
        super().__init__(sizes)
        self.frame = frame

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        if type(condition) is bool:
            return if_true if condition else if_false
        left, right = self.frame.function(if_true), self.frame.function(if_false)
        return _Quasi(isl.PwAff.cond(condition.indicator_function(), left, right), self.frame)

    def minimum(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return min(left, right)
        return _Quasi(self.frame.function(left).min(self.frame.function(right)), self.frame)

    def maximum(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return max(left, right)
        return _Quasi(self.frame.function(left).max(self.frame.function(right)), self.frame)

    def xor(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return left ^ right
        raise Undecided("takes an xor, which is not quasi-affine")

    def less(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return left < right
        return self.frame.function(left).lt_set(self.frame.function(right))

    def equal(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return left == right
        return self.frame.function(left).eq_set(self.frame.function(right))

    def both(self, left: Any, right: Any) -> Any:
        return self._set(left).intersect(self._set(right))

    def either(self, left: Any, right: Any) -> Any:
        return self._set(left).union(self._set(right))

    def opposite(self, condition: Any) -> Any:
        return not condition if type(condition) is bool else condition.complement()

    def _set(self, condition: Any) -> Any:
        if type(condition) is bool:
            return self.frame.everything if condition else self.frame.nothing
        return condition
