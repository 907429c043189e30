"""Numbers with bounds: each value knows how small and how large it can get, whatever its terms are written in.

The bounds give bit-vectors their width, fold away what they already decide, and show which divisors are positive.
A value that the bounds pin down is a plain int.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.solvers.interval import Bound, Interval, IntervalNumbers

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import ArithRef, BitVecRef, BoolRef

Monomial = tuple[str, ...]
Polynomial = Mapping[Monomial, int]
Written: TypeAlias = "ArithRef | BitVecRef | Polynomial"
"""A term as its dialect writes it: of z3, or a polynomial of its unknowns."""
Number: TypeAlias = "Bounded | int"
Condition: TypeAlias = "BoolRef | bool"

_ON = IntervalNumbers()


class Dialect(Protocol):
    """How terms are written; a term stands for exactly the integer that it is built for.

    `floors`: whether `//` and `%` may be asked of a negative dividend where the divisor is no power of two.
    `assumed`: the conditions on the unknowns so far. `note`: called with the bounds of every value before it is
    written. `positive`: called with every divisor that its bounds do not show to be positive.
    `below`: 0 <= value < bound.  `apart`: how much more the left one is than the right one, where the terms say it.
    """

    floors: bool
    assumed: list[BoolRef]

    def note(self, low: Bound, high: Bound, /) -> None: ...
    def variable(self, name: str, low: Bound, /) -> Written: ...
    def constant(self, value: int, /) -> Written: ...
    def add(self, left: Written, right: Written, /) -> Written: ...
    def subtract(self, left: Written, right: Written, /) -> Written: ...
    def multiply(self, left: Written, right: Written, /) -> Written: ...
    def quotient(self, value: Bounded | int, by: Bounded | int, /) -> Written: ...
    def remainder(self, value: Bounded | int, by: Bounded | int, /) -> Written: ...
    def positive(self, divisor: Written, /) -> None: ...
    def xor(self, left: Written, right: Written, /) -> Written: ...
    def below(self, value: Written, bound: Written, /) -> BoolRef: ...
    def apart(self, left: Written, right: Written, /) -> int | None: ...
    def less(self, left: Written, right: Written, /) -> BoolRef: ...
    def equal(self, left: Written, right: Written, /) -> BoolRef: ...
    def logical_and(self, left: BoolRef, right: BoolRef, /) -> BoolRef: ...
    def logical_or(self, left: BoolRef, right: BoolRef, /) -> BoolRef: ...
    def logical_not(self, condition: BoolRef, /) -> BoolRef: ...
    def choose(self, condition: BoolRef, left: Written, right: Written, low: Bound, /) -> Written: ...


class Bounded:
    """An integer of which bounds are known, as a term of a dialect."""

    __slots__ = ("bounds", "dialect", "term")

    def __init__(self, dialect: Dialect, bounds: Interval, term: Written) -> None:
        self.dialect, self.bounds, self.term = dialect, bounds, term

    def __add__(self, other: Number) -> Number:
        if other == 0 and type(other) is int:
            return self
        return make(self.dialect, self.bounds + bounds(other), "add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return self + -other if type(other) is int else _minus(self.dialect, self, other)

    def __rsub__(self, other: Number) -> Number:
        return _minus(self.dialect, other, self)

    def __neg__(self) -> Number:
        return _minus(self.dialect, 0, self)

    def __mul__(self, other: Number) -> Number:
        if type(other) is int and other in (0, 1):
            return self if other else 0
        return make(self.dialect, self.bounds * bounds(other), "multiply", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Number:
        return _divide(self.dialect, self, other)

    def __rfloordiv__(self, other: Number) -> Number:
        return _divide(self.dialect, other, self)

    def __mod__(self, other: Number) -> Number:
        return _modulo(self.dialect, self, other)

    def __rmod__(self, other: Number) -> Number:
        return _modulo(self.dialect, other, self)


class BoundedNumbers(Numbers):
    """The kind: ints and `Bounded`s; its truth values are bools and conditions of the dialect.

    >>> BoundedNumbers(None, {}).select(True, 3, 5)
    3
    """

    def __init__(self, dialect: Any, sizes: dict[str, Any]) -> None:
        super().__init__(sizes)
        self.dialect: Dialect = dialect

    def select(self, condition: Condition, if_true: Number, if_false: Number) -> Number:
        if type(condition) is bool:
            return if_true if condition else if_false
        return self._choose(condition, if_true, if_false, _ON.either(bounds(if_true), bounds(if_false)))

    def minimum(self, left: Number, right: Number) -> Number:
        less = self.less(left, right)
        if type(less) is bool:
            return left if less else right
        return self._choose(less, left, right, _ON.minimum(bounds(left), bounds(right)))

    def maximum(self, left: Number, right: Number) -> Number:
        less = self.less(left, right)
        if type(less) is bool:
            return right if less else left
        return self._choose(less, right, left, _ON.maximum(bounds(left), bounds(right)))

    def _choose(self, condition: BoolRef, left: Number, right: Number, within: Interval) -> Number:
        if within.low == within.high:
            return _only(within)
        term = self.dialect.choose(condition, term_of(self.dialect, left), term_of(self.dialect, right), within.low)
        self.dialect.note(within.low, within.high)
        return Bounded(self.dialect, within, term)

    def xor(self, left: Number, right: Number) -> Number:
        if type(left) is int and type(right) is int:
            return left ^ right
        return make(self.dialect, cast("Interval", _ON.xor(bounds(left), bounds(right))), "xor", left, right)

    def less(self, left: Number, right: Number) -> Condition:
        known = _ON.less(bounds(left), bounds(right))
        if known is not None:
            return known
        a, b = term_of(self.dialect, left), term_of(self.dialect, right)
        by = self.dialect.apart(a, b)
        return self.dialect.less(a, b) if by is None else by < 0

    def equal(self, left: Number, right: Number) -> Condition:
        known = True if left is right else _ON.equal(bounds(left), bounds(right))
        if known is not None:
            return known
        a, b = term_of(self.dialect, left), term_of(self.dialect, right)
        by = self.dialect.apart(a, b)
        return self.dialect.equal(a, b) if by is None else by == 0

    def logical_and(self, left: Condition, right: Condition) -> Condition:
        if type(left) is bool:
            return right if left else False
        if type(right) is bool:
            return left if right else False
        return self.dialect.logical_and(left, right)

    def logical_or(self, left: Condition, right: Condition) -> Condition:
        if type(left) is bool:
            return True if left else right
        if type(right) is bool:
            return True if right else left
        return self.dialect.logical_or(left, right)

    def logical_not(self, condition: Condition) -> Condition:
        return not condition if type(condition) is bool else self.dialect.logical_not(condition)


def make(dialect: Dialect, within: Interval, operation: str, left: Number, right: Number) -> Number:
    """`operation` on the two terms, or the int if the bounds leave only one."""
    if within.low == within.high:
        return _only(within)
    dialect.note(within.low, within.high)
    term = getattr(dialect, operation)(term_of(dialect, left), term_of(dialect, right))
    return Bounded(dialect, within, term)


def term_of(dialect: Dialect, value: Number) -> Written:
    """The term of an int or of a `Bounded`."""
    return dialect.constant(value) if isinstance(value, int) else value.term


def bounds(value: Number) -> Interval:
    """All that a value may be."""
    return Interval(value, value) if isinstance(value, int) else value.bounds


def _only(within: Interval) -> int:
    """The number of an interval that has one."""
    number: int = within.low
    return number


def _minus(dialect: Dialect, left: Number, right: Number) -> Number:
    if left is right:
        return 0
    return make(dialect, bounds(left) - bounds(right), "subtract", left, right)


def _divide(dialect: Dialect, value: Number, by: Number) -> Number:
    if type(by) is int and by == 1:
        return value
    whole, by = _checked(dialect, value, by)
    divisor = bounds(by)
    if whole.low >= 0 and whole.high < divisor.low:
        return 0
    if _must_lift(dialect, whole.low, by):
        lift: int = -(whole.low // divisor.low)
        return _divide(dialect, value + by * lift, by) - lift
    within = whole // divisor
    if within.low == within.high:
        return _only(within)
    dialect.note(within.low, within.high)
    return Bounded(dialect, within, dialect.quotient(value, by))


def _modulo(dialect: Dialect, value: Number, by: Number) -> Number:
    if type(by) is int and by == 1:
        return 0
    whole, by = _checked(dialect, value, by)
    divisor = bounds(by)
    if whole.low >= 0 and whole.high < divisor.low:
        return value
    if _must_lift(dialect, whole.low, by):
        return _modulo(dialect, value + by * -(whole.low // divisor.low), by)
    within = whole % divisor
    if within.low == within.high:
        return _only(within)
    dialect.note(within.low, within.high)
    return Bounded(dialect, within, dialect.remainder(value, by))


def _checked(dialect: Dialect, value: Number, by: Number) -> tuple[Interval, Number]:
    """Bounds of the value, and the divisor; the dialect hears of one whose bounds do not show it to be positive."""
    divisor = bounds(by)
    if divisor.high < 1:
        raise Unsupported("divides by a value that is never positive")
    if divisor.low < 1:
        dialect.positive(term_of(dialect, by))
        by = Bounded(dialect, Interval(1, divisor.high), term_of(dialect, by))
    return bounds(value), by


def _must_lift(dialect: Dialect, value_low: Bound, by: Number) -> bool:
    return not dialect.floors and value_low < 0 and not (type(by) is int and by & (by - 1) == 0)
