"""Windows of Element dimensions start at tiles, and the compiler can prove it.

Why it matters: the compiler refuses what it cannot prove, and believes a hint (pl.multiple_of) that is false: then data
come from the wrong rows, silently.
Refuted by: the term that the compiler cannot see through; or the smallest `program` whose window starts off a tile.
Example: i * 8 is believed and true; i * 8 + 8 is true and refused; pl.multiple_of(i * 4, 8) is believed and false.
Fix: write the start as a product with the tile.
Incident: the compiler could not prove that a start is aligned, and refused the kernel:
https://github.com/jax-ml/jax/issues/36770
Refuted:
    layoutproof ask element_alignment '{kernel: {grid: [7],
        inputs: [{name: x, array: "f32[72,128]", block: ["Element(16)", "Element(128)"], index: "(i) -> (i * 9, 0)"}],
        outputs: [{name: o, array: "f32[56,128]", block: [8, 128], index: "(i) -> (i, 0)"}]}}' --target v5e
Proved:
    layoutproof ask element_alignment '{kernel: {grid: [7],
        inputs: [{name: x, array: "f32[72,128]", block: ["Element(16)", "Element(128)"], index: "(i) -> (i * 8, 0)"}],
        outputs: [{name: o, array: "f32[56,128]", block: [8, 128], index: "(i) -> (i, 0)"}]}}' --target v5e
Limits: By the rules of measured compiler versions, which the answer names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutproof.core.claim import And, At, Claim, PlacePredicate
from layoutproof.core.index_map import Index
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.kernel.kernel import Kernel, KernelTarget, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, for_each_operand, undecided
from layoutproof.kernel.windows import consistent, program_map

NO_MULTIPLE = Template(
    "pallas.element_alignment_no_multiple",
    "{where}: dimension {dimension} starts at {place}, which is no multiple of the tile's {tile}",
)


TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """For each operand with Element dimensions: the compiler's prover, and the truth."""
    return for_each_operand((o for o in kernel.operands if o.windowed), lambda operand: _of(kernel, operand, target))


def unasked(kernel: Kernel) -> Settled:
    """Where no window has to be aligned."""
    return undecided("none of the last two dimensions of a block is an Element that is shorter than its array")


def _of(kernel: Kernel, operand: Operand, target: KernelTarget) -> Iterator[Obligation]:
    tiles = target.misaligned(operand)
    if not tiles:
        return
    yield Obligation(operand.name, by_rule(target.refuses_index(operand)), source=operand.source)
    m = program_map(kernel, operand)
    reads = "reads" if m.replicas.extents else ""

    def off(places: tuple[Index, ...], on: Numbers) -> object:
        found: Any = False
        for d, tile in tiles:
            found = on.logical_or(found, on.logical_not(on.equal(places[0][d] % tile, 0)))
        return found

    def explain(at: Point, on: Numbers) -> str:
        place = m.place(at["program"], at.get("reads", ()), on)
        d, tile = next((d, tile) for d, tile in tiles if place[d] % tile)
        who = f"{operand.name} at program {at['program']}"
        return NO_MULTIPLE(who, d, place[d], tile)

    points = {"program": m.domain} | ({"reads": m.replicas} if reads else {})
    consistency = consistent(kernel, operand, [("program", reads)])
    claim = Claim(points, And((*consistency, PlacePredicate((At(m, "program", reads),), off))), explain)
    yield Obligation(operand.name, claim, source=operand.source)
