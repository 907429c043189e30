"""Numbers to which each iteration of a loop adds another entry of a table: they stay below what all entries come to.

So it is of the tiles that each entry needs, `cdiv(t[j], tile)`, of which there are few more than of all rows together.

Where something starts that is stored one after the other, rows of groups or of sequences, is such a number. That all
entries together are at most so many is assumed of the table, after the body was read: so this is a fact of a question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from layoutproof.bodies.effects import Body, Handed
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.terms import inlined
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.folding import any_of, constant, fold, linear, shifted
from layoutproof.core.operations import INT32
from layoutproof.core.term import ONE, ZERO, Term, substitute
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.scalar_memory import every_table


def with_sums(kernel: Kernel, body: Any) -> Any:
    """The body with what sums of tables say of numbers that its loops hand on; another thing than a body as it is."""
    summed = any(table.total is not None for table in every_table(kernel))
    return _with_sums(kernel, body) if summed and isinstance(body, Body) and body.handed else body


@lru_cache(maxsize=8)
def _with_sums(kernel: Kernel, body: Body) -> Body:
    unknowns = dict(body.unknowns)
    for one in body.handed:
        for name, done in ((one.name, Term("name", one.loop.name)), (one.after, one.trips)):
            if done is not None and name in unknowns:
                known = unknowns[name]
                unknowns[name] = replace(known, facts=(*known.facts, *_facts(kernel, body, one, name, done)))
    return replace(body, unknowns=unknowns)


@dataclass(frozen=True, slots=True, eq=False)
class _Added:
    """What an iteration adds: no less than 0 and no more than `times * (read + more) / by`, of an entry that is not."""

    term: Term
    read: Term
    times: int = 1
    more: int = 0
    by: int = 1

    def at(self, entry: Term) -> Term:
        """The same of another entry."""
        return substitute(self.term, {self.read: entry})


def _added(term: Term) -> _Added | None:
    """An entry of a table, whole steps in it or tiles over it, and multiples of these; None of other terms."""
    if term.op == "read" and len(term.args) == 2:
        return _Added(term, term)
    factor = constant(term.args[1]) if term.op in ("*", "//", "truncdiv") else None
    inner = _added(term.args[0]) if factor is not None and factor > 0 else None
    if factor is not None and inner is not None and term.op == "*":
        return replace(inner, term=term, times=inner.times * factor)
    if factor is not None and term.op in ("//", "truncdiv"):
        over, more = term.args[0], 0
        if over.op == "+" and (constant(over.args[1]) or 0) > 0:
            over, more = over.args[0], int(over.args[1].args[0])
        return _Added(term, over, 1, more, factor) if over.op == "read" and len(over.args) == 2 and factor > 0 else None
    if term.op == "-" and constant(term.args[0]) == 0 and term.args[1].op == "//":
        return _tiles(term, *term.args[1].args)
    return None


def _tiles(term: Term, less: Term, divisor: Term) -> _Added | None:
    """-(-t // by), as many tiles as t needs. less: -t of an entry t."""
    by = constant(divisor)
    read = less.args[1] if less.op == "-" and constant(less.args[0]) == 0 else None
    if read is None or read.op != "read" or len(read.args) != 2 or by is None or by < 1:
        return None
    return _Added(term, read, 1, by - 1, by)


def _facts(kernel: Kernel, body: Body, one: Handed, name: str, done: Term) -> tuple[Term, ...]:
    """What holds of the number after some iterations: with what the next one adds to it is no more, either.

    The entries are no less than 0, and each iteration adds the one after, as long as that is inside of the table. Of
    tiles, each entry needs at most a part of one more: sum(cdiv(t, b)) <= (sum(t) + n * (b - 1)) / b of n entries.
    """
    rest, counter = unwrapped(one.following), Term("name", one.loop.name)
    own = [part for part in rest.args if part.op == "name" and part.args[0] == one.name] if rest.op == "+" else []
    others = [made for part in rest.args if (made := _added(part)) is not None] if own else []
    if len(own) != 1 or len(others) != 1 or one.start.op != "int":
        return ()
    (added,) = others
    table = next((t for t in every_table(kernel) if t.name == added.read.args[0].args[0]), None)
    if table is None or table.total is None or type(table.low) is not int or table.low < 0:
        return ()
    ahead = difference(unwrapped(inlined(body.definitions, added.read.args[1])), counter)
    entries, start = table.dims[0], int(one.start.args[0])
    if ahead is None or ahead < 0 or type(entries) is not int:
        return ()
    if start + added.times * (table.total + added.more * entries) // added.by >= min(INT32, body.unknowns[name].high):
        return ()
    number, last = Term("name", name), Term("int", entries - ahead)
    entry = Term("read", added.read.args[0], linear([(1, done), (ahead, ONE)]))
    following = linear([(added.by, number), (added.by, added.at(entry))])
    # of all that was added, and of what the next iteration adds besides
    most = linear([(added.times * added.more, done)], added.by * start + added.times * table.total)
    whole = Term("%", linear([(1, number)], -start), Term("int", added.times))
    return (
        *([fold("==", whole, ZERO)] if added.times > 1 else []),
        any_of([fold("<", last, done), fold("<=", linear([(added.by, number)]), most)]),
        any_of([fold("<", last, done), fold("<=", one.start, number)]),
        any_of([fold("<=", last, done), fold("<=", following, shifted(most, added.times * added.more))]),
    )
