"""Outputs that programs store by segments, each from where a table says that its own begins to where the next one does.

Each program has the rows from `t[i]` to `t[i + 1]`. A row from `t[0]` on and below `t[n]` is in the segment of some
program, in whatever order the entries are: the last i for which `t[i]` is not beyond the row has a next one that is.
So two questions are left, and neither asks which program: does each store all of its own segment, and is every element
between the first entry and the last one?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Body
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.stored import StoredRegion, Visit, unstored
from layoutproof.bodies.terms import inlined, names_in, renaming, replaced
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.folding import all_of, any_of, fold, linear, negation
from layoutproof.core.term import ONE, ZERO, Term, reads, size_term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.solvers.decide import proves

MOST_TRIED = 4
"""Tables and dimensions that are tried for one output."""


class _Segments(NamedTuple):
    """Segments in a dimension of an output: from `begin` to `end`, entries of a table one after the other.

    over: the name of the grid's dimension along which they follow each other.  entries: of the table.
    """

    begin: Term
    end: Term
    over: str
    entries: Term


def stored_by_segments(kernel: Kernel, body: Body, visit: Visit, stores: Sequence[StoredRegion]) -> str:
    """The table of which every element is in a segment, where each program stores all of its own; "" where none is."""
    tried = 0
    for one in _segments(kernel, body, visit, stores):
        for element in visit.index:
            tried += 1
            if tried > MOST_TRIED:
                return ""
            try:
                if _between(kernel, body, visit, one, element) and _own(kernel, body, visit, stores, one, element):
                    return str(one.begin.args[0].args[0])
            except (Undecided, LayoutError):
                continue
    return ""


def _segments(kernel: Kernel, body: Body, visit: Visit, stores: Sequence[StoredRegion]) -> Iterator[_Segments]:
    """The neighbouring entries of tables that stores read, at places that programs of one visit run through."""
    alike = {name for term in visit.alike for name in names_in(term)}
    free = [name for name in kernel.grid_names if name not in visit.agree and name not in alike]
    extents = {table.name: table.dims[0] for table in every_table(kernel) if len(table.dims) == 1}
    terms = [term for store in stores for term in (store.condition, *(loop.count for loop in store.loops)) if term]
    found = [read for read in reads([inlined(body.definitions, term) for term in terms]) if len(read.args) == 2]
    for begin in found:
        at, name = begin.args[1], str(begin.args[0].args[0])
        moving = [one for one in free if one in names_in(at)]
        if len(moving) != 1 or name not in extents or reads((at,)) or set(names_in(at)) - set(kernel.grid_names):
            continue
        after = replaced(at, renaming({moving[0]: linear([(1, Term("name", moving[0]))], 1)}))
        end = next((r for r in found if r.args[0] == begin.args[0] and difference(r.args[1], after) == 0), None)
        if end is not None and difference(after, at) == 1:
            yield _Segments(begin, end, moving[0], size_term(extents[name]))


def _between(kernel: Kernel, body: Body, visit: Visit, one: _Segments, element: Term) -> bool:
    """Whether every element is between the first entry and the last one, and none of them is beyond the table."""
    at = one.begin.args[1]
    outside = any_of([fold("<", at, ZERO), fold("<=", one.entries, linear([(1, at), (1, ONE)]))])
    last = linear([(1, size_term(kernel.grid[kernel.grid_names.index(one.over)]))], -1)
    first, end = (replaced(term, renaming({one.over: place})) for term, place in ((one.begin, ZERO), (one.end, last)))
    missed = any_of([fold("<", element, first), fold("<=", end, element)])
    elements = {n: k for n, k in zip(visit.element.names, visit.element.extents, strict=True) if type(k) is int}
    claims = (asked(kernel, body, [outside]), asked(kernel, body, [visit.valid, missed], elements=elements))
    return all(proves(claim.claim, ("isl", "smt")) for claim in claims)


def _own(
    kernel: Kernel, body: Body, visit: Visit, stores: Sequence[StoredRegion], one: _Segments, element: Term
) -> bool:
    """Whether each program stores all elements of its own segment."""
    inside = all_of([fold("<=", one.begin, element), negation(fold("<=", one.end, element))])
    alone = replace(
        visit, programs=True, valid=all_of([visit.valid, inside]), alike=(), agree=kernel.grid_names, exact=True
    )
    sure = unstored(kernel, body, alone, stores, True, lambda point, on: "")
    return not sure.lost and proves(sure.claim)
