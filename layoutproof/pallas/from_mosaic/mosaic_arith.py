"""Numbers, element by element: MLIR's arith and math dialects.

Meaning: https://mlir.llvm.org/docs/Dialects/ArithOps (signless integers, two's complement). Two numbers that are
written in the module are computed here, so that what JAX writes out for a constant divisor is short again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.ir.program import (
    Array,
    Atom,
    ElementType,
    Literal,
    Number,
    Variable,
    element_type_named,
)
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_equations import (
    Found,
    Make,
    MosaicOperation,
    Writer,
    literal,
    operands_of,
    result,
    whole,
)

_BOOL, _INT = element_type_named("pred"), element_type_named("s32")
_SIGNED = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
"""arith::CmpIPredicate; from the sixth on of unsigned numbers."""
_ORDERED = ("ne", "eq", "gt", "ge", "lt", "le", "ne", "eq", "eq", "gt", "ge", "lt", "le", "ne", "ne", "ne")
"""arith::CmpFPredicate: the floats are unknown, only their dependencies are known."""
_DENSE = re.compile(r"dense<([^\[\"<>]*)> : .*", re.DOTALL)
_FOLDED: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def computed(on: Writer, name: str, operands: Sequence[Atom], aval: Array) -> Atom:
    """An elementwise operation of numbers or arrays; of two numbers that are known, its value."""
    values = [whole(o) for o in operands]
    if name in _FOLDED and len(values) == 2 and None not in values:
        one, other = (v for v in values if v is not None)
        found = int(_FOLDED[name](one, other))
        bits = 8 * aval.dtype.itemsize
        if not aval.shape and (aval.dtype.kind == "b" or -(1 << (bits - 1)) <= found < 1 << (bits - 1)):
            return literal(found, aval.dtype)
    return on.emit(name, operands, aval)


def simple(name: str) -> Make:
    """An operation that is a primitive of the same operands."""
    return lambda on, operation: [computed(on, name, operands_of(on, operation), result(operation))]


def unsigned(name: str) -> Make:
    """An operation of numbers without a sign."""

    def make(on: Writer, operation: MosaicOperation) -> Found:
        aval = result(operation)
        made = on.emit(
            name, [_unsigned(on, o) for o in operands_of(on, operation)], replace(aval, dtype=_u(aval.dtype))
        )
        return [converted(on, made, aval.dtype)]

    return make


def _u(dtype: ElementType) -> ElementType:
    return element_type_named(f"u{dtype.name[1:]}") if dtype.kind == "i" else dtype


def _unsigned(on: Writer, atom: Atom) -> Atom:
    return converted(on, atom, _u(atom.aval.dtype))


def converted(on: Writer, atom: Atom, dtype: ElementType) -> Atom:
    """A number or an array in another element type."""
    value = whole(atom)
    if value is not None and dtype.kind in "iu" and 0 <= value < 1 << (8 * dtype.itemsize - 1):
        return literal(value, dtype)
    if atom.aval.dtype == dtype:
        return atom
    return on.emit("convert_element_type", [atom], Array(atom.aval.shape, dtype), new_dtype=dtype)


def _constant(on: Writer, operation: MosaicOperation) -> Found:
    value, aval = operation.attributes.get("value"), result(operation)
    if not aval.shape:
        if isinstance(value, bool | int):
            return [literal(value, aval.dtype)]
        return [literal(_float(str(value), aval.dtype), aval.dtype)]
    dense = _DENSE.fullmatch(str(value))
    if dense is None:
        return [Literal(Number(0, aval.dtype, aval.shape), aval)]
    text = dense[1].strip()
    if aval.dtype.kind not in "iub":
        return [spread(on, literal(_float(text, aval.dtype), aval.dtype), aval)]
    if text not in ("true", "false") and not text.lstrip("-").isdecimal():
        raise UnsupportedOp(problems.CONSTANT(text[:40]))
    value = {"true": 1, "false": 0}[text] if text in ("true", "false") else int(text)
    return [spread(on, literal(value, aval.dtype), aval)]


def _float(text: str, dtype: ElementType) -> float:
    """A float as MLIR prints it: in decimal, or its bits in hexadecimal. NaN, which no value is told by, of others."""
    import numpy as np

    word = text.partition(" : ")[0].strip()
    with suppress(ValueError, TypeError, OverflowError):
        if not word.startswith("0x"):
            return float(word)
        if dtype.name == "bf16":  # the upper half of an f32
            return float(np.array(int(word, 16) << 16, np.uint32).view(np.float32))
        return float(np.array(int(word, 16), f"u{dtype.itemsize}").view(f"f{dtype.itemsize}"))
    return float("nan")


def spread(on: Writer, atom: Atom, aval: Array) -> Atom:
    """An array whose elements are those of a smaller one, or a number."""
    return on.emit("broadcast_to", [atom], aval, shape=aval.shape)


def _select(on: Writer, operation: MosaicOperation) -> Found:
    which, yes, no = operands_of(on, operation)
    known = whole(which)
    if known is not None and yes.aval.shape == no.aval.shape:
        return [yes if known else no]
    return [on.emit("select_n", [which, no, yes], result(operation))]


def _compared(on: Writer, operation: MosaicOperation) -> Found:
    predicate = operation.number("predicate")
    if not 0 <= predicate < len(_SIGNED):
        raise UnsupportedOp(problems.PREDICATE(operation.name, predicate))
    left, right = operands_of(on, operation)
    if predicate in (0, 1) and whole(right) == 0 and isinstance(left, Variable) and left in on.truths:
        # a truth value that was widened to a number, as `pl.when` does
        truth = on.truths[left]
        return [truth] if predicate else [on.emit("not", [truth], result(operation))]
    if predicate >= 6:
        left, right = _unsigned(on, left), _unsigned(on, right)
    return [computed(on, _SIGNED[predicate], [left, right], result(operation))]


def _compared_floats(on: Writer, operation: MosaicOperation) -> Found:
    predicate = operation.number("predicate")
    if not 0 <= predicate < len(_ORDERED):
        raise UnsupportedOp(problems.PREDICATE(operation.name, predicate))
    return [on.emit(_ORDERED[predicate], operands_of(on, operation), result(operation))]


def _bits(name: str) -> Make:
    """`and`, `or`, `xor`: of truth values too."""

    def make(on: Writer, operation: MosaicOperation) -> Found:
        left, right = operands_of(on, operation)
        if left.aval.dtype.kind == "b":
            for one, other in ((left, right), (right, left)):
                known = whole(one)
                if known is not None and not result(operation).shape:
                    if name == "xor":
                        return [on.emit("not", [other], result(operation)) if known else other]
                    return [one if bool(known) == (name == "or") else other]
        return [on.emit(name, [left, right], result(operation))]

    return make


def _widened(signed: bool) -> Make:
    def make(on: Writer, operation: MosaicOperation) -> Found:
        (operand,) = operands_of(on, operation)
        aval = result(operation)
        if operand.aval.dtype.kind != "b":
            return [converted(on, operand if signed else _unsigned(on, operand), aval.dtype)]
        known = whole(operand)
        if known is not None:
            return [literal(-known if signed else known, aval.dtype)]
        made = converted(on, operand, aval.dtype)
        assert isinstance(made, Variable)
        on.truths[made] = operand
        if not signed:
            return [made]
        turned = on.emit("neg", [made], aval)
        on.truths[turned] = operand
        return [turned]

    return make


def _narrowed(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    aval = result(operation)
    if aval.dtype.kind != "b":
        return [converted(on, operand, aval.dtype)]
    one = _like(on, 1, operand)
    last = on.emit("and", [operand, one], operand.aval)
    return [on.emit("ne", [last, _like(on, 0, operand)], aval)]


def _like(on: Writer, value: int, atom: Atom) -> Atom:
    one = literal(value, atom.aval.dtype)
    return spread(on, one, Array(atom.aval.shape, atom.aval.dtype)) if atom.aval.shape else one


def _cast(on: Writer, operation: MosaicOperation) -> Found:
    return [converted(on, on.value(operation.operands[0]), result(operation).dtype)]


def _index(on: Writer, operation: MosaicOperation) -> Found:
    """A number as an index, or back: one of 32 bits or more is taken for an unbounded integer."""
    (operand,), aval = operands_of(on, operation), result(operation)
    wide = min(operand.aval.dtype.itemsize, aval.dtype.itemsize) >= 4
    return [operand if wide else converted(on, operand, aval.dtype)]


def _same(on: Writer, operation: MosaicOperation) -> Found:
    return [on.known(operation.operands[0])]


def _same_words(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    aval = result(operation)
    if operand.aval.shape != aval.shape or operand.aval.dtype.itemsize != aval.dtype.itemsize:
        raise UnsupportedOp(problems.PACKED_ROWS(operation.name))
    if "i" == operand.aval.dtype.kind == aval.dtype.kind:
        return [operand]
    return [on.emit("bitcast_convert_type", [operand], aval)]


def _floored(up: bool) -> Make:
    """x // d as JAX writes it out; -(-x // d) for rounding up."""

    def make(on: Writer, operation: MosaicOperation) -> Found:
        value, by = operands_of(on, operation)
        aval = result(operation)
        if up:
            value = on.emit("neg", [value], aval)
        quotient, rest = on.emit("div", [value, by], aval), on.emit("rem", [value, by], aval)
        below = on.emit("lt", [rest, _like(on, 0, value)], Array(aval.shape, _BOOL))
        found = on.emit("select_n", [below, quotient, on.emit("sub", [quotient, _like(on, 1, value)], aval)], aval)
        divisor = whole(by)
        if divisor is None or divisor <= 0:
            raise UnsupportedOp(problems.BY_NO_CONSTANT(operation.name))
        return [on.emit("neg", [found], aval) if up else found]

    return make


def _multiple(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    return [on.emit("multiple_of", [operand], operand.aval, values=(operation.number("multiple"),))]


def _refused(name: str) -> Make:
    """Something that the interpreter knows and does not model, by its name there."""
    return lambda on, operation: [on.emit(name, operands_of(on, operation), result(operation))]


def _programs(on: Writer, operation: MosaicOperation) -> Found:
    return [on.emit("num_programs", [], result(operation), axis=operation.number("dim"))]


_ELEMENTWISE = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.divsi": "div", "arith.remsi": "rem",
    "arith.maxsi": "max", "arith.minsi": "min", "arith.shli": "shift_left", "arith.shrsi": "shift_right_arithmetic",
    "arith.shrui": "shift_right_logical", "arith.addf": "add", "arith.subf": "sub", "arith.mulf": "mul",
    "arith.divf": "div", "arith.remf": "rem", "arith.negf": "neg", "arith.maximumf": "max", "arith.maxnumf": "max",
    "arith.minimumf": "min", "arith.minnumf": "min", "math.absi": "abs", "math.absf": "abs", "math.exp": "exp",
    "math.exp2": "exp2", "math.expm1": "expm1", "math.log": "log", "math.log1p": "log1p", "math.log2": "log2",
    "math.sqrt": "sqrt", "math.rsqrt": "rsqrt", "math.cbrt": "cbrt", "math.sin": "sin", "math.cos": "cos",
    "math.tan": "tan", "math.tanh": "tanh", "math.erf": "erf", "math.erfc": "erfc", "math.floor": "floor",
    "math.ceil": "ceil", "math.round": "round", "math.roundeven": "round", "math.powf": "pow", "math.fpowi": "pow",
    "math.atan2": "atan2", "math.atan": "atan", "math.asin": "asin", "math.acos": "acos", "math.sinh": "sinh",
    "math.cosh": "cosh", "math.ctpop": "population_count", "math.ctlz": "clz", "math.fma": "fma", "vector.fma": "fma",
    "tpu.reciprocal": "reciprocal", "tpu.logistic": "logistic", "tpu.weird": "is_finite",
}  # fmt: skip

OPERATIONS: Mapping[str, Make] = {
    **{name: simple(primitive) for name, primitive in _ELEMENTWISE.items()},
    "arith.divui": unsigned("div"),
    "arith.remui": unsigned("rem"),
    "arith.maxui": unsigned("max"),
    "arith.minui": unsigned("min"),
    **dict.fromkeys(
        (
            "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.truncf", "arith.extf", "tpu.sitofp",
            "tpu.uitofp", "tpu.fptosi", "tpu.fptoui", "tpu.truncf", "tpu.extf",
        ),
        _cast,
    ),
    "arith.index_cast": _index,
    "arith.constant": _constant,
    "arith.select": _select,
    "arith.cmpi": _compared,
    "arith.cmpf": _compared_floats,
    "arith.andi": _bits("and"),
    "arith.ori": _bits("or"),
    "arith.xori": _bits("xor"),
    "arith.extui": _widened(False),
    "arith.extsi": _widened(True),
    "arith.trunci": _narrowed,
    "arith.floordivsi": _floored(False),
    "arith.ceildivsi": _floored(True),
    **dict.fromkeys(("arith.bitcast", "tpu.bitcast", "vector.bitcast"), _same_words),
    **dict.fromkeys(("tpu.reduce_precision", "tpu.relayout", "tpu.mask_cast"), _same),
    "tpu.assume_multiple": _multiple,
    "tpu.iteration_bound": _programs,
    "tpu.device_id": _refused("device_id"),
    "tpu.prng_random_bits": _refused("prng_random_bits"),
    "tpu.stochastic_convert": _refused("stochastic_round"),
    "tpu.stochastic_convert_elementwise": _refused("stochastic_round"),
    "tpu.pack_elementwise": _refused("pack_elementwise"),
    "tpu.unpack_elementwise": _refused("unpack_elementwise"),
}  # fmt: skip
