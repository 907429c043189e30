"""Elements that share words: bitcasts, numbers packed into words and taken out again.

Rows are packed along the dimension before the last: of two bf16 rows, the words of row i hold rows 2 i and 2 i + 1. A
word of which all parts are undefined is undefined; if only some are, the parts that are used are unknown here.
Source: `_bitcast_lowering_rule` and `pack_elementwise` in jax/_src/pallas/mosaic/primitives.py, jax 0.10.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp, wrapped
from layoutproof.bodies.passes import Pass, Rule
from layoutproof.bodies.row_major import plus, quotient, times
from layoutproof.bodies.shapes import shape_of
from layoutproof.bodies.values import Index, Lost, Value, aligned, maybe
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.folding import FALSE, all_of, any_of
from layoutproof.core.term import Term
from layoutproof.ir.program import Dtype, Equation

PARTLY = problems.PACKED_PART()


def part_of_word(on: Pass, index: Index, conditions: Sequence[Term]) -> Term:
    """The condition that the word at an index is undefined, from those of its parts."""
    if all(condition is conditions[0] for condition in conditions):
        return conditions[0]
    whole, some = all_of(on.apart(index, conditions)), any_of(conditions)
    return whole if some is FALSE else any_of([whole, all_of([some, maybe(PARTLY)])])


def _bits(on: Pass, dtype: Dtype) -> int:
    bits = ELEMENT_BITS.get(element_type(dtype))
    if bits is None:
        raise UnsupportedOp(problems.ELEMENT_WIDTH(dtype))
    return bits


def _bitcast(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """Of rows (`pltpu.bitcast`): the dimension before the last grows or shrinks."""
    operand: Value = operands[0]
    variable = equation.outvars[0]
    dims, new = shape_of(equation), variable.aval.dtype
    old_bits, new_bits = _bits(on, operand.dtype), _bits(on, new)
    if old_bits == new_bits:
        return [_same_width(operand, new)]

    def undefined(index: Index) -> Term:
        row = index[-2]
        if new_bits < old_bits:
            return operand.undefined((*index[:-2], quotient("//", row, old_bits // new_bits), index[-1]))
        count = new_bits // old_bits
        places = [(*index[:-2], plus(times(row, count), k), index[-1]) for k in range(count)]
        return part_of_word(on, index, [operand.undefined(place) for place in places])

    return [Value(dims, new, problems.BITCAST_NUMBER(), None if operand.defined else undefined)]


def _same_width(operand: Value, new: Dtype) -> Value:
    def number(index: Index) -> Term:
        if getattr(new, "kind", "") not in "iu" or operand.dtype.kind not in "iu":
            raise Lost(problems.BITCAST_NUMBER())
        return wrapped(operand.number(index), 8 * int(new.itemsize), new.kind == "i")

    return Value(operand.dims, new, number, None if operand.defined else operand.undefined)


def _bitcast_convert(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """Of elements (`lax.bitcast_convert_type`): another last dimension comes or goes."""
    operand: Value = operands[0]
    dims, new = shape_of(equation), equation.outvars[0].aval.dtype
    if len(dims) == len(operand.dims):
        return [_same_width(operand, new)]

    def undefined(index: Index) -> Term:
        if len(dims) > len(operand.dims):
            return operand.undefined(index[:-1])
        parts = [operand.undefined((*index, Term("int", k))) for k in range(operand.dims[-1])]
        return part_of_word(on, index, parts)

    return [Value(dims, new, problems.BITCAST_NUMBER(), None if operand.defined else undefined)]


def _packed(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    dims = shape_of(equation)

    def undefined(index: Index) -> Term:
        return part_of_word(on, index, [o.undefined(aligned(o, dims, index)) for o in operands])

    defined = all(o.defined for o in operands)
    dtype = equation.outvars[0].aval.dtype
    return [Value(dims, dtype, "packed numbers", None if defined else undefined, parts=operands)]


def _unpacked(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """One part of each word: the packed value, where the words were packed here into as many parts."""
    operand: Value = operands[0]
    dtype = equation.outvars[0].aval.dtype
    index, packed = int(equation.params["index"]), equation.params["packed_dtype"]
    packed = getattr(packed, "dtype", packed)
    if operand.parts and len(operand.parts) * _bits(on, packed) == _bits(on, operand.dtype):
        part = operand.parts[index]

        def undefined(at: Index) -> Term:
            return part.undefined(aligned(part, operand.dims, at))

        return [Value(operand.dims, dtype, problems.OUT_OF_WORDS(), None if part.defined else undefined)]
    return [Value(operand.dims, dtype, problems.OUT_OF_WORDS(), None if operand.defined else operand.undefined)]


PRIMITIVES: dict[str, Rule] = {
    "bitcast": _bitcast,
    "bitcast_convert_type": _bitcast_convert,
    "pack_elementwise": _packed,
    "unpack_elementwise": _unpacked,
}
