"""What all tables that are as assumed have in common: an entry that assumptions fix, a violation that each of them has.

A last entry may be said to be the greatest, and a first one 0. What such entries violate is wrong whatever the rest of
the table holds. It is shown of one table that is as assumed, entry by entry, and then proved of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product

from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Body
from layoutproof.bodies.terms import names_in, renaming, replaced
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.folding import FALSE, TRUE, all_of, fold, folded, negation
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.relations import tables_of
from layoutproof.pallas.witnesses import value_in, witness
from layoutproof.solvers.decide import proves

MOST_PROGRAMS = 4096
"""Programs in which a violation is looked for with one table, the first ones and the last ones first."""
MOST_PROVED = 8
"""Programs of which it is asked whether all tables have it."""
EFFORT = 1 / 10
"""Of the engines' step budgets, for each of these questions."""


@lru_cache(maxsize=256)
def is_fixed(kernel: Kernel, name: str, at: tuple[int, ...], value: int) -> bool:
    """Whether each table that is as assumed holds a number at some place.

    >>> from layoutproof.kernel.kernel import Table
    >>> from layoutproof.kernel.table_assumptions import with_assumptions
    >>> kernel = with_assumptions(Kernel("k", (4,), ("i",), (), tables=(Table("t", (4,)),)), ["0 <= t < 9", "t[0] == 3"])
    >>> is_fixed(kernel, "t", (0,), 3), is_fixed(kernel, "t", (1,), 3)
    (True, False)
    """
    entry = Term("read", Term("name", name), *(Term("int", k) for k in at))
    return _never(kernel, fold("!=", entry, Term("int", value)))


def in_every_table(kernel: Kernel, violation: Sequence[Term]) -> dict[str, int] | None:
    """The ids of a program in which each table that is as assumed has a violation; None where none was found.

    violation: conditions over the ids of a program and entries of tables.
    """
    whole = all_of(violation)
    tables = [read.args[0].args[0] for read in reads((whole,))]
    known = {table.name for table in kernel.tables}
    if set(names_in(whole)) - set(kernel.grid_names) or not tables or not known.issuperset(tables):
        return None
    held = witness(kernel, related(kernel, tables), {})
    if held is None:
        return None
    asked_of = 0
    for program in _programs(kernel):
        ids = {name: Term("int", k) for name, k in zip(kernel.grid_names, program, strict=True)}
        here = replaced(replaced(whole, renaming(ids)), folded)
        if here is FALSE or not (here is TRUE or bool(value_in(here, {}, held))):
            continue
        asked_of += 1
        if here is TRUE or _never(kernel, negation(here)):
            return dict(zip(kernel.grid_names, program, strict=True))
        if asked_of == MOST_PROVED:
            break
    return None


def related(kernel: Kernel, names: Sequence[str]) -> list[str]:
    """Some tables and all that relations tie to them."""
    found = list(dict.fromkeys(names))
    for name in found:
        for relation in kernel.relations:
            if name in tables_of(relation):
                found += [other for other in tables_of(relation) if other not in found]
    return found


def _programs(kernel: Kernel) -> Iterator[tuple[int, ...]]:
    """Programs, those at the ends of the grid first; none where sizes are names."""
    extents = [int(extent) for extent in kernel.grid if type(extent) is int]
    if len(extents) < len(kernel.grid):
        return
    ends = product(*(dict.fromkeys((0, extent - 1)) for extent in extents))
    every = product(*map(range, extents))
    yield from islice(dict.fromkeys((*ends, *islice(every, MOST_PROGRAMS))), MOST_PROGRAMS)


def _never(kernel: Kernel, condition: Term) -> bool:
    """Whether no tables that are as assumed meet a condition on their entries."""
    try:
        return proves(asked(kernel, Body(), [condition]).claim, ("isl", "smt"), effort=EFFORT)
    except (Undecided, LayoutError):
        return False
