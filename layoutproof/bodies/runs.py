"""Programs of a body run on plain ints: what a loop hands on by what data say is a number in every iteration.

A program is run alone, or one after the other all of them: then what one stores to scalar memory another one loads.
Tables hold what a filling says, and what is read of them is noted. Where data, or what nobody knows, say whether an
effect happens, or what a loop hands on, nothing is claimed of that: a run shows violations, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from layoutproof.bodies.cells import kept_by
from layoutproof.bodies.effects import Access, Body, Copy, Effect, Freed, Loop, places
from layoutproof.bodies.in_flight import nested
from layoutproof.bodies.symbolic import Symbolic, named
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


def in_order(kernel: Kernel, body: Body, fill: Filling) -> Iterator[Run]:
    """The first programs as they run, each to be run before the next is asked for; none where nobody knows the order.

    What is stored to scalar memory that all of them see is there for who loads it.
    """
    known = all(type(extent) is int for extent in kernel.grid)
    if not known or kernel.parallel() or kernel.relations:
        return
    read: dict[tuple[str, Place], int] = {}
    cells: dict[tuple[str, Place], int] = {}
    for program in islice(product(*(range(int(extent)) for extent in kernel.grid)), MOST_IN_ORDER):
        yield Run(kernel, body, program, fill, read, cells)


class Run:
    """One program. read: what is read of tables so far.  cells: numbers in scalar memory, None = nobody looks at it."""

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

    @property
    def in_order(self) -> bool:
        """Whether the programs before it were run, too."""
        return self._cells is not None

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
        on = _Filled(self.body, names, {}, (self.program, turns), {}, self._tables, self._loaded)
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
            if not isinstance(node, Freed):
                happens = [on(condition) for condition in node.spot.path]
                if all(one is True for one in happens):
                    yield node, on, turns
                    self._remember(node, on)
                elif _stores(node) in self._kept and not any(one is False for one in happens):
                    raise Unsupported("whether a number is stored is not known")
            spend(1 + on.steps)

    def number(self, name: str, at: Place) -> int | None:
        """What is in scalar memory at a place, as far as it is known."""
        if self._cells is not None and (name, at) in self._cells:
            return self._cells[name, at]
        table = self._tables.get(name)
        if table is None or not all(type(m) is int and 0 <= n < m for n, m in zip(at, table.dims, strict=True)):
            return None
        self.read[name, at] = self.fill(table, at)
        return self.read[name, at]

    def _remember(self, node: Effect, on: Symbolic) -> None:
        """What is loaded of scalar memory, and what it holds, after an effect that happens."""
        if isinstance(node, Access) and node.view.reference.name in self._kept:
            name = node.view.reference.name
            index = places(node.view, ()) if node.view.dims == () else None
            at = None if index is None else tuple(on(term) for term in index)
            whole = at is not None and all(type(n) is int for n in at)
            if node.kind == "read":
                known = self.number(name, at) if at is not None and whole else None
                self._loaded.pop(node.name, None)
                if known is not None:
                    self._loaded[node.name] = known
                return
            value = self._given(node, on) if node.kind == "write" and node.mask is None else None
            if at is None or not whole or value is None:
                raise Unsupported("a number that is stored, or where, is not known")
            assert self._cells is not None
            self._cells[name, at] = value
        elif _stores(node) in self._kept:
            raise Unsupported("a copy into scalar memory")

    def _given(self, store: Access, on: Symbolic) -> int | None:
        try:
            value = on(store.value.number())
        except Lost:
            return None
        return int(value) if isinstance(value, int) else None

    def _loop(
        self, loop: Loop, nodes: Sequence[Any], names: dict[str, Any], turns: Place
    ) -> Iterator[tuple[Effect, Symbolic, Place]]:
        """A loop, turn by turn, as long as it is known that there is one more."""
        goes_on = self.body.goes_on.get(loop.name)
        count = None if loop.count is None else self._at(names, turns)(loop.count)
        handed = [one for one in self.body.handed if one.loop is loop]
        values = [self._at(names, turns)(one.start) for one in handed]
        if count is not None and type(count) is not int and any(_stores(n) in self._kept for n in _inner(nodes)):
            raise Unsupported("how often a loop stores a number is not known")
        turn, ended = 0, count == 0
        while count is None or (type(count) is int and turn < count):
            here = {**names, loop.name: turn, **{one.name: v for one, v in zip(handed, values, strict=True)}}
            on = self._at(here, (*turns, turn))
            # what was loaded in an iteration is loaded anew in the next
            for node in _inner(nodes):
                self._loaded.pop(node.name if isinstance(node, Access) else "", None)
            more = count is not None or (goes_on is not None and on(goes_on))
            if more not in (True, False) and any(_stores(node) in self._kept for node in _inner(nodes)):
                raise Unsupported("how often a loop stores a number is not known")
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


def _stores(effect: Effect) -> str:
    """The reference that an effect stores to; "" where it stores nothing."""
    if isinstance(effect, Access):
        return effect.view.reference.name if effect.kind != "read" else ""
    return effect.target.reference.name if isinstance(effect, Copy) else ""


def _inner(nodes: Sequence[Any]) -> Iterator[Effect]:
    """The effects of a loop, with those of the loops in it."""
    for node in nodes:
        if isinstance(node, tuple):
            yield from _inner(node[1])
        else:
            yield node
