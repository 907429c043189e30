"""A kernel as each of its arrays sees it: what the answers about one array rest on, and nothing else.

Who asks about many configurations of a kernel asks each such part once, however many configurations share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from layoutproof.core.term import Amount
from layoutproof.kernel.kernel import Block, Kernel, Operand

LIMIT = 1 << 31
"""Above all that int32 holds."""


class ArrayPart(NamedTuple):
    """One array of a kernel. grid: the extents that count for it.  in_order: whether the programs have an order."""

    operands: tuple[Operand, ...]
    grid: tuple[Amount, ...]
    in_order: bool

    def of(self, kernel: Kernel) -> Kernel:
        """The kernel with this array alone."""
        part = replace(kernel, operands=self.operands, grid=self.grid)
        # a call with scratch is for a TPU, whose programs run in order
        return part if self.in_order else replace(part, scratch=(), scoped=())

    def unnamed(self) -> str:
        """What its answers rest on, but for the name of one array alone and its place in the code."""
        operands = [replace(o, name="", source="") for o in self.operands] if len(self.operands) == 1 else self.operands
        return repr((operands, self.grid, self.in_order))


def parts(kernel: Kernel, outputs: bool = False, after: bool = False, most: int = 1) -> list[ArrayPart]:
    """The kernel with one array at a time, and the grid dimensions that its answers rest on.

    Dimensions that choose no block of the array have `most` programs at most.

    Args:
        kernel: With numbers, and without arrays that share a buffer.
        outputs: Of the outputs alone, in the order of the grid; else of all arrays, whatever order programs run in.
        after: Whether dimensions count too that stand outside of one which chooses its block.
        most: Programs of a dimension that chooses no block, at least 1.

    Returns:
        The parts, those of outputs first.
    """
    arrays: dict[str, list[Operand]] = {}
    # what is left out is found of outputs first
    for operand in kernel.outputs if outputs else (*kernel.outputs, *kernel.inputs):
        arrays.setdefault(f"{operand.role} {operand.same_as or operand.name}", []).append(operand)
    found = []
    for operands in arrays.values():
        said = {name for operand in operands for term in operand.terms() for name in term.names()}
        used = [name in said for name in kernel.grid_names]
        if after:
            used = [any(used[k:]) for k in range(len(used))]
        grid = tuple(n if u or type(n) is not int else min(n, most) for u, n in zip(used, kernel.grid, strict=True))
        found.append(ArrayPart(tuple(operands), grid, outputs))
    return found


def reduced(part: ArrayPart, names: Sequence[str], leading: bool = False) -> ArrayPart:
    """The part with one program and one element in place of grid dimensions that are a coordinate of their own.

    Such a one is the block index in one dimension of the array, stands nowhere else in its index map, and has a program
    for each block. Then the map is a product of that dimension's identity and of all else: it reaches every block,
    stays inside, and gives two programs one block, exactly where all else does. What is proved of the
    reduced part is proved of the part; nothing else is said, since words about it would name other numbers.

    Args:
        part: With one array; of more nothing is reduced.
        names: Of the grid dimensions.
        leading: Whether only such dimensions count before which no other has two programs: two programs with one block,
            and all between them, then have one index there.

    Returns:
        The reduced part, or the part itself where it has no such dimension.
    """
    if len(part.operands) != 1:
        return part
    (operand,) = part.operands
    grid, dims, block = [*part.grid], [*operand.dims], [*operand.block]
    for k, (name, n) in enumerate(zip(names, part.grid, strict=True)):
        if n == 1:
            continue
        d = _own(operand, name, n)
        if d is not None:
            grid[k], dims[d], block[d] = 1, 1, replace(block[d], size=1)
        elif leading:
            break
    if tuple(grid) == part.grid:
        return part
    return ArrayPart((replace(operand, dims=tuple(dims), block=tuple(block)),), tuple(grid), part.in_order)


def _own(operand: Operand, name: str, programs: Amount) -> int | None:
    """The dimension of an array whose blocks a grid dimension counts, and nothing else, None = there is none such."""
    where = [d for d, term in enumerate(operand.index) if term.op == "name" and term.args[0] == name]
    if len(where) != 1 or sum(name in term.names() for term in operand.terms()) != 1:
        return None
    d = where[0]
    extent, size = operand.dims[d], operand.block[d].size
    if not (type(programs) is type(extent) is type(size) is int and size > 0 and _whole(operand.block[d])):
        return None
    return d if programs == -(-extent // size) and programs * size < LIMIT else None


def _whole(block: Block) -> bool:
    """Whether an index map counts blocks, or elements of which each is one."""
    return block.kind in ("blocked", "squeezed")
