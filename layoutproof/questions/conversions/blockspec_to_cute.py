"""A BlockSpec as CuTe: a mode per grid index, then one per offset in the block; places are offsets in the array.

The array is row-major, and no block reaches past it: an offset would then be another row's.
"""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Verdict
from layoutproof.core.space import Space, distinct
from layoutproof.layouts.blockspec import BlockSpecLayout
from layoutproof.layouts.cute.layout import CuteLayout, element_bits
from layoutproof.questions import problems
from layoutproof.questions.ask import ask
from layoutproof.questions.conversions.modes import strided_digits
from layoutproof.questions.conversions.xla_to_cute import from_digits


def convert(layout: BlockSpecLayout) -> CuteLayout:
    """`f32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2)` is `f32 (4,2,2,3):(12,3,6,1)`."""
    return from_digits(*strided_digits(source(layout)), layout.operand.dtype)


def source(layout: BlockSpecLayout) -> IndexMap:
    """Program and offset in its block -> the element's offset in the row-major array."""
    m = layout.index_map()
    inside = ask("in_bounds", layout)
    if inside.verdict is not Verdict.PROVED:
        raise LayoutError(problems.TO_CUTE_PAST_ARRAY(inside.reason))
    rank = len(m.domain.extents)

    def place(index: Index, replica: Index, on: Numbers) -> Index:
        return m.place(index[:rank], index[rank:], on)

    names = distinct((*m.domain.names, *m.replicas.names), m.sizes())
    bits = element_bits(layout.operand.dtype)
    memory = Memory(bits, bits, m.range.count())
    domain = Space(names, (*m.domain.extents, *m.replicas.extents))
    return IndexMap(domain, m.range, place, memory=memory, symbols=m.sizes()).flat()
