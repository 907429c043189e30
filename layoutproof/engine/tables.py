"""What is assumed of the tables that a kernel's index maps read, and what more would settle a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.errors import Undecided
from layoutproof.core.kernel import Kernel, Operand, Table
from layoutproof.core.size import Size, product, surely_less
from layoutproof.core.windows import block_count, tables_read

WORDS = ((), ("monotone",), ("injective",), ("onto",), ("monotone", "onto"), ("monotone", "injective"))
"""What may be said of a table besides its bounds, the weaker first."""


def about(kernel: Kernel, subject: str) -> tuple[Operand, ...]:
    """The operands that the subject of an obligation names."""
    return tuple(o for o in kernel.operands if o.name in subject.split(" ") and not o.unmodelled)


def tables_of(kernel: Kernel, operands: Sequence[Operand]) -> tuple[Table, ...]:
    """The tables that some operands' index maps read, each once."""
    return tuple({t.name: t for operand in operands for t in tables_read(kernel, operand)}.values())


def impossible(table: Table) -> str:
    """Why no table can be as assumed, or ""; what follows from such an assumption is worth nothing.

    >>> impossible(Table("t", (8,), low=0, high=4, injective=True))
    't cannot be injective: it has 8 entries and 4 values'
    """
    entries: Any = product(table.dims)
    values: Any = None if table.low is None or table.high is None else table.high - table.low
    if type(values) is int and values < 1:
        return f"{table.name} has no value it could hold: {table.low} <= {table.name} < {table.high}"
    if type(entries) is not int or type(values) is not int:
        return ""
    counts = f"it has {entries} entries and {values} values"
    if table.injective and entries > values:
        return f"{table.name} cannot be injective: {counts}"
    return f"{table.name} cannot be onto: {counts}" if table.onto and entries < values else ""


def _possible(table: Table) -> bool:
    """Whether there are such tables for all sizes: advice that few sizes can follow is none."""
    if impossible(table):
        return False
    if table.low is None or table.high is None:
        return True
    entries, values = product(table.dims), table.high - table.low
    enough = not table.injective or surely_less(entries, values + 1)
    return enough and (not table.onto or surely_less(values, entries + 1))


def candidates(tables: Sequence[Table], operands: Sequence[Operand]) -> Iterator[dict[str, Table]]:
    """Tables with more assumed than is: bounds that suit some dimension, then those with each further word."""
    highs: dict[Any, None] = {}
    for operand in operands:
        for extent, block in zip(operand.dims, operand.block, strict=True):
            try:
                highs[block_count(extent, block)] = None
            except Undecided:
                continue
    if all(t.low is not None and t.high is not None for t in tables):
        highs = {0: None}
    # the largest bound that is enough is the weakest assumption
    ordered = sorted(highs, key=lambda high: (isinstance(high, Size), 0 if isinstance(high, Size) else -high))
    for words in WORDS:
        for high in ordered:
            more = {t.name: _with(t, high, words) for t in tables}
            if not all(map(_possible, more.values())):
                continue
            if any(more[t.name].assumptions() != t.assumptions() for t in tables):
                yield more


def _with(table: Table, high: Any, words: Sequence[str]) -> Table:
    bounded = table if table.low is not None and table.high is not None else replace(table, low=0, high=high)
    said: dict[str, Any] = dict.fromkeys(words, True)
    return replace(bounded, **said)
