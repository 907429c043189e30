"""Which schemas the tables of a call may have, by how the kernel uses them. Nothing of it is assumed: it is tried.

A grouped product reads, for its step, a group; of the group where it starts and where the next one does; and a tile of
rows, which chooses a block. Or a loop of the body adds up how many rows the groups have. Or a copy goes to where a
table says, and is as long as one says. Or programs along a dimension whose size is not known compare their number with
an entry: how many of them have work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from layoutproof.bodies.effects import Access, Body, StartedCopy, View
from layoutproof.bodies.sums import added_up
from layoutproof.bodies.terms import inlined, parts_through
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.folding import shifted
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Operand, Table
from layoutproof.kernel.scalar_memory import every_table

MOST_TOTALS = 2
"""Sums of one table that are tried."""


def offered(kernel: Kernel) -> Iterator[tuple[str, ...]]:
    """Sets of assumptions, each to be tried as a whole, the weaker first."""
    for offsets, groups, step in _grouped(kernel):
        extent = kernel.grid[kernel.grid_names.index(step)]
        for operand, k, tiles in _chosen(kernel, step):
            if tiles in (offsets, groups):
                continue
            total, tile = operand.dims[k], operand.block[k].size
            said = (
                f"{offsets} is cu_seqlens(total={total})",
                f"{groups} is group_tiles(groups={_entries(kernel, offsets) - 1}, offsets={offsets}, tiles={tiles}, "
                f"tile={tile}, total={total}, steps={extent})",
            )
            yield said
            # where empty groups have a step, too
            yield (*said, f"{groups}[:{extent}] is onto")
    slices = sliced(kernel)
    if slices:
        yield tuple(one.text for one in slices if not one.weaker)
        weaker = {one.weaker for one in slices if one.weaker}
        if weaker:
            yield tuple(one.text for one in slices if one.text not in weaker)
    multiples = _multiples(kernel)
    if multiples:
        yield multiples
    counts = _counts(kernel)
    if counts:
        yield tuple(f"1 <= {table} <= {size}" for table, size in counts)
    for total in _rows(kernel) if (lengths := _added_up(kernel)) else ():
        yield tuple(f"{name} is group_sizes(total={total})" for name in lengths)


def _multiples(kernel: Kernel) -> tuple[str, ...]:
    """That each entry of a table is a multiple of what `pl.multiple_of` says of one."""
    said: dict[str, None] = {}
    lists = {table.name for table in every_table(kernel) if _is_list(table)}
    for number, by, _ in kernel.body.multiples if isinstance(kernel.body, Body) else ():
        number = inlined(kernel.body.definitions, number)
        name = str(number.args[0].args[0]) if number.op == "read" else ""
        if name in lists:
            said[f"{name}[i] % {by} == 0"] = None
    return tuple(said)


def _added_up(kernel: Kernel) -> list[str]:
    """Tables of whose entries nothing is said yet, and to which a loop of the body adds one entry after the other."""
    tables = {table.name for table in kernel.tables if _is_list(table) and table.low is None and table.total is None}
    body = kernel.body
    names = [added_up(body, one) for one in body.handed] if isinstance(body, Body) else []
    return [name for name in dict.fromkeys(names) if name in tables]


@dataclass(frozen=True, slots=True)
class SlicesSaid:
    """An assumption on tables that say where copied slices start or how long they are.

    tables: their names.  weaker: of slices that are written, and of which it says that no two have an element together,
    the assumption without that.
    """

    text: str
    tables: tuple[str, ...]
    weaker: str = ""


def sliced(kernel: Kernel) -> tuple[SlicesSaid, ...]:
    """What the tables may be that have, at one index, where a copied slice starts and how long it is."""
    body = kernel.body
    found: dict[SlicesSaid, None] = {}
    for effect in body.effects if body is not None else ():
        if isinstance(effect, StartedCopy):
            for view in (effect.source, effect.target):
                found |= dict.fromkeys(_slices(kernel, view, view is effect.target))
    return tuple(found)


def _slices(kernel: Kernel, view: View, written: bool) -> Iterator[SlicesSaid]:
    definitions = kernel.body.definitions
    tables = {table.name for table in every_table(kernel) if table.high is None}
    for step in view.steps:
        for extent, piece in zip(step.dims, step.slices or (), strict=False):
            starts, sizes = (
                [read for read in _chosen_from(definitions, term) if read.args[0].args[0] in tables]
                for term in (piece.start, piece.size)
            )
            for size in sizes:
                other, *there = size.args
                places = ", ".join([*(str(part) for part in there[:-1]), ":"])
                if piece.start.op == "int" and all(part.op == "int" for part in there[:-1]):
                    of = other.args[0] if len(there) == 1 else f"{other.args[0]}[{places}]"
                    yield SlicesSaid(f"0 <= {of} < {extent - int(piece.start.args[0]) + 1}", (str(other.args[0]),))
            for start, size in product(starts, sizes):
                (table, *at), (other, *there) = start.args, size.args
                if at[-1] is not there[-1]:
                    continue
                if len(at) == len(there) == 1 and table is not other:
                    said = f"slices(lengths={other.args[0]}, of={extent})"
                elif len(at) == len(there) == 2 and table is other and at[0].op == there[0].op == "int":
                    said = f"slice_rows(starts={at[0].args[0]}, lengths={there[0].args[0]}, of={extent})"
                else:
                    continue
                names = tuple(dict.fromkeys((str(table.args[0]), str(other.args[0]))))
                within = SlicesSaid(f"{table.args[0]} is {said}", names)
                yield within
                if written:
                    yield SlicesSaid(f"{table.args[0]} is disjoint_{said}", names, within.text)


def _chosen_from(definitions: Mapping[str, Term], term: Term) -> Iterator[Term]:
    """The entries of tables that a number is one of: `select(i < n, t[i], 0)` is `t[i]`."""
    term = _defined(definitions, term)
    if term.op == "read":
        yield term
    for way in term.args[1:] if term.op == "select" else ():
        yield from _chosen_from(definitions, way)


def _defined(definitions: Mapping[str, Term], term: Term) -> Term:
    """A term that is no name of another one."""
    while term.op == "name" and term.args[0] in definitions:
        term = definitions[str(term.args[0])]
    return term


def _counts(kernel: Kernel) -> list[tuple[str, str]]:
    """(table, size): with whose entries programs compare their number along a dimension of a run-time size."""
    runtime = {n: str(k) for n, k in zip(kernel.grid_names, kernel.grid, strict=True) if type(k) is not int}
    free = {table.name for table in kernel.tables if _is_list(table) and table.low is None and table.high is None}
    body = kernel.body
    if body is None or not runtime or not free:
        return []
    paths = dict.fromkeys(term for effect in body.effects for term in effect.spot.path)
    seen: dict[tuple[str, str], None] = {}
    for part in parts_through(body.definitions, paths):
        if part.op not in ("==", "<", "<="):
            continue
        sides = [_defined(body.definitions, side) for side in part.args]
        for own, other in (sides, sides[::-1]):
            size = runtime.get(str(own.args[0])) if own.op == "name" else None
            if size is not None:
                parts = parts_through(body.definitions, [other])
                tables = (str(read.args[0].args[0]) for read in parts if read.op == "read")
                seen |= dict.fromkeys((table, size) for table in tables if table in free)
    return list(seen)


def _rows(kernel: Kernel) -> list[int]:
    """How many rows arrays have, the most first: as many as all groups together may have."""
    rows = {operand.dims[0] for operand in kernel.operands if len(operand.dims) > 1 and not operand.windowed}
    return sorted((n for n in rows if type(n) is int and n > 1), reverse=True)[:MOST_TOTALS]


def _grouped(kernel: Kernel) -> Iterator[tuple[str, str, str]]:
    """(offsets, groups, a dimension of the grid): `offsets` is read at `groups[step]` and at the next entry."""
    found: dict[str, list[Term]] = {}
    for effect in kernel.body.effects if kernel.body is not None else ():
        if isinstance(effect, Access) and effect.kind == "read" and len(effect.view.steps) == 1:
            slices = effect.view.steps[0].slices or ()
            if len(slices) == 1:
                found.setdefault(effect.view.reference.name, []).append(unwrapped(slices[0].start))
    tables = {table.name: table for table in kernel.tables if _is_list(table)}
    seen: dict[tuple[str, str, str], None] = {}
    for name, starts in found.items():
        for at in starts:
            step = _step(kernel, at)
            ahead = any(other is shifted(at, 1) for other in starts)
            if step and ahead and name in tables and at.args[0].args[0] in tables:
                seen[name, str(at.args[0].args[0]), step] = None
    yield from seen


def _chosen(kernel: Kernel, step: str) -> Iterator[tuple[Operand, int, str]]:
    """(operand, dimension, table): whose block the entry of a table at a dimension of the grid chooses."""
    seen: dict[str, None] = {}
    for operand in kernel.operands:
        for k, term in enumerate(operand.index):
            name = str(term.args[0].args[0]) if term.op == "read" else ""
            if name and _step(kernel, term) == step and operand.block[k].kind == "blocked" and name not in seen:
                seen[name] = None
                yield operand, k, name


def _step(kernel: Kernel, term: Term) -> str:
    """The dimension of the grid at which a term is an entry of a table; "" where it is something else."""
    if term.op != "read" or len(term.args) != 2 or term.args[1].op != "name":
        return ""
    name = str(term.args[1].args[0])
    return name if name in kernel.grid_names else ""


def _is_list(table: Table) -> bool:
    return len(table.dims) == 1 and type(table.dims[0]) is int and table.contents is None and not table.place


def _entries(kernel: Kernel, name: str) -> int:
    entries = kernel.table(name).dims[0]
    assert isinstance(entries, int)
    return entries
