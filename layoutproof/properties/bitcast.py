"""A reshape, transpose or type change between two layouts moves no byte.

Holds exactly when every element keeps its address and both sides are allotted the same bytes. The second layout's
shape is a row-major reshape of the first's; with `permutation` it is its transpose (dimension k of the result is
dimension permutation[k] of the operand). When the element widths differ, a wide element is its narrow pieces in order,
as XLA's bitcast-convert has it.
Why it matters: a reshape or transpose that is no bitcast is a copy of the whole array.
Refuted by: the smallest `element` (of the first layout) that moves; or `bytes`, both allotments, when none does.
Source: 627 of 627 reshapes and transposes between layouts chosen by the TPU compiler are a bitcast under exactly this
condition (libtpu 0.0.42.1). The compiler itself never emits bitcast_convert_type as a bitcast, and treats
non-canonical second-level tiles as undefined. XLA's own ShapeUtil::ReshapeIsBitcast ignores tiles.
Example: `f32[4,8,128]{2,1,0:T(8,128)}` to `f32[32,128]{1,0:T(8,128)}` is free, from `f32[4,4,128]` it is not.
Fix: merge dimensions only where the inner one comes in whole tiles; for symbolic sizes `holds_when` says when.
Incident: XLA replaced copy, bitcast, copy by a bitcast where a dimension has one element, and computed wrong numbers:
https://github.com/openxla/xla/pull/18441
Refuted:
    layoutproof ask bitcast "f32[4,4,128]{2,1,0:T(8,128)}" "f32[16,128]{1,0:T(8,128)}"
Proved:
    layoutproof ask bitcast "f32[4,8,128]{2,1,0:T(8,128)}" "f32[32,128]{1,0:T(8,128)}"
Limits: A proof that no byte has to move, none that the compiler moves none.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from layoutproof.core import problems
from layoutproof.core.claim import At, Claim, Differ, SizeCondition
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.reshape import after, common_unit, comparable, reshape, transposed
from layoutproof.core.result import Point, plain
from layoutproof.core.space import Space
from layoutproof.core.term import Term, size_term

LAYOUTS = 2

MOVES = Template("properties.bitcast_moves", "{element} becomes {target} and moves from {old} to {new}")
NO_MEMORY = Template("properties.bitcast_no_memory", "bitcast is about bytes; a map without a memory has none")
NO_SPLIT = Template(
    "properties.bitcast_no_split", "elements of {bits} bits do not split into elements of {narrow} bits"
)
PERMUTATION_FORM = Template(
    "properties.bitcast_permutation_form", "permutation is a list of dimension numbers such as [1, 0], not {found}"
)
SHAPE = Template(
    "properties.bitcast_shape", "the transpose of [{before}] by {permutation} has shape [{transposed}], not [{result}]"
)
WIDTH_CHANGES = Template("properties.bitcast_width_changes", "a transpose does not change the element width")


def claims(before: IndexMap, result: IndexMap, permutation: Sequence[int] | None = None) -> tuple[Claim, ...]:
    """Two claims: no element moves; the allotted bytes are equal.

    Args:
        before: The map of the operand.
        result: The map of the result.
        permutation: Dimension k of the result is dimension permutation[k] of the operand; None for a reshape.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: A map has no memory, or the permutation does not fit.
    """
    if before.memory is None or result.memory is None:
        raise LayoutError(NO_MEMORY())
    narrow_before, narrow_result = _pieces(before, result), _pieces(result, before)
    domain = narrow_before.domain
    if permutation is not None:
        permutation = _listed(permutation)
        if narrow_before is not before or narrow_result is not result:
            raise LayoutError(WIDTH_CHANGES())
        extents = tuple(before.domain.extents[p] for p in permutation if 0 <= p < len(domain.extents))
        reindex = transposed(before, permutation)
        if extents != result.domain.extents:
            raise LayoutError(SHAPE(_show(before), tuple(permutation), ", ".join(map(str, extents)), _show(result)))
    else:
        reindex = reshape(domain.extents, narrow_result.domain.extents)
    moved = after(reindex, narrow_result, domain)
    one, other = comparable(narrow_before, moved, common_unit(before, result))

    def explain(at: Point, on: Numbers) -> str:
        target = reindex(at["element"], on)
        places = [_bit(m, index, on) for m, index in ((narrow_before, at["element"]), (narrow_result, target))]
        return MOVES(at["element"], target, places[0], places[1])

    allotted = [m.memory.bytes() for m in (before, result) if m.memory]

    def explain_bytes(at: Point, on: Numbers) -> str:
        first, second = (on.size(b) for b in allotted)
        return problems.ALLOTTED(first, second)

    grown = SizeCondition(Term("!=", size_term(allotted[0]), size_term(allotted[1])))
    numbers = {"bytes": tuple(b for b in allotted if isinstance(b, int))}
    return (
        Claim({"element": domain}, Differ(At(one, "element"), At(other, "element")), explain),
        Claim({}, grown, explain_bytes, witness=numbers if len(numbers["bytes"]) == 2 else {}),
    )


def figures(before: IndexMap, result: IndexMap, permutation: Sequence[int] | None = None) -> dict[str, object]:
    """bytes_before, bytes_after: the bytes allotted to each side.

    Args:
        before: The map of the operand.
        result: The map of the result.
        permutation: Dimension k of the result is dimension permutation[k] of the operand; None for a reshape.

    Returns:
        Bytes of both sides.
    """
    sides = zip(("bytes_before", "bytes_after"), (before, result), strict=True)
    return {name: plain(m.memory.bytes()) for name, m in sides if m.memory}


def _listed(permutation: object) -> tuple[int, ...]:
    try:
        # also NumPy's integers, as numpy.argsort gives them
        return tuple([operator.index(p) for p in permutation])  # type: ignore[attr-defined]
    except TypeError:
        shown = shorten(repr(permutation), 60)
        raise LayoutError(PERMUTATION_FORM(shown)) from None


def _pieces(m: IndexMap, other: IndexMap) -> IndexMap:
    """The map of the narrow pieces of its elements, when the other side's elements are narrower."""
    memory, narrow = m.memory, other.memory
    if memory is None or narrow is None or memory.bits <= narrow.bits:
        return m
    # one type stored at two widths: the elements are the same ones, not pieces of each other
    if memory.natural_bits == narrow.natural_bits and m.domain.count() == other.domain.count():
        return m
    count, over = divmod(memory.bits, narrow.bits)
    if over:
        raise LayoutError(NO_SPLIT(memory.bits, narrow.bits))
    place = m.place

    def split(index: Index, replica: Index, on: Numbers) -> Index:
        return (*place(index[:-1], replica, on), index[-1])

    return IndexMap(
        Space((*m.domain.names, "piece"), (*m.domain.extents, count)),
        Space((*m.range.names, "piece"), (*m.range.extents, count)),
        split,
        m.replicas,
        Memory(narrow.bits, narrow.bits, memory.allotted * count, memory.space, memory.prefix_bytes),
        m.sizes(),
    )


def _bit(m: IndexMap, index: Index, on: Numbers) -> str:
    memory = m.memory
    if memory is None:
        return str(m.place(index, (), on))
    byte, bit = memory.byte_and_bit(m.flat().place(index, (), on)[0])
    where = f"byte {byte} bit {bit}" if bit else f"byte {byte}"
    return where + (f" of memory space {memory.space}" if memory.space else "")


def _show(m: IndexMap) -> str:
    return ", ".join(map(str, m.domain.extents))
