"""Bit-vector terms for constant sizes, wide enough that nothing ever overflows, and the pass that finds how wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import Unsupported
from layoutproof.solvers.interval import Bound
from layoutproof.solvers.smt.bounded import Bounded, term_of
from layoutproof.solvers.smt.library import z3
from layoutproof.solvers.smt.operators import Operators

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import BitVecRef, BoolRef, Context


class Bits(Operators):
    """Terms are two's complement bit-vectors of one width, in one z3 context; see `Dialect`.

    `divisors_known`: every divisor was shown to be positive elsewhere.
    """

    floors = False

    def __init__(self, context: Context, width: int, divisors_known: bool = False) -> None:
        self.context = context
        self.width = width
        self.divisors_known = divisors_known
        self.assumed: list[Any] = []
        self._constants: dict[int, BitVecRef] = {}

    def note(self, low: Bound, high: Bound) -> None:
        """The width is known by now."""

    def variable(self, name: str, low: Bound) -> BitVecRef:
        return z3.BitVec(name, self.width, self.context)

    def constant(self, value: int) -> BitVecRef:
        if value not in self._constants:
            self._constants[value] = z3.BitVecVal(value, self.width, self.context)
        return self._constants[value]

    # z3's own operators look for a context and for sorts to convert to, which takes most of the time of many questions

    def add(self, left: BitVecRef, right: BitVecRef) -> BitVecRef:
        return self._made(z3.Z3_mk_bvadd, left, right)

    def subtract(self, left: BitVecRef, right: BitVecRef) -> BitVecRef:
        return self._made(z3.Z3_mk_bvsub, left, right)

    def multiply(self, left: BitVecRef, right: BitVecRef) -> BitVecRef:
        return self._made(z3.Z3_mk_bvmul, left, right)

    def less(self, left: BitVecRef, right: BitVecRef) -> BoolRef:
        return z3.BoolRef(z3.Z3_mk_bvslt(self.context.ref(), left.as_ast(), right.as_ast()), self.context)

    def equal(self, left: BitVecRef, right: BitVecRef) -> BoolRef:
        return z3.BoolRef(z3.Z3_mk_eq(self.context.ref(), left.as_ast(), right.as_ast()), self.context)

    def choose(self, condition: BoolRef, left: BitVecRef, right: BitVecRef, low: Bound) -> BitVecRef:
        made = z3.Z3_mk_ite(self.context.ref(), condition.as_ast(), left.as_ast(), right.as_ast())
        return z3.BitVecRef(made, self.context)

    def _made(self, operation: Callable[..., object], left: BitVecRef, right: BitVecRef) -> BitVecRef:
        return z3.BitVecRef(operation(self.context.ref(), left.as_ast(), right.as_ast()), self.context)

    def quotient(self, value: Bounded | int, by: Bounded | int) -> BitVecRef:
        if type(by) is int and by & (by - 1) == 0:
            # the arithmetic shift rounds down, negative values too
            return term_of(self, value) >> self.constant(by.bit_length() - 1)
        return z3.UDiv(term_of(self, value), term_of(self, by))

    def remainder(self, value: Bounded | int, by: Bounded | int) -> BitVecRef:
        if type(by) is int and by & (by - 1) == 0:
            return term_of(self, value) & self.constant(by - 1)
        return z3.URem(term_of(self, value), term_of(self, by))

    def positive(self, divisor: BitVecRef) -> None:
        if not self.divisors_known:
            raise Unsupported("divides by a value that may be 0 or negative")

    def xor(self, left: BitVecRef, right: BitVecRef) -> BitVecRef:
        return left ^ right

    def below(self, value: BitVecRef, bound: BitVecRef) -> BoolRef:
        return z3.ULT(value, bound)


class Widths:
    """No terms, for the sake of `width`: the bits that hold every value of a formula, and its sign. See `Dialect`.

    >>> widths = Widths()
    >>> widths.note(-128, 100)
    >>> widths.width
    8
    """

    floors = False

    def __init__(self, divisors_known: bool = False) -> None:
        self.width = 1
        self.divisors_known = divisors_known
        self.assumed: list[Any] = []

    def note(self, low: Bound, high: Bound) -> None:
        for end in (low, high):
            # one bit less for -2**k than for 2**k
            self.width = max(self.width, int(end if end >= 0 else -end - 1).bit_length() + 1)

    def positive(self, divisor: object) -> None:
        if not self.divisors_known:
            raise Unsupported("divides by a value that may be 0 or negative")

    def constant(self, value: int) -> None:
        self.note(value, value)

    def quotient(self, value: Bounded | int, by: Bounded | int) -> None:
        self._divided(value, by, 0 if type(by) is not int else by.bit_length() - 1)

    def remainder(self, value: Bounded | int, by: Bounded | int) -> None:
        self._divided(value, by, 0 if type(by) is not int else by - 1)

    def _divided(self, value: Bounded | int, by: Bounded | int, power: int) -> None:
        # what `Bits` writes: a shift or a mask where the divisor is a power of two
        for part in (value, power if type(by) is int and by & (by - 1) == 0 else by):
            term_of(self, part)

    def _no_term(self, *parts: object) -> None:
        return None

    variable = add = subtract = multiply = xor = below = less = equal = _no_term
    logical_and = logical_or = logical_not = choose = apart = _no_term
