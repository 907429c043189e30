"""Tables whose every entry is known from the code: constants of the program, and results computed from them.

Where an index map, or the body, reads such a table, it reads a function of the indices: `entry`. A table with more
pieces than `MOST_PIECES` is replaced by the common properties of all entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import prod

from layoutproof.core.folding import linear
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Table

MOST_ENTRIES = 1 << 14
"""Entries of a table that is read as it is."""
MOST_PIECES = 64
"""Runs of entries that rise evenly, one after the other, of which an entry is written as a term."""


def containing(table: Table, values: Sequence[int]) -> Table:
    """The table with these entries, in row-major order, and all that follows from them together.

    >>> t = containing(Table("t", (4,)), [2, 0, 3, 1])
    >>> (t.low, t.high, t.monotone, t.injective, t.onto)
    (0, 4, False, True, True)
    """
    held = tuple(values)
    if not 0 < len(held) <= MOST_ENTRIES or len(held) != _count(table):
        return table
    low, high, different = min(held), max(held) + 1, len(set(held))
    return replace(
        table,
        contents=held,
        low=low,
        high=high,
        monotone=all(one <= other for one, other in pairwise(held)),
        injective=different == len(held),
        onto=different == high - low,
    )


def contradicted(table: Table) -> str:
    """The assumption on a table that its entries violate, "" = none.

    >>> contradicted(replace(containing(Table("t", (2,)), [5, 1]), high=4))
    't[0] is 5, as the code says, and 1 <= t < 4 is assumed'
    """
    if table.contents is None:
        return ""
    known = containing(table, table.contents)
    if type(table.low) is type(table.high) is int:
        for k, value in enumerate(table.contents):
            if not table.low <= value < table.high:
                entry = f"{table.name}[{', '.join(map(str, _place(table, k)))}]"
                said = f"{table.low} <= {table.name} < {table.high}"
                return f"{entry} is {value}, as the code says, and {said} is assumed"
    if table.total is not None and sum(table.contents) > table.total:
        return f"sum({table.name}) is {sum(table.contents)}, as the code says, and at most {table.total} is assumed"
    words = [word for word in ("monotone", "injective", "onto") if getattr(table, word) and not getattr(known, word)]
    return f"{table.name} is not {words[0]}: the code says what it holds" if words else ""


def entry(table: Table, at: Sequence[Term]) -> Term | None:
    """The entry of a table at some indices inside of it; None where its entries are not known, or too uneven.

    >>> t = containing(Table("t", (4,)), [0, 2, 4, 9])
    >>> str(entry(t, [Term("name", "i")])), str(entry(t, [Term("int", 3)]))
    ('select(i < 3, i * 2, 9)', '9')
    """
    if table.contents is None or len(at) != len(table.dims):
        return None
    dims = [int(extent) for extent in table.dims]
    strides = [prod(dims[k + 1 :]) for k in range(len(dims))]
    if all(part.op == "int" for part in at):
        place = [int(part.args[0]) for part in at]
        if not all(0 <= k < extent for k, extent in zip(place, dims, strict=True)):
            return None
        return Term("int", table.contents[sum(k * stride for k, stride in zip(place, strides, strict=True))])
    even = _even(table.contents, tuple(dims))
    if even is not None:
        first, steps = even
        return linear(zip(steps, at, strict=True), first)
    pieces = _pieces(table.contents)
    if pieces is None:
        return None
    flat = linear((stride, part) for stride, part, n in zip(strides, at, dims, strict=True) if n > 1)
    values = [linear([(step, flat)], first - step * begin) for begin, first, step in pieces]
    found = values[-1]
    for (end, *_), value in zip(reversed(pieces[1:]), reversed(values[:-1]), strict=True):
        found = Term("select", Term("<", flat, Term("int", end)), value, found)
    return found


def with_entries_written_out(kernel: Kernel) -> Kernel:
    """The kernel whose index maps have the entries of known tables in place of their reads."""
    known = {table.name: table for table in kernel.tables if table.contents is not None}
    if not known:
        return kernel

    def change(part: Term, made: Term) -> Term:
        table = known.get(part.args[0].args[0]) if part.op == "read" else None
        held = None if table is None else entry(table, made.args[1:])
        return made if held is None else held

    return replace(kernel, operands=tuple(operand.rewritten(change) for operand in kernel.operands))


def _count(table: Table) -> int:
    return prod(extent if type(extent) is int else -1 for extent in table.dims)


def _place(table: Table, flat: int) -> tuple[int, ...]:
    place: list[int] = []
    for extent in reversed(table.dims):
        flat, k = divmod(flat, int(extent))
        place.insert(0, k)
    return tuple(place)


@lru_cache(maxsize=64)
def _even(contents: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
    """The first entry and the step along each dimension, where all entries are so."""
    strides = [prod(dims[k + 1 :]) for k in range(len(dims))]
    steps = tuple(contents[s] - contents[0] if n > 1 else 0 for s, n in zip(strides, dims, strict=True))
    made = [contents[0]]
    for step, extent in zip(reversed(steps), reversed(dims), strict=True):
        made = [value + k * step for k in range(extent) for value in made]
    return (contents[0], steps) if tuple(made) == contents else None


@lru_cache(maxsize=64)
def _pieces(contents: tuple[int, ...]) -> list[tuple[int, int, int]] | None:
    """Where each run begins that rises evenly, its first entry, and its step; None where there are too many."""
    found: list[tuple[int, int, int]] = []
    begin = 0
    while begin < len(contents):
        step = contents[begin + 1] - contents[begin] if begin + 1 < len(contents) else 0
        end = begin + 1
        while end < len(contents) and contents[end] - contents[end - 1] == step:
            end += 1
        if end == begin + 2 and step:
            # two entries are no run unless they are equal: the second may begin one
            step, end = 0, begin + 1
        found.append((begin, contents[begin], step))
        if len(found) > MOST_PIECES:
            return None
        begin = end
    return found
