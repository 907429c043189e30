"""Swizzles: which bank each unit of a tile lies in, before and after, side by side.

A unit is what a swizzle moves as one, 2^base elements, usually 16 bytes: four of the 32 banks of four bytes of a GPU's
shared memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from layoutproof.core.index_map import IndexMap
from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.pictures.drawing import Cell, CellGrid, Drawing, grid

BANKS, BANK_BYTES, UNIT_BYTES = 32, 4, 16
MOST_ROWS, MOST_UNITS = 32, 16


def swizzle_drawing(layout: AxeLayout | CuteLayout) -> Drawing | None:
    """The first rows of a swizzled tile by banks; None for what is not a swizzled tile of two dimensions."""
    if layout.swizzle is None:
        return None
    base = layout.swizzle.base if isinstance(layout, CuteLayout) else layout.swizzle.per_element
    maps = [replace(layout, swizzle=None).index_map(), layout.index_map()]
    if any(m.sizes() or len(m.domain.extents) != 2 or len(m.range.extents) != 1 for m in maps):
        return None
    unit = 1 << base
    bits = maps[1].memory.bits if maps[1].memory is not None else UNIT_BYTES * 8 // unit
    if bits == 0 or unit * bits < 8 * BANK_BYTES:
        return None
    rows, columns = (int(extent) for extent in maps[1].domain.extents)
    down, across = range(min(rows, MOST_ROWS)), range(0, min(columns, MOST_UNITS * unit), unit)
    grids = tuple(
        _banks(m, down, across, bits, f"{when}; {_conflicts(m, down, bits)}")
        for when, m in zip(("before the swizzle", "after it"), maps, strict=True)
    )
    per = unit * bits // 8 // BANK_BYTES
    said = "" if maps[1].memory is not None else ", as of a unit of 16 bytes"
    facts = (
        f"{rows} x {columns}; a cell is a unit of {unit} elements of {bits} bits{said}: {per} banks of 4 bytes",
        f"it shows the first of its banks, 0 to {BANKS - 1}; units of one colour are in the same banks",
    )
    left_out = len(down) < rows or across.stop < columns
    return Drawing(
        str(layout),
        (*facts, f"the first {len(down)} rows and {len(across)} units of a row") if left_out else facts,
        grids,
        across=True,
    )


def bank(offset: int, bits: int) -> int:
    """The bank of an element.

    >>> bank(64, 16), bank(2, 16)
    (0, 1)
    """
    return offset * bits // 8 // BANK_BYTES % BANKS


def _banks(m: IndexMap, down: Sequence[int], across: Sequence[int], bits: int, caption: str) -> CellGrid:
    def cell(i: int, j: int) -> Cell:
        at = bank(m.at((i, j))[0], bits)
        return Cell(str(at), at * BANK_BYTES // UNIT_BYTES)

    return grid(
        tuple(tuple(cell(i, j) for j in across) for i in down),
        tuple(map(str, down)),
        tuple(map(str, across)),
        (m.domain.names[0], m.domain.names[1]),
        caption,
    )


def _conflicts(m: IndexMap, down: Sequence[int], bits: int) -> str:
    """How many turns eight lanes take that read 16 bytes each of column 0: as many as want one bank."""
    lanes = list(down)[: BANKS * BANK_BYTES // UNIT_BYTES]
    most = max(Counter(bank(m.at((i, 0))[0], bits) for i in lanes).values(), default=0)
    return f"{len(lanes)} rows of column 0 take {most} turn{'' if most == 1 else 's'}"
