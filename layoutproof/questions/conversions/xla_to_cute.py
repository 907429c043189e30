"""XLA to CuTe: each dimension a mode, its tile digits the sub-modes, innermost first.

CuTe cannot say padding within a dimension, memory spaces, or an element stored wider than its type.
"""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import Extent
from layoutproof.layouts.cute.layout import CuteLayout, Swizzle, element_bits
from layoutproof.layouts.cute.nested import Nested
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions import problems
from layoutproof.questions.conversions.modes import Modes, strided_digits


def convert(layout: XlaLayout) -> CuteLayout:
    """`bf16[16,256]{1,0:T(8,128)(2,1)}` is `bf16 ((2,4,2),(128,2)):((1,256,2048),(2,1024))`."""
    m = layout.index_map()
    plain_memory(m, "CuTe")
    return from_digits(*strided_digits(m), typed(m, layout.element_type))


def plain_memory(m: IndexMap, language: str) -> None:
    """LayoutError for what only XLA says of a memory."""
    memory = m.memory
    if memory is not None and (memory.space or memory.prefix_bytes):
        what = f"the memory space S({memory.space})" if memory.space else f"the prefix M({memory.prefix_bytes})"
        raise LayoutError(problems.LANGUAGE_LACKS(language, what))


def typed(m: IndexMap, element_type: str) -> str:
    """The element type, if CuTe stores it in as many bits."""
    if m.memory is not None and element_bits(element_type) != m.memory.bits:
        raise LayoutError(problems.TO_CUTE_ELEMENT_BITS(element_type, m.memory.bits, element_bits(element_type)))
    return element_type


def from_digits(dimensions: list[Modes], start: Extent, element_type: str) -> CuteLayout:
    """One mode per dimension, of one integer where it is one digit."""
    shape = tuple([_nested([extent for extent, _ in digits]) for digits in dimensions])
    stride = tuple([_nested([step for _, step in digits]) for digits in dimensions])
    # CuTe has an offset only beside a swizzle; this one swizzles nothing
    return CuteLayout(shape, stride, None if start == 0 else Swizzle(0, 0, 0), start, element_type)


def _nested(entries: list[Extent]) -> Nested:
    return entries[0] if len(entries) == 1 else tuple(entries)
