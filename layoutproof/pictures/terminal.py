"""A drawing for the terminal."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence

from layoutproof.pictures.drawing import MARKS, Bar, Cell, CellGrid, Drawing, Panel, before_labels, captions
from layoutproof.pictures.palette import TERMINAL

_APART = 4
"""Characters between panels that stand beside each other."""


def terminal_text(drawing: Drawing, width: int = 100, color: bool = False) -> str:
    """The drawing as lines of at most `width` characters. color: ANSI backgrounds, so that adjacent tiles differ."""
    alone = len(drawing.panels) == 1
    lines = [part for line in (drawing.title, *drawing.facts) for part in _wrapped(line, width)]
    panels = list(drawing.panels)
    if drawing.across and not alone:
        most = (width - _APART * (len(panels) - 1)) // len(panels)
        natural = [_panel(panel, 10**6, False, False) for panel in panels]
        if all(len(line) <= most for block in natural for line in block):
            widths = [max(map(len, block), default=0) for block in natural]
            blocks = [_panel(panel, most, color, False) for panel in panels]
            return "\n".join(
                line.rstrip() for line in [*lines, "", *_beside(blocks, natural, widths), *_legend(drawing, width)]
            )
    for panel in panels:
        lines += ["", *_panel(panel, width, color, alone)]
    return "\n".join([line.rstrip() for line in [*lines, *_legend(drawing, width)]])


def _beside(blocks: Sequence[list[str]], natural: Sequence[list[str]], widths: Sequence[int]) -> list[str]:
    """Blocks beside each other. natural: the same without colours, whose length is what is seen."""
    lines = []
    for parts in itertools.zip_longest(*(zip(b, n, strict=True) for b, n in zip(blocks, natural, strict=True))):
        padded = [
            (part[0] + " " * (w - len(part[1]))) if part is not None else " " * w
            for part, w in zip(parts, widths, strict=True)
        ]
        lines.append((" " * _APART).join(padded))
    return lines


def _legend(drawing: Drawing, width: int) -> list[str]:
    said = [f"{MARKS[mark][0]} {meaning}" for mark, meaning in drawing.marks().items() if mark != "padding"]
    return ["", *[part for line in said for part in _wrapped(line, width)]] if said else []


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, max(8, width), subsequent_indent="  ")


def _panel(panel: Panel, width: int, color: bool, alone: bool) -> list[str]:
    if isinstance(panel, Bar):
        return _bar(panel, width, color)
    above = [] if alone else [part for line in captions(panel)[:1] if panel.caption for part in _wrapped(line, width)]
    return above + _grid(panel, width, color)


def _grid(grid: CellGrid, width: int, color: bool) -> list[str]:
    lead = len(grid.axes[0]) + 1 + max([len(label) for label in grid.row_labels], default=0)
    lead = max(lead, len(grid.axes[1]) + 1) + 2
    grid, cell_width = _fitting(grid, width - lead)
    more = " …" if len(grid.column_labels) in grid.column_gaps else ""
    lines = []
    if any(grid.column_labels):
        labels = [_pad(label, cell_width) for label in grid.column_labels]
        name = before_labels(grid.axes[1])
        lines.append(_line(name.rjust(lead - 2), labels, grid, " "))
    for number, (label, row) in enumerate(zip(grid.row_labels, grid.cells, strict=True)):
        if number in grid.row_gaps:
            lines.append(" " * lead + " …")
        if number in grid.row_breaks:
            dashes = ["─" * (cell_width + 1)] * len(row)
            lines.append(" " * lead + _joined(dashes, grid, "┼", "─"))
        name = before_labels(grid.axes[0]) if number == 0 and label else ""
        head = name + label.rjust(lead - 2 - len(name))
        lines.append(_line(head, [_cell(cell, cell_width, color) for cell in row], grid, "│") + more)
    if len(grid.row_labels) in grid.row_gaps:
        lines.append(" " * lead + " …")
    remark = grid.remark()
    return lines + (["", *_wrapped(remark, width)] if remark else [])


def _fitting(grid: CellGrid, room: int) -> tuple[CellGrid, int]:
    """As many columns as fit into `room` characters (at least one), and the width of a cell then."""
    for columns in range(len(grid.column_labels), 1, -1):
        part = grid.cut(columns)
        cell_width = _cell_width(part)
        cuts = sum(1 for c in part.column_breaks | part.column_gaps if c < columns)
        if columns * (cell_width + 1) + 2 * cuts + (2 if columns < grid.columns else 0) <= room:
            return part, cell_width
    part = grid.cut(1)
    return part, _cell_width(part)


def _cell_width(grid: CellGrid) -> int:
    texts = [cell.shown for row in grid.cells for cell in row]
    return max(map(len, (*texts, *grid.column_labels, ".")))


def _pad(text: str, width: int) -> str:
    return f" {text:>{width}}"


def _cell(cell: Cell, width: int, color: bool) -> str:
    text = _pad(cell.shown, width)
    if not color or cell.colour is None:
        return text
    return f"\x1b[48;5;{TERMINAL[cell.colour % len(TERMINAL)]};38;5;16m{text}\x1b[0m"


def _line(head: str, parts: list[str], grid: CellGrid, bar: str) -> str:
    return f"{head}  " + _joined(parts, grid, bar, " ")


def _joined(parts: list[str], grid: CellGrid, bar: str, fill: str) -> str:
    between = dict.fromkeys(grid.column_breaks, f"{fill}{bar}") | {c: " …" for c in grid.column_gaps if c < len(parts)}
    return "".join([between.get(c, "") + part for c, part in enumerate(parts)])


def _bar(bar: Bar, width: int, color: bool) -> list[str]:
    """A row of blocks, as wide as the parts are large, and below it a line for each part."""
    room = max(8, min(width, 80) - 2)
    ends = [
        0,
        *(round(room * sum(s.size for s in bar.segments[: k + 1]) / bar.whole()) for k in range(len(bar.segments))),
    ]
    line = ""
    for number, (segment, start, end) in enumerate(zip(bar.segments, ends, ends[1:], strict=False)):
        sign = chr(ord("A") + number % 26)
        drawn = ("." if segment.mark == "padding" else sign) * (end - start)
        plain = not color or segment.colour is None
        line += drawn if plain else f"\x1b[48;5;{TERMINAL[(segment.colour or 0) % 8]};38;5;16m{drawn}\x1b[0m"
    lines = _wrapped(bar.caption, width) if bar.caption else []
    limit = round(room * min(bar.limit or 0, bar.whole()) / bar.whole()) if bar.limit is not None else room
    lines.append(f"[{line}{' ' * (limit - ends[-1])}]")
    if limit < ends[-1]:
        lines.append(" " * (1 + limit) + "^ the limit")
    for number, segment in enumerate(bar.segments):
        sign = "." if segment.mark == "padding" else chr(ord("A") + number % 26)
        lines += _wrapped(f"  {sign} {segment.text}: {segment.size} {bar.unit}", width)
    lines += [f"  {part}" for part in _wrapped(bar.verdict(), width - 2)]
    return lines
