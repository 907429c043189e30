"""One program of a body run on plain ints: what a loop hands on by what data say is a number in every iteration.

Tables hold what a filling says, and what is read of them is noted. Where data, or what nobody knows, say whether an
effect happens, or what a loop hands on, nothing is claimed of that: a run shows violations, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from layoutproof.bodies.effects import Body, Effect, Freed, Loop
from layoutproof.bodies.in_flight import nested
from layoutproof.bodies.symbolic import Symbolic, named
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


class Run:
    """One program, with what it has read of tables so far."""

    def __init__(self, kernel: Kernel, body: Body, program: Place, fill: Filling) -> None:
        self.kernel, self.body, self.program, self.fill = kernel, body, program, fill
        self.read: dict[tuple[str, Place], int] = {}
        self._tables = {table.name: table for table in every_table(kernel)}
        self._turns = 0

    def effects(self) -> Iterator[tuple[Effect, Symbolic, Place]]:
        """The effects that happen, each with what evaluates terms there, and its iteration."""
        names = dict(zip(self.kernel.grid_names, self.program, strict=True))
        yield from self._of(nested(self.body.effects), names, ())

    def entries(self) -> dict[str, int] | None:
        """What was read of tables, by entry; None where no tables hold all of it, or it is too much to show."""
        seen = [(self._tables[name], at, value) for (name, at), value in self.read.items()]
        if len(seen) > MOST_READ or not consistent_reads(seen, INTS):
            return None
        return {f"{name}[{', '.join(map(str, at))}]": value for (name, at), value in self.read.items()}

    def _at(self, names: Mapping[str, Any], turns: Place) -> _Filled:
        on = _Filled(self.body, names, {}, (self.program, turns), {}, self._tables)
        on.fill, on.read = self.fill, self.read
        return on

    def _of(
        self, nodes: Sequence[Any], names: dict[str, Any], turns: Place
    ) -> Iterator[tuple[Effect, Symbolic, Place]]:
        for node in nodes:
            if isinstance(node, tuple):
                yield from self._loop(node[0], node[1], names, turns)
                continue
            on = self._at(names, turns)
            if not isinstance(node, Freed) and all(on(condition) is True for condition in node.spot.path):
                yield node, on, turns
            spend(1 + on.steps)

    def _loop(
        self, loop: Loop, nodes: Sequence[Any], names: dict[str, Any], turns: Place
    ) -> Iterator[tuple[Effect, Symbolic, Place]]:
        """A loop, turn by turn, as long as it is known that there is one more."""
        goes_on = self.body.goes_on.get(loop.name)
        count = None if loop.count is None else self._at(names, turns)(loop.count)
        handed = [one for one in self.body.handed if one.loop is loop]
        values = [self._at(names, turns)(one.start) for one in handed]
        turn, ended = 0, count == 0
        while count is None or (type(count) is int and turn < count):
            here = {**names, loop.name: turn, **{one.name: v for one, v in zip(handed, values, strict=True)}}
            on = self._at(here, (*turns, turn))
            more = count is not None or (goes_on is not None and on(goes_on))
            # what is before the end of a loop is looked at once more than the body runs
            yield from self._of(nodes, here, (*turns, turn))
            if more is not True:
                ended = more is False
                break
            values = [on(one.following) for one in handed]
            values = [int(v) if isinstance(v, bool) else v for v in values]
            spend(1 + on.steps)
            turn += 1
            ended = turn == count
            self._turns += 1
            if self._turns > MOST_TURNS:
                raise BudgetExceeded(f"more than {MOST_TURNS} iterations in one program")
        names |= {
            one.after: v if ended and type(v) is int else named("name", one.after, self.program)
            for one, v in zip(handed, values, strict=True)
        }
