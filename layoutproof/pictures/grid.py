"""What a picture of a layout shows, before anything is drawn: a two-dimensional grid of elements and padding.

The grid is the array as it is indexed, with the padding of each dimension where the tiles put it: at the end, and
between elements where a later tile pads an earlier one. Arrays of more than two dimensions show their first slice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from layoutproof.core.index_map import IndexMap, from_row_major
from layoutproof.core.size import product
from layoutproof.layouts.xla.shape import COMBINE, XlaLayout, physical_order
from layoutproof.properties.padding import figures
from layoutproof.questions.evaluate import read_constant, shown


@dataclass(frozen=True, slots=True)
class Cell:
    """One position. text: the offset or the coordinates, "" for padding. colour: 0..3 by tile, None without tiles."""

    text: str
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """What is shown.

    title: the layout's text.  facts: sentences about shape, padding, bytes.  labels: the indices along rows and
    columns, "" for padding; axes: their names.  breaks: the shown rows and columns that begin a new tile of the first
    level.  gaps: those before which some are left out; the number of shown ones stands for "at the end".
    rows, columns: how many there are, shown or not.
    """

    title: str
    facts: tuple[str, ...]
    axes: tuple[str, str]
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    row_breaks: frozenset[int]
    column_breaks: frozenset[int]
    row_gaps: frozenset[int]
    column_gaps: frozenset[int]
    rows: int
    columns: int

    def cut(self, columns: int) -> Grid:
        """The same grid with only its first columns shown."""
        cells = tuple([row[:columns] for row in self.cells])
        gaps = self.column_gaps | ({columns} if columns < self.columns else frozenset())
        return replace(self, cells=cells, column_labels=self.column_labels[:columns], column_gaps=gaps)

    def remark(self) -> str:
        """What is not shown, or ""."""
        if len(self.cells) == self.rows and len(self.column_labels) == self.columns:
            return ""
        return f"showing {len(self.cells)} of {self.rows} rows, {len(self.column_labels)} of {self.columns} columns"


@dataclass(slots=True, eq=False)
class _Axis:
    """Positions along one physical axis; `split` is (size of a tile, axis of tiles, axis within a tile)."""

    extent: int
    dims: tuple[int, ...] = ()
    split: tuple[int, _Axis, _Axis] | None = None
    in_tiles: bool = False

    def count(self) -> int:
        """All positions, padding included."""
        return self.extent if self.split is None else self.split[1].count() * self.split[2].count()

    def at(self, position: int) -> int | None:
        """The index at a position, None for padding."""
        if self.split is None:
            return position
        size, tiles, within = self.split
        tile, place = (axis.at(p) for axis, p in zip((tiles, within), divmod(position, within.count()), strict=True))
        index = None if tile is None or place is None else tile * size + place
        return index if index is not None and index < self.extent else None

    def run(self) -> int:
        """Positions in one tile of the first level; 1 where it does not reach this axis."""
        return self.split[2].count() if self.in_tiles and self.split is not None else 1


def grid_of(layout: object, most_rows: int, most_columns: int, ends: bool = False) -> Grid:
    """The grid of a layout, with at most so many rows and columns.

    ends: leave out the middle instead of the end: show where a tile begins, where the next one does, and the last ones.
    Raises LayoutError as `read_layout` does, and for size symbols without a value.
    """
    read, m = read_constant(layout)
    axes = _tiled_axes(read) if isinstance(read, XlaLayout) else None
    facts = _facts(read, m, axes)
    if axes is None:
        axes = [_Axis(int(extent), (d,)) for d, extent in enumerate(m.domain.extents)]
    visible = axes[-2:]
    # rows are the lower dimension, however memory orders them; an axis that only pads the rank has no dimension
    visible.sort(key=lambda axis: axis.dims[:1])
    row, column = [_Axis(1), _Axis(1), *visible][-2:]
    text = _text(m)
    tiled = row.in_tiles or column.in_tiles
    hidden = [axis for axis in axes if axis is not row and axis is not column]
    if any(axis.extent > 1 for axis in hidden):
        others = ", ".join(f"{_name(m, axis)} = 0" for axis in hidden if axis.dims)
        facts = (*facts, f"first slice: {others}")

    def cell(r: int, i: int | None, c: int, j: int | None) -> Cell:
        if i is None or j is None:
            return Cell("")
        index = [0] * len(m.domain.extents)
        for axis, entry in ((row, i), (column, j)):
            bounds = [m.domain.extents[d] for d in axis.dims]
            for d, e in zip(axis.dims, from_row_major(entry, bounds), strict=True):
                index[d] = e
        colour = 2 * (r // row.run() % 2) + c // column.run() % 2 if tiled else None
        return Cell(text(tuple(index)), colour)

    across = _chosen(column, most_columns, ends)
    down = _chosen(row, most_rows, ends)
    indices = [column.at(c) for c in across]
    return Grid(
        title=shown(read),
        facts=facts,
        axes=(_name(m, row), _name(m, column)),
        row_labels=tuple([_label(row, r) for r in down]),
        column_labels=tuple([_label(column, c) for c in across]),
        cells=tuple([tuple([cell(r, row.at(r), c, j) for c, j in zip(across, indices, strict=True)]) for r in down]),
        row_breaks=_breaks(row, down),
        column_breaks=_breaks(column, across),
        row_gaps=_gaps(row, down),
        column_gaps=_gaps(column, across),
        rows=row.count(),
        columns=column.count(),
    )


def _chosen(axis: _Axis, most: int, ends: bool) -> list[int]:
    """Which positions are shown."""
    count, run, few = axis.count(), axis.run(), most // 8
    if count <= most or not ends:
        return list(range(min(count, most)))
    if run > most and count > run:
        parts = [range(most - 4 * few), range(run - few, run + 2 * few), range(count - few, count)]
        return sorted({position for part in parts for position in part if position < count})
    first = most - few if run > most - few else (most - few) // run * run
    return [*range(first), *range(count - few, count)]


def _breaks(axis: _Axis, shown: list[int]) -> frozenset[int]:
    run = axis.run()
    pairs = enumerate(pairwise(shown), 1)
    return frozenset([k for k, (before, at) in pairs if run > 1 and at % run == 0 and at == before + 1])


def _gaps(axis: _Axis, shown: list[int]) -> frozenset[int]:
    return frozenset([k for k, (before, at) in enumerate(pairwise([*shown, axis.count()]), 1) if at != before + 1])


def _label(axis: _Axis, position: int) -> str:
    index = axis.at(position) if axis.dims else None
    return "" if index is None else str(index)


def _tiled_axes(layout: XlaLayout) -> list[_Axis] | None:
    """The axes before tiling, most major first, split as the tiles split them; None where a tile joins split axes."""
    physical = [_Axis(int(layout.dims[d]), (d,)) for d in physical_order(layout)]
    whole = list(physical)
    for level, tile in enumerate(layout.tiles):
        padding = [_Axis(1) for _ in range(len(tile) - len(physical))]
        whole, physical = padding + whole, padding + physical
        kept, reached = physical[: len(physical) - len(tile)], physical[len(physical) - len(tile) :]
        tiles: list[_Axis] = []
        within: list[_Axis] = []
        run: list[_Axis] = []
        for axis, size in zip(reached, tile, strict=True):
            run.append(axis)
            if size == COMBINE:
                continue
            if len(run) > 1:
                if not all(any(part is root for root in whole) for part in run):
                    return None
                axis = _Axis(product(part.extent for part in run), tuple([d for part in run for d in part.dims]))
                whole = [axis if part is run[-1] else part for part in whole if part not in run[:-1]]
            numbers, positions = _Axis(-(-axis.extent // int(size))), _Axis(int(size))
            axis.split = (int(size), numbers, positions)
            axis.in_tiles = level == 0
            tiles.append(numbers)
            within.append(positions)
            run = []
        physical = kept + tiles + within
    return whole


def _facts(layout: Any, m: IndexMap, axes: list[_Axis] | None) -> tuple[str, ...]:
    shape = " x ".join(str(extent) for extent in m.domain.extents) or "one element"
    if m.memory is None:
        names = f"cells show ({', '.join(m.range.names)})" if m.range.names else "cells show the coordinates"
        return (shape, names, *_replicas(m))
    numbers = figures(m)
    elements, padding, allotted = (int(str(numbers[k])) for k in ("elements", "padding_elements", "padded_elements"))
    if axes is not None and layout.tiles:
        padded = sorted(axes, key=lambda axis: axis.dims)
        shape += f", padded to {' x '.join(str(axis.count()) for axis in padded)}"
    elif isinstance(layout, XlaLayout) and axes is None:
        shape += "; padding is not drawn: a tile joins axes that an earlier one split"
    share = f"{padding} padding ({100 * padding / allotted:.3g} %)" if padding > 0 else "no padding"
    if padding < 0:
        share = f"{allotted} places"
    return (
        shape,
        f"{elements} element{'' if elements == 1 else 's'}, {share}; "
        f"{numbers['unpadded_bytes']} bytes unpadded, {numbers['bytes']} bytes allotted",
        "cells show offsets in elements",
        *_replicas(m),
    )


def _replicas(m: IndexMap) -> tuple[str, ...]:
    count = product(m.replicas.extents)
    return () if count == 1 else (f"first of {count} replicas",)


def _text(m: IndexMap) -> Callable[[tuple[int, ...]], str]:
    flat = m if m.memory is None else m.flat()
    replica = (0,) * len(m.replicas.extents)

    def text(index: tuple[int, ...]) -> str:
        return ",".join(str(entry) for entry in flat.at(index, replica))

    return text


def _name(m: IndexMap, axis: _Axis) -> str:
    names = [m.domain.names[d] for d in axis.dims]
    return names[0] if len(names) == 1 else f"({','.join(names)})" if names else ""
