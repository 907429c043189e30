"""Axe to CuTe: the digits of each dimension fastest first. CuTe has one axis, one place per element, no `within`."""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.cute.layout import CuteLayout, Swizzle
from layoutproof.questions import problems
from layoutproof.questions.conversions.modes import strided_digits
from layoutproof.questions.conversions.xla_to_cute import from_digits


def convert(layout: AxeLayout) -> CuteLayout:
    """`S[(2,4,8):(32,1,4)] on (8,8)` is `((4,2),8):((1,32),4)`."""
    if layout.R:
        raise LayoutError(problems.TO_CUTE_REPLICAS(layout))
    if len(layout.axes()) != 1:
        raise LayoutError(problems.TO_CUTE_AXES(layout, ", ".join(layout.axes())))
    tile = AxeLayout(layout.D, (), layout.O, layout.shape)
    found = from_digits(*strided_digits(tile.index_map()), "")
    if layout.swizzle is None:
        return found
    shift = layout.swizzle.atom_len
    swizzle = Swizzle(layout.swizzle.swizzle_len, layout.swizzle.per_element, -shift if layout.swizzle.outer else shift)
    return CuteLayout(found.shape, found.stride, swizzle, found.offset)
