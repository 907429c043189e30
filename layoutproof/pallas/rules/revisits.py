"""An output block that is left is never visited again.

Why it matters: on a TPU the window of an output is written back when the next program has another block, and is not
read in again. A second visit starts from whatever the buffer then holds; a reduction whose axis is not innermost adds
up garbage.
Refuted by: the smallest programs `first`, `between`, `last`: the first and the last have one block, the middle another.
A bounded slice of another length is another block, even where it starts at the same element: it is copied anew.
Example: grid (k, i) with output index (k, i) -> (i, 0): block 0 is left at program (0, 1) and visited again at (1, 0).
Source: docs/pallas/tpu/details.rst of JAX; RevisitMode.IMMEDIATE in jax/_src/pallas/core.py (jax 0.10.2), which is the
default; an operand with revisit "any" is not asked. `pltpu.InterpretParams` raises "Revisited block"; the compiler and
interpret=True say nothing. GPUs have no such windows.
Fix: make the grid dimensions that do not choose the output's block the innermost ones.

How it is proved: where the block depends on the first grid dimensions alone (those of one program left out) and differs
between any two of their values, all visits of a block follow one another. That is an injectivity, for all sizes at
once.
Incident: a reduction whose dimension is not the innermost one gave wrong sums:
https://github.com/jax-ml/jax/issues/23099
Refuted:
    layoutproof ask revisits "f32[32,128] blockspec (8, 128) (k, i) -> (i, 0) grid (2, 4) out"
Proved:
    layoutproof ask revisits "f32[32,128] blockspec (8, 128) (i, k) -> (i, 0) grid (4, 2) out"
Limits: TPUs; GPUs have no such windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from layoutproof.core.claim import And, At, Claim, Differ, Equal, Formula, LexLess
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point
from layoutproof.core.space import Space
from layoutproof.core.term import fixed, reads
from layoutproof.kernel.fixes import KernelFix, innermost
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, for_each_operand, undecided
from layoutproof.kernel.windows import consistent, program_map, terms_map

LEFT = Template(
    "pallas.revisits_left",
    "{operand}: block {block} is visited by program {first}, left for block {other} at {between}, and visited "
    "again at {last}",
)
LOOK = Template(
    "pallas.revisits_look", "look at the order of the grid's dimensions, and at what chooses the block of {operand}"
)


TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per output with windows whose block moves."""
    if kernel.platform != "tpu":
        return ()
    asked = (o for o in kernel.outputs if o.windowed and o.revisit != "any")
    return for_each_operand(asked, lambda operand: _of(kernel, operand))


def unasked(kernel: Kernel) -> Settled:
    """Where no block of an output moves, or there are no such windows."""
    if kernel.platform != "tpu":
        return undecided("a GPU has no windows of outputs that are written back")
    held = any(operand.windowed and operand.revisit != "any" for operand in kernel.outputs)
    return by_rule("") if held else undecided("no output has windows that are written back when they are left")


def _of(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    moving = [k for k in moving_dims(kernel, operand) if kernel.grid[k] != 1]
    if not moving and not reads(operand.terms()):
        return
    m = _visits(kernel, operand)
    names = ("first", "between", "last")
    replicas = tuple(f"{name}_reads" if m.replicas.extents else "" for name in names)
    at = [At(m, name, replica) for name, replica in zip(names, replicas, strict=True)]
    parts: tuple[Formula, ...] = (LexLess("first", "between"), LexLess("between", "last"))
    parts += (Equal(at[0], at[2]), Differ(at[0], at[1]))
    parts += consistent(kernel, operand, list(zip(names, replicas, strict=True)))
    points = dict.fromkeys(names, m.domain)
    if m.replicas.extents:
        points |= dict.fromkeys(replicas, m.replicas)

    def explain(point: Point, on: Numbers) -> str:
        block = m.place(point["first"], point.get("first_reads", ()), on)
        other = m.place(point["between"], point.get("between_reads", ()), on)
        return LEFT(operand.name, block, point["first"], other, point["between"], point["last"])

    def fixes(point: Counterexample) -> Iterator[KernelFix]:
        for k in range(max(moving, default=0)):
            if k not in moving and kernel.grid[k] != 1:
                yield from innermost(kernel, k, operand.name)

    def hint(point: Point, on: Numbers) -> str:
        return LOOK(operand.name)

    claim = Claim(points, And(parts), explain, hint=hint, implied_by=leading_claim(kernel, operand))
    severity = "error" if operand.live else "info"
    yield Obligation(operand.name, claim, severity=severity, source=operand.source, fixes=fixes)


def _visits(kernel: Kernel, operand: Operand) -> IndexMap:
    """Program -> what tells its block from others: of a bounded slice also how long it is."""
    m = program_map(kernel, operand)
    bounded = [k for k, size in enumerate(operand.sizes) if size is not None]
    if not bounded:
        return m
    names = (*m.range.names, *(f"size{k}" for k in bounded))
    extents = (*m.range.extents, *fixed(operand.block[k].size + 1 for k in bounded))
    return replace(terms_map(kernel, operand, operand.terms()), range=Space(names, extents))


def moving_dims(kernel: Kernel, operand: Operand) -> list[int]:
    """The grid dimensions that an operand's index map speaks of."""
    used = {name for term in operand.terms() for name in term.names()}
    return [k for k, name in enumerate(kernel.grid_names) if name in used]


def leading_claim(kernel: Kernel, operand: Operand) -> Claim | None:
    """The claim that the block tells the indices of the leading grid dimensions; None where it may not."""
    moving = [k for k in moving_dims(kernel, operand) if kernel.grid[k] != 1]
    leading = [k for k in range(max(moving, default=-1) + 1) if kernel.grid[k] != 1]
    if leading != moving or reads(operand.terms()):
        return None
    whole = program_map(kernel, operand)
    box = Space(tuple(kernel.grid_names[k] for k in leading), fixed(kernel.grid[k] for k in leading))

    def place(index: Index, replica: Index, on: Numbers) -> Index:
        full: list[Any] = [0] * len(kernel.grid)
        for k, value in zip(leading, index, strict=True):
            full[k] = value
        return whole.place(tuple(full), (), on)

    m = IndexMap(box, whole.range, place)
    return Claim(
        {"first": box, "second": box}, And((LexLess("first", "second"), Equal(At(m, "first"), At(m, "second"))))
    )
