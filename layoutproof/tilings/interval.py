"""Intervals as a kind of number: a formula run on them bounds its value over a whole box of candidates at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers


class Interval:
    """All integers from low to high; arithmetic gives an interval that holds every result.

    >>> (Interval(2, 3) * Interval(-1, 4) + 1) // 2
    Interval(-1, 6)
    """

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"Interval({self.low}, {self.high})"

    def __add__(self, other: Any) -> Any:
        low, high = ends(other)
        return Interval(self.low + low, self.high + high)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Any) -> Any:
        low, high = ends(other)
        return Interval(self.low - high, self.high - low)

    def __rsub__(self, other: Any) -> Any:
        low, high = ends(other)
        return Interval(low - self.high, high - self.low)

    def __mul__(self, other: Any) -> Any:
        low, high = ends(other)
        if self.low >= 0 and low >= 0:
            return Interval(self.low * low, self.high * high)
        products = (self.low * low, self.low * high, self.high * low, self.high * high)
        return Interval(min(products), max(products))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        low, high = ends(other)
        if low == high < 1:
            # one number is divided by as Python does it, 0 included
            return Interval(min(self.low // low, self.high // low), max(self.low // low, self.high // low))
        if low < 1:
            raise Unsupported(f"divides by a number from {low} to {high}, which may be 0 or negative")
        quotients = (self.low // low, self.low // high, self.high // low, self.high // high)
        return Interval(min(quotients), max(quotients))

    def __rfloordiv__(self, other: Any) -> Any:
        return Interval(*ends(other)) // self

    def __mod__(self, other: Any) -> Any:
        low, high = ends(other)
        if low == high and self.low == self.high:
            return Interval(self.low % low, self.low % low)
        if low < 1:
            raise Unsupported(f"divides by a number from {low} to {high}, which may be 0 or negative")
        if low == high and self.low // low == self.high // low:
            return Interval(self.low % low, self.high % low)
        return Interval(0, high - 1)

    def __rmod__(self, other: Any) -> Any:
        return Interval(*ends(other)) % self


def ends(value: Any) -> tuple[int, int]:
    """The smallest and largest value of an int or an interval."""
    return (value.low, value.high) if type(value) is Interval else (value, value)


class IntervalNumbers(Numbers):
    """The kind: ints and intervals. A condition is True, False, or None where it depends on which number it is."""

    def __init__(self, sizes: Mapping[str, Any] | None = None) -> None:
        super().__init__(sizes)

    def between(self, low: Any, high: Any) -> Any:
        """Some number of which only bounds are known."""
        return Interval(ends(low)[0], max(ends(low)[0], ends(high)[1]))

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        if condition is not None:
            return if_true if condition else if_false
        (low, high), (other_low, other_high) = ends(if_true), ends(if_false)
        return Interval(min(low, other_low), max(high, other_high))

    def minimum(self, left: Any, right: Any) -> Any:
        (low, high), (other_low, other_high) = ends(left), ends(right)
        return Interval(min(low, other_low), min(high, other_high))

    def maximum(self, left: Any, right: Any) -> Any:
        (low, high), (other_low, other_high) = ends(left), ends(right)
        return Interval(max(low, other_low), max(high, other_high))

    def xor(self, left: Any, right: Any) -> Any:
        (low, high), (other_low, other_high) = ends(left), ends(right)
        if low == high and other_low == other_high:
            return low ^ other_low
        raise Unsupported("takes an xor of numbers that vary")

    def less(self, left: Any, right: Any) -> Any:
        (low, high), (other_low, other_high) = ends(left), ends(right)
        return True if high < other_low else False if low >= other_high else None

    def equal(self, left: Any, right: Any) -> Any:
        (low, high), (other_low, other_high) = ends(left), ends(right)
        if high < other_low or other_high < low:
            return False
        return True if low == high == other_low == other_high else None

    def logical_and(self, left: Any, right: Any) -> Any:
        if left is False or right is False:
            return False
        return None if left is None or right is None else True

    def logical_or(self, left: Any, right: Any) -> Any:
        if left is True or right is True:
            return True
        return None if left is None or right is None else False

    def logical_not(self, condition: Any) -> Any:
        return None if condition is None else not condition
