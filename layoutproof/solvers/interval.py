"""Intervals: a formula run on them gives bounds of its value, whatever numbers of them it is run on.

The one interval of the tool. Its ends are ints, or infinite where run-time sizes leave a side open. Searches bound the
cost of many candidates with it, tables ask it whether 64 bits are enough, and `smt` gives each end to a term of Z3.
`searching/cover` has its own on purpose: a second opinion shares no arithmetic with the first.
"""

from __future__ import annotations

import math
from typing import Any, Self

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers

Bound = int | float
"""An int, or infinity."""


class Interval:
    """All integers from low to high; arithmetic gives an interval that holds every result.

    The result of an operation has the class of its left interval, so that a subclass can restrict the ends.

    >>> (Interval(2, 3) * Interval(-1, 4) + 1) // 2
    Interval(-1, 6)
    """

    __slots__ = ("high", "low")

    low: Any
    high: Any

    def __init__(self, low: Bound, high: Bound) -> None:
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"Interval({self.low}, {self.high})"

    def __add__(self, other: Interval | int) -> Self:
        low, high = (other, other) if isinstance(other, int) else (other.low, other.high)
        try:
            return self.__class__(self.low + low, self.high + high)
        except OverflowError:
            return self.__class__(_plus(self.low, low), _plus(self.high, high))

    __radd__ = __add__

    def __neg__(self) -> Self:
        return self.__class__(-self.high, -self.low)

    def __sub__(self, other: Interval | int) -> Self:
        low, high = (other, other) if isinstance(other, int) else (other.low, other.high)
        try:
            return self.__class__(self.low - high, self.high - low)
        except OverflowError:
            return self + -other

    def __rsub__(self, other: Interval | int) -> Self:
        return -self + other

    def __mul__(self, other: Interval | int) -> Self:
        low, high = (other, other) if isinstance(other, int) else (other.low, other.high)
        if self.low >= 0 <= low and type(self.high) is int is type(high):
            return self.__class__(self.low * low, self.high * high)
        corners = [_times(a, b) for a in (self.low, self.high) for b in (low, high)]
        return self.__class__(min(corners), max(corners))

    __rmul__ = __mul__

    def __floordiv__(self, other: Interval | int) -> Self:
        low, high = (other, other) if isinstance(other, int) else (other.low, other.high)
        if low == high < 1:
            # one number is divided by as Python does it, 0 included
            return self.__class__(min(self.low // low, self.high // low), max(self.low // low, self.high // low))
        if low < 1:
            raise Unsupported(f"divides by a number from {low} to {high}, which may be 0 or negative")
        # the quotient is the further from 0 the smaller the divisor is
        return self.__class__(
            _over(self.low, high if self.low >= 0 else low), _over(self.high, low if self.high >= 0 else high)
        )

    def __rfloordiv__(self, other: int) -> Self:
        return self.__class__(other, other) // self

    def __mod__(self, other: Interval | int) -> Self:
        low, high = ends(other)
        if low == high and self.low == self.high:
            return self.__class__(self.low % low, self.low % low)
        if low < 1:
            raise Unsupported(f"divides by a number from {low} to {high}, which may be 0 or negative")
        if low == high and _over(self.low, low) == _over(self.high, low):
            return self.__class__(self.low % low, self.high % low)
        if self.low >= 0 and self.high < low:
            return self
        return self.__class__(0, min(self.high, high - 1) if self.low >= 0 else high - 1)

    def __rmod__(self, other: int) -> Self:
        return self.__class__(other, other) % self


def ends(value: Any) -> tuple[Any, Any]:
    """The smallest and largest value of a number that may be an interval."""
    return (value.low, value.high) if isinstance(value, Interval) else (value, value)


class IntervalNumbers(Numbers):
    """The kind: ints and intervals. A condition is True, False, or None where it depends on which number it is."""

    interval: type[Interval] = Interval
    """The class of the interval of two numbers."""

    def between(self, low: Interval | Bound, high: Interval | Bound) -> Interval:
        """Some number of which only bounds are known."""
        return self.interval(ends(low)[0], max(ends(low)[0], ends(high)[1]))

    def select(self, condition: bool | None, if_true: Interval | int, if_false: Interval | int) -> Interval | int:
        if condition is not None:
            return if_true if condition else if_false
        return self.either(if_true, if_false)

    def either(self, if_true: Interval | int, if_false: Interval | int) -> Interval:
        """Either of two numbers: the interval that holds both."""
        low, high = (if_true, if_true) if isinstance(if_true, int) else (if_true.low, if_true.high)
        low_, high_ = (if_false, if_false) if isinstance(if_false, int) else (if_false.low, if_false.high)
        return self.interval(low if low <= low_ else low_, high if high >= high_ else high_)

    def minimum(self, left: Interval | int, right: Interval | int) -> Interval:
        low, high = (left, left) if isinstance(left, int) else (left.low, left.high)
        low_, high_ = (right, right) if isinstance(right, int) else (right.low, right.high)
        return self.interval(low if low <= low_ else low_, high if high <= high_ else high_)

    def maximum(self, left: Interval | int, right: Interval | int) -> Interval:
        low, high = (left, left) if isinstance(left, int) else (left.low, left.high)
        low_, high_ = (right, right) if isinstance(right, int) else (right.low, right.high)
        return self.interval(low if low >= low_ else low_, high if high >= high_ else high_)

    def xor(self, left: Interval | int, right: Interval | int) -> Interval | int:
        (low, high), (other_low, other_high) = ends(left), ends(right)
        if low == high and other_low == other_high:
            known: int = low ^ other_low
            return known
        if math.inf in (high, other_high) or -math.inf in (low, other_low):
            raise Unsupported("takes the xor of values without an upper bound, because sizes are symbolic")
        # the bits that any of them needs are the bits that the result has
        power = 1 << max(end.bit_length() for end in (low, high, other_low, other_high))
        return self.interval(0 if min(low, other_low) >= 0 else -power, power - 1)

    def less(self, left: Interval | int, right: Interval | int) -> bool | None:
        low, high = (left, left) if isinstance(left, int) else (left.low, left.high)
        low_, high_ = (right, right) if isinstance(right, int) else (right.low, right.high)
        return True if high < low_ else False if low >= high_ else None

    def equal(self, left: Interval | int, right: Interval | int) -> bool | None:
        (low, high), (other_low, other_high) = ends(left), ends(right)
        if high < other_low or other_high < low:
            return False
        return True if low == high == other_low == other_high else None

    def logical_and(self, left: bool | None, right: bool | None) -> bool | None:
        if left is False or right is False:
            return False
        return None if left is None or right is None else True

    def logical_or(self, left: bool | None, right: bool | None) -> bool | None:
        if left is True or right is True:
            return True
        return None if left is None or right is None else False

    def logical_not(self, condition: bool | None) -> bool | None:
        return None if condition is None else not condition


def _plus(left: Bound, right: Bound) -> Bound:
    """left + right, also where an int is too large to be a float."""
    return left if type(left) is float else right if type(right) is float else left + right


def _times(left: Bound, right: Bound) -> Bound:
    """left * right, where 0 times infinity is 0: the value itself is always finite."""
    if type(left) is int is type(right):
        return left * right
    if left == 0 or right == 0:
        return 0
    return math.inf if (left > 0) == (right > 0) else -math.inf


def _over(value: Bound, by: Bound) -> Bound:
    if type(value) is int is type(by):
        return value // by
    if type(value) is float:
        return value
    return 0 if value >= 0 else -1
