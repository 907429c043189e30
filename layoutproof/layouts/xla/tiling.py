"""Tile levels, one after the other: how they cut physical extents, and what that does to an index.

Source: docs/tiled_layout.md and `LayoutUtil::LinearIndexForNestedTiling` (xla/layout_util.cc:620 at 183fa00cb5,
2026-08-22). The combining `*` follows the document's words; no function of XLA implements it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Padded
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent, product
from layoutproof.layouts.xla import problems

COMBINE = -1
"""A `*` in a tile: this dimension is merged into the next more minor one before tiling (docs/tiled_layout.md)."""


class Levels(NamedTuple):
    """The tile levels of a format for arrays of one rank, as a row of numbers made one from the other.

    Number 0 is the index 0 of an axis of extent 1; then come the array's own axes, most major first; then the two that
    each step makes, which tile and where in it.
    steps: (numbers that are merged into one position, by which size it is divided).
    after: which numbers stand, most major first, before any level and after each.
    groups: of the array's axes, 0 the most major one, those that are padded together, and the places of what they make
        among what stands at the end.
    """

    steps: tuple[tuple[tuple[int, ...], Extent], ...]
    after: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    def extents(self, before: Sequence[Extent]) -> list[Extent]:
        """The extent of every number, given those of the array's axes.

        >>> levels = tilings(2, ((2, 2),))
        >>> [levels.extents((3, 5))[k] for k in levels.after[-1]]
        [2, 3, 2, 2]
        """
        extents: list[Any] = [1, *before]
        for merged, size in self.steps:
            extent = extents[merged[0]]
            for more in merged[1:]:
                extent = extent * extents[more]
            # `ceil_div`, written out: every layout that anybody reads comes through here
            extents.append((extent + (size - 1)) // size)
            extents.append(size)
        return extents

    def numbers(self, index: Sequence[Any], extents: Sequence[Extent], on: Numbers) -> list[Any]:
        """Every number of one index, given the array's index and the extents of all numbers."""
        found: list[Any] = [0, *index]
        for merged, size in self.steps:
            position = found[merged[0]]
            for more in merged[1:]:
                position = position * on.size(extents[more]) + found[more]
            by = size if type(size) is int else on.size(size)
            found.append(position // by)
            found.append(position % by)
        return found


def tile_text(tile: Sequence[Extent]) -> str:
    """A tile as XLA writes it; size symbols as `str` prints them.

    >>> tile_text((COMBINE, 128))
    '(*,128)'
    """
    return f"({','.join('*' if size == COMBINE else str(size) for size in tile)})"


@lru_cache(maxsize=1024)
def tilings(rank: int, tiles: tuple[tuple[Extent, ...], ...]) -> Levels:
    """How these tiles cut arrays of one rank, whatever their extents; the outermost tile first.

    Axes that a tile does not reach stay; a tile of higher rank than the array sees extra axes of extent 1.
    Raises LayoutError for a tile without meaning: empty, a size below 1, or ending in `*`.

    >>> tilings(2, ((8, 128), (2, 1))).steps
    (((1,), 8), ((2,), 128), ((4,), 2))
    >>> tilings(5, ((COMBINE, COMBINE, 2, COMBINE, 3),)).steps
    (((1, 2, 3), 2), ((4, 5), 3))
    """
    steps: list[tuple[tuple[int, ...], Extent]] = []
    standing = tuple(range(1, rank + 1))
    axes: list[tuple[int, ...]] = [(axis,) for axis in range(rank)]
    after = [standing]
    for tile in tiles:
        _check_tile(tile)
        extra, untouched = max(0, len(tile) - len(standing)), max(0, len(standing) - len(tile))
        numbers, axes = (0,) * extra + standing, [()] * extra + axes
        outer, inner, tiled = list(numbers[:untouched]), [], axes[:untouched]
        merged: tuple[int, ...] = ()
        shared: set[int] = set()
        for number, own, size in zip(numbers[untouched:], axes[untouched:], tile, strict=True):
            merged += (number,)
            shared |= {*own}
            if size == COMBINE:
                continue
            if size == 1 and len(merged) == 1:
                outer.append(number)
                inner.append(0)
            else:
                made = 1 + rank + 2 * len(steps)
                steps.append((merged, size))
                outer.append(made)
                inner.append(made + 1)
            tiled.append(tuple(sorted(shared)))
            merged, shared = (), set()
        standing, axes = (*outer, *inner), tiled + tiled[untouched:]
        after.append(standing)
    return Levels(tuple(steps), tuple(after), _groups(axes))


def _check_tile(tile: Sequence[Extent]) -> None:
    shown = f"T{tile_text(tile)}"
    if not tile:
        raise LayoutError(problems.TILE_EMPTY(shown))
    if tile[-1] == COMBINE:
        raise LayoutError(problems.TILE_MERGE(shown))
    if any(type(t) is int and t < 1 and t != COMBINE for t in tile):
        raise LayoutError(problems.TILE_LEAST(shown))


def _groups(axes: Sequence[tuple[int, ...]]) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Axes that are padded together, with the places that come from them, given the axes that each place comes from."""
    groups: dict[tuple[int, ...], tuple[int, ...]] = {}
    for k, own in enumerate(axes):
        # a later level may combine what an earlier one kept apart: then these axes are padded together
        shared = [other for other in groups if not set(other).isdisjoint(own)]
        places = tuple([place for other in shared for place in groups.pop(other)])
        group = tuple(sorted({axis for each in (*shared, own) for axis in each}))
        groups[group] = (*groups.get(group, ()), *places, k)
    return tuple(groups.items())


def padded(dims: tuple[Extent, ...], order: tuple[int, ...], levels: Levels, extents: Sequence[Extent]) -> Padded:
    """Dimensions that are padded together, their elements, and the room that they take: `extents` at the end."""
    groups = [(tuple(sorted([order[axis] for axis in axes])), places) for axes, places in levels.groups]
    return tuple(
        [
            (group, product([dims[d] for d in group]), product([extents[k] for k in places]))
            for group, places in sorted(groups)
        ]
    )
