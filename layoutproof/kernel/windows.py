"""From a kernel's operands to plain maps: which block a program sees, and which elements of the array that is.

Reads of tables become unknowns of their own. They stand where `IndexMap` has replicas: "for every program and every
value that the table may hold there". `consistent` says which values can stand together: equal indices read equal
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from layoutproof.core.claim import At, Formula, PlacePredicate
from layoutproof.core.errors import Unsupported
from layoutproof.core.folding import folded
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Verdict
from layoutproof.core.size import Extent, as_size, ceil_div, divide, surely_less
from layoutproof.core.space import Space
from layoutproof.core.term import Term, fixed, reads, substitute, together
from layoutproof.kernel import problems
from layoutproof.kernel.kernel import Block, Kernel, Operand, Table
from layoutproof.kernel.read_consistency import consistent_reads, restricted, takes_every_value
from layoutproof.kernel.relations import range_at


def block_count(extent: Extent, block: Block) -> Extent:
    """How many values the index map may return for a dimension: 0 <= value < count (see `kernel.kernel`, the rule).

    Raises Undecided where that depends on the quotient of two run-time sizes.

    >>> block_count(100, Block("blocked", 30)), block_count(2, Block("blocked", 3))
    (4, 1)
    >>> block_count(7, Block("element", 2, 1, 0))
    7
    """
    match block.kind:
        case "blocked":
            if block.size == extent:
                return 1
            count: Extent = _quotient(extent, block.size)
            return count
        case "element":
            room: Any = block.low + extent + block.high - block.size + 1
            return max(room, 0) if type(room) is int else room
        case "bounded":
            # a slice of no elements may start where the array ends
            return extent + 1
    return extent


def _quotient(extent: Any, by: Any) -> Any:
    if type(by) is int and by < 1:
        raise Unsupported(problems.WINDOW_EMPTY(by))
    if type(by) is int:
        return ceil_div(extent, by)
    whole, rest = divide(as_size(extent), by)
    return whole if type(rest) is int and rest == 0 else (extent + by - 1) // by


def tables_read(kernel: Kernel, operand: Operand) -> tuple[Table, ...]:
    """The tables that an operand's index map reads."""
    found = dict.fromkeys(read.args[0].args[0] for read in reads(operand.terms()))
    return tuple(kernel.table(name) for name in found)


def named_reads(terms: Iterable[Term]) -> dict[Term, Term]:
    """For each read of a table in some terms the name of its value in maps and points: how people read it.

    >>> named_reads([Term("read", Term("name", "t"), Term("name", "i"))])
    {Term(t[i]): Term(t[i])}
    """
    return {read: Term("name", str(read)) for read in reads(terms)}


def program_map(
    kernel: Kernel, operand: Operand, dims: Sequence[int] | None = None, elements: bool = False
) -> IndexMap:
    """Program -> where its window is: one coordinate per dimension of the array.

    The coordinate of a blocked or squeezed dimension is the block index; of the others the first element, in the
    virtually padded array. dims: the grid dimensions that are the index (default: all); the others come first among
    the replicas, then the values read from tables. elements: the window's single elements instead, one more replica per
    element and bounded dimension, counted in the array itself, -1 for what a bounded slice leaves out.
    The range is the box that coordinates must lie in.
    """
    if operand.unmodelled:
        raise Unsupported(operand.unmodelled)
    chosen = tuple(range(len(kernel.grid))) if dims is None else tuple(dims)
    others = tuple(k for k in range(len(kernel.grid)) if k not in chosen)
    fresh = named_reads(operand.terms())
    read_names = [name.args[0] for name in fresh.values()]
    values = [_range(kernel, read) for read in fresh]
    index = [substitute(term, fresh) for term in operand.index]
    sizes = [None if s is None else substitute(s, fresh) for s in operand.sizes or (None,) * len(operand.dims)]
    spread = [k for k, b in enumerate(operand.block) if elements and b.kind in ("element", "bounded")]
    grid_replicas = len(others)

    def place(at: Index, replica: Index, on: Numbers) -> Index:
        names: dict[str, Any] = {kernel.grid_names[k]: v for k, v in zip(chosen, at, strict=True)}
        names |= {kernel.grid_names[k]: v for k, v in zip(others, replica[:grid_replicas], strict=True)}
        rest = replica[grid_replicas:]
        for name, (low, _), value in zip(read_names, values, rest, strict=False):
            names[name] = value if type(low) is int and low == 0 else value + on.size(low)
        where = [term.evaluate(names, on) for term in index]
        for k, offset in zip(spread, rest[len(fresh) :], strict=True):
            size = sizes[k]
            where[k] = operand.block[k].start(where[k], on) + offset
            if size is not None:
                where[k] = on.select(on.less(offset, size.evaluate(names, on)), where[k], -1)
        return tuple(where)

    replicas = Space(
        (*(kernel.grid_names[k] for k in others), *read_names, *(f"offset{k}" for k in spread)),
        (
            *fixed(kernel.grid[k] for k in others),
            *(high - low for low, high in values),
            *fixed(operand.block[k].size for k in spread),
        ),
    )
    box = tuple(
        extent if k in spread else block_count(extent, operand.block[k]) for k, extent in enumerate(fixed(operand.dims))
    )
    names = tuple(f"dim{k}" for k in range(len(box)))
    domain = Space(tuple(kernel.grid_names[k] for k in chosen), fixed(kernel.grid[k] for k in chosen))
    return IndexMap(domain, Space(names, box), place, replicas)


def _range(kernel: Kernel, read: Term) -> tuple[Extent, Extent]:
    return range_at(kernel.relations, kernel.table(read.args[0].args[0]), read.args[1:])


def consistent(
    kernel: Kernel,
    operand: Operand,
    points: Sequence[tuple[str, str]],
    dims: Sequence[int] | None = None,
    elements: bool = False,
) -> tuple[Formula, ...]:
    """Consistency conditions on the values that several programs read, to be put beside a claim's violation.

    points: (point, replica) names as the claim has them, whose maps were made with the same `dims` and `elements`.
    """
    return consistency_constraints(kernel, [(operand, point, replica) for point, replica in points], dims, elements)


def consistency_constraints(
    kernel: Kernel,
    readers: Sequence[tuple[Operand, str, str]],
    dims: Sequence[int] | None = None,
    elements: bool = False,
) -> tuple[Formula, ...]:
    """As `consistent`, where the points belong to index maps of several operands: (operand, point, replica)."""
    places: list[At] = []
    tables: list[list[tuple[Table, int, int]]] = []
    for operand, point, replica in readers:
        found = reads(operand.terms())
        if not found:
            continue
        # for each read in turn: its indices into the table, and the value there
        parts = [part for read in found for part in (*read.args[1:], read)]
        ends = [*accumulate(len(read.args) for read in found)]
        spans = zip(found, [0, *ends], ends, strict=False)
        tables.append([(kernel.table(read.args[0].args[0]), start, end - 1) for read, start, end in spans])
        places.append(At(terms_map(kernel, operand, parts, dims, elements), point, replica))
    all_read = [table for of_point in tables for table, _, _ in of_point]
    if len({t.name for t in all_read}) == len(all_read) and not any(map(restricted, all_read)):
        return ()

    def condition(where: tuple[Index, ...], on: Numbers) -> Any:
        seen = [
            (table, place[start:end], place[end])
            for place, of_point in zip(where, tables, strict=True)
            for table, start, end in of_point
        ]
        return consistent_reads(seen, on)

    return (PlacePredicate(tuple(places), condition),)


def terms_map(
    kernel: Kernel, operand: Operand, terms: Sequence[Term], dims: Sequence[int] | None = None, elements: bool = False
) -> IndexMap:
    """Program -> the values of some terms over the grid and over what the operand's index map reads.

    Domain and replicas are those of `program_map` with the same arguments, so one point fits both maps.
    """
    m = program_map(kernel, operand, dims, elements)
    fresh = named_reads(operand.terms())
    parts = [substitute(term, fresh) for term in terms]
    lows = {name.args[0]: _range(kernel, read)[0] for read, name in fresh.items()}
    values = together(parts)

    def place(at: Index, replica: Index, on: Numbers) -> Index:
        names: dict[str, Any] = dict(zip(m.domain.names, at, strict=True))
        names |= dict(zip(m.replicas.names, replica, strict=True))
        for name, low in lows.items():
            names[name] = names[name] + on.size(low)
        return values(names, on)

    return IndexMap(m.domain, Space(), place, m.replicas)


def bounded_ends(kernel: Kernel, operand: Operand) -> IndexMap:
    """Program -> for each bounded dimension in turn, where its slice starts and how many elements of it are valid."""
    pairs = [(operand.index[k], size) for k, size in enumerate(operand.sizes) if size is not None]
    return terms_map(kernel, operand, [part for pair in pairs for part in pair])


def reachable_blocks(kernel: Kernel, operand: Operand) -> tuple[IndexMap, dict[Verdict, str]]:
    """The elements or blocks that the programs reach together, and which answers about them decide nothing, with why.

    Replicas are free choices in such a map. Values of a table are not: only a coordinate that is `t[i]` of a table that
    takes every value, and whose indices nothing else uses, is as good as free. Others make the map reach too much. For
    sizes of the call for which the grid has fewer programs than the entries that hold every value it reaches nothing.
    """
    operand = without_known_reads(kernel, operand)
    m = program_map(kernel, operand, elements=True)
    found = reads(operand.terms())
    short: list[tuple[Extent, Extent]] = []
    for read in found:
        fewer, why = _as_good_as_free(kernel, operand, read, found)
        if why:
            table = read.args[0].args[0]
            return m, {Verdict.PROVED: problems.BLOCKS_DEPEND(operand.name, table, why)}
        short += fewer
    if not short:
        return m, {}
    sizes = dict.fromkeys(str(span) for span, _ in short)
    most = ", ".join(dict.fromkeys(str(most) for _, most in short))
    return _nowhere_where_short(m, short), {
        Verdict.REFUTED: problems.BLOCKS_SHORT(operand.name, ", ".join(sizes), most)
    }


def _as_good_as_free(
    kernel: Kernel, operand: Operand, read: Term, found: Iterable[Term]
) -> tuple[list[tuple[Extent, Extent]], str]:
    """Why a read of a table does not take every value of its range, "" where it does.

    And for which sizes it may not after all: pairs of a grid dimension and the entries that it has to have.
    """
    table = kernel.table(read.args[0].args[0])
    names = [a.args[0] for a in read.args[1:] if a.op == "name"]
    spans = fixed(kernel.grid[kernel.grid_names.index(n)] for n in names if n in kernel.grid_names)
    needed = fixed(table.dims if table.first is None else (table.first,))
    fewer = [(span, most) for span, most in zip(spans, needed, strict=False) if not surely_less(most, span + 1)]
    never = any(type(span) is type(most) is int for span, most in fewer)
    if never or len(spans) != len(needed) or not _stands_alone(operand, read, found):
        why = "an assumption settles that only where a dimension is an entry of it alone, at grid dimensions that "
        return [], f"{why}nothing else uses"
    if not takes_every_value(table):
        said = f"{table.name}[:{spans[0]}]" if fewer and len(spans) == 1 else table.name
        return [], f"assume its bounds and '{said} is onto' (every value occurs) to settle it"
    return fewer, ""


def _stands_alone(operand: Operand, read: Term, found: Iterable[Term]) -> bool:
    """Whether a read is a coordinate by itself, and its indices are names that stand nowhere else.

    found: every read of the operand's index map.
    """
    used = [term for term in operand.terms() if read in reads((term,))]
    names = {a.args[0] for a in read.args[1:] if a.op == "name"}
    if used != [read] or len(names) != len(read.args) - 1:
        return False
    elsewhere = {n for term in operand.terms() if term is not used[0] for n in term.names()}
    elsewhere |= {n for other in found if other is not read for n in other.names()}
    return elsewhere.isdisjoint(names)


def _nowhere_where_short(m: IndexMap, short: Sequence[tuple[Extent, Extent]]) -> IndexMap:
    """The map, which reaches -1 for sizes where the first number of a pair is less than the second."""

    def place(at: Index, replica: Index, on: Numbers) -> Index:
        enough: Any = True
        for span, most in short:
            enough = on.logical_and(enough, on.less(on.size(most), on.size(span) + 1))
        return tuple(on.select(enough, where, -1) for where in m.place(at, replica, on))

    return IndexMap(m.domain, m.range, place, m.replicas)


def without_known_reads(kernel: Kernel, operand: Operand) -> Operand:
    """The operand with a number in the place of a read of which all that is assumed lets one number stand."""

    def change(part: Term, made: Term) -> Term:
        if made.op != "read":
            return folded(made)
        low, high = _range(kernel, made)
        return Term("int", low) if type(low) is type(high) is int and high - low == 1 else made

    return operand.rewritten(change)
