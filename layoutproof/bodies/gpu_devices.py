"""A kernel on all GPUs of its mesh: every thread of every program of each, run together.

It is the run of `warpgroups`, in which the axes of the mesh are axes of the grid. Besides shared memory, arrays in
global memory are looked at, those of a device being one for its programs, and semaphores in global memory order
programs and devices. A semaphore of a scope is one for each program, and a signal to another device counts up that of
the same program there; that of `get_global` is one for each device. Who waits for one that it leaves as it is
(`decrement=False`) takes nothing, so that arrivals only add up. Where some thread takes from one, no other may wait for
it: else who comes how far would depend on the schedule.

What a thread did before a signal is seen by who has waited for it: the signal is a release and the wait an acquire, of
all devices. A copy out of shared memory has written when its thread has waited for more than its reads.

All devices have begun when one does anything: a kernel that communicates is launched behind a barrier of all devices
(`barrier_all_on_stream` in jaxlib/mosaic/gpu/custom_call.cc). There is none behind it. So whatever one device does to
the memory of another one, or to its semaphores, has to have happened before all programs there have ended: then XLA may
use the memory for other things, and reads the results.

Who waits for another program has to be sure that it runs. So many programs as there are multiprocessors do, and of more
nothing is promised: CUDA may start one when another one has ended.

Threads of a program meet where a scope begins whose memory all of them have (`gpu.barrier` in
`_run_scoped_lowering_rule`): what was touched in scopes that have ended has to be over there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, reduce
from itertools import product
from math import prod
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.devices import (
    MEETING,
    MOST_DEVICES,
    PER_STEP,
    DeviceProblem,
    TouchedTime,
    number_of,
    with_barriers,
)
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
    adds_to,
    views_of,
)
from layoutproof.bodies.forward import Here, forward, nested
from layoutproof.bodies.in_flight import slot_text
from layoutproof.bodies.moments import ADDS, DeviceMemory, Event, Key, Place, hull_of
from layoutproof.bodies.other_devices import is_in_global
from layoutproof.bodies.regions import ViewedRegion, region_of
from layoutproof.bodies.symbolic import Number, Symbolic
from layoutproof.bodies.warpgroups import (
    ThreadTrace,
    Warpgroups,
    check_warps,
    threads_of_each,
)
from layoutproof.core.budget import spend
from layoutproof.core.errors import Unsupported
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.scalar_memory import axis_table

MULTIPROCESSORS = 132
"""Of an H100 or H200 (NVIDIA); a B200 has 148. Each has room for one program, whatever that asks for."""
MOST_THREADS = 4_000
"""Threads of all devices together."""


def gpus_of(kernel: Kernel) -> Gpus:
    """All devices that run a kernel. Raises Unsupported where it is not known what they do."""
    found = _gpus_of(kernel)
    if isinstance(found, Unsupported):
        raise found
    return found


@lru_cache(maxsize=4)
def _gpus_of(kernel: Kernel) -> Gpus | Unsupported:
    try:
        _check(kernel)
        return Gpus(kernel)
    except Unsupported as reason:
        return reason


def _check(kernel: Kernel) -> None:
    """Raises Unsupported for what is not known beside other devices."""
    body: Body = kernel.body
    if any(type(extent) is not int for extent in kernel.grid):
        raise Unsupported(problems.PROGRAMS_UNKNOWN())
    if not kernel.ordered:
        raise Unsupported(problems.SEMAPHORES_UNORDERED())
    if body.units:
        raise Unsupported(problems.SEMAPHORES_AND_UNITS())
    if kernel.tensor and any(is_in_global(reference) for reference in body.references):
        raise Unsupported(problems.SEMAPHORES_AND_TENSOR())
    check_warps(body)
    scopes = [e for e in body.effects if isinstance(e, Freed) and any(map(is_in_global, e.references))]
    again = [r for r in body.references if is_in_global(r) and r.fresh_in]
    if len(scopes) > 1 or again:
        # the next scope has the same ones, and nothing fills them with zeros again
        raise Unsupported(problems.SEMAPHORE_SCOPES())


class _Tied(Warpgroups):
    """Threads of which only those are run together that semaphores, or barriers, tie together."""

    most = 200_000
    most_steps = 100_000_000

    def look(self) -> None:
        """Runs them once, and notes who touches which memory."""
        self._waiting: dict[Key, list[int]] = {}
        for thread, events in enumerate(self.events):
            for event in events:
                if event.kind in ("wait", "phase") and event.semaphore is not None:
                    waiting = self._waiting.setdefault(event.semaphore, [])
                    waiting += [] if thread in waiting[-1:] else [thread]
        self.part = _parts(self.events)
        self._of_part: dict[int, list[int]] = {}
        for thread, part in enumerate(self.part):
            self._of_part.setdefault(part, []).append(thread)
        # arrays in global memory are memory like other here
        super(Warpgroups, self).look()

    def concerned(self, held: frozenset[tuple[str, int, int]]) -> Iterable[int]:
        """The threads that some semaphore, or barrier, ties to those that are held back."""
        if not held:
            return range(len(self.events))
        return [thread for part in {self.part[end[1]] for end in held} for thread in self._of_part[part]]

    def woken_by(self, key: Key, device: int) -> Iterable[int]:
        """Those that wait for it."""
        return self._waiting.get(key, ())


class Gpus(_Tied):
    """All threads of all programs of all devices.

    devices: where each is on the mesh.  shapes: of arrays that are touched in another shape than they have, that one.
    """

    def __init__(self, kernel: Kernel) -> None:
        mesh = kernel.axes
        names, extents = (*(name for name, _ in mesh), *kernel.grid_names), (*(n for _, n in mesh), *kernel.grid)
        wide = replace(kernel, grid=extents, grid_names=names)
        self.mesh = mesh
        self.devices = list(product(*(range(extent) for _, extent in mesh)))
        if len(self.devices) > MOST_DEVICES:
            raise Unsupported(problems.MESH_SIZE(len(self.devices), MOST_DEVICES))
        warps = threads_of_each(kernel)
        own = list(product(*(range(int(extent)) for extent in kernel.grid)))
        places: list[Place] = [(*device, *at) for device in self.devices for at in own for _ in range(warps)]
        if len(places) > MOST_THREADS:
            raise Unsupported(problems.MOST_THREADS(len(places), MOST_THREADS))
        self.each = len(own) * warps
        threads = dict(zip(kernel.grid_names, kernel.grid, strict=True)).get(kernel.threads, 1)
        self._programs = len(own) // int(threads)
        self._given = {r.name for r in kernel.body.references if r.role == "in" and r.memory == "gmem"}
        seen = _reshaped(kernel.body)
        self.shapes = {(v.reference.elsewhere or (v.reference.name,))[0]: v.reference.dims for v in seen.values()}
        events = [_GpuTrace(wide, places, n, warps, mesh, self.each, seen).run() for n in range(len(places))]
        counted = {r.name for r in kernel.body.references if is_in_global(r)}
        _check_takers(events, counted)
        # the same, of which none waits for another program: whoever waits here comes at least as far there
        alone = [[_passed(event, counted) for event in each] for each in events]
        self._near = _Tied(wide, places, alone, plain=True)
        # whether other programs order what two threads of one program do
        self._beyond = False
        super().__init__(wide, places, events)

    # runs

    def before(self, one: TouchedTime, other: TouchedTime) -> bool:
        """Whether the first has surely ended when the other one begins, as of `Warpgroups`."""
        if self._is_near(one, other):
            if self._near.before(one, other):
                return True
            if self._near.before(other, one):
                return False
        return super().before(one, other)

    def ordered(self, one: TouchedTime, other: TouchedTime) -> bool:
        """Whether one of two has surely ended when the other one begins."""
        if self._is_near(one, other):
            if self._near.ordered(one, other):
                return True
            self._beyond = True
        return super().ordered(one, other)

    def _is_near(self, one: TouchedTime, other: TouchedTime) -> bool:
        return self._near.part[one.event.device] == self._near.part[other.event.device]

    def _unseen(self) -> Iterator[DeviceProblem]:
        if any(True for _ in self._near._unseen()):
            yield from super()._unseen()

    def _uncommitted(self) -> Iterator[DeviceProblem]:
        if self._beyond or any(True for _ in self._near._uncommitted()):
            yield from super()._uncommitted()

    def _unended(self) -> Iterator[DeviceProblem]:
        if any(True for _ in self._near._unended()):
            yield from super()._unended()

    # words

    def device_of(self, thread: int) -> int:
        """The device of a thread."""
        return thread // self.each

    def _device_name(self, thread: int) -> str:
        at = zip(self.mesh, self.devices[self.device_of(thread)], strict=True)
        return "device " + ", ".join(f"{axis}={k}" for (axis, _), k in at) if self.mesh else "the device"

    def _whose(self, number: int) -> str:
        return f" of {self._device_name(number)}" if self.mesh else ""

    # questions

    def homes(self) -> Iterable[int]:
        """The first thread of each device, which stands for it."""
        return range(0, len(self.events), self.each)

    def home_name(self, device: int) -> str:
        """A device in words."""
        return self._device_name(device)

    def home_place(self, device: int) -> Place:
        """Where a device is on the mesh."""
        return self.devices[self.device_of(device)]

    def element_of(self, name: str, at: Place) -> Place:
        """The element of an array whose place in another shape is known."""
        if name not in self.shapes or at == ():
            return at
        dims = next(r.dims for r in self.kernels[0].body.references if r.name == name)
        number = reduce(lambda found, each: found * each[1] + each[0], zip(at, self.shapes[name], strict=True), 0)
        found: list[int] = []
        for extent in reversed(dims):
            number, place = divmod(number, extent)
            found.insert(0, place)
        return tuple(found)

    def unstored(self, reference: BodyReference) -> DeviceProblem | None:
        """As of `Devices`, of an array in the shape in which it is touched."""
        return super().unstored(replace(reference, dims=self.shapes.get(reference.name, reference.dims)))

    def pairs(self, spans: Sequence[TouchedTime]) -> Iterable[tuple[TouchedTime, TouchedTime]]:
        """Of an array those whose boxes meet in the dimension in which they begin at most places."""
        boxes = [hull_of(span.piece.region) for span in spans]
        if spans[0].piece.region.name not in self.arrays or None in boxes or not boxes[0]:
            return super().pairs(spans)
        sides = [[box[d] for box in boxes if box is not None] for d in range(len(boxes[0]))]
        most = max(sides, key=lambda side: len({low for low, _ in side}))
        return _meeting(spans, most)

    def is_given(self, span: TouchedTime) -> bool:
        """Whether it is read of an input."""
        return span.piece.region.name in self._given

    def _others(self, ends: bool) -> Iterator[DeviceProblem]:
        yield from super()._others(ends)
        if ends:
            yield from self._late()

    def problems(self) -> Iterator[DeviceProblem]:
        """All that goes wrong between devices and threads, and waits for programs that may not have begun."""
        yield from super().problems()
        if self._programs > MULTIPROCESSORS:
            counted = {r.name for r in self.kernels[0].body.references if is_in_global(r)}
            waits = (e for own in self.events for e in own if e.kind in ("wait", "phase") and e.semaphore is not None)
            first = next((e for e in waits if e.semaphore is not None and e.semaphore[2] in counted), None)
            if first is not None and first.semaphore is not None:
                slot = slot_text(first.semaphore[2], first.semaphore[3])
                what = problems.NOT_ALL_RUN(self.name(first.device), slot, self._programs, MULTIPROCESSORS)
                hint = problems.LOOK_AT_SIGNALS(slot, self._device_name(first.device))
                yield replace(self._problem("never", what, hint, first.semaphore[2], first), sure=False)

    def _stuck(self) -> list[DeviceProblem]:
        found = []
        counted = {r.name for r in self.kernels[0].body.references if is_in_global(r)} | {MEETING.name}
        for thread, events in enumerate(self.events):
            event = events[self.end[thread]] if self.end[thread] < len(events) else None
            if event is None or event.semaphore is None or event.semaphore[2] not in counted:
                continue
            slot = slot_text(event.semaphore[2], event.semaphore[3])
            there = self.counts.get(event.semaphore, 0)
            what = problems.NEVER_RETURNS(self.name(thread), event.amount, "of ", slot, there, self.word)
            hint = problems.LOOK_AT_SIGNALS(slot, self._device_name(thread))
            found.append(self._problem("never", what, hint, event.semaphore[2], event))
        # who waits where all threads meet waits for one that waits elsewhere
        found.sort(key=lambda problem: problem.subject == MEETING.name)
        return found[:1] or super()._stuck()

    def _in_order(self, one: TouchedTime, other: TouchedTime) -> bool:
        alike = self.device_of(one.event.device) == self.device_of(other.event.device)
        # of two devices the arrays hold other numbers
        return alike and super()._in_order(one, other)

    def _met(self, one: TouchedTime, other: TouchedTime, met: object) -> DeviceProblem | None:
        found = super()._met(one, other, met)
        if found is None or one.piece.region.name not in self.arrays or one.event.device == other.event.device:
            return found
        apart = self.device_of(one.event.device) != self.device_of(other.event.device)
        return replace(found, kind="between" if apart else "meets")

    def _late(self) -> Iterator[DeviceProblem]:
        """What reaches a device of which all programs may have ended by then."""
        for spans in self.memory.values():
            for span in spans:
                name, home = span.piece.region.name, span.piece.device
                apart = name in self.arrays and self.device_of(home) != self.device_of(span.event.device)
                if apart and self._may_have_ended(span.end, home):
                    what = problems.AFTER_THE_END(self._does(span), name, self._device_name(home))
                    found = self._late_problem(what, name, span.event, home)
                    yield found if span.piece.sure else replace(found, what=f"perhaps {what}", sure=False)
                    return
        for thread, events in enumerate(self.events):
            for event in events:
                key = event.semaphore
                if event.kind != "signal" or key is None or self.device_of(key[0]) == self.device_of(thread):
                    continue
                if self._may_have_ended(("at", thread, event.position), key[0]):
                    slot = slot_text(key[2], key[3])
                    what = problems.AFTER_THE_END(f"{self.name(thread)} signals", slot, self._device_name(key[0]))
                    yield self._late_problem(what, key[2], event, key[0])
                    return

    def _late_problem(self, what: str, name: str, event: Event, home: int) -> DeviceProblem:
        hint = problems.LOOK_AT_THE_END(self._device_name(home))
        return self._problem("late", what, hint, name, event, other=home)

    @cached_property
    def _wanted(self) -> Mapping[Key, int]:
        """How many of the arrivals at a semaphore may be missing before somebody waits for ever."""
        sent: Counter[Key] = Counter()
        needed: dict[Key, int] = {}
        taken: Counter[Key] = Counter()
        for event in (event for events in self.events for event in events):
            key = event.semaphore
            if key is None:
                continue
            if event.kind == "wait":
                taken[key] += event.amount
                needed[key] = max(needed.get(key, 0), taken[key])
            elif event.kind == "phase":
                needed[key] = max(needed.get(key, 0), taken[key] + event.amount)
            elif event.kind == "signal":
                sent[key] += event.amount
        return {key: sent[key] - many for key, many in needed.items()}

    def _may_have_ended(self, end: tuple[str, int, int], home: int) -> bool:
        kind, thread, position = end
        missing: Counter[Key] = Counter()
        for event in self.events[thread][position:] if kind == "at" else ():
            if event.kind == "signal" and event.semaphore is not None:
                missing[event.semaphore] += event.amount
        there = self.device_of(home)
        if any(self.device_of(key[0]) == there and many > self._wanted.get(key, many) for key, many in missing.items()):
            # without a run: somebody there waits for all of them
            return False
        reached = self.reached(end)
        first = self.device_of(home) * self.each
        return all(reached[thread] == len(self.events[thread]) for thread in range(first, first + self.each))


def _check_takers(events: Sequence[Sequence[Event]], counted: Collection[str]) -> None:
    """Raises Unsupported where several threads wait for a semaphore in global memory, and one of them takes from it."""
    waits = [e for own in events for e in own if e.semaphore is not None and e.semaphore[2] in counted]
    takers = {(e.semaphore, e.device) for e in waits if e.kind == "wait"}
    waiting = {(e.semaphore, e.device) for e in waits if e.kind in ("wait", "phase")}
    for key, taker in takers:
        if key is not None and any(other == key and thread != taker for other, thread in waiting):
            raise Unsupported(problems.SEMAPHORE_RIVALS(slot_text(key[2], key[3])))


def _passed(event: Event, counted: Collection[str]) -> Event:
    """An event, without the wait where it is for some semaphores, and without the signal to them."""
    ties = event.semaphore is not None and event.semaphore[2] in counted
    return replace(event, kind="passed", semaphore=None) if ties else event


def _meeting(
    spans: Sequence[TouchedTime], sides: Sequence[tuple[int, int]]
) -> Iterator[tuple[TouchedTime, TouchedTime]]:
    """Pairs of touches whose sides have a place in common. sides: of each, where it begins and where it ends."""
    open_: list[int] = []
    for k in sorted(range(len(spans)), key=lambda k: sides[k]):
        open_ = [other for other in open_ if sides[other][1] > sides[k][0]]
        spend(1 + len(open_) // PER_STEP)
        yield from ((spans[min(other, k)], spans[max(other, k)]) for other in open_)
        open_.append(k)


def _reshaped(body: Body) -> Mapping[View, View]:
    """The views of arrays that are all seen in one other shape, of arrays of that shape."""
    views: dict[str, list[View]] = {}
    for view in views_of(body):
        if _is_array(view):
            name, _ = view.reference.elsewhere or (view.reference.name, None)
            views.setdefault(name, []).append(view)
    found: dict[View, View] = {}
    for own in views.values():
        first = {view.steps[0].after if view.steps and view.steps[0].kind == "reshape" else None for view in own}
        dims = next(iter(first))
        if len(first) == 1 and dims is not None:
            found |= {view: View(replace(view.reference, dims=dims), view.steps[1:]) for view in own}
    return found


def _parts(events: Sequence[Sequence[Event]]) -> list[int]:
    """For each thread the first of those that semaphores and barriers tie together with it."""
    first = list(range(len(events)))

    def root(thread: int) -> int:
        while first[thread] != thread:
            first[thread] = first[first[thread]]
            thread = first[thread]
        return thread

    users: dict[Key, int] = {}
    for thread, own in enumerate(events):
        for key in {key for event in own for key in (event.semaphore, event.sent) if key is not None}:
            one, other = root(users.setdefault(key, thread)), root(thread)
            first[max(one, other)] = min(one, other)
    return [root(thread) for thread in range(len(events))]


class _GpuTrace(ThreadTrace):
    """One thread of one program of one device: its events in order."""

    def __init__(
        self,
        kernel: Kernel,
        places: Sequence[Place],
        number: int,
        warps: int,
        mesh: Sequence[tuple[str, int]],
        each: int,
        seen: Mapping[View, View],
    ) -> None:
        super().__init__(kernel, places, number, number % warps)
        self.mesh, self.each, self.warps, self.seen = mesh, each, warps, seen
        self.device = dict(zip((name for name, _ in mesh), self.place, strict=False))
        self.loaded: Mapping[str, Number] = {axis_table(name): at for name, at in self.device.items()}
        self._ended: list[tuple[Freed, Here]] = []
        if any(r.memory == "shared" and r.fresh_in for r in self.body.references):
            # a loop comes back to what is before
            self._last_shared = len(self.body.effects)

    def run(self) -> list[Event]:
        """The events, up to its end."""
        names: dict[str, Number] = dict(zip(self.kernel.grid_names, self.place, strict=True))
        begin = Here(names, self.place)
        self._note("touch", Spot(-1, (), (), self.kernel.source), begin)
        forward(nested(with_barriers(self.body)), self, begin, None)
        return self.events

    # the domain

    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Notes an event, if it happens; also of arrays in global memory."""
        if not (isinstance(effect, Access) and _is_array(effect.view)):
            super().effect(effect, here, state)
            return
        if self.warp and not any(loop.warps for loop in effect.spot.loops):
            return
        on = self._at(here)
        held = [on(condition) for condition in effect.spot.path]
        spend(1 + on.steps // 4)
        on.steps = 0
        if any(one is False for one in held):
            return
        does = {"read": "reads", "write": "writes", "add": ADDS}[effect.kind]
        sure = all(one is True for one in held) and effect.mask is None
        pieces = self._of_arrays(on, effect.view, effect.kind != "read", does, sure, adds_to(effect))
        self._note("touch", effect.spot, here, pieces=tuple(pieces))

    def _frees(self, freed: Freed, here: Here) -> None:
        """Threads that share memory of a scope do not meet where it ends, but where the next one begins."""
        if self.kernel.threads:
            self._ended.append((freed, here))
        else:
            super()._frees(freed, here)

    def _orders(self, on: Symbolic, effect: Effect, here: Here, sure: bool = True) -> None:
        if isinstance(effect, Signal) and effect.semaphore.reference is MEETING:
            self._meets(effect.spot, here)
            return
        if isinstance(effect, Signal) and is_in_global(effect.semaphore.reference):
            self._counts(on, effect, here)
            return
        begun = len(self.events)
        super()._orders(on, effect, here, sure)
        if isinstance(effect, StartedCopy):
            sides = ((effect.source, False, "copies from"), (effect.target, True, "copies into"))
            pieces = tuple(
                piece
                for view, writes, does in sides
                if _is_array(view)
                for piece in self._of_arrays(on, view, writes, does, sure and effect.mask is None, clips=effect.clips)
            )
            for k in range(begun, len(self.events)):
                if self.events[k].kind == "start":
                    self.events[k] = replace(self.events[k], pieces=(*self.events[k].pieces, *pieces))

    def _meets(self, spot: Spot, here: Here) -> None:
        """All threads of the program wait for each other."""
        mine = self._programs[self._program]
        width = self._same_program()
        others = [n for n in range(mine, mine + width, self.warps) if n != self.number]
        for other in others:
            self._note("signal", spot, here, 1, (other, 0, MEETING.name, ()))
        self._note("wait", spot, here, len(others), (self.number, 0, MEETING.name, ()))
        for freed, place in self._ended:
            super()._frees(freed, place)
        self._ended = []

    def _same_program(self) -> int:
        """How many threads a program has, warps counted."""
        extents = dict(zip(self.kernel.grid_names, self.kernel.grid, strict=True))
        return int(extents.get(self.kernel.threads, 1)) * self.warps

    def _counts(self, on: Symbolic, signal: Signal, here: Here) -> None:
        """A signal to, or a wait for, a semaphore in global memory."""
        many = self._number(None if signal.amount is None else on(signal.amount), problems.SIGNAL_AMOUNT())
        keys = [self._in_global(on, signal.semaphore, device) for device in self._devices(on, signal.device)]
        if signal.wait:
            kind = "phase" if signal.keeps else "wait"
            self._note(kind, signal.spot, here, many, keys[0], by_name=signal.keeps)
        else:
            for key in keys:
                self._note("signal", signal.spot, here, many, key)

    def _in_global(self, on: Symbolic, view: View, device: int) -> Key:
        """A semaphore of a device: the one of all of its programs, or that of the program there that this one is."""
        region, reference = region_of(self.kernel, on, view), view.reference
        if not region.exact or any(size != 1 for _, size, _ in region.runs):
            raise Unsupported(problems.SEMAPHORE_SET(reference.name))
        at = tuple(self._number(a, problems.SEMAPHORE_INDEX(reference.name)) for a, _, _ in region.runs)
        program = 0 if reference.of_device else self._programs[self._program] % self.each
        return device * self.each + program, 0, reference.name, at

    def _devices(self, on: Symbolic, device: Device | None) -> list[int]:
        """The numbers of the devices that are meant."""
        if device is None:
            return [self.number // self.each]
        if device.along:
            return list(range(prod(extent for _, extent in self.mesh)))
        if device.core or (device.logical is None and not device.places):
            raise Unsupported(problems.DEVICE_FORM(device))
        return [number_of(device, self.mesh, self.device, lambda at: self._number(on(at), problems.DEVICE_MEANT()))]

    def _of_arrays(
        self,
        on: Symbolic,
        view: View,
        writes: bool,
        does: str,
        sure: bool,
        adds: bool = False,
        clips: bool = False,
    ) -> list[DeviceMemory]:
        """What is touched of an array, on each device that is meant."""
        view = self.seen.get(view, view)
        reference: BodyReference = view.reference
        name, device = reference.elsewhere or (reference.name, None)
        region = region_of(self.kernel, on, view)
        known = region.exact and all(type(n) is int for run in region.runs for n in run[:2])
        shown_runs: Any = region.runs
        runs: Any = tuple((0, extent, 1) for extent in reference.dims)
        if known:
            runs = _clipped(shown_runs, reference.dims) if clips else shown_runs
        if any(size == 0 for _, size, _ in runs):
            return []
        shown = ViewedRegion(name, runs, known)
        return [
            DeviceMemory(to * self.each, (0, name), shown, writes, does, sure and known, adds)
            for to in self._devices(on, device)
        ]


def _is_array(view: View) -> bool:
    return view.reference.memory == "gmem"


def _clipped(runs: Sequence[tuple[int, int, int]], dims: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """What lies inside of an array."""
    found = []
    for (start, size, stride), extent in zip(runs, dims, strict=True):
        low, high = (max(start, 0), min(start + size, extent)) if stride == 1 else (start, start + size)
        found.append((low, max(high - low, 0), stride))
    return tuple(found)
