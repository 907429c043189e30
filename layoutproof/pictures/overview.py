"""A tiled array at scale: the grid of its tiles, their order in memory, the first and the last tile from near.

Below the size of a page every element is drawn instead (`elements.py`), and under them memory itself, one row for each
tile of the first level, with lines where a tile of the second level begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from layoutproof.core.size import product
from layoutproof.layouts.xla.shape import COMBINE, XlaLayout
from layoutproof.pictures.drawing import PADDING, Bar, Cell, CellGrid, Drawing, Panel, Segment
from layoutproof.pictures.elements import OFFSETS, PhysicalAxis, Plane, element_grid, gaps, plane_of
from layoutproof.questions.evaluate import shown

WHOLE = 1024
"""Positions that are drawn element by element; an array of more is drawn as its tiles."""
STRIP = 512
"""Places of memory that are drawn one by one."""
_FIRST, _LAST = 6, 3
"""Tiles and elements that are shown of a long dimension, at its begin and at its end."""


def at_scale(layout: object) -> Drawing | None:
    """The overview of a tiled array that has too many positions for a page; None for any other layout."""
    plane = plane_of(layout)
    if not plane.tiled or plane.row.count() * plane.column.count() <= WHOLE:
        return None
    row, column = plane.row, plane.column
    if row.count() // row.run() * (column.count() // column.run()) < 2:
        return None
    tiles = tile_grid(plane)
    size, order = row.run() * column.run(), _numbers(plane)
    last = (row.count() // row.run() - 1, column.count() // column.run() - 1)
    first_caption = f"the first tile from near: tile {order((0, 0))}, {row.run()} x {column.run()} places; {OFFSETS}"
    panels: list[Panel] = [tiles, memory_bar(plane, size)]
    panels.append(_near(plane, (0, 0), first_caption))
    panels.append(_near(plane, last, f"the last tile from near: tile {order(last)}; {OFFSETS}"))
    facts = tuple(fact for fact in plane.facts if fact != OFFSETS)
    return Drawing(shown(plane.layout), facts, tuple(panels), meanings={"ragged": _RAGGED})


_RAGGED = "reaches past the array's edge: the hatched part is padding"


def tile_grid(plane: Plane) -> CellGrid:
    """One cell for each tile of the first level: its number in memory; what of it is padding is hatched."""
    row, column = plane.row, plane.column
    down, across = (_ends(axis.count() // axis.run()) for axis in (row, column))
    number = _numbers(plane)

    def cell(r: int, c: int) -> Cell:
        inside = (_filled(row, r), _filled(column, c))
        if 0.0 in inside:
            return PADDING
        mark = "" if inside == (1.0, 1.0) else "ragged"
        return Cell(str(number((r, c))), 2 * (r % 2) + c % 2, mark, inside)

    rows, columns = row.count() // row.run(), column.count() // column.run()
    return CellGrid(
        cells=tuple(tuple(cell(r, c) for c in across) for r in down),
        axes=plane.names(),
        row_labels=tuple(_start(row, r) for r in down),
        column_labels=tuple(_start(column, c) for c in across),
        row_gaps=gaps(down, rows),
        column_gaps=gaps(across, columns),
        rows=rows,
        columns=columns,
        caption=f"{rows} x {columns} tiles of {row.run()} x {column.run()}; a cell is a tile, its number says when it "
        "comes in memory, labels are the index of its first row and column",
    )


def memory_bar(plane: Plane, size: int) -> Bar:
    """Memory from its first byte to its last: elements and padding, as wide as they are large."""
    m = plane.map
    allotted = int(product(m.range.extents))
    elements = int(product(m.domain.extents))
    bits = m.memory.bits if m.memory is not None else 8
    parts = [Segment(elements * bits // 8, "elements", 0)]
    if allotted > elements:
        parts.append(
            Segment((allotted - elements) * bits // 8, "padding, within the tiles at the edges", None, "padding")
        )
    caption = f"all of its memory by what it holds; {allotted // size} tiles of {size * bits // 8} bytes in a row"
    return Bar(tuple(parts), "bytes", caption=caption)


def memory_grid(plane: Plane) -> CellGrid | None:
    """Memory in its order: one row for each tile of the first level, a cell for each place, the index that lies there.

    Lines stand where a tile of the second level begins. None for a layout without tiles and for too many places.
    """
    layout, m = plane.layout, plane.map
    if not isinstance(layout, XlaLayout):
        return None
    allotted = int(product(m.range.extents))
    if not layout.tiles or not 0 < allotted <= STRIP:
        return None
    size = int(product([int(t) for t in layout.tiles[0] if t != COMBINE]))
    if any(t == COMBINE for t in layout.tiles[0]) or allotted % size:
        return None
    flat = m.flat()
    held: dict[int, tuple[int, ...]] = {}
    for index in itertools.product(*(range(int(extent)) for extent in m.domain.extents)):
        held[flat.at(index)[0]] = index
    inner = int(product([int(t) for t in layout.tiles[1] if t != COMBINE])) if len(layout.tiles) > 1 else 0
    # the last dimension of a padded tile may be longer than the tile says, so a row is what the range says
    wide = size if inner == 0 or size % inner == 0 else allotted
    if wide > 64:
        return None
    rows = [range(start, start + wide) for start in range(0, allotted, wide)]
    cells = tuple(
        tuple(Cell(_index(held[at]), _colour(plane, held[at])) if at in held else PADDING for at in row) for row in rows
    )
    second = f"; lines are where another tile of {inner} places begins" if 0 < inner < wide else ""
    return CellGrid(
        cells=cells,
        axes=("offset", "+"),
        row_labels=tuple(str(row[0]) for row in rows),
        column_labels=tuple(map(str, range(wide))),
        row_breaks=frozenset(range(1, len(rows))),
        column_breaks=frozenset(range(inner, wide, inner)) if 0 < inner < wide else frozenset(),
        rows=len(rows),
        columns=wide,
        caption=f"memory in its order, a row for each tile of {wide} places; a cell is the index that lies there"
        + second,
    )


def _colour(plane: Plane, index: tuple[int, ...]) -> int | None:
    """That of the element's tile in the array."""
    at = plane.position(index)
    return None if at is None else 2 * (at[0] // plane.row.run() % 2) + at[1] // plane.column.run() % 2


def _index(index: Sequence[int]) -> str:
    return ",".join(map(str, index))


def _numbers(plane: Plane) -> Any:
    """From a tile's row and column to its number in memory."""
    flat = plane.map.flat() if plane.map.memory is not None else None
    row, column = plane.row, plane.column
    size = row.run() * column.run()

    def number(tile: tuple[int, int]) -> int | str:
        i, j = row.at(tile[0] * row.run()), column.at(tile[1] * column.run())
        if i is None or j is None or flat is None:
            return ""
        return int(flat.at(plane.index(i, j))[0]) // size

    return number


def _near(plane: Plane, tile: tuple[int, int], caption: str) -> CellGrid:
    """The elements of one tile, the middle left out."""
    places = [
        [t * axis.run() + k for k in _ends(axis.run())] for t, axis in zip(tile, (plane.row, plane.column), strict=True)
    ]
    whole = element_grid(plane, places[0], places[1], caption)
    down, across = (frozenset(k for k in range(1, len(at)) if at[k] != at[k - 1] + 1) for at in places)
    # within its tile: what lies outside of the tile is not left out
    return CellGrid(
        whole.cells, whole.axes, whole.row_labels, whole.column_labels, frozenset(), frozenset(), down, across,
        len(places[0]), len(places[1]), caption,
    )  # fmt: skip


def _ends(count: int) -> list[int]:
    if count <= _FIRST + _LAST + 1:
        return list(range(count))
    return [*range(_FIRST), *range(count - _LAST, count)]


def _filled(axis: PhysicalAxis, tile: int) -> float:
    """Which part of a tile along one axis is there: its positions up to the last one that has an index."""
    run = axis.run()
    for k in range(run - 1, -1, -1):
        if axis.at(tile * run + k) is not None:
            return (k + 1) / run
    return 0.0


def _start(axis: PhysicalAxis, tile: int) -> str:
    index = axis.at(tile * axis.run()) if axis.dims else None
    return "" if index is None else str(index)
