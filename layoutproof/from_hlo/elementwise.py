"""Arithmetic, comparisons, choices and conversions, element by element."""

from __future__ import annotations

from layoutproof.core.element_types import element_type
from layoutproof.from_hlo.body import EquationList, Rule
from layoutproof.from_hlo.shapes import read_shape
from layoutproof.hlotext.module import Instruction
from layoutproof.ir.program import Array, Atom

_NAMES = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "remainder": "rem", "maximum": "max",
    "minimum": "min", "power": "pow", "negate": "neg", "abs": "abs", "sign": "sign", "and": "and", "or": "or",
    "xor": "xor", "not": "not", "exponential": "exp", "exponential-minus-one": "expm1", "log": "log",
    "log-plus-one": "log1p", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt", "tanh": "tanh", "logistic": "logistic",
    "erf": "erf", "sine": "sin", "cosine": "cos", "tan": "tan", "atan2": "atan2", "floor": "floor", "ceil": "ceil",
    "is-finite": "is_finite", "shift-left": "shift_left", "shift-right-arithmetic": "shift_right_arithmetic",
    "shift-right-logical": "shift_right_logical", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh",
    "atanh": "atanh", "cosh": "cosh", "sinh": "sinh", "clamp": "clamp",
}  # fmt: skip
"""Opcode -> primitive, where both compute the same of the same operands."""


def _plain(name: str) -> Rule:
    def rule(body: EquationList, at: Instruction, operands: list[Atom]) -> Atom:
        return body.one(name, operands, read_shape(at.shape), at)

    return rule


def _compare(body: EquationList, at: Instruction, operands: list[Atom]) -> Atom:
    return body.one(at.attribute("direction").lower(), operands, read_shape(at.shape), at)


def _select(body: EquationList, at: Instruction, operands: list[Atom]) -> Atom | None:
    which, yes, no = operands
    out = read_shape(at.shape)
    if isinstance(out, tuple):
        return None
    no, yes = (converted(body, x, out, at) for x in (no, yes))
    return body.one("select_n", [which, no, yes], out, at)


def _round(method: str) -> Rule:
    def rule(body: EquationList, at: Instruction, operands: list[Atom]) -> Atom:
        return body.one("round", operands, read_shape(at.shape), at, rounding_method=method)

    return rule


def converted(body: EquationList, value: Atom, aval: Array, at: Instruction) -> Atom:
    """A value as the element type of a result, as compilers write it without saying so."""
    source = value.aval
    if not isinstance(source, Array) or source.dtype == aval.dtype:
        return value
    body.reading.converts[element_type(source.dtype), element_type(aval.dtype)] += 1
    return body.one("convert_element_type", [value], Array(source.shape, aval.dtype), at, new_dtype=aval.dtype)


def _convert(body: EquationList, at: Instruction, operands: list[Atom]) -> Atom:
    return converted(body, operands[0], read_shape(at.shape), at)


def _reduce_precision(body: EquationList, at: Instruction, operands: list[Atom]) -> Atom:
    bits = {name: int(at.attribute(name) or 0) for name in ("exponent_bits", "mantissa_bits")}
    return body.one("reduce_precision", operands, read_shape(at.shape), at, **bits)


def _bits(body: EquationList, at: Instruction, operands: list[Atom]) -> Atom | None:
    out = read_shape(at.shape)
    if operands[0].aval.shape != out.shape:
        return None
    return body.one("bitcast_convert_type", operands, out, at, new_dtype=out.dtype)


RULES: dict[str, Rule] = {
    **{opcode: _plain(name) for opcode, name in _NAMES.items()},
    "compare": _compare,
    "select": _select,
    "convert": _convert,
    "copy": _convert,
    "reduce-precision": _reduce_precision,
    "bitcast-convert": _bits,
    "round-nearest-even": _round("TO_NEAREST_EVEN"),
    "round-nearest-afz": _round("AWAY_FROM_ZERO"),
}
