"""Axe to a linear layout: extents that are powers of two and strides that never carry; outputs the hardware axes."""

from __future__ import annotations

from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.linear import LinearLayout
from layoutproof.questions.conversions.modes import bases_of


def convert(layout: AxeLayout) -> LinearLayout:
    """One basis per bit of an index: where it goes on each axis."""
    return LinearLayout(*bases_of(layout.index_map()))
