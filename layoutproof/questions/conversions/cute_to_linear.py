"""CuTe to a linear layout: extents that are powers of two and strides that never carry; a swizzle is no obstacle."""

from __future__ import annotations

from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.layouts.linear import LinearLayout
from layoutproof.questions.conversions.modes import bases_of


def convert(layout: CuteLayout) -> LinearLayout:
    """One basis per bit of an index: its offset."""
    return LinearLayout(*bases_of(layout.index_map()))
