"""Smaller forms of one array: the layout or the shape with fewer padded bytes."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.core.errors import LayoutError
from layoutproof.layouts.xla import XlaLayout
from layoutproof.questions.cheapest import cheapest_layout, cheapest_merge, full_shape, padded_bytes, smaller_shape

DEFAULT_TARGET = "v5e"
"""Tiles of a dump do not name their chip; those of v4, v5e, v5p, v6e and 7x follow one rule."""


@dataclass(frozen=True, slots=True)
class SmallerForms:
    """Ways to waste less, each as text with its bytes; "" for none.

    layout: another order of dimensions of the same array, the least over all orders.
    merged: a reshape that merges neighbouring dimensions, where it takes fewer bytes than the best order.
    full: the larger array that wastes nothing in the better of the two layouts at the same bytes.
    smaller: the largest array within this one that wastes nothing in that layout.
    """

    layout: str = ""
    layout_bytes: int = 0
    merged: str = ""
    merged_bytes: int = 0
    full: str = ""
    smaller: str = ""
    smaller_bytes: int = 0

    def __str__(self) -> str:
        ways = []
        if self.layout:
            ways.append(f"layout {self.layout}: {self.layout_bytes} bytes")
        if self.merged:
            ways.append(f"reshaped {self.merged}: {self.merged_bytes} bytes")
        if self.full:
            ways.append(f"{self.full} holds more in the same bytes")
        if self.smaller:
            ways.append(f"{self.smaller} wastes nothing: {self.smaller_bytes} bytes")
        return "; ".join(ways) or "no order of dimensions takes fewer bytes"


def fix(layout: XlaLayout, target: str = DEFAULT_TARGET) -> SmallerForms | None:
    """The smaller forms; None where nothing is known of this array: not tiled, or a width without tiles.

    >>> from layoutproof.layouts import xla
    >>> found = fix(xla.read("bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}"))
    >>> found.layout, found.layout_bytes
    ('bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}', 1638400)
    """
    if not layout.tiles:
        return None
    own = padded_bytes(layout)
    try:
        best = cheapest_layout(layout, target)
        merged = cheapest_merge(layout, target)
        better = best if padded_bytes(best) < own else layout
        full, smaller = full_shape(better), smaller_shape(better)
    except LayoutError:
        return None
    least = min(own, padded_bytes(best))
    if merged is not None and padded_bytes(merged) >= least:
        merged = None
    return SmallerForms(
        str(best) if best is better else "",
        padded_bytes(best),
        "" if merged is None else str(merged),
        0 if merged is None else padded_bytes(merged),
        str(full) if full != better and padded_bytes(full) == padded_bytes(better) else "",
        "" if smaller is None or smaller == better else str(smaller),
        0 if smaller is None else padded_bytes(smaller),
    )
