"""Every block that a program sees has at least one element inside its array, in every dimension.

Why it matters: neither JAX nor the TPU compiler checks index values. A block past the end reads another tensor's memory
or writes over it; in interpret mode it is clamped to the last block and looks right.
Refuted by: the smallest `program` whose block is outside, with the values that it reads from tables as `reads`.
Example: array f32[256], block 128, grid 3, index (i) -> (i): program 2 asks for block 2, and there are blocks 0 and 1.
Partial blocks are in bounds (`partial_blocks` lists them), and so is a block larger than its array.
Element windows must lie in the virtually padded array as a whole, bounded slices in the array itself. Those of a
pipeline of a GPU may end behind it: its copies are clipped (`OOBFillMode.ZEROS`).
Checked per dimension and not by flat offset: a column that runs over into the next row is found.
Source: slices_for_invocation in JAX's page "Grids and BlockSpecs"; jax/_src/pallas/core.py (jax 0.10.2).
Fix: return a block index, not an element offset; let the grid be pl.cdiv(array, block).
Incident: an element offset returned as block index, NaN in silence: https://github.com/jax-ml/jax/issues/31395; fine in
interpret mode, a crash on a TPU: https://github.com/jax-ml/jax/issues/23181
Refuted:
    layoutproof ask blocks_in_bounds "f32[256] blockspec (128,) (i) -> (i,) grid (3,)"
Proved:
    layoutproof ask blocks_in_bounds "f32[256] blockspec (128,) (i) -> (i,) grid (2,)"
Limits: Values that tables hold are assumed (`--assume`), never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from layoutproof.core.claim import And, At, Claim, Outside, PlacePredicate
from layoutproof.core.index_map import Index
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.core.term import Term, reads
from layoutproof.kernel.fixes import KernelFix, out_of_bounds
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, for_each_operand, undecided
from layoutproof.kernel.windows import bounded_ends, consistent, program_map
from layoutproof.pallas import stored_tables
from layoutproof.pallas.every_table import blocks_outside, in_every_table

DIMENSION_AT = Template("pallas.blocks_in_bounds_dimension_at", "{operand} dimension {dimension} at program {program}")
BLOCK_OUTSIDE = Template(
    "pallas.blocks_in_bounds_block_outside",
    "{where}: block index {index} is {window}, and the array has {extent}, blocks 0..{last}",
)
WINDOW_OUTSIDE = Template(
    "pallas.blocks_in_bounds_window_outside", "{where}: {window}, and the array has {extent}{padding}"
)
RETURNED = Template(
    "pallas.blocks_in_bounds_returned", "it returns {value} in dimension {dimension} at program {program}"
)
LOOK_AT_MAP = Template("pallas.blocks_in_bounds_look_at_map", "look at the index map of {operand}: {returned}")
SLICE_OUTSIDE = Template(
    "pallas.blocks_in_bounds_slice_outside",
    "{where}: a slice of {size} elements from {start}; the array has {extent}, the block {block}",
)
OUTSIDE_WHATEVER = Template(
    "pallas.blocks_in_bounds_outside_whatever",
    "{operand} dimension {dimension} at program {program}: the block index {term} is none of 0..{last} in every table "
    "that is as assumed",
)


TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """Per operand with windows: one, or two where some dimensions read tables; one more where a slice is bounded."""
    return for_each_operand((o for o in kernel.operands if o.windowed), lambda operand: _of(kernel, operand))


def unasked(kernel: Kernel) -> Settled:
    """Where no block says what a program sees."""
    return undecided("no operand has windows")


def _of(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    operand = _clipped(kernel, operand)
    # dimensions that read no table are separate: a violation there holds for all tables
    by_reading: dict[bool, list[int]] = {}
    for d, term in enumerate(operand.index):
        by_reading.setdefault(bool(reads((term,))), []).append(d)
    for reading, dims in sorted(by_reading.items()):
        yield _inside(kernel, _only(operand, dims), dims, reading)
    if any(size is not None for size in operand.sizes):
        yield _ends(kernel, operand)


def _clipped(kernel: Kernel, operand: Operand) -> Operand:
    """The operand as a GPU's copies have it: what of a window is behind the end of the array is zero, or not stored."""
    if kernel.platform != "mosaic_gpu":
        return operand
    blocks = list(operand.block)
    for k, block in enumerate(blocks):
        if block.kind == "element" and isinstance(block.size, int):
            blocks[k] = replace(block, high=block.high + block.size - 1)
    return replace(operand, block=tuple(blocks))


def _only(operand: Operand, dims: list[int]) -> Operand:
    """The operand with these of its dimensions alone."""
    return replace(
        operand,
        dims=tuple(operand.dims[d] for d in dims),
        block=tuple(operand.block[d] for d in dims),
        index=tuple(operand.index[d] for d in dims),
        sizes=(),
    )


def _inside(kernel: Kernel, operand: Operand, dims: list[int], reading: bool) -> Obligation:
    m = program_map(kernel, operand)
    reads_ = "reads" if m.replicas.extents else ""
    points = {"program": m.domain} | ({"reads": m.replicas} if reads_ else {})
    consistency = consistent(kernel, operand, [("program", reads_)])

    def wrong(at: Point, on: Numbers) -> tuple[int, int]:
        place = m.place(at["program"], at.get("reads", ()), on)
        sizes = [on.size(extent) for extent in m.range.extents]
        return next((k, v) for k, (v, size) in enumerate(zip(place, sizes, strict=True)) if not 0 <= v < size)

    def explain(at: Point, on: Numbers) -> str:
        k, value = wrong(at, on)
        block, extent, count = operand.block[k], on.size(operand.dims[k]), on.size(m.range.extents[k])
        who = DIMENSION_AT(operand.name, dims[k], at["program"])
        start, size = block.start(value, on), on.size(block.size)
        window = f"elements [{start}, {start + size})"
        if block.kind == "blocked":
            return BLOCK_OUTSIDE(who, value, window, extent, count - 1)
        if block.kind == "squeezed":
            return f"{who}: element {value}, and the array has {extent}"
        padding = f", padding ({block.low}, {block.high})" if block.low or block.high else ""
        return WINDOW_OUTSIDE(who, window, extent, padding)

    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        whole = next(o for o in kernel.operands if o.name == operand.name)
        for dimension in dims:
            yield from out_of_bounds(kernel, whole, dimension)

    def hint(at: Point, on: Numbers) -> str:
        k, value = wrong(at, on)
        returned = RETURNED(value, dims[k], at["program"])
        return LOOK_AT_MAP(operand.name, returned)

    outside = Outside(At(m, "program", reads_))
    claim = Claim(points, And((*consistency, outside)) if consistency else outside, explain, hint=hint)
    found = Obligation(operand.name, claim, reads=reading, source=operand.source, fixes=fixes)
    changing = {stored_tables.before(kernel, name) for name in map(_table, reads(operand.index))} - {""}
    if reading and kernel.relations and not changing:
        return replace(found, graver=(partial(_whatever, kernel, operand, dims, found),))
    return replace(found, graver=(partial(_in_a_run, kernel, found, sorted(changing)),)) if changing else found


def _whatever(kernel: Kernel, operand: Operand, dims: list[int], found: Obligation) -> Obligation:
    """The first program whose block is outside in every table that is as assumed; that holds where there is none."""
    held = replace(found, claim=by_rule(""), graver=())
    for d, (outside, last) in (blocks_outside(operand) or {}).items():
        ids = in_every_table(kernel, [outside])
        if ids is not None:
            program = tuple(ids.values())
            told = Settled(
                Verdict.REFUTED,
                OUTSIDE_WHATEVER(operand.name, dims[d], program, operand.index[d], last),
                by="smt",
                counterexample={"program": program},
            )
            return replace(held, claim=told, reads=False)
    return held


def _table(read: Term) -> str:
    return str(read.args[0].args[0])


def _in_a_run(kernel: Kernel, found: Obligation, tables: list[str]) -> Obligation:
    """The first block outside when the programs are run on ints, and store to the tables; that holds where none is."""
    operand = next(o for o in kernel.operands if o.name == found.subject)
    settled = stored_tables.in_a_run(kernel, operand) or by_rule("")
    return replace(found, claim=settled, tables=tuple(tables), graver=())


def _ends(kernel: Kernel, operand: Operand) -> Obligation:
    """Bounded slices end inside the array, and are no longer than their block."""
    ends = bounded_ends(kernel, operand)
    reads_ = "reads" if ends.replicas.extents else ""
    points = {"program": ends.domain} | ({"reads": ends.replicas} if reads_ else {})

    def too_long(places: tuple[Index, ...], on: Numbers) -> object:
        found: Any = False
        for start, size, block, extent in _rows(places[0], operand, on):
            past = on.less(extent, start + size)
            found = on.logical_or(found, on.logical_or(past, on.logical_or(on.less(size, 0), on.less(block, size))))
        return found

    def explain(at: Point, on: Numbers) -> str:
        for start, size, block, extent in _rows(ends.place(at["program"], at.get("reads", ()), on), operand, on):
            if start + size > extent or not 0 <= size <= block:
                who = f"{operand.name} at program {at['program']}"
                return SLICE_OUTSIDE(who, size, start, extent, block)
        return str(operand)

    consistency = consistent(kernel, operand, [("program", reads_)])
    claim = Claim(points, And((*consistency, PlacePredicate((At(ends, "program", reads_),), too_long))), explain)
    bounded = [term for k, size in enumerate(operand.sizes) if size is not None for term in (operand.index[k], size)]
    return Obligation(operand.name, claim, reads=bool(reads(bounded)), source=operand.source)


def _rows(place: Index, operand: Operand, on: Numbers) -> list[tuple[Any, ...]]:
    """(start, valid size, block, extent) of every bounded dimension."""
    bounded = [k for k, size in enumerate(operand.sizes) if size is not None]
    sizes = [(on.size(operand.block[k].size), on.size(operand.dims[k])) for k in bounded]
    return [(place[2 * n], place[2 * n + 1], *size) for n, size in enumerate(sizes)]
