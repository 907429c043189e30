"""An array element by element: a two-dimensional grid of elements and padding, each with its offset or coordinates.

The grid is the array as it is indexed, with the padding of each dimension where the tiles put it: at the end, and
between elements where a later tile pads an earlier one. Arrays of more than two dimensions show their first slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from layoutproof.core.index_map import IndexMap, from_row_major, row_major
from layoutproof.core.size import product
from layoutproof.layouts.xla.shape import COMBINE, XlaLayout, physical_order
from layoutproof.pictures.drawing import PADDING, Cell, CellGrid
from layoutproof.properties.padding import figures
from layoutproof.questions.evaluate import read_constant

OFFSETS = "cells show offsets in elements"


@dataclass(slots=True, eq=False)
class PhysicalAxis:
    """Positions along one physical axis; `split` is (size of a tile, axis of tiles, axis within a tile)."""

    extent: int
    dims: tuple[int, ...] = ()
    split: tuple[int, PhysicalAxis, PhysicalAxis] | None = None
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

    def position(self, index: int) -> int:
        """Where an index is among the positions."""
        if self.split is None:
            return index
        size, tiles, within = self.split
        return tiles.position(index // size) * within.count() + within.position(index % size)

    def run(self) -> int:
        """Positions in one tile of the first level; 1 where it does not reach this axis."""
        return self.split[2].count() if self.in_tiles and self.split is not None else 1


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The two dimensions of a layout that a picture shows: the most minor two, the lower one along rows.

    Attributes:
        layout: As it was read.
        map: Its index map, with sizes that are numbers.
        row: Positions along rows, padding included.
        column: The same along columns.
        facts: Sentences about shape, padding and bytes, and which slice is shown.
        tiled: Whether tiles reach one of the two.
    """

    layout: Any
    map: IndexMap
    row: PhysicalAxis
    column: PhysicalAxis
    facts: tuple[str, ...]
    tiled: bool

    def index(self, i: int, j: int) -> tuple[int, ...]:
        """The logical index of row i and column j, 0 in all other dimensions."""
        index = [0] * len(self.map.domain.extents)
        for axis, entry in ((self.row, i), (self.column, j)):
            bounds = [self.map.domain.extents[d] for d in axis.dims]
            for d, e in zip(axis.dims, from_row_major(entry, bounds), strict=True):
                index[d] = e
        return tuple(index)

    def names(self) -> tuple[str, str]:
        """Of rows and columns."""
        return _name(self.map, self.row), _name(self.map, self.column)

    def position(self, index: tuple[int, ...]) -> tuple[int, int] | None:
        """The row and column where an element is drawn, None where it is in another slice."""
        found = []
        for axis in (self.row, self.column):
            bounds: Any = [self.map.domain.extents[d] for d in axis.dims]
            found.append(axis.position(row_major(tuple([index[d] for d in axis.dims]), bounds) if axis.dims else 0))
        shown = {*self.row.dims, *self.column.dims}
        return (found[0], found[1]) if all(e == 0 for d, e in enumerate(index) if d not in shown) else None


def plane_of(layout: object) -> Plane:
    """The drawn part of a layout. Raises LayoutError as `read_layout` does, and for size symbols without a value."""
    read, m = read_constant(layout)
    axes = _tiled_axes(read) if isinstance(read, XlaLayout) else None
    facts = _facts(read, m, axes)
    if axes is None:
        axes = [PhysicalAxis(int(extent), (d,)) for d, extent in enumerate(m.domain.extents)]
    visible = axes[-2:]
    # rows are the lower dimension, however memory orders them; an axis that only pads the rank has no dimension
    visible.sort(key=lambda axis: axis.dims[:1])
    row, column = [PhysicalAxis(1), PhysicalAxis(1), *visible][-2:]
    hidden = [axis for axis in axes if axis is not row and axis is not column]
    if any(axis.extent > 1 for axis in hidden):
        others = ", ".join(f"{_name(m, axis)} = 0" for axis in hidden if axis.dims)
        facts = (*facts, f"first slice: {others}")
    return Plane(read, m, row, column, facts, row.in_tiles or column.in_tiles)


def element_grid(
    plane: Plane,
    down: Sequence[int],
    across: Sequence[int],
    caption: str = "",
    look: Callable[[tuple[int, ...]], Cell] | None = None,
) -> CellGrid:
    """Some rows and columns of elements, by their positions in the padded array; a cell is coloured by its tile.

    look: what a cell shows of an index, where that is not its place and its tile's colour.
    """
    row, column = plane.row, plane.column
    text = place_text(plane.map)

    def cell(r: int, i: int | None, c: int, j: int | None) -> Cell:
        if i is None or j is None:
            return PADDING
        if look is not None:
            return look(plane.index(i, j))
        colour = 2 * (r // row.run() % 2) + c // column.run() % 2 if plane.tiled else None
        return Cell(text(plane.index(i, j)), colour)

    indices = [column.at(c) for c in across]
    return CellGrid(
        cells=tuple([tuple([cell(r, row.at(r), c, j) for c, j in zip(across, indices, strict=True)]) for r in down]),
        axes=plane.names(),
        row_labels=tuple([_label(row, r) for r in down]),
        column_labels=tuple([_label(column, c) for c in across]),
        row_breaks=_breaks(row, down),
        column_breaks=_breaks(column, across),
        row_gaps=gaps(down, row.count()),
        column_gaps=gaps(across, column.count()),
        rows=row.count(),
        columns=column.count(),
        caption=caption,
    )


def chosen(axis: PhysicalAxis, most: int, ends: bool) -> list[int]:
    """Which positions are shown."""
    count, run, few = axis.count(), axis.run(), most // 8
    if count <= most or not ends:
        return list(range(min(count, most)))
    if run > most and count > run:
        parts = [range(most - 4 * few), range(run - few, run + 2 * few), range(count - few, count)]
        return sorted({position for part in parts for position in part if position < count})
    first = most - few if run > most - few else (most - few) // run * run
    return [*range(first), *range(count - few, count)]


def _breaks(axis: PhysicalAxis, shown: Sequence[int]) -> frozenset[int]:
    run = axis.run()
    pairs = enumerate(pairwise(shown), 1)
    return frozenset([k for k, (before, at) in pairs if run > 1 and at % run == 0 and at == before + 1])


def gaps(shown: Sequence[int], count: int) -> frozenset[int]:
    """Before which of the shown positions some of `count` are left out; their number stands for "at the end"."""
    return frozenset([k for k, (before, at) in enumerate(pairwise([*shown, count]), 1) if at != before + 1])


def _label(axis: PhysicalAxis, position: int) -> str:
    index = axis.at(position) if axis.dims else None
    return "" if index is None else str(index)


def _tiled_axes(layout: XlaLayout) -> list[PhysicalAxis] | None:
    """The axes before tiling, most major first, split as the tiles split them; None where a tile joins split axes."""
    physical = [PhysicalAxis(int(layout.dims[d]), (d,)) for d in physical_order(layout)]
    whole = list(physical)
    for level, tile in enumerate(layout.tiles):
        padding = [PhysicalAxis(1) for _ in range(len(tile) - len(physical))]
        whole, physical = padding + whole, padding + physical
        kept, reached = physical[: len(physical) - len(tile)], physical[len(physical) - len(tile) :]
        tiles: list[PhysicalAxis] = []
        within: list[PhysicalAxis] = []
        run: list[PhysicalAxis] = []
        for axis, size in zip(reached, tile, strict=True):
            run.append(axis)
            if size == COMBINE:
                continue
            if len(run) > 1:
                if not all(any(part is root for root in whole) for part in run):
                    return None
                axis = PhysicalAxis(product(part.extent for part in run), tuple([d for part in run for d in part.dims]))
                whole = [axis if part is run[-1] else part for part in whole if part not in run[:-1]]
            numbers, positions = PhysicalAxis(-(-axis.extent // int(size))), PhysicalAxis(int(size))
            axis.split = (int(size), numbers, positions)
            axis.in_tiles = level == 0
            tiles.append(numbers)
            within.append(positions)
            run = []
        physical = kept + tiles + within
    return whole


def _facts(layout: Any, m: IndexMap, axes: list[PhysicalAxis] | None) -> tuple[str, ...]:
    shape = " x ".join(str(extent) for extent in m.domain.extents) or "one element"
    if m.memory is None:
        names = f"cells show ({', '.join(m.range.names)})" if m.range.names else "cells show the coordinates"
        names = f"cells show {m.range.names[0]}" if len(m.range.names) == 1 else names
        return (shape, names, *_replicas(m))
    numbers = figures(m)
    elements, padding, allotted = (int(str(numbers[k])) for k in ("elements", "padding_elements", "padded_elements"))
    if axes is not None and layout.tiles:
        padded = sorted(axes, key=lambda axis: axis.dims)
        to = " x ".join(str(axis.count()) for axis in padded)
        shape += f", padded to {to}" if to != shape else ""
    elif isinstance(layout, XlaLayout) and axes is None:
        shape += "; padding is not drawn: a tile joins axes that an earlier one split"
    share = f"{padding} padding ({100 * padding / allotted:.3g} %)" if padding > 0 else "no padding"
    if padding < 0:
        share = f"{allotted} places"
    return (
        shape,
        f"{elements} element{'' if elements == 1 else 's'}, {share}; "
        f"{numbers['unpadded_bytes']} bytes unpadded, {numbers['bytes']} bytes allotted",
        OFFSETS,
        *_replicas(m),
    )


def _replicas(m: IndexMap) -> tuple[str, ...]:
    count = product(m.replicas.extents)
    return () if count == 1 else (f"first of {count} replicas",)


def place_text(m: IndexMap) -> Callable[[tuple[int, ...]], str]:
    """From an index to what its cell shows: the offset, or the coordinates, of its first replica."""
    flat = m if m.memory is None else m.flat()
    replica = (0,) * len(m.replicas.extents)

    def text(index: tuple[int, ...]) -> str:
        return ",".join(str(entry) for entry in flat.at(index, replica))

    return text


def _name(m: IndexMap, axis: PhysicalAxis) -> str:
    names = [m.domain.names[d] for d in axis.dims]
    return names[0] if len(names) == 1 else f"({','.join(names)})" if names else ""
