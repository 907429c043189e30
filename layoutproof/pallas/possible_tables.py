"""Whether any tables satisfy the user's assumptions: a proof from contradictory assumptions is vacuous.

Of single tables `assumptions.impossible` counts. Relations tie several together: of these a witness is looked for
among tables of simple shapes (`witnesses`), for a few sizes of the call, whatever the length of the tables; and then,
of small ones, entry by entry. Where none is found nothing is proved of what reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice, product
from math import prod
from typing import Any

from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Body
from layoutproof.bodies.terms import replaced
from layoutproof.core.claim import allows
from layoutproof.core.errors import Undecided, listed
from layoutproof.core.folding import FALSE, TRUE, any_of, folded
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.term import Term, fixed, reads, value_of
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.relations import every_case, range_at, ranged, tables_of
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas import problems
from layoutproof.pallas.witnesses import witness
from layoutproof.solvers.decide import decide
from layoutproof.solvers.vacuity import where_term

MOST_ENTRIES = 96
"""Entries of all related tables together for which they are looked for."""
MOST_PARTS = 4096
"""Parts of one table that are looked at."""
MOST_SIZES = 12
"""Sizes of the call that are tried."""


@lru_cache(maxsize=64)
def unfounded(kernel: Kernel, said: str | None, sizes: tuple[str, ...], effort: int = 1) -> str:
    """Why nothing follows from what relations say of a kernel's tables, "" = there are such tables.

    said: the condition on the sizes of the kernel.  sizes: their names.  effort: as for `ask`.
    """
    where = None if said is None else where_term(said, sizes)
    names = dict.fromkeys(name for relation in kernel.relations for name in tables_of(relation))
    alone = [table for table in every_table(kernel) if table.first is not None and table.name not in names]
    for table in alone:
        if not any(_enough(table, values) for values in _sizes(kernel, where, sizes)):
            return problems.VACUOUS_ONTO(table.name, table.first)
    if not names:
        return ""
    apart = _between(kernel)
    if apart or all(relation.bound is not None or not tables_of(relation) for relation in kernel.relations):
        return apart
    if _alike(kernel, tuple(names)):
        return ""
    if _witnessed(kernel, where, sizes, tuple(names)):
        return ""
    open_ = problems.TABLES_TOGETHER(listed(list(names)))
    try:
        for values in _sizes(kernel, where, sizes):
            bound = kernel.bind(values) if values else kernel
            found = _tables(bound, tuple(names), effort)
            if found is None:
                return problems.TABLES_LONG(open_, MOST_ENTRIES * effort)
            if found:
                return ""
    except Undecided as reason:
        return f"{open_}: {reason}"
    return problems.VACUOUS_TOGETHER(listed(list(names)))


def founded(kernel: Kernel, said: str, sizes: tuple[str, ...]) -> bool:
    """Whether there are tables as relations say, as one shows that is found without a solver.

    said: the condition on the sizes of the kernel, "" = none.  sizes: their names.
    """
    names = dict.fromkeys(name for relation in kernel.relations for name in tables_of(relation))
    return _witnessed(kernel, where_term(said, sizes) if said else None, sizes, tuple(names))


def _witnessed(kernel: Kernel, where: Term | None, sizes: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return any(witness(kernel, names, values) is not None for values in _sizes(kernel, where, sizes))


def _alike(kernel: Kernel, names: tuple[str, ...]) -> bool:
    """Whether tables of which all entries are one number are as said, of any size; such need no search."""
    tables = [table for table in every_table(kernel) if table.name in names]
    if any(table.injective or table.onto or table.total is not None for table in tables):
        return False
    ranges: list[tuple[int | None, int | None]] = []
    for table in tables:
        low, high = table.low, table.high
        if not isinstance(low, int | None) or not isinstance(high, int | None):
            return False
        ranges.append((low, high))
    bounds = [relation for relation in kernel.relations if relation.bound is not None]
    others = [relation.condition for relation in kernel.relations if relation.bound is None]
    by_name = {table.name: table for table in tables}
    if all(ranged(bound, reads(others)) for bound in bounds):

        def least(part: Term) -> Term | None:
            if part.op != "read":
                return folded(part)
            low, high = range_at(kernel.relations, by_name[part.args[0].args[0]], part.args[1:])
            # the sizes of bounds were looked at above
            return Term("int", min(max(low, 0), high - 1))  # type: ignore[type-var]

        if all(replaced(condition, least) is TRUE for condition in others):
            return True
    for number in sorted({0, 1, *(low or 0 for low, _ in ranges)}):

        def change(part: Term, number: int = number) -> Term | None:
            return Term("int", number) if part.op == "read" else folded(part)

        within = all((low is None or low <= number) and (high is None or number < high) for low, high in ranges)
        if within and all(replaced(relation.condition, change) is TRUE for relation in kernel.relations):
            return True
    return False


def _between(kernel: Kernel) -> str:
    """Why no table can hold numbers between all bounds of its parts, "" = one can."""
    for table in every_table(kernel):
        bounds = [relation.bound for relation in kernel.relations if relation.bound is not None]
        spans = [list(each.at) for each in bounds if each.table == table.name]
        # one place of each part that some bounds cut out together
        ends = [{0, *(span[0] for of in spans if (span := of[d]) is not None)} for d in range(len(table.dims))]
        for at in islice(product(*map(sorted, ends)), MOST_PARTS if spans else 0):
            low, high = range_at(kernel.relations, table, [Term("int", n) for n in at])
            if type(low) is type(high) is int and low >= high:
                entry = f"{table.name}[{', '.join(map(str, at))}]"
                return problems.VACUOUS_ENTRY(entry, low, high)
    return ""


def _enough(table: Table, values: Mapping[str, int]) -> bool:
    """Whether a table has as many first entries as it has values, for these sizes."""
    low, high, first, *dims = (
        None if e is None else int(value_of(e, values, INTS)) for e in (table.low, table.high, table.first, *table.dims)
    )
    if low is None or high is None or first is None:
        return True
    entries = prod(dims)  # type: ignore[arg-type]
    return 0 < high - low <= min(first, entries) and not (table.injective and entries > high - low)


def _sizes(kernel: Kernel, where: Term | None, names: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Values of sizes under a condition, those first that tables have as extents, the larger before the smaller."""
    tables = every_table(kernel)
    extents = {e for table in tables for e in fixed(table.dims) if type(e) is int}
    # where the first entries of a table hold every value, there may be as many of them as values
    counts = [t.high - t.low for t in tables if t.first is not None and type(t.low) is int and type(t.high) is int]
    likely = dict.fromkeys([*counts, *sorted(extents, reverse=True), 8, 4, 3, 2, 1, 16, 128, 1024])
    ways = (dict(zip(names, values, strict=True)) for values in product(likely, repeat=len(names)))
    yield from islice((way for way in ways if allows(where, Numbers(way))), MOST_SIZES)


def _tables(kernel: Kernel, names: tuple[str, ...], effort: int) -> bool | None:
    """Whether there are tables as assumed, where no size is a name; None where they have too many entries."""
    tables = [table for table in every_table(kernel) if table.name in names]
    entries: list[Term] = []
    parts: list[Term] = []
    for table in tables:
        dims: tuple[Any, ...] = fixed(table.dims)
        places = [*islice(product(*map(range, dims)), MOST_ENTRIES * effort + 1)]
        own = [Term("read", Term("name", table.name), *(Term("int", k) for k in at)) for at in places]
        entries += own
        if len(entries) > MOST_ENTRIES * effort:
            return None
        if table.onto and table.first is not None and type(table.low) is type(table.high) is int:
            first = own[: int(table.first)]
            parts += [any_of([Term("==", e, Term("int", v)) for e in first]) for v in range(table.low, table.high)]
    for relation in kernel.relations:
        cases = every_case(relation, tables)
        if cases is None:
            return None
        parts += [replaced(case, folded) for case in cases]
    parts = [part for part in map(folded, parts) if part is not TRUE]
    if any(part is FALSE for part in parts):
        return False
    held = [Term("<=", entry, entry) for entry in entries]
    claim = asked(replace(kernel, relations=()), Body(), [*held, *parts]).claim
    found = decide(claim, ("smt",), False, effort)
    if found.point is None and found.reason:
        raise Undecided(found.reason)
    return found.point is not None
