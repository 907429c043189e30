"""Integers and truth values as JAX computes them, one element at a time, as terms.

Every operation is modelled or refused by name. Arithmetic of int32 in a body is that of 32 bits: where the bounds of
what goes in do not exclude that it wraps, the result is `int32(..)` (`wraps`). In an index map it is over the unbounded
integers, and that JAX computes it in 32 bits is the business of the property `index_int32`; so is int64 everywhere.
What is narrower or unsigned wraps here as it does there, and so does a conversion to it. Truth values are conditions,
and count as 0 or 1 where a number must stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp, bitwise, shifted, wrapped
from layoutproof.core.folding import constant, fold, negation
from layoutproof.core.operations import CONDITIONS, Op
from layoutproof.core.term import ONE, ZERO, Term
from layoutproof.ir.program import Array, Aval, Dtype


def held(value: Term, aval: Aval, fits: bool = True) -> Term:
    """A result as its type holds it: truth values as conditions, numbers that may wrap as what is left of them.

    fits: whether it is known that nothing is lost in 32 bits with a sign, or asked elsewhere.
    """
    kind = getattr(getattr(aval, "dtype", None), "kind", "")
    if not isinstance(value, Term):
        return value
    if kind == "b":
        return condition_of(value)
    if kind not in "iu" or value.op in ("name", "read", "select", "min", "max"):
        return value
    return _held(value, cast(Array, aval).dtype, fits)


def _held(value: Term, dtype: Dtype, fits: bool = True) -> Term:
    bits, signed = 8 * dtype.itemsize, dtype.kind == "i"
    if constant(value) is None and signed and bits >= 32:
        return value if fits or bits > 32 else Term("int32", value)
    return wrapped(value, bits, signed)


def literal(value: Any) -> Term:
    """A number or truth value that is known when tracing, as a term. UnsupportedOp for arrays and floats."""
    if getattr(value, "shape", ()) != ():
        raise UnsupportedOp(problems.CAPTURED_ARRAY(value.shape))
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, bool) or kind == "b":
        return Term("==", ZERO, ZERO if bool(value) else ONE)
    if isinstance(value, float) or (kind in "fcV" and kind):
        raise UnsupportedOp(problems.NO_INTEGER(value))
    return Term("int", int(value))


def chosen(which: Term, cases: Sequence[Term]) -> Term:
    """The case that `which` numbers: the first for numbers below, the last for those above."""
    if len(cases) == 2 and which.op in CONDITIONS:
        return _select(which, *cases)
    result = cases[-1]
    for k, case in reversed(list(enumerate(cases[:-1]))):
        result = _select(Term("<", Term("int", k), number_of(which)), case, result)
    return result


def applied(name: str, operands: Sequence[Term], dtype: Dtype) -> Term:
    """One operation on integers or truth values. dtype: of the first operand. UnsupportedOp names what is no such."""
    if name in ("and", "or", "not", "xor") and dtype.kind != "b":
        return bitwise(name, list(operands))
    if name in SHIFTS:
        if name == "shift_right_arithmetic" and dtype.kind == "u":
            raise UnsupportedOp(problems.ARITHMETIC_SHIFT(dtype))
        return shifted(operands[0], operands[1], 8 * dtype.itemsize, SHIFTS[name])
    if name not in OPERATIONS:
        raise UnsupportedOp(problems.OPERATION(name))
    if name == "abs" and dtype.kind == "i":
        # the smallest number has no opposite of its type: of a byte, -128 stays -128
        return OPERATIONS["max"](operands[0], _held(OPERATIONS["neg"](operands[0]), dtype))
    return OPERATIONS[name](*operands)


def converted(value: Term, old: Dtype, new: Dtype) -> Term:
    if new.kind == "b":
        return condition_of(value)
    if new.kind not in "iu":
        raise UnsupportedOp(problems.CONVERSION_TO_NO_INTEGER(new))
    if old.kind == "b":
        return number_of(value)
    if old.kind not in "iu":
        raise UnsupportedOp(problems.CONVERSION(old, new))
    holds = new.itemsize > old.itemsize if new.kind == "i" and old.kind == "u" else new.itemsize >= old.itemsize
    if holds and not (new.kind == "u" and old.kind == "i"):
        return value
    return wrapped(value, 8 * new.itemsize, new.kind == "i")


def condition_of(value: Term) -> Term:
    """A truth value as a condition, also one that is read from a table or was counted with."""
    return value if value.op in CONDITIONS else fold("!=", value, ZERO)


def number_of(value: Term) -> Term:
    """A condition as 0 or 1, a number as it is."""
    if isinstance(value, Term) and value.op in CONDITIONS:
        return fold("select", value, ONE, ZERO)
    return value


def _binary(op: Op) -> Callable[[Term, Term], Term]:
    def build(left: Term, right: Term) -> Term:
        left, right = number_of(left), number_of(right)
        if op in ("truncdiv", "truncrem"):
            by = constant(right)
            if by is None or by <= 0:
                raise UnsupportedOp(problems.DIVISOR_NOT_CONSTANT(right))
        return fold(op, left, right)

    return build


def _compare(op: Op, turned: bool = False) -> Callable[[Term, Term], Term]:
    def build(left: Term, right: Term) -> Term:
        left, right = number_of(left), number_of(right)
        return fold(op, right, left) if turned else fold(op, left, right)

    return build


def _select(condition: Term, if_false: Term, if_true: Term) -> Term:
    condition = condition_of(condition)
    if if_true.op in CONDITIONS or if_false.op in CONDITIONS:
        yes = fold("and", condition, condition_of(if_true))
        return fold("or", yes, fold("and", negation(condition), condition_of(if_false)))
    return fold("select", condition, if_true, if_false)


def _sign(value: Term) -> Term:
    negative = fold("select", fold("<", value, ZERO), Term("int", -1), ZERO)
    return fold("select", fold("<", ZERO, value), ONE, negative)


DIVISIONS: Mapping[str, Op] = {"floor_divide": "//", "remainder": "%"}
"""Functions of JAX that it writes out with div, sign and select, by what they compute."""

OPERATIONS: dict[str, Callable[..., Term]] = {
    "add": _binary("+"),
    "sub": _binary("-"),
    "mul": _binary("*"),
    "div": _binary("truncdiv"),
    "rem": _binary("truncrem"),
    "max": _binary("max"),
    "min": _binary("min"),
    "neg": lambda a: fold("-", ZERO, number_of(a)),
    "sign": _sign,
    "abs": lambda a: fold("max", a, fold("-", ZERO, a)),
    "clamp": lambda low, x, high: fold("min", fold("max", low, x), high),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare("<", turned=True),
    "ge": _compare("<=", turned=True),
    "eq": _compare("=="),
    "ne": _compare("!="),
    "square": lambda a: fold("*", a, a),
    "and": lambda a, b: fold("and", condition_of(a), condition_of(b)),
    "or": lambda a, b: fold("or", condition_of(a), condition_of(b)),
    "not": lambda a: negation(condition_of(a)),
    "xor": lambda a, b: fold("!=", number_of(a), number_of(b)),
    "select_n": lambda which, *cases: chosen(which, cases),
}

SHIFTS = {"shift_left": "left", "shift_right_arithmetic": "right", "shift_right_logical": "logical"}
