"""Numbers that are affine over GF(2): each input bit that is 1 xors its column onto a constant.

    value = constant ^ xor of columns[v] over all input bits v that are 1

Shifts, masks, xor, and sums whose operands share no bit position keep this form and touch whole columns. Other sums
and differences go through a ripple adder, bit by bit, which works where every carry is affine again. Operations that
leave the form raise `Undecided`. Values are integers >= 0.
"""

from __future__ import annotations

from functools import reduce
from operator import or_, xor
from typing import NoReturn, TypeAlias

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers

Rows = list[int]
"""One mask per bit of a value, least significant first: bit 0 is the constant, bit v + 1 the input bit v."""


Columns = list[int]
"""One column per input bit, the least significant input bit first: 30 of them are touched in a microsecond."""


Number: TypeAlias = "BitSum | int"


class BitSum:
    """An affine number; immutable. All numbers of one place have as many columns as the index has bits."""

    __slots__ = ("_support", "columns", "constant")

    def __init__(self, columns: Columns, constant: int = 0, support: int = -1) -> None:
        self.columns = columns
        self.constant = constant
        self._support = support

    @property
    def support(self) -> int:
        """A 1 wherever the value can have one, so that it bounds the value."""
        if self._support < 0:
            self._support = reduce(or_, self.columns, self.constant)
        return self._support

    def __xor__(self, other: Number) -> Number:
        if isinstance(other, int):
            if other < 0:
                raise Unsupported("bits are those of numbers >= 0")
            return BitSum(self.columns, self.constant ^ other)
        return _number(list(map(xor, self.columns, other.columns)), self.constant ^ other.constant)

    __rxor__ = __xor__

    def __add__(self, other: Number) -> Number:
        if isinstance(other, int):
            if other == 0:
                return self
            if other < 0:
                return self - -other
        support = other if isinstance(other, int) else other.support
        if not self.support & support:
            columns = self.columns if isinstance(other, int) else list(map(or_, self.columns, other.columns))
            constant = self.constant | (other if isinstance(other, int) else other.constant)
            return BitSum(columns, constant, self.support | support)
        return _ripple(self, other, subtract=False)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        if isinstance(other, int) and other <= 0:
            return self + -other
        return _ripple(self, other, subtract=True)

    def __rsub__(self, other: Number) -> Number:
        return _ripple(other, self, subtract=True)

    def __neg__(self) -> Number:
        return 0 - self

    def __mul__(self, other: Number) -> Number:
        if not isinstance(other, int) or other < 0:
            raise Unsupported("bits multiply by constants >= 0 only")
        if other == 0:
            return 0
        if other & (other - 1) == 0:
            shift = other.bit_length() - 1
            return BitSum([c << shift for c in self.columns], self.constant << shift, self.support << shift)
        if self.support & (self.support - 1) == 0:
            # one bit times a constant: no carry
            return BitSum([c * other for c in self.columns], self.constant * other)
        total: Number = 0
        for k in range(other.bit_length()):
            if other >> k & 1:
                total = total + self * (1 << k)
        return total

    __rmul__ = __mul__

    def __floordiv__(self, by: Number) -> Number:
        shift = self._shift(by)
        if shift < 0:
            return 0
        return _number([c >> shift for c in self.columns], self.constant >> shift, self.support >> shift)

    def __mod__(self, by: Number) -> Number:
        shift = self._shift(by)
        if shift < 0:
            return self
        mask = (1 << shift) - 1
        return _number([c & mask for c in self.columns], self.constant & mask, self.support & mask)

    def _shift(self, by: Number) -> int:
        """The exponent of a power of two; -1 when the number is surely below `by`."""
        if not isinstance(by, int):
            raise Unsupported("bits divide by constants only")
        if by <= 0:
            raise Unsupported(f"bits divide by positive numbers only, not {by}")
        if self.support < by:
            return -1
        if by & (by - 1):
            raise Unsupported(f"bits divide by powers of two only, not by {by}")
        return by.bit_length() - 1

    def __rfloordiv__(self, other: object) -> NoReturn:
        raise Unsupported("bits cannot divide by an index")

    __rmod__ = __rfloordiv__


class BitNumbers(Numbers):
    """Places on affine numbers; comparisons only where the answer is the same for all inputs."""

    def select(self, condition: bool, if_true: Number, if_false: Number) -> Number:
        return if_true if condition else if_false

    def less(self, left: Number, right: Number) -> bool:
        (low, high), (low2, high2) = _bounds(left), _bounds(right)
        if high < low2:
            return True
        if low >= high2:
            return False
        raise Unsupported("bits cannot settle a comparison for all indices")

    def equal(self, left: Number, right: Number) -> bool:
        if type(left) is int and type(right) is int:
            return left == right
        difference = _bounds(left ^ right)
        if difference[0] > 0:
            return False
        if difference[1] == 0:
            return True
        raise Unsupported("bits cannot settle an equation for all indices")


def _number(columns: Columns, constant: int, support: int = -1) -> Number:
    return BitSum(columns, constant, support) if any(columns) else constant


def _bounds(value: Number) -> tuple[int, int]:
    """Bounds of a value: bits no input touches, and all bits it can have."""
    if isinstance(value, int):
        return value, value
    touched = reduce(or_, value.columns, 0)
    return value.constant & ~touched, value.support


def rows_of(value: Number) -> Rows:
    """A value bit by bit.

    >>> rows_of(BitSum([1, 3], 2))
    [6, 5]
    """
    if isinstance(value, int):
        if value < 0:
            raise Unsupported("bits are those of numbers >= 0")
        return [value >> k & 1 for k in range(value.bit_length())]
    rows = [value.constant >> k & 1 for k in range(value.support.bit_length())]
    for v, column in enumerate(value.columns):
        while column:
            low = column & -column
            rows[low.bit_length() - 1] |= 2 << v
            column ^= low
    return rows


def _ripple(left: Number, right: Number, subtract: bool) -> Number:
    one, other = rows_of(left), rows_of(right)
    inputs = len(next(side for side in (left, right) if isinstance(side, BitSum)).columns)
    width = max(len(one), len(other)) + (not subtract)
    one += [0] * (width - len(one))
    other += [0] * (width - len(other))
    carry, rows = 0, []
    for a, b in zip(one, other, strict=True):
        rows.append(a ^ b ^ carry)
        carry = _majority(a ^ 1 if subtract else a, b, carry)
    if carry:
        raise Unsupported("bits cannot tell that a difference is never negative")
    return _from_rows(rows, inputs)


def _majority(a: int, b: int, c: int) -> int:
    """The affine form of "at least two of three", where there is one."""
    for one, other, third in ((a, b, c), (a, c, b), (b, c, a)):
        if one == other:
            return one
        if one ^ other == 1:
            return third
    raise Unsupported("bits: a carry depends on products of index bits")


def _from_rows(rows: Rows, inputs: int) -> Number:
    columns = [0] * inputs
    constant = 0
    for k, row in enumerate(rows):
        constant |= (row & 1) << k
        row >>= 1
        while row:
            low = row & -row
            columns[low.bit_length() - 1] |= 1 << k
            row ^= low
    return _number(columns, constant)
