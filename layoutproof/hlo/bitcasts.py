"""Whether an HLO bitcast keeps the bytes of every element, and what it stands for.

HLO's bitcast is defined by addresses: the result is the operand's bytes under another shape. Of as many elements it is
sound exactly when both are allotted the same bytes and the valid elements of both fill the same bytes: then each
element of the result is one element of the operand. Its meaning is looked for in this order: a row-major
reshape, a transpose, a reshape of whole dimensions with transposes that bring dimensions into their physical order,
and last any other reordering of the same slots, which no single reshape or transpose explains.
To fewer elements it is a slice that leaves the rest where it is, as padding; to more, a pad with the contents of the
padding, which are undefined. Either is sound when the smaller side's slots are all among the larger's; the rest of its
meaning is that of the same two layouts with their whole tiles filled.
Source: `ShapeVerifier::HandleBitcast` in `hlo_verifier.cc` compares nothing but sizes. Of 333 bitcasts in 106 programs
for v5e and v6e (libtpu 0.0.42.1) 22 slice or pad, e.g. `f32[12,16]` to `f32[12,9]` after an FFT and `f32[17,3072]` to
`f32[3,8,24,128]` in a cumulative sum; all others keep exactly the valid slots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from layoutproof.core import problems as core_problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, Verdict, plain
from layoutproof.core.space import Space
from layoutproof.hlo import problems
from layoutproof.hlo.shapes import ArrayShape, without_space
from layoutproof.layouts.xla import XlaLayout
from layoutproof.questions.ask import ask as ask_maps
from layoutproof.questions.cached import ask

REORDERING = "reordering"
"""The meaning of a sound bitcast that neither a reshape nor transposes of whole dimensions explain."""
_FEWER, _MORE = "slice", "pad"


@dataclass(frozen=True, slots=True)
class BitcastAnswer:
    """The answer for one pair of shapes. how: its meaning.

    element: the smallest one that does not fit; of a reordering, that would be elsewhere after a row-major reshape.
    """

    verdict: Verdict
    how: str
    reason: str = ""
    element: Point | None = None
    decided_by: str = ""

    @property
    def reorders(self) -> bool:
        """Whether neither a reshape nor transposes of whole dimensions explain it."""
        return self.how == REORDERING


def judge(source: ArrayShape, target: ArrayShape) -> BitcastAnswer:
    """Whether a bitcast between two arrays is sound. Memory spaces are not looked at.

    >>> from layoutproof.hlo.shapes import read_array
    >>> def ask_two(a, b):
    ...     found = judge(read_array(a), read_array(b))
    ...     return found.verdict.value, found.how or found.reason
    >>> ask_two("f32[4,8,128]{2,1,0:T(8,128)}", "f32[32,128]{1,0:T(8,128)}")
    ('proved', 'reshape')
    >>> ask_two("f32[8,256]{1,0:T(8,128)}", "f32[16,128]{1,0:T(8,128)}")
    ('proved', 'reordering')
    >>> ask_two("f32[8,100]{1,0:T(8,128)}", "f32[100,8]{1,0:T(8,128)}")[1]
    '4096 bytes are allotted before and 53248 after'
    >>> ask_two("f32[12,16]{1,0:T(8,128)}", "f32[12,9]{1,0:T(8,128)}")
    ('proved', 'slice')
    """
    if source.layout is None or target.layout is None:
        why = source.unknown or target.unknown or problems.NO_ELEMENTS(source.text, target.text)
        return BitcastAnswer(Verdict.UNKNOWN, "", why)
    if source.padded != target.padded:
        why = core_problems.ALLOTTED(source.padded, target.padded)
        return BitcastAnswer(Verdict.REFUTED, "", why, {"bytes": (source.padded, target.padded)}, "arithmetic")
    before, after = without_space(source.layout), without_space(target.layout)
    if before == after:
        return BitcastAnswer(Verdict.PROVED, "identity", decided_by="the same text")
    if not source.elements and not target.elements:
        return BitcastAnswer(Verdict.PROVED, "reshape", problems.NEITHER_HAS_AN_ELEMENT(), decided_by="arithmetic")
    try:
        return _judge(before, after, source.elements == target.elements)
    except LayoutError as error:
        return BitcastAnswer(Verdict.UNKNOWN, "", error.problem)


def _judge(before: XlaLayout, after: XlaLayout, alike: bool) -> BitcastAnswer:
    if before.element_type != after.element_type:
        return _other_type(before, after)
    if not alike:
        return _fewer_or_more(before, after)
    reshaped = ask("bitcast", str(before), str(after))
    if reshaped.verdict is Verdict.PROVED:
        return BitcastAnswer(Verdict.PROVED, "reshape", decided_by=reshaped.decided_by)
    permutation = _permutation(before, after)
    if permutation is not None:
        found = ask("bitcast", str(before), str(after), permutation=list(permutation))
        if found.verdict is Verdict.PROVED:
            return BitcastAnswer(Verdict.PROVED, f"transpose {permutation}", decided_by=found.decided_by)
    one, other = _in_physical_order(before), _in_physical_order(after)
    for first, second, how in (
        (one, other, "reshape between transposes"),
        (before, other, "reshape before a transpose"),
        (one, after, "reshape after a transpose"),
    ):
        if _whole(first.dims, second.dims):
            found = ask("bitcast", str(first), str(second))
            if found.verdict is Verdict.PROVED:
                return BitcastAnswer(Verdict.PROVED, how, decided_by=found.decided_by)
    return _same_slots(before, after, reshaped)


def _other_type(before: XlaLayout, after: XlaLayout) -> BitcastAnswer:
    """A bitcast to another type: as a reshape of pieces where it is one, else by the slots that both fill.

    libtpu 0.0.42.1 takes four rows of a packed mask at a time: `pred[512]{0:T(512)(128)(4,1)}` as `u32[1,1,128]`, whose
    byte k is row k and not, as HLO's own order of pieces has it, element k of the first four.
    """
    try:
        reshaped = ask("bitcast", str(before), str(after))
    except LayoutError as error:
        why = problems.COUNTS_DIFFER(error.problem)
        refuted = BitcastAnswer(Verdict.REFUTED, "", why, {"elements": _counts(before, after)}, "arithmetic")
    else:
        if reshaped.verdict is Verdict.PROVED:
            return BitcastAnswer(Verdict.PROVED, "reshape", decided_by=reshaped.decided_by)
        refuted = BitcastAnswer(reshaped.verdict, "", reshaped.reason, reshaped.counterexample, reshaped.decided_by)
    pair = [_pieces(one, other) for one, other in ((before, after), (after, before))]
    if refuted.verdict is not Verdict.REFUTED or None in pair:
        return refuted
    one, other = pair
    if _counts(one, one)[0] < _counts(other, other)[0]:  # type: ignore[arg-type]
        one, other = other, one
    found = ask_maps("refines", _places(other), _places(one))  # type: ignore[arg-type]
    if found.verdict is not Verdict.PROVED:
        return refuted
    return BitcastAnswer(Verdict.PROVED, REORDERING, refuted.reason, refuted.element, found.decided_by)


def _pieces(layout: XlaLayout, other: XlaLayout) -> XlaLayout | None:
    """The layout with each element as its pieces of the other's width, the lowest first; None where there are none."""
    (wide, narrow) = (each.index_map().memory for each in (layout, other))
    if wide is None or narrow is None or wide.bits <= narrow.bits:
        return layout
    if wide.bits % narrow.bits or narrow.bits % 8 or wide.bits != wide.natural_bits:
        return None
    many, rank = wide.bits // narrow.bits, len(layout.dims)
    return replace(
        layout,
        element_type=other.element_type,
        dims=(*layout.dims, many),
        minor_to_major=(rank, *layout.minor_to_major),
        tiles=tuple((*tile, many) for tile in layout.tiles),
        dynamic=(*layout.dynamic, ""),
    )


def _fewer_or_more(before: XlaLayout, after: XlaLayout) -> BitcastAnswer:
    """A bitcast between different numbers of elements of one width."""
    counts = _counts(before, after)
    fewer = counts[0] > counts[1]
    small, large = (after, before) if fewer else (before, after)
    found = ask_maps("refines", _places(small), _places(large))
    if found.verdict is not Verdict.PROVED:
        point = found.counterexample
        if found.verdict is Verdict.UNKNOWN or point is None:
            return BitcastAnswer(found.verdict, "", found.reason, point, found.decided_by)
        side, at = "result" if fewer else "operand", point["replica"]
        why = problems.COUNTS_IMPOSSIBLE(counts[0], counts[1], _in_padding(small, large, at, side))
        return BitcastAnswer(Verdict.REFUTED, "", why, {side: at}, found.decided_by)
    kind = _FEWER if fewer else _MORE
    filled = [_filled(layout) for layout in (before, after)]
    if None not in filled and len({_counts(f, f)[0] for f in filled if f}) == 1:
        one, other = filled
        inner = "identity" if one == other else _judge(one, other, alike=True).how  # type: ignore[arg-type]
        if inner and inner != REORDERING:
            more = abs(counts[0] - counts[1])
            why = problems.OPERAND_IN_PADDING(more) if fewer else problems.RESULT_IN_PADDING(more)
            how = kind if inner == "identity" else f"{kind} with {inner}"
            return BitcastAnswer(Verdict.PROVED, how, why, decided_by=found.decided_by)
    why = problems.MOVES_OTHERS(kind, max(counts), min(counts))
    return BitcastAnswer(Verdict.PROVED, REORDERING, why, decided_by=found.decided_by)


def _filled(layout: XlaLayout) -> XlaLayout | None:
    """The layout with every dimension up to whole tiles of the first level; None where a tile is not of dimensions."""
    if not layout.tiles:
        return layout
    tile, order = layout.tiles[0], layout.minor_to_major
    if len(tile) > len(order) or any(type(t) is not int for t in (*tile, *layout.dims)):
        return None
    dims = [int(d) for d in layout.dims]
    for d, t in zip(order, map(int, reversed(tile)), strict=False):
        if t < 1:
            return None
        dims[d] = -(-dims[d] // t) * t
    return replace(layout, dims=tuple(dims))


def _same_slots(before: XlaLayout, after: XlaLayout, reshaped: Finding) -> BitcastAnswer:
    """Whether the valid elements of both fill the same places, whichever element is where."""
    found = ask_maps("same_map", _places(before), _places(after))
    if found.verdict is Verdict.PROVED:
        return BitcastAnswer(Verdict.PROVED, REORDERING, reshaped.reason, reshaped.counterexample, found.decided_by)
    return BitcastAnswer(found.verdict, "", _slot_reason(found, before, after), _element(found), found.decided_by)


def _slot_reason(found: Finding, before: XlaLayout, after: XlaLayout) -> str:
    point = found.counterexample
    if found.verdict is not Verdict.REFUTED or point is None:
        return found.reason
    first = "first_replica" in point
    at = point["first_replica" if first else "second_replica"]
    own, other = (before, after) if first else (after, before)
    return _in_padding(own, other, at, "operand" if first else "result")


def _in_padding(own: XlaLayout, other: XlaLayout, at: Index, side: str) -> str:
    flat = own.index_map().flat()
    memory = flat.memory
    byte = "" if memory is None else f" at byte {memory.byte_and_bit(flat.at(at)[0])[0]}"
    return f"element {plain(at)} of the {side}{byte} is in the padding of {other}"


def _element(found: Finding) -> Point | None:
    point = found.counterexample
    if point is None:
        return None
    for name, shown in (("first_replica", "operand"), ("second_replica", "result")):
        if name in point:
            return {shown: point[name]}
    return point


def _places(layout: XlaLayout) -> IndexMap:
    """The set of a layout's places: one element with as many replicas as the layout has elements."""
    m = layout.index_map()
    place = m.place

    def copied(index: Index, copy: Index, on: Numbers) -> Index:
        return place(copy, (), on)

    return IndexMap(Space((), ()), m.range, copied, m.domain, m.memory)


def _permutation(before: XlaLayout, after: XlaLayout) -> tuple[int, ...] | None:
    """The transpose that keeps the physical order of dimensions (ShapeUtil::DeduceTransposeDimensionsForBitcast)."""
    if len(before.dims) != len(after.dims):
        return None
    permutation = [0] * len(before.dims)
    for source, target in zip(before.minor_to_major, after.minor_to_major, strict=True):
        permutation[target] = source
    same = all(after.dims[k] == before.dims[p] for k, p in enumerate(permutation))
    return tuple(permutation) if same else None


def _in_physical_order(layout: XlaLayout) -> XlaLayout:
    """The same bytes with the dimensions in their physical order, the most major first."""
    order = layout.minor_to_major[::-1]
    dims = tuple([layout.dims[d] for d in order])
    return replace(layout, dims=dims, minor_to_major=tuple(range(len(order) - 1, -1, -1)))


def _whole(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    """Whether a row-major reshape only splits and merges whole dimensions.

    >>> _whole((4, 512, 512), (4, 8, 64, 512)), _whole((8, 128), (128, 8))
    (True, False)
    """
    left, right = ([d for d in reversed(dims) if type(d) is int and d != 1] for dims in (before, after))
    while left and right:
        one, other = [left.pop()], [right.pop()]
        while prod(one) != prod(other):
            group, rest = (one, left) if prod(one) < prod(other) else (other, right)
            if not rest:
                return False
            group.append(rest.pop())
        if len(one) > 1 and len(other) > 1:
            return False
    return not left and not right


def _counts(before: XlaLayout, after: XlaLayout) -> tuple[int, int]:
    first, second = (int(layout.index_map().domain.count()) for layout in (before, after))
    return first, second
