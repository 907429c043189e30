"""A sweep as a picture: a cell for each point, with what it takes of memory, and how long a step takes at the least."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutproof.answers.sweep_text import counts, value_text
from layoutproof.core.amounts import seconds, size
from layoutproof.pictures.drawing import Cell, CellGrid, Drawing, grid
from layoutproof.programs.ranking import FITS, TOO_LARGE, Cheapest, state
from layoutproof.programs.sweep import COMPILED, Axes, SweepRow

_FITS, _OTHER = 3, None
_MEANINGS = {
    "hit": "the cheapest of those that fit and compute the same",
    "outside": "it does not fit into the memory of a device",
    "hole": "no figure: it is refused, wrong, or unknown",
}


def sweep_drawing(
    program: str, axes: Axes, rows: Sequence[SweepRow], memory: int | None, found: Sequence[Cheapest], kept: int
) -> Drawing:
    """The points as two grids, peak memory and the bound on time: the last axis goes to the right, the others down."""
    best = {each.row for each in found}

    def cell(number: int, figure: Callable[[SweepRow], str]) -> Cell:
        row = rows[number]
        word = state(row, memory)
        text = figure(row)
        if word == TOO_LARGE:
            return Cell(text or "too large", _OTHER, "outside")
        if word not in (FITS, COMPILED):
            return Cell(word.replace("_", " "), _OTHER, "hole")
        return Cell(text or "-", _FITS if word == FITS else _OTHER, "hit" if number in best else "")

    panels = (
        _grid(axes, lambda number: cell(number, _peak), "peak memory of one device"),
        _grid(axes, lambda number: cell(number, _bound), "the least time of a step, by the rates of the chip"),
    )
    return Drawing(program, (counts(rows, memory, kept),), panels, meanings=_MEANINGS)


def _grid(axes: Axes, cell: Callable[[int], Cell], caption: str) -> CellGrid:
    *others, last = axes
    wide = len(axes[last])
    labels = [""]
    for name in others:
        labels = [f"{label}{name}={value_text(value)} " for label in labels for value in axes[name]]
    cells = tuple(tuple(cell(down * wide + across) for across in range(wide)) for down in range(len(labels)))
    columns = tuple(map(value_text, axes[last]))
    return grid(cells, tuple(label.strip() for label in labels), columns, ("", last), caption)


def _peak(row: SweepRow) -> str:
    return "" if row.peak is None else size(row.peak)


def _bound(row: SweepRow) -> str:
    return "" if row.bound is None else seconds(row.bound.least)
