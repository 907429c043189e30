"""XLA to a linear layout: extents and tiles that are powers of two; inputs the dimensions, output the offset."""

from __future__ import annotations

from layoutproof.layouts.linear import LinearLayout
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions.conversions.modes import bases_of
from layoutproof.questions.conversions.xla_to_cute import plain_memory


def convert(layout: XlaLayout) -> LinearLayout:
    """One basis per bit of an index: its offset in elements."""
    m = layout.index_map()
    plain_memory(m, "a linear layout")
    return LinearLayout(*bases_of(m.flat()))
