"""Operations element by element: exact on integers and truth values, what is undefined on everything.

A size of 1 meets every size, with no broadcast between (as Pallas' own equations have it). `0 * undefined` is
undefined, and so is a comparison with an undefined element; a choice is as defined as what it chooses, where the
condition is one that terms say; `False and undefined` is False.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.integers import OPERATIONS, SHIFTS, applied, condition_of, converted, held
from layoutproof.bodies.values import FALSE, TRUE, Index, Lost, Value, all_of, any_of, maybe, negation, settled
from layoutproof.core.term import Term

_ZERO = Term("int", 0)

FLOATS = (
    "exp", "exp2", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "atan2", "logistic", "sqrt", "rsqrt", "cbrt", "pow", "erf", "erfc", "erf_inv", "floor",
    "ceil", "round", "is_finite", "nextafter", "lgamma", "digamma", "real", "imag", "bitcast_convert_type",
    "population_count", "clz", "approx_tanh", "fma", "reciprocal",
)  # fmt: skip
"""Elementwise operations whose results are no terms."""


def operand_index(operand: Value, dims: Sequence[int], index: Index) -> Index:
    """Which element of an operand meets an element of the result."""
    if not operand.dims:
        return ()
    lead = len(dims) - len(operand.dims)
    return tuple(
        _ZERO if extent == 1 and dims[k + lead] != 1 else index[k + lead] for k, extent in enumerate(operand.dims)
    )


def _elementwise(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    name, variable = equation.primitive.name, equation.outvars[0]
    dims = tuple(int(n) for n in getattr(variable.aval, "shape", ()))
    dtype = equation.invars[0].aval.dtype

    def number(index: Index) -> Term:
        if name not in OPERATIONS and name not in SHIFTS:
            raise Lost(f"the result of {name}")
        parts = [o.number(operand_index(o, dims, index)) for o in operands]
        term: Term = settled(held(applied(name, parts, dtype), variable.aval))
        return term

    return [Value(dims, variable.aval.dtype, number, undefined_in(operands, dims))]


def undefined_in(operands: Sequence[Value], dims: Sequence[int]) -> Any:
    """An element is undefined where any operand's is; None where all are defined."""
    some = [o for o in operands if not o.defined]
    if not some:
        return None
    return lambda index: any_of([o.undefined(operand_index(o, dims, index)) for o in some])


def _logical(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    (result,) = _elementwise(on, equation, operands)
    left, right = operands
    if left.dtype.kind != "b" or result.defined:
        return [result]
    absorbs = equation.primitive.name == "and"

    def open_(value: Value, index: Index) -> Term:
        # whether a side leaves the answer to the other one
        try:
            said = condition_of(value.number(operand_index(value, result.dims, index)))
        except Lost as lost:
            return maybe(str(lost))
        return settled(said if absorbs else negation(said))

    def undefined(index: Index) -> Term:
        one = left.undefined(operand_index(left, result.dims, index))
        other = right.undefined(operand_index(right, result.dims, index))
        if one is FALSE and other is FALSE:
            return FALSE  # type: ignore[no-any-return]
        return any_of(
            [
                all_of([one, other]),
                all_of([one, open_(right, index)]) if one is not FALSE else FALSE,
                all_of([other, open_(left, index)]) if other is not FALSE else FALSE,
            ]
        )

    return [Value(result.dims, result.dtype, result.number, undefined)]


def _select(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    (result,) = _elementwise(on, equation, operands)
    which, *cases = operands
    if result.defined:
        return [result]

    def undefined(index: Index) -> Term:
        parts = [which.undefined(operand_index(which, result.dims, index))]
        for k, case in enumerate(cases):
            said = case.undefined(operand_index(case, result.dims, index))
            if said is not FALSE:
                parts.append(all_of([_chosen(which, k, len(cases), operand_index(which, result.dims, index)), said]))
        return any_of(parts)

    return [Value(result.dims, result.dtype, result.number, undefined)]


def _chosen(which: Value, k: int, count: int, index: Index) -> Term:
    """Whether a choice takes its case k."""
    try:
        said = which.number(index)
    except Lost as lost:
        return maybe(str(lost))
    if which.dtype.kind == "b":
        condition = settled(condition_of(said))
        return condition if k else negation(condition)
    low = TRUE if k == 0 else settled(Term("<", Term("int", k - 1), said))
    high = TRUE if k == count - 1 else settled(Term("<=", said, Term("int", k)))
    return all_of([low, high])


def _converted(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    (operand,) = operands
    old, new = equation.invars[0].aval.dtype, equation.params["new_dtype"]

    def number(index: Index) -> Term:
        if getattr(new, "kind", "") not in "iub" or old.kind not in "iub":
            raise Lost(f"a number that was converted from {old} to {new}")
        return settled(converted(operand.number(index), old, new))

    return [Value(operand.dims, new, number, None if operand.defined else operand.undefined)]


def _power(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    operand: Value = operands[0]
    exponent = int(equation.params["y"])

    def number(index: Index) -> Term:
        if exponent < 1 or operand.dtype.kind not in "iu":
            raise Lost("a power")
        term = operand.number(index)
        for _ in range(exponent - 1):
            term = Term("*", term, operand.number(index))
        return term

    return [Value(operand.dims, operand.dtype, number, None if operand.defined else operand.undefined)]


def _same(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    return list(operands)


def _clamped(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    if any(isinstance(o, Value) for o in operands):
        return _elementwise(on, equation, operands)
    raise UnsupportedOp("a clamp of references")


PRIMITIVES = {
    **dict.fromkeys((*OPERATIONS, *SHIFTS, *FLOATS), _elementwise),
    "and": _logical,
    "or": _logical,
    "clamp": _clamped,
    "select_n": _select,
    "convert_element_type": _converted,
    "integer_pow": _power,
    **dict.fromkeys(("stop_gradient", "optimization_barrier", "copy", "copy_p", "reduce_precision"), _same),
}
