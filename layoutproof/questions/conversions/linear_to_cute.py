"""A linear layout of one output to CuTe: each input a mode, each bit a digit of 2 whose stride is its basis.

CuTe adds where linear layouts xor, so this holds only where no two bases share a bit.
"""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.layouts.linear import LinearLayout
from layoutproof.questions import problems
from layoutproof.questions.conversions.modes import strided_digits
from layoutproof.questions.conversions.xla_to_cute import from_digits


def convert(layout: LinearLayout) -> CuteLayout:
    """`x=1 -> (4); x=2 -> (1); x=4 -> (2)` is `((2,4)):((4,1))`."""
    if len(layout.outputs) != 1:
        names = ", ".join(name for name, _ in layout.outputs)
        raise LayoutError(problems.TO_CUTE_OUTPUTS(names))
    shape = tuple([(2,) * len(bases) or (1,) for _, bases in layout.inputs])
    stride = tuple([tuple(base for (base,) in bases) or (0,) for _, bases in layout.inputs])
    return from_digits(*strided_digits(CuteLayout(shape, stride).index_map()), "")
