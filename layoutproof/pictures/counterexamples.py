"""What an answer found, drawn: the elements that collide, the hole, the block past the end, the padding that comes in.

The point of a counterexample is marked in the picture of its layout or kernel, of which the surroundings are shown.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import row_major
from layoutproof.core.result import show_point
from layoutproof.core.size import product
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_elements import window
from layoutproof.pictures import problems
from layoutproof.pictures.drawing import Cell, CellGrid, Drawing, Panel, grid
from layoutproof.pictures.elements import PhysicalAxis, Plane, element_grid, place_text, plane_of
from layoutproof.pictures.kernels import kernel_drawing
from layoutproof.pictures.overview import memory_grid
from layoutproof.pictures.owners import inverse_grid
from layoutproof.questions.evaluate import shown
from layoutproof.registry.read import read_layout

MOST_ROWS, MOST_COLUMNS = 12, 12
"""Rows and columns of a layout that are shown around what is marked."""
FEW_ROWS, FEW_COLUMNS = 6, 8
"""The same on a page with many pictures: 100 findings with two each are less than a megabyte."""
MOST_COMPARED = 1 << 16
"""Elements of two layouts that are compared one by one."""
MOST_FOUND = 20
"""Findings that one picture shows."""
_WORDS = {
    "first": "the first element",
    "second": "the second element, at the same place",
    "element": "the element of the counterexample",
}


def finding_drawing(finding: Finding, layouts: Sequence[object] = ()) -> Drawing | None:
    """The picture of one answer.

    Args:
        finding: With a counterexample, or proved: then its layouts are drawn as they are.
        layouts: What was asked about, in the order of the question; () where the texts of the finding say it.

    Returns:
        The picture, or None where there is nothing to draw: no layout, sizes without a value, no point in it.
    """
    try:
        return _drawn(finding, [read if isinstance(read, Kernel) else read_layout(read) for read in layouts])
    except (LayoutError, Undecided):
        return None


def _drawn(finding: Finding, layouts: Sequence[object]) -> Drawing | None:
    point: Mapping[str, Any] = finding.counterexample or {}
    if not layouts:
        texts = [text for text in (finding.before, finding.after) if text] or [finding.subject]
        layouts = [layout for text in texts for layout in layouts_in(text)]
    kernels = [each if isinstance(each, Kernel) else getattr(each, "kernel", None) for each in layouts]
    title = f"{finding.verdict.value}: {finding.question}"
    said = tuple(part for part in (finding.reason, finding.fix and f"fix: {finding.fix}", finding.hint) if part)
    sizes = point.get("sizes")
    if isinstance(kernels[0], Kernel):
        return _kernel(finding, kernels[0].bind(sizes) if sizes else kernels[0], point, title, said)
    if sizes:
        layouts = [read_layout(with_sizes(str(layout), sizes)) for layout in layouts]
    if "place" in point:
        found = _hole(layouts[0], tuple(point["place"]))
        return None if found is None else Drawing(title, (*said, str(layouts[0])), found)
    if len(layouts) == 2 and ("element" in point or not point):
        at = tuple(point["element"]) if point else None
        drawn = difference(layouts[0], layouts[1], at, _becomes(finding))
        return replace(drawn, title=title, facts=(*said, *drawn.facts))
    hits = {name: tuple(point[name]) for name in _WORDS if name in point}
    panels = tuple(_around(plane_of(layout), list(hits.values()), str(layout)) for layout in layouts)
    meanings = {"hit": "; ".join(f"{_WORDS[name]} {at}" for name, at in hits.items()) or "the counterexample"}
    return Drawing(title, said, panels, len(panels) > 1, meanings)


def layouts_in(text: str) -> list[object]:
    """The layouts that a finding's text names: one or several, a mapping as JSON, `language: value`.

    Raises LayoutError where one cannot be read.

    >>> [str(layout) for layout in layouts_in("strided: f32[3] strides (2) , f32[4]{0}")]
    ['f32[3] strides (2)', 'f32[4]{0}']
    """
    if text.startswith('{"'):
        try:
            return [read_layout(json.loads(text))]
        except ValueError:
            raise LayoutError(problems.CUT_SHORT(), text=text) from None
    found = []
    for part in text.split(" , "):
        language, colon, value = part.partition(": ")
        found.append(read_layout({language: value} if colon and language.isidentifier() else part))
    return found


def side(layout: object, element: tuple[int, ...] | None) -> Drawing:
    """One layout with an element marked where it has it: the neighbourhood, small enough for a page with many."""
    plane = plane_of(layout)
    hits = [element] if element is not None else []
    return Drawing(shown(plane.layout), (), (_around(plane, hits, "", most=(FEW_ROWS, FEW_COLUMNS)),))


def together(title: str, drawings: Sequence[Drawing], of: int = 0) -> Drawing:
    """Several pictures in one, each under its own title; where there is none, that is said.

    of: how many findings there are, drawn or not.
    """
    if not drawings:
        return Drawing(title, ("there is nothing to draw: nothing is refuted, or sizes have no value",), ())
    if len(drawings) == 1:
        return drawings[0]
    panels: list[Panel] = []
    meanings: dict[str, str] = {}
    for drawn in drawings:
        for number, panel in enumerate(drawn.panels):
            said = "; ".join((drawn.title, *drawn.facts)) if number == 0 else ""
            panels.append(replace(panel, caption=": ".join(part for part in (said, panel.caption) if part)))
        meanings |= drawn.meanings
    meanings["hit"] = "the counterexample"
    more = of - len(drawings)
    facts = (f"{len(drawings)} of {of} findings are drawn",) if more > 0 else ()
    return Drawing(title, facts, tuple(panels), meanings=meanings)


def difference(
    first: object, second: object, hit: tuple[int, ...] | None = None, becomes: tuple[int, ...] | None = None
) -> Drawing:
    """Two layouts of one array side by side: what the second puts elsewhere is marked.

    Args:
        first: The old layout.
        second: The new one.
        hit: An index whose surroundings are shown.
        becomes: The index in the second array that `hit` of the first is, where their dimensions differ.

    Raises:
        LayoutError: One of them cannot be read, or has a size without a value.
    """
    planes = [plane_of(layout) for layout in (first, second)]
    texts = [place_text(plane.map) for plane in planes]
    titles = [shown(plane.layout) for plane in planes]
    extents = [plane.map.domain.extents for plane in planes]
    if extents[0] != extents[1] or becomes not in (None, hit):
        panels = tuple(
            _around(plane, [at] if at is not None else [], title)
            for plane, at, title in zip(planes, (hit, becomes), titles, strict=True)
        )
        return Drawing(" to ".join(titles), ("their dimensions differ",), panels, True)
    facts = []
    many = int(product(extents[0]))
    if many <= MOST_COMPARED:
        indices = itertools.product(*(range(int(extent)) for extent in extents[0]))
        moved = sum(texts[0](index) != texts[1](index) for index in indices)
        facts.append(f"{moved} of {many} elements are elsewhere; a cell shows where the element is")
    else:
        facts.append("a cell shows where the element is")

    def panel(number: int) -> CellGrid:
        def look(index: tuple[int, ...]) -> Cell:
            mark = "hit" if index == hit else "moved" if texts[0](index) != texts[1](index) else ""
            return Cell(texts[number](index), _tile(planes[number], index), mark)

        return _around(planes[number], [] if hit is None else [hit], titles[number], look)

    meanings = {"moved": "elsewhere in the other layout", "hit": "the first element that is elsewhere"}
    return Drawing(" to ".join(titles), tuple(facts), (panel(0), panel(1)), True, meanings)


def with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """The text of a layout with numbers for its size symbols.

    >>> with_sizes("f32[N,5]{1,0:T(8,128)}", {"N": 7})
    'f32[7,5]{1,0:T(8,128)}'
    """
    for name, value in sizes.items():
        text = re.sub(rf"(?<![\w@]){re.escape(name)}(?![\w(])", str(value), text)
    return text


def _becomes(finding: Finding) -> tuple[int, ...] | None:
    """The index in the second array, where the reason of a bitcast names it."""
    found = re.match(r"\([\d, ]*\) becomes \(([\d, ]*)\)", finding.reason)
    return tuple(int(part) for part in found[1].split(",") if part.strip()) if found else None


def _tile(plane: Plane, index: tuple[int, ...]) -> int | None:
    at = plane.position(index)
    if at is None or not plane.tiled:
        return None
    return 2 * (at[0] // plane.row.run() % 2) + at[1] // plane.column.run() % 2


def _around(
    plane: Plane,
    hits: Collection[tuple[int, ...]],
    caption: str,
    look: Any = None,
    most: tuple[int, int] = (MOST_ROWS, MOST_COLUMNS),
) -> CellGrid:
    """The elements near those that are hit, which are marked; the first ones where none is.

    Where an element is in another slice than the first, its own slice is drawn.
    """
    hits = [at for at in hits if _inside(plane, at)]
    fixed = _slice(plane, hits)
    places = [plane.position(tuple(0 if d in fixed else e for d, e in enumerate(at))) for at in hits]
    down = _near(plane.row, [at[0] for at in places if at is not None], most[0])
    across = _near(plane.column, [at[1] for at in places if at is not None], most[1])
    text = place_text(plane.map)

    def cell(index: tuple[int, ...]) -> Cell:
        index = tuple(fixed.get(d, e) for d, e in enumerate(index))
        if look is not None:
            found: Cell = look(index)
            return found
        seen = plane.position(tuple(0 if d in fixed else e for d, e in enumerate(index)))
        colour = None
        if plane.tiled and seen is not None:
            colour = 2 * (seen[0] // plane.row.run() % 2) + seen[1] // plane.column.run() % 2
        return Cell(text(index), colour, "hit" if index in hits else "")

    if fixed:
        caption += "; slice " + ", ".join(f"{plane.map.domain.names[d]} = {e}" for d, e in fixed.items())
    return element_grid(plane, down, across, caption, cell)


def _slice(plane: Plane, hits: Sequence[tuple[int, ...]]) -> dict[int, int]:
    """The dimensions that are not drawn, at the entries that the first hit has there."""
    shown_dims = {*plane.row.dims, *plane.column.dims}
    return {d: hits[0][d] for d in range(len(hits[0])) if d not in shown_dims and hits[0][d]} if hits else {}


def _inside(plane: Plane, index: tuple[int, ...]) -> bool:
    extents = plane.map.domain.extents
    return len(index) == len(extents) and all(0 <= e < int(n) for e, n in zip(index, extents, strict=True))


def _near(axis: PhysicalAxis, hits: Sequence[int], most: int) -> list[int]:
    """Positions around those that are hit, at most so many; the first ones where none is."""
    count = axis.count()
    if count <= most or not hits:
        return list(range(min(count, most)))
    wide = max(1, most // len(set(hits)))
    found: set[int] = set()
    for at in set(hits):
        low = max(0, min(at - wide // 2, count - wide))
        found |= set(range(low, min(count, low + wide)))
    return sorted(found)


def _hole(layout: object, place: tuple[int, ...]) -> tuple[Panel, ...] | None:
    """Where nothing is: memory in its order, or the places of a map, with the hole marked."""
    plane = plane_of(layout)
    m = plane.map
    said = f"nothing is placed at {place}"
    if m.memory is not None:
        at = int(row_major(place, m.range.extents))
        memory = memory_grid(plane)
        if memory is None:
            memory = _memory_row(plane, at)
        return None if memory is None else (_holed(memory, at, said),)
    found = inverse_grid(m, 0, f"a cell is a place with the index that it holds; {said}")
    if found is None:
        return None
    wide = found.columns
    at = place[0] * wide + place[1] if len(place) == 2 else place[0]
    return (_holed(found, at, found.caption),)


def _holed(found: CellGrid, at: int, caption: str) -> CellGrid:
    """The grid with the cell number `at`, row by row, as a hole that is hit."""
    start = int(found.row_labels[0] or 0) if found.caption.startswith("memory from") else 0
    r, c = divmod(at - start, found.columns)
    cells = tuple(
        tuple(Cell("hole", None, "hit") if (i, j) == (r, c) else cell for j, cell in enumerate(row))
        for i, row in enumerate(found.cells)
    )
    return replace(found, cells=cells, caption=caption)


def _memory_row(plane: Plane, at: int) -> CellGrid | None:
    """The places around one, with the index that lies there; None where there are too many elements to look at."""
    m = plane.map
    if product(m.domain.extents) > MOST_COMPARED:
        return None
    flat = m.flat()
    indices = itertools.product(*(range(int(extent)) for extent in m.domain.extents))
    held = {flat.at(index)[0]: index for index in indices}
    start = max(0, at - 8)
    places = range(start, start + 16)
    cells = tuple(Cell(",".join(map(str, held[k])), None) if k in held else Cell("", None, "hole") for k in places)
    return grid(
        (cells,), (str(start),), tuple(f"+{k - start}" for k in places), ("offset", ""), f"memory from {start} on"
    )


def _kernel(
    finding: Finding, kernel: Kernel, point: Mapping[str, tuple[int, ...]], title: str, said: tuple[str, ...]
) -> Drawing | None:
    """The walk with the programs of the counterexample marked; for an element also the element and the padding."""
    rank = len(kernel.grid)
    skip = {"element", "block", "sizes", "place"}
    hits = [tuple(at) for name, at in point.items() if name not in skip and isinstance(at, tuple) and len(at) == rank]
    words = f"{finding.subject} {finding.reason}"
    named = [o for o in kernel.operands if re.search(rf"(?<![\w.]){re.escape(o.name)}(?![\w.]*\w)", words)]
    operands = [o.name for o in named if o.windowed] or [o.name for o in kernel.operands if o.windowed]
    block = tuple(point["block"]) if "block" in point else None
    drawn = kernel_drawing(kernel, None, hits, operands, block)
    panels = list(drawn.panels)
    if "element" in point and hits:
        panels = [*_elements(kernel, operands, hits[0], tuple(point["element"])), *panels]
    meanings = dict(drawn.meanings)
    if "element" in point:
        meanings["outside"] = "outside of the array"
    meanings["hit"] = f"the counterexample: {show_point(point)}"
    return Drawing(title, (finding.subject, *said, *drawn.facts), tuple(panels), meanings=meanings)


def _elements(
    kernel: Kernel, operands: Sequence[str], program: tuple[int, ...], element: tuple[int, ...]
) -> list[Panel]:
    """Elements of the blocks that a program sees: the one of the counterexample, and where inputs end."""
    panels: list[Panel] = []
    for operand in kernel.operands:
        if operand.name not in operands:
            continue
        try:
            seen = window(kernel, operand, program)
            dims = tuple(int(extent) for extent in operand.dims)
        except (LayoutError, Undecided, TypeError):
            continue
        hit = element if operand.role == "out" and len(element) == len(dims) else None
        ragged = any(end > n or first < 0 for (first, end), n in zip(seen, dims, strict=True))
        if hit is not None or (operand.role == "in" and ragged):
            panels.append(_block(operand.name, seen, dims, hit))
    return panels


def _block(name: str, seen: Sequence[tuple[int, int]], dims: Sequence[int], hit: tuple[int, ...] | None) -> CellGrid:
    """The elements of a block near one of them, or near the array's edge; what is past the edge is red."""
    rank = len(dims)
    row, column = [None, None, *range(rank)][-2:]
    spans = []
    for k in (row, column):
        if k is None:
            spans.append([0])
            continue
        first, end = seen[k]
        centre = hit[k] if hit is not None else dims[k] if end > dims[k] else first
        low = max(first, min(centre - 4, end - 8))
        spans.append(list(range(low, min(end, low + 8))))
    rest = {k: hit[k] if hit is not None else seen[k][0] for k in range(rank) if k not in (row, column)}

    def cell(i: int, j: int) -> Cell:
        at = dict(rest)
        at |= {k: entry for k, entry in ((row, i), (column, j)) if k is not None}
        index = tuple(at[k] for k in range(rank))
        if not all(0 <= entry < n for entry, n in zip(index, dims, strict=True)):
            return Cell("", None, "outside")
        return Cell("", 0, "hit" if index == hit else "")

    what = (
        "the element that comes out wrong" if hit is not None else "where its array ends: what is past it is undefined"
    )
    return grid(
        tuple(tuple(cell(i, j) for j in spans[1]) for i in spans[0]),
        tuple("" if row is None else str(i) for i in spans[0]),
        tuple("" if column is None else str(j) for j in spans[1]),
        ("" if row is None else f"dim{row}", "" if column is None else f"dim{column}"),
        f"{name}, elements {', '.join(f'{a}:{b}' for a, b in seen)} that the program sees; {what}",
    )
