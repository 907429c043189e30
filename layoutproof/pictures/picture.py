"""Pictures of a layout: in the terminal, as SVG, as PNG."""

from __future__ import annotations

import textwrap

from layoutproof.pictures.grid import Cell, Grid, grid_of
from layoutproof.pictures.svg import png_bytes as png_bytes
from layoutproof.pictures.svg import svg_picture as svg_picture

MOST_ROWS = 40
"""Rows of a terminal picture; more are cut."""

# pale backgrounds of the 256-colour palette, black on each of them readable
_BACKGROUNDS = (153, 194, 223, 225)


def text_picture(layout: object, width: int = 100, color: bool = False) -> str:
    """A grid of offsets (or coordinates) with the tiles of the first level apart, at most `width` characters wide.

    Padding shows as dots, what is cut off as an ellipsis. color: ANSI backgrounds, so that adjacent tiles differ.
    Raises LayoutError as `read_layout` does, and for size symbols without a value.

    >>> print(text_picture("f32[3,5]{1,0:T(2,2)}"))
    f32[3,5]{1,0:T(2,2)}
    3 x 5, padded to 4 x 6
    15 elements, 9 padding (37.5 %); 60 bytes unpadded, 96 bytes allotted
    cells show offsets in elements
    <BLANKLINE>
     j=    0  1    2  3    4
    i=0    0  1 │  4  5 │  8  .
      1    2  3 │  6  7 │ 10  .
         ───────┼───────┼──────
      2   12 13 │ 16 17 │ 20  .
           .  . │  .  . │  .  .
    """
    grid = layout if isinstance(layout, Grid) else grid_of(layout, MOST_ROWS, max(1, width // 2))
    lead = len(grid.axes[0]) + 1 + max([len(label) for label in grid.row_labels], default=0)
    lead = max(lead, len(grid.axes[1]) + 1) + 2
    grid, cell_width = _fitting(grid, width - lead)
    lines = [part for line in (grid.title, *grid.facts) for part in _wrapped(line, width)]
    more = " …" if grid.column_gaps else ""
    lines.append("")
    if any(grid.column_labels):
        labels = [_pad(label, cell_width) for label in grid.column_labels]
        lines.append(_line(f"{grid.axes[1]}=".rjust(lead - 2), labels, grid, " "))
    for number, (label, row) in enumerate(zip(grid.row_labels, grid.cells, strict=True)):
        if number in grid.row_breaks:
            dashes = ["─" * (cell_width + 1)] * len(row)
            lines.append(" " * lead + _joined(dashes, grid, "┼", "─"))
        name = f"{grid.axes[0]}=" if number == 0 and label else ""
        head = name + label.rjust(lead - 2 - len(name))
        lines.append(_line(head, [_cell(cell, cell_width, color) for cell in row], grid, "│") + more)
    if grid.row_gaps:
        lines.append(" " * lead + " …")
    if grid.remark():
        lines += ["", *_wrapped(grid.remark(), width)]
    return "\n".join([line.rstrip() for line in lines])


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, max(8, width), subsequent_indent="  ")


def _fitting(grid: Grid, room: int) -> tuple[Grid, int]:
    """As many columns as fit into `room` characters (at least one), and the width of a cell then."""
    for columns in range(len(grid.column_labels), 1, -1):
        part = grid.cut(columns)
        cell_width = _cell_width(part)
        cuts = sum(1 for c in part.column_breaks if c < columns)
        if columns * (cell_width + 1) + 2 * cuts + (2 if columns < grid.columns else 0) <= room:
            return part, cell_width
    part = grid.cut(1)
    return part, _cell_width(part)


def _cell_width(grid: Grid) -> int:
    texts = [cell.text for row in grid.cells for cell in row]
    return max(map(len, (*texts, *grid.column_labels, ".")))


def _pad(text: str, width: int) -> str:
    return f" {text:>{width}}"


def _cell(cell: Cell, width: int, color: bool) -> str:
    text = _pad(cell.text or ".", width)
    if not color or cell.colour is None:
        return text
    return f"\x1b[48;5;{_BACKGROUNDS[cell.colour]};38;5;16m{text}\x1b[0m"


def _line(head: str, parts: list[str], grid: Grid, bar: str) -> str:
    return f"{head}  " + _joined(parts, grid, bar, " ")


def _joined(parts: list[str], grid: Grid, bar: str, fill: str) -> str:
    return "".join([(f"{fill}{bar}" if c in grid.column_breaks else "") + part for c, part in enumerate(parts)])
