"""Programs of a body run on plain ints: a loop-carried value that depends on data is a number in every iteration.

A program is run alone, or all of them one after the other: then one loads the scalars that another one stored.
A filling gives the entries of tables, and each entry that is read is noted. Where data or unknowns decide whether an
effect happens, or the value that a loop carries, nothing is claimed of it: a run shows violations, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.cells import kept_by
from layoutproof.bodies.effects import Access, Body, Effect, Freed, Handed, Loop, places, stored_names
from layoutproof.bodies.forward import Here, Nest, forward, nested, nests_of, turns
from layoutproof.bodies.symbolic import Number, Symbolic, named
from layoutproof.bodies.values import Lost
from layoutproof.core.budget import spend
from layoutproof.core.element_types import integer_range
from layoutproof.core.errors import BudgetExceeded, Unsupported
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.read_consistency import consistent_reads, range_of
from layoutproof.kernel.scalar_memory import every_table

MOST_TURNS = 1_000
"""Iterations of the loops of one program that are run."""
MOST_PROGRAMS = 16
MOST_IN_ORDER = 64
"""Programs that are run one after the other."""
STEPS = 30_000
"""The budget of all runs for one question."""
MOST_READ = 64
"""Entries of tables that a run may read."""

Place = tuple[int, ...]
Filling = Callable[[Table, Place], int]
"""The entry of a table at a place."""


def fillings() -> Iterator[Filling]:
    """Some contents of tables: the least numbers, the greatest, zeros, numbers that rise by one, both ends in turn."""

    def ends(table: Table) -> tuple[int, int]:
        low, high = range_of(table)
        least, most = integer_range(table.bits, table.signed)
        return (low if type(low) is int else least), (high if type(high) is int else most) - 1

    yield lambda table, at: ends(table)[0]
    yield lambda table, at: ends(table)[1]
    yield lambda table, at: max(min(0, ends(table)[1]), ends(table)[0])
    yield lambda table, at: max(min(at[-1], ends(table)[1]), ends(table)[0])
    yield lambda table, at: ends(table)[at[-1] % 2]


def programs(kernel: Kernel) -> list[Place]:
    """Some programs, at corners of the grid; none where that is not known."""
    if any(type(extent) is not int or extent < 1 for extent in kernel.grid):
        return []
    extents = [int(extent) for extent in kernel.grid]
    ends = [dict.fromkeys(n for n in (0, 1, extent - 2, extent - 1) if 0 <= n < extent) for extent in extents]
    return list(islice(product(*ends), MOST_PROGRAMS))


class Filled(Symbolic):
    """Terms at one place of a run, with tables that are filled. read: the entries read of them."""

    fill: Filling
    read: dict[tuple[str, Place], int]

    def _value(self, part: Term) -> Any:
        table = self.tables.get(str(part.args[0].args[0])) if part.op == "read" else None
        if table is None or table.name in self.body.loads or table.name in self.loaded:
            return super()._value(part)
        at = tuple(self._known[a] for a in part.args[1:])
        inside = all(type(n) is int and type(m) is int and 0 <= n < m for n, m in zip(at, table.dims, strict=True))
        if not inside:
            # memory behind a table has unknown contents
            return super()._value(part)
        self.read[table.name, at] = self.fill(table, at)
        return self.read[table.name, at]


def entries_of(tables: Mapping[str, Table], read: Mapping[tuple[str, Place], int]) -> dict[str, int] | None:
    """The entries read of tables; None where they are inconsistent, or too many to show."""
    seen = [(tables[name], at, value) for (name, at), value in read.items()]
    if len(seen) > MOST_READ or not consistent_reads(seen, INTS):
        return None
    return {f"{name}[{', '.join(map(str, at))}]": value for (name, at), value in read.items()}


class _EffectFound(Exception):
    """The effect that was looked for was found."""


def in_order(kernel: Kernel, body: Body, fill: Filling) -> Iterator[ProgramWalk]:
    """The first programs in their order, each to be run before the next is asked for; none where the order is unknown.

    Later programs load the values that earlier ones stored to shared scalar memory.
    """
    known = all(type(extent) is int for extent in kernel.grid)
    if not known or kernel.parallel() or kernel.relations:
        return
    read: dict[tuple[str, Place], int] = {}
    cells: dict[tuple[str, Place], int] = {}
    for program in islice(product(*(range(int(extent)) for extent in kernel.grid)), MOST_IN_ORDER):
        yield ProgramWalk(kernel, body, program, fill, read, cells)


class ProgramWalk:
    """One program. read: the entries of tables read so far.  cells: numbers in scalar memory, None = not tracked."""

    def __init__(
        self,
        kernel: Kernel,
        body: Body,
        program: Place,
        fill: Filling,
        read: dict[tuple[str, Place], int] | None = None,
        cells: dict[tuple[str, Place], int] | None = None,
    ) -> None:
        self.kernel, self.body, self.program, self.fill = kernel, body, program, fill
        self.read: dict[tuple[str, Place], int] = {} if read is None else read
        self._tables = {table.name: table for table in every_table(kernel)}
        self._cells = cells
        self._kept = frozenset[str]() if cells is None else kept_by(body)
        self._loaded: dict[str, Any] = {}
        self._turns = 0
        self._look: Look = lambda *_: None
        self._last: tuple[Here, Filled] | None = None

    @property
    def in_order(self) -> bool:
        """Whether the programs before it were run, too."""
        return self._cells is not None

    def first(self, look: Look) -> Any:
        """The first that is found of what is looked for; None where nothing is, and the program has run to its end.

        Raises BudgetExceeded where the run is too long, Unsupported where it is not known what is stored.
        """
        self._look = look
        here = Here(dict(zip(self.kernel.grid_names, self.program, strict=True)), self.program)
        try:
            forward(nested(self.body.effects), self, here, None)
        except _EffectFound as found:
            return found.args[0]
        return None

    def entries(self) -> dict[str, int] | None:
        """The entries read of tables; see `entries_of`."""
        return entries_of(self._tables, self.read)

    # the domain: an effect is looked at where it happens, a loop runs while it is known that there is one more turn

    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Looks at an effect, if it happens."""
        on = self._at(here)
        if not isinstance(effect, Freed):
            happens = [on(condition) for condition in effect.spot.path]
            if all(one is True for one in happens):
                found = self._look(self, effect, on, here.turns)
                if found is not None:
                    raise _EffectFound(found)
                self._remember(effect, on)
            elif not any(one is False for one in happens):
                self._refuse((effect,), problems.STORE_CONDITION())
        self._spend(on)

    def loop(self, nest: Nest, here: Here, state: None) -> None:
        """Runs a loop, turn by turn."""
        loop, count, ended = nest.loop, None, True
        if loop.count is not None:
            count = self._at(here)(loop.count)
            ended = type(count) is int
        if not ended:
            self._refuse(nest.effects, problems.LOOP_STORE_COUNT())
        for inner, more in turns(self, loop, count, here) if ended else ():
            ended = isinstance(more, bool)
            if not ended:
                self._refuse(nest.effects, problems.LOOP_STORE_COUNT())
            forward(nest.parts, self, inner, state)
        for one in self.body.handed:
            if one.loop is loop and not (ended and type(here.names[one.after]) is int):
                here.names[one.after] = named("name", one.after, self.program)

    def values(self, terms: Sequence[Term], here: Here) -> list[Any]:
        """The values of terms in this run."""
        on = self._at(here)
        found = [on(term) for term in terms]
        self._spend(on)
        return found

    def handed(self, one: Handed, value: object, here: Here) -> Number:
        """A number that a loop hands on: one that is not known has a name, as terms of terms grow with each turn."""
        if isinstance(value, int):
            return int(value)
        return named("handed", one.name, here.program, here.turns)

    def turned(self, loop: Loop) -> None:
        """Forgets what the turn has loaded, which the next one loads anew, and stops a run that is too long."""
        for effect in nests_of(self.body)[loop.name].effects if self._loaded else ():
            self._loaded.pop(effect.name if isinstance(effect, Access) else "", None)
        self._last = None
        self._turns += 1
        if self._turns > MOST_TURNS:
            raise BudgetExceeded(problems.MOST_ITERATIONS(MOST_TURNS))

    # scalar memory that all programs see

    def number(self, name: str, at: Place) -> int | None:
        """The number in scalar memory at a place, as far as it is known."""
        if self._cells is not None and (name, at) in self._cells:
            return self._cells[name, at]
        table = self._tables.get(name)
        if table is None or not all(type(m) is int and 0 <= n < m for n, m in zip(at, table.dims, strict=True)):
            return None
        self.read[name, at] = self.fill(table, at)
        return self.read[name, at]

    def _remember(self, effect: Effect, on: Symbolic) -> None:
        """Updates the loaded numbers and the cells of scalar memory after an effect that happens."""
        if not isinstance(effect, Access) or effect.view.reference.name not in self._kept:
            self._refuse((effect,), problems.COPY_INTO_SCALAR_MEMORY())
            return
        name = effect.view.reference.name
        index = places(effect.view, ()) if effect.view.dims == () else None
        at = None if index is None else tuple(on(term) for term in index)
        whole = at is not None and all(type(n) is int for n in at)
        if effect.kind == "read":
            known = self.number(name, at) if at is not None and whole else None
            self._loaded.pop(effect.name, None)
            if known is not None:
                self._loaded[effect.name] = known
            self._last = None
            return
        value = _stored_number(effect, on) if effect.kind == "write" and effect.mask is None else None
        if at is None or not whole or value is None:
            raise Unsupported(problems.STORE_UNKNOWN())
        assert self._cells is not None
        self._cells[name, at] = value

    def _refuse(self, effects: Sequence[Effect], what: str) -> None:
        """Raises Unsupported where one of some effects stores to scalar memory that all programs see."""
        if not self._kept.isdisjoint(stored_names(effects)):
            raise Unsupported(what)

    def _at(self, here: Here) -> Filled:
        if self._last is None or self._last[0] is not here:
            on = Filled(self.body, here.names, {}, (here.program, here.turns), {}, self._tables, self._loaded)
            on.fill, on.read = self.fill, self.read
            self._last = here, on
        return self._last[1]

    def _spend(self, on: Symbolic) -> None:
        """Counts what was evaluated, once."""
        spend(1 + on.steps)
        on.steps = 0


Look = Callable[[ProgramWalk, Effect, Symbolic, tuple[Number, ...]], Any]
"""A search: (the run, an effect that happens, the evaluator of terms there, its iteration) -> the result."""


def _stored_number(store: Access, on: Symbolic) -> int | None:
    try:
        value = on(store.value.number())
    except Lost:
        return None
    return int(value) if isinstance(value, int) else None
