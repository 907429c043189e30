"""Which results are memory of their own, and which are other names for memory that is counted already.

Source: `hlo_dataflow_analysis.cc` (what each opcode's value set is) of openxla/xla at 183fa00cb5 (2026-08-22);
`ConcatBitcast`, which only names slices that are in place already, from dumps of libtpu 0.0.42.1.
"""

from __future__ import annotations

from layoutproof.hlo.shapes import ArrayShape, Shape
from layoutproof.hlotext.module import Instruction

VIEWS = frozenset(
    (
        *("bitcast", "get-tuple-element", "tuple", "while", "call", "conditional", "opt-barrier"),
        *("add-dependency", "domain", "after-all", "async-update", "async-done"),
    )
)
"""Opcodes whose result is memory that an operand, or the root of a computation they call, has made."""

INSIDE = frozenset(("calls", "to_apply", "called_computations", "select", "scatter"))
"""Attributes that name a computation whose instructions have no memory of their own, except of `call`."""


def own(instruction: Instruction, shape: Shape, entry: bool) -> tuple[ArrayShape, ...]:
    """The arrays of a result that take memory which no other instruction has made already.

    A copy-start makes its destination and its context; other starts make all but the operands that they hand through.
    An array that the compiler chooses to update in place is counted as new: the text does not say.
    """
    opcode = instruction.opcode
    if opcode == "parameter":
        return shape.arrays if entry else ()
    if opcode in VIEWS or opcode.endswith("-done"):
        return ()
    if opcode.endswith("-start"):
        return _started(opcode, shape)
    if opcode == "custom-call" and instruction.target == "ConcatBitcast":
        return ()
    if opcode in ("custom-call", "fusion") and "output_to_operand_aliasing=" in instruction.attributes:
        return _not_aliased(instruction, shape)
    return shape.arrays


def _started(opcode: str, shape: Shape) -> tuple[ArrayShape, ...]:
    if shape.elements is None or opcode == "all-reduce-start":
        return shape.arrays
    handed = 1 if opcode == "copy-start" else 0
    return tuple([a for k, element in enumerate(shape.elements) if k != handed for a in element.arrays])


def _not_aliased(instruction: Instruction, shape: Shape) -> tuple[ArrayShape, ...]:
    results = [result for result, _, _ in instruction.aliases]
    if () in results or shape.elements is None:
        return () if results else shape.arrays
    outer = {result[0] for result in results}
    return tuple([a for k, element in enumerate(shape.elements) if k not in outer for a in element.arrays])
