"""Grouping D by shapes, permuting what was grouped.

Source: arXiv:2601.19092 section 3.2 and Algorithm 1 (whose line 19 must test the tail of the extent);
apache/tvm `tile_tile_ops.cc` (Group, GroupMany), which raises where there is no grouping.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from layoutproof.algebra import problems
from layoutproof.algebra.axe.canonical_form import normal
from layoutproof.core.errors import InternalError, LayoutError, Reason
from layoutproof.core.size import Extent, divide, surely_less
from layoutproof.layouts.axe.layout import AxeLayout, Iter, admit, shown

Blocks = tuple[tuple[Iter, ...], ...]
"""The iters of each dimension."""


def group(layout: AxeLayout, shape: Sequence[Extent]) -> tuple[AxeLayout, tuple[int, ...]] | Reason:
    """D split so that each dimension of `shape` has its own iters, and where each dimension's begin (TVM: `group`).

    Requires: the shape is admitted (LayoutError otherwise). Ensures: the same map; iters seps[i]..seps[i+1] multiply to
    shape[i]; the result has this shape. A Reason where some digit would have to belong to two dimensions.

    Args:
        layout: An Axe layout.
        shape: The logical shape, in elements.

    Returns:
        (layout, where the iters of each dimension begin), or the reason.

    >>> grouped, seps = group(AxeLayout(((64, 1, "m"),)), (8, 8))
    >>> str(grouped), seps
    ('S[(8,8):(8,1)] on (8,8)', (0, 1, 2))
    >>> str(group(AxeLayout(((6, 1, "m"), (2, 9, "m"))), (4, 3)))
    'the digits (6,2) of D do not split at the shape (4, 3): dimension 0 of extent 4 takes 4 of the extent 6'
    """
    blocks = blocks_of(layout.D, admit(layout, shape))
    if isinstance(blocks, Reason):
        return blocks
    seps = [0]
    for block in blocks:
        seps.append(seps[-1] + len(block))
    shard = tuple([one for block in blocks for one in block])
    grouped = AxeLayout(shard, layout.R, layout.O, tuple(shape), layout.within, layout.swizzle)
    if normal(shard) != normal(layout.D):
        raise InternalError(f"grouping {layout} by {shown(shape)} changed its map: please report this")
    return grouped, tuple(seps)


def blocks_of(iters: Sequence[Iter], shape: Sequence[Extent]) -> Blocks | Reason:
    """The iters of each dimension, unit dimensions with one unit iter. Requires equal products."""
    blocks: list[tuple[Iter, ...]] = []
    at, left = 0, None
    for dimension, wanted in enumerate(shape):
        need: Any = wanted
        block: list[Iter] = []
        while True:
            if left is None and at < len(iters):
                left = iters[at]
            if left is None:
                if need != 1:
                    return Reason(f"D ends before the shape {shown(shape)} does")
                block += [] if block else [(1, 1, iters[-1][2])]
                break
            extent, stride, axis = left
            if need == extent:
                block.append(left)
                at, left, need = at + 1, None, 1
                break
            if need == 1:
                if not block:
                    block.append((1, stride * extent, axis))
                break
            quotient, rest = _whole(extent, need)
            if rest:
                block.append((need, stride * quotient, axis))
                left, need = (quotient, stride, axis), 1
                break
            quotient, rest = _whole(need, extent)
            if not rest:
                digits = ",".join(str(e) for e, _, _ in iters)
                return Reason(
                    f"the digits ({digits}) of D do not split at the shape {shown(shape)}: "
                    f"dimension {dimension} of extent {wanted} takes {need} of the extent {extent}"
                )
            block.append(left)
            at, left, need = at + 1, None, quotient
        blocks.append(tuple(block))
    rest_units = [*([left] if left is not None else []), *iters[at + (left is not None) :]]
    if any(extent != 1 for extent, _, _ in rest_units):
        return Reason(f"the shape {shown(shape)} ends before D does")
    if rest_units and blocks:
        blocks[-1] = blocks[-1] + tuple(rest_units)
    return tuple(blocks)


def _whole(extent: Extent, by: Extent) -> tuple[Extent, bool]:
    """(extent / by, True) where `by` divides, for all sizes."""
    quotient, rest = divide(extent, by)
    return quotient, bool(rest == 0)


def group_many(
    layout: AxeLayout, shapes: Sequence[Sequence[int]]
) -> tuple[AxeLayout, tuple[tuple[int, ...], ...]] | Reason:
    """D split at the boundaries of several shapes at once, and each shape's separators (TVM: `group_many`).

    The smallest common refinement; boundaries that a shape repeats (extents of 1) become unit iters. Requires constants
    and admitted shapes. Ensures: the same map; seps[k] groups the result by shapes[k].

    Args:
        layout: An Axe layout.
        shapes: Logical shapes of one size, in elements.

    Returns:
        (layout, the same per shape), or the reason.

    >>> refined, seps = group_many(AxeLayout(((30, 1, "m"),)), [(6, 5), (2, 15)])
    >>> str(refined), seps
    ('S[(2,3,5):(15,5,1)]', ((0, 2, 3), (0, 1, 3)))
    """
    if not shapes:
        raise LayoutError(problems.NO_SHAPES())
    sequences = []
    for extents in [*(admit(layout, shape) for shape in shapes), tuple([e for e, _, _ in layout.D])]:
        if not extents:
            raise LayoutError(problems.NO_DIMENSIONS())
        products: list[Any] = [1]
        for extent in extents:
            if type(extent) is not int:
                raise LayoutError(problems.NAMED_EXTENT(extent))
            products.append(products[-1] * extent)
        sequences.append(products)
    common: list[Any] = []
    starts: dict[Any, int] = {}
    for value in sorted({value for products in sequences for value in products}):
        starts[value] = len(common)
        common += [value] * max(products.count(value) for products in sequences)
    for before, after in itertools.pairwise(common):
        if after % before:
            return Reason(
                f"the shapes and D have the boundaries {before} and {after}, of which neither divides the other"
            )
    refined = blocks_of_boundaries(layout.D, common, sequences[-1], starts)
    result = AxeLayout(refined, layout.R, layout.O, None, layout.within, layout.swizzle)
    if normal(refined) != normal(layout.D):
        raise InternalError(f"group_many changed the map of {layout}: please report this")
    return result, tuple([_positions(products, common, starts) for products in sequences[:-1]])


def blocks_of_boundaries(
    iters: Sequence[Iter], common: Sequence[int], own: Sequence[int], starts: dict[int, int]
) -> tuple[Iter, ...]:
    """The iters cut at every boundary in `common`. Requires that boundaries divide each other."""
    positions = _positions(own, common, starts)
    refined: list[Iter] = []
    for (_, stride, axis), (begin, end) in zip(iters, itertools.pairwise(positions), strict=True):
        last: Any = common[end]
        refined += [(common[k + 1] // common[k], stride * (last // common[k + 1]), axis) for k in range(begin, end)]
    return tuple(refined)


def _positions(products: Sequence[Any], common: Sequence[Any], starts: dict[Any, int]) -> tuple[int, ...]:
    """Where each boundary of one sequence stands in the common one; the last takes the last of its value."""
    positions: list[int] = []
    for number, value in enumerate(products):
        before = list(products[:number]).count(value)
        position = starts[value] + before
        if number + 1 == len(products):
            position = len(common) - 1
        positions.append(position)
    return tuple(positions)


def permute_dims(layout: AxeLayout, order: Sequence[int]) -> AxeLayout:
    """D's iters in another order (TVM: `permute_dims`): result(digits permuted) = layout(digits). Drops the shape when
    it is not D's own.

    Args:
        layout: An Axe layout.
        order: The old numbers in their new order.

    Returns:
        The layout.

    Raises:
        LayoutError: Unless `order` is a permutation of D's numbers.

    >>> str(permute_dims(AxeLayout(((8, 4, "a"), (2, 1, "b"))), (1, 0)))
    'S[(2,8):(1@b,4@a)]'
    """
    if sorted(order) != list(range(len(layout.D))):
        raise LayoutError(problems.NO_PERMUTATION_OF_ITERS(shown(order), len(layout.D)))
    shape = None
    if layout.shape is not None and layout.shape == tuple([e for e, _, _ in layout.D]):
        shape = tuple([layout.shape[k] for k in order])
    shard = tuple([layout.D[k] for k in order])
    return AxeLayout(shard, layout.R, layout.O, shape, layout.within, layout.swizzle)


def permute_by_groups(layout: AxeLayout, seps: Sequence[int], order: Sequence[int]) -> AxeLayout:
    """Groups of iters in another order; `seps` as `group` gives them (TVM: `permute_by_groups`).

    Args:
        layout: An Axe layout.
        seps: Where the iters of each dimension begin, as `group` gives them.
        order: The old numbers in their new order.

    Returns:
        The layout.

    >>> tiled = AxeLayout(((8, 512, "m"), (8, 8, "m"), (8, 64, "m"), (8, 1, "m")))
    >>> str(permute_by_groups(tiled, (0, 2, 4), (1, 0)))
    'S[(8,8,8,8):(64,1,512,8)]'
    """
    if list(seps) != sorted(seps) or not seps or seps[0] != 0 or seps[-1] != len(layout.D):
        raise LayoutError(problems.SEPARATORS(shown(seps), len(layout.D)))
    if sorted(order) != list(range(len(seps) - 1)):
        raise LayoutError(problems.NO_PERMUTATION_OF_GROUPS(shown(order), len(seps) - 1))
    return permute_dims(layout, [k for g in order for k in range(seps[g], seps[g + 1])])


def divided(shape: Sequence[Extent], by: Sequence[Extent], what: str) -> tuple[Extent, ...]:
    """shape / by, dimension by dimension. Raises LayoutError where that is not whole."""
    if len(shape) != len(by):
        raise LayoutError(problems.RANKS_OF(what, shown(shape), shown(by)))
    found = []
    for extent, divisor in zip(shape, by, strict=True):
        if not surely_less(0, divisor):
            raise LayoutError(problems.EXTENT_BELOW_1(what, divisor))
        quotient, whole = _whole(extent, divisor)
        if not whole:
            raise LayoutError(problems.DOES_NOT_DIVIDE(what, divisor, extent, shown(shape), shown(by)))
        found.append(quotient)
    return tuple(found)


def apply_to_shape(layout: AxeLayout, index: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """The digit that each iter takes for an index of `shape` (TVM: `apply_to_shape`), in the grouping by that shape.

    Where D does not group by the shape, D's own digits.

    Args:
        layout: An Axe layout.
        index: One int per dimension of the shape.
        shape: The logical shape, in elements.

    Returns:
        One digit per iter.

    >>> apply_to_shape(AxeLayout(((16, 16, "m"), (4, 4, "m"), (4, 1, "m"))), (5, 7), (16, 16))
    (5, 1, 3)
    """
    from layoutproof.algebra.axe.locate import digits_of

    grouped = group(layout, shape)
    return digits_of(layout if isinstance(grouped, Reason) else grouped[0], index, shape)
