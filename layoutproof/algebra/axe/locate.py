"""Forward and backward: all places of an index, and every index and replica at a place.

The blog's code pairs replicas wrongly (E1 + E2 of them instead of E1*E2), and its inverse skips R, ignores holes and
divides where strides do not nest; TVM's `apply` gives one replica and takes indices outside the array.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layoutproof.algebra import problems
from layoutproof.core.errors import BudgetExceeded, LayoutError
from layoutproof.core.index_map import from_row_major, row_major
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, admit, constant, shown
from layoutproof.layouts.axe.swizzle import swizzled

MOST = 1_000_000
"""Places or preimages that are listed, at most."""

Place = dict[str, int]
Origin = tuple[tuple[int, ...], tuple[int, ...]]
"""An index, and the number of the replica along each iter of R."""


def forward(layout: AxeLayout, index: Sequence[int], shape: Sequence[int] | None = None) -> list[Place]:
    """The set of places of one index: every combination of replicas, each place once, sorted.

    Requires constants.

    Args:
        layout: An Axe layout.
        index: One int per dimension of the shape.
        shape: The logical shape, where the layout has none of its own or another of the same size is meant; without
            either the index is one number.

    Returns:
        Places, a coordinate per axis each.

    Raises:
        LayoutError: For a shape that is not admitted and for an index outside.

    >>> digits = ((8, 4, "lane"), (2, 1, "warp"), (4, 1, "lane"), (2, 1, "reg"))
    >>> fig2 = AxeLayout(digits, ((2, 4, "warp"),), {"warp": 5})
    >>> forward(fig2, (2, 9), (8, 16))
    [{'lane': 8, 'warp': 6, 'reg': 1}, {'lane': 8, 'warp': 10, 'reg': 1}]
    """
    constant(layout)
    digits = digits_of(layout, index, shape)
    axes = layout.axes()
    base = dict.fromkeys(axes, 0) | {axis: int(value) for axis, value in layout.O.items()}
    for digit, (_, stride, axis) in zip(digits, layout.D, strict=True):
        base[axis] += digit * int(stride)
    found = {tuple([base[axis] for axis in axes])}
    for extent, stride, axis in layout.R:
        at = axes.index(axis)
        if len(found) * int(extent) > MOST:
            raise BudgetExceeded(f"an element of {layout} has more than {MOST} places")
        found = {
            (*place[:at], place[at] + replica * stride, *place[at + 1 :])
            for place in found
            for replica in range(int(extent))
        }
    if layout.swizzle is not None:
        if any(place[0] < 0 for place in found):
            raise LayoutError(problems.SWIZZLE_BELOW_0(shown(index), layout))
        found = {(swizzled(place[0], layout.swizzle),) for place in found}
    return [dict(zip(axes, place, strict=True)) for place in sorted(found)]


def digits_of(layout: AxeLayout, index: Sequence[int], shape: Sequence[int] | None = None) -> tuple[int, ...]:
    """D's digits of an index.

    Args:
        layout: An Axe layout.
        index: One int per dimension of the shape.
        shape: The logical shape; None for the layout's own.

    Returns:
        One digit per iter of D.

    Raises:
        LayoutError: For another rank, a shape not admitted, an index outside.
    """
    extents = _shape(layout, shape)
    if len(index) != len(extents):
        raise LayoutError(problems.INDEX_RANK(shown(index), len(index), shown(extents), len(extents)))
    for entry, extent in zip(index, extents, strict=True):
        if type(entry) is not int or not 0 <= entry < extent:
            raise LayoutError(problems.INDEX_OUTSIDE(shown(index), shown(extents)))
    return from_row_major(row_major(tuple(index), extents), [e for e, _, _ in layout.D])


def backward(layout: AxeLayout, place: Mapping[str, int], shape: Sequence[int] | None = None) -> list[Origin]:
    """Every (index, replica) at a place, sorted; the empty list where no element is.

    Exact for any strides: interleaved, padded, negative, zero. Requires constants.

    Args:
        layout: An Axe layout.
        place: A coordinate per axis; axes left out are 0.
        shape: The logical shape; None for the layout's own.

    Returns:
        (index, replica) pairs.

    Raises:
        LayoutError: For an axis that the layout does not have.
        Undecided: Beyond a million.

    >>> layout = AxeLayout(((4, 33, "m"), (32, 1, "m")), ((2, 1, "gpu"),), shape=(4, 32))
    >>> backward(layout, {"m": 40, "gpu": 1}), backward(layout, {"m": 32})
    ([((1, 7), (1,))], [])
    """
    constant(layout)
    extents = _shape(layout, shape)
    axes = layout.axes()
    for axis in place:
        if axis not in axes:
            raise LayoutError(problems.NO_AXIS(layout, axis, ", ".join(axes)))
    iters = [*layout.D, *layout.R]
    per_axis: list[list[list[tuple[int, int]]]] = []
    for axis in axes:
        target = int(place.get(axis, 0))
        if layout.swizzle is not None and axis == MEMORY:
            if target < 0:
                return []
            # the swizzle is its own inverse
            target = swizzled(target, layout.swizzle)
        mine: list[Any] = [(abs(s), e, s, k) for k, (e, s, a) in enumerate(iters) if a == axis]  # type: ignore[arg-type]
        mine.sort(reverse=True)
        found = list(_digits(mine, target - int(layout.O.get(axis, 0))))
        if not found:
            return []
        per_axis.append(found)
    origins: list[Origin] = []
    sizes = [int(e) for e, _, _ in layout.D]
    for choice in itertools.product(*per_axis):
        digits = dict(itertools.chain.from_iterable(choice))
        flat = row_major(tuple([digits[k] for k in range(len(sizes))]), sizes)
        replica = tuple([digits[k] for k in range(len(sizes), len(iters))])
        origins.append((from_row_major(flat, extents), replica))
        if len(origins) > MOST:
            raise BudgetExceeded(f"more than {MOST} elements and replicas of {layout} are at one place")
    return sorted(origins)


def _digits(iters: list[tuple[int, int, int, int]], target: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to write `target` as a sum of digit*stride: lists of (number of the iter, digit)."""
    lows, highs = [0], [0]
    for _, extent, stride, _ in reversed(iters):
        reach = stride * (extent - 1)
        lows.append(lows[-1] + min(reach, 0))
        highs.append(highs[-1] + max(reach, 0))
    lows.reverse()
    highs.reverse()
    steps = 0
    todo: list[tuple[int, int, list[tuple[int, int]]]] = [(0, target, [])]
    while todo:
        at, left, chosen = todo.pop()
        if at == len(iters):
            if left == 0:
                yield chosen
            continue
        step, extent, stride, number = iters[at]
        if step == 0:
            digits = range(extent)
        else:
            # the range of the smaller strides bounds this digit
            least, most = left - highs[at + 1], left - lows[at + 1]
            if stride < 0:
                least, most = -most, -least
            digits = range(max(0, -(-least // step)), min(extent - 1, most // step) + 1)
        steps += len(digits)
        if steps > MOST:
            raise BudgetExceeded(f"more than {MOST} combinations of digits would have to be tried")
        todo += [(at + 1, left - digit * stride, [*chosen, (number, digit)]) for digit in digits]


def _shape(layout: AxeLayout, shape: Sequence[int] | None) -> tuple[Any, ...]:
    if shape is not None:
        return admit(layout, shape)
    return layout.shape if layout.shape is not None else (layout.size(),)
