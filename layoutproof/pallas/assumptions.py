"""The assumptions on the tables that a kernel's index maps read, and further ones that would decide a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from itertools import product as product_of
from typing import Any

from layoutproof.bodies.effects import views_of
from layoutproof.core.errors import Undecided
from layoutproof.core.size import Size, product, surely_less
from layoutproof.core.term import Term, fixed, reads
from layoutproof.kernel.kernel import Kernel, Operand, Table
from layoutproof.kernel.relations import in_parts
from layoutproof.kernel.windows import block_count, tables_read
from layoutproof.pallas import problems

WORDS = ((), ("monotone",), ("injective",), ("onto",), ("monotone", "onto"), ("monotone", "injective"))
"""The possible assumptions on a table besides its bounds, the weaker first."""

MOST = 24
"""Ways to bound the tables of one call that are tried."""


def about(kernel: Kernel, subject: str) -> tuple[Operand, ...]:
    """The operands that the subject of an obligation names."""
    return tuple(o for o in kernel.operands if o.name in subject.split(" ") and not o.unmodelled)


def tables_of(kernel: Kernel, operands: Sequence[Operand]) -> tuple[Table, ...]:
    """The tables that some operands' index maps read, each once."""
    return tuple({t.name: t for operand in operands for t in tables_read(kernel, operand)}.values())


def impossible(table: Table) -> str:
    """Why the assumptions on a table contradict each other, or ""; a proof from them is vacuous.

    >>> impossible(Table("t", (8,), low=0, high=4, injective=True))
    't cannot be injective: it has 8 entries and 4 values'
    """
    entries: Any = product(table.dims)
    values: Any = None if table.low is None or table.high is None else table.high - table.low
    if type(values) is int and values < 1:
        return problems.TABLE_EMPTY(table.name, table.low, table.high)
    if table.total is not None and type(entries) is type(table.low) is int and entries * table.low > table.total:
        return problems.TABLE_SUM(table.name, table.total, entries, table.low)
    if type(entries) is not int or type(values) is not int:
        return ""
    counts = problems.ENTRIES(entries, values)
    if table.injective and entries > values:
        return problems.TABLE_INJECTIVE(table.name, counts)
    return problems.TABLE_ONTO(table.name, counts) if table.onto and entries < values else ""


def _possible(table: Table) -> bool:
    """Whether there are such tables for all sizes: advice that few sizes can follow is none."""
    if impossible(table) or (table.total is not None and (table.monotone or table.injective or table.onto)):
        return False
    if table.low is None or table.high is None:
        return True
    entries, values = product(table.dims), table.high - table.low
    enough = not table.injective or surely_less(entries, values + 1)
    return enough and (not table.onto or surely_less(values, entries + 1))


def bounded(kernel: Kernel, tables: Sequence[Table]) -> Iterator[dict[str, Table]]:
    """Ways to bound every table that is not, the weakest first: one bound for each, whatever asks for it.

    A bound is what some place has room for at which the table is read: the blocks of a dimension, or the entries of
    another table. That all entries are 0 is offered only where every such place has room for no more.
    """
    choices: list[list[Table]] = []
    for table in tables:
        if (table.low is not None and table.high is not None) or in_parts(kernel, table):
            choices.append([table])
            continue
        highs = dict.fromkeys(_rooms(kernel, table))
        telling = [high for high in highs if high != 1] or list(highs)
        ordered = sorted(telling, key=lambda high: (isinstance(high, Size), 0 if isinstance(high, Size) else -high))
        choices.append([replace(table, low=0, high=high) for high in ordered] or [table])
    for chosen in islice(product_of(*choices), MOST):
        if all(map(_possible, chosen)):
            yield {table.name: table for table in chosen}


def _rooms(kernel: Kernel, table: Table) -> Iterator[Any]:
    """The sizes of the places at which a table is read."""
    for operand in kernel.operands:
        if operand.unmodelled or not operand.windowed:
            continue
        sizes = operand.sizes or (None,) * len(operand.dims)
        for extent, block, term, size in zip(fixed(operand.dims), operand.block, operand.index, sizes, strict=True):
            found = reads((term,))
            inside = {str(inner) for read in found for inner in reads(read.args[1:])}
            if term.op == "-" and _is_of(term.args[1], table):
                # a subtrahend of a number that may be 0
                yield 1
            elif any(_is_of(read, table) and str(read) not in inside for read in found):
                with suppress(Undecided):
                    yield block_count(extent, block)
            if size is not None and any(_is_of(read, table) for read in reads((size,))):
                yield block.size + 1
            for read in found:
                for part, entries in zip(read.args[1:], kernel.table(read.args[0].args[0]).dims, strict=False):
                    if any(_is_of(inner, table) for inner in reads((part,))):
                        yield entries

    yield from _rooms_of_body(kernel, table)


def _rooms_of_body(kernel: Kernel, table: Table) -> Iterator[int]:
    """The sizes of the places at which the body slices by entries of a table."""
    for view in views_of(kernel.body):
        for dims, slices in ((step.dims, step.slices) for step in view.steps if step.slices):
            for extent, piece in zip(dims, slices, strict=True):
                start, by = piece.start, 1
                if start.op == "*" and any(a.op == "int" for a in start.args):
                    by = next(int(a.args[0]) for a in start.args if a.op == "int")
                    start = next((a for a in start.args if a.op != "int"), start)
                # a slice whose size is not known may be empty, and start where the array ends
                size = int(piece.size.args[0]) if piece.size.op == "int" else 0
                if start.op == "read" and _in_body(kernel, start) == table.name and by > 0 and extent >= size:
                    yield (extent - size) // by + 1


def _in_body(kernel: Kernel, read: Term) -> str:
    """The table that a read of a body is of, also where the body stores to it."""
    name = str(read.args[0].args[0])
    kept = kernel.body.kept.get(name)
    return name if kept is None else str(kept.reference)


def _is_of(read: Term, table: Table) -> bool:
    return read.op == "read" and bool(read.args[0].args[0] == table.name)


def worded(tables: dict[str, Table]) -> Iterator[dict[str, Table]]:
    """The same tables with a word more said of each that has several entries, the weaker words first."""
    for words in WORDS[1:]:
        said: dict[str, Any] = dict.fromkeys(words, True)
        more = {n: table if product(table.dims) == 1 else replace(table, **said) for n, table in tables.items()}
        if more != tables and all(map(_possible, more.values())):
            yield more


def together(one: Table, other: Table) -> Table | None:
    """A table of which all is said that is said of both; None where there is no such table for all sizes."""
    said = {word: getattr(one, word) or getattr(other, word) for word in ("monotone", "injective", "onto")}
    both = replace(one, **said)
    return both if (one.low, one.high, one.total) == (other.low, other.high, other.total) and _possible(both) else None
