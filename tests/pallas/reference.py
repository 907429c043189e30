"""Kernels run by hand: every program in order, on plain ints. What the proofs of kernels are held against.

Nothing here is clever on purpose: windows are the rule of `kernel.kernel` written out, programs run one after the other
in lexicographic order, and what a window has outside its array is neither read nor written.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.expression import parse_expression
from layoutproof.core.index_map import from_row_major
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import product
from layoutproof.core.term import Term, reads, substitute
from layoutproof.kernel.kernel import Kernel, Operand

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_PROGRAMS = 1_000_000
"""Programs of a grid that is walked."""

MOST_ELEMENTS = 1 << 26
"""Elements of an array that is filled in."""

Window = tuple[tuple[int, int], ...]
Tables = Mapping[str, Any]


def windows(
    kernel: Kernel,
    operand: Operand,
    program: Sequence[int],
    sizes: Mapping[str, int] | None = None,
    tables: Tables | None = None,
) -> Window:
    """The elements that one program sees: (first, one past the last) per dimension, in the array's coordinates.

    A block that reaches past its array is not cut; low padding is below 0. sizes: values of size symbols.
    tables: what the kernel's tables hold, as nested lists or arrays.
    Raises LayoutError for a program outside the grid and for sizes and tables without a value.

    >>> from layoutproof.registry.read import read_layout
    >>> spec = read_layout("f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)")
    >>> windows(spec.kernel, spec.operand, (2, 4))
    ((20, 30), (80, 100))
    """
    if operand.unmodelled:
        raise LayoutError(f"{operand.name}: {operand.unmodelled}")
    if not operand.windowed:
        raise LayoutError(f"{operand.name} lies in {operand.memory}: the kernel moves its data itself, in no windows")
    on = Numbers(sizes)
    grid = _ints(kernel.grid, on, f"the grid of {kernel.name}")
    if len(program) != len(grid) or not all(0 <= p < n for p, n in zip(program, grid, strict=True)):
        raise LayoutError(f"{tuple(program)} is no program of {kernel.name}, whose grid is {grid}")
    return _window(kernel, operand, tuple(program), on, tables or {})


def written_by(
    kernel: Kernel, operand: Operand, sizes: Mapping[str, int] | None = None, tables: Tables | None = None
) -> NDArray[np.int64]:
    """For every element of an output the program that writes it last, as its row-major number in the grid; -1 = none.

    Programs run in lexicographic order, as in interpret mode and on one core. sizes, tables: as for `windows`.
    Raises LayoutError for an input, for more than a million programs or 2**26 elements, and as `windows` does.

    >>> from layoutproof.registry.read import read_layout
    >>> spec = read_layout("f32[3] blockspec (2) (i) -> (i) grid (2) out")
    >>> written_by(spec.kernel, spec.operand)
    array([0, 0, 1])
    """
    import numpy as np

    if operand.role != "out":
        raise LayoutError(f"{operand.name} is read, not written; an output is said by 'role: out' or stands in outputs")
    on = Numbers(sizes)
    grid = _ints(kernel.grid, on, f"the grid of {kernel.name}")
    shape = _ints(operand.dims, on, operand.name)
    count = product(max(0, n) for n in grid)
    if count > MOST_PROGRAMS:
        raise LayoutError(f"{kernel.name} has {count} programs; at most {MOST_PROGRAMS} are walked: ask a property")
    if product(shape) > MOST_ELEMENTS:
        raise LayoutError(f"{operand.name} has {product(shape)} elements; at most {MOST_ELEMENTS} are filled in")
    found = np.full(shape, -1, dtype=np.int64)
    for number, program in enumerate(itertools.product(*(range(n) for n in grid))):
        window = windows(kernel, operand, program, sizes, tables)
        found[tuple(slice(max(0, first), max(0, end)) for first, end in window)] = number
    return found


def written_table(
    kernel: Kernel, operand: Operand, value: str = "", sizes: Mapping[str, int] | None = None, pairs: bool = False
) -> Any:
    """`written_by` as nested lists, each program as a number, or with `pairs` as its index; None = never written.

    value: an expression over the grid's names; without one the decimal digits of JAX's `show_program_ids`, the last
    dimension the units.

    >>> from layoutproof.registry.read import read_layout
    >>> spec = read_layout("f32[3,2] blockspec (2, 1) (i, j) -> (i, j) grid (2, 2) out")
    >>> written_table(spec.kernel, spec.operand)
    [[0, 1], [0, 1], [10, 11]]
    """
    on = Numbers(sizes)
    grid = _ints(kernel.grid, on, f"the grid of {kernel.name}")
    term = parse_expression(value) if value else None
    for name in term.names() if term is not None else ():
        if name not in kernel.grid_names:
            known = ", ".join(kernel.grid_names) or "nothing"
            raise LayoutError(f"the value {value!r} speaks of {name}; known: {known}", text=value)

    def number(at: tuple[int, ...]) -> int:
        if term is not None:
            return int(term.evaluate(dict(zip(kernel.grid_names, at, strict=True)), on))
        return sum(entry * 10 ** (len(at) - 1 - axis) for axis, entry in enumerate(at))

    def cell(entry: Any) -> Any:
        if isinstance(entry, list):
            return [cell(part) for part in entry]
        at = from_row_major(entry, grid)
        return None if entry < 0 else list(at) if pairs else number(at)

    return cell(written_by(kernel, operand, sizes).tolist())


def operand_of(kernel: Kernel, name: str = "", role: str = "") -> Operand:
    """The operand of a name, or the only windowed one (of a role). LayoutError lists the operands there are.

    >>> from layoutproof.registry.read import read_layout
    >>> operand_of(read_layout("f32[3] blockspec (2) (i) -> (i) grid (2) out").kernel).name
    'o'
    """
    if name:
        found = [operand for operand in kernel.operands if operand.name == name]
    else:
        found = [operand for operand in kernel.operands if operand.windowed and role in ("", operand.role)]
    if len(found) == 1:
        return found[0]
    if name:
        problem = f"no operand {name!r}"
    elif found:
        problem = "several operands with blocks; say which one by 'operand'"
    else:
        problem = "no operand with blocks that is written" if role else "no operand with blocks"
    raise LayoutError(f"{kernel.name} has {problem}; it has {', '.join(operand.name for operand in kernel.operands)}")


def _window(kernel: Kernel, operand: Operand, program: tuple[int, ...], on: Numbers, tables: Tables) -> Window:
    names = dict(zip(kernel.grid_names, program, strict=True))
    sizes = operand.sizes or (None,) * len(operand.dims)
    seen: dict[Term, Term] = {}
    for read in reads((*operand.index, *(s for s in sizes if s is not None))):
        # inner reads come first, so the indices of this one are known
        at = tuple(_value(substitute(index, seen), names, on, operand) for index in read.args[1:])
        seen[read] = Term("int", _entry(tables, read.args[0].args[0], at))
    found = []
    for block, term, size in zip(operand.block, operand.index, sizes, strict=True):
        first = block.start(_value(substitute(term, seen), names, on, operand), on)
        valid = on.size(block.size) if size is None else _value(substitute(size, seen), names, on, operand)
        found.append((first, first + valid))
    return tuple(found)


def _entry(tables: Tables, name: str, at: tuple[int, ...]) -> int:
    if name not in tables:
        raise LayoutError(f"what the table {name} holds is not known, so its programs cannot be run by hand")
    entry = tables[name]
    for index in at:
        if not 0 <= index < len(entry):
            raise LayoutError(f"{name}[{', '.join(map(str, at))}] is outside of the table")
        entry = entry[index]
    return int(entry)


def _value(term: Term, names: Mapping[str, int], on: Numbers, operand: Operand) -> int:
    try:
        return int(term.evaluate(names, on))
    except Undecided as undecided:
        raise LayoutError(f"{operand.name}: {undecided}") from None
    except ZeroDivisionError:
        raise LayoutError(f"{operand.name}: {term} divides by zero at {dict(names)}") from None


def _ints(extents: Sequence[Any], on: Numbers, what: str) -> tuple[int, ...]:
    try:
        return tuple(int(on.size(extent)) for extent in extents)
    except Undecided as undecided:
        raise LayoutError(f"{what}: {undecided}") from None
