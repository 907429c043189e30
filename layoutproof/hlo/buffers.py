"""XLA's own sizes, in a buffer assignment, against ours.

Source: `buffer_assignment.cc` (ToString) at 183fa00cb5 (2026-08-22): one line for each value, with the bytes that the
backend's shape size function gives its shape. A tuple is its table of pointers, 8 bytes each on 64-bit hosts.
"""

from __future__ import annotations

from layoutproof.hlo import problems
from layoutproof.hlo.found import Audit
from layoutproof.hlo.shapes import Shape
from layoutproof.hlotext.events import AllocatedValue

POINTER = 8
"""Bytes of a pointer in a tuple's table, on CPU and GPU."""
MOST = 1000
"""Differences that are kept."""


def compare(audit: Audit, value: AllocatedValue, shape: Shape) -> None:
    """Compares one value's size; a difference or what cannot be told goes into the audit."""
    if shape.elements is not None:
        ours = POINTER * len(shape.elements)
        if value.size != ours:
            # a TPU's table has another size, and no layout: nothing of ours says what it is
            audit.add_unknown("size", "tuple table", problems.POINTERS(value.size, len(shape.elements)), value.line)
            return
    else:
        (array,) = shape.arrays
        if array.layout is None:
            audit.add_unknown("size", array.text, array.unknown or "no elements", value.line)
            return
        ours = array.padded
    audit.compared += 1
    if value.size != ours and len(audit.differences) < MOST:
        why = problems.SIZE_DIFFERS(value.size, ours)
        figures = {"theirs": value.size, "ours": ours}
        audit.differences.append(audit.finding("size", f"{value.name} {shape.text}", why, value.line, figures=figures))
