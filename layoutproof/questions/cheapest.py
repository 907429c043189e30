"""The layout of one array that pads least on a target, and the shapes beside it that pad less or not at all.

Only the two most minor dimensions are padded by a TPU's tile, so the least over all pairs of them is the least over all
orders of dimensions; `tests/questions/test_cheapest.py` enumerates the orders. Tiles are those that the compiler takes
for a given order of dimensions (libtpu 0.0.42.1; see `hardware.tpu`): it honours an order it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import prod

from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu import layout_in_order
from layoutproof.hardware.tpu_tiles import round_up
from layoutproof.layouts import xla
from layoutproof.layouts.xla.shape import ELEMENT_BITS, XlaLayout
from layoutproof.questions import problems
from layoutproof.registry.defaults import tpu_default

MOST_MERGES = 10
"""Rank above which `cheapest_merge` tries the whole array as one dimension only: 2**9 merges are tried up to it."""


def padded_bytes(layout: XlaLayout) -> int:
    """Bytes allotted to an array of known sizes, all tiles included. LayoutError where a size or a tile has a name."""
    memory = layout.index_map().memory
    named = [size for size in (*layout.dims, *(n for tile in layout.tiles for n in tile)) if type(size) is not int]
    if memory is None or named:
        raise LayoutError(problems.SIZES_UNKNOWN(layout))
    return int(memory.bytes())


def cheapest_layout(shape: str | XlaLayout, target: str) -> XlaLayout:
    """The layout with the fewest padded bytes among all orders of dimensions, each with the tile the target gives it.

    shape: its layout is not looked at, except that memory space and buffer stay. On a tie the compiler's own default,
    if it is among the best, else the order nearest to row-major. Raises LayoutError as `tpu_default` does.

    >>> str(cheapest_layout("bf16[16,1280,40]", "v5e"))
    'bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}'
    >>> padded_bytes(cheapest_layout("bf16[16,1280,40]", "v5e"))
    1638400
    >>> padded_bytes(xla.read("bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}"))
    5242880
    """
    read = xla.read(shape) if isinstance(shape, str) else shape
    default = tpu_default(shape, target)
    if not isinstance(read, XlaLayout):
        raise LayoutError(problems.LAYOUT_OF_NO_ARRAY(read))
    default = replace(default, memory_space=read.memory_space)
    best, least = default, padded_bytes(default)
    for layout in orders(default, target):
        size = padded_bytes(layout)
        if size < least:
            best, least = layout, size
    return best


def orders(default: XlaLayout, target: str) -> Iterator[XlaLayout]:
    """One layout for each choice of the two most minor dimensions, with the tile for it; none below rank 2.

    default: the target's own choice for this array. The other dimensions are in row-major order; where they are does
    not change the bytes.
    """
    if len(default.dims) < 2 or 0 in default.dims:
        return
    down = range(len(default.dims) - 1, -1, -1)
    for minor, second in itertools.permutations(down, 2):
        rest = [d for d in down if d not in (minor, second)]
        yield with_order(default, (minor, second, *rest), target)


def with_order(layout: XlaLayout, minor_to_major: tuple[int, ...], target: str) -> XlaLayout:
    """The layout that the target gives an array of rank 2 or more when it is asked for this order of dimensions."""
    dims, bits = [int(n) for n in layout.dims], ELEMENT_BITS[layout.element_type]
    chosen = layout_in_order(dims, bits, target, minor_to_major)
    return replace(layout, minor_to_major=minor_to_major, tiles=chosen.tiles, element_bits=chosen.element_bits)


def full_shape(layout: XlaLayout) -> XlaLayout:
    """The smallest array that is at least as large in every dimension and wastes nothing in this layout.

    It takes the same bytes. Raises LayoutError where the tiles pad several dimensions together, as `*` does.

    >>> str(full_shape(xla.read("f32[1000,5]{1,0:T(8,128)}")))
    'f32[1000,128]{1,0:T(8,128)}'
    """
    return replace(layout, dims=tuple([round_up(int(n), t) for n, t in zip(layout.dims, _grain(layout), strict=True)]))


def smaller_shape(layout: XlaLayout) -> XlaLayout | None:
    """The largest array that is at most as large in every dimension and wastes nothing in this layout; None for none.

    >>> str(smaller_shape(xla.read("f32[1000,300]{1,0:T(8,128)}")))
    'f32[1000,256]{1,0:T(8,128)}'
    """
    dims = tuple([int(n) // t * t for n, t in zip(layout.dims, _grain(layout), strict=True)])
    return None if 0 in dims else replace(layout, dims=dims)


def cheapest_merge(shape: XlaLayout, target: str) -> XlaLayout | None:
    """The reshape that only merges neighbouring dimensions and takes the fewest bytes in its cheapest layout.

    None where no merge takes fewer bytes than the array itself. Above rank `MOST_MERGES` only the whole merge is tried.

    >>> str(cheapest_merge(xla.read("f32[64,2,3]"), "v5e"))
    'f32[128,3]{0,1:T(4,128)}'
    """
    dims = [int(n) for n in shape.dims]
    if len(dims) < 2 or 0 in dims:
        return None
    best, least = None, padded_bytes(cheapest_layout(shape, target))
    cuts = (
        itertools.product((False, True), repeat=len(dims) - 1)
        if len(dims) <= MOST_MERGES
        else [(False,) * (len(dims) - 1)]
    )
    for cut in sorted(cuts, key=lambda c: -sum(c)):
        merged = [dims[0]]
        for apart, extent in zip(cut, dims[1:], strict=True):
            if apart:
                merged.append(extent)
            else:
                merged[-1] *= extent
        if len(merged) == len(dims):
            continue
        plain = XlaLayout(shape.element_type, tuple(merged), ("",) * len(merged), tuple(range(len(merged) - 1, -1, -1)))
        layout = cheapest_layout(plain, target)
        if padded_bytes(layout) < least:
            best, least = layout, padded_bytes(layout)
    return best


def _grain(layout: XlaLayout) -> list[int]:
    """The number that divides each dimension where the first tile is full."""
    grain = [1] * len(layout.dims)
    if not layout.tiles:
        return grain
    tile = [int(size) for size in layout.tiles[0]]
    if len(tile) > len(layout.dims) or min(tile) < 1:
        raise LayoutError(problems.TILE_OF_SEVERAL_DIMENSIONS(layout))
    for dimension, size in zip(layout.minor_to_major, reversed(tile), strict=False):
        grain[dimension] = size
    if prod(grain) != prod(tile):
        raise LayoutError(problems.TILE_OF_SEVERAL_DIMENSIONS(layout))
    return grain
