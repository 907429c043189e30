"""A walk over the kernels that hand semaphores to one another, and over what a function does between them.

A kernel may start a copy and give its semaphore away: another one waits for it. Until then the copy runs beside all
that the function does, of which XLA only knows the dependencies: a step that does not depend on the wait may run
before it, and memory without further uses is given to others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from layoutproof.bodies import problems as texts
from layoutproof.bodies.effects import Spot, is_remote, views_of
from layoutproof.bodies.in_flight import FlightProblem, FlightWalk, running
from layoutproof.bodies.recurring import ANY
from layoutproof.bodies.regions import ViewedRegion, array_of
from layoutproof.bodies.symbolic import Name, renamed, shown
from layoutproof.bodies.ways import FORGOTTEN, Flight, Slot, Way
from layoutproof.core import problems as core_problems
from layoutproof.core.errors import Undecided
from layoutproof.core.message import restated
from layoutproof.kernel.calls_around import CallingFunction, FunctionStep
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.scalar_memory import is_table

OF_A_KERNEL = ("read", "name", "handed", ANY)
"""The first words of named numbers that mean something in one kernel alone, but for entries of tables."""


def handed_on(kernel: Kernel) -> FlightProblem | None:
    """The problem with copies in a kernel, or with those that it starts for others; None where there is none.

    A problem that is not `sure` says why it is unknown. kernel: with what is `around` it.
    """
    around: CallingFunction = kernel.around
    walk = _FunctionWalk(around, kernel)
    try:
        walk.run()
    except Undecided as lost:
        walk.say(around.mine, texts.IN_FLIGHT_DEPENDS(lost))
    except _Known:
        pass
    mine = walk.problems.get(around.mine)
    if mine is None and walk.problems:
        # later steps have not been looked at
        step, problem = next(iter(walk.problems.items()))
        return _open(texts.OF_STEP(around.steps[step].name, _at(around.steps[step]), problem.what))
    return mine


class _Known(Exception):
    """A problem at a step decides the answer."""


def _open(why: str, subject: str = "", source: str = "") -> FlightProblem:
    return FlightProblem(why, "", False, subject, Spot(0, (), (), source))


@dataclass(eq=False)
class _FunctionWalk:
    """The steps of a function, walked in order. buffers: where each value lies.  problems: by the step at fault."""

    around: CallingFunction
    kernel: Kernel
    buffers: dict[int, str] = field(default_factory=dict)
    problems: dict[int, FlightProblem] = field(default_factory=dict)
    starts: dict[Flight, int] = field(default_factory=dict)
    ways: list[Way] = field(default_factory=lambda: [Way()])

    def say(self, step: int, why: str, source: str = "") -> None:
        """Records an unknown at a step; no later step is looked at."""
        self.problems.setdefault(step, _open(why, source=source or self.around.steps[step].source))
        raise _Known

    def wrong(self, step: int, what: str, hint: str, subject: str, line: str, sure: bool = True) -> None:
        """Records a problem with a copy that a step starts."""
        sure = sure and not any(way.assumed for way in self.ways)
        found = FlightProblem(what if sure else f"perhaps {what}", hint, sure, subject, Spot(0, (), (), line))
        if sure or step not in self.problems:
            self.problems[step] = found
        if sure:
            raise _Known

    def run(self) -> None:
        around, mine = self.around, self.around.mine
        running = around.running()
        for k in sorted(around.joined(mine)):
            why = self._unseen(k)
            if why:
                self.say(mine, why)
            if k not in running:
                self.say(k, texts.UNUSED_RESULTS(around.steps[k].name))
        for k, step in enumerate(around.steps):
            copied, perhaps = self._placed(k, step)
            if k not in running:
                continue
            kernel = self.kernel if k == mine else step.kernel
            before = self._flights()
            self._used_around(step, kernel, copied, perhaps)
            if kernel is None or not self._moved(step, kernel):
                continue
            joined = around.joined(k) if {*step.given, *step.made} & around.semaphores else (k,)
            lost = next(filter(None, map(self._unseen, joined)), "") or _lost(kernel)
            if lost and k not in around.joined(mine):
                for flight in before & self._touched(step, kernel):
                    self._met(flight, texts.GIVEN_IN_FLIGHT(step.name, _at(step), lost), sure=False)
                continue
            if lost:
                self.say(k, lost)
            self._walked(k, step, kernel)
            for flight in self._flights() - before:
                self.starts[flight] = k
            for flight in before - self._flights():
                self._waited(k, flight)
        self._end()

    def _unseen(self, k: int) -> str:
        """Why a step's use of semaphores is not looked at, "" = it is."""
        around, step = self.around, self.around.steps[k]
        if not {*step.given, *step.made} & around.semaphores:
            return ""
        if step.kernel is None and not step.moves:
            return texts.SEMAPHORE_IN_STEP(step.name, _at(step))
        if set(step.given) & around.semaphores & around.given:
            return texts.SEMAPHORE_OF_CALLER()
        return ""

    def _moved(self, step: FunctionStep, kernel: Kernel) -> bool:
        """Whether a body is walked: it has semaphores of others, or an array that a copy moves."""
        return bool({*step.given, *step.made} & self.around.semaphores or self._touched(step, kernel))

    def _touched(self, step: FunctionStep, kernel: Kernel) -> set[Flight]:
        """The copies in flight that move what a body is given whole."""
        mine = {self.buffers[v] for o, v in self._operands(step, kernel) if o is not None and not o.windowed}
        return {f for f in self._flights() if {f.source.name, f.target.name} & mine}

    def _flights(self) -> set[Flight]:
        return {flight for way in self.ways for _, slot in way.slots for flight in slot.flights}

    # buffers

    def _placed(self, k: int, step: FunctionStep) -> tuple[list[int], list[int]]:
        """Gives the values of a step their buffers: those that XLA copies before, as others need them, and perhaps."""
        copied, perhaps, around = [], [], self.around
        for value in step.given:
            self.buffers.setdefault(value, f"value {value}")
        ends = {b: a for a, b in step.same} if not step.moves else dict(enumerate(range(len(step.given))))
        for b, value in enumerate(step.made):
            a = ends.get(b)
            of = None if a is None else step.given[a]
            self.buffers[value] = f"value {value}"
            if of is None:
                continue
            alone = of not in around.returned and step.given.count(of) == 1 and max(around.uses(of)) == k
            if step.moves or of in around.semaphores or (alone and of not in around.given):
                self.buffers[value] = self.buffers[of]
            elif alone and around.inner:
                perhaps.append(of)
            else:
                copied.append(of)
        return copied, perhaps

    # uses of memory beside copies in flight

    def _used_around(self, step: FunctionStep, kernel: Kernel | None, copied: list[int], perhaps: list[int]) -> None:
        """A step's uses of values that a copy moves, besides those in the body of its kernel."""
        flights = self._flights()
        if step.moves or not flights:
            return
        into = {f.target.name: f for f in flights}
        both = {f.source.name: f for f in flights} | into
        where = f"{step.name}{_at(step)}"
        for value in copied:
            if (flight := into.get(self.buffers[value])) is not None:
                self._met(flight, texts.WRITES_WHAT_OTHERS_NEED(where))
        for value in perhaps:
            if (flight := both.get(self.buffers[value])) is not None:
                self._met(flight, texts.MAY_WRITE_IN_PLACE(where), self.buffers[value], sure=False)
        if kernel is None:
            for value in step.given:
                if (flight := into.get(self.buffers[value])) is not None:
                    self._met(flight, texts.READS_IN_FLIGHT(where))
            return
        for operand, value in self._operands(step, kernel):
            buffer = self.buffers[value]
            if operand is None or (operand.windowed and operand.role == "in"):
                if (flight := into.get(buffer)) is not None:
                    self._met(flight, texts.READS_BLOCKS_IN_FLIGHT(where))
            elif operand.windowed and (flight := both.get(buffer)) is not None:
                self._met(flight, texts.WRITES_BLOCKS_IN_FLIGHT(where), buffer)

    def _met(self, flight: Flight, what: str, buffer: str = "", sure: bool = True) -> None:
        start, buffer = self.starts[flight], buffer or flight.target.name
        name, way = self._word(start, buffer), "into" if buffer == flight.target.name else "out of"
        sure = sure and all(running(s, f) for w in self.ways for _, s in w.slots for f in s.flights if f == flight)
        hint = texts.LOOK_BETWEEN(name)
        what = texts.USED_IN_FLIGHT(name, way, _line(flight), what)
        self.wrong(start, what, hint, name, flight.line, sure)

    def _word(self, step: int, buffer: str) -> str:
        """The name of a buffer in the kernel of a step."""
        found = self.around.steps[step]
        kernel = self.kernel if step == self.around.mine else found.kernel
        pairs = self._operands(found, kernel) if kernel is not None else ()
        words = [o.name for o, value in pairs if o is not None and self.buffers[value] == buffer]
        return words[-1] if words else buffer

    def _operands(self, step: FunctionStep, kernel: Kernel) -> Iterator[tuple[Operand | None, int]]:
        """The operands of a kernel and their values; None for its tables."""
        operands = [*[None] * len(kernel.tables), *kernel.inputs, *kernel.outputs]
        yield from zip(operands, (*step.given, *step.made), strict=True)

    # the bodies

    def _walked(self, k: int, step: FunctionStep, kernel: Kernel) -> None:
        names, semaphores = self._named(step, kernel)
        local = {buffer: name for name, buffer in names.items()}
        moving = {region.name for f in self._flights() for region in (f.source, f.target)}
        if len(local) < len(names) and moving & {b for b in names.values() if list(names.values()).count(b) > 1}:
            self.say(k, texts.ARRAY_GIVEN_TWICE())
        walk = FlightWalk(kernel, kernel.body, of_others=k != self.around.mine)
        tables = self._tables(step, kernel)
        mine = {_word_of(value): table for table, value in tables.items()}
        begin = [_renamed(way, local, lambda name: _given(name, mine)) for way in self.ways]
        elsewhere = {name for way in begin for (name, _), _ in way.slots}
        few = walk.one_by_one(begin, semaphores | elsewhere)
        found = next((p for p in walk.problems if p.sure), None) or next(iter(walk.problems), None)
        if found is not None:
            self._found(k, step, found, names)
        if not few:
            self.say(k, texts.MOST_PROGRAMS_WALKED())
        self.ways = [_renamed(_bare(way), names, lambda name: _told(name, tables, k)) for way in walk.ways]
        for flight in self._flights():
            own = [r.name for r in (flight.source, flight.target) if r.name and not r.name.startswith("value ")]
            if own:
                self.say(k, texts.IN_FLIGHT_AT_END(own[0]), flight.line)

    def _named(self, step: FunctionStep, kernel: Kernel) -> tuple[dict[str, str], set[str]]:
        """The buffer of each array that a body touches or gives, by its name there, and which are semaphores."""
        names: dict[str, str] = {}
        semaphores = set()
        touched = {array_of(kernel, view.reference.name) for view in views_of(kernel.body)}
        for operand, value in self._operands(step, kernel):
            name = "" if operand is None else array_of(kernel, operand.name)
            if operand is None or (name not in touched and operand.role == "in"):
                continue
            if names.setdefault(name, self.buffers[value]) != self.buffers[value] and operand.role == "out":
                # a copy made before shares no buffer with its source
                names[name] = self.buffers[value]
            if operand.memory == "semaphore":
                semaphores.add(name)
        return names, semaphores

    def _tables(self, step: FunctionStep, kernel: Kernel) -> dict[str, int]:
        """The value that each table of a kernel holds."""
        pairs = zip([table.name for table in kernel.tables], step.given, strict=False)
        others = {o.name: value for o, value in self._operands(step, kernel) if o is not None and is_table(kernel, o)}
        return {**dict(pairs), **others}

    def _found(self, k: int, step: FunctionStep, problem: FlightProblem, names: Mapping[str, str]) -> None:
        """Something goes wrong in a body: of one without semaphores of others, with a copy that it knows nothing of."""
        slot = names.get(problem.semaphore, problem.semaphore)
        flights = [f for way in self.ways for (name, _), s in way.slots for f in s.flights if name == slot]
        if flights and not {*step.given, *step.made} & self.around.semaphores:
            said = restated(f"{step.name}{_at(step)} {problem.what}", problem.what)
            self._met(flights[0], said, sure=problem.sure)
        self.problems.setdefault(k, problem)
        raise _Known

    # in which order, and for how long

    def _waited(self, k: int, flight: Flight) -> None:
        """Nothing may use what a copy moves before the step that waits for it, and its memory is there so long."""
        around, start = self.around, self.starts[flight]
        after = around.after(k)
        needs = {k, *after}
        name = around.steps[k].name
        where = {v for v, buffer in self.buffers.items() if buffer == flight.target.name}
        made = {v for j in needs for v in around.steps[j].made}
        early = [j for v in where for j in around.uses(v) if j > k and j not in after]
        word = self._word(start, flight.target.name)
        if early or (where & around.returned) - made:
            user = around.steps[early[0]].name + " uses" if early else "the function returns"
            self.say(start, texts.NOT_ORDERED(name, word, user), flight.line)
        for region in (flight.source, flight.target):
            lasting = around.given if region is flight.source and not around.inner else frozenset()
            same = {v for v, buffer in self.buffers.items() if buffer == region.name}
            held = any(set(around.steps[j].given) & same for j in needs)
            if not held and not same & (around.returned | lasting):
                word = self._word(start, region.name)
                self.say(start, texts.MEMORY_OF_OTHERS(name, word), flight.line)

    def _end(self) -> None:
        around = self.around
        handed = {self.buffers[v] for v in around.returned & around.semaphores}
        for way in self.ways:
            for (name, _), slot in way.slots:
                first = next((self.starts[f] for f in slot.flights), around.mine)
                line = slot.flights[0].line if slot.flights else ""
                if name in handed:
                    self.say(first, texts.SEMAPHORE_HANDED_ON(), line)
                word = self._word(first, name)
                if slot.flights:
                    what = texts.NOT_WAITED_FOR(word, _line(slot.flights[0]))
                    self.wrong(first, what, texts.LOOK_AT_GIVEN(word), word, line)
                    continue
                what = texts.SEMAPHORE_AT_END(word, slot.signals)
                self.wrong(first, what, texts.LOOK_AT_WAITING(word), word, line)


def _lost(kernel: Kernel) -> str:
    """Why the body of a kernel cannot be walked, "" where it can."""
    if kernel.body_reader is None:
        return texts.BODY_NOT_READ(kernel.name)
    if kernel.body.unmodelled:
        return core_problems.NOT_MODELLED(kernel.body.unmodelled[0][0])
    if any(map(is_remote, kernel.body.effects)):
        return texts.OTHER_DEVICE()
    if any(type(extent) is not int for extent in kernel.grid):
        return texts.PROGRAMS_OF(kernel.name)
    return ""


def _bare(way: Way) -> Way:
    """The state for the next kernel: the copies in flight, and whether there are path conditions."""
    return Way(way.slots, ((FORGOTTEN, True),) if way.assumed else ())


def _renamed(way: Way, names: Mapping[str, str], number: Callable[[Name], Name]) -> Way:
    """A way with other names of arrays, and of the numbers that say where copies in flight are, and how large."""

    def region(one: ViewedRegion) -> ViewedRegion:
        return replace(one, name=names.get(one.name, one.name))

    def slot(one: Slot) -> Slot:
        named_here = (f.renamed(number) for f in one.flights)
        flights = (replace(f, effect=-1, source=region(f.source), target=region(f.target)) for f in named_here)
        return replace(one, flights=tuple(flights), waited=renamed(one.waited, number))

    slots = ((names.get(name, name), renamed(at, number), slot(one)) for (name, at), one in way.slots)
    return replace(way, slots=tuple(((name, at), one) for name, at, one in slots))


def _word_of(value: int) -> str:
    return f"value {value}"


def _told(name: Name, tables: Mapping[str, int], k: int) -> Name:
    """A named number of a kernel as the function knows it: an entry of a value, or one that is of step k alone."""
    match name:
        case ("read", table, *at) if table in tables:
            return ("read", _word_of(tables[table]), *at)
        case ("read", table, *_) if str(table).startswith("value "):
            return name
        case ("name", _, ("of", *_)):
            return name
        case (op, *_) if op in OF_A_KERNEL:
            return ("name", shown(name), ("of", k, name))
    return name


def _given(name: Name, tables: Mapping[str, str]) -> Name:
    """The same as a kernel knows it that has the value as a table. tables: by the words of values."""
    match name:
        case ("read", value, *at) if value in tables:
            return ("read", tables[value], *at)
    return name


def _at(step: FunctionStep) -> str:
    return f" ({step.source.rpartition('/')[2]})" if step.source else ""


def _line(flight: Flight) -> str:
    return flight.line.rpartition(":")[2]
