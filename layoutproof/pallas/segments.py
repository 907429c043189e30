"""Whether a table that chooses blocks takes every value, so that no block is left out: each is that of a segment.

The entries of a grouped sum are the group of each step, in order. A group of size 0 has no step, and then its rows are
never written. That there is no such group is assumed (`t is onto`), or follows from other assumptions, such as that
groups are not empty: then the table begins with the least value, rises by one at most, and ends with the greatest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Body
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.folding import fold, linear
from layoutproof.core.numbers import INTS
from layoutproof.core.operations import INT32
from layoutproof.core.size import Extent
from layoutproof.core.term import ONE, ZERO, Term, every, reads, size_term
from layoutproof.kernel.kernel import Kernel, Operand, Table
from layoutproof.kernel.scalar_memory import assuming, every_table
from layoutproof.kernel.windows import without_known_reads
from layoutproof.pallas import problems
from layoutproof.pallas.every_table import related
from layoutproof.pallas.witnesses import witness
from layoutproof.solvers.decide import proves

SHOWN = 12
"""Entries of a table that are shown."""
MOST_COUNTS = 8
"""Numbers of steps that are tried, of a grid whose size only the running program knows."""


def covering(kernel: Kernel, operand: Operand) -> Kernel:
    """The kernel with tables that choose blocks onto where that follows from what is assumed of them."""
    for table, span, _ in _choosing(kernel, operand):
        if kernel.relations and not table.onto and _onto(kernel, table, span):
            kernel = assuming(kernel, (_first(table, span),))
    return kernel


def left_out(kernel: Kernel, operand: Operand) -> str:
    """A block that a table within its assumptions leaves out, in words with its entries; "" where none was found."""
    for table, span, dimension in _choosing(kernel, operand):
        entries, values = table.dims[0], _blocks(operand, dimension, table)
        if table.onto or not values or type(entries) is not int or set(kernel.parameters()) - {str(span)}:
            continue
        # a read beyond the end of a table may give any value
        counts = [span] if type(span) is int else [*range(entries, 0, -1)][:MOST_COUNTS]
        names = related(kernel, [table.name])
        for count in (count for count in counts if count <= entries):
            sizes = {} if type(span) is int else {str(span): count}
            missing = partial(_missing, table.name, count, values)
            found = witness(kernel, names, sizes, lambda held, missing=missing: missing(held) is not None)  # type: ignore[misc]
            value = None if found is None else missing(found)
            if found is None or value is None:
                continue
            shown = [f"{name} = {_listed(found[name].ravel().tolist())}" for name in names]
            shown += [f"{name} = {size}" for name, size in sizes.items()]
            group = f"group {value} has size 0: " if table.monotone else ""
            rows = problems.ROWS_UNWRITTEN(operand.name, _rows(operand, dimension, value))
            first = table.name if entries == span else f"{table.name}[:{span}]"
            return problems.SEGMENT_EMPTY(rows, group, first, value, "; ".join(shown))
    return ""


def too_few(kernel: Kernel, operand: Operand) -> tuple[int, int] | None:
    """The programs that may have different blocks and the blocks of an output, where these are more.

    Whatever tables hold, some block is then left out. None where they are no more, or where that is not known.
    """
    names = {name for term in operand.terms() for name in term.names()}
    programs = [extent for name, extent in zip(kernel.grid_names, kernel.grid, strict=True) if name in names]
    sizes = [(extent, block.size) for extent, block in zip(operand.dims, operand.block, strict=True)]
    plain = all(block.kind in ("blocked", "squeezed") for block in operand.block)
    if not plain or not all(type(n) is int and n > 0 for n in (*programs, *(n for pair in sizes for n in pair))):
        return None
    most, blocks = prod(map(int, programs)), prod(-(-int(extent) // int(size)) for extent, size in sizes)
    return (most, blocks) if most < blocks else None


def _blocks(operand: Operand, dimension: int, table: Table) -> range:
    """The values of a table that choose a block of the array; none where other blocks may have its elements, too."""
    block, extent = operand.block[dimension], operand.dims[dimension]
    low, high, size = table.low, table.high, block.size
    if not (type(low) is type(high) is type(size) is type(extent) is int) or block.kind not in ("blocked", "squeezed"):
        return range(0)
    if any(type(n) is not int or n == 0 for n in operand.dims):
        return range(0)
    return range(max(low, 0), min(high, -(-extent // size)))


def _missing(name: str, count: int, values: range, held: Mapping[str, Any]) -> int | None:
    """The least value that none of the first entries of a table has."""
    return min(set(values).difference(held[name][:count].tolist()), default=None)


def _choosing(kernel: Kernel, operand: Operand) -> Iterator[tuple[Table, Extent, int]]:
    """Tables of one dimension of which an operand's index is the entry of a step.

    With how many steps there are, and the dimension of the operand.
    """
    for dimension, term in enumerate(without_known_reads(kernel, operand).index):
        if term.op != "read" or len(term.args) != 2 or term.args[1].op != "name":
            continue
        name = str(term.args[1].args[0])
        table = kernel.table(str(term.args[0].args[0]))
        if name in kernel.grid_names and table.low is not None and table.high is not None and table.contents is None:
            yield table, kernel.grid[kernel.grid_names.index(name)], dimension  # type: ignore[misc]


def _first(table: Table, span: Extent) -> Table:
    return replace(table, onto=True, first=None if table.dims[0] == span else span)


def _onto(kernel: Kernel, table: Table, span: Extent) -> bool:
    """Whether every value of a table occurs in its first entries, however many steps there are, if it has as many.

    `table_reads` asks about reads beyond its end.
    """
    if table.low is None or table.high is None:
        return False
    step, many, entries = Term("name", "step"), size_term(span), table.dims[0]
    least, end = size_term(table.low), size_term(table.high)
    here, after, last = (_entry(table, at) for at in (step, linear([(1, step)], 1), linear([(1, many)], -1)))
    inside = [fold("<=", ONE, many), fold("<=", many, size_term(entries))]
    ways: tuple[tuple[list[Term], list[Term]], ...] = (
        ([fold("!=", _entry(table, ZERO), least)], [_entry(table, ZERO)]),
        ([fold("<", linear([(1, step)], 1), many), fold("<", linear([(1, here)], 1), after)], [here, after]),
        ([fold("<", linear([(1, last)], 1), end)], [last]),
        ([fold("<=", end, last)], []),
    )
    for way, read in ways:
        violation = [*inside, *_looked_at(kernel, table, read), *way]
        try:
            held = proves(asked(kernel, Body(), violation, elements={"step": INT32}).claim, ("smt",))
        except (Undecided, LayoutError):
            held = False
        if not held:
            return False
    return True


def _looked_at(kernel: Kernel, table: Table, read: list[Term]) -> list[Term]:
    """Conditions that hold, and reads that relations constrain: of tables at entries of this one, and behind."""
    found: dict[Term, None] = {}
    for relation in kernel.relations:
        for other in reads((relation.condition,)):
            name = str(other.args[0].args[0])
            inner = [part for part in every(other) if part.op == "read" and part is not other]
            if name == table.name or len(other.args) != 2 or not any(i.args[0].args[0] == table.name for i in inner):
                continue
            most = size_term(next(t for t in every_table(kernel) if t.name == name).dims[0])
            for one in read:
                for by in (0, 1, 2):
                    at = Term("min", linear([(1, one)], by), linear([(1, most)], -1))
                    found[Term("read", other.args[0], at)] = None
    return [Term("<=", entry, entry) for entry in found]


def _entry(table: Table, at: Term) -> Term:
    return Term("read", Term("name", table.name), at)


def _rows(operand: Operand, dimension: int, value: int) -> str:
    """The part of an output that a value of a table chooses."""
    block, parts = operand.block[dimension], [":"] * len(operand.dims)
    start = block.start(value, INTS)
    end = min(start + block.size, operand.dims[dimension])
    parts[dimension] = str(value) if block.kind == "squeezed" else f"{start}:{end}"
    return ", ".join(parts)


def _listed(entries: list[int]) -> str:
    return ", ".join(map(str, entries[:SHOWN])) + (", .." if len(entries) > SHOWN else "")
