"""One tile level after the other: how a tile cuts physical extents, and what that does to an index.

Source: docs/tiled_layout.md and `LayoutUtil::LinearIndexForNestedTiling` (xla/layout_util.cc:620 at 183fa00cb5,
2026-08-22). The combining `*` follows the document's words; no function of XLA implements it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Padded
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent, product

COMBINE = -1
"""A `*` in a tile: this dimension is merged into the next more minor one before tiling (docs/tiled_layout.md)."""


class Tiling(NamedTuple):
    """One tile level, ready to apply to physical extents `before` (most major first, rank-padded with ones).

    groups: per tiled axis the run of physical extents that `*` merges into it; () without a star.
    sizes: the tile, without stars; each an int, or a `Size` for a tile of any size.
    after: the extents it leaves: untouched axes, tiles per axis, positions within a tile.
    """

    padding_axes: int
    untouched: int
    groups: tuple[tuple[Extent, ...], ...]
    sizes: tuple[Extent, ...]
    after: tuple[Extent, ...]

    def apply(self, index: Sequence[Any], on: Numbers) -> list[Any]:
        """The index after this level: untouched axes ++ tile numbers ++ positions within the tile."""
        padding_axes, untouched, groups, sizes, _ = self
        if padding_axes:
            index = [0] * padding_axes + list(index)
        tiled = index[untouched:]
        if groups:
            tiled = self.combine(tiled, on)
        outer = list(index[:untouched])
        inner: list[Any] = []
        for position, size in zip(tiled, sizes, strict=True):
            if size == 1:
                outer.append(position)
                inner.append(0)
            else:
                by = size if type(size) is int else on.size(size)
                outer.append(position // by)
                inner.append(position % by)
        return outer + inner

    def combine(self, index: Sequence[Any], on: Numbers) -> list[Any]:
        """The tiled part of an index with each run that `*` merges made one position."""
        axes = iter(index)
        merged = []
        for group in self.groups:
            position = next(axes)
            for extent in group[1:]:
                position = position * on.size(extent) + next(axes)
            merged.append(position)
        return merged


def tile_text(tile: Sequence[Extent]) -> str:
    """A tile as XLA writes it; size symbols as `str` prints them.

    >>> tile_text((COMBINE, 128))
    '(*,128)'
    """
    return f"({','.join('*' if size == COMBINE else str(size) for size in tile)})"


def tile_once(before: Sequence[Extent], tile: Sequence[Extent]) -> Tiling:
    """How one tile level cuts physical extents `before`, most major first.

    Extents the tile does not reach stay; a tile of higher rank than the array sees extra axes of extent 1.
    Raises LayoutError for a tile without meaning: empty, a size below 1, or ending in `*`.

    >>> tile_once((3, 5), (2, 2)).after
    (2, 3, 2, 2)
    >>> tile_once((2, 7, 8, 11, 10), (COMBINE, COMBINE, 2, COMBINE, 3)).after
    (56, 37, 2, 3)
    >>> from layoutproof.core.size import symbol
    >>> tile_once((symbol("N"),), (symbol("t"),)).after
    (Size(ceil(N/t)), Size(t))
    """
    if not tile or any(type(size) is int and size < 1 for size in tile):
        _check_tile(tile)
    padding_axes = max(0, len(tile) - len(before))
    extents = (1,) * padding_axes + tuple(before)
    untouched = len(extents) - len(tile)
    tiled = extents[untouched:]
    groups: tuple[tuple[Extent, ...], ...] = ()
    sizes = tuple(tile)
    if COMBINE in sizes:
        groups, sizes = _runs(tiled, tile), tuple([size for size in tile if size != COMBINE])
        tiled = tuple([product(group) for group in groups])
    # `ceil_div`, written out: every layout that anybody reads comes through here
    tiles = [extent if size == 1 else (extent + (size - 1)) // size for extent, size in zip(tiled, sizes, strict=True)]
    return Tiling(padding_axes, untouched, groups, sizes, (*extents[:untouched], *tiles, *sizes))


def _runs(extents: Sequence[Extent], tile: Sequence[Extent]) -> tuple[tuple[Extent, ...], ...]:
    runs: list[list[Extent]] = [[]]
    for extent, size in zip(extents, tile, strict=True):
        runs[-1].append(extent)
        if size != COMBINE:
            runs.append([])
    return tuple(map(tuple, runs[:-1]))


def _check_tile(tile: Sequence[Extent]) -> None:
    shown = f"T{tile_text(tile)}"
    if not tile:
        raise LayoutError(f"{shown} has no meaning: a tile has at least one size")
    if tile[-1] == COMBINE:
        raise LayoutError(f"{shown} has no meaning: a '*' merges into the next more minor dimension, and there is none")
    if any(type(t) is int and t < 1 and t != COMBINE for t in tile):
        raise LayoutError(f"{shown} has no meaning: tile sizes must be at least 1")


def padded(dims: tuple[Extent, ...], order: tuple[int, ...], levels: list[Tiling]) -> Padded:
    """Dimensions that are padded together, their elements, and the room that they take after all levels."""
    owners: list[tuple[int, ...]] = [(d,) for d in order]
    extents: tuple[Extent, ...] = tuple([dims[d] for d in order])
    combined = False
    for level in levels:
        axes = [()] * level.padding_axes + owners
        tiled = axes[level.untouched :]
        if level.groups:
            combined, tiled = True, _merged(level, tiled)
        owners, extents = axes[: level.untouched] + tiled + tiled, level.after
    rooms: dict[tuple[int, ...], Extent] = {}
    for axis, extent in zip(owners, extents, strict=True):
        if combined:
            # a later level may combine what an earlier one kept apart: then these dimensions are padded together
            shared = [group for group in rooms if set(group) & set(axis)]
            axis = tuple(sorted({d for group in (*shared, axis) for d in group}))
            extent = product(rooms.pop(group) for group in shared) * extent
        rooms[axis] = rooms.get(axis, 1) * extent
    return tuple([(group, product([dims[d] for d in group]), rooms[group]) for group in sorted(rooms)])


def _merged(level: Tiling, axes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Which dimensions each tiled axis stands for once `*` has merged its run."""
    merged: list[tuple[int, ...]] = []
    for group in level.groups:
        merged.append(tuple(sorted({d for axis in axes[: len(group)] for d in axis})))
        axes = axes[len(group) :]
    return merged
