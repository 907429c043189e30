"""A BlockSpec as shape and strides: a dimension per grid index, then one per offset in the block, as in CuTe."""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.layouts.blockspec import BlockSpecLayout
from layoutproof.layouts.strided import StridedLayout
from layoutproof.questions import problems
from layoutproof.questions.conversions.blockspec_to_cute import source as source
from layoutproof.questions.conversions.modes import strided_digits


def convert(layout: BlockSpecLayout) -> StridedLayout:
    """`f32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2)` is `f32[4,2,2,3] strides (12,3,6,1) in 48`."""
    m = source(layout)
    modes, start = strided_digits(m)
    for name, mode in zip(m.domain.names, modes, strict=True):
        if len(mode) > 1:
            raise LayoutError(problems.TO_STRIDED_STRIDES(name, len(mode)))
    strides = tuple(mode[0][1] for mode in modes)
    return StridedLayout(
        layout.operand.dtype, m.domain.extents, strides, None if start == 0 else start, m.range.count()
    )
