"""How many bytes an array takes: the definition, and the three functions of XLA that disagree with it.

They are here by name so that a user can see why a tool told them another number. All results are bytes, as ints, or
as closed forms when sizes are symbolic. Source: xla/shape_util.cc at 183fa00cb5 (2026-08-22), lines given below.
"""

from __future__ import annotations

import itertools
from typing import Any

from layoutproof.core.index_map import row_major
from layoutproof.core.numbers import SizeNumbers
from layoutproof.core.size import Extent, ceil_div, product
from layoutproof.layouts.xla.shape import COMBINE, ELEMENT_BITS, XlaLayout, physical_order
from layoutproof.layouts.xla.tiling import tilings

WHAT = {
    "definition": "all levels of tiles",
    "ShapeUtil::ByteSizeOf": "elements times width, no padding",
    "ShapeUtil::ArraySize": "what PJRT and the TPU compiler allot: this one counts",
    "ShapeUtil::ArrayDataSize": "up to the last element",
}
"""The meaning of each of them. The third was the compiler's own figure for 14,150 of 14,150 arrays (libtpu
0.0.42.1)."""


def sizes(layout: XlaLayout) -> dict[str, Extent]:
    """Every answer to "how many bytes?", by the name of who gives it.

    >>> from layoutproof.layouts.xla.text import parse
    >>> sizes(parse("bf16[5,128]{1,0:T(1,128)(2,1)}"))  # doctest: +NORMALIZE_WHITESPACE
    {'definition': 2560, 'ShapeUtil::ByteSizeOf': 1280, 'ShapeUtil::ArraySize': 1280,
     'ShapeUtil::ArrayDataSize': 1280}
    """
    return {
        "definition": allotted_bytes(layout),
        "ShapeUtil::ByteSizeOf": byte_size_of(layout),
        "ShapeUtil::ArraySize": array_size(layout),
        "ShapeUtil::ArrayDataSize": array_data_size(layout),
    }


def allotted_bytes(layout: XlaLayout) -> Extent:
    """Bytes by the definition: all tile levels, then L, then E; M's prefix included."""
    memory = layout.index_map().memory
    assert memory is not None  # an XLA layout always has one
    return memory.bytes()


def byte_size_of(layout: XlaLayout) -> Extent:
    """`ShapeUtil::ByteSizeOf` (shape_util.cc:1032): elements times width; knows E, no tiles, no L."""
    return _bytes(product(layout.dims), _width(layout))


def array_size(layout: XlaLayout) -> Extent:
    """`ShapeUtil::ArraySize` (:2328), what PJRT and the TPU compiler allot: first tile level only, L only if tiled.

    A `*` in the first tile makes it 0, as in XLA, where the star is INT64_MIN and rounds every extent to 0.
    """
    extents: list[Extent] = [_largest_piece(layout, axis) for axis in range(len(layout.dims))]
    if not layout.tiles:
        return _bytes(product(extents), _width(layout))
    tile = layout.tiles[0]
    extents = [*[1] * (len(tile) - len(extents)), *extents]
    untouched = len(extents) - len(tile)
    for axis, size in enumerate(tile, untouched):
        extents[axis] = 0 if size == COMBINE else ceil_div(extents[axis], size) * size
    elements = product(extents)
    return _bytes(ceil_div(elements, layout.tail_alignment) * layout.tail_alignment, _width(layout))


def array_data_size(layout: XlaLayout) -> Extent:
    """`ShapeUtil::ArrayDataSize` (:2369): linear index of the last element plus one; first tile only, none in 1-D."""
    if 0 in layout.dims:
        return 0
    order = physical_order(layout)
    extents: tuple[Extent, ...] = tuple(layout.dims[d] for d in order)
    last: list[Any] = [extent - 1 for extent in extents]
    if layout.tiles and len(layout.dims) != 1:
        levels = tilings(len(order), layout.tiles[:1])
        every = levels.extents(extents)
        found = levels.numbers(last, every, SizeNumbers())
        last, extents = [found[k] for k in levels.after[-1]], tuple([every[k] for k in levels.after[-1]])
    return _bytes(row_major(tuple(last), extents, SizeNumbers()) + 1, _width(layout))


def _width(layout: XlaLayout) -> int:
    return layout.element_bits or max(8, ELEMENT_BITS[layout.element_type])


def _bytes(elements: Extent, bits: int) -> Extent:
    size: Extent = ceil_div(elements * bits, 8)
    return size


def _largest_piece(layout: XlaLayout, axis: int) -> Extent:
    """Extent of one physical axis, or of its largest piece where SC(..) splits it (`MaxSplitSize`, :824)."""
    extent = layout.dims[physical_order(layout)[axis]]
    for split_axis, cuts in layout.splits:
        if split_axis == axis and type(extent) is int:
            edges = (0, *cuts, extent)
            return max(right - left for left, right in itertools.pairwise(edges))
    return extent
