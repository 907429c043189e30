"""One program of a body run on plain ints: what a loop hands on by what data say is a number in every iteration.

Tables hold what a filling says, and what is read of them is noted. Where data, or what nobody knows, say whether an
effect happens, or what a loop hands on, nothing is claimed of that: a run shows violations, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any

from layoutproof.bodies.effects import Body, Effect, Freed, Handed, Loop
from layoutproof.bodies.forward import Here, Nest, forward, nested, turns
from layoutproof.bodies.symbolic import Number, Symbolic, named
from layoutproof.core.budget import spend
from layoutproof.core.element_types import integer_range
from layoutproof.core.errors import BudgetExceeded
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.read_consistency import consistent_reads, range_of
from layoutproof.kernel.scalar_memory import every_table

MOST_TURNS = 1_000
"""Iterations of the loops of one program that are run."""
MOST_PROGRAMS = 16
STEPS = 30_000
"""The budget of all runs for one question."""
MOST_READ = 64
"""Entries of tables that a run may read."""

Place = tuple[int, ...]
Filling = Callable[[Table, Place], int]
"""What a table holds at a place."""


def fillings() -> Iterator[Filling]:
    """Some contents of tables: the least numbers, the greatest, zeros, and numbers that rise by one."""

    def ends(table: Table) -> tuple[int, int]:
        low, high = range_of(table)
        least, most = integer_range(table.bits, table.signed)
        return (low if type(low) is int else least), (high if type(high) is int else most) - 1

    yield lambda table, at: ends(table)[0]
    yield lambda table, at: ends(table)[1]
    yield lambda table, at: max(min(0, ends(table)[1]), ends(table)[0])
    yield lambda table, at: max(min(at[-1], ends(table)[1]), ends(table)[0])


def programs(kernel: Kernel) -> list[Place]:
    """Some programs, at corners of the grid; none where that is not known."""
    if any(type(extent) is not int or extent < 1 for extent in kernel.grid):
        return []
    extents = [int(extent) for extent in kernel.grid]
    ends = [dict.fromkeys(n for n in (0, 1, extent - 2, extent - 1) if 0 <= n < extent) for extent in extents]
    return list(islice(product(*ends), MOST_PROGRAMS))


class _Filled(Symbolic):
    """Terms at one place of a run, with tables that are filled. read: what was read of them."""

    fill: Filling
    read: dict[tuple[str, Place], int]

    def _value(self, part: Term) -> Any:
        table = self.tables.get(str(part.args[0].args[0])) if part.op == "read" else None
        if table is None or table.name in self.body.loads or table.name in self.loaded:
            return super()._value(part)
        at = tuple(self._known[a] for a in part.args[1:])
        inside = all(type(n) is int and type(m) is int and 0 <= n < m for n, m in zip(at, table.dims, strict=True))
        if not inside:
            # nobody knows what lies behind a table
            return super()._value(part)
        self.read[table.name, at] = self.fill(table, at)
        return self.read[table.name, at]


class _Found(Exception):
    """What was looked for on the way was found."""


class Run:
    """One program, with what it has read of tables so far."""

    def __init__(self, kernel: Kernel, body: Body, program: Place, fill: Filling) -> None:
        self.kernel, self.body, self.program, self.fill = kernel, body, program, fill
        self.read: dict[tuple[str, Place], int] = {}
        self._tables = {table.name: table for table in every_table(kernel)}
        self._turns = 0
        self._look: Look = lambda *_: None
        self._last: tuple[Here, _Filled] | None = None

    def first(self, look: Look) -> Any:
        """The first that is found of what is looked for; None where nothing is.

        Raises BudgetExceeded where the run is too long.
        """
        self._look = look
        here = Here(dict(zip(self.kernel.grid_names, self.program, strict=True)), self.program)
        try:
            forward(nested(self.body.effects), self, here, None)
        except _Found as found:
            return found.args[0]
        return None

    def entries(self) -> dict[str, int] | None:
        """What was read of tables, by entry; None where no tables hold all of it, or it is too much to show."""
        seen = [(self._tables[name], at, value) for (name, at), value in self.read.items()]
        if len(seen) > MOST_READ or not consistent_reads(seen, INTS):
            return None
        return {f"{name}[{', '.join(map(str, at))}]": value for (name, at), value in self.read.items()}

    # the domain: an effect is looked at where it happens, a loop runs while it is known that there is one more turn

    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Looks at an effect, if it happens."""
        on = self._at(here)
        if not isinstance(effect, Freed) and all(on(condition) is True for condition in effect.spot.path):
            found = self._look(self, effect, on, here.turns)
            if found is not None:
                raise _Found(found)
        self._spend(on)

    def loop(self, nest: Nest, here: Here, state: None) -> None:
        """Runs a loop, turn by turn."""
        loop, count, ended = nest.loop, None, True
        if loop.count is not None:
            count = self._at(here)(loop.count)
            ended = type(count) is int
        for inner, more in turns(self, loop, count, here) if ended else ():
            ended = isinstance(more, bool)
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

    def handed(self, one: Handed, value: Any, here: Here) -> Number:
        """A number that a loop hands on."""
        number: Number = int(value) if isinstance(value, bool) else value
        return number

    def turned(self, loop: Loop) -> None:
        """Stops a run that is too long."""
        self._turns += 1
        if self._turns > MOST_TURNS:
            raise BudgetExceeded(f"more than {MOST_TURNS} iterations in one program")

    def _at(self, here: Here) -> _Filled:
        if self._last is None or self._last[0] is not here:
            on = _Filled(self.body, here.names, {}, (here.program, here.turns), {}, self._tables)
            on.fill, on.read = self.fill, self.read
            self._last = here, on
        return self._last[1]

    def _spend(self, on: Symbolic) -> None:
        """Counts what was evaluated, once."""
        spend(1 + on.steps)
        on.steps = 0


Look = Callable[[Run, Effect, Symbolic, tuple[Number, ...]], Any]
"""What is looked for: (the run, an effect that happens, what evaluates terms there, its iteration) -> what is found."""
