"""Axe layouts by enumeration: every index, every replica, plain loops. Structural decisions are held against it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from layoutproof.layouts.axe.layout import AxeLayout

Point = tuple[tuple[str, int], ...]
"""A place: (axis, coordinate) where the coordinate is not 0, sorted."""


def point(coordinates: dict[str, int]) -> Point:
    return tuple(sorted((axis, value) for axis, value in coordinates.items() if value))


def swizzle(address: int, per_element: int, count: int, distance: int, outer: bool) -> int:
    """TVM's formula with shifts and masks."""
    block, low = address >> per_element, address & ((1 << per_element) - 1)
    mask = (1 << count) - 1
    mixed = block ^ ((block & mask) << distance) if outer else block ^ ((block & (mask << distance)) >> distance)
    return (mixed << per_element) | low


def places(layout: AxeLayout, index: int, replicas: bool = True) -> frozenset[Point]:
    """All places of one flat index."""
    base: dict[str, int] = dict(layout.O)  # type: ignore[arg-type]
    for extent, stride, axis in reversed(layout.D):
        index, digit = divmod(index, extent)  # type: ignore[operator]
        base[axis] = base.get(axis, 0) + digit * stride  # type: ignore[operator]
    found = []
    for choice in itertools.product(*(range(e if replicas else 1) for e, _, _ in layout.R)):  # type: ignore[arg-type]
        place = dict(base)
        for digit, (_, stride, axis) in zip(choice, layout.R, strict=True):
            place[axis] = place.get(axis, 0) + digit * stride  # type: ignore[operator]
        if layout.swizzle is not None:
            s = layout.swizzle
            place["m"] = swizzle(place.get("m", 0), s.per_element, s.swizzle_len, s.atom_len, s.outer)
        found.append(point(place))
    return frozenset(found)


def table(layout: AxeLayout) -> list[frozenset[Point]]:
    """The places of every index in turn."""
    return [places(layout, index) for index in range(int(layout.size()))]


def flat(index: Sequence[int], shape: Sequence[int]) -> int:
    """The row-major number of an index."""
    total = 0
    for entry, extent in zip(index, shape, strict=True):
        total = total * extent + entry
    return total


def box(shape: Sequence[int]) -> itertools.product[tuple[int, ...]]:
    """Every index of a shape."""
    return itertools.product(*map(range, shape))


def is_digits(values: Sequence[Point]) -> bool:
    """Whether a list of places is a start plus digits times single-axis strides, by definition."""
    if len(values) == 1:
        return True
    axes = sorted({axis for value in values for axis, _ in value})
    rows = [tuple(dict(value).get(axis, 0) for axis in axes) for value in values]
    steps = [tuple(a - b for a, b in zip(row, rows[0], strict=True)) for row in rows]
    one = steps[1]
    if sum(1 for number in one if number) > 1:
        return False
    run = 1
    while run < len(steps) and steps[run] == tuple(run * number for number in one):
        run += 1
    if len(steps) % run:
        return False
    for at, step in enumerate(steps):
        if step != tuple(a + at % run * b for a, b in zip(steps[at // run * run], one, strict=True)):
            return False
    return is_digits(values[::run])
