"""One operand as a map of elements: program, and offset within its block -> element of the array."""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.size import surely_less, symbols_of
from layoutproof.core.space import Space
from layoutproof.core.term import fixed, reads
from layoutproof.kernel import problems
from layoutproof.kernel.kernel import Kernel, Operand

Step = tuple[str, tuple[int, ...], tuple[int, ...]]


def element_map(kernel: Kernel, operand: Operand) -> IndexMap:
    """Domain: the grid.  Replicas: offsets in the block, one per dimension that is not squeezed.  Range: the array.

    A block that reaches past the array has places outside the range: they are padding, not a fault. Elements that a
    bounded slice leaves out are at -1. Raises LayoutError where tables or code that is not modelled choose the block,
    and for a grid that may have no programs or fewer.
    """
    if operand.unmodelled:
        raise LayoutError(f"{operand.name}: {operand.unmodelled}")
    terms = (*operand.index, *(size for size in operand.sizes if size is not None))
    for read in reads(terms):
        what = f"what {read.args[0]} holds"
        raise LayoutError(problems.BLOCK_DEPENDS(operand.name, what))
    grid, dims, sizes = fixed(kernel.grid), fixed(operand.dims), fixed(b.size for b in operand.block)
    known = {*kernel.grid_names, *symbols_of((*grid, *dims, *sizes))}
    for name in (name for term in terms for name in term.names() if name not in known):
        what = f"the size {name}, which is not one of its own"
        raise LayoutError(problems.BLOCK_DEPENDS(operand.name, what))
    for name, extent in zip(kernel.grid_names, grid, strict=True):
        if not surely_less(-1, extent):
            raise LayoutError(problems.GRID_EMPTY(extent, name))
    spread = [k for k, block in enumerate(operand.block) if block.kind != "squeezed"]

    def place(at: Index, replica: Index, on: Numbers) -> Index:
        where = list(starts(kernel, operand, at, on))
        names = dict(zip(kernel.grid_names, at, strict=True))
        for k, offset in zip(spread, replica, strict=True):
            where[k] = where[k] + offset
            size = operand.sizes[k] if operand.sizes else None
            if size is not None:
                where[k] = on.select(on.less(offset, size.evaluate(names, on)), where[k], -1)
        return tuple(where)

    return IndexMap(
        Space(kernel.grid_names, grid),
        Space(tuple(f"dim{k}" for k in range(len(dims))), dims),
        place,
        Space(tuple(f"offset{k}" for k in spread), tuple(sizes[k] for k in spread)),
    )


def starts(kernel: Kernel, operand: Operand, program: Index, on: Numbers = INTS) -> Index:
    """The first element of the block that a program sees, in the array's own coordinates (low padding is below 0)."""
    names = dict(zip(kernel.grid_names, program, strict=True))
    return tuple(
        block.start(term.evaluate(names, on), on) for term, block in zip(operand.index, operand.block, strict=True)
    )


def window(kernel: Kernel, operand: Operand, program: Index) -> tuple[tuple[int, int], ...]:
    """The elements that a program sees: (first, one past the last) per dimension, in the array's own coordinates.

    The part outside of the array is not cut off; of a bounded slice it is the valid part.
    """
    names = dict(zip(kernel.grid_names, program, strict=True))
    sizes = operand.sizes or (None,) * len(operand.block)
    lengths = [
        int(INTS.size(block.size)) if size is None else int(size.evaluate(names, INTS))
        for block, size in zip(operand.block, sizes, strict=True)
    ]
    first = starts(kernel, operand, program)
    return tuple((int(start), int(start) + length) for start, length in zip(first, lengths, strict=True))


def outside(kernel: Kernel, operand: Operand, program: Index) -> str:
    """Why none of the elements that a program sees is in the array, "" where one is.

    JAX's page on BlockSpecs: "At least one element of the block must be within bounds"; its `slices_for_invocation`
    asserts it.
    """
    for k, ((first, end), extent) in enumerate(zip(window(kernel, operand, program), operand.dims, strict=True)):
        size = int(INTS.size(extent))
        if end <= 0 or first >= size:
            return f"the block lies outside the array: elements {first}:{end} of dimension {k}, which has {size}"
    return ""


def unwritten(dtype: str) -> str:
    """What JAX's interpret mode holds where nothing was read or written: NaN, the least integer, or false.

    Of s16 it is 0, for its semaphores are of that type. Source: `uninitialized_value` of
    jax/_src/pallas/primitives.py, jax 0.10.2 and 0.12.0.1.

    >>> unwritten("bf16"), unwritten("s8"), unwritten("u8"), unwritten("pred")
    ('NaN', '-128', '0', 'false')
    """
    if dtype == "s16":
        return "0"
    if dtype[:1] == "s" and dtype[1:].isdigit():
        return str(-(1 << (int(dtype[1:]) - 1)))
    return "0" if dtype[:1] == "u" else "false" if dtype == "pred" else "NaN"


def steps(kernel: Kernel, operand: Operand, program: tuple[int, ...]) -> list[Step]:
    """The steps from a program to its elements: the index map's result, the first element, the end of the block."""
    names = dict(zip(kernel.grid_names, program, strict=True))
    dims = tuple(int(INTS.size(extent)) for extent in operand.dims)
    returned = tuple(int(term.evaluate(names, INTS)) for term in operand.index)
    first = tuple(int(start) for start in starts(kernel, operand, program))
    ends = tuple(start + int(INTS.size(block.size)) for start, block in zip(first, operand.block, strict=True))
    counts = tuple(
        # an array without elements is one block without elements
        -(-extent // max(1, int(INTS.size(b.size)))) if b.kind == "blocked" else extent + b.low + b.high
        for extent, b in zip(dims, operand.block, strict=True)
    )
    return [("index map", returned, counts), ("first element", first, dims), ("end of the block", ends, dims)]
