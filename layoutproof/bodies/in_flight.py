"""A walk over a body, program after program: the count of every semaphore, and the copies in flight.

A semaphore's slot counts bytes: those of the copies that were started on it, less those that were waited for. A wait
blocks until its bytes are there, so where all bytes of a slot have been waited for, all its copies have ended; before,
any of them may still run. Starts and waits are never matched by address: one wait may take the bytes of many copies.

Where the numbers of a program are known, they are walked as they are. Where a condition is not (a table's entry, data),
both ways are walked, and what is taken to hold is remembered: a wait under the condition of its start is no surprise.
What the body stores to scalar memory is loaded again as it was stored (`cells`). On the way it is seen which scratch
was written before it is read.
A program with symbolic ids stands for all programs if no copy crosses its boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NoReturn

from layoutproof.bodies import problems as texts
from layoutproof.bodies.cells import Box, covered, kept_by, lost, number_at, stored, without
from layoutproof.bodies.claims import LONGEST_LOOP, asked
from layoutproof.bodies.effects import (
    COPIES_IN,
    COPIES_OUT,
    MMAS,
    Access,
    Body,
    BodyReference,
    Committed,
    Effect,
    Freed,
    Handed,
    Loop,
    Signal,
    Spot,
    StartedCopy,
    StartedUse,
    TensorFence,
    View,
    Wait,
    is_remote,
    lists_of,
    loads_of,
    stored_names,
)
from layoutproof.bodies.forward import Here, Nest, forward, nested, turns
from layoutproof.bodies.one_place import gets_its_place
from layoutproof.bodies.recurring import (
    MOST_WIDENINGS,
    PERIODS,
    Ahead,
    compared_ahead,
    handed_widened,
    speaks_of,
    widened,
)
from layoutproof.bodies.regions import ViewedRegion, array_of, bytes_of, common_element, region_of
from layoutproof.bodies.runs import Filled, Filling, entries_of, fillings
from layoutproof.bodies.symbolic import (
    Interval,
    LinearSum,
    Name,
    Number,
    OpenCondition,
    Symbolic,
    both,
    compared,
    named,
    plus,
    shown,
)
from layoutproof.bodies.terms import inlined, renaming, replaced
from layoutproof.bodies.touched import Touch, any_element, same_place, touches
from layoutproof.bodies.values import Lost
from layoutproof.bodies.ways import FORGOTTEN, TURN, Flight, Key, Slot, Way
from layoutproof.core.budget import spend
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import fold
from layoutproof.core.message import restated
from layoutproof.core.operations import INT32
from layoutproof.core.term import ZERO, Term, reads
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.solvers.decide import proves

MOST_STEPS = 1_000_000
"""Terms that are evaluated in one walk."""
FEW_STEPS = 20_000
"""Likewise in a walk with contents of tables, of which several are tried."""
MOST_WAYS = 64
"""Ways through the body that are kept apart."""
MOST_ITERATIONS = 2_000
"""Iterations of one loop that are walked one by one."""
PEELED = (0, 1, 2)
"""Turns of a loop that may be unlike those that recur: of a GPU, as many as slots are released later."""
FEW_TURNS = 8
"""Turns up to which those of a loop are walked one by one, of which only the most is known."""
MOST_IRREGULAR = 2
"""Times that the turns of one loop do not recur, in a walk; then it is not looked at again for that."""
FEW_WAYS = 8
"""Ways up to which all that was taken to hold is remembered, also what no later program looks at."""
MOST_HEADS = 16
"""Ways that are unlike at the turns of a loop that recur."""
MOST_WRITTEN = 128
"""Parts of scratch of which it is remembered that they were written."""
TERMS = 4
"""Terms that are evaluated in one step of a budget."""

BEFORE = "before"
"""How many turns before this one another turn of a loop was, or which one it was."""

Moment = tuple[tuple[int, ...], tuple[int, ...]]
"""The program, and the turns of the loops around; () where they are not numbers."""


@dataclass(frozen=True, slots=True)
class FlightProblem:
    """Something that goes wrong. sure: whether it does in every run.  hint: where to look.

    kind: "in flight" (something is touched that a copy still moves), "never" (a wait that never returns), "left" (bytes
    at the end), "" for others.  semaphore: the name of the one on which it goes wrong.
    """

    what: str
    hint: str
    sure: bool
    subject: str
    spot: Spot
    program: tuple[int, ...] = ()
    iteration: tuple[int, ...] = ()
    element: tuple[int, ...] = ()
    kind: str = ""
    semaphore: str = ""


class _Stop(Exception):
    """The first problem that is sure."""


@dataclass(eq=False)
class FlightWalk:
    """One walk. problems: those that are not sure first, one that is sure last.

    unwritten: the numbers of the effects that may read scratch which nothing has written before.  whole: whether all
    programs were walked to their end.  ways: the paths through all of them; others have to wait for copies in flight.
    fill: the entries of tables, None = unknown.  read: those that were read.  most: terms that are evaluated.
    of_others: whether it is about copies of other kernels alone; of those that this one starts another walk asks.
    """

    kernel: Kernel
    body: Body
    names: Mapping[str, Name] = field(default_factory=dict)
    problems: list[FlightProblem] = field(default_factory=list)
    steps: int = 0
    unwritten: set[int] = field(default_factory=set)
    whole: bool = False
    ways: Sequence[Way] = ()
    fill: Filling | None = None
    read: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    most: int = MOST_STEPS
    of_others: bool = False

    def __post_init__(self) -> None:
        self._parts = nested(self.body.effects)
        copies = [e for e in self.body.effects if isinstance(e, StartedCopy)]
        arrays = {t.view.reference.name for e in copies for t in touches(e)}
        arrays |= {view.reference.name for e in self.body.effects if isinstance(e, StartedUse) for view in e.views}
        arrays |= {view.reference.name for e in copies for view in lists_of(e)}
        self._copied = {array_of(self.kernel, name) for name in arrays}
        self._within: dict[Name, Interval] = {}
        self._irregular: dict[str, int] = {}
        # whether one problem ends what is tried: it is given up, or stands for no other program
        self._ends_at_one = False
        self._tables = {table.name: table for table in every_table(self.kernel)}
        # one program stands for all, so the memory that earlier programs left is unknown
        self._kept: frozenset[str] = frozenset()
        self._scratch: frozenset[str] = frozenset()
        self._compared: set[Any] = set()
        self._here: tuple[Any, ...] = ()
        self._evaluators: dict[Any, Symbolic] = {}
        self._pairs: dict[tuple[int, int], bool] = {}

    # programs

    def all_alike(self) -> bool:
        """Whether any program, with nothing in flight before it, does nothing wrong and leaves nothing in flight.

        `unwritten` is then of every program by itself: of what those before it have written nothing is used.
        """
        self._scratch = _filled_scratch(self.body)
        names: dict[str, Number] = {}
        for name, extent in zip(self.kernel.grid_names, self.kernel.grid, strict=True):
            names[name] = named("name", name)
            if type(extent) is int:
                if extent == 1:
                    names[name] = 0
                self._within[("name", name)] = (0, extent - 1)
        try:
            with self._ending_at_one():
                ways = self._program(names, [Way()])
        except (_Stop, Undecided, ArithmeticError):
            return False
        finally:
            self._within.clear()
        return not self.problems and all(not way.slots for way in ways)

    def one_by_one(self, begin: Sequence[Way] = (Way(),), handed: Collection[str] = ()) -> bool:
        """Walks the programs in order. False where there are too many; the problems found by then stand.

        begin: the copies in flight before.  handed: semaphores that others use afterwards, which need not count 0.
        """
        parallel = self.kernel.parallel()
        ways = list(begin)
        flights = [flight for way in begin for _, slot in way.slots for flight in slot.flights]
        self._copied |= {region.name for flight in flights for region in (flight.source, flight.target)}
        before: tuple[int, ...] | None = None
        self._kept = kept_by(self.body)
        self._scratch = _filled_scratch(self.body)
        try:
            for program in _in_order(self.kernel.grid):
                if before is not None and any(before[k] != program[k] for k in parallel):
                    self._over_cores(ways)
                    # another core may run what follows
                    ways = [replace(w, cells=without(w.cells, self._kept), written=frozenset()) for w in ways]
                ways = self._program(dict(zip(self.kernel.grid_names, program, strict=True)), ways)
                before = program
                if self.problems and self.kernel.subcores:
                    # subcores begin with nothing of each other: of the next ones only what is sure is news
                    self.most = min(self.most, self.steps + FEW_STEPS)
                if self.steps > self.most or len(ways) > MOST_WAYS:
                    return False
            self.ways = ways
            self._left(ways, before or (), handed)
            self.whole = True
        except _Stop:
            pass
        return True

    def _over_cores(self, ways: Iterable[Way]) -> None:
        for way in ways:
            for (name, _), slot in way.slots:
                what = texts.PARALLEL_USE(name)
                self._open(name, self._spot(name, slot), what)

    def _left(self, ways: Iterable[Way], program: tuple[int, ...], handed: Collection[str]) -> None:
        for way in ways:
            for (name, at), slot in way.slots:
                if name in handed:
                    continue
                self._found(way, self._remains(name, at, slot, program, "when the kernel ends"))

    def _spot(self, name: str, slot: Slot) -> Spot:
        """The place of the copy or signal that a slot counts."""
        if slot.flights:
            number = slot.flights[0].effect
            spots = (e.spot for e in self.body.effects if isinstance(e, StartedCopy) and e.spot.number == number)
            return next(spots, Spot(0, (), (), slot.flights[0].line))
        return next(e.spot for e in self.body.effects if isinstance(e, Signal) and e.semaphore.reference.name == name)

    def _remains(
        self, name: str, at: Sequence[Number], slot: Slot, program: tuple[int, ...], when: str
    ) -> FlightProblem:
        whole, total = slot_text(name, at), _total(slot)
        if slot.flights:
            count = plus(total, slot.waited, -1)
            what = texts.COUNTS_BYTES(whole, count, when, total, slot.waited)
            hint = texts.LOOK_AT_BYTES(whole)
        else:
            what = texts.COUNTS_SIGNALS(whole, slot.signals, when)
            hint = texts.LOOK_AT_TAKING(whole)
        kind = "left" if slot.flights else ""
        # a loop may have no turn
        sure = not any(flight.each for flight in slot.flights)
        what = what if sure else texts.PERHAPS_IN_FLIGHT(what, "")
        return FlightProblem(what, hint, sure, name, self._spot(name, slot), program, kind=kind, semaphore=name)

    def _program(self, names: Mapping[str, Number], ways: list[Way]) -> list[Way]:
        program = tuple(names.values())
        self._compared = set()
        self._evaluators.clear()
        ways = forward(self._parts, self, Here(dict(names), program), ways)
        windows = {o.name for o in self.kernel.operands if o.windowed}
        for way in ways:
            for (name, _), slot in way.slots:
                for flight in slot.flights:
                    for window in windows & {flight.source.name, flight.target.name}:
                        what = texts.COPY_AT_PROGRAM_END(window)
                        self._open(window, self._spot(name, slot), what)
        if self.kernel.platform != "tpu":
            # barriers and the memory that copies fill are a program's own, and were freed
            ways = [replace(way, slots=()) for way in ways]
        # path conditions of this program do not matter to the next if nothing is in flight and no cell is known
        ways = [replace(w, loaded=(), assumed=w.assumed if w.slots or w.cells else ()) for w in ways]
        if len(ways) > FEW_WAYS:
            ways = [replace(way, assumed=self._remembered(way)) for way in ways]
        return list(dict.fromkeys(ways))

    def _remembered(self, way: Way) -> tuple[tuple[Name, bool], ...]:
        """The path conditions that this program has looked at: later programs hardly need others."""
        kept = tuple(one for one in way.assumed if one[0] != FORGOTTEN and compared(one[0]) in self._compared)
        return kept if len(kept) == len(way.assumed) else (*kept, (FORGOTTEN, True))

    # effects

    def effect(self, effect: Effect, here: Here, ways: list[Way]) -> list[Way]:
        """The ways after an effect."""
        after = [after for way in ways for after in self._effect(effect, here, way)]
        after = list(dict.fromkeys(after)) if len(after) > 1 else after
        if len(after) > MOST_WAYS:
            self._open("", effect.spot, texts.MOST_WAYS(MOST_WAYS))
            raise _Stop
        return after

    def loop(self, nest: Nest, here: Here, ways: list[Way]) -> list[Way]:
        """The ways after a loop, turn by turn as long as it is known that there is one more."""
        loop = nest.loop
        count = loop.count.args[0] if loop.count is not None and loop.count.op == "int" else None
        by_turns = loop.name in self.body.goes_on if loop.count is None else count is not None
        if by_turns and (count is None or count <= MOST_ITERATIONS):
            problems = len(self.problems)
            # without a count, the walk may turn out to be none, and its problems with it
            with self._ending_at_one(self._ends_at_one and count is not None):
                walked = self._turn_by_turn(nest, count, here, ways)
            if walked is not None:
                if self._ends_at_one and len(self.problems) > problems:
                    raise _Stop
                return walked
            del self.problems[problems:]
        problems, unwritten = len(self.problems), set(self.unwritten)
        stopped: _Stop | None = None
        found: list[Way] = []
        try:
            found = self._any_turn(nest, count, here, ways)
        except _Stop as error:
            stopped = error
        if len(self.problems) > problems and not self.problems[-1].sure:
            begun, read = self.problems[problems:], self.unwritten
            del self.problems[problems:]
            self.unwritten = unwritten
            for rule in (self._of_few_turns, self._of_all_turns, self._recurring):
                after = rule(nest, here, ways)
                if after is not None:
                    return after
            self.problems[problems:], self.unwritten = begun, read
        if stopped is not None:
            raise stopped
        return found

    def _any_turn(self, nest: Nest, count: int | None, here: Here, ways: list[Way]) -> list[Way]:
        """The ways after a loop of which any turn leaves everything as it was, and so stands for all."""
        loop = nest.loop
        counter = named("name", loop.name)
        self._within[("name", loop.name)] = (0, (self._most_turns(loop, here) if count is None else count) - 1)
        stored_to = self._kept & stored_names(nest.effects)
        found = []
        for way in ways:
            way = replace(way, cells=without(way.cells, stored_to)) if stored_to else way
            after = forward(nest.parts, self, here.turn(loop, counter, {}), [way])
            if any(a.slots != way.slots for a in after):
                name = next(k[0] for a in after for k, _ in set(a.slots) ^ set(way.slots))
                what = texts.COUNTS_ELSE(name)
                spot = Spot(0, (), (), loop.source)
                self._open(name, spot, texts.LOOP_NOT_MODELLED(what))
                raise _Stop
            found.append(replace(way, cells=without(way.cells, stored_to)) if stored_to else way)
        return found

    def _of_few_turns(self, nest: Nest, here: Here, ways: list[Way]) -> list[Way] | None:
        """The ways after a loop of a few turns at the most: after each, it goes on on some ways and ends on others."""
        loop = nest.loop
        most = self._most_turns(loop, here)
        if most > FEW_TURNS:
            return None
        ended, begun, _ = self._first_turns(nest, most, here, ways)
        return None if begun else ended

    def _first_turns(
        self, nest: Nest, count: int, here: Here, ways: list[Way]
    ) -> tuple[list[Way], list[Way], dict[str, Number]]:
        """The ways on which a loop ends after so many turns or before; those at its next turn, and what it hands on."""
        loop = nest.loop
        handed = [one for one in self.body.handed if one.loop is loop]
        values = self._handed(handed, [one.start for one in handed], here)
        ended: list[Way] = []
        for turn in range(count + 1):
            inner = here.turn(loop, turn, values)
            ways, over = self._parted(nest, inner, here, ways)
            ended += over
            if turn == count or not ways:
                break
            ways = forward(nest.parts, self, inner, ways)
            values = self._handed(handed, [one.following for one in handed], inner)
            self.turned(loop)
        return list(dict.fromkeys(ended)), ways, values

    def _of_all_turns(self, nest: Nest, here: Here, ways: list[Way]) -> list[Way] | None:
        """The ways after a loop each of whose turns starts copies, or waits for those of one turn of another loop."""
        problems, unwritten = len(self.problems), set(self.unwritten)
        found: list[Way | None] = [None]
        if self.fill is None:
            with self._ending_at_one(), suppress(_Stop):
                found = [self._of_each_turn(nest, here, way) for way in ways]
        known = [way for way in found if way is not None]
        if len(known) == len(found) and len(self.problems) == problems:
            return known
        del self.problems[problems:]
        self.unwritten = unwritten
        return None

    def _of_each_turn(self, nest: Nest, here: Here, way: Way) -> Way | None:
        """One way after such a loop.

        Copies of one semaphore may end in any order: before all bytes are waited for, each of them may run.
        """
        loop, counter = nest.loop, ("name", nest.loop.name)
        count = self._turns_of(loop, here)
        if count is None or any(one.loop is loop for one in self.body.handed):
            return None
        most = self._most_turns(loop, here)
        self._within |= {counter: (0, most - 1), ("name", BEFORE): (0, most - 1), TURN: (0, INT32)}
        self._evaluators.clear()
        stored_to = self._kept & stored_names(nest.effects)
        way = replace(way, cells=without(way.cells, stored_to)) if stored_to else way
        waits = {effect.semaphore.reference.name for effect in nest.effects if isinstance(effect, Wait)}
        ended = [key for key, slot in way.slots if key[0] in waits and _all_of(slot, count)]
        begin = way
        for key in ended:
            slot = way.slot(key)
            here_alone = tuple(replace(f.renamed(_turn_as(named(*counter))), each=()) for f in slot.flights)
            others = f"{key[0]} of other turns", key[1]
            begin = begin.with_slot(key, replace(slot, flights=here_alone)).with_slot(others, slot)
        started = self._started_in(nest, here, begin, ended)
        if started is None:
            return None
        if started:
            # those of earlier turns may run, too
            earlier = plus(plus(named(*counter), 1, -1), named("name", BEFORE), -1)
            before = begin
            for key, flights in started.items():
                of_others = [replace(f.renamed(_turn_as(earlier)), each=(named(*counter),)) for f in flights]
                before = before.with_slot(
                    key, replace(before.slot(key), flights=(*before.slot(key).flights, *of_others))
                )
            if self._started_in(nest, here, before, ended) != started:
                return None
        for key in ended:
            way = way.with_slot(key, Slot())
        for key, flights in started.items():
            slot = way.slot(key)
            all_ = tuple(replace(flight, each=(count,)) for flight in flights)
            way = way.with_slot(key, replace(slot, flights=(*slot.flights, *all_)))
        return way

    def _started_in(
        self, nest: Nest, here: Here, begin: Way, ended: Collection[Key]
    ) -> dict[Key, tuple[Flight, ...]] | None:
        """What any turn of a loop starts, as copies of TURN; None where it leaves anything else than it began with.

        ended: semaphores all of whose copies it waits for.
        """
        loop, counter = nest.loop, ("name", nest.loop.name)
        inner = here.turn(loop, named(*counter), {})
        going, _ = self._parted(nest, inner, here, [begin])
        if len(going) != 1:
            return None
        after = forward(nest.parts, self, inner, going)
        if len(after) != 1 or after[0].assumed != going[0].assumed:
            return None
        found: dict[Key, tuple[Flight, ...]] = {}
        slots = dict(begin.slots)
        for key in {**dict(after[0].slots), **slots}:
            slot, now = slots.get(key, Slot()), after[0].slot(key)
            if key in ended and now != Slot():
                return None
            if key in ended or now == slot:
                continue
            more = now.flights[len(slot.flights) :]
            alike = replace(now, flights=slot.flights) == slot and now.flights[: len(slot.flights)] == slot.flights
            if not alike or speaks_of(key[1], counter) or any(f.each or f.renamed(_turn_as(0)) != f for f in more):
                return None
            found[key] = tuple(flight.renamed(lambda name: TURN if name == counter else name) for flight in more)
        return found

    def _recurring(self, nest: Nest, here: Here, ways: list[Way]) -> list[Way] | None:
        """The ways after a loop of which those through some turns recur; None where no few turns do.

        A walk with contents of tables looks for what is sure, which nothing is where numbers may be any.
        """
        name = nest.loop.name
        if self.fill is not None or self._irregular.get(name, 0) >= MOST_IRREGULAR:
            return None
        for peeled, period in product(PEELED if self.kernel.platform != "tpu" else PEELED[:1], self._periods()):
            problems, unwritten = len(self.problems), set(self.unwritten)
            try:
                with self._ending_at_one():
                    found = self._of_period(nest, period, peeled, here, ways)
            except _Stop:
                found = None
            if found is not None and len(self.problems) == problems:
                return found
            del self.problems[problems:]
            self.unwritten = unwritten
        self._irregular[name] = self._irregular.get(name, 0) + 1
        return None

    def _periods(self) -> Iterator[int]:
        """Numbers of turns after which ways may recur: few, and as many as a barrier has slots."""
        slots = {r.dims[0] for r in self.body.references if r.arrivals and r.dims}
        yield from (*PERIODS, *sorted(n for n in slots if PERIODS[-1] < n <= FEW_TURNS))

    def _of_period(self, nest: Nest, period: int, peeled: int, here: Here, ways: list[Way]) -> list[Way] | None:
        """The same of one number of turns. What holds before them is made weaker until it holds after them, too.

        peeled: turns that are walked one by one before.
        """
        loop, place = nest.loop, (here.program, here.turns, nest.loop.name)
        out, begun, values = self._first_turns(nest, peeled, here, ways)
        handed = [one for one in self.body.handed if one.loop is loop]
        pairs = frozenset((k - peeled, number) for k, number in compared_ahead((*begun, *out), place))
        heads = widened({}, [(way, self._ahead(way, here, peeled, pairs)) for way in begun], place)
        if not heads:
            return out if heads is not None else None
        turn = named("name", loop.name, place)
        self._within[("name", loop.name, place)] = (0, (self._most_turns(loop, here) - 1) // period)
        first, last = plus(peeled, turn, period), plus(peeled + period, turn, period)
        for _ in range(MOST_WIDENINGS):
            now, ended = [self._at_head(way, here, first, ahead) for way, ahead in heads.values()], list[Way]()
            following = values
            for k in range(period):
                inner = here.turn(loop, plus(first, k), following)
                now, over = self._parted(nest, inner, here, now)
                # what holds at the head is of ways on which the loop goes on
                ended += over if k else ()
                now = forward(nest.parts, self, inner, now)
                following = self._handed(handed, [one.following for one in handed], inner)
                self.turned(loop)
            now, over = self._parted(nest, here.turn(loop, last, following), here, now)
            weaker = widened(heads, [(way, self._ahead(way, here, last, pairs)) for way in now], place)
            more = handed_widened(values, [*following.values()], place)
            if weaker is None or len(weaker) > MOST_HEADS:
                return None
            if weaker == heads and more == values:
                return list(dict.fromkeys([*out, *(_forgetting(way, place) for way in (*ended, *over))]))
            heads, values = weaker, more
        return None

    def _handed(self, handed: Sequence[Handed], terms: Sequence[Term], here: Here) -> dict[str, Number]:
        """The values at a place of terms for the numbers that a loop hands on, by the names of these."""
        return {one.name: self.handed(one, v, here) for one, v in zip(handed, self.values(terms, here), strict=True)}

    def _turns_of(self, loop: Loop, here: Here) -> Number | None:
        """How often a loop runs, where that is a number that is known before it; none below 0 is meant."""
        counter = named("name", loop.name)
        if loop.count is not None:
            found: Number = self._evaluates(here, Way(), None)(loop.count)
            return found
        if loop.name not in self.body.goes_on:
            return None
        # what was found of its turns before is no part of what says how many there are
        known = self._within.pop(("name", loop.name), None)
        on = self._evaluates(here.turn(loop, counter, {}), Way(), None)
        ends = _ends_below(on(self.body.goes_on[loop.name]), counter)
        if known is not None:
            self._within["name", loop.name] = known
        return None if ends is None or speaks_of(ends, ("name", loop.name)) else ends

    def _most_turns(self, loop: Loop, here: Here) -> int:
        """How often a loop runs at the most: its counter is a number of 32 bits."""
        count = self._turns_of(loop, here)
        ends = None if count is None else self._evaluates(here, Way(), None).interval(count)
        return INT32 if ends is None else max(1, min(INT32, ends[1]))

    def _ahead(self, way: Way, here: Here, counter: Number, pairs: Iterable[tuple[int, LinearSum]]) -> Ahead:
        """Which comparisons of what is ahead of a counter are known on a way."""
        on = self._symbolic(here, way)
        known = {(k, number): on.less(plus(counter, k), number) for k, number in pairs}
        return frozenset((*pair, holds) for pair, holds in known.items() if isinstance(holds, bool))

    def _at_head(self, way: Way, here: Here, counter: Number, ahead: Ahead) -> Way:
        """A way at any turn. Nothing that goes wrong there is sure: some of its numbers may be any."""
        on, assumed = self._symbolic(here, way), list(way.assumed)
        for k, number, held in ahead:
            holds = on.less(plus(counter, k), number)
            if isinstance(holds, OpenCondition):
                assumed.append((holds.first(), held == (holds.op == "is")))
        return _forgetting(replace(way, assumed=tuple(assumed)))

    def _parted(self, nest: Nest, inner: Here, here: Here, ways: list[Way]) -> tuple[list[Way], list[Way]]:
        """The ways through one more turn of a loop, and those that end here."""
        loop, on, out = nest.loop, list[Way](), list[Way]()
        todo = list(ways)
        while todo:
            way = todo.pop()
            self.steps += 1
            if loop.count is not None:
                # how often it runs is said outside of it
                around = self._symbolic(here, way)
                more = around.less(inner.turns[-1], around(loop.count))
            elif loop.name in self.body.goes_on:
                more = self._symbolic(inner, way)(self.body.goes_on[loop.name])
            else:
                self._open("", Spot(0, (), (), loop.source), texts.NOT_KNOWN(texts.LOOP_GOES_ON()))
                raise _Stop
            if isinstance(more, OpenCondition):
                todo += [replace(way, assumed=(*way.assumed, (more.first(), taken))) for taken in (True, False)]
            else:
                (on if more else out).append(way)
        return on, out

    def _turn_by_turn(self, nest: Nest, count: int | None, here: Here, ways: list[Way]) -> list[Way] | None:
        """The ways through so many turns, or until the loop's condition is false; None where that is not known."""
        for inner, more in turns(self, nest.loop, count, here):
            too_many = self.steps > self.most or inner.turns[-1] == MOST_ITERATIONS
            if not isinstance(more, bool) or (count is None and too_many):
                return None
            ways = forward(nest.parts, self, inner, ways)
        return ways

    def values(self, terms: Sequence[Term], here: Here) -> list[Any]:
        """The values of terms, whatever was taken to hold on the way."""
        on = self._evaluates(here, Way(), None)
        found = [on(term) for term in terms]
        self._count(on)
        return found

    def handed(self, one: Handed, value: object, here: Here) -> Number:
        """A number that a loop hands on; of one that is no int, a name."""
        return int(value) if isinstance(value, int) else named("name", one.name, (here.program, here.turns))

    def turned(self, loop: Loop) -> None:
        """Stops where the walk is too long."""
        if self.steps > self.most:
            self._open("", Spot(0, (), (), loop.source), texts.MOST_TERMS(self.most))
            raise _Stop

    def _freed(self, freed: Freed, way: Way, at: Moment) -> None:
        """Memory that the body allocated is free again."""
        names, when = {r.name for r in freed.references}, "when its memory is freed"
        counted = {r.name for r in freed.references if not r.arrivals}
        for (name, slot_at), slot in way.slots:
            if name in counted:
                self._found(way, replace(self._remains(name, slot_at, slot, at[0], when), iteration=at[1]))
            for flight in () if self._ends_unused(freed, name) else slot.flights:
                ends = {flight.source.name, flight.target.name, *(one.name for one in flight.lists)}
                for region in sorted(ends & names):
                    # memory of a GPU that a scope has freed is still there, until another scope gets it
                    ends_all = self.kernel.platform == "tpu" or freed.spot.number + 1 >= len(self.body.effects)
                    sure = running(slot, flight) and ends_all
                    freed_now = texts.FREED_IN_FLIGHT(region, "an MMA" if name == MMAS else "a copy", when)
                    what = freed_now if sure else texts.PERHAPS_IN_FLIGHT(freed_now, "")
                    hint = texts.LOOK_AT_SCOPE(slot_text(name, slot_at))
                    self._found(way, FlightProblem(what, hint, sure, region, self._spot(name, slot), *at))

    def _ends_unused(self, freed: Freed, name: str) -> bool:
        """Whether a wait for all of a queue comes behind a scope of a GPU before any more shared memory is touched."""
        for effect in self.body.effects[freed.spot.number + 1 :] if self.kernel.platform != "tpu" else ():
            # a wait under more conditions than that its loops go on, or in one that may have no turn, need not come
            on = [self.body.goes_on.get(loop.name) for loop in effect.spot.loops]
            comes = effect.spot.loops == freed.spot.loops and all(term in on for term in effect.spot.path)
            if isinstance(effect, Wait) and effect.semaphore.reference.name == name:
                return comes and effect.semaphore.reference.in_order and not effect.left
            if not isinstance(effect, Freed | Wait | Committed | TensorFence) and not (
                isinstance(effect, Access) and effect.view.reference.memory in ("regs", "gmem")
            ):
                return False
        return False

    def _ended(self, freed: Freed, here: Here, way: Way) -> Way:
        """The way after a scope. A barrier that nobody waits for any more does no harm where no other scope gets it."""
        self._freed(freed, way, (self._point(here.program), self._point(here.turns)))
        barriers = {r.name for r in freed.references if r.arrivals}
        for barrier in freed.references:
            left = [at for (name, at), _ in way.slots if name == barrier.name]
            if barrier.arrivals and left and gets_its_place(self.body, freed, barrier):
                slot = slot_text(barrier.name, left[0])
                self._open(barrier.name, freed.spot, texts.LEFT_ON_BARRIER(slot))
        return replace(way, slots=tuple(one for one in way.slots if one[0][0] not in barriers)) if barriers else way

    def _effect(self, effect: Effect, here: Here, way: Way) -> Iterator[Way]:
        if isinstance(effect, Freed | Committed | TensorFence):
            yield self._ended(effect, here, way) if isinstance(effect, Freed) else way
            return
        reference = effect.view.reference.name if isinstance(effect, Access) else ""
        kept = reference in self._kept
        in_flight = bool(way.slots) and array_of(self.kernel, reference) in self._copied
        if isinstance(effect, Access) and not (kept or in_flight or reference in self._scratch):
            yield way
            return
        on = self._symbolic(here, way)
        held: Any = True
        for condition in effect.spot.path:
            held = both(held, on(condition))
            if held is False:
                break
        self._count(on)
        if held is False:
            yield way
        elif isinstance(held, OpenCondition) and (kept or not isinstance(effect, Access)):
            for taken in (True, False):
                yield from self._effect(effect, here, replace(way, assumed=(*way.assumed, (held.first(), taken))))
        else:
            at = (self._point(here.program), self._point(here.turns))
            match effect:
                case Access():
                    sure = held is True and effect.mask is None
                    if in_flight:
                        self._touched(on, effect, way, at, sure)
                    yield self._remembering(on, effect, way, sure)
                case StartedCopy():
                    known = self._remembering(on, effect, way, effect.mask is None)
                    yield self._started(on, effect, known, at, here.program)
                case StartedUse():
                    yield self._used(on, effect, way, here.program)
                case Wait():
                    yield self._waited(on, effect, way, at)
                case Signal():
                    yield self._signalled(on, effect, way, at)
            self._count(on)

    def _symbolic(self, here: Here, way: Way) -> Symbolic:
        """The evaluator of terms here on a way, one for all effects: it remembers what it has evaluated."""
        place = (here.names, here.program, here.turns)
        if self._here != place:
            self._here = (dict(here.names), *place[1:])
            self._evaluators.clear()
        key = (way.assumed, way.loaded)
        if key not in self._evaluators:
            self._evaluators[key] = self._evaluates(here, way, self._compared)
        return self._evaluators[key]

    def _evaluates(self, here: Here, way: Way, compared: set[object] | None) -> Symbolic:
        what = (
            self.body, here.names, dict(way.assumed), (here.program, here.turns), self._within, self._tables,
            dict(way.loaded), compared, self.kernel.relations,
        )  # fmt: skip
        if self.fill is None:
            return Symbolic(*what)
        on = Filled(*what)
        on.fill, on.read = self.fill, self.read
        return on

    def _count(self, on: Symbolic) -> None:
        """Counts what was evaluated, once."""
        self.steps += on.steps + 1
        spend(1 + on.steps // TERMS)
        on.steps = 0

    # memory

    def _remembering(self, on: Symbolic, effect: Access | StartedCopy, way: Way, sure: bool) -> Way:
        """The state of scalar memory and scratch after an effect. sure: whether it happens, without a mask."""
        if isinstance(effect, StartedCopy):
            self._read(on, effect.source, effect.spot.number, way)
            if effect.target.reference.name in self._kept:
                way = replace(way, cells=without(way.cells, [effect.target.reference.name]))
            return self._wrote(on, effect.target, way) if sure else way
        name = effect.view.reference.name
        if name in self._kept:
            return self._loaded(on, effect, way) if effect.kind == "read" else self._stored(on, effect, way)
        if effect.kind != "write":
            self._read(on, effect.view, effect.spot.number, way)
        return self._wrote(on, effect.view, way) if effect.kind == "write" and sure else way

    def _loaded(self, on: Symbolic, load: Access, way: Way) -> Way:
        """The result of a load of scalar memory: the number stored last, or the caller's."""
        name, load_name = load.view.reference.name, load.name
        at = self._cell(on, load.view)
        number = None if at is None else number_at(way.cells, name, at)
        table = self._tables.get(name)
        # a dump's loads have no sign
        known = table is not None and (table.signed or table.dtype == "pred")
        if at is not None and number is None and known and not lost(way.cells, name):
            number = named("read", name, *at)
            ends = on.interval(number)
            number = ends[0] if ends is not None and ends[0] == ends[1] else number
        others = tuple(one for one in way.loaded if one[0] != load_name)
        return replace(way, loaded=others if number is None else (*others, (load_name, number)))

    def _stored(self, on: Symbolic, store: Access, way: Way) -> Way:
        name, at = store.view.reference.name, self._cell(on, store.view)
        number: Any = None
        if at is not None and store.kind == "write" and store.mask is None:
            with suppress(Lost, Undecided):
                number = on(store.value.number(tuple(ZERO for _ in store.value.dims)))
        if at is None or isinstance(number, bool) or not isinstance(number, int | LinearSum):
            return replace(way, cells=without(way.cells, [name]))
        return replace(way, cells=stored(way.cells, name, at, number))

    def _cell(self, on: Symbolic, view: View) -> tuple[Number, ...] | None:
        """The place of the one number that a view shows; None where it shows more, or where is not known."""
        region = self._region(on, view)
        one = region.exact and all(size == 1 for _, size, _ in region.runs)
        return tuple(a for a, _, _ in region.runs) if one and all(type(a) is int for a, _, _ in region.runs) else None

    def _wrote(self, on: Symbolic, view: View, way: Way) -> Way:
        box = self._box(on, view) if view.reference.name in self._scratch else None
        if box is None or len(way.written) >= MOST_WRITTEN:
            return way
        return replace(way, written=way.written | {(view.reference.name, box)})

    def _read(self, on: Symbolic, view: View, number: int, way: Way) -> None:
        name = view.reference.name
        if name in self._scratch and number not in self.unwritten:
            box = self._box(on, view)
            if box is None or not (
                (name, box) in way.written or covered(box, [other for of, other in way.written if of == name])
            ):
                self.unwritten.add(number)

    def _box(self, on: Symbolic, view: View) -> Box | None:
        """The elements that a view shows, where they are known and next to each other."""
        region = self._region(on, view)
        found = []
        for start, size, stride in region.runs:
            if type(start) is not int or type(size) is not int or (stride != 1 and size != 1):
                return None
            found.append((start, start + size))
        return tuple(found) if region.exact else None

    def _started(self, on: Symbolic, copy: StartedCopy, way: Way, at: Moment, program: tuple[Number, ...]) -> Way:
        every = copy.mask is None
        self._touched(on, copy, way, at, every)
        regions = (self._region(on, view) for view in (copy.source, copy.target))
        source, target = (one if every else replace(one, exact=False) for one in regions)
        # a copy of a device to itself counts twice: when it is sent, and when it has arrived
        nowhere = replace(source, name="")
        ends = [(copy.semaphore, source, target)] if copy.sent is None else [
            (copy.sent, source, nowhere), (copy.semaphore, nowhere, target),
        ]  # fmt: skip
        counts = copy.semaphore.reference
        size = int(copy.grouped) if counts.arrivals or counts.in_order else bytes_of(on, copy.source)
        for semaphore, leaves, comes in ends:
            key = self._key(on, semaphore, way, copy.spot)
            lists = tuple(self._region(on, view) for view in lists_of(copy))
            flight = Flight(copy.spot.number, leaves, comes, size, program, copy.spot.source, lists, copy.adds)
            slot = way.slot(key)
            if slot.signals:
                self._unknown(semaphore, copy.spot, texts.COUNTS_BYTES_AND_SIGNALS(key[0]))
            way = way.with_slot(key, replace(slot, flights=(*slot.flights, flight)))
        return way

    def _used(self, on: Symbolic, use: StartedUse, way: Way, program: tuple[Number, ...]) -> Way:
        """An operation has started that reads memory until it is waited for, and is a group of its own."""
        key = self._key(on, use.semaphore, way, use.spot)
        slot, source = way.slot(key), use.spot.source
        regions = [self._region(on, view) for view in use.views]
        ends = [int(k == len(regions) - 1) for k in range(len(regions))]
        flights = tuple(
            Flight(use.spot.number, region, replace(region, name=""), end, program, source)
            for region, end in zip(regions, ends, strict=True)
        )
        return way.with_slot(key, replace(slot, flights=(*slot.flights, *flights)))

    def _waited(self, on: Symbolic, wait: Wait, way: Way, at: Moment) -> Way:
        key = self._key(on, wait.semaphore, way, wait.spot)
        slot, reference = way.slot(key), wait.semaphore.reference
        if reference.in_order:
            return way.with_slot(key, Slot(_last(slot.flights, wait.left or 0)))
        size = reference.arrivals or bytes_of(on, wait.view)
        if slot.signals:
            self._unknown(wait.semaphore, wait.spot, texts.COUNTS_BYTES_AND_SIGNALS(key[0]))
        waited, total = plus(slot.waited, size), _total(slot)
        left = plus(total, waited, -1)
        ends = None if type(left) is int else on.interval(left)
        if type(left) is not int and (ends is None or ends[0] < 0):
            # bytes that are there whatever the numbers are need not be known
            why = texts.ENOUGH_BYTES(slot_text(*key), size, total, self._word(left))
            self._unknown(wait.semaphore, wait.spot, why)
        word = "arrivals" if reference.arrivals else "bytes"
        if reference.arrivals and isinstance(left, int) and left >= reference.arrivals:
            what = texts.PHASE_OF_TWO_ENDED(slot_text(*key))
            hint = texts.LOOK_AT_ARRIVALS(slot_text(*key), size, plus(left, size))
            self._found(way, FlightProblem(what, hint, True, key[0], wait.spot, at[0], at[1], semaphore=key[0]))
            raise _Stop
        if isinstance(left, int) and left < 0:
            there = plus(total, slot.waited, -1)
            what = texts.TOO_FEW_BYTES(size, word, slot_text(*key), there)
            takes = f"{size} arrivals" if reference.arrivals else "the bytes of one"
            hint = texts.LOOK_AT_STARTS(slot_text(*key), takes)
            problem = FlightProblem(what, hint, True, key[0], wait.spot, at[0], at[1], kind="never", semaphore=key[0])
            self._found(way, problem)
            raise _Stop
        return way.with_slot(key, Slot() if left == 0 else replace(slot, waited=waited))

    def _signalled(self, on: Symbolic, signal: Signal, way: Way, at: Moment) -> Way:
        key = self._key(on, signal.semaphore, way, signal.spot)
        slot = way.slot(key)
        amount = on(signal.amount) if signal.amount is not None else None
        if signal.semaphore.reference.arrivals or signal.semaphore.reference.in_order:
            nowhere = ViewedRegion("", (), True)
            size = amount if type(amount) is int else 1
            arrived = Flight(signal.spot.number, nowhere, nowhere, size, (), signal.spot.source)
            return way.with_slot(key, replace(slot, flights=(*slot.flights, arrived)))
        if type(amount) is not int or slot.flights:
            self._unknown(signal.semaphore, signal.spot, texts.COUNTS_AFTER(slot_text(*key), amount))
        count = slot.signals + (-amount if signal.wait else amount)
        if count < 0:
            what = texts.TOO_FEW_SIGNALS(amount, slot_text(*key), slot.signals)
            hint = texts.LOOK_AT_SIGNALLED(slot_text(*key))
            self._found(way, FlightProblem(what, hint, True, key[0], signal.spot, *at))
            raise _Stop
        return way.with_slot(key, replace(slot, signals=count))

    def _touched(self, on: Symbolic, effect: Access | StartedCopy, way: Way, at: Moment, sure: bool) -> None:
        """Nothing that an effect touches is in flight."""
        # the first problem is told that is not sure: of further ones only those that are sure count
        if self.problems and (way.assumed or not sure):
            return
        adds = isinstance(effect, StartedCopy) and effect.adds
        for touch in touches(effect):
            name = array_of(self.kernel, touch.view.reference.name)
            mine: ViewedRegion | None = None
            for key, slot in way.slots:
                for flight in slot.flights:
                    if self.of_others and flight.effect >= 0:
                        continue
                    for region, direction in flight.moves(name, touch.writes, adds):
                        mine = mine or self._region(on, touch.view)
                        self._met(on, touch, mine, way, at, sure, key, slot, flight, region, direction)

    def _met(
        self,
        on: Symbolic,
        touch: Touch,
        mine: ViewedRegion,
        way: Way,
        at: Moment,
        sure: bool,
        key: Key,
        slot: Slot,
        flight: Flight,
        region: ViewedRegion,
        direction: str,
    ) -> None:
        """Notes an access to memory that a copy moves. mine: the accessed region.  region: of the copy."""
        common = common_element(on, mine, region)
        if common is False or (common is None and self._apart(touch, at, flight)):
            return
        runs = running(slot, flight)
        element = common if isinstance(common, tuple) else ()
        name = touch.view.reference.name
        line = flight.line.rpartition(":")[2]
        since = f", started at line {line}" if line else ""
        where = f"element {element} of {name}" if element else f"elements of {name}"
        mma = key[0] == MMAS
        moving = "an MMA that reads" if mma else f"a copy {direction}"
        what = texts.WHILE_IN_FLIGHT(touch.does, where, moving, since)
        overtaken = mma and sum(one.size == 1 for one in slot.flights[slot.flights.index(flight) :]) > 1
        sure = sure and runs and isinstance(common, tuple) and not overtaken
        if not sure:
            why = self._lost(mine, region) if common is None else ""
            why = "; another was started since, which JAX takes for its end and PTX does not" if overtaken else why
            what = texts.PERHAPS_IN_FLIGHT(what, why)
        others = len(slot.flights) > 1
        waits = key[0] if mma or key[0] in (COPIES_IN, COPIES_OUT) else f"the waits on {slot_text(*key)}"
        hint: str = texts.LOOK_AT_BEFORE(waits)
        if others:
            more = " that takes all that is started on it; copies may want semaphores of their own"
            hint = restated(f"{hint}{more}", hint)
        problem = FlightProblem(what, hint, sure, name, touch.spot, at[0], at[1], element, "in flight", key[0])
        self._found(way, problem)

    def _apart(self, touch: Touch, at: Moment, flight: Flight) -> bool:
        """Whether what is assumed of entries of tables together keeps an access from what a copy of its program moves.

        Intervals have said what is known of each entry alone. In a loop the two may be of different turns. A copy to
        places out of a list, or to another device, touches more than its source and its target.
        """
        own = not at[0] or flight.program == at[0]
        if not self.kernel.relations or not own or flight.lists or flight.effect < 0:
            return False
        pair = touch.spot.number, flight.effect
        if pair not in self._pairs:
            started = next(e for e in self.body.effects if e.spot.number == flight.effect)
            known = isinstance(started, StartedCopy) and not is_remote(started)
            sides = touches(touch.effect), touches(started)
            self._pairs[pair] = known and _never_meet(self.kernel, self.body, *sides, bool(flight.each))
        return self._pairs[pair]

    # numbers

    def _lost(self, one: ViewedRegion, other: ViewedRegion) -> str:
        """Which number is not known, of where two regions lie."""
        for name in (
            n for r in (one, other) for run in r.runs for v in run[:2] if isinstance(v, LinearSum) for n, _ in v.parts
        ):
            return f"; not known: {self._word(name)}"
        return ""

    def _word(self, name: object) -> str:
        """A named number as people know it: by what the body loads, or by why it is not known."""
        if isinstance(name, LinearSum | OpenCondition):
            return self._word(name.first() if isinstance(name, OpenCondition) else name.parts[0][0])
        if not isinstance(name, tuple):
            return str(name)
        if name[0] == "read" and name[1] in self.body.loads:
            load = loads_of(self.body)[name[1]]
            line = load.spot.source.rpartition(":")[2]
            return f"what {load.view.reference.name} holds" + (f" at line {line}" if line else "")
        if name[0] == "name":
            unknown = self.body.unknowns.get(name[1])
            return unknown.why if unknown is not None else str(name[1])
        if name[0] == "read":
            return shown(name)
        return next((self._word(a) for a in name[1:] if isinstance(a, tuple | LinearSum | OpenCondition)), shown(name))

    def _key(self, on: Symbolic, view: View, way: Way, spot: Spot) -> Key:
        region = self._region(on, view)
        name = region.name
        at = tuple(start for start, size, _ in region.runs)
        if not region.exact or any(size != 1 for _, size, _ in region.runs):
            self._unknown(view, spot, texts.SEMAPHORE_SET(name))
        for other, there in (k for k, _ in way.slots):
            if other == name and there != at and any(type(n) is not int for n in (*at, *there)):
                self._unknown(view, spot, texts.SAME_SEMAPHORE(slot_text(name, at), slot_text(name, there)))
        return name, at

    def _region(self, on: Symbolic, view: View) -> ViewedRegion:
        return region_of(self.kernel, on, view)

    def _point(self, numbers: Sequence[Number]) -> tuple[int, ...]:
        return tuple(n for n in numbers if type(n) is int) if all(type(n) is int for n in numbers) else ()

    def _unknown(self, view: View, spot: Spot, why: str) -> NoReturn:
        """Something that is not known, and without which the walk cannot go on."""
        self._open(view.reference.name, spot, texts.NOT_KNOWN(why))
        raise _Stop

    def _open(self, name: str, spot: Spot, what: str) -> None:
        """Something that is not known; the walk goes on, but for one that one problem ends."""
        if all(problem.what != what for problem in self.problems):
            self._add(FlightProblem(what, "", False, name, spot))

    def _add(self, problem: FlightProblem) -> None:
        self.problems.append(problem)
        if problem.sure or self._ends_at_one:
            raise _Stop

    @contextmanager
    def _ending_at_one(self, ends: bool = True) -> Iterator[None]:
        """Within it, one problem ends the walk."""
        before, self._ends_at_one = self._ends_at_one, ends
        try:
            yield
        finally:
            self._ends_at_one = before

    def _found(self, way: Way, problem: FlightProblem) -> None:
        if way.assumed and problem.sure:
            name, held = next((one for one in way.assumed if one[0] != FORGOTTEN), way.assumed[0])
            given = f"where {shown(name)}" if held else f"where not {shown(name)}"
            word = self._word(name)
            given = given if word in given else f"depending on {word}"
            given = given if name != FORGOTTEN else "depending on what tables hold"
            problem = replace(problem, sure=False, what=texts.PERHAPS(given, problem.what))
        self._add(problem)


def _ends_below(goes_on: object, counter: Number) -> Number | None:
    """The n of a condition that says counter < n."""
    # it is written 0 < n - counter, or not -1 < counter - n
    match goes_on:
        case OpenCondition("is", (("<", int(least), LinearSum() as left),)):
            return plus(plus(left, counter), least, -1)
        case OpenCondition("not", (OpenCondition("is", (("<", int(most), LinearSum() as past),)),)):
            return plus(plus(counter, past, -1), most + 1)
        case OpenCondition("and", (one, other)):
            ends = _ends_below(one, counter), _ends_below(other, counter)
            return None if ends[0] is None or ends[1] is None else named("min", *ends)
    return None


def _never_meet(
    kernel: Kernel, body: Body, ones: Iterable[Touch], others: Iterable[Touch], earlier: bool = False
) -> bool:
    """Whether two effects of one program never touch one element that one of them writes.

    Both are in no loop; or, where the other one is of an earlier turn, in one and the same.
    """
    pairs = [(a, b) for a, b in product(ones, others) if a.writes or b.writes]
    try:
        for one, other in pairs:
            names = [array_of(kernel, touch.view.reference.name) for touch in (one, other)]
            if names[0] != names[1]:
                continue
            loops = one.spot.loops
            if one.view.reference is not other.view.reference or other.spot.loops != loops or len(loops) != earlier:
                return False
            mine, there = any_element(one.view, "at"), any_element(other.view, "there")
            conditions, place = [*other.spot.path, there.condition], there.place
            elements = mine.names | there.names
            if earlier:
                before = Term("name", BEFORE)
                turn = renaming({loops[0].name: before})
                conditions = [replaced(inlined(body.definitions, term), turn) for term in conditions]
                place = tuple(replaced(inlined(body.definitions, term), turn) for term in place)
                if any(_loads(body, read) for read in reads([*conditions, *place])):
                    return False
                conditions.append(fold("<", before, Term("name", loops[0].name)))
                elements |= {BEFORE: LONGEST_LOOP}
            asks = [*one.spot.path, mine.condition, *conditions, same_place(mine.place, place)]
            if not proves(asked(kernel, body, asks, loops, elements).claim, ("smt",)):
                return False
    except Undecided:
        return False
    return True


def _all_of(slot: Slot, count: Number) -> bool:
    """Whether a slot counts copies of each turn of a loop that runs so often, and nothing else."""
    return bool(slot.flights) and all(f.each == (count,) for f in slot.flights) and slot.waited == 0


def _turn_as(number: Number) -> Callable[[Name], Name | Number]:
    """What gives the number of a turn for TURN."""
    return lambda name: number if name == TURN else name


def _forgetting(way: Way, place: Name | None = None) -> Way:
    """A way of which not all is remembered that was taken to hold. place: of a loop of whose turns nothing is."""
    kept = [one for one in way.assumed if one[0] != FORGOTTEN and not (place and speaks_of(one, place))]
    return replace(way, assumed=(*kept, (FORGOTTEN, True)))


def walked_with_tables(kernel: Kernel) -> tuple[FlightProblem, dict[str, int]] | None:
    """A problem that is sure for some contents of tables, with what it reads of them; None where none is found.

    A problem that needs entries of a table without assumptions does not count. Raises Undecided.
    """
    tables = {table.name: table for table in every_table(kernel)}
    for fill in fillings() if tables else ():
        walk = FlightWalk(kernel, kernel.body, fill=fill, most=FEW_STEPS)
        walk.one_by_one()
        sure = next((p for p in walk.problems if p.sure), None)
        entries = None if sure is None else entries_of(tables, walk.read)
        known = all(tables[name].low is not None and tables[name].high is not None for name, _ in walk.read)
        if sure is not None and entries and known:
            return sure, entries
    return None


@lru_cache(maxsize=1)
def walked_alike(kernel: Kernel) -> tuple[FlightWalk, bool]:
    """One program of a kernel that stands for all, and whether it does: see `FlightWalk.all_alike`."""
    walk = FlightWalk(kernel, kernel.body)
    return walk, walk.all_alike()


@lru_cache(maxsize=1)
def walked(kernel: Kernel) -> tuple[FlightWalk, bool]:
    """The programs of a kernel, walked in order: the walk, and whether there were not too many.

    Once for all questions that ask it in turn. Raises Undecided.
    """
    walk = FlightWalk(kernel, kernel.body)
    return walk, walk.one_by_one()


def filled(body: Body) -> list[BodyReference]:
    """References that copies fill, or stores that depend on loads: a walk knows more of them than terms do."""
    copies = [e.target.reference for e in body.effects if isinstance(e, StartedCopy)]
    stores = [e for e in body.effects if isinstance(e, Access) and e.kind == "write"]
    return copies + [e.view.reference for e in stores if any(_loads(body, r) for r in reads(e.spot.path))]


def _filled_scratch(body: Body) -> frozenset[str]:
    return frozenset(r.name for r in filled(body) if r.role == "scratch" and not r.pipeline)


def _loads(body: Body, read: Term) -> bool:
    return read.args[0].args[0] in body.loads


def _last(flights: Sequence[Flight], groups: int) -> tuple[Flight, ...]:
    """Of what ends in order, the last groups, and what is in none yet."""
    left = groups
    for k in range(len(flights) - 1, -1, -1):
        left -= int(flights[k].size == 1)
        if left < 0:
            return tuple(flights[k + 1 :])
    return tuple(flights)


def slot_text(name: str, at: Sequence[Number]) -> str:
    """A semaphore in words."""
    return f"{name}[{', '.join(map(str, at))}]" if at else name


def _total(slot: Slot) -> Number:
    total: Number = 0
    for flight in slot.flights:
        total = plus(total, flight.bytes)
    return total


def running(slot: Slot, flight: Flight) -> bool:
    """Whether a copy may not have ended: were it the last to end, the bytes of the others would have been enough."""
    rest = plus(plus(_total(slot), flight.bytes, -1), slot.waited, -1)
    return type(rest) is int and rest >= 0


def _in_order(grid: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    """The programs of a grid, the last dimension fastest."""
    for number in range(prod(grid)):
        program = []
        for extent in reversed(grid):
            number, entry = divmod(number, extent)
            program.append(entry)
        yield tuple(reversed(program))
