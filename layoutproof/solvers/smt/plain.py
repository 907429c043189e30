"""Integer terms as they stand, quotients and remainders being z3's own: for users, and under quantifiers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import Unsupported
from layoutproof.solvers.interval import Bound
from layoutproof.solvers.smt.bounded import Bounded, bounds, term_of
from layoutproof.solvers.smt.library import z3
from layoutproof.solvers.smt.operators import Operators

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import ArithRef, BoolRef, Context

WIDTH = 128
"""Bits in which an xor is taken: no number of a layout of known sizes needs more."""


class Plain(Operators):
    """z3's own integer operations in one context; None is the one that everybody shares. See `Dialect`.

    Quotient and remainder are Python's where the divisor is positive, and every divisor in doubt is assumed to be:
    `doubts` counts those. `unbounded_products`: whether unknowns are multiplied, or divided by one, without a bound.
    """

    floors = True

    def __init__(self, context: Context = None) -> None:
        self.context = context
        self.assumed: list[Any] = []
        self.finite = True
        self.doubts = 0
        self.unbounded_products = False

    def note(self, low: Bound, high: Bound) -> None:
        """Whether the value that is written next has a bound."""
        self.finite = not (math.isinf(low) or math.isinf(high))

    def variable(self, name: str, low: Bound) -> ArithRef:
        return z3.Int(name, self.context)

    def constant(self, value: int) -> ArithRef:
        return z3.IntVal(value, self.context)

    def multiply(self, left: ArithRef, right: ArithRef) -> ArithRef:
        self._multiplied(left, right, self.finite)
        return left * right

    def quotient(self, value: Bounded | int, by: Bounded | int) -> ArithRef:
        return self._whole(value, by) / term_of(self, by)

    def remainder(self, value: Bounded | int, by: Bounded | int) -> ArithRef:
        return self._whole(value, by) % term_of(self, by)

    def _whole(self, value: Bounded | int, by: Bounded | int) -> ArithRef:
        # z3 multiplies the quotient, which is as long as the dividend, with the divisor
        whole, within = term_of(self, value), bounds(value)
        self._multiplied(whole, term_of(self, by), not (math.isinf(within.low) or math.isinf(within.high)))
        return whole

    def _multiplied(self, left: ArithRef, right: ArithRef, finite: bool) -> None:
        self.unbounded_products |= not (finite or z3.is_int_value(left) or z3.is_int_value(right))

    def positive(self, divisor: ArithRef) -> None:
        self.doubts += 1
        self.assumed.append(divisor >= 1)

    def xor(self, left: ArithRef, right: ArithRef) -> ArithRef:
        if not self.finite:
            raise Unsupported("takes the xor of values that depend on symbolic sizes")
        return z3.BV2Int(z3.Int2BV(left, WIDTH) ^ z3.Int2BV(right, WIDTH), is_signed=True)

    def below(self, value: ArithRef, bound: ArithRef) -> BoolRef:
        return z3.And(value >= 0, value < bound)

    def conjunction(self, conditions: list[BoolRef]) -> BoolRef:
        """Whether all of them hold."""
        return z3.And(*conditions) if conditions else z3.BoolVal(True, self.context)

    def for_none(self, unknowns: list[ArithRef], condition: BoolRef) -> BoolRef:
        """Whether the condition holds for no values of some unknowns."""
        return z3.ForAll(unknowns, z3.Not(condition)) if unknowns else z3.Not(condition)
