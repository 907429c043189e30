"""The map of an Axe layout: `place(index, replica)`, one coordinate per hardware axis, on any kind of number.

Dimensions and D's digits are aligned where their products meet from the right, so that an index is split by its own
digits and flattened only together with the dimensions that it shares digits with: solvers like that a thousand times
better than one flat index, and the map is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core.index_map import Index, Permutation, Place, row_major
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent, divide
from layoutproof.layouts.axe.swizzle import Swizzle, swizzled, window

Iter = tuple[Extent, Extent, str]
"""(extent, stride, axis): a digit x with 0 <= x < extent adds x*stride to the coordinate on `axis`."""

MEMORY = "m"
"""The axis that a bare stride means."""

Segment = tuple[tuple[int, ...], tuple[Iter, ...]]
"""Dimensions, and the iters that together split exactly them."""


def place_of(
    shape: Sequence[Extent],
    shard: Sequence[Iter],
    replicas: Sequence[Iter],
    offset: Mapping[str, Extent],
    axes: Sequence[str],
    swizzle: Swizzle | None,
) -> Place:
    """`place(index, replica)` of a layout with these D, R and O: the coordinate on each of the axes.

    >>> place = place_of((8, 16), ((8, 4, "lane"), (16, 1, "reg")), (), {}, ("lane", "reg"), None)
    >>> place((2, 9), (), Numbers())
    (8, 9)
    """
    parts = segments(shape, shard)

    def place(index: Index, replica: Index, on: Numbers) -> Index:
        totals: dict[str, Any] = {axis: on.size(offset[axis]) if axis in offset else 0 for axis in axes}
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
        for digit, (_, stride, axis) in zip(replica, replicas, strict=True):
            totals[axis] = totals[axis] + digit * on.size(stride)
        return tuple([totals[axis] for axis in axes])

    return place if swizzle is None else _Swizzled(place, swizzle, tuple(axes).index(MEMORY))


@dataclass(frozen=True, slots=True, eq=False)
class _Swizzled:
    """Another place, whose address is swizzled."""

    plain: Place
    swizzle: Swizzle
    axis: int

    def __call__(self, index: Index, replica: Index, on: Numbers) -> Index:
        at = list(self.plain(index, replica, on))
        at[self.axis] = swizzled(at[self.axis], self.swizzle, on)
        return tuple(at)

    @property
    def permutation(self) -> Permutation:
        """Both directions are involutions."""
        return Permutation(self.plain, self.axis, window(self.swizzle), lambda a: int(swizzled(a, self.swizzle)))


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


def _ahead(left: Extent, right: Extent) -> bool:
    if type(left) is int and type(right) is int:
        return left > right
    return left != right and bool(divide(left, right)[1] == 0)


def _units_left(shape: Sequence[Extent], left: int, iters: Sequence[Iter], right: int) -> bool:
    """Whether only dimensions or only iters of extent 1 remain, which then belong to the last segment."""
    return (left == 0) != (right == 0)
