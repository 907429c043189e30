"""The integer operations of MLIR's arith dialect on terms: the meaning of each one, and the refused ones.

Meaning: https://mlir.llvm.org/docs/Dialects/ArithOps (signless integers, two's complement). Numbers and conditions
(values of type i1) are told apart by the term's own operation. What JAX writes out for Python's `//` and `%` becomes
that again: the engines know floor division better than a select of truncating ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from layoutproof.bodies import problems as body_problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, constant, fold, folded, negation
from layoutproof.core.operations import CONDITIONS, Op
from layoutproof.core.term import ONE, ZERO, Term
from layoutproof.pallas.from_mosaic import problems

_WIDTH = re.compile(r"i([1-9]\d{0,3})")


def constant_of(value: object, types: Sequence[str]) -> Term:
    """The value of an `arith.constant`. UnsupportedOp where it is no integer."""
    if type(value) is bool or (types == ["i1"] and type(value) is int):
        return TRUE if value else FALSE
    if type(value) is not int:
        raise UnsupportedOp(problems.CONSTANT_NO_INTEGER(value))
    return Term("int", value)


def width(kind: str) -> int:
    """Bits of a type; `index` counts as 64. UnsupportedOp for a type that is no integer."""
    found = _WIDTH.fullmatch(kind)
    if kind != "index" and found is None:
        raise UnsupportedOp(problems.VALUE_NO_INTEGER(kind))
    return 64 if found is None else int(found[1])


def number(value: Term) -> Term:
    """A condition as 0 or 1, a number as it is."""
    return select(value, ONE, ZERO) if value.op in CONDITIONS else value


def _binary(op: Op) -> Callable[[Term, Term], Term]:
    def build(left: Term, right: Term) -> Term:
        left, right = number(left), number(right)
        if op in ("truncdiv", "truncrem", "//") and (constant(right) or 0) <= 0:
            raise UnsupportedOp(body_problems.DIVISOR_NOT_CONSTANT(right))
        return fold(op, left, right)

    return build


_plus, _minus, _times = _binary("+"), _binary("-"), _binary("*")
_floor, _largest = _binary("//"), _binary("max")


def compared(predicate: object, left: Term, right: Term) -> Term:
    # arith::CmpIPredicate: eq, ne, slt, sle, sgt, sge, then the unsigned ones
    if predicate not in (0, 1, 2, 3, 4, 5):
        raise UnsupportedOp(problems.UNSIGNED())
    left, right = number(left), number(right)
    ops: tuple[Op, ...] = ("==", "!=", "<", "<=", "<", "<=")
    op = ops[predicate]
    return fold(op, right, left) if predicate in (4, 5) else fold(op, left, right)


def _differ(left: Term, right: Term) -> Term:
    for one, other in ((left, right), (right, left)):
        if one in (TRUE, FALSE):
            return negation(other) if one is TRUE else other
    return fold("!=", number(left), number(right))


def select(condition: Term, yes: Term, no: Term) -> Term:
    condition = folded(condition)
    if condition in (TRUE, FALSE):
        return yes if condition is TRUE else no
    if yes.op in CONDITIONS or no.op in CONDITIONS:
        return any_of([all_of([condition, yes]), all_of([negation(condition), no])])
    division = _python_division(condition, yes, no)
    return Term("select", condition, yes, no) if division is None else division


def _python_division(condition: Term, yes: Term, no: Term) -> Term | None:
    """`x // d` or `x % d` where that is what a select of truncating ones says, as jax.numpy writes them out.

    x // d: where sign(x) != 1 and truncrem(x, d) != 0, truncdiv(x, d) - 1; elsewhere truncdiv(x, d).
    x % d: where truncrem(x, d) < 0 and truncrem(x, d) != 0, that + d; elsewhere truncrem(x, d).
    """
    if no.op not in ("truncdiv", "truncrem") or condition.op != "and":
        return None
    value, by = no.args
    rest = Term("truncrem", value, by)
    uneven = Term("!=", rest, ZERO)
    wanted: tuple[Term, ...]
    op: Op
    if no.op == "truncdiv":
        sign = Term(
            "-", Term("select", Term("<", ZERO, value), ONE, ZERO), Term("select", Term("<", value, ZERO), ONE, ZERO)
        )
        first, wanted, op = Term("!=", sign, ONE), (Term("-", no, ONE), Term("+", no, Term("int", -1))), "//"
    else:
        first, wanted, op = Term("<", rest, ZERO), (Term("+", rest, by),), "%"
    turned = Term("and", first, uneven), Term("and", uneven, first)
    return Term(op, value, by) if condition in turned and yes in wanted else None


def masked(name: str, operands: list[Term]) -> Term:
    """Bits: x & (2**k - 1) is a remainder."""
    if name == "and":
        for value, mask in (operands, operands[::-1]):
            bits = constant(mask)
            if bits is not None and bits >= 0 and bits & (bits + 1) == 0:
                return _binary("%")(value, Term("int", bits + 1))
    raise UnsupportedOp(body_problems.BITWISE(name))


def _shift(by: Term) -> Term:
    bits = constant(by)
    if bits is None or not 0 <= bits < 32:
        raise UnsupportedOp(problems.SHIFT(by))
    return Term("int", 1 << bits)


def _shifted_left(value: Term, by: Term) -> Term:
    """No product: the compiler's prover of alignment tells them apart."""
    _shift(by)
    if value.op == "int" or constant(by) == 0:
        return _times(value, _shift(by))
    return Term("shl", value, by)


def _shifted_right(operands: list[Term], width: int, _: int) -> Term:
    """Zeros come in from the left: of a negative number as if it were unsigned."""
    value, by = operands
    return value if constant(by) == 0 else _floor(_unsigned(value, width), _shift(by))


def _unsigned(value: Term, width: int) -> Term:
    return _binary("%")(value, Term("int", 1 << width))


def _narrowed(operands: list[Term], old: int, new: int) -> Term:
    value = constant(operands[0])
    if value is None or not -(1 << (new - 1)) <= value < 1 << (new - 1) or new == 1:
        raise UnsupportedOp(problems.CONVERSION(old, new))
    return operands[0]


BITS = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}

WIDENED: dict[str, Callable[[list[Term], int, int], Term]] = {
    "arith.extui": lambda v, old, new: number(v[0]) if old == 1 else _unsigned(v[0], old),
    "arith.extsi": lambda v, old, new: select(v[0], Term("int", -1), ZERO) if old == 1 else v[0],
    "arith.trunci": _narrowed,
    "arith.index_cast": lambda v, old, new: v[0] if new >= 32 else _narrowed(v, old, new),
    "arith.shrui": _shifted_right,
}

OPERATIONS: dict[str, Callable[..., Term]] = {
    "arith.addi": _plus,
    "arith.subi": _minus,
    "arith.muli": _times,
    "arith.divsi": _binary("truncdiv"),
    "arith.remsi": _binary("truncrem"),
    "arith.floordivsi": _floor,
    "arith.ceildivsi": lambda a, b: _minus(ZERO, _floor(_minus(ZERO, a), b)),
    "arith.maxsi": _largest,
    "arith.minsi": _binary("min"),
    "arith.select": select,
    "arith.andi": lambda left, right: all_of([left, right]),
    "arith.ori": lambda left, right: any_of([left, right]),
    "arith.xori": _differ,
    "arith.shli": lambda a, b: _shifted_left(a, b),
    "arith.shrsi": lambda a, b: _floor(a, _shift(b)),
    "math.absi": lambda a: _largest(a, _minus(ZERO, a)),
}
