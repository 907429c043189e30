"""Numbers to which each iteration of a loop adds another entry of a table: they stay below what all entries come to.

Where something starts that is stored one after the other, rows of groups or of sequences, is such a number. That all
entries together are at most so many is assumed of the table, after the body was read: so this is a fact of a question.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from layoutproof.bodies.effects import Body, Handed
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.terms import inlined
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.folding import any_of, fold, linear
from layoutproof.core.operations import INT32
from layoutproof.core.term import ONE, Term
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


def _facts(kernel: Kernel, body: Body, one: Handed, name: str, done: Term) -> tuple[Term, ...]:
    """What holds of the number after some iterations: with the entry that the next one adds it is no more, either.

    The entries are no less than 0, and each iteration adds the one after, as long as that is inside of the table.
    """
    rest, counter = unwrapped(one.following), Term("name", one.loop.name)
    own = [part for part in rest.args if part.op == "name" and part.args[0] == one.name] if rest.op == "+" else []
    added = [part for part in rest.args if part.op == "read" and len(part.args) == 2] if own else []
    if len(own) != 1 or len(added) != 1 or one.start.op != "int":
        return ()
    table = next((t for t in every_table(kernel) if t.name == added[0].args[0].args[0]), None)
    if table is None or table.total is None or type(table.low) is not int or table.low < 0:
        return ()
    ahead = difference(unwrapped(inlined(body.definitions, added[0].args[1])), counter)
    entries, most = table.dims[0], int(one.start.args[0]) + table.total
    if ahead is None or ahead < 0 or type(entries) is not int or most >= min(INT32, body.unknowns[name].high):
        return ()
    number, last = Term("name", name), Term("int", entries - ahead)
    entry = Term("read", added[0].args[0], linear([(1, done), (ahead, ONE)]))
    return (
        any_of([fold("<", last, done), fold("<=", number, Term("int", most))]),
        any_of([fold("<", last, done), fold("<=", one.start, number)]),
        any_of([fold("<=", last, done), fold("<=", Term("+", number, entry), Term("int", most))]),
    )
