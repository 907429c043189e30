"""Where everything of a drawing is, in pixels: boxes, texts and lines, the same for SVG and PNG."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.pictures.drawing import Bar, Cell, CellGrid, Drawing, before_labels, captions

LETTER = 7.3
"""Width of a character at the size of cells."""
_CELL_HEIGHT, _TITLE, _GAP, _MARGIN, _LINE = 24, 30, 20, 16, 20
_CAPTION = 92
"""Characters of a line of a caption; more begin a new one."""
_BAR_WIDTH, _BAR_HEIGHT = 640, 28


@dataclass(frozen=True, slots=True)
class Box:
    """A cell or part of a bar. fill: a number of the palette, None for none.  mark: as of a cell; `beyond` is
    what of a cell lies past the array's edge."""

    x: float
    y: float
    width: float
    height: float
    fill: int | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A text. x: its middle where `middle`, else its left end; y its baseline.  kind: title, faint, cell or plain.

    A text of kind `cell` stands on a fill of the palette, one of kind `plain` on none.
    """

    x: float
    y: float
    text: str
    kind: str = "faint"
    middle: bool = True


@dataclass(frozen=True, slots=True)
class StraightLine:
    """A straight line. kind: edge (of a tile) or limit."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str = "edge"


Shape = Box | Label | StraightLine


@dataclass(frozen=True, slots=True)
class Scene:
    """All shapes, those that lie above later, and how large the picture is."""

    title: str
    said: str
    width: float
    height: float
    shapes: tuple[Shape, ...]

    def boxes(self, mark: str | None = None) -> list[Box]:
        """Those with this mark, or all."""
        return [s for s in self.shapes if isinstance(s, Box) and (mark is None or s.mark == mark)]

    def texts(self) -> list[str]:
        """Of all words, in order."""
        return [shape.text for shape in self.shapes if isinstance(shape, Label)]


def scene_of(drawing: Drawing) -> Scene:
    """Put every part of a drawing at its place; panels below each other, or side by side where it says so."""
    alone = len(drawing.panels) == 1
    panels = [_bar(panel) if isinstance(panel, Bar) else _grid(panel, alone) for panel in drawing.panels]
    widths = [width for _, width, _ in panels]
    wide = sum(widths) + 2 * _GAP * len(widths) if drawing.across else max(widths, default=0.0)
    shapes: list[Shape] = []
    y: float = _TITLE - _LINE
    for line in textwrap.wrap(drawing.title, max(_CAPTION, int(wide / LETTER)) * 3 // 4) or [""]:
        y += _LINE
        shapes.append(Label(_MARGIN, y, line, "title", False))
    for fact in drawing.lines():
        for line in textwrap.wrap(fact, _CAPTION, subsequent_indent="  ") or [""]:
            y += _LINE
            shapes.append(Label(_MARGIN, y, line, "faint", False))
    top, left, bottom = y + 12, float(_MARGIN), y
    for found, width, height in panels:
        shapes += [_moved(shape, left, top) for shape in found]
        bottom = max(bottom, top + height)
        if drawing.across:
            left += width + 2 * _GAP
        else:
            top += height + _GAP
    y = bottom + 4
    for mark, meaning in drawing.marks().items():
        words = textwrap.wrap(meaning, _CAPTION - 4)
        half = (1.0, 0.5) if mark == "ragged" else (1.0, 1.0)
        shapes += [
            _moved(shape, _MARGIN, y + 4)
            for shape in _cell(Cell("", 6 if mark == "ragged" else None, mark, half), 0, 0, 24, 18)
        ]
        shapes += [Label(_MARGIN + 32, y + 19 + _LINE * k, line, "faint", False) for k, line in enumerate(words)]
        y += _LINE * len(words) + 4
    right = max([_right(shape) for shape in shapes], default=0)
    said = ". ".join((*drawing.lines(), *(c for p in drawing.panels if not alone for c in captions(p))))
    return Scene(drawing.title, said, round(right + _MARGIN), round(y + _MARGIN), tuple(shapes))


def _moved(shape: Shape, x: float, y: float) -> Shape:
    match shape:
        case Box():
            return Box(shape.x + x, shape.y + y, shape.width, shape.height, shape.fill, shape.mark)
        case Label():
            return Label(shape.x + x, shape.y + y, shape.text, shape.kind, shape.middle)
    return StraightLine(shape.x1 + x, shape.y1 + y, shape.x2 + x, shape.y2 + y, shape.kind)


def _right(shape: Shape) -> float:
    match shape:
        case Box():
            return shape.x + shape.width
        case Label():
            wide = len(shape.text) * LETTER * (4 / 3 if shape.kind == "title" else 1)
            return shape.x + (wide / 2 if shape.middle else wide)
    return max(shape.x1, shape.x2)


def _grid(grid: CellGrid, alone: bool) -> tuple[list[Shape], float, float]:
    """The shapes of a grid from (0, 0) on, its width and its height."""
    longest = max([len(cell.text) + bool(cell.mark) for row in grid.cells for cell in row], default=0)
    names = [before_labels(name) for name in grid.axes]
    first = names[1] + (grid.column_labels[0] if grid.column_labels else "")
    longest = max(longest, *map(len, (*grid.column_labels, first)))
    # whole pixels: sharp edges, and short numbers in the file
    cell = max(28, math.ceil(longest * LETTER + 8))
    left = 8 + math.ceil(LETTER * (len(names[0]) + max([len(label) for label in grid.row_labels], default=0)))
    shapes: list[Shape] = []
    top = 8.0
    for caption in () if alone else captions(grid):
        for line in textwrap.wrap(caption, _CAPTION, subsequent_indent="  "):
            shapes.append(Label(0, top + 4, line, "plain", False))
            top += _LINE
    top += 20 if any(grid.column_labels) else 0
    x = _edges(left, cell, len(grid.column_labels), grid.column_gaps)
    y = _edges(top, _CELL_HEIGHT, len(grid.row_labels), grid.row_gaps)
    shapes += _labels(grid, x, y, cell, left, top, names)
    for y0, row in zip(y, grid.cells, strict=False):
        for x0, one in zip(x, row, strict=False):
            shapes += _cell(one, x0, y0, cell)
    shapes += _tile_edges(grid, x, y, cell)
    return shapes, max([_right(shape) for shape in shapes], default=0), y[-1] + 8


def _cell(one: Cell, x: float, y: float, width: float, height: float = _CELL_HEIGHT) -> Iterator[Shape]:
    down, across = one.inside
    if one.mark == "padding":
        yield Box(x, y, width, height, None, "padding")
        return
    yield Box(x, y, width, height, one.colour, "")
    if across < 1:
        yield Box(x + width * across, y, width * (1 - across), height, None, "beyond")
    if down < 1:
        yield Box(x, y + height * down, width * across, height * (1 - down), None, "beyond")
    if one.mark == "outside":
        yield Box(x, y, width, height, None, one.mark)
    elif one.mark not in ("", "ragged"):
        # a frame within its cell, so that neighbours do not cover each other's
        yield Box(x + 2, y + 2, width - 4, height - 4, None, one.mark)
    text = one.text if one.mark in ("ragged", "outside") else one.shown
    if text:
        # beside the hatching where it fits there
        free = width * across if width * across >= LETTER * len(text) + 4 else width
        yield Label(x + free / 2, y + height - 8 + height % 8, text, "plain" if one.colour is None else "cell")


def _labels(
    grid: CellGrid, x: list[float], y: list[float], cell: float, left: float, top: float, names: list[str]
) -> Iterator[Shape]:
    """Each index label, with the names of the axes, and ellipses."""
    for column, label in enumerate(grid.column_labels):
        if label:
            yield Label(x[column] + cell / 2, top - 8, (names[1] if column == 0 else "") + label)
    for row, label in enumerate(grid.row_labels):
        if label:
            text = (names[0] if row == 0 else "") + label
            yield Label(left - 8 - LETTER * len(text) / 2, y[row] + 16, text)
    for gap in sorted(grid.column_gaps):
        yield Label(x[gap] - _GAP / 2, y[len(grid.row_labels) // 2] + 16, "…")
    for gap in sorted(grid.row_gaps):
        yield Label(x[len(grid.column_labels) // 2] + cell / 2, y[gap] - _GAP / 2 + 4, "…")


def _tile_edges(grid: CellGrid, x: list[float], y: list[float], cell: float) -> Iterator[StraightLine]:
    """Lines around tiles or blocks, open where something is left out."""
    if not (grid.row_breaks or grid.column_breaks) or not grid.cells:
        return
    across = _stretches(x, cell, len(grid.column_labels), grid.column_gaps)
    down = _stretches(y, _CELL_HEIGHT, len(grid.row_labels), grid.row_gaps)
    for at in (x[0], *[x[c] for c in sorted(grid.column_breaks)], across[-1][1]):
        yield from (StraightLine(at, start, at, end) for start, end in down)
    for at in (y[0], *[y[r] for r in sorted(grid.row_breaks)], down[-1][1]):
        yield from (StraightLine(start, at, end, at) for start, end in across)


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


def _bar(bar: Bar) -> tuple[list[Shape], float, float]:
    """The shapes of a bar from (0, 0) on: its parts, the limit, a line of words for each part."""
    shapes: list[Shape] = []
    y = 12.0
    for line in textwrap.wrap(bar.caption, _CAPTION, subsequent_indent="  "):
        shapes.append(Label(0, y, line, "plain", False))
        y += _LINE
    scale, x = _BAR_WIDTH / bar.whole(), 0.0
    for number, segment in enumerate(bar.segments):
        width = segment.size * scale
        shapes.append(Box(x, y, width, _BAR_HEIGHT, segment.colour, segment.mark))
        sign = chr(ord("A") + number % 26)
        if width > LETTER + 4 and segment.mark != "padding":
            # at its begin: the line of the limit may cross its middle
            shapes.append(Label(x + min(width / 2, 12), y + 18, sign, "plain" if segment.colour is None else "cell"))
        x += width
    if bar.limit is not None and bar.limit <= bar.whole():
        at = bar.limit * scale
        shapes.append(StraightLine(at, y - 4, at, y + _BAR_HEIGHT + 4, "limit"))
    y += _BAR_HEIGHT
    for number, segment in enumerate(bar.segments):
        y += _LINE
        sign = "." if segment.mark == "padding" else chr(ord("A") + number % 26)
        shapes.append(Label(0, y, f"{sign}  {segment.text}: {segment.size} {bar.unit}", "faint", False))
    for line in textwrap.wrap(bar.verdict(), _CAPTION, subsequent_indent="  "):
        y += _LINE
        shapes.append(Label(0, y, line, "plain", False))
    return shapes, _BAR_WIDTH, y + 8
