"""A picture as data, before anything is drawn: panels of cells and bars, with colours, marks, labels and captions.

What a subject looks like is said once, as a `Drawing`; `terminal.py`, `svg.py` and `png.py` draw any of them. Nothing
is told by colour alone: a cell has its text, a mark has a sign, and borders of tiles are lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

MARKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "padding": (".", "padding: no element is here"),
        "ragged": ("~", "reaches past the array's edge"),
        "outside": ("!", "outside of the array"),
        "hole": ("o", "no element is placed here"),
        "shared": ("=", "another element is at the same place"),
        "hit": ("*", "the counterexample"),
        "moved": (">", "moved"),
    }
)
"""The marks of a cell: the sign that shows it without colour, and its default meaning."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One position of a grid.

    Attributes:
        text: What stands in it; "" for padding.
        colour: Which one of the palette, None for none.
        mark: One of MARKS, "" for none.
        inside: Which part of its rows and of its columns is there, 0 to 1; the rest is drawn as padding.
    """

    text: str = ""
    colour: int | None = None
    mark: str = ""
    inside: tuple[float, float] = (1.0, 1.0)

    @property
    def shown(self) -> str:
        """Its text with the sign of its mark, as a terminal shows it.

        >>> Cell("5", mark="hit").shown, Cell(mark="padding").shown
        ('*5', '.')
        """
        return MARKS[self.mark][0] + self.text if self.mark else self.text


PADDING = Cell(mark="padding")


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Rows and columns of cells.

    Attributes:
        cells: Those that are shown, row by row.
        axes: The names of rows and columns, shown as `i=`.
        row_labels: The index of each row, "" for none.
        column_labels: The index of each column, "" for none.
        row_breaks: The shown rows before which a line is drawn, where a tile or block begins.
        column_breaks: The same of columns.
        row_gaps: The shown rows before which some are left out; the number of shown ones stands for "at the end".
        column_gaps: The same of columns.
        rows: How many there are, shown or not.
        columns: How many there are, shown or not.
        caption: What the grid shows, where the picture has several.
    """

    cells: tuple[tuple[Cell, ...], ...]
    axes: tuple[str, str] = ("", "")
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    row_breaks: frozenset[int] = frozenset()
    column_breaks: frozenset[int] = frozenset()
    row_gaps: frozenset[int] = frozenset()
    column_gaps: frozenset[int] = frozenset()
    rows: int = 0
    columns: int = 0
    caption: str = ""

    def cut(self, columns: int) -> CellGrid:
        """The same grid with only its first columns shown."""
        cells = tuple([row[:columns] for row in self.cells])
        if columns >= len(self.column_labels):
            return self
        gaps = frozenset(gap for gap in self.column_gaps if gap < columns) | {columns}
        return replace(self, cells=cells, column_labels=self.column_labels[:columns], column_gaps=gaps)

    def remark(self) -> str:
        """The part that is not shown, or ""."""
        if len(self.cells) == self.rows and len(self.column_labels) == self.columns:
            return ""
        return f"showing {len(self.cells)} of {self.rows} rows, {len(self.column_labels)} of {self.columns} columns"


def grid(
    cells: tuple[tuple[Cell, ...], ...],
    rows: tuple[str, ...] = (),
    columns: tuple[str, ...] = (),
    axes: tuple[str, str] = ("", ""),
    caption: str = "",
    row_breaks: frozenset[int] = frozenset(),
    column_breaks: frozenset[int] = frozenset(),
) -> CellGrid:
    """A grid of which nothing is left out, with its counts. rows, columns: the labels, () for none."""
    wide = len(cells[0]) if cells else 0
    return CellGrid(
        cells,
        axes,
        rows or ("",) * len(cells),
        columns or ("",) * wide,
        row_breaks,
        column_breaks,
        rows=len(cells),
        columns=wide,
        caption=caption,
    )


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a bar. size: in the bar's unit; its width is proportional to it."""

    size: int
    text: str
    colour: int | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts one after another, as wide as they are large.

    Attributes:
        segments: From the left.
        unit: Of sizes, e.g. "bytes".
        limit: Where a line is drawn, in the same unit; None for none.
        limit_text: What that line is.
        caption: What the bar shows.
    """

    segments: tuple[Segment, ...]
    unit: str
    limit: int | None = None
    limit_text: str = ""
    caption: str = ""

    def total(self) -> int:
        """The sum of the parts."""
        return sum(segment.size for segment in self.segments)

    def whole(self) -> int:
        """What the full width stands for: the parts, or the limit where that is more but in reach of the eye."""
        total = max(1, self.total())
        return max(total, self.limit) if self.limit is not None and self.limit <= 8 * total else total

    def verdict(self) -> str:
        """How the parts stand to the limit; "" without one."""
        if self.limit is None:
            return ""
        used = f"{self.total()} of {self.limit} {self.unit} ({100 * self.total() / max(1, self.limit):.3g} %)"
        line = "the line is the limit" if self.limit <= self.whole() else "the limit is far outside of the picture"
        return f"{used}; {line}: {self.limit_text}"


Panel = CellGrid | Bar


@dataclass(frozen=True, slots=True)
class Drawing:
    """A whole picture.

    Attributes:
        title: What is shown, as its own text.
        facts: Sentences under the title.
        panels: From the top; what belongs together stands together.
        across: Whether panels stand beside each other where there is room.
        meanings: What marks mean here, where that is more than MARKS says.
    """

    title: str
    facts: tuple[str, ...]
    panels: tuple[Panel, ...]
    across: bool = False
    meanings: Mapping[str, str] = field(default_factory=dict)

    def marks(self) -> dict[str, str]:
        """The marks that occur, with what they mean, in the order of MARKS."""
        found = {thing.mark for panel in self.panels for thing in _things(panel)}
        return {mark: self.meanings.get(mark, said) for mark, (_, said) in MARKS.items() if mark in found}

    def lines(self) -> tuple[str, ...]:
        """The sentences under the title; of a picture of one grid also what is not shown of it."""
        (only,) = self.panels if len(self.panels) == 1 else (None,)
        left_out = only.remark() if isinstance(only, CellGrid) else ""
        return (*self.facts, left_out) if left_out else self.facts


def before_labels(axis: str) -> str:
    """What stands before the first label of an axis: its name, or the `+` of what is counted on from a row's label.

    >>> before_labels("i"), before_labels("+"), before_labels("")
    ('i=', '+', '')
    """
    return axis if axis in ("", "+") else f"{axis}="


def captions(panel: Panel) -> tuple[str, ...]:
    """The heading of a panel of several."""
    said = panel.remark() if isinstance(panel, CellGrid) else ""
    return tuple(line for line in (panel.caption, said) if line)


def _things(panel: Panel) -> Iterator[Cell | Segment]:
    if isinstance(panel, Bar):
        yield from panel.segments
    else:
        for row in panel.cells:
            yield from row
