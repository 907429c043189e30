"""Every block lies inside its array as a whole.

Why it matters: the part of a block beyond the array's edge is undefined when read and dropped when written. That is
legal and common, and a kernel that reduces over such a block must mask it; interpret mode fills it with NaN, hardware
with garbage.
Refuted by: the smallest `program` with a block of which a part, or all, is outside (`blocks_in_bounds` tells the two
apart). Always info: whether the body masks is not looked at.
Figures: for each dimension that the block does not divide, the condition of the mask.
Example: array f32[1000], block 256: the last block has 232 elements.
Fix: mask with the condition given, or choose a block size that divides the array.
Incident: 48 of 215 tuned configurations of a batched matmul were wrong, because blocks did not divide K:
https://github.com/pytorch/helion/issues/2031
Refuted:
    layoutproof ask partial_blocks "f32[1000] blockspec (256,) (i) -> (i,) grid (4,)"
Proved:
    layoutproof ask partial_blocks "f32[1024] blockspec (256,) (i) -> (i,) grid (4,)"
Limits: Whether padding spoils a result is `undefined_values`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutproof.core.claim import And, At, Claim, PlacePredicate
from layoutproof.core.index_map import Index
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, for_each_operand, undecided
from layoutproof.kernel.windows import consistent, program_map

PARTIAL = Template("pallas.partial_blocks_partial", "{operand} at program {program}: the array has only {elements}")


TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per operand with a block that may leave its array."""
    return for_each_operand((o for o in kernel.operands if o.windowed), lambda operand: _of(kernel, operand))


def unasked(kernel: Kernel) -> Settled:
    """Where no block can leave its array, or there are no blocks."""
    held = any(operand.windowed for operand in kernel.operands)
    return by_rule("") if held else undecided("no operand has windows")


def _of(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    dims = [d for d in range(len(operand.dims)) if _may_leave(kernel, operand, d)]
    if not dims:
        return
    m = program_map(kernel, operand)
    reads = "reads" if m.replicas.extents else ""
    consistency = consistent(kernel, operand, [("program", reads)])

    def partial(places: tuple[Index, ...], on: Numbers) -> object:
        found: Any = False
        for d in dims:
            start, extent = operand.block[d].start(places[0][d], on), on.size(operand.dims[d])
            beyond = on.less(extent, start + on.size(operand.block[d].size))
            found = on.logical_or(found, on.logical_or(beyond, on.less(start, 0)))
        return found

    def explain(at: Point, on: Numbers) -> str:
        place = m.place(at["program"], at.get("reads", ()), on)
        said = []
        for d in dims:
            size, extent = on.size(operand.block[d].size), on.size(operand.dims[d])
            start = operand.block[d].start(place[d], on)
            if start < 0 or extent < start + size:
                there = max(0, min(extent, start + size) - max(0, start))
                said.append(f"{there} of the block's {size} elements in dimension {d}")
        return PARTIAL(operand.name, at["program"], " and ".join(said))

    figures = {f"mask{d}": _mask(operand, d) for d in dims if not _divides(operand, d)}
    points = {"program": m.domain} | ({"reads": m.replicas} if reads else {})
    claim = Claim(points, And((*consistency, PlacePredicate((At(m, "program", reads),), partial))), explain)
    yield Obligation(operand.name, claim, severity="info", source=operand.source, figures=figures)


def _mask(operand: Operand, d: int) -> str:
    size = operand.block[d].size
    return f"({operand.index[d]}) * {size} + arange({size}) < {operand.dims[d]}"


def _divides(operand: Operand, d: int) -> bool:
    block, extent = operand.block[d], operand.dims[d]
    if block.kind == "squeezed" or block.size == extent:
        return True
    return type(block.size) is int and type(extent) is int and block.size > 0 and extent % block.size == 0


def _may_leave(kernel: Kernel, operand: Operand, d: int) -> bool:
    """Whether some block may reach out of the array in a dimension; windows of other kinds have padding by design."""
    block, extent, term = operand.block[d], operand.dims[d], operand.index[d]
    if block.kind not in ("blocked", "squeezed"):
        return False
    if not _divides(operand, d):
        return True
    if term.op == "int":
        first: Any = term.args[0]
    elif term.op == "name" and term.args[0] in kernel.grid_names:
        first = kernel.grid[kernel.grid_names.index(term.args[0])] - 1
    else:
        return True
    if first == 0:
        return False
    whole = type(first) is type(extent) is type(block.size) is int
    return not (whole and first >= 0 and (first + 1) * block.size <= extent)
