"""A kernel drawn: the walk of its grid over each operand's array, when blocks are moved, its memory.

Source of what is drawn: `kernel.kernel` (which block a program sees), `hardware` (what a memory must hold).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import from_row_major, row_major
from layoutproof.core.numbers import INTS
from layoutproof.core.size import product
from layoutproof.core.term import fixed
from layoutproof.kernel.kernel import Kernel, KernelTarget, MemoryUse, Operand
from layoutproof.kernel.kernel_elements import element_map, window
from layoutproof.pictures import problems
from layoutproof.pictures.drawing import Bar, Cell, CellGrid, Drawing, Panel, Segment, grid
from layoutproof.pictures.elements import gaps

MOST_STEPS = 20_000
"""Steps of a grid that are walked for a picture."""
TRIED = (*range(1, 1025), *range(1025, 1 << 16, 128))
"""Values that a size without one is given for a picture, until one will do: blocks seldom have thousands of rows."""
MOST_SHOWN = 12
"""Steps of a timeline; a longer grid shows its first ones."""
_BEGIN, _END = 10, 4
"""Blocks that are shown of a long dimension, at its begin and at its end."""
_RUNS = 3
"""Runs of steps that a cell names."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GridWalk:
    """Which block of an operand each step sees.

    Attributes:
        operand: Whose.
        dims: The array's extents.
        windows: Of each step in order, (first element, one past the last) per dimension.
        start: The number of the first of these steps.
        whole: Whether these are all steps of the grid: only then is a block without one a hole.
    """

    operand: Operand
    dims: tuple[int, ...]
    windows: tuple[tuple[Range, ...], ...]
    start: int = 0
    whole: bool = True

    def moves(self) -> tuple[bool, ...]:
        """Of each step whether its block is another one than the step before had: then it is moved."""
        return tuple(k == 0 or w != self.windows[k - 1] for k, w in enumerate(self.windows))

    def again(self) -> int:
        """How many moves bring a block that was there before."""
        moved = [w for w, new in zip(self.windows, self.moves(), strict=True) if new]
        return len(moved) - len(set(moved))

    def left(self) -> dict[int, Range]:
        """Of an input, by dimension, the last block where no step sees it and some step sees each other one."""
        if self.operand.role == "out" or not self.whole:
            return {}
        parts = {k: _ranges(self, k) for k in range(len(self.dims))}
        unseen = {k: set(blocks) - {ranges[k] for ranges in self.windows} for k, blocks in parts.items()}
        return {k: blocks[-1] for k, blocks in parts.items() if len(blocks) > 2 and unseen[k] == {blocks[-1]}}

    def is_outside(self, ranges: Sequence[Range]) -> bool:
        """Whether none of a block's elements is in the array."""
        return any(end <= 0 or first >= n for (first, end), n in zip(ranges, self.dims, strict=True))


def programs(kernel: Kernel, start: int = 0) -> list[tuple[int, ...]]:
    """The steps of the grid from `start` on as program indices, in lexicographic order, at most MOST_STEPS.

    LayoutError for sizes without a value.
    """
    extents = []
    for extent in kernel.grid:
        if type(extent) is not int:
            raise LayoutError(problems.GRID_SIZE(extent))
        extents.append(extent)
    steps = range(start, min(start + MOST_STEPS, product(extents)))
    return [tuple(from_row_major(step, extents)) for step in steps]


def example(kernel: Kernel) -> tuple[Kernel, str]:
    """A kernel without sizes that have no value, and a sentence that says which they were given, "" where all had one.

    All get the same number, the first of TRIED for which each dimension of the grid that depends on them has three
    programs: so the first, a middle and the last one are drawn. LayoutError where none of them does.
    """
    open_sizes = kernel.parameters()
    if not open_sizes:
        return kernel, ""
    free = [k for k, extent in enumerate(kernel.grid) if type(extent) is not int]
    for number in TRIED:
        with contextlib.suppress(LayoutError):
            bound = kernel.bind(dict.fromkeys(open_sizes, number))
            counts = [int(INTS.size(extent)) for extent in fixed(bound.grid)]
            if all(counts[k] >= 3 for k in free) and product(counts) <= MOST_STEPS:
                given = ", ".join(f"{name} = {number}" for name in open_sizes)
                return bound, f"drawn for {given}: sizes have no value"
    raise LayoutError(problems.NO_SMALL_SIZES(", ".join(open_sizes)))


def walk(kernel: Kernel, operand: Operand, start: int = 0) -> GridWalk:
    """Where each step is in an operand's array. LayoutError where tables or sizes without a value choose the blocks."""
    m = element_map(kernel, operand)
    if m.sizes():
        raise LayoutError(problems.SIZES(operand.name, ", ".join(m.sizes())))
    dims = tuple(int(INTS.size(extent)) for extent in operand.dims)
    windows = tuple(window(kernel, operand, p) for p in programs(kernel, start))
    return GridWalk(operand, dims, windows, start, len(windows) == product(fixed(kernel.grid)))


def kernel_drawing(
    kernel: Kernel,
    target: KernelTarget | None = None,
    hits: Sequence[tuple[int, ...]] = (),
    operands: Collection[str] | None = None,
    block: tuple[int, ...] | None = None,
) -> Drawing:
    """The whole picture of a kernel.

    Args:
        kernel: Whose; sizes without a value get one for the picture, and it says which.
        target: Whose memory the blocks lie in, None to leave it out.
        hits: Programs whose blocks are marked; of a long grid the steps around the first one are drawn.
        operands: The names of those that are drawn, None for all.
        block: The index of a block that is shown, also where many are left out.

    Raises:
        LayoutError: No small value of its sizes draws it.
    """
    kernel, given = example(kernel)
    every = programs(kernel)
    marked = [int(row_major(hit, fixed(kernel.grid))) for hit in hits if len(hit) == len(kernel.grid)]
    start = 0 if not marked or marked[0] < len(every) else max(0, marked[0] - MOST_STEPS // 2)
    steps = every if start == 0 else programs(kernel, start)
    facts = [f"grid ({', '.join(map(str, kernel.grid))}): {product(kernel.grid)} programs, the last dimension fastest"]
    facts += [given] if given else []
    if len(steps) < product(kernel.grid):
        facts.append(f"only {len(steps)} steps are drawn, from step {start} on")
    at = [step for step in marked if 0 <= step - start < len(steps)]
    panels: list[Panel] = []
    walks = []
    for operand in kernel.operands:
        if operands is not None and operand.name not in operands:
            continue
        if not operand.windowed:
            facts.append(f"{operand.name} lies in {operand.memory}: it has no blocks, the body moves it")
            continue
        try:
            found = walk(kernel, operand, start)
        except LayoutError as why:
            facts.append(f"{operand.name} is not drawn: {why}")
            continue
        walks.append(found)
        panels.append(walk_grid(found, at, block))
    if walks and steps:
        panels.append(timeline(steps, walks, at))
    if target is not None:
        try:
            panels += [memory_bar(memory) for memory in target.memory(kernel) if memory.used]
        except Undecided as why:
            facts.append(f"memory is not drawn: {why}")
    meanings = {
        "ragged": "partly past the array's edge: there, reads are undefined and writes are dropped",
        "outside": "the whole block lies outside of the array",
        "hole": f"no program {' or '.join(sorted({'reads' if w.left() else 'writes' for w in walks}))} this block",
        "moved": "a block is moved: before the step for inputs, after it for outputs",
        "hit": "the program of the counterexample",
    }
    name = kernel.name if kernel.name != "blockspec" else str(kernel.operands[0])
    return Drawing(name, tuple(facts), tuple(panels), meanings=meanings)


@dataclass(frozen=True, slots=True)
class _Cut:
    """An array as rows and columns of blocks.

    parts: the blocks of each dimension.  row, column: the dimensions that are drawn, None for none.  hidden: of each
    other dimension the block that is shown.  seen: block -> the steps that see it.  left: as `GridWalk.left`.
    """

    parts: tuple[list[Range], ...]
    row: int | None
    column: int | None
    hidden: Mapping[int, Range]
    seen: Mapping[tuple[Range, ...], list[int]]
    left: Mapping[int, Range]

    def block(self, row: int, column: int) -> tuple[Range, ...]:
        """The elements of the block in a row and a column."""
        at = dict(self.hidden)
        at |= {k: self.parts[k][n] for k, n in ((self.row, row), (self.column, column)) if k is not None}
        return tuple(at[k] for k in range(len(self.parts)))

    def count(self, k: int | None) -> int:
        """How many blocks there are along a dimension that is drawn."""
        return 1 if k is None else len(self.parts[k])

    def label(self, k: int | None, block: int) -> str:
        """The label of a row, or of a column."""
        return "" if k is None else _label(self.parts[k][block])


def walk_grid(found: GridWalk, hits: Collection[int] = (), block: tuple[int, ...] | None = None) -> CellGrid:
    """The array cut into blocks; a cell is a block and names the steps that see it, runs of steps as `0-3`.

    Of more than two dimensions the two with the most blocks are drawn, at the first block of the others.
    """
    cut = _cut(found, hits)
    drawn = (cut.row, cut.column)
    rows, columns = map(cut.count, drawn)
    wanted = [found.windows[step - found.start] for step in hits]
    near = []
    for k in drawn:
        at = [] if k is None else [cut.parts[k].index(ranges[k]) for ranges in wanted]
        at += [block[k]] if k is not None and block is not None and k < len(block) else []
        near.append(at)
    down, across = _ends(rows, near[0]), _ends(columns, near[1])
    many = any(len(cut.parts[k]) > 1 for k in cut.hidden)
    return CellGrid(
        cells=tuple(tuple(_cell(found, cut, hits, r, c) for c in across) for r in down),
        axes=("" if cut.row is None else f"dim{cut.row}", "" if cut.column is None else f"dim{cut.column}"),
        row_labels=tuple(cut.label(cut.row, r) for r in down),
        column_labels=tuple(cut.label(cut.column, c) for c in across),
        row_gaps=gaps(down, rows),
        column_gaps=gaps(across, columns),
        rows=rows,
        columns=columns,
        caption=_caption(found, tuple(cut.hidden) if many else ()),
    )


def _cut(found: GridWalk, hits: Collection[int]) -> _Cut:
    """The array of a walk, cut; hits: steps, the first of which is shown of dimensions that are not drawn."""
    parts = tuple(_ranges(found, k) for k in range(len(found.dims)))
    chosen = sorted(sorted(range(len(parts)), key=lambda k: (-len(parts[k]), -k))[:2])
    row, column = [None, None, *chosen][-2:]
    shown = found.windows[min(hits) - found.start] if hits else tuple(blocks[0] for blocks in parts)
    seen: dict[tuple[Range, ...], list[int]] = {}
    for step, ranges in enumerate(found.windows, found.start):
        seen.setdefault(ranges, []).append(step)
    return _Cut(parts, row, column, {k: shown[k] for k in range(len(parts)) if k not in chosen}, seen, found.left())


def _cell(found: GridWalk, cut: _Cut, hits: Collection[int], row: int, column: int) -> Cell:
    """One block: the steps that see it, or that none does."""
    ranges = cut.block(row, column)
    steps = cut.seen.get(ranges, [])
    if not steps and not found.is_outside(ranges):
        missed = found.operand.role == "out" or any(ranges[k] == last for k, last in cut.left.items())
        return Cell("", None, "hole" if missed and found.whole else "")
    down, across = (1.0 if k is None else _share(ranges[k], found.dims[k]) for k in (cut.row, cut.column))
    return _seen_cell(found, ranges, steps, hits, 2 * (row % 2) + column % 2, (down, across))


def _seen_cell(
    found: GridWalk,
    ranges: tuple[Range, ...],
    steps: Sequence[int],
    hits: Collection[int],
    colour: int,
    inside: tuple[float, float],
) -> Cell:
    """A block that steps see, or that is outside of the array. inside: how much of it is in the array, down, across."""
    hit = not set(steps).isdisjoint(hits)
    if found.is_outside(ranges):
        # a frame for the counterexample, and hatched as a whole: none of it is in the array
        return Cell(runs(steps), None, "hit" if hit else "outside", (1.0, 0.0) if hit else (1.0, 1.0))
    if hit:
        return Cell(runs(steps), colour, "hit", inside if min(inside) > 0 else (1.0, 1.0))
    ragged = any(first < 0 or end > n for (first, end), n in zip(ranges, found.dims, strict=True))
    return Cell(runs(steps), colour, "ragged" if ragged else "", inside)


def _caption(found: GridWalk, hidden: Sequence[int]) -> str:
    """The contents of the picture. hidden: the dimensions of which only the first block is drawn."""
    operand = found.operand
    verb = "writes" if operand.role == "out" else "reads"
    size = " x ".join(str(block.size) for block in operand.block)
    array = f"{operand.name} {operand.dtype}[{','.join(map(str, found.dims))}]"
    caption = (
        f"{array}, {verb} blocks of {size or 'one element'}; a cell is a block with the steps that see it, in order"
    )
    again = found.again()
    caption += f"; {again} moves bring a block that was there before" if again else ""
    return caption + ("; first block of " + ", ".join(f"dimension {k}" for k in hidden) if hidden else "")


def _ranges(found: GridWalk, k: int) -> list[Range]:
    """The blocks along a dimension, whether any program sees them or not; those that programs see beside them."""
    block, extent = found.operand.block[k], found.dims[k]
    ranges = {ranges[k] for ranges in found.windows}
    if block.kind in ("blocked", "squeezed"):
        size = max(1, int(INTS.size(block.size)))
        ranges |= {(at, at + size) for at in range(0, min(extent, size * MOST_STEPS), size)}
    return sorted(ranges) or [(0, extent)]


def runs(steps: Sequence[int]) -> str:
    """Steps as runs.

    >>> runs([0, 1, 2, 6, 7, 9])
    '0-2,6-7,9'
    """
    found: list[list[int]] = []
    for step in steps:
        if found and step == found[-1][1] + 1:
            found[-1][1] = step
        else:
            found.append([step, step])
    parts = [str(a) if a == b else f"{a}-{b}" for a, b in found[:_RUNS]]
    return ",".join(parts) + ("…" if len(found) > _RUNS else "")


def timeline(steps: Sequence[tuple[int, ...]], walks: Sequence[GridWalk], hits: Sequence[int] = ()) -> CellGrid:
    """A row for each operand, a column for each step of the grid: which block it has, and when one is moved."""
    first_hit = min(hits) - walks[0].start if hits else 0
    first = 0 if first_hit < MOST_SHOWN else first_hit - MOST_SHOWN // 2
    shown = range(first, min(len(steps), first + MOST_SHOWN))
    rows = []
    for found in walks:
        moves, out = found.moves(), found.operand.role == "out"
        number = {w: k for k, w in enumerate(dict.fromkeys(found.windows))}
        leaves = [k + 1 == len(moves) or moves[k + 1] for k in range(len(moves))]
        rows.append(
            tuple(
                Cell(
                    ",".join(str(start) for start, _ in found.windows[k]),
                    number[found.windows[k]] % 6,
                    "hit" if k + found.start in hits else "moved" if (leaves[k] if out else moves[k]) else "",
                )
                for k in shown
            )
        )
    caption = "when blocks are moved: a column is a step with its program, a cell the first element of the block it has"
    made = grid(
        tuple(rows),
        tuple(f"{w.operand.name} {w.operand.role}" for w in walks),
        tuple(",".join(map(str, steps[k])) for k in shown),
        ("", "program"),
        caption,
    )
    left_out = frozenset(({0} if first else set()) | ({len(shown)} if shown.stop < len(steps) else set()))
    return CellGrid(
        made.cells, made.axes, made.row_labels, made.column_labels, column_gaps=left_out, rows=made.rows,
        columns=len(steps), caption=caption,
    )  # fmt: skip


def memory_bar(memory: MemoryUse) -> Bar:
    """The use of one memory, the largest part first, and its limit."""
    parts = sorted(memory.parts, key=lambda part: -part[1])
    segments = tuple(Segment(size, what, k % 6) for k, (what, size) in enumerate(parts))
    caption = f"{memory.name}: {memory}"
    return Bar(segments, "bytes", memory.limit, memory.limit_from, caption)


def _share(ranges: Range, extent: int) -> float:
    """Which part of a block's length, from its begin, is in the array."""
    first, end = ranges
    return max(0.0, min(end, extent) - first) / (end - first) if end > first and first < extent else 1.0


def _label(ranges: Range) -> str:
    return f"{ranges[0]}:{ranges[1]}"


def _ends(count: int, near: Sequence[int] = ()) -> list[int]:
    """The first and the last ones, and those around the ones that are wanted."""
    if count <= _BEGIN + _END + 1:
        return list(range(count))
    found = {*range(_BEGIN), *range(count - _END, count)}
    for at in near:
        found |= set(range(max(0, at - 1), min(count, at + 2)))
    return sorted(found)
