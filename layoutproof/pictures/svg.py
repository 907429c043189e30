"""Pictures of a layout as files: SVG written by hand, PNG drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterator
from html import escape
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.pictures.grid import Grid, grid_of

MOST = 32
"""Rows and columns of a drawn picture; where there are more, the middle is left out."""

_COLOURS = ("#b3d4f5", "#cdeac0", "#fbe3b0", "#e6d3f2")
_PLAIN = "#f4f4f4"
_INK, _FAINT, _LINE = "#1a1a1a", "#666666", "#ffffff"
_CELL_HEIGHT, _LETTER, _TITLE, _GAP = 24, 7.3, 30, 20


def svg_picture(layout: object) -> str:
    """The picture as one self-contained SVG document, at most MOST x MOST cells.

    Cells are coloured by tile and hold their offset; padding is hatched. Raises LayoutError as `text_picture` does.

    >>> svg_picture("f32[3,5]{1,0:T(2,2)}").count('class="padding"')
    9
    """
    grid = layout if isinstance(layout, Grid) else grid_of(layout, MOST, MOST, ends=True)
    box = _Box(grid)
    said = ". ".join((*grid.facts, *([grid.remark()] if grid.remark() else [])))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box.width:g} {box.height:g}" '
        f'width="{box.width:g}" height="{box.height:g}" role="img" '
        f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="12">',
        f"<title>{escape(grid.title)}</title>",
        f"<desc>{escape(said)}</desc>",
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="6" height="6" fill="#fafafa"/><path d="M0 0V6" stroke="#d0d0d0" stroke-width="2"/></pattern>',
        "</defs>",
        f'<rect width="{box.width:g}" height="{box.height:g}" fill="#ffffff"/>',
        f'<text x="16" y="{_TITLE:g}" font-size="16" font-weight="bold" fill="{_INK}">{escape(grid.title)}</text>',
    ]
    for number, fact in enumerate(box.lines):
        lines.append(f'<text x="16" y="{_TITLE + 20 * (number + 1):g}" fill="{_FAINT}">{escape(fact)}</text>')
    for x, y, label in box.labels():
        lines.append(f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="{_FAINT}">{escape(label)}</text>')
    for x, y, text, colour in box.cells():
        kind = "element" if text else "padding"
        fill = "url(#hatch)" if not text else _PLAIN if colour is None else _COLOURS[colour]
        lines.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{box.cell:g}" height="{_CELL_HEIGHT}" '
            f'fill="{fill}" stroke="{_LINE}"/>'
        )
        if text:
            at = f'x="{x + box.cell / 2:g}" y="{y + 16:g}"'
            lines.append(f'<text {at} text-anchor="middle" fill="{_INK}">{escape(text)}</text>')
    for x1, y1, x2, y2 in box.tile_edges():
        lines.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{_INK}" stroke-width="1.5"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def png_bytes(layout: object) -> bytes:
    """The same picture as PNG, drawn with matplotlib (`pip install matplotlib`).

    Raises LayoutError as `text_picture` does, and when matplotlib is not installed.
    """
    grid = layout if isinstance(layout, Grid) else grid_of(layout, MOST, MOST, ends=True)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle
    except ImportError:
        raise LayoutError("a PNG needs matplotlib: pip install matplotlib") from None
    box = _Box(grid)
    # one unit of the picture is one point of type, so that text fits its cell as it does in the SVG
    figure = Figure(figsize=(box.width / 72, box.height / 72), dpi=108, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, box.width)
    axes.set_ylim(box.height, 0)
    axes.set_axis_off()
    mono: dict[str, Any] = {"family": "monospace", "parse_math": False}
    axes.text(16, _TITLE, grid.title, size=16, weight="bold", color=_INK, **mono)
    for number, fact in enumerate(box.lines):
        axes.text(16, _TITLE + 20 * (number + 1), fact, size=12, color=_FAINT, **mono)
    for x, y, label in box.labels():
        axes.text(x, y, label, size=12, color=_FAINT, ha="center", **mono)
    for x, y, text, colour in box.cells():
        look: dict[str, Any] = {"facecolor": "#fafafa", "edgecolor": "#d0d0d0", "hatch": "////"}
        if text:
            look = {"facecolor": _PLAIN if colour is None else _COLOURS[colour], "edgecolor": _LINE}
        axes.add_patch(Rectangle((x, y), box.cell, _CELL_HEIGHT, linewidth=1, **look))
        if text:
            axes.text(x + box.cell / 2, y + 16, text, size=12, color=_INK, ha="center", **mono)
    for x1, y1, x2, y2 in box.tile_edges():
        axes.plot([x1, x2], [y1, y2], color=_INK, linewidth=1.5)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


class _Box:
    """Where everything of a grid is drawn, in units of one pixel of the SVG."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.lines = [*grid.facts, *([grid.remark()] if grid.remark() else [])]
        longest = max([len(cell.text) for row in grid.cells for cell in row], default=0)
        longest = max(longest, *map(len, (*grid.column_labels, f"{grid.axes[1]}=0")))
        self.cell = max(28, longest * _LETTER + 8)
        self.left = 24 + _LETTER * (len(grid.axes[0]) + 2 + max([len(label) for label in grid.row_labels], default=0))
        self.top = _TITLE + 20 * len(self.lines) + 46
        self.x = _edges(self.left, self.cell, len(grid.column_labels), grid.column_gaps)
        self.y = _edges(self.top, _CELL_HEIGHT, len(grid.row_labels), grid.row_gaps)
        text = max([len(line) * _LETTER for line in self.lines] + [len(grid.title) * _LETTER * 4 / 3])
        self.width = round(max(text + 32, self.x[-1] + 16))
        self.height = round(self.y[-1] + 16)

    def labels(self) -> Iterator[tuple[float, float, str]]:
        """Middle, baseline and text of each index label, axis names and ellipses included."""
        grid = self.grid
        for column, label in enumerate(grid.column_labels):
            if label:
                name = f"{grid.axes[1]}=" if column == 0 else ""
                yield self.x[column] + self.cell / 2, self.top - 8, name + label
        for row, label in enumerate(grid.row_labels):
            if label:
                name = f"{grid.axes[0]}=" if row == 0 else ""
                yield self.left - 8 - _LETTER * len(name + label) / 2, self.y[row] + 16, name + label
        for row in range(len(grid.row_labels)):
            for gap in grid.column_gaps:
                yield self.x[gap] - _GAP / 2, self.y[row] + 16, "…"
        for gap in grid.row_gaps:
            for column in range(len(grid.column_labels)):
                yield self.x[column] + self.cell / 2, self.y[gap] - _GAP / 2 + 4, "…"

    def cells(self) -> Iterator[tuple[float, float, str, int | None]]:
        """Left, top, text and colour of each cell."""
        for y, row in zip(self.y, self.grid.cells, strict=False):
            for x, cell in zip(self.x, row, strict=False):
                yield x, y, cell.text, cell.colour

    def tile_edges(self) -> Iterator[tuple[float, float, float, float]]:
        """Lines around the tiles of the first level, open where something is left out: x1, y1, x2, y2."""
        grid = self.grid
        if not (grid.row_breaks or grid.column_breaks) or not grid.cells:
            return
        across = _stretches(self.x, self.cell, len(grid.column_labels), grid.column_gaps)
        down = _stretches(self.y, _CELL_HEIGHT, len(grid.row_labels), grid.row_gaps)
        for x in (self.x[0], *[self.x[c] for c in sorted(grid.column_breaks)], across[-1][1]):
            yield from ((x, start, x, end) for start, end in down)
        for y in (self.y[0], *[self.y[r] for r in sorted(grid.row_breaks)], down[-1][1]):
            yield from ((start, y, end, y) for start, end in across)


def _edges(start: float, step: float, count: int, gaps: frozenset[int]) -> list[float]:
    """Where each of `count` cells begins, and where the last one, or what is left out after it, ends."""
    edges = []
    for number in range(count + 1):
        start += _GAP if number in gaps else 0
        edges.append(start)
        start += step
    return edges


def _stretches(edges: list[float], step: float, count: int, gaps: frozenset[int]) -> list[tuple[float, float]]:
    """Begin and end of each run of cells without a gap."""
    starts = [0, *sorted(gap for gap in gaps if gap < count)]
    return [(edges[a], edges[b - 1] + step) for a, b in zip(starts, [*starts[1:], count], strict=True)]
