"""Recognising the outer or the inner layout of a tiled one (paper: tile-of, section 3.3 and Algorithm 3).

D decides D: over x alone the tiled layout is outer*span, over y alone it is inner, and both are unique as functions.
The replicas: inner's lie in a window of one span, so the tiled replicas determine the outer ones, as the numbers of the
windows they are in. A result is checked against the definition before it is returned. Algorithm 3 of the paper
accepts interleavings that are no tilings; TVM's recogniser overlooks replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.algebra.axe.canonical_form import canonical, normal, reduced
from layoutproof.algebra.axe.grouping import divided
from layoutproof.algebra.axe.tiling import halves_of, spans, tiles, unrepeatable
from layoutproof.core.errors import Reason, Undecided
from layoutproof.core.progressions import Progression, values
from layoutproof.core.size import Extent, divide
from layoutproof.layouts.axe.layout import AxeLayout, Iter, admit
from layoutproof.solvers.sumset import canonical_set, decompose, same_set

LISTED = 4096
"""Replicas that are listed one by one, at most."""


def is_tile_inner(
    inner: AxeLayout, tiled: AxeLayout, tiled_shape: Sequence[Extent], inner_shape: Sequence[Extent]
) -> AxeLayout | Reason:
    """The outer layout C with tile(C, inner) the same map as `tiled`; a Reason where there is none.

    Requires: admitted shapes, tiled_shape a multiple of inner_shape (LayoutError otherwise); constant replicas.
    Ensures: the definition of tiling, checked.

    Args:
        inner: The layout that is repeated.
        tiled: The layout of the whole.
        tiled_shape: Shape of the whole, in elements.
        inner_shape: Its shape, in elements.

    Returns:
        The layout, or the reason why there is none.

    >>> atom = AxeLayout(((8, 8, "m"), (8, 1, "m")))
    >>> tiled = AxeLayout(((8, 512, "m"), (8, 8, "m"), (8, 64, "m"), (8, 1, "m")))
    >>> str(is_tile_inner(atom, tiled, (64, 64), (8, 8)))
    'S[64:1] on (8,8)'
    """
    outer_shape = _shapes(inner, tiled, tiled_shape, inner_shape)
    if inner.swizzle != tiled.swizzle and reduced(inner).swizzle != reduced(tiled).swizzle:
        return Reason(f"the swizzles differ: {tiled.swizzle or 'none'} and {inner.swizzle or 'none'}")
    if inner.swizzle is not None and (reason := unrepeatable(inner, inner.swizzle)) is not None:
        return reason
    plain_tiled, plain_inner = _plain(tiled), _plain(inner)
    halves = halves_of(plain_tiled, outer_shape, inner_shape)
    if isinstance(halves, Reason):
        return halves
    coarse, fine = halves
    if normal(fine) != normal(plain_inner.D):
        return Reason("over the inner index the tiled layout is not the inner one")
    width = spans(plain_inner)
    shard = _divided(coarse, width)
    if isinstance(shard, Reason):
        return shard
    split = _replicas(plain_tiled, width)
    if isinstance(split, Reason):
        return split
    replicas, _, low = split
    offset = _outer_offset(low, _lows(plain_inner), width)
    if isinstance(offset, Reason):
        return offset
    outer = AxeLayout(shard, replicas, offset, outer_shape)
    if problem := tiles(plain_tiled, outer, outer_shape, plain_inner, inner_shape):
        return Reason(problem)
    return canonical(outer)


def is_tile_outer(
    outer: AxeLayout, tiled: AxeLayout, tiled_shape: Sequence[Extent], outer_shape: Sequence[Extent]
) -> AxeLayout | Reason:
    """The inner layout B with tile(outer, B) the same map as `tiled`; a Reason where there is none.

    Requires and ensures: as `is_tile_inner`. Spans multiply, so that of B is span(tiled) / span(outer).

    Args:
        outer: The layout that says where the repetitions go.
        tiled: The layout of the whole.
        tiled_shape: Shape of the whole, in elements.
        outer_shape: Its shape, in repetitions.

    Returns:
        The layout, or the reason why there is none.

    >>> grid, tiled = AxeLayout(((8, 8, "m"), (8, 1, "m"))), AxeLayout(((8, 64, "m"), (2, 1, "m"), (32, 2, "m")))
    >>> str(is_tile_outer(grid, tiled, (16, 32), (8, 8)))
    'S[(2,4):(1,2)] on (2,4)'
    """
    inner_shape = _shapes(outer, tiled, tiled_shape, outer_shape)
    if outer.swizzle is not None:
        return Reason("the outer layout is swizzled, so its places have no multiples")
    plain = _plain(tiled)
    halves = halves_of(plain, outer_shape, inner_shape)
    if isinstance(halves, Reason):
        return halves
    total, coarse = spans(plain), spans(outer)
    width: dict[str, Any] = {}
    for axis in dict.fromkeys([*total, *coarse]):
        width[axis], rest = divide(total.get(axis, 1), coarse.get(axis, 1))
        if rest != 0:
            return Reason(f"the width {total.get(axis, 1)} on axis {axis} is no multiple of the outer layout's")
    split = _replicas(plain, width)
    if isinstance(split, Reason):
        return split
    _, replicas, low = split
    outer_low = _lows(outer)
    offset: dict[str, Any] = {
        axis: low.get(axis, 0) - outer_low.get(axis, 0) * width.get(axis, 1)
        for axis in dict.fromkeys([*low, *outer_low])
    }
    inner = AxeLayout(halves[1], replicas, offset, inner_shape)
    if problem := tiles(plain, outer, outer_shape, inner, inner_shape):
        return Reason(problem)
    inner = AxeLayout(inner.D, inner.R, inner.O, inner_shape, None, tiled.swizzle)
    if tiled.swizzle is not None and (reason := unrepeatable(inner, tiled.swizzle)) is not None:
        return reason
    return canonical(inner)


def _shapes(
    part: AxeLayout, tiled: AxeLayout, tiled_shape: Sequence[Extent], part_shape: Sequence[Extent]
) -> tuple[Extent, ...]:
    admit(tiled, tiled_shape)
    admit(part, part_shape)
    return divided(tiled_shape, part_shape, "tile-of")


def _plain(layout: AxeLayout) -> AxeLayout:
    return AxeLayout(layout.D, layout.R, layout.O)


def _divided(iters: Sequence[Iter], width: Mapping[str, Extent]) -> tuple[Iter, ...] | Reason:
    found: list[Iter] = []
    for extent, stride, axis in iters:
        quotient, rest = divide(stride, width.get(axis, 1)) if extent != 1 else (stride, 0)
        if rest != 0:
            return Reason(f"the stride {stride}@{axis} is no multiple of the inner layout's span {width[axis]}")
        found.append((extent, quotient, axis))
    return tuple(found)


def _lows(layout: AxeLayout) -> dict[str, Extent]:
    """The smallest place of the replicas per axis, D aside."""
    low: dict[str, Any] = dict(layout.O)
    for extent, stride, axis in layout.R:
        if type(stride) is int and stride < 0:
            low[axis] = low.get(axis, 0) + stride * (extent - 1)
    return low


def _outer_offset(
    tiled: Mapping[str, Extent], inner: Mapping[str, Extent], width: Mapping[str, Extent]
) -> dict[str, Extent] | Reason:
    offset: dict[str, Extent] = {}
    for axis in dict.fromkeys([*tiled, *inner]):
        left = tiled.get(axis, 0) - inner.get(axis, 0)
        quotient, rest = divide(left, width.get(axis, 1))
        if rest != 0:
            return Reason(f"the offset {left} on axis {axis} is no multiple of the inner layout's span {width[axis]}")
        offset[axis] = quotient
    return offset


def _replicas(
    tiled: AxeLayout, width: Mapping[str, Extent]
) -> tuple[tuple[Iter, ...], tuple[Iter, ...], dict[str, Extent]] | Reason:
    """R per axis: what steps by whole spans (divided by them), what stays within one; and the smallest places."""
    outer: list[Iter] = []
    inner: list[Iter] = []
    for axis in dict.fromkeys([axis for _, _, axis in tiled.R]):
        mine: list[Any] = [(e, s) for e, s, a in tiled.R if a == axis]
        size = width.get(axis, 1)
        if type(size) is not int or any(type(e) is not int or type(s) is not int for e, s in mine):
            return Reason(f"the replicas on axis {axis} have run-time sizes")
        try:
            split = _windows(canonical_set(mine), size)
        except Undecided as undecided:
            return Reason(f"the replicas on axis {axis}: {undecided}")
        if split is None:
            return Reason(f"the replicas on axis {axis} are not replicas of one span of {size} places")
        outer += [(e, s, axis) for e, s in split[0]]
        inner += [(e, s, axis) for e, s in split[1]]
    return tuple(outer), tuple(inner), _lows(tiled)


def _windows(
    replicas: Sequence[Progression], size: int
) -> tuple[tuple[Progression, ...], tuple[Progression, ...]] | None:
    """(numbers of windows of `size`, places within one) whose combinations the sums are; None if they are not."""
    high: list[Progression] = []
    low: list[Progression] = []
    for extent, stride in replicas:
        pieces = [(extent, stride)]
        if stride < size and size % stride == 0 and extent > size // stride and extent % (size // stride) == 0:
            pieces = [(size // stride, stride), (extent // (size // stride), size)]
        for e, s in pieces:
            (low if s < size or s % size else high).append((e, s))
    if sum([s * (e - 1) for e, s in low]) < size:
        return tuple([(e, s // size) for e, s in high]), tuple(low)
    listed = values(replicas, 0, LISTED)
    numbers, within = {v // size for v in listed}, {v for v in listed if v < size}
    if len(numbers) * len(within) != len(listed):
        return None
    found = decompose(frozenset(numbers)), decompose(frozenset(within))
    if found[0] is None or found[1] is None:
        return None
    if not same_set([*((e, s * size) for e, s in found[0]), *found[1]], replicas):
        return None
    return found[0], found[1]
