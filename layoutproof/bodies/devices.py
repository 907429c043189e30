"""One kernel on all devices of its mesh: the events of each in order, and the happens-before relation.

Every device runs the same programs, one after the other; where numbers are known they are run as they are, once for
each device. A device is then a list of events: it touches memory, starts copies, signals, waits. Between
devices only semaphores order them: a wait of one device lasts until its semaphore counts enough.

Who waits for a semaphore is one device, and how much is taken does not depend on who signalled. So a run that goes on
wherever it can comes to one end, whatever the schedule: a device that waits for ever in one run does in all (persistent
Petri nets: Landweber and Robertson, JACM 1978). And what must have happened before an event is seen from one run, too:
an event must have happened before another one if the other is not reached in a run in which the first is held back.
Two events of which neither comes first happen at the same time in the run in which both are held back: that run is the
schedule that breaks.

A copy reads its source from its start until the bytes are sent, and writes its target until they have arrived; where a
wait may be content with a part of its bytes, that is taken into account.

Cores of one chip that signal each other are run the same way: each is a device that runs one program. Arrays are one
memory for all of them, the shared memory of a core is one for its subcores, and a barrier of subcores is a signal to
each of the others with a wait for all of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, product
from math import prod
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.cells import Box, covered, meets, minus
from layoutproof.bodies.class_of_devices import Walked, moved, shifts
from layoutproof.bodies.effects import (
    Access,
    Body,
    BodyReference,
    Device,
    Effect,
    Freed,
    Signal,
    Spot,
    StartedCopy,
    View,
    Wait,
    adds_to,
    is_remote,
    short_place,
)
from layoutproof.bodies.forward import Here, Nest, Run, forward, nested
from layoutproof.bodies.in_flight import slot_text
from layoutproof.bodies.moments import ADDS, KNOWN, DeviceMemory, Event, Key, Place, box_of, hull_of
from layoutproof.bodies.regions import ViewedRegion, array_of, bytes_of, common_element, region_of
from layoutproof.bodies.sections import SHORT, shortened
from layoutproof.bodies.symbolic import Number, OpenCondition, Symbolic
from layoutproof.core.budget import spend
from layoutproof.core.errors import Unsupported
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.scalar_memory import axis_table

MOST_DEVICES = 64
MOST_EVENTS = 20_000
"""Events of all devices together, as far as they are kept (`sections`)."""
MOST_TRACED = 100_000
"""Events of one device, each of which is looked at once."""
MOST_TOUCHES = 3_000
"""Touches of one memory that are held against each other."""
MOST_STEPS = 6_000_000
"""Events that are run, in all runs together."""
PER_STEP = 16
"""Events that are run in one step of a budget."""


@dataclass(frozen=True, slots=True)
class TouchedTime:
    """The time in which something touches memory: an event, or a copy until it has sent or arrived.

    end: the event to hold back so that it has not ended.
    """

    event: Event
    piece: DeviceMemory
    end: tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class DeviceProblem:
    """Something that goes wrong. sure: whether it does, in some schedule; else it is not known.

    kind: "own" (of one device's copies and what it touches itself), "meets" (of two devices), "early" (before a device
    has begun), "never" (a wait that never returns), "left" (what is left on a semaphore), "unwritten" (what is read
    before anything has written it), "unstored" (what nothing writes).
    point: where, for the counterexample.
    """

    kind: str
    what: str
    hint: str
    subject: str
    source: str
    sure: bool = True
    point: Mapping[str, object] = field(default_factory=dict)


def has_devices(kernel: Kernel) -> bool:
    """Whether its body reaches other devices, and nothing but devices of a mesh; GPUs are run by `gpu_devices`."""
    body: Body | None = kernel.body
    return body is not None and not kernel.remote and any(is_remote(effect) for effect in body.effects)


def has_cores(kernel: Kernel) -> bool:
    """Whether its body reaches other cores of the same chip, each of which runs one program."""
    body: Body | None = kernel.body
    remote = [effect for effect in body.effects if is_remote(effect)] if body is not None else []
    return bool(remote) and all(e.device.core and e.device.places for e in remote)  # type: ignore[union-attr]


def axes_of(kernel: Kernel) -> tuple[tuple[str, Any], ...]:
    """The mesh whose devices, or cores, run a kernel that reaches others of them."""
    return tuple(zip(kernel.grid_names, kernel.grid, strict=True)) if has_cores(kernel) else kernel.axes


def is_barrier(body: Body, name: str) -> bool:
    """Whether a semaphore is there before a kernel begins, and after it."""
    return any(r.name == name and "barrier" in r.dtype for r in body.references)


def from_elsewhere(kernel: Kernel, reference: BodyReference) -> bool:
    """Whether other devices, or cores, may write memory of the body."""
    if has_cores(kernel) and _home(kernel, reference):
        return True
    name = array_of(kernel, reference.name)
    copies = (e for e in kernel.body.effects if isinstance(e, StartedCopy) and is_remote(e))
    return any(array_of(kernel, e.target.reference.name) == name for e in copies)


def is_copied(kernel: Kernel, reference: BodyReference) -> bool:
    """Whether memory of the body is what a copy moves, here or to another device."""
    return array_of(kernel, reference.name) in _copied(kernel)


def _copied(kernel: Kernel) -> set[str]:
    copies = [effect for effect in kernel.body.effects if isinstance(effect, StartedCopy)]
    return {array_of(kernel, view.reference.name) for copy in copies for view in (copy.source, copy.target)}


def devices_of(*kernels: Kernel) -> Devices:
    """All devices that run some kernels, one after the other. Raises Undecided where it is not known what they do.

    Once for all questions that ask it in turn.
    """
    found = _devices_of(kernels)
    if isinstance(found, Unsupported):
        raise found
    return found


@lru_cache(maxsize=8)
def _devices_of(kernels: tuple[Kernel, ...]) -> Devices | Unsupported:
    try:
        return Devices(kernels)
    except Unsupported as reason:
        return reason


class Devices:
    """All devices of a mesh, which run some kernels one after the other.

    places: where each is.  events: of each, in order.  begins: of each, where a kernel begins in its events.  end,
    counts: how far each comes where nothing is held back, and what semaphores count then.  most_steps: events that are
    run, in all runs together.
    """

    most_steps = MOST_STEPS

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = tuple(kernels)
        self.axes = axes_of(kernels[0])
        self.cores = has_cores(kernels[0])
        self.word = "program" if self.cores else "device"
        for kernel in kernels:
            _check(kernel, kernel.body)
            if axes_of(kernel) != self.axes:
                raise Unsupported(problems.SEVERAL_MESHES())
        self.places = tuple(product(*(range(extent) for _, extent in self.axes)))
        if len(self.places) > MOST_DEVICES:
            raise Unsupported(problems.MESH_SIZE(len(self.places), MOST_DEVICES))
        self.walked: dict[tuple[int, str, tuple[Number, ...]], Walked] = {}
        self.events: list[list[Event]] = []
        self.begins: list[list[int]] = []
        alone = [devices_of(kernel).events for kernel in kernels if len(kernels) > 1]
        for number in range(len(self.places)):
            events: list[Event] = []
            self.begins.append([])
            for call, kernel in enumerate(kernels):
                self.begins[-1].append(len(events))
                if alone:
                    events += [
                        _called(event, kernel, call, len(events) + k) for k, event in enumerate(alone[call][number])
                    ]
                else:
                    _DeviceTrace(self, kernel, call, number, events).run()
            self.events.append(events)
            if sum(map(len, self.events)) > MOST_EVENTS:
                raise Unsupported(problems.MOST_EVENTS_ON_DEVICES(MOST_EVENTS, len(self.places)))
        self.walked = {}
        self.look()

    def look(self) -> None:
        """Runs them once, and notes who touches which memory."""
        self._ends: dict[tuple[str, int, int], tuple[int, ...]] = {}
        self._steps = 0
        self.end, self.counts = self.run(frozenset())
        self.memory: dict[tuple[int, tuple[Any, ...]], list[TouchedTime]] = {}
        for span in self._spans():
            self.memory.setdefault((span.piece.device, span.piece.memory), []).append(span)

    def name(self, number: int) -> str:
        """A device in words."""
        return f"{self.word} " + ", ".join(
            f"{axis}={k}" for (axis, _), k in zip(self.axes, self.places[number], strict=True)
        )

    def _whose(self, number: int) -> str:
        """Whose memory it is, in words; "" of what cores share."""
        return "" if self.cores else f" of {self.name(number)}"

    # runs

    def run(
        self, held: frozenset[tuple[str, int, int]], partly: bool = False
    ) -> tuple[tuple[int, ...], dict[Key, int]]:
        """How far each device comes where some things are held back, and what semaphores count then.

        partly: a copy that has not ended may have moved all of its bytes but one.
        """
        todo = list(self.concerned(held))
        positions = [0] * len(self.events) if len(todo) == len(self.events) else list(self.end)
        for device in todo:
            positions[device] = 0
        counts: dict[Key, int] = {}
        stopped: dict[int, Key | None] = {}
        steps = 0
        while todo:
            device = todo.pop()
            events = self.events[device]
            position = positions[device]
            while position < len(events):
                event = events[position]
                if ("at", device, position) in held:
                    break
                steps += 1
                woken: list[Key] = []
                if event.kind == "wait":
                    there = counts.get(event.semaphore, 0)  # type: ignore[arg-type]
                    if there < event.amount:
                        stopped[device] = event.semaphore
                        break
                    counts[event.semaphore] = there - event.amount  # type: ignore[index]
                elif event.kind == "phase":
                    if counts.get(event.semaphore, 0) < event.amount:  # type: ignore[arg-type]
                        stopped[device] = event.semaphore
                        break
                elif event.kind == "signal":
                    woken.append(event.semaphore)  # type: ignore[arg-type]
                    counts[woken[0]] = counts.get(woken[0], 0) + event.amount
                elif event.kind == "start":
                    sending = ("sent", device, position) in held
                    coming = sending or ("come", device, position) in held
                    for key, waits in ((event.sent, sending), (event.semaphore, coming)):
                        if key is not None:
                            # an arrival that moves nothing comes as a whole, or not
                            part = event.amount - 1 if partly and event.pieces else 0
                            moved = part if waits else event.amount
                            counts[key] = counts.get(key, 0) + moved
                            woken.append(key)
                position += 1
                # who waits for something else is not woken, and who has not run yet will
                todo += [n for key in woken for n in self.woken_by(key, device) if stopped.get(n) == key]
            positions[device] = position
        self._steps += steps
        spend(1 + steps // PER_STEP)
        if self._steps > self.most_steps:
            raise Unsupported(problems.MOST_EVENTS_IN_RUNS(self.most_steps, len(self.events)))
        return tuple(positions), counts

    def concerned(self, held: frozenset[tuple[str, int, int]]) -> Iterable[int]:
        """The devices that may come less far where some things are held back."""
        return range(len(self.events))

    def woken_by(self, key: Key, device: int) -> Iterable[int]:
        """The devices that may go on when one has counted up a semaphore."""
        return () if key[0] == device else (key[0],)

    def reached(self, end: tuple[str, int, int]) -> tuple[int, ...]:
        """How far devices may come before something has ended."""
        if end not in self._ends:
            self._ends[end] = self.run(frozenset((end,)), partly=True)[0]
        return self._ends[end]

    def before(self, one: TouchedTime, other: TouchedTime) -> bool:
        """Whether the first has surely ended when the other one begins."""
        a, b = one.event, other.event
        if a.device == b.device and one.end[0] == "at":
            return one.end[2] < b.position
        return self.reached(one.end)[b.device] < b.position

    def ordered(self, one: TouchedTime, other: TouchedTime) -> bool:
        """Whether one of two has surely ended when the other one begins."""
        return self.before(one, other) or self.before(other, one)

    # questions

    def problems(self) -> Iterator[DeviceProblem]:
        """All that goes wrong between devices, and on each of them with its copies."""
        stuck = self._stuck()
        yield from stuck
        if not stuck:
            yield from self._left()
        yield from self._early()
        yield from self._meetings(self.memory.values())

    def _stuck(self) -> list[DeviceProblem]:
        found = []
        for device, events in enumerate(self.events):
            if self.end[device] == len(events):
                continue
            event = events[self.end[device]]
            assert event.semaphore is not None
            _, _, name, at = event.semaphore
            unit = "bytes of " if event.bytes else "of "
            there = self.counts.get(event.semaphore, 0)
            what = problems.NEVER_RETURNS(self.name(device), event.amount, unit, slot_text(name, at), there, self.word)
            hint = problems.LOOK_AT_SIGNALS(slot_text(name, at), self.name(device))
            found.append(self._problem("never", what, hint, name, event))
        return found[:1]

    def _left(self) -> Iterator[DeviceProblem]:
        for key, count in sorted(self.counts.items()):
            device, _, name, at = key
            if not count:
                continue
            last = next(e for events in self.events for e in reversed(events) if key in (e.semaphore, e.sent))
            what = problems.COUNTS_AT_END(slot_text(name, at), self.name(device), count, self.word)
            hint = problems.LOOK_AT_WAITS(slot_text(name, at))
            yield self._problem("left", what, hint, name, last, device=device)

    def _early(self) -> Iterator[DeviceProblem]:
        """Effects that reach a device that has not begun."""
        for call, kernel in enumerate(self.kernels):
            for device in range(0 if kernel.begins_together or self.cores else len(self.events)):
                problem = self._before_it_begins(call, kernel, device)
                if problem is not None:
                    yield problem
                    break

    def _before_it_begins(self, call: int, kernel: Kernel, device: int) -> DeviceProblem | None:
        reached = self.reached(("at", device, self.begins[device][call]))
        for events, position in zip(self.events, reached, strict=True):
            for event in events[:position]:
                copied = event.kind == "start" and event.pieces[1].device == device
                key = event.semaphore
                signalled = event.kind == "signal" and key is not None and key[0] == device
                if event.call != call or event.device == device or not (copied or signalled):
                    continue
                subject = event.pieces[1].region.name if copied else key[2]  # type: ignore[index]
                if signalled and is_barrier(kernel.body, subject):
                    continue
                does = f"copies into {subject}" if copied else f"signals {subject}"
                what = problems.DEVICE_NOT_BEGUN(self.name(event.device), does, self.name(device))
                hint = problems.LOOK_AT_BARRIER()
                return self._problem("early", what, hint, subject, event, other=device)
        return None

    def _meetings(self, memory: Iterable[Sequence[TouchedTime]]) -> Iterator[DeviceProblem]:
        """Accesses to memory while a copy moves it."""
        for spans in memory:
            if not any(span.piece.writes for span in spans):
                continue
            for one, other in self.pairs(spans):
                problem = self._meeting(one, other)
                if problem is not None:
                    yield problem

    def pairs(self, spans: Sequence[TouchedTime]) -> Iterable[tuple[TouchedTime, TouchedTime]]:
        """Pairs of touches of one memory of which two may meet. Raises Unsupported where they are too many."""
        spend(1 + len(spans) ** 2 // 2 // PER_STEP)
        if len(spans) > MOST_TOUCHES:
            raise Unsupported(problems.MOST_TOUCHES(len(spans), spans[0].piece.region.name))
        return combinations(spans, 2)

    def _meeting(self, one: TouchedTime, other: TouchedTime) -> DeviceProblem | None:
        """Two touches of one memory that nothing orders; None where they need no order, or have one."""
        if not (one.piece.writes or other.piece.writes) or (one.piece.adds and other.piece.adds):
            return None
        if one.event is other.event or self._in_order(one, other):
            return None
        if one.piece.aside and other.piece.aside:
            # they meet in what they touch themselves, or nowhere
            return None
        met = common_element(KNOWN, one.piece.region, other.piece.region)
        if met is False or self.ordered(one, other):
            return None
        return self._met(one, other, met)

    def _in_order(self, one: TouchedTime, other: TouchedTime) -> bool:
        """Whether two effects without a wait between them are ordered, or do the same and write the same."""
        if one.event.device == other.event.device:
            return all(span.end == ("at", span.event.device, span.event.position) for span in (one, other))
        spot = one.event.spot
        if not self.cores or other.event.spot is not spot or not (one.piece.writes and other.piece.writes):
            return False
        (kernel,) = self.kernels
        a, b = (self.places[span.event.device] for span in (one, other))
        asks = {name for name, k, m in zip(kernel.grid_names, a, b, strict=True) if k != m} & kernel.body.asks
        return not asks and not one.piece.adds and one.event.turns == other.event.turns

    def _met(self, one: TouchedTime, other: TouchedTime, met: object) -> DeviceProblem | None:
        a, b = one.event, other.event
        # the schedule in which both go on at the same time, and no byte more than has to be is there
        both, _ = self.run(frozenset((one.end, other.end)))
        sure = both[a.device] >= a.position and both[b.device] >= b.position
        sure = sure and one.piece.sure and other.piece.sure and isinstance(met, tuple)
        own = a.device == b.device
        name, where = one.piece.region.name, self._whose(one.piece.device)
        element = self.element_of(name, met) if isinstance(met, tuple) else ()
        what = problems.NOTHING_ORDERS(
            self._does(one), "" if element == () else f"element {element} of ", name, where, self._does(other), _line(b)
        )
        hint = self._mistaken(one, other) or self._mistaken(other, one)
        hint = hint or problems.LOOK_AT_ORDER(self.name(a.device), _line(a), self.name(b.device), _line(b))
        problem = self._problem("own" if own else "meets", what, hint, name, a, element=element, other=b.device, to=b)
        return problem if sure else replace(problem, what=f"perhaps {what}", sure=False)

    def _mistaken(self, copy: TouchedTime, then: TouchedTime) -> str:
        """A hint where a device waits as often as it needs to, and the wait may end with a later copy; "" else.

        Copies of one device that end on one semaphore need not end in the order of their starts.
        """
        key = {"come": copy.event.semaphore, "sent": copy.event.sent}.get(copy.end[0])
        if key is None or key[0] != then.event.device:
            return ""
        copies = [e for own in self.events for e in own if e.kind == "start" and key in (e.semaphore, e.sent)]
        if len(copies) < 2 or any(e.device != copy.event.device for e in copies):
            return ""
        waits = [e for e in self.events[key[0]] if e.kind == "wait" and e.semaphore == key]
        number = copies.index(copy.event)
        if number >= len(waits) or waits[number].position > then.event.position:
            return ""
        return problems.LOOK_AT_COPIES(slot_text(key[2], key[3]), len(copies), _line(waits[number]))

    def _does(self, span: TouchedTime) -> str:
        return f"{self.name(span.event.device)} {span.piece.does}"

    def _problem(
        self,
        kind: str,
        what: str,
        hint: str,
        subject: str,
        event: Event,
        *,
        device: int | None = None,
        other: int | None = None,
        element: Place = (),
        to: Event | None = None,
    ) -> DeviceProblem:
        at = self.places[event.device if device is None else device]
        if self.cores:
            point: dict[str, object] = {"program": at} if other is None else {"first": at, "second": self.places[other]}
        else:
            point = {"device": at}
            if other is not None:
                point["other_device"] = self.places[other]
            point["program"] = event.program
            if to is not None:
                point["other_program"] = to.program
        point |= {"iteration": event.turns, "element": element}
        shown = {name: value for name, value in point.items() if value != ()}
        return DeviceProblem(kind, what, hint, subject, event.spot.source, True, shown)

    # writes

    def unwritten(self, spot: Spot) -> DeviceProblem | None:
        """The unwritten part of an effect's read, on its own device; None where all of it is always written before."""
        spans = [
            span
            for events in self.memory.values()
            for span in events
            if span.event.spot is spot
            and not (span.event.kind in ("start", "filled") and span.piece.writes)
            and not span.piece.aside
            and not self.is_given(span)
        ]
        for span in spans:
            box = box_of(span.piece.region)
            writes, later = self._writes_before(span)
            # what a read may touch is written where all of the memory around it is
            around = hull_of(span.piece.region)
            if around is None or not covered(around, writes):
                name, where = span.piece.region.name, self._whose(span.piece.device)
                at = () if box is None else _hole(box, writes)
                element = self.element_of(name, at)
                what = problems.UNWRITTEN_BEFORE(self._does(span), element, name, where)
                hint = problems.LOOK_AT_FILLING(_line(span.event), name)
                found = self._problem("unwritten", what, hint, name, span.event, element=element)
                one = tuple((n, n + 1) for n in at)
                maybe = box is None or not span.piece.sure or any(other is None or meets(other, one) for other in later)
                return replace(found, what=f"perhaps {what}", sure=False) if maybe else found
        return None

    def is_given(self, span: TouchedTime) -> bool:
        """Whether what is read is there when all begin."""
        return False

    def homes(self) -> Iterable[int]:
        """The devices that have memory of their own."""
        return range(len(self.events))

    def home_name(self, device: int) -> str:
        """One that has memory of its own, in words."""
        return self.name(device)

    def home_place(self, device: int) -> Place:
        """Where it is."""
        return self.places[device]

    def element_of(self, name: str, at: Place) -> Place:
        """The element of an array that a touched one is."""
        return at

    def _writes_before(self, span: TouchedTime) -> tuple[list[Box], list[Box | None]]:
        """What is surely written when something is read, and what may be; None of a part that is not known."""
        writes: list[Box] = []
        later: list[Box | None] = []
        memory = self.memory[span.piece.device, span.piece.memory]
        # what is stored in the same place as part of another array
        aside = (other for other in memory if other.piece.aside and other.piece.writes)
        gone = [one for one in aside if common_element(KNOWN, one.piece.region, span.piece.region) is not False]
        for other in memory:
            if not other.piece.writes or other.piece.aside or other.event is span.event:
                continue
            if common_element(KNOWN, other.piece.region, span.piece.region) is False:
                continue
            wrote = box_of(other.piece.region) if other.piece.sure else None
            left = None if wrote is None else self._left_of(wrote, other, span, gone)
            if left is not None and self.before(other, span):
                writes += left
            elif left is None or not self.before(span, other):
                later.append(box_of(other.piece.region))
        return writes, later

    def _left_of(
        self, wrote: Box, write: TouchedTime, read: TouchedTime, gone: Sequence[TouchedTime]
    ) -> list[Box] | None:
        """What is left of a write when something is read after others have perhaps written there; None = not known."""
        left = [wrote]
        for one in gone:
            if self.before(read, one) or self.before(one, write):
                continue
            around = box_of(one.piece.region) if one.piece.sure else None
            if around is None or not (self.before(write, one) and self.before(one, read)):
                return None
            left = [rest for box in left for rest in minus(box, around)]
        return left

    def unstored(self, reference: BodyReference) -> DeviceProblem | None:
        """Where something of an array is not written on some device when all have ended; None where all is."""
        (kernel,) = self.kernels
        name = array_of(kernel, reference.name)
        whole = tuple((0, extent) for extent in reference.dims)
        for device in self.homes():
            spans = [span for span in self.memory.get((device, (0, name)), ()) if span.piece.writes]
            known = [box for span in spans if span.piece.sure and (box := box_of(span.piece.region)) is not None]
            if covered(whole, known):
                continue
            element = self.element_of(name, _hole(whole, known))
            what = problems.NOTHING_WRITES(element, name, self.home_name(device))
            hint = problems.LOOK_AT_SENDERS(self.home_name(device), name)
            point = {"device": self.home_place(device), "element": element}
            problem = DeviceProblem("unstored", what, hint, name, kernel.source, True, point)
            open_ = len(known) < len(spans)
            return replace(problem, what=f"perhaps {what}", sure=False) if open_ else problem
        return None

    def _spans(self) -> Iterator[TouchedTime]:
        for events in self.events:
            for event in events:
                at = ("at", event.device, event.position)
                if event.kind in ("touch", "filled"):
                    yield from (TouchedTime(event, piece, at) for piece in event.pieces)
                elif event.kind == "start":
                    source, target = event.pieces
                    sent = "come" if event.sent is None else "sent"
                    yield TouchedTime(event, source, (sent, event.device, event.position))
                    yield TouchedTime(event, target, ("come", event.device, event.position))


def _called(event: Event, kernel: Kernel, call: int, position: int) -> Event:
    """What a kernel does alone, as one of several that run in turn. A barrier is one for all of them."""

    def key(one: Key | None) -> Key | None:
        return one if one is None or is_barrier(kernel.body, one[2]) else (one[0], call, *one[2:])

    pieces = tuple(replace(piece, memory=(call, *piece.memory[1:])) for piece in event.pieces)
    return replace(
        event, call=call, position=position, semaphore=key(event.semaphore), sent=key(event.sent), pieces=pieces
    )  # fmt: skip


def _hole(whole: Box, boxes: Sequence[Box]) -> Place:
    """The first element of a box that is in none of some others; there is one."""
    edges = [sorted({a, *(e for box in boxes for e in box[k] if a <= e < b)}) for k, (a, b) in enumerate(whole)]
    return next(
        at
        for at in product(*edges)
        if not any(all(a <= n < b for n, (a, b) in zip(at, box, strict=True)) for box in boxes)
    )


def _line(event: Event) -> str:
    return event.spot.source.rpartition(":")[2] or "?"


def _check(kernel: Kernel, body: Body) -> None:
    """Raises Unsupported where effects of devices are not all in the body."""
    cores = has_cores(kernel)
    if not axes_of(kernel):
        raise Unsupported(problems.MESH_UNKNOWN())
    if any(type(extent) is not int for extent in kernel.grid):
        raise Unsupported(problems.PROGRAMS_UNKNOWN())
    parallel = [k for k in kernel.parallel() if kernel.grid[k] != 1]
    if cores and any(operand.windowed for operand in kernel.operands):
        raise Unsupported(problems.WINDOWS_BESIDE_CORES())
    if parallel and not cores:
        raise Unsupported(problems.PROGRAMS_BESIDE_DEVICES())
    if kernel.around is not None:
        raise Unsupported(problems.SEMAPHORE_BESIDE_DEVICES())
    for effect in body.effects:
        _check_effect(kernel, body, effect, cores)


def _check_effect(kernel: Kernel, body: Body, effect: Effect, cores: bool) -> None:
    """Raises Unsupported for a semaphore, a device or a copy in a form that is not known. cores: of the mesh."""
    if isinstance(effect, StartedCopy | Wait | Signal):
        name = effect.semaphore.reference.name
        if any(o.name == name and o.memory == "semaphore" for o in kernel.operands):
            raise Unsupported(problems.SEMAPHORE_GIVEN(name))
    device = effect.device if isinstance(effect, StartedCopy | Signal) else None
    if device is None:
        return
    if device.core is not cores or not (device.places or device.logical is not None):
        raise Unsupported(problems.DEVICE_FORM(device))
    if isinstance(effect, StartedCopy):
        scopes = [e for e in body.effects if isinstance(e, Freed) and any(r.role != "semaphore" for r in e.references)]
        if effect.target.reference.role == "fresh" and len(scopes) > 1:
            raise Unsupported(problems.COPY_INTO_SCOPE())
        if effect.sent is None:
            raise Unsupported(problems.COPY_WITHOUT_SEMAPHORE())


class _DeviceTrace(Run):
    """One device: its events in order. A domain of `forward`, whose state is nothing but what is noted on the way."""

    def __init__(self, devices: Devices, kernel: Kernel, call: int, number: int, events: list[Event]) -> None:
        self.devices, self.call, self.number = devices, call, number
        self.place = dict(zip((name for name, _ in devices.axes), devices.places[number], strict=True))
        super().__init__(kernel, {} if devices.cores else {axis_table(name): at for name, at in self.place.items()})
        self.events = events
        # of semaphores that scopes allocate: their counts, as far as this device changes them, and which were freed
        self._balance: dict[Key, int] = {}
        self._freed: set[str] = set()
        remote = [effect for effect in self.body.effects if is_remote(effect)]
        self._signalled = {effect.semaphore.reference.name for effect in remote}
        # what other devices count, or wait for: between two of these a device is by itself
        self._apart = self._signalled | {e.sent.reference.name for e in remote if isinstance(e, StartedCopy) and e.sent}
        self._apart |= {r.name for r in self.body.references if is_barrier(self.body, r.name)}
        self._section: list[Event] = []
        self._begun: dict[Key, int] = {}
        self._traced = 0
        self.copied = _copied(kernel)
        if devices.cores:
            self.copied |= {array_of(kernel, r.name) for r in self.body.references if _home(kernel, r)}
        windows = {o.name: o for o in self.kernel.operands if o.windowed}
        self.windows = {name: o for name, o in windows.items() if name in self.copied}
        self.moving = {name for name, o in self.windows.items() if not _stays(self.kernel, o)}

    def run(self) -> None:
        """Notes the events of all programs in order."""
        parts = nested(with_barriers(self.body) if self.devices.cores else self.body.effects)
        begin = Spot(-1, (), (), self.kernel.source)
        programs = list(product(*(range(int(extent)) for extent in self.kernel.grid)))
        if self.devices.cores:
            programs = [self.devices.places[self.number]]
        # a device that has not begun is held at its first event
        self._note("touch", begin, Here({}, ()), pieces=self._filled(programs[:1]))
        for program in programs:
            names: dict[str, Number] = dict(zip(self.kernel.grid_names, program, strict=True))
            forward(parts, self, Here(names, program), None)
            if self.moving:
                pieces = [self._whole(name, program) for name in self.moving]
                self._note("touch", begin, Here(names, program), pieces=tuple(pieces))
        self._ends_section()

    def _filled(self, programs: Sequence[Place]) -> tuple[DeviceMemory, ...]:
        inputs = [name for name, o in self.windows.items() if o.role == "in" and name not in self.moving]
        return tuple(self._whole(name, program) for name in inputs for program in programs)

    def _whole(self, name: str, program: Place) -> DeviceMemory:
        """A window that the pipeline fills, or gives to another block."""
        reference = next(r for r in self.body.references if r.name == name)
        region = ViewedRegion(array_of(self.kernel, name), tuple((0, extent, 1) for extent in reference.dims), True)
        owner = self._owner(reference, self.number)
        return DeviceMemory(owner, self._memory(reference, program), region, True, "fills or gives on the window")

    def _memory(self, reference: BodyReference, program: tuple[Number, ...]) -> tuple[object, ...]:
        name = array_of(self.kernel, reference.name)
        return (self.call, name, program) if reference.name in self.moving else (self.call, name)

    # the domain

    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Notes an event, if it happens."""
        if isinstance(effect, Access) and array_of(self.kernel, effect.view.reference.name) not in self.copied:
            return
        on = self._at(here)
        held: Any = True
        for condition in effect.spot.path if not isinstance(effect, Freed) else ():
            one = on(condition)
            if one is False:
                spend(1)
                return
            held = one if isinstance(one, OpenCondition) else held
        spend(1 + on.steps // 4)
        match effect:
            case Access(kind, view):
                does = {"read": "reads", "write": "writes", "add": ADDS}[kind]
                sure = held is True and effect.mask is None
                piece = self._piece(on, view, here, self.number, kind != "read", does, sure, adds_to(effect))
                self._note("touch", effect.spot, here, pieces=(piece,))
            case Freed(references):
                self._scope_ends(references, effect.spot)
                whole = [
                    DeviceMemory(
                        self._owner(r, self.number), self._memory(r, here.program),
                        ViewedRegion(r.name, tuple((0, extent, 1) for extent in r.dims), True), True, "frees",
                    )
                    for r in references
                    if r.name in self.copied
                ]  # fmt: skip
                if whole:
                    self._note("touch", effect.spot, here, pieces=tuple(whole))
            case _:
                if held is not True:
                    raise Unsupported(problems.DEVICE_REACHES(effect.spot.source.rpartition(":")[2], held))
                self._moves(on, effect, here)

    def _scope_ends(self, references: Sequence[BodyReference], spot: Spot) -> None:
        """A scope ends with its semaphores at 0; those that other devices signal it has once."""
        for key, count in [item for item in self._balance.items() if item[0][2] in {r.name for r in references}]:
            if key[2] in self._signalled:
                self._freed.add(key[2])
            elif count:
                raise Unsupported(problems.SCOPE_COUNTS(slot_text(key[2], key[3]), count))

    def _counted(self, key: Key, by: int) -> None:
        if key[2] in self._freed:
            raise Unsupported(problems.SCOPE_ENTERED_AGAIN(key[2]))
        if key[0] == self.number:
            self._balance[key] = self._balance.get(key, 0) + by

    def _moves(self, on: Symbolic, effect: object, here: Here) -> None:
        match effect:
            case StartedCopy(source, target, semaphore, spot, sent, device):
                every = effect.mask is None
                to = self.number if device is None else self._device(on, device)
                if device is not None and target.reference.name in self.moving:
                    raise Unsupported(problems.COPY_INTO_WINDOW(target.reference.name))
                pieces = (
                    self._piece(on, source, here, self.number, False, "copies from", every),
                    self._piece(on, target, here, to, True, "copies into", every, adds_to(effect)),
                )
                key = self._key(on, semaphore, to)
                back = None if sent is None else self._key(on, sent, self.number)
                amount = self._number(bytes_of(on, source), problems.COPY_BYTES())
                self._note("start", spot, here, amount, key, back, pieces, True)
            case Wait(view, semaphore, spot):
                amount = self._number(bytes_of(on, view), problems.WAIT_SIZE())
                self._note("wait", spot, here, amount, self._key(on, semaphore, self.number), in_bytes=True)
            case Signal(semaphore, _, spot) if semaphore.reference is MEETING:
                others = self._of_core()
                for other in others:
                    self._note("signal", spot, here, 1, (other, self.call, MEETING.name, ()))
                self._note("wait", spot, here, len(others), (self.number, self.call, MEETING.name, ()))
            case Signal(semaphore, amount, spot, wait, device):
                to = self.number if device is None else self._device(on, device)
                many = self._number(None if amount is None else on(amount), problems.SIGNAL_AMOUNT())
                self._note("wait" if wait else "signal", spot, here, many, self._key(on, semaphore, to))

    def loop(self, nest: Nest, here: Here, state: None) -> None:
        """Notes the events of each turn; those of a loop that another device went through alike are moved."""
        if nest.around or self.devices.cores:
            super().loop(nest, here, state)
        elif not self._as_before(nest, here):
            before = dict(here.names)
            on = self._at(Here(before, here.program, here.turns))
            begun, kept = len(self._section), len(self.events)
            super().loop(nest, here, state)
            events = tuple(self._section[begun:])
            if len(self.events) == kept and len(events) > SHORT:
                after = {name: value for name, value in here.names.items() if before.get(name) != value}
                self.devices.walked.setdefault((self.call, nest.loop.name, here.program), Walked(on, events, after))

    def _as_before(self, nest: Nest, here: Here) -> bool:
        """Moves what another device has done in a loop, where this one does the same."""
        walked = self.devices.walked.get((self.call, nest.loop.name, here.program))
        by = None if walked is None else shifts(self.kernel, nest, walked.on, self._at(here))
        if walked is None or by is None:
            return False
        spend(1 + len(walked.events) // PER_STEP)
        for event in walked.events:
            self._add(moved(event, self.number, by))
        here.names.update(walked.after)
        return True

    def _open(self, nest: Nest, count: str = "") -> None:
        """A loop with an unknown trip count: nothing in it may order devices or touch memory that copies move."""
        for effect in nest.effects:
            name = effect.view.reference.name if isinstance(effect, Access) else ""
            if not isinstance(effect, Access) or array_of(self.kernel, name) in self.copied:
                raise Unsupported(problems.TRIP_COUNT_AT(short_place(nest.loop.source)))

    # parts of events

    def _note(
        self,
        kind: str,
        spot: Spot,
        here: Here,
        amount: int = 0,
        semaphore: Key | None = None,
        sent: Key | None = None,
        pieces: tuple[DeviceMemory, ...] = (),
        in_bytes: bool = False,
    ) -> None:
        program, at = (tuple(n for n in ns if type(n) is int) for ns in (here.program, here.turns))
        self._add(
            Event(kind, self.number, self.call, 0, spot, program, at, amount, in_bytes, semaphore, sent, pieces)
        )  # fmt: skip

    def _add(self, event: Event) -> None:
        semaphore, sent = event.semaphore, event.sent
        for key in (semaphore, sent):
            if key is not None:
                self._counted(key, -event.amount if event.kind == "wait" else event.amount)
        if self.devices.cores or sent is not None or (semaphore is not None and semaphore[2] in self._apart):
            self._ends_section()
            self._keep(event)
        else:
            self._section.append(event)
        self._traced += 1
        if self._traced > MOST_TRACED or len(self.events) > MOST_EVENTS:
            most = MOST_TRACED if self._traced > MOST_TRACED else MOST_EVENTS
            raise Unsupported(problems.MOST_EVENTS_ON_DEVICE(most))

    def _ends_section(self) -> None:
        """What the device did by itself is over."""
        for event in shortened(self._section, [key for key, count in self._begun.items() if count]):
            self._keep(event)
        self._section = []

    def _keep(self, event: Event) -> None:
        key = event.semaphore
        if key is not None and key[0] == self.number and key[2] not in self._apart:
            by = -event.amount if event.kind == "wait" else event.amount
            self._begun[key] = self._begun.get(key, 0) + by
        self.events.append(replace(event, position=len(self.events)))

    def _of_core(self) -> list[int]:
        """The other subcores of the core."""
        places = self.devices.places
        return [n for n, at in enumerate(places) if at[:1] == places[self.number][:1] and n != self.number]

    def _owner(self, reference: BodyReference, device: int) -> int:
        """Whose memory it is that a device has of a reference: of those that share it the first."""
        home = _home(self.kernel, reference) if self.devices.cores else ""
        first = 0 if home == "all" else 1 if home == "core" else len(self.devices.axes)
        places = self.devices.places
        return next(n for n, at in enumerate(places) if at[:first] == places[device][:first])

    def _piece(
        self, on: Symbolic, view: View, here: Here, device: int, writes: bool, does: str, sure: bool, adds: bool = False
    ) -> DeviceMemory:
        region = region_of(self.kernel, on, view)
        known = region.exact and all(type(n) is int for run in region.runs for n in run[:2])
        if not known:
            # which part is not known: all of it may be
            whole = tuple((0, extent, 1) for extent in view.reference.dims)
            region = ViewedRegion(region.name, whole, False)
        memory = self._memory(view.reference, here.program)
        return DeviceMemory(self._owner(view.reference, device), memory, region, writes, does, sure and known, adds)

    def _key(self, on: Symbolic, view: View, device: int) -> Key:
        region = region_of(self.kernel, on, view)
        name = view.reference.name
        if not region.exact or any(size != 1 for _, size, _ in region.runs):
            raise Unsupported(problems.SEMAPHORE_SET(name))
        at = tuple(self._number(a, problems.SEMAPHORE_INDEX(name)) for a, _, _ in region.runs)
        return device, 0 if is_barrier(self.body, name) else self.call, name, at

    def _device(self, on: Symbolic, device: Device) -> int:
        return number_of(
            device, self.devices.axes, self.place, lambda at: self._number(on(at), problems.DEVICE_MEANT())
        )


def number_of(
    device: Device, axes: Sequence[tuple[str, int]], here: Mapping[str, int], number: Callable[[Term], int]
) -> int:
    """The number of a device, counted over the mesh in row-major order. Raises Unsupported where there is none.

    axes: of the mesh.  here: where the device is that speaks of it.  number: the value of a term.
    """
    extents = [extent for _, extent in axes]
    if device.logical is not None:
        found = number(device.logical)
        if not 0 <= found < prod(extents):
            raise Unsupported(problems.DEVICE_OF_MESH(found, prod(extents)))
        return found
    said = {**here, **{axis: number(at) for axis, at in device.places}}
    found = 0
    for axis, extent in axes:
        if not 0 <= said[axis] < extent:
            raise Unsupported(problems.DEVICE_AT(said[axis], axis, extent))
        found = found * extent + said[axis]
    return found


MEETING = BodyReference("subcore_barrier", "semaphore", (), "barrier", "semaphore")
"""The semaphore of a barrier of all subcores."""


def with_barriers(body: Body) -> tuple[Effect, ...]:
    """The effects of a body with its barriers of subcores, in program order: waits for a semaphore of their own."""
    meet = [Signal(View(MEETING), None, spot, wait=True) for spot in body.barriers]
    # a barrier comes before the effect that has its number
    return tuple(sorted((*meet, *body.effects), key=lambda effect: effect.spot.number))


def _home(kernel: Kernel, reference: BodyReference) -> str:
    """Which cores share a memory: "all", "core" for the subcores of one, "" for none."""
    if reference.role == "semaphore" or reference.memory == "semaphore":
        return ""
    if reference.role in ("in", "out"):
        return "all"
    return "core" if reference.memory == "vmem_shared" and kernel.subcores else ""


def _stays(kernel: Kernel, operand: Operand) -> bool:
    """Whether all programs have one block of an operand."""
    extents = dict(zip(kernel.grid_names, kernel.grid, strict=True))
    many = {name for name, extent in extents.items() if extent != 1}
    return not reads(operand.terms()) and not any(n in many for term in operand.index for n in term.names())
