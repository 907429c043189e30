"""Shape and strides to CuTe: the same strides, each dimension a mode."""

from __future__ import annotations

from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.layouts.strided import StridedLayout
from layoutproof.questions.conversions.modes import strided_digits
from layoutproof.questions.conversions.xla_to_cute import from_digits, typed


def convert(layout: StridedLayout) -> CuteLayout:
    """`f32[3,5] strides (5,1)` is `f32 (3,5):(5,1)`."""
    m = layout.index_map()
    return from_digits(*strided_digits(m), typed(m, layout.element_type))
