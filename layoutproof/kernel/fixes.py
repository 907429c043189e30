"""What to do about a kernel's mistake, where its cause is recognisable; "" where it is not."""

from __future__ import annotations

from typing import Any

from layoutproof.core.numbers import INTS
from layoutproof.core.size import ceil_div
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel, Operand

MOST = 4096
"""Programs tried when a cause is guessed."""


def out_of_bounds(kernel: Kernel, operand: Operand, dimension: int) -> str:
    """What to do about blocks outside the array in this dimension."""
    block, extent, term = operand.block[dimension], operand.dims[dimension], operand.index[dimension]
    values = values_of(kernel, term)
    if values is None or type(block.size) is not int or type(extent) is not int:
        return ""
    low, high, divisor = values
    count = ceil_div(extent, block.size)
    if block.kind == "blocked" and block.size > 1 and divisor % block.size == 0 and high // block.size < count:
        return (
            f"{term} is an element offset, and a block index is expected: return it divided by {block.size} (JAX "
            f"multiplies the index by the block size itself), or make the dimension pl.Element({block.size})"
        )
    if low < 0:
        return f"the index goes down to {low}: start at 0, or clamp it with jnp.maximum(.., 0)"
    if block.kind == "blocked" and term.op == "name":
        k = kernel.grid_names.index(term.args[0])
        have = f"{kernel.dimension(k)} has {kernel.grid[k]} programs and the array {count} blocks"
        return f"{have}: use pl.cdiv({extent}, {block.size})"
    return f"clamp it with jnp.minimum(.., {count - 1})" if block.kind == "blocked" else ""


def uncovered(kernel: Kernel, operand: Operand, dimension: int) -> str:
    """What to do about blocks of this dimension that no program has."""
    block, extent, term = operand.block[dimension], operand.dims[dimension], operand.index[dimension]
    if term.op != "name" or type(block.size) is not int:
        return ""
    k = kernel.grid_names.index(term.args[0])
    if type(extent) is not int:
        floors = kernel.grid[k] == extent // block.size
        cdiv = f"use pl.cdiv({extent}, {block.size}), and mask the last block"
        return f"{kernel.dimension(k)} floor-divides {extent} by {block.size}: {cdiv}" if floors else ""
    programs, count = kernel.grid[k], ceil_div(extent, block.size)
    if type(programs) is not int or programs >= count:
        return ""
    if programs == extent // block.size:
        said = f"use pl.cdiv({extent}, {block.size}) = {count}, and mask the last block"
        return f"{kernel.dimension(k)} floor-divides {extent} by {block.size}: {said}"
    return f"{kernel.dimension(k)} has {programs} programs for {count} blocks"


def values_of(kernel: Kernel, term: Term) -> tuple[int, int, int] | None:
    """(least, greatest, a divisor of all) of a term over the grid, tried out; None where there is too much to try."""
    from itertools import product
    from math import gcd

    names = [n for n in term.names() if n in kernel.grid_names]
    extents: list[Any] = [kernel.grid[kernel.grid_names.index(n)] for n in names]
    if reads((term,)) or len(names) < len(term.names()) or not all(type(n) is int for n in extents):
        return None
    # the last programs stand for all where there are too many
    ranges = [range(n) if n <= 16 else (0, 1, 2, n - 2, n - 1) for n in extents]
    found = []
    for count, values in enumerate(product(*ranges)):
        if count == MOST:
            return None
        found.append(int(term.evaluate(dict(zip(names, values, strict=True)), INTS)))
    return min(found), max(found), gcd(*found)
