"""The integers that a call is given: scalar-prefetch operands, inputs whose blocks lie in SMEM, and some in VMEM.

Of a kernel of SparseCores also the inputs of 32 bits in main memory, out of which it copies its lists of places. Of a
kernel of a GPU the inputs of integers in global memory, out of which its threads load them.

The body reads both as tables whose contents are unknown; assumptions speak of both by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.kernel.kernel import Kernel, Operand, Table


def every_table(kernel: Kernel) -> tuple[Table, ...]:
    """The tables of a call, with what is assumed of them: first the scalar-prefetch operands, then inputs in SMEM.

    Last, of each axis of a mesh of devices around the call, the place of the device that runs it, one for all programs.

    >>> from layoutproof.core.term import Term
    >>> from layoutproof.kernel.kernel import Block
    >>> s = Operand("s", "in", (8,), "s32", (Block("blocked", 4),), (Term("name", "i"),), memory="smem")
    >>> [(table.name, table.dims) for table in every_table(Kernel("k", (2,), ("i",), (s,)))]
    [('s', (8,))]
    """
    said = {table.name: table for table in kernel.scalars}
    more = [_table(operand) for operand in kernel.inputs if is_table(kernel, operand)]
    more += [Table(axis_table(name), (1,), low=0, high=extent, place=True) for name, extent in kernel.axes]
    return (*kernel.tables, *(said.get(table.name, table) for table in more))


def axis_table(name: str) -> str:
    """The name of the table of one entry that stands for the place of a device along an axis of a mesh."""
    return f"axis_{name}"


def assuming(kernel: Kernel, tables: Sequence[Table]) -> Kernel:
    """The kernel with these in the place of those of its tables that have their names."""
    new = {table.name: table for table in tables}
    own = tuple(new.pop(table.name, table) for table in kernel.tables)
    told = {table.name: table for table in (*kernel.scalars, *new.values())}
    told = {name: table for name, table in told.items() if table.assumptions() or table.contents is not None}
    return replace(kernel, tables=own, scalars=tuple(told.values()))


def is_table(kernel: Kernel, operand: Operand) -> bool:
    """Whether an input is a table for programs: they see its whole array.

    It is not for anything but integers, in vector memory but those of which all programs see one block, where a block
    may reach past the end of the array, and where the array changes between programs.
    """
    integers = operand.dtype == "pred" or operand.dtype[:1] in ("s", "u")
    if operand.memory == "gmem" or kernel.platform == "triton":
        return _in_global_memory(kernel, operand)
    if operand.role == "in" and kernel.subcores and not operand.windowed:
        lists = operand.dtype in ("s32", "u32") and all(type(n) is int for n in operand.dims)
        return lists and not _shared(kernel, operand)
    if operand.role != "in" or operand.memory not in ("smem", "vmem") or operand.unmodelled or not integers:
        return False
    if (_shared(kernel, operand) or operand.memory == "vmem") and any(term.op != "int" for term in operand.index):
        return False
    return all(
        block.kind in ("blocked", "squeezed")
        and type(extent) is type(block.size) is int
        and block.size > 0
        and extent % block.size == 0
        for extent, block in zip(operand.dims, operand.block, strict=True)
    )


def _in_global_memory(kernel: Kernel, operand: Operand) -> bool:
    """Whether threads of a GPU look numbers up in an input: those that are not 32 bits wide are multiplied.

    Blocks of Triton are views of an array, which programs see as a whole.
    """
    known = operand.dtype in ("s32", "u32") and all(type(n) is int for n in operand.dims)
    moved = operand.windowed and kernel.platform != "triton"
    return operand.role == "in" and not moved and not operand.unmodelled and known and not _shared(kernel, operand)


def _shared(kernel: Kernel, operand: Operand) -> bool:
    """Whether an input shares its buffer with an output, so that its array changes."""
    return any(a >= 0 and kernel.inputs[a] is operand for a, _ in kernel.aliases)


def _table(operand: Operand) -> Table:
    bits = 1 if operand.dtype == "pred" else ELEMENT_BITS[operand.dtype]
    return Table(operand.name, operand.dims or (1,), bits, signed=operand.dtype[0] == "s", dtype=operand.dtype)
