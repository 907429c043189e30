"""The three ways in which bounded numbers write their terms: not at all, as bit-vectors, as integers."""

from __future__ import annotations

from typing import Any, NoReturn

import z3

from layoutproof.core.errors import Undecided
from layoutproof.solvers.smt.bounded import Bound, Bounded, bounds, term_of


class Widths:
    """No terms: finds how many bits every intermediate value of a formula fits in, sign included."""

    floors = False

    def __init__(self) -> None:
        self.width = 2
        self.assumed: list[Any] = []

    def note(self, low: Bound, high: Bound) -> None:
        for end in (low, high):
            # -2**k fits where 2**k - 1 does
            self.width = max(self.width, int(end if end >= 0 else -end - 1).bit_length() + 1)

    def constant(self, value: int) -> None:
        self.note(value, value)

    def variable(self, name): return None
    def never(self): return None

    def positive(self, divisor: Any) -> NoReturn:
        raise Undecided("divides by a value that may be 0 or negative")

    def quotient(self, value: Bounded | int, by: Bounded | int) -> None:
        for part in (value, by):
            term_of(self, part)

    remainder = quotient

    def _binary(self, left: Any, right: Any) -> None:
        """Written nowhere."""

    add = subtract = multiply = xor = less = equal = both = either = below = at_least = _binary

    def opposite(self, condition: Any) -> None:
        """Written nowhere."""

    def choose(self, condition: Any, left: Any, right: Any) -> None:
        """Written nowhere."""


class _Conditions:
    """What both z3 dialects write alike."""

    def note(self, low: Bound, high: Bound) -> None:
        """Widths are known by now."""

    def never(self): return z3.BoolVal(False)
    def equal(self, left: Any, right: Any) -> Any:
        return left == right

    def less(self, left: Any, right: Any) -> Any:
        return left < right

    def both(self, left: Any, right: Any) -> Any:
        return z3.And(left, right)

    def either(self, left: Any, right: Any) -> Any:
        return z3.Or(left, right)

    def opposite(self, condition: Any) -> Any:
        return z3.Not(condition)

    def choose(self, condition: Any, left: Any, right: Any) -> Any:
        return z3.If(condition, left, right)

    def add(self, left: Any, right: Any) -> Any:
        return left + right

    def subtract(self, left: Any, right: Any) -> Any:
        return left - right

    def multiply(self, left: Any, right: Any) -> Any:
        return left * right


class Bits(_Conditions):
    """Two's complement bit-vectors, wide enough that nothing ever overflows."""

    floors = False

    def __init__(self, width: int) -> None:
        self.width = width
        self.assumed = []
        self.doubts = []

    def below(self, term, bound): return z3.ULT(term, bound)

    def variable(self, name: str) -> Any:
        return z3.BitVec(name, self.width)

    def constant(self, value: int) -> Any:
        return z3.BitVecVal(value, self.width)

    def positive(self, divisor: Any) -> NoReturn:
        raise Undecided("divides by a value that may be 0 or negative")

    def xor(self, left: Any, right: Any) -> Any:
        return left ^ right

    def quotient(self, value: Bounded | int, by: Bounded | int) -> Any:
        if type(by) is int and by & (by - 1) == 0:
            # the arithmetic shift rounds down, negative values too
            return term_of(self, value) >> self.constant(by.bit_length() - 1)
        return z3.UDiv(term_of(self, value), term_of(self, by))

    def remainder(self, value: Bounded | int, by: Bounded | int) -> Any:
        if type(by) is int and by & (by - 1) == 0:
            return term_of(self, value) & self.constant(by - 1)
        return z3.URem(term_of(self, value), term_of(self, by))


class Integers(_Conditions):
    """Unbounded integers. Quotient and remainder are fresh unknowns with value == quotient * by + remainder.

    z3's own `x / 0` may be anything, so every divisor must be shown positive before its lemma counts: `assumed`
    holds what is assumed so far, in order, and `doubts` each divisor in doubt with the number of assumptions that
    stood before it.
    """

    floors = True

    def __init__(self) -> None:
        self.assumed: list[Any] = []
        self.doubts: list[tuple[int, Any]] = []
        self._split: dict[tuple[int, int], tuple[Any, Any]] = {}

    def variable(self, name: str) -> Any:
        return z3.Int(name)
    def below(self, term, bound): return z3.And(term >= 0, term < bound)
    def at_least(self, term, v): return term >= v

    def constant(self, value: int) -> Any:
        return z3.IntVal(value)

    def positive(self, divisor: Any) -> None:
        self.doubts.append((len(self.assumed), divisor))

    def xor(self, left: Any, right: Any) -> NoReturn:
        raise Undecided("takes the xor of values that depend on symbolic sizes")

    def quotient(self, value: Bounded | int, by: Bounded | int) -> Any:
        return self._parts(value, by)[0]

    def remainder(self, value: Bounded | int, by: Bounded | int) -> Any:
        return self._parts(value, by)[1]

    def _parts(self, value: Bounded | int, by: Bounded | int) -> tuple[Any, Any]:
        term, divisor = term_of(self, value), term_of(self, by)
        key = (term.get_id(), divisor.get_id())
        if key not in self._split:
            number = len(self._split)
            quotient, remainder = z3.Int(f"quotient{number}"), z3.Int(f"remainder{number}")
            # the lemma keeps both terms alive, so their ids stay theirs
            self.assumed += [term == quotient * divisor + remainder, remainder >= 0, remainder < divisor]
            self._split[key] = (quotient, remainder)
        return self._split[key]
