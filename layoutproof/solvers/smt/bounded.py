"""Numbers with bounds: each value knows how small and how large it can get, whatever its terms are written in.

The bounds give bit-vectors their width, fold away what they already decide, and show which divisors are positive.
A value that the bounds pin down is a plain int.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers

Bound = int | float
"""An int, or infinity where run-time sizes leave a side open."""


class Dialect(Protocol):
    """How terms are written; a term stands for exactly the integer that it is built for.

    `floors`: whether `//` and `%` may be asked of a negative dividend where the divisor is no power of two.
    `assumed`: what holds of the unknowns so far. `note`: called with the bounds of every value before it is written.
    `positive`: called with every divisor that its bounds do not show to be positive.
    `below`: 0 <= value < bound.
    """

    floors: bool
    assumed: list[Any]

    def note(self, low: Bound, high: Bound) -> None: ...
    def variable(self, name: str, low: Bound) -> Any: ...
    def constant(self, value: int) -> Any: ...
    def add(self, left: Any, right: Any) -> Any: ...
    def subtract(self, left: Any, right: Any) -> Any: ...
    def multiply(self, left: Any, right: Any) -> Any: ...
    def quotient(self, value: Bounded | int, by: Bounded | int) -> Any: ...
    def remainder(self, value: Bounded | int, by: Bounded | int) -> Any: ...
    def positive(self, divisor: Any) -> None: ...
    def xor(self, left: Any, right: Any) -> Any: ...
    def below(self, value: Any, bound: Any) -> Any: ...
    def less(self, left: Any, right: Any) -> Any: ...
    def equal(self, left: Any, right: Any) -> Any: ...
    def logical_and(self, left: Any, right: Any) -> Any: ...
    def logical_or(self, left: Any, right: Any) -> Any: ...
    def logical_not(self, condition: Any) -> Any: ...
    def choose(self, condition: Any, left: Any, right: Any, low: Bound) -> Any: ...


class Bounded:
    """An integer within `low` .. `high`, both included, as a term of a dialect."""

    __slots__ = ("dialect", "high", "low", "term")

    def __init__(self, dialect: Dialect, low: Bound, high: Bound, term: Any) -> None:
        self.dialect, self.low, self.high, self.term = dialect, low, high, term

    def __add__(self, other: Any) -> Any:
        if other == 0 and type(other) is int:
            return self
        low, high = bounds(other)
        return make(self.dialect, plus(self.low, low), plus(self.high, high), "add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) is int else _minus(self.dialect, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _minus(self.dialect, other, self)

    def __neg__(self) -> Any:
        return _minus(self.dialect, 0, self)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int and other in (0, 1):
            return self if other else 0
        corners = [times(a, b) for a in (self.low, self.high) for b in bounds(other)]
        return make(self.dialect, min(corners), max(corners), "multiply", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _divide(self.dialect, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _divide(self.dialect, other, self)

    def __mod__(self, other: Any) -> Any:
        return _modulo(self.dialect, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _modulo(self.dialect, other, self)


class BoundedNumbers(Numbers):
    """The kind: ints and `Bounded`s; its truth values are bools and conditions of the dialect.

    >>> BoundedNumbers(None, {}).select(True, 3, 5)
    3
    """

    def __init__(self, dialect: Any, sizes: dict[str, Any]) -> None:
        super().__init__(sizes)
        self.dialect: Dialect = dialect

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        if type(condition) is bool:
            return if_true if condition else if_false
        (low, high), (low2, high2) = bounds(if_true), bounds(if_false)
        return self._choose(condition, if_true, if_false, min(low, low2), max(high, high2))

    def minimum(self, left: Any, right: Any) -> Any:
        less = self.less(left, right)
        if type(less) is bool:
            return left if less else right
        (low, high), (low2, high2) = bounds(left), bounds(right)
        return self._choose(less, left, right, min(low, low2), min(high, high2))

    def maximum(self, left: Any, right: Any) -> Any:
        less = self.less(left, right)
        if type(less) is bool:
            return right if less else left
        (low, high), (low2, high2) = bounds(left), bounds(right)
        return self._choose(less, right, left, max(low, low2), max(high, high2))

    def _choose(self, condition: Any, left: Any, right: Any, low: Bound, high: Bound) -> Any:
        if low == high:
            return low
        term = self.dialect.choose(condition, term_of(self.dialect, left), term_of(self.dialect, right), low)
        self.dialect.note(low, high)
        return Bounded(self.dialect, low, high, term)

    def xor(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return left ^ right
        ends = (*bounds(left), *bounds(right))
        if any(type(end) is float for end in ends):
            raise Unsupported("takes the xor of values without an upper bound, because sizes are symbolic")
        power = 1 << max(int(end).bit_length() for end in ends)
        return make(self.dialect, 0 if min(ends) >= 0 else -power, power - 1, "xor", left, right)

    def less(self, left: Any, right: Any) -> Any:
        (low, high), (low2, high2) = bounds(left), bounds(right)
        if high < low2:
            return True
        return False if low >= high2 else self.dialect.less(term_of(self.dialect, left), term_of(self.dialect, right))

    def equal(self, left: Any, right: Any) -> Any:
        (low, high), (low2, high2) = bounds(left), bounds(right)
        if left is right or low == high == low2 == high2:
            return True
        if high < low2 or high2 < low:
            return False
        return self.dialect.equal(term_of(self.dialect, left), term_of(self.dialect, right))

    def logical_and(self, left: Any, right: Any) -> Any:
        if type(left) is bool:
            return right if left else False
        if type(right) is bool:
            return left if right else False
        return self.dialect.logical_and(left, right)

    def logical_or(self, left: Any, right: Any) -> Any:
        if type(left) is bool:
            return True if left else right
        if type(right) is bool:
            return True if right else left
        return self.dialect.logical_or(left, right)

    def logical_not(self, condition: Any) -> Any:
        return not condition if type(condition) is bool else self.dialect.logical_not(condition)


def make(dialect: Dialect, low: Bound, high: Bound, operation: str, left: Any, right: Any) -> Any:
    """`operation` on the two terms, or the int if the bounds leave only one."""
    if low == high:
        return low
    dialect.note(low, high)
    term = getattr(dialect, operation)(term_of(dialect, left), term_of(dialect, right))
    return Bounded(dialect, low, high, term)


def term_of(dialect: Dialect, value: Any) -> Any:
    """The term of an int or of a `Bounded`."""
    return dialect.constant(value) if type(value) is int else value.term


def bounds(value: Any) -> tuple[Bound, Bound]:
    """Smallest and largest value."""
    return (value, value) if type(value) is int else (value.low, value.high)


def plus(left: Bound, right: Bound) -> Bound:
    """left + right, also where an int is too large to be a float."""
    if type(left) is float or type(right) is float:
        return left if type(left) is float else right
    return left + right


def times(left: Bound, right: Bound) -> Bound:
    """left * right, where 0 times infinity is 0: the value itself is always finite."""
    if left == 0 or right == 0:
        return 0
    if type(left) is float or type(right) is float:
        return math.inf if (left > 0) == (right > 0) else -math.inf
    return left * right


def _over(value: Bound, by: Bound) -> Bound:
    if type(value) is float:
        return value
    if type(by) is float:
        return 0 if value >= 0 else -1
    return value // by


def _minus(dialect: Dialect, left: Any, right: Any) -> Any:
    if left is right:
        return 0
    (low, high), (low2, high2) = bounds(left), bounds(right)
    return make(dialect, plus(low, -high2), plus(high, -low2), "subtract", left, right)


def _divide(dialect: Dialect, value: Any, by: Any) -> Any:
    if type(by) is int and by == 1:
        return value
    value_low, value_high, by_low, by_high, by = _checked(dialect, value, by)
    if value_low >= 0 and value_high < by_low:
        return 0
    if _must_lift(dialect, value_low, by):
        lift = -(value_low // by_low)
        return _divide(dialect, value + by * lift, by) - lift
    corners = [_over(v, b) for v in (value_low, value_high) for b in (by_low, by_high)]
    low, high = min(corners), max(corners)
    if low == high:
        return low
    dialect.note(low, high)
    return Bounded(dialect, low, high, dialect.quotient(value, by))


def _modulo(dialect: Dialect, value: Any, by: Any) -> Any:
    if type(by) is int and by == 1:
        return 0
    value_low, value_high, by_low, by_high, by = _checked(dialect, value, by)
    if value_low >= 0 and value_high < by_low:
        return value
    if _must_lift(dialect, value_low, by):
        return _modulo(dialect, value + by * -(value_low // by_low), by)
    high = plus(by_high, -1)
    if value_low >= 0:
        high = min(high, value_high)
    dialect.note(0, high)
    return Bounded(dialect, 0, high, dialect.remainder(value, by))


def _checked(dialect: Dialect, value: Any, by: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Bounds of both, and the divisor; the dialect hears of one that the bounds alone do not show to be positive."""
    (value_low, value_high), (by_low, by_high) = bounds(value), bounds(by)
    if by_high < 1:
        raise Unsupported("divides by a value that is never positive")
    if by_low < 1:
        dialect.positive(term_of(dialect, by))
        by_low, by = 1, Bounded(dialect, 1, by_high, term_of(dialect, by))
    return value_low, value_high, by_low, by_high, by


def _must_lift(dialect: Dialect, value_low: Bound, by: Any) -> bool:
    return not dialect.floors and value_low < 0 and not (type(by) is int and by & (by - 1) == 0)
