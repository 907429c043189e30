"""The nearest larger shape that wastes nothing: how far to grow an array so that no byte of it is padding.

With a layout the tiles are given, and each dimension grows to a multiple of its tile: no smaller shape will do, and
this one is least in every dimension at once. Without one the compiler chooses order and tile for the grown shape too.
It wastes nothing exactly if for some two dimensions the one fills lanes and the other whole tiles of the rows it then
gets; the two conditions are about one extent each, so the least extent of each is the least shape for that pair.
`tests/searching/test_padded_shapes.py` enumerates all shapes between.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import prod

from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.hardware.tpu import tile_rows
from layoutproof.hardware.tpu_tiles import LANES, round_up
from layoutproof.layouts.xla.shape import ELEMENT_BITS, XlaLayout
from layoutproof.questions.cheapest import full_shape, padded_bytes
from layoutproof.registry.defaults import tpu_default
from layoutproof.searching import problems


@dataclass(frozen=True, slots=True)
class PaddingAnswer:
    """full: the grown array in its layout, None where no size helps.  bytes, wasted: of the array as it is.

    growth: elements that it has more.  covered: pairs of dimensions (or the one layout) that were looked at, all there
    are.  reason: why there is none.
    """

    now: XlaLayout
    bytes: int
    wasted: int
    full: XlaLayout | None
    growth: int
    covered: int
    reason: str = ""


def nearest_full(shape: XlaLayout, target: str, given: bool = False) -> PaddingAnswer:
    """The shape with the fewest elements, at least as large in every dimension, that wastes nothing.

    given: the layout of `shape` is kept; otherwise the target chooses one for every shape. Of equal ones that which
    changes fewer dimensions. Raises LayoutError as `tpu_default` and `full_shape` do, Undecided for layouts that pad by
    more than their first tile.

    >>> from layoutproof.layouts import xla
    >>> found = nearest_full(xla.read("f32[1000,5]"), "v5e")
    >>> str(found.full), found.wasted, found.growth
    ('f32[1024,8]{0,1:T(8,128)}', 12768, 3192)
    """
    now = shape if given else replace(tpu_default(shape, target), memory_space=shape.memory_space)
    size = padded_bytes(now)
    waste = wasted(now)
    if waste == 0:
        return PaddingAnswer(now, size, 0, now, 0, 1)
    if not now.dims:
        reason = problems.ONE_ELEMENT(size)
        return PaddingAnswer(now, size, waste, None, 0, 1, reason)
    full, covered = (_in_layout(now), 1) if given else _free(now, target)
    growth = prod(map(int, full.dims)) - prod(map(int, now.dims))
    return PaddingAnswer(now, size, waste, full, growth, covered)


def wasted(layout: XlaLayout) -> int:
    """Bytes that hold no element, at the width at which elements are stored; a part of a byte counts as one.

    >>> from layoutproof.layouts import xla
    >>> wasted(xla.read("u1[4095]{0:T(4096)E(1)}")), wasted(xla.read("u1[4096]{0:T(4096)E(1)}"))
    (1, 0)
    """
    bits = layout.element_bits or max(8, ELEMENT_BITS[layout.element_type])
    return -(-(padded_bytes(layout) * 8 - prod(map(int, layout.dims)) * bits) // 8)


def _in_layout(layout: XlaLayout) -> XlaLayout:
    full = full_shape(layout)
    if wasted(full):
        raise Unsupported(problems.NO_PADDING_RULE(layout))
    return full


def _free(now: XlaLayout, target: str) -> tuple[XlaLayout, int]:
    """(the least shape that wastes nothing in the layout the target then gives it, pairs of dimensions)."""
    dims = tuple(map(int, now.dims))
    shapes = [_line(now, target)] if len(dims) == 1 else []
    for minor, second in itertools.permutations(range(len(dims)), 2):
        grown = list(dims)
        grown[minor] = round_up(dims[minor], LANES)
        grown[second] = _rows(dims[second], ELEMENT_BITS[now.element_type], target)
        shapes.append(tuple(grown))
    least = min(shapes, key=lambda s: (prod(s), sum(a != b for a, b in zip(s, dims, strict=True)), s))
    full = replace(tpu_default(replace(now, dims=least), target), memory_space=now.memory_space)
    if wasted(full):
        raise LayoutError(problems.STILL_WASTES(full, wasted(full)))  # the compiler's rule prefers what wastes none
    return full, len(shapes)


def _rows(extent: int, bits: int, target: str) -> int:
    """The least extent from the present one on that fills the rows of the tile it gets as second-minor dimension."""
    while extent % tile_rows(extent, bits, target):
        extent += 1
    return extent


def _line(now: XlaLayout, target: str) -> tuple[int, ...]:
    """The least length of a one-dimensional array; every tile is a multiple of 128 elements."""
    extent = round_up(int(now.dims[0]), LANES)
    while wasted(tpu_default(replace(now, dims=(extent,)), target)):
        extent += LANES
    return (extent,)
