"""The z3 operators that all encodings of integers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutproof.solvers.smt.library import z3

if TYPE_CHECKING:
    from layoutproof.solvers.interval import Bound
    from layoutproof.solvers.smt.library import BoolRef, ExprRef

_TWO = z3.Ast * 2


class Operators:
    """Part of a `Dialect`."""

    def add(self, left: ExprRef, right: ExprRef) -> ExprRef:
        return left + right

    def subtract(self, left: ExprRef, right: ExprRef) -> ExprRef:
        return left - right

    def multiply(self, left: ExprRef, right: ExprRef) -> ExprRef:
        return left * right

    def less(self, left: ExprRef, right: ExprRef) -> BoolRef:
        return left < right

    def equal(self, left: ExprRef, right: ExprRef) -> BoolRef:
        return left == right

    def apart(self, left: ExprRef, right: ExprRef) -> int | None:
        return None

    def choose(self, condition: BoolRef, left: ExprRef, right: ExprRef, low: Bound) -> ExprRef:
        return z3.If(condition, left, right)

    # z3.And, z3.Or and z3.Not look for a context and for sorts to convert to, which takes up to seven times as long

    def logical_and(self, left: BoolRef, right: BoolRef) -> BoolRef:
        return z3.BoolRef(z3.Z3_mk_and(left.ctx_ref(), 2, _TWO(left.as_ast(), right.as_ast())), left.ctx)

    def logical_or(self, left: BoolRef, right: BoolRef) -> BoolRef:
        return z3.BoolRef(z3.Z3_mk_or(left.ctx_ref(), 2, _TWO(left.as_ast(), right.as_ast())), left.ctx)

    def logical_not(self, condition: BoolRef) -> BoolRef:
        return z3.BoolRef(z3.Z3_mk_not(condition.ctx_ref(), condition.as_ast()), condition.ctx)
