"""CuTe to Axe: every mode's digits slowest first, on the memory axis; a swizzle is a swizzle.

Axe has no element type, so what is proved is that offsets in elements are the same.
"""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.core.nested import leaves
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout
from layoutproof.layouts.axe.swizzle import Swizzle
from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.layouts.cute.nested import modes_of, size_of
from layoutproof.questions import problems


def convert(layout: CuteLayout) -> AxeLayout:
    """`((4,2),8):((1,32),4)` is `S[(2,4,8):(32,1,4)] on (8,8)`."""
    iters = []
    for shape, stride in zip(modes_of(layout.shape), modes_of(layout.stride), strict=True):
        digits = list(zip(leaves(shape), leaves(stride), strict=True))
        iters += [(extent, step, MEMORY) for extent, step in reversed(digits)]
    if any(type(step) is int and step == 0 and extent != 1 for extent, step, _ in iters):
        raise LayoutError(problems.TO_AXE_STRIDE_ZERO(layout))
    # a digit of extent 1 may have any stride; 1 is one that Axe allows
    kept = [(extent, 1 if step == 0 else step, axis) for extent, step, axis in iters]
    offset = {MEMORY: layout.offset} if layout.offset != 0 else {}
    swizzle = None
    if layout.swizzle is not None and layout.swizzle.bits:
        bits, base, shift = layout.swizzle
        swizzle = Swizzle(base, bits, abs(shift), outer=shift < 0)
    return AxeLayout(tuple(kept), (), offset, tuple([size_of(mode) for mode in modes_of(layout.shape)]), None, swizzle)
