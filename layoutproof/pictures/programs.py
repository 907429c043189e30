"""The programs of a kernel drawn: which one has each element of an operand, as JAX's page on BlockSpecs prints it."""

from __future__ import annotations

import itertools

from layoutproof.pictures.drawing import Cell, CellGrid, Drawing
from layoutproof.questions.programs import ElementPrograms

LONGEST = 200
"""Rows and columns of a picture at most."""


def program_grid(found: ElementPrograms, most: int = LONGEST) -> Drawing:
    """The last two dimensions of the operand, at index 0 of the others; a cell shows the program's index in digits.

    Where no program has been it shows what interpret mode holds there. Lines are where another block begins.
    """
    ids, operand = found.ids(), found.operand
    hidden = ids.ndim - 2
    facts = [f"grid {found.grid()}, {found.operand.name} {operand.dtype}{list(ids.shape)}"]
    verb = "writes" if operand.role == "out" else "reads"
    facts.append(f"cells show the last program that {verb} the element, its index as decimal digits")
    if hidden > 0:
        facts.append("first slice: " + ", ".join(f"dim{d} = 0" for d in range(hidden)))
        ids = ids[(0,) * hidden]
    ids = ids.reshape((1,) * max(0, 2 - ids.ndim) + ids.shape)
    done = "written" if operand.role == "out" else "read"
    nobody, several = int((found.last < 0).sum()), int((found.times > 1).sum())
    if nobody:
        facts.append(f"{nobody} elements are not {done}: interpret mode holds {found.blank()} there")
    if several and operand.role == "out":
        facts.append(f"{several} elements are written by several programs: where those run at once, any may be last")
    if found.outside:
        facts.append(f"{len(found.outside)} programs have a block outside the array, the first is {found.outside[0]}")
    rows, columns = ids.shape
    shown = ids[:most, :most]
    breaks = [
        frozenset(k for k, (a, b) in enumerate(itertools.pairwise(lines), 1) if a != b)
        for lines in (shown.tolist(), shown.T.tolist())
    ]
    # the number of lines before a row or column says which block it is in
    down, across = (
        [sum(k <= at for k in lines) for at in range(n)] for lines, n in zip(breaks, shown.shape, strict=True)
    )

    def cell(r: int, c: int) -> Cell:
        e = int(shown[r, c])
        return Cell(found.blank()) if e < 0 else Cell(str(e), 2 * (down[r] % 2) + across[c] % 2)

    cells = tuple(tuple(cell(r, c) for c in range(shown.shape[1])) for r in range(shown.shape[0]))
    cells_grid = CellGrid(
        cells,
        ("i", "j"),
        tuple(map(str, range(len(cells)))),
        tuple(map(str, range(shown.shape[1]))),
        breaks[0],
        breaks[1],
        frozenset({len(cells)} if len(cells) < rows else ()),
        frozenset({shown.shape[1]} if shown.shape[1] < columns else ()),
        rows,
        columns,
    )
    return Drawing(str(found.kernel), tuple(facts), (cells_grid,))
