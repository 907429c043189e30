"""Elementwise operations: exact on integers and truth values, with undefinedness for all types.

A size of 1 meets every size, with no broadcast between (as Pallas' own equations have it). `0 * undefined` is
undefined, and so is a comparison with an undefined element; a choice is as defined as what it chooses, where the
condition is one that terms say; `False and undefined` is False.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import Mask
from layoutproof.bodies.integers import OPERATIONS, SHIFTS, applied, condition_of, converted, held
from layoutproof.bodies.passes import Pass, Rule
from layoutproof.bodies.terms import tabulated
from layoutproof.bodies.values import Index, Lost, Span, Value, aligned, dims_of, maybe, span_of_type, takes
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import FALSE, all_of, any_of, folded, negation
from layoutproof.core.operations import INT32
from layoutproof.core.term import Term
from layoutproof.ir.program import Dtype, Equation
from layoutproof.solvers.interval import Interval, IntervalNumbers, ends

FLOATS = (
    "exp", "exp2", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "atan2", "logistic", "sqrt", "rsqrt", "cbrt", "pow", "erf", "erfc", "erf_inv", "floor",
    "ceil", "round", "is_finite", "nextafter", "lgamma", "digamma", "real", "imag",
    "population_count", "clz", "stochastic_round", "approx_tanh", "fma", "reciprocal", "one_minus_square",
)  # fmt: skip
"""Elementwise operations whose results are no terms."""

_DIVIDE = ("div", "rem")


def _elementwise(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    name, variable = equation.primitive.name, equation.outvars[0]
    dims = dims_of(variable.aval)
    dtype = equation.invars[0].aval.dtype
    span, fits = _span(name, operands, dtype, variable.aval.dtype)
    extents = dict(zip(on.names, on.grid, strict=True))
    quotient = Value(dims, variable.aval.dtype, problems.DIVISOR_UNKNOWN())

    def number(index: Index) -> Term:
        if name not in OPERATIONS and name not in SHIFTS:
            raise Lost(problems.RESULT_OF_OPERATION(name))
        parts = [o.number(aligned(o, dims, index)) for o in operands]
        try:
            found = applied(name, parts, dtype)
        except UnsupportedOp:
            if name not in _DIVIDE or dims:
                raise
            # what is chosen only where the divisor is none of these is a term nevertheless
            return on.scalar(quotient)
        return tabulated(folded(held(found, variable.aval, fits)), extents)

    return [Value(dims, variable.aval.dtype, number, undefined_in(operands, dims), span=span)]


def _span(name: str, operands: Sequence[Value], dtype: Dtype, result: Dtype) -> tuple[Span, bool]:
    """The bounds of a result, and whether they show that its type holds all of it."""
    whole = span_of_type(result)
    if getattr(result, "kind", "") not in "iu" or (name not in OPERATIONS and name not in SHIFTS):
        return whole, True
    names = {f"x{k}": Interval(*operand.span) for k, operand in enumerate(operands)}
    parts = [
        Term("int", o.span[0]) if o.span[0] == o.span[1] else Term("name", n)
        for n, o in zip(names, operands, strict=True)
    ]
    try:
        low, high = ends(applied(name, parts, dtype).evaluate(names, IntervalNumbers()))
    except (UnsupportedOp, Undecided):
        return whole, False
    fits = whole[0] <= low and high <= whole[1]
    # the bits of two numbers of a type, put together, are a number of the type
    return (low, high) if fits else whole, fits or (name in ("and", "or", "xor", "not") and result.kind == "i")


def undefined_in(operands: Sequence[Value], dims: Sequence[int]) -> Callable[[Index], Term] | None:
    """An element is undefined where any operand's is; None where all are defined."""
    some = [o for o in operands if not o.defined]
    if not some:
        return None
    return lambda index: any_of([o.undefined(aligned(o, dims, index)) for o in some])


def _logical(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    (result,) = _elementwise(on, equation, operands)
    left, right = operands
    if left.dtype.kind != "b" or result.defined:
        return [result]
    absorbs = equation.primitive.name == "and"

    def open_(value: Value, index: Index) -> Term:
        # whether a side leaves the answer to the other one
        try:
            said = condition_of(value.number(aligned(value, result.dims, index)))
        except Lost as lost:
            return maybe(str(lost))
        return folded(said if absorbs else negation(said))

    def undefined(index: Index) -> Term:
        one = left.undefined(aligned(left, result.dims, index))
        other = right.undefined(aligned(right, result.dims, index))
        if one is FALSE and other is FALSE:
            return FALSE
        return any_of(
            [
                all_of(on.apart(index, [one, other])),
                all_of([one, open_(right, index)]) if one is not FALSE else FALSE,
                all_of([other, open_(left, index)]) if other is not FALSE else FALSE,
            ]
        )

    return [Value(result.dims, result.dtype, result.number, undefined, span=result.span)]


def _select(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    if operands[0].dtype.kind == "b" and dims_of(equation.outvars[0].aval):
        on.masks.append(Mask(operands[0], on.spot(), tuple(operands[1:])))
    operands = [_either(on, equation, *operands), *operands[1:]]
    (result,) = _elementwise(on, equation, operands)
    which, *cases = operands
    if result.defined:
        return [result]

    def taken(k: int, index: Index) -> Term:
        try:
            said = which.number(aligned(which, result.dims, index))
        except Lost as lost:
            return maybe(str(lost))
        return takes(condition_of(said) if which.dtype.kind == "b" else said, k, len(cases))

    def undefined(index: Index) -> Term:
        parts = [which.undefined(aligned(which, result.dims, index))]
        for k, case in enumerate(cases):
            said = case.undefined(aligned(case, result.dims, index))
            if said is not FALSE:
                parts.append(all_of([taken(k, index), said]))
        return any_of(parts)

    def passed(index: Index) -> list[tuple[Term, Term]]:
        return [
            (all_of([taken(k, index), condition]), source)
            for k, case in enumerate(cases)
            for condition, source in case.passed(aligned(case, result.dims, index))
        ]

    return [Value(result.dims, result.dtype, result.number, undefined, passed, result.span)]


def _either(on: Pass, equation: Equation, which: Value, *cases: Value) -> Value:
    """A choice between single integers: where data choose, an unknown that is one of them."""
    if dims_of(equation.outvars[0].aval) or equation.outvars[0].aval.dtype.kind not in "iu" or which.dims:
        return which
    try:
        for case in cases:
            case.number()
    except Lost:
        # then nothing is known of what is chosen
        return which
    try:
        which.number()
    except Lost:
        said = on.scalar(which)
        return Value((), which.dtype, lambda index: said, None if which.defined else which.undefined, which.passed)
    return which


def _converted(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    (operand,) = operands
    old, new = equation.invars[0].aval.dtype, equation.params["new_dtype"]

    def number(index: Index) -> Term:
        if getattr(new, "kind", "") not in "iub" or old.kind not in "iub":
            raise Lost(problems.CONVERTED_NUMBER(old, new))
        if kept and old.kind in "iu" and new.kind in "iu":
            same: Term = operand.number(index)
            return same
        return folded(converted(operand.number(index), old, new))

    whole = span_of_type(new)
    kept = old.kind in "iub" and whole[0] <= operand.span[0] and operand.span[1] <= whole[1]
    # a number that is stored in another precision and read back has the same origin
    floats = getattr(new, "kind", "") not in "iub" and old.kind not in "iub"
    return [
        Value(
            operand.dims,
            new,
            number,
            None if operand.defined else operand.undefined,
            operand.passed if floats else None,
            operand.span if kept else whole,
        )
    ]


def _power(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand: Value = operands[0]
    exponent = int(equation.params["y"])

    def number(index: Index) -> Term:
        if exponent < 1 or operand.dtype.kind not in "iu":
            raise Lost("a power")
        term = operand.number(index)
        for _ in range(exponent - 1):
            term = Term("*", term, operand.number(index))
        fits = max(map(abs, operand.span)) ** max(exponent, 1) < INT32
        return folded(held(term, equation.outvars[0].aval, fits))

    return [Value(operand.dims, operand.dtype, number, None if operand.defined else operand.undefined)]


def _same(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    return list(operands)


PRIMITIVES: dict[str, Rule] = {
    **dict.fromkeys((*OPERATIONS, *SHIFTS, *FLOATS), _elementwise),
    "and": _logical,
    "or": _logical,
    "select_n": _select,
    "convert_element_type": _converted,
    "integer_pow": _power,
    **dict.fromkeys(
        ("stop_gradient", "optimization_barrier", "copy", "copy_p", "reduce_precision", "name", "pvary"), _same
    ),
}
