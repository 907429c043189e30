"""The map of an Axe layout: `place(index, copy)`, one coordinate per hardware axis, on any kind of number.

Dimensions and D's digits are aligned where their products meet from the right, so that an index is split by its own
digits and flattened only together with the dimensions that it shares digits with: solvers like that a thousand times
better than one flat index, and the map is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap, row_major
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent, divide, surely_less
from layoutproof.core.space import Space
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter
from layoutproof.layouts.axe.swizzle import swizzled, swizzled_bounds

Segment = tuple[tuple[int, ...], tuple[Iter, ...]]
"""Dimensions, and the iters that together split exactly them."""


def index_map(layout: AxeLayout) -> IndexMap:
    """Where each index goes. Domain: the shape, or one dimension x. Copies: one dimension per iter of R.

    Range: one axis per hardware axis, with the extent in `within`, or 1 + the largest coordinate.

    >>> AxeLayout(((8, 4, "lane"), (2, 1, "warp"), (4, 1, "lane"), (2, 1, "reg")), shape=(8, 16)).index_map().at((2, 9))
    (8, 1, 1)
    """
    shape = layout.shape if layout.shape is not None else (layout.size(),)
    rank = len(shape)
    names = (
        ("x",)
        if layout.shape is None
        else tuple("ijklmnop"[:rank])
        if rank <= 8
        else tuple(f"i{k}" for k in range(rank))
    )
    axes = layout.axes()
    parts = segments(shape, layout.D)
    offsets, copies, swizzle = layout.O, layout.R, layout.swizzle

    def place(index: Index, copy: Index, on: Numbers) -> Index:
        totals: dict[str, Any] = {axis: on.size(offsets[axis]) if axis in offsets else 0 for axis in axes}
        for dimensions, iters in parts:
            position = row_major(tuple([index[d] for d in dimensions]), [shape[d] for d in dimensions], on)
            for number in range(len(iters) - 1, -1, -1):
                extent, stride, axis = iters[number]
                if extent == 1:
                    continue
                if number == 0:
                    digit = position
                else:
                    size = on.size(extent)
                    digit, position = position % size, position // size
                totals[axis] = totals[axis] + digit * on.size(stride)
        for digit, (_, stride, axis) in zip(copy, copies, strict=True):
            totals[axis] = totals[axis] + digit * on.size(stride)
        if swizzle is not None:
            totals[MEMORY] = swizzled(totals[MEMORY], swizzle, on)
        return tuple([totals[axis] for axis in axes])

    extents = tuple([axis_extent(layout, axis) for axis in axes])
    box = Space(tuple(f"r{k}" for k in range(len(copies))), tuple([e for e, _, _ in copies]))
    return IndexMap(Space(names, shape), Space(axes, extents), place, box)


def axis_extent(layout: AxeLayout, axis: str) -> Extent:
    """The extent of one hardware axis: as `within` says, or 1 + the largest coordinate (at least 1).

    Raises LayoutError when a stride's sign depends on the sizes, or a swizzled layout has sizes, unless `within` says.
    """
    if layout.within is not None and axis in layout.within:
        return layout.within[axis]
    if layout.swizzle is not None:
        if layout.symbols():
            raise LayoutError(f"the swizzled layout {layout} has run-time sizes; write how far it reaches: within (..)")
        return 1 + swizzled_bounds(layout)[1]
    highest: Any = layout.O.get(axis, 0)
    for extent, stride, name in (*layout.D, *layout.R):
        if name != axis:
            continue
        if surely_less(-1, stride):
            highest = highest + stride * (extent - 1)
        elif not surely_less(stride, 1):
            raise LayoutError(
                f"the sign of the stride {stride} depends on its sizes; write the extent: within (..@{axis})"
            )
    if type(highest) is int:
        return max(1, highest + 1)
    return highest + 1  # type: ignore[no-any-return]


def segments(shape: Sequence[Extent], iters: Sequence[Iter]) -> tuple[Segment, ...]:
    """Dimensions and iters aligned from the right: the shortest runs of both with equal products.

    >>> [(d, [e for e, _, _ in i]) for d, i in segments((8, 16), ((8, 4, "a"), (2, 1, "b"), (4, 1, "a"), (2, 1, "c")))]
    [((0,), [8]), ((1,), [2, 4, 2])]
    """
    found: list[Segment] = []
    dimensions: list[int] = []
    digits: list[Iter] = []
    left, right = len(shape), len(iters)
    products: list[Any] = [1, 1]
    while left or right:
        ahead = _ahead(products[0], products[1])
        if left and not (ahead and right):
            left -= 1
            dimensions.insert(0, left)
            products[0] = products[0] * shape[left]
        else:
            right -= 1
            digits.insert(0, iters[right])
            products[1] = products[1] * iters[right][0]
        if products[0] == products[1] and digits and dimensions and not _units_left(shape, left, iters, right):
            found.insert(0, (tuple(dimensions), tuple(digits)))
            dimensions, digits, products = [], [], [1, 1]
    if digits or dimensions:
        found.insert(0, (tuple(dimensions), tuple(digits)))
    return tuple(found)


def _ahead(left: Any, right: Any) -> bool:
    if type(left) is int and type(right) is int:
        return left > right
    return left != right and bool(divide(left, right)[1] == 0)


def _units_left(shape: Sequence[Extent], left: int, iters: Sequence[Iter], right: int) -> bool:
    """Whether only dimensions or only iters of extent 1 remain, which then belong to the last segment."""
    return (left == 0) != (right == 0)
