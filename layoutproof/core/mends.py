"""What to do about a kernel's mistake, where its cause is recognisable; "" where it is not."""

from __future__ import annotations

from layoutproof.core.kernel import Kernel, Operand


def out_of_bounds(kernel: Kernel, operand: Operand, dimension: int) -> str:
    """What to do about blocks outside the array in this dimension."""
    return ""


def uncovered(kernel: Kernel, operand: Operand, dimension: int) -> str:
    """What to do about blocks of this dimension that no program has."""
    return ""
