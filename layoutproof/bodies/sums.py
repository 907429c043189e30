"""Numbers to which each iteration of a loop adds another entry of a table: they stay below what all entries come to.

So it is of the tiles that each entry needs, `cdiv(t[j], tile)`, of which there are few more than of all rows together.

Where something starts that is stored one after the other, rows of groups or of sequences, is such a number. That all
entries together are at most so many is assumed of the table, after the body was read: so this is a fact of a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from layoutproof.bodies.carried_on import (
    CarriedOn,
    StoredPlace,
    between,
    carried_on,
    own_entry,
    programs_before,
    stored_places,
)
from layoutproof.bodies.effects import Body, Handed
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.terms import inlined
from layoutproof.bodies.wraps import bounds, unwrapped
from layoutproof.core.folding import TRUE, all_of, any_of, constant, fold, linear, negation, shifted
from layoutproof.core.operations import INT32
from layoutproof.core.term import ONE, ZERO, Term, substitute
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.relations import range_at
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.solvers.interval import Interval


def with_sums(kernel: Kernel, body: Body) -> Body:
    """The body with what sums of tables say of numbers that its loops hand on; another thing than a body as it is."""
    summed = any(table.total is not None for table in every_table(kernel))
    told = isinstance(body, Body) and (body.loads or (summed and body.handed))
    return _with_sums(kernel, body) if told else body


@lru_cache(maxsize=8)
def _with_sums(kernel: Kernel, body: Body) -> Body:
    for one in carried_on(kernel, body):
        body = _with_carried(kernel, body, one)
    for place in stored_places(kernel, body):
        body = _with_stored(kernel, body, place)
    return _with_handed(kernel, body) if body.handed else body


def _with_stored(kernel: Kernel, body: Body, place: StoredPlace) -> Body:
    """The body with the numbers between which all is that it stores to a place of scratch."""
    loads = {load.name: body.loads[load.name] for load in place.loads}
    tables = {table.name: table for table in every_table(kernel)}
    spans = {loop.name: (0, INT32) for store, _ in place.stores for loop in store.spot.loops}

    def within(value: Term, held: Interval | None) -> object:
        def read(part: Term) -> tuple[int, int] | None:
            name = str(part.args[0].args[0])
            if name in loads:
                return None if held is None else (int(held.low), int(held.high))
            table = body.loads.get(name) or tables.get(name)
            low, high = (None, None) if table is None else range_at(kernel.relations, table, part.args[1:])
            return (low, high - 1) if type(low) is type(high) is int else None

        return bounds(kernel, body, spans, read)(value)

    found = between(kernel, place, within)
    if found is None:
        return body
    return replace(body, loads={**body.loads, **{name: _narrowed(table, *found) for name, table in loads.items()}})


def _narrowed(table: Table, low: int, most: int) -> Table:
    """A table of what is loaded that holds no numbers but those from one to another."""
    known = table.low if type(table.low) is int else low, table.high if type(table.high) is int else most + 1
    return replace(table, low=max(low, known[0]), high=min(most + 1, known[1]))


def _with_carried(kernel: Kernel, body: Body, one: CarriedOn) -> Body:
    """The body with what is known of a number in scratch to which each program adds."""
    found = _carried_facts(kernel, one)
    if found is None:
        return body
    most, before, after, anywhere = found
    loads, loaded = dict(body.loads), dict(body.loaded)
    for load in (*one.before, *one.after):
        number = Term("read", Term("name", load.name), *([ZERO] * len(load.view.dims or (1,))))
        fact = (before if load in one.before else after)(number)
        loaded[load.name] = (*loaded.get(load.name, ()), fact)
        if anywhere:
            loads[load.name] = _narrowed(loads[load.name], one.low, most)
    return replace(body, loads=loads, loaded=loaded)


_Fact = Callable[[Term], Term]
"""The condition that holds of a number that was loaded."""


def _carried_facts(kernel: Kernel, one: CarriedOn) -> tuple[int, _Fact, _Fact, bool] | None:
    """The most that a number comes to, conditions on it before a program adds to it and after, and whether that holds
    of every program. None where nothing is known."""
    step = difference(one.summand, ZERO)
    if step is not None:
        ranks = programs_before(kernel, one.varies)
        if ranks is None or step < 0 or one.high + step * ranks[1] >= INT32:
            return None
        rank, many = ranks
        least = Term("int", one.low)

        def counted(programs: int) -> _Fact:
            most = linear([(step, rank)], one.high + step * programs)
            return lambda number: all_of([fold("<=", least, number), fold("<=", number, most)])

        return one.high + step * many, counted(0), counted(1), True
    added = _added(one.summand)
    table = None if added is None else next((t for t in every_table(kernel) if t.name == added.table), None)
    if added is None or table is None or table.total is None or type(table.low) is not int or table.low < 0:
        return None
    entries = table.dims[0]
    inside = own_entry(kernel, added.read.args[1], one.varies, entries) if type(entries) is int else None
    if inside is None or type(entries) is not int:
        return None
    total = added.times * (table.total + added.more * entries)
    if one.high + total // added.by >= INT32:
        return None
    below = Term("int", added.by * one.high + total)

    def summed(parts: Sequence[Term]) -> _Fact:
        def fact(number: Term) -> Term:
            most = linear([(added.by, part) for part in (number, *parts)])
            held = all_of([fold("<=", Term("int", one.low), number), fold("<=", most, below)])
            return any_of([negation(inside), held])

        return fact

    return one.high + total // added.by, summed([added.term]), summed([]), inside is TRUE


def _with_handed(kernel: Kernel, body: Body) -> Body:
    unknowns = dict(body.unknowns)
    for one in body.handed:
        tiles = _tiles_of_rows(kernel, body, one)
        most = tiles.most if tiles is not None else _most(kernel, body, one)
        turns = None if one.trips is None else difference(one.trips, ZERO)
        for name, done, after in ((one.name, Term("name", one.loop.name), False), (one.after, one.trips, True)):
            if done is not None and name in unknowns:
                known = unknowns[name]
                told = _facts(kernel, body, one, name, done)
                told = told if tiles is None else tiles.facts(name, done, after)
                if most is not None and turns is not None and turns <= most.turns and told:
                    # no iteration reads behind the table
                    known = replace(known, low=max(known.low, most.low), high=min(known.high, most.high + 1))
                unknowns[name] = replace(known, facts=(*known.facts, *told))
    return replace(body, unknowns=unknowns)


@dataclass(frozen=True, slots=True)
class _Most:
    """Between which numbers, both included, it is what iterations add up, in as many as the table has entries for."""

    low: int
    high: int
    turns: int


@dataclass(frozen=True, slots=True, eq=False)
class _Added:
    """The summand of an iteration: at least 0 and at most `times * (read + more) / by`, for a nonnegative entry."""

    term: Term
    read: Term
    times: int = 1
    more: int = 0
    by: int = 1

    @property
    def table(self) -> str:
        """The name of the table that has the entry."""
        return str(self.read.args[0].args[0])

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


@dataclass(frozen=True, slots=True, eq=False)
class _TilesOfRows:
    """Tiles of rows that groups have one after the other: each has those that its rows touch, `cdiv(x + s % a, t)`.

    s is the row where the group of x rows starts, which another number is that the same loop hands on, and tiles start
    at multiples of a, of which t is one. Then after k groups there are at most `k + (s - 1) // t` tiles more than at
    first, if s rows are at least one: of a group that starts at row s the last one is in tile `(x + s % a - 1) // t` of
    its own, and `t * ((x + s % a - 1) // t) <= a * ((x + s % a - 1) // a) = a * ((s + x - 1) // a) - a * (s // a)`. So
    `t * (tiles - k) <= a * ((s - 1) // a)` is kept, and a group may also have no tiles.

    added: the summand of an iteration, of the entry `read`.  rows: the other number.  last: iterations in the table.
    """

    one: Handed
    rows: Handed
    added: Term
    read: Term
    tile: int
    last: int
    most: _Most

    def facts(self, name: str, done: Term, after: bool) -> tuple[Term, ...]:
        """The facts about the number after some iterations, and with the next summand."""
        number, rows = Term("name", name), Term("name", self.rows.after if after else self.rows.name)
        last, tile, first = Term("int", self.last), self.tile, int(self.one.start.args[0])

        def below(tiles: Term, turns: int, rows: Term) -> Term:
            more = linear([(tile, tiles), (-tile, done)], -tile * (first + turns))
            return fold("<=", more, fold("max", linear([(1, rows)], -1), ZERO))

        found = (
            any_of([fold("<", last, done), below(number, 0, rows)]),
            any_of([fold("<", last, done), fold("<=", self.one.start, number)]),
        )
        ahead = linear([(1, number), (1, self.added)])
        # after the loop its names are those of no iteration
        following = any_of([fold("<=", last, done), below(ahead, 1, linear([(1, rows), (1, self.read)]))])
        return found if after else (*found, following)


def _tiles_of_rows(kernel: Kernel, body: Body, one: Handed) -> _TilesOfRows | None:
    rest = unwrapped(one.following)
    if rest.op != "+" or one.start.op != "int":
        return None
    own = Term("name", one.name)
    others = [part for part in rest.args if part is not own]
    touched = _touched(others[0]) if len(others) == 1 else None
    if touched is None:
        return None
    read, start, align, tile = touched
    if tile % align:
        return None
    for rows in body.handed:
        summed = unwrapped(rows.following)
        alike = rows.loop is one.loop and start is Term("name", rows.name)
        if not alike or summed.op != "+" or {*summed.args} != {start, read}:
            continue
        most = _most(kernel, body, rows)
        if most is None or most.low < 0:
            return None
        first = int(one.start.args[0])
        high = first + most.turns + max(most.high - 1, 0) // tile
        if max(high, most.high + align + tile) >= INT32 or first < 0:
            return None
        return _TilesOfRows(one, rows, others[0], read, tile, most.turns, _Most(first, high, most.turns))
    return None


def _touched(term: Term) -> tuple[Term, Term, int, int] | None:
    """(x, s, a, t) of `cdiv(x + s % a, t)`, of an entry x, or of a choice between that and nothing."""
    if term.op == "select":
        ways = [way for way in term.args[1:] if constant(way) != 0]
        return _touched(ways[0]) if len(ways) == 1 else None
    if term.op in ("//", "truncdiv"):
        tile, (parts, more) = constant(term.args[1]), _parts(term.args[0])
        over = None if tile is None else (parts, more - tile + 1)
    elif term.op == "-" and constant(term.args[0]) == 0 and term.args[1].op == "//":
        tile, less = constant(term.args[1].args[1]), term.args[1].args[0]
        over = _parts(less.args[1]) if less.op == "-" and constant(less.args[0]) == 0 else None
    else:
        return None
    if tile is None or tile < 1 or over is None or over[1] != 0 or len(over[0]) != 2:
        return None
    read, rest = sorted(over[0], key=lambda part: part.op != "read")
    align = constant(rest.args[1]) if rest.op == "%" else None
    if read.op != "read" or len(read.args) != 2 or align is None or align < 1 or rest.args[0].op != "name":
        return None
    return read, rest.args[0], align, tile


def _parts(term: Term) -> tuple[list[Term], int]:
    """The parts of a sum, and the constant beside them."""
    if term.op == "int":
        return [], int(term.args[0])
    less = constant(term.args[1]) if term.op == "-" else None
    if less is not None:
        before = _parts(term.args[0])
        return before[0], before[1] - less
    if term.op != "+":
        return [term], 0
    left, right = _parts(term.args[0]), _parts(term.args[1])
    return [*left[0], *right[0]], left[1] + right[1]


def _tiles(term: Term, less: Term, divisor: Term) -> _Added | None:
    """-(-t // by), as many tiles as t needs. less: -t of an entry t."""
    by = constant(divisor)
    read = less.args[1] if less.op == "-" and constant(less.args[0]) == 0 else None
    if read is None or read.op != "read" or len(read.args) != 2 or by is None or by < 1:
        return None
    return _Added(term, read, 1, by - 1, by)


def _facts(kernel: Kernel, body: Body, one: Handed, name: str, done: Term) -> tuple[Term, ...]:
    """The facts about the number after some iterations: the bound also holds with the next summand.

    The entries are no less than 0, and each iteration adds the one after, as long as that is inside of the table. Of
    tiles, each entry needs at most a part of one more: sum(cdiv(t, b)) <= (sum(t) + n * (b - 1)) / b of n entries.
    """
    found = _summed(kernel, body, one)
    if found is None:
        return ()
    total, added, ahead, entries, start = found
    if found.high >= min(INT32, body.unknowns[name].high):
        return ()
    number, last = Term("name", name), Term("int", entries - ahead)
    entry = Term("read", added.read.args[0], linear([(1, done), (ahead, ONE)]))
    following = linear([(added.by, number), (added.by, added.at(entry))])
    # of all that was added, and of what the next iteration adds besides
    most = linear([(added.times * added.more, done)], added.by * start + added.times * total)
    whole = Term("%", linear([(1, number)], -start), Term("int", added.times))
    return (
        *([fold("==", whole, ZERO)] if added.times > 1 else []),
        any_of([fold("<", last, done), fold("<=", linear([(added.by, number)]), most)]),
        any_of([fold("<", last, done), fold("<=", one.start, number)]),
        any_of([fold("<=", last, done), fold("<=", following, shifted(most, added.times * added.more))]),
    )


class _Summed(NamedTuple):
    """A number to which each iteration adds another entry of a table.

    total: an upper bound on the sum of all entries.  added: by an iteration.  ahead: of the counter, where its entry
    is.
    entries: of the table.  start: the number at first.
    """

    total: int
    added: _Added
    ahead: int
    entries: int
    start: int

    @property
    def high(self) -> int:
        """The most that it is, once all entries are added."""
        added = self.added
        return self.start + added.times * (self.total + added.more * self.entries) // added.by


def _summed(kernel: Kernel, body: Body, one: Handed) -> _Summed | None:
    added, counter = _added_by(one), Term("name", one.loop.name)
    if added is None or one.start.op != "int":
        return None
    table = next((t for t in every_table(kernel) if t.name == added.read.args[0].args[0]), None)
    if table is None or table.total is None or type(table.low) is not int or table.low < 0:
        return None
    ahead = difference(unwrapped(inlined(body.definitions, added.read.args[1])), counter)
    entries = table.dims[0]
    if ahead is None or ahead < 0 or type(entries) is not int:
        return None
    return _Summed(table.total, added, ahead, entries, int(one.start.args[0]))


def _added_by(one: Handed) -> _Added | None:
    """The summand of an iteration, where it is one entry of a table, or tiles over it."""
    rest = unwrapped(one.following)
    own = [part for part in rest.args if part.op == "name" and part.args[0] == one.name] if rest.op == "+" else []
    others = [made for part in rest.args if (made := _added(part)) is not None] if own else []
    return others[0] if len(own) == len(others) == 1 else None


def added_up(body: Body, one: Handed) -> str:
    """The table of which each iteration adds another entry to a number that a loop hands on; "" where none is added."""
    added = _added_by(one)
    at = None if added is None else unwrapped(inlined(body.definitions, added.read.args[1]))
    further = None if at is None else difference(at, Term("name", one.loop.name))
    return "" if added is None or further is None else str(added.read.args[0].args[0])


def _most(kernel: Kernel, body: Body, one: Handed) -> _Most | None:
    """Between which numbers it is what iterations add up, none of which is behind the table."""
    found = _summed(kernel, body, one)
    if found is None:
        return None
    return _Most(found.start, found.high, found.entries - found.ahead) if found.high < INT32 else None
