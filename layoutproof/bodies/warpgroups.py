"""The threads of one program of a GPU (warpgroups): the events of each in order, and the happens-before relation.

They share memory and order each other by barriers alone. Each is run as it is, like a device of `devices`: who comes
how far does not depend on the schedule, as arrivals on a barrier only add up and a wait takes nothing from it. The k-th
wait of a thread on a barrier is for the end of its k-th phase. It looks at the parity of the phase alone, so that no
phase may end twice before a thread has seen it (PTX ISA 8.7, mbarrier.try_wait.parity).

A copy into shared memory has ended when its arrival is waited for, a copy out of it and an MMA when their own thread
has waited for them (`wait_smem_to_gmem`, `wgmma_wait`). What threads store to shared memory is seen by copies and MMAs
after a `commit_smem` between the two. Memory that a scope allocates is one for all threads, as JAX demands of a kernel
of several; accumulators are a thread's own (`_run_scoped_lowering_rule` in lowering.py of jax 0.10.2).

The warps of a warpgroup (`WarpMesh`) are threads of their own where they do different things: the first one does what
the warpgroup does, the others wait for it before, and it for them after. An MMA on tensor memory, and a copy to it, has
ended when an arrival is seen that its thread has asked for behind it (`tcgen05_commit_arrive`). MMAs on one accumulator
come one after the other as they are begun, and an MMA comes after the copies that are begun before; nothing else on
tensor memory is ordered by itself (PTX ISA 8.7, tcgen05: pipelined instructions). So who sees that such an MMA has
ended sees that of what it came after. What threads do there is ordered by barriers with `orders_tensor_core` alone.

A named barrier of the hardware (`bar.sync`, `bar.arrive`) counts warps, and begins anew when all are there that it is
for. Who waits does so for the phase of its own arrival. So each thread has to arrive once in each phase, and not again
before it has ended: then the k-th arrival of each is of the k-th phase, as in the count that only adds up. That no
thread can arrive too early is seen from runs in which one of its arrivals does not count (PTX ISA 8.7, bar: it has 16,
of which 0 and those of warpgroups are the compiler's own; `warpgroup_barrier` in jax/experimental/mosaic/gpu/utils.py).

Programs do not order each other, but for those of one cluster. Those for which the same loops run as often and the
same conditions hold do the same in shared memory: one of each such class is run.

Arrays in global memory are one memory for all threads of a cluster, and are looked at where somebody asks for them.
What orders shared memory orders them, as JAX's race detector takes it, too (`shared_memory.py` in
jax/_src/pallas/mosaic_gpu/interpret of jax 0.12). A copy to global memory has ended with what it writes when its thread
has waited for more than its reads (`wait_read_only`). A copy goes through a proxy of its own, and JAX has no fence for
that in global memory: nothing promises that it comes after what threads did, or after copies of another program (PTX
ISA 8.7, memory consistency model: proxy-preserved base causality order).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import combinations, pairwise, product
from math import prod
from typing import Any, TypeVar

from layoutproof.bodies import arithmetic, problems
from layoutproof.bodies.cells import Box, covered
from layoutproof.bodies.devices import PER_STEP, DeviceProblem, Devices, TouchedTime
from layoutproof.bodies.effects import (
    COPIES_IN,
    COPIES_OUT,
    MMAS,
    TENSOR,
    TENSOR_LOADS,
    TENSOR_STORES,
    WARPS,
    Access,
    Body,
    BodyReference,
    Committed,
    Effect,
    Freed,
    Signal,
    Spot,
    StartedCopy,
    StartedUse,
    TensorFence,
    View,
    Wait,
    adds_to,
    writes_to,
)
from layoutproof.bodies.forward import Here, Nest, Run, forward, nested
from layoutproof.bodies.in_flight import slot_text
from layoutproof.bodies.moments import ADDS, KNOWN, DeviceMemory, Event, Key, Place, box_of, hull_of
from layoutproof.bodies.one_place import gets_its_place, in_others
from layoutproof.bodies.regions import ViewedRegion, array_of, common_element, region_of
from layoutproof.bodies.symbolic import Number, OpenCondition, Symbolic
from layoutproof.bodies.touched import touches
from layoutproof.bodies.values import Value
from layoutproof.bodies.work_units import FEW, OUTSIDE, SKEW, balanced, begin_and_end, by_turn, steady
from layoutproof.core.budget import spend
from layoutproof.core.errors import Unsupported
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel

MOST_TRACED = 200_000
"""Events of the threads of all programs."""
MOST_STORING = 2_000
"""Programs whose stores are looked at one by one."""
MOST_EVENTS = 6_000
"""Events of all threads of one program together."""
_MEET = "warps"
"""The semaphore by which warps of a warpgroup wait for each other before and after what they do by themselves."""
_FREES = "frees"
_IN_ORDER = (COPIES_IN, COPIES_OUT, MMAS, TENSOR_LOADS, TENSOR_STORES)
"""What ends in the order of its starts, and is waited for by numbers of groups."""
_TENSOR_QUEUES = (TENSOR, TENSOR_LOADS, TENSOR_STORES)


def threads_of(kernel: Kernel, arrays: frozenset[str] = frozenset()) -> tuple[Warpgroups, ...]:
    """The threads of one program, or cluster, of each class. Raises Unsupported where it is not known what they do.

    arrays: in global memory, that are looked at, too (`regions.array_of`).
    """
    found = _threads_of(kernel, arrays)
    if isinstance(found, Unsupported):
        raise found
    return found


@lru_cache(maxsize=4)
def _threads_of(kernel: Kernel, arrays: frozenset[str]) -> tuple[Warpgroups, ...] | Unsupported:
    try:
        _check(kernel)
        if arrays and not kernel.ordered:
            raise Unsupported(problems.READ_AND_STORED(", ".join(sorted(arrays))))
        if kernel.body.units:
            if arrays:
                raise Unsupported(problems.UNITS_DEPEND())
            return _with_work(kernel)
        return tuple(Warpgroups(kernel, places, events) for places, events in _classes(kernel, arrays))
    except Unsupported as reason:
        return reason


def _check(kernel: Kernel) -> None:
    """Raises Unsupported where the order of a kernel's threads rests on more than barriers of one program."""
    body: Body = kernel.body
    if any(type(extent) is not int for extent in kernel.grid):
        raise Unsupported(problems.PROGRAMS_UNKNOWN())
    copied = {e.target.reference.name for e in body.effects if isinstance(e, StartedCopy) and _in_global(e.target)}
    for effect in body.effects:
        view = effect.view if isinstance(effect, Access) else effect.source if isinstance(effect, StartedCopy) else None
        if view is None:
            continue
        if view.reference.name in copied and not (isinstance(effect, Access) and effect.kind == "write"):
            raise Unsupported(problems.READ_AND_WRITTEN(view.reference.name))
    check_warps(body)
    if not kernel.ordered:
        _check_unordered(body)
    for reference in body.references:
        if reference.memory in _SHARED and reference.fresh_in:
            raise Unsupported(problems.LOOP_ALLOCATES(reference.name))


def check_warps(body: Body) -> None:
    """Raises Unsupported where a barrier is waited for by single warps, and by warpgroups too.

    Each warp looks at the parity of the phase that it waits for, and waits for the copies that it has started itself.
    """
    waits = [
        (e.semaphore.reference.name, _by_warps(e))
        for e in body.effects
        if isinstance(e, Wait) and not e.semaphore.reference.by_name
    ]
    waits += [(COPIES_OUT, True) for e in body.effects if _by_warps(e) and _is_copy_out(e)]
    for name in sorted({name for name, apart in waits if apart} & {name for name, apart in waits if not apart}):
        raise Unsupported(problems.WARPS_WAIT(name))


def _check_unordered(body: Body) -> None:
    """Raises Unsupported for what rests on barriers that JAX leaves out: of warps, in global memory.

    The lanes of a warp that load or store by themselves are not looked at. Its copies and MMAs are started by one.
    """
    accesses = [effect for effect in body.effects if isinstance(effect, Access)]
    for effect in filter(_by_warps, body.effects):
        if isinstance(effect, Committed) or (isinstance(effect, Access) and effect.queue != TENSOR):
            raise Unsupported(problems.READ_AND_STORED("memory of warps"))
    read = {effect.view.reference.name for effect in accesses if effect.kind == "read"}
    for effect in accesses:
        name = effect.view.reference.name
        if effect.kind != "read" and name in read and _in_global(effect.view):
            raise Unsupported(problems.READ_AND_STORED(name))


def _in_global(view: View) -> bool:
    return view.reference.memory == "gmem"


_SHARED = ("shared", "tmem")
"""The memories of a program that all of its threads have."""


def _is_shared(view: View) -> bool:
    return view.reference.memory in _SHARED


def _is_copy_out(effect: Effect) -> bool:
    return isinstance(effect, StartedCopy) and effect.semaphore.reference.name == COPIES_OUT


def _by_warps(effect: Effect) -> bool:
    """Whether single warps do it, each by itself."""
    return any(loop.warps for loop in effect.spot.loops)


# classes of programs


def _classes(kernel: Kernel, arrays: frozenset[str]) -> Iterator[tuple[list[Place], list[list[Event]]]]:
    """The threads of one program, or cluster, of each class, and what they do; all of a class do the same."""
    grid = dict(zip(kernel.grid_names, map(int, kernel.grid), strict=True))
    apart = [name for name in grid if name not in kernel.together]
    programs: Iterable[Place] = product(*(range(grid[name]) for name in apart))
    if not _asks(kernel, frozenset(apart), arrays):
        programs = [(0,) * len(apart)]
    seen: set[object] = set()
    traced = 0
    for program in programs:
        places, events = _traced(kernel, dict(zip(apart, program, strict=True)), arrays=arrays)
        traced += sum(map(len, events))
        if traced > MOST_TRACED:
            raise Unsupported(problems.EVENTS_ALL_PROGRAMS(MOST_TRACED))
        does = tuple(tuple(map(_does, each)) for each in events)
        if does not in seen:
            seen.add(does)
            yield places, events


def _traced(
    kernel: Kernel, at: Mapping[str, int], units: int = 0, inside: bool = True, arrays: frozenset[str] = frozenset()
) -> tuple[list[Place], list[list[Event]]]:
    """The threads of one program, or cluster, and what they do. units: how much work it does.  inside: of each turn.

    arrays: in global memory, that are looked at; those, too, that one warp of a warpgroup writes and another touches.
    """
    warps = threads_of_each(kernel)
    grid = zip(kernel.grid_names, map(int, kernel.grid), strict=True)
    threads = product(*([at[name]] if name in at else range(extent) for name, extent in grid))
    places = [place for place in threads for _ in range(warps)]
    traces = [
        ThreadTrace(kernel, places, number, number % warps, units, inside, arrays) for number in range(len(places))
    ]
    events = [trace.run() for trace in traces]
    if not kernel.ordered:
        references = kernel.body.references
        shared = {r.name: r.memory for r in references if r.memory in _SHARED}
        cluster = {r.name for r in references if r.across}
        # who arrives for all meets them before; else each lane arrives for itself
        orders = {r.name for r in references if r.orders and (r.across or kernel.lanes)}
        for each in events:
            _check_lanes(each, shared, cluster, orders)
        for k in range(0, len(events) if warps > 1 else 0, warps):
            _check_apart(events[k], [event for each in events[k + 1 : k + warps] for event in each])
    met: set[str] = set()
    for k in range(0, len(traces), warps):
        for one, other in combinations(traces[k : k + warps], 2):
            met |= {name for name in one.touched & other.touched if name in one.written | other.written}
    if met <= arrays:
        return places, events
    if not kernel.ordered:
        raise Unsupported(problems.READ_AND_STORED(", ".join(sorted(met))))
    return _traced(kernel, at, units, inside, arrays | met)


def _check_lanes(
    events: Sequence[Event], shared: Mapping[str, str], cluster: Collection[str], orders: Collection[str]
) -> None:
    """Raises Unsupported where the lanes of a warpgroup may meet, and JAX puts no barrier of its own between them.

    Each lane loads and stores a part of what its warpgroup does, each warp has its part of an MMA, and one lane starts
    the copies. All of them meet at `commit_smem` and at a wait for copies out, which have barriers, and where the
    warpgroup waits at a named barrier. Each arrives by itself, and waits by itself for copies. So nothing is left to
    order where, with no meeting between, no lane touches what another one has stored, and none stores, or starts a
    copy, into what another one has read (`CompilerParams` in core.py of jax 0.10.2 asks for that and more).
    Of tensor memory each warp has lanes of its own, and one lane starts the MMAs.

    shared: the memory that lanes share, by name.  cluster: the barriers of a cluster, on which one lane arrives for
    all.  orders: those that order tensor memory, at whose arrivals all lanes meet.
    """
    since: list[DeviceMemory] = []
    for event in events:
        if _meets(event, orders):
            since = []
        elif since and event.kind == "signal" and _barrier(event) in cluster:
            raise Unsupported(problems.READ_AND_STORED(since[-1].memory[1]))
        for piece in event.pieces:
            name = piece.memory[1]
            # what a copy reads has to be committed, and there all have met
            if piece.does == _FREES or name not in shared or (event.kind == "start" and not piece.writes):
                continue
            alone = event.kind == "start" or event.queue == TENSOR
            for one in since:
                met = one.memory == piece.memory and (one.writes or piece.writes)
                met = met and (alone or shared[name] != "tmem")
                if met and common_element(KNOWN, one.region, piece.region) is not False:
                    raise Unsupported(problems.READ_AND_STORED(name))
            if not alone:
                since.append(piece)


def _meets(event: Event, orders: Collection[str]) -> bool:
    """Whether all lanes of a warpgroup meet. orders: the barriers at whose arrivals they do."""
    waits = event.kind == "phase" and event.by_name and bool(_barrier(event))
    drained = event.kind == "drain" and event.queue in (COPIES_IN, COPIES_OUT)
    return waits or drained or event.kind == "commit" or (event.kind == "signal" and _barrier(event) in orders)


def _barrier(event: Event) -> str:
    """The barrier of an event of a whole warpgroup, "" of all others."""
    return "" if event.semaphore is None or _is_of_warp(event) else event.semaphore[2]


def threads_of_each(kernel: Kernel) -> int:
    """As how many threads a warpgroup is run: as its warps where they do different things.

    Where they do not meet before and after that, what they do together is a thread of its own, and comes first.
    """
    if not any(map(_by_warps, kernel.body.effects)):
        return 1
    return WARPS if kernel.ordered else WARPS + 1


def _check_apart(together: Sequence[Event], apart: Sequence[Event]) -> None:
    """Raises Unsupported where warps that do not meet do more than first each its own, and then something together."""
    does = [event for event in together if event.pieces or event.semaphore or event.queue]
    own = [event.spot for event in apart if event.pieces or event.semaphore or event.queue]
    if not does or not own:
        return
    first = min(spot.number for spot in own)
    around = any(not loop.warps for spot in own for loop in spot.loops[: _depth(spot)])
    if around or any(event.spot.number < first for event in does):
        raise Unsupported(problems.READ_AND_STORED("memory of warps"))


def _depth(spot: Spot) -> int:
    """How many loops are around what warps do by themselves."""
    return next(k for k, loop in enumerate(spot.loops) if loop.warps)


def _is_of_warp(event: Event) -> bool:
    return any(loop.warps for loop in event.spot.loops)


def _with_work(kernel: Kernel) -> tuple[Warpgroups, ...]:
    """The threads of one program for each amount of work, as `work_units` says which are enough."""
    body: Body = kernel.body
    if any(reference.by_name for reference in body.references):
        raise Unsupported(problems.UNITS_NAMED())
    most = body.unknowns[body.units].high - 1
    apart = [name for name in kernel.grid_names if name not in kernel.together]
    extents = dict(zip(kernel.grid_names, kernel.grid, strict=True))
    if _asks(kernel, frozenset(name for name in apart if extents[name] != 1)):
        raise Unsupported(problems.UNITS_DEPEND())
    at = dict.fromkeys(apart, 0)
    last, lost = most, ""
    if most > FEW:
        _, whole = _traced(kernel, at, most)
        found = steady(whole, most)
        lost = problems.UNITS_STEADY(most)
        last = FEW
        if found is not None:
            first, period = found
            last = min(most, first + 2 * period + SKEW)
            ends = [
                [by_turn(each).get(OUTSIDE) for each in _traced(kernel, at, n, False)[1]] for n in range(1, most + 1)
            ]
            alike = all(end == ends[last - 1 - period] for end in ends[last - 1 - period :])
            lost = "" if alike and balanced(whole, first, period) else lost
    shown = tuple(Warpgroups(kernel, *_traced(kernel, at, units)) for units in range(1, last + 1))
    refuted = any(problem.sure for one in shown for problem in one.problems())
    if last < most and not refuted and (lost or not _keeps_up(shown[-1], last)):
        raise Unsupported(lost or problems.UNITS_STEADY(most))
    return shown


def _keeps_up(threads: Warpgroups, turns: int) -> bool:
    """Whether no thread begins a turn of the loop over work before all others have ended the one SKEW + 1 before."""
    spans = [begin_and_end(events) for events in threads.events]
    for device, mine in enumerate(spans):
        for turn in range(turns - SKEW - 1):
            if turn not in mine:
                continue
            reached = threads.reached(("at", device, mine[turn][1]))
            later = [span.get(turn + SKEW + 1) for span in spans]
            if any(next_ is not None and reached[k] > next_[0] for k, next_ in enumerate(later) if k != device):
                return False
    return True


def _does(event: Event) -> object:
    return event.kind, event.spot.number, event.amount, event.semaphore, event.sent, event.queue, event.pieces


def _asks(kernel: Kernel, ids: frozenset[str], arrays: frozenset[str] = frozenset()) -> bool:
    """Whether what threads do in shared memory, and in some arrays, depends on where in the grid their program is."""
    body: Body = kernel.body
    handed = {one.name: one for one in body.handed} | {one.after: one for one in body.handed}
    seen: set[str] = set()
    todo = [name for term in _decides(kernel, arrays) for name in term.names()]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in body.definitions:
            todo += body.definitions[name].names()
        if name in handed:
            todo += [*handed[name].start.names(), *handed[name].following.names()]
    return bool(seen & ids)


def _decides(kernel: Kernel, arrays: frozenset[str]) -> Iterator[Term]:
    """All terms that say whether, how often and where in shared memory, and in some arrays, something happens."""
    body: Body = kernel.body
    for effect in body.effects:
        if not isinstance(effect, Freed):
            yield from effect.spot.path
        for loop in effect.spot.loops:
            yield from () if loop.count is None else (loop.count,)
        for view in _views(effect):
            if not _in_global(view) or array_of(kernel, view.reference.name) in arrays:
                yield from (n for step in view.steps for part in step.slices for n in (part.start, part.size))
    yield from body.goes_on.values()


def _views(effect: Effect) -> tuple[View, ...]:
    match effect:
        case Access(_, view):
            return (view,)
        case StartedCopy(source, target, semaphore):
            return source, target, semaphore
        case StartedUse(views):
            return views
        case Wait(_, semaphore) | Signal(semaphore):
            return (semaphore,)
    return ()


# one program


class Warpgroups(Devices):
    """The threads of one program, or of those of one cluster.

    places: of each; warps that are threads of their own have that of their warpgroup.  events: of each, in order.
    plain: whether all barriers order tensor memory.  most: events that are run.
    """

    most = MOST_EVENTS

    def __init__(self, kernel: Kernel, places: Sequence[Place], events: list[list[Event]], plain: bool = False) -> None:
        self.kernels = (kernel,)
        self.axes = tuple(zip(kernel.grid_names, kernel.grid, strict=True))
        self.cores, self.word = True, "program"
        self.places = tuple(places)
        self.events = events
        if sum(map(len, self.events)) > self.most:
            raise Unsupported(problems.EVENTS_ONE_PROGRAM(self.most))
        self.begins = [[0] for _ in self.places]
        self._signals = [_signals(events) for events in self.events]
        self._parts = _whole(kernel)
        references: Sequence[BodyReference] = kernel.body.references
        self._arrivals = {r.name: _phase(kernel, r) for r in references}
        self._tensor = {r.name for r in references if r.memory == "tmem"}
        self.arrays = {r.name for r in references if r.memory == "gmem"}
        self.apart: dict[str, list[TouchedTime]] = {}
        self._sums = {r.name for r in references if r.memory == "regs"}
        # by thread, where it asks for an arrival behind what it has started on tensor memory
        self._arrives = [[e.position for e in each if e.semaphore and e.queue == TENSOR] for each in self.events]
        self._behind: dict[tuple[int, int], frozenset[tuple[str, int, int]]] = {}
        self._ordering = self
        if self._tensor and not plain:
            orders = frozenset(r.name for r in references if r.orders)
            self._ordering = Warpgroups(kernel, places, self._by_tensor(orders), plain=True)
        self.look()
        self._early_arrival = None if plain else self._arrives_early() or self._joined()

    def _arrives_early(self) -> Unsupported | None:
        """Why the k-th arrivals on a named barrier may not be those of its k-th phase; None where they are.

        Raises Unsupported where it is not known how many arrivals end a phase.
        """
        arrivals: dict[Key, dict[int, list[Event]]] = {}
        for device, events in enumerate(self.events):
            for event in events:
                if event.by_name and event.kind == "start" and event.semaphore is not None:
                    arrivals.setdefault(event.semaphore, {}).setdefault(device, []).append(event)
        (kernel,) = self.kernels
        warpgroups = int(dict(zip(kernel.grid_names, kernel.grid, strict=True)).get(kernel.threads, 1))
        numbers = [(key[0], key[3]) for key in arrivals]
        for key, of in arrivals.items():
            if numbers.count((key[0], key[3])) > 1 or (key[3][0] <= warpgroups and not self._is_its_own(key, of)):
                raise Unsupported(problems.NAMED_OTHER(key[3][0]))
        awaited = {event.semaphore for events in self.events for event in events if event.kind == "phase"}
        for key, of in ((key, of) for key, of in arrivals.items() if key in awaited):
            name = slot_text(key[2], key[3])
            if sum(max(event.amount for event in own) for own in of.values()) > self._arrivals[key[2]]:
                return Unsupported(problems.NAMED_ARRIVALS(name))
            for device, own in of.items():
                for one, other in pairwise(own):
                    # it does not count, and so no phase ends that it is of
                    if self.run(frozenset((("come", device, one.position),)))[0][device] > other.position:
                        return Unsupported(problems.NAMED_EARLY(name, self.name(device), _line(other.spot)))
        return None

    def _is_its_own(self, barrier: Key, devices: Iterable[int]) -> bool:
        """Whether a named barrier is the one at which the lanes of a warpgroup meet (`warpgroup_barrier` of JAX)."""
        (kernel,) = self.kernels
        numbers = [at[kernel.grid_names.index(kernel.threads)] if kernel.threads else 0 for at in self.places]
        own = all(numbers[device] + 1 == barrier[3][0] for device in devices)
        return own and self._arrivals[barrier[2]] == WARPS * self._parts

    def _joined(self) -> Unsupported | None:
        """Why warps may wait for what they do together later, of which each does its part; None where none does."""
        many = self.places.count(self.places[0])
        for first in range(0, len(self.events) if many > WARPS else 0, many):
            does = (e.position for e in self.events[first] if e.pieces or e.semaphore or e.queue)
            begins = next(does, None)
            ends = [len(events) for events in self.events[first + 1 : first + many]]
            if begins is None or not any(n > 1 for n in ends):
                continue
            if list(self.run(frozenset((("at", first, begins),)))[0][first + 1 : first + many]) != ends:
                return Unsupported(problems.READ_AND_STORED("memory of warps"))
        return None

    def _by_tensor(self, orders: Collection[str]) -> list[list[Event]]:
        """The events without the waits that do not order tensor memory. orders: the barriers that do by themselves."""
        open_ = [event for each in self.events for event in _unfenced(each, self._tensor, orders)]
        arrives = {event.semaphore for event in open_ if event.kind != "phase"}
        waits = {(event.device, event.position) for event in open_ if event.kind == "phase"}

        def passed(event: Event) -> bool:
            own = event.kind == "phase" and event.semaphore is not None and event.semaphore[2] not in orders
            return own and (event.semaphore in arrives or (event.device, event.position) in waits)

        return [
            [replace(event, kind="passed", semaphore=None) if passed(event) else event for event in each]
            for each in self.events
        ]

    def _is_of_one(self, one: Event, other: Event) -> bool:
        """Whether two events are of one warpgroup whose warps do not meet."""
        many = self.places.count(self.places[0])
        return many > WARPS and one.device // many == other.device // many and one.device != other.device

    def unwritten(self, spot: Spot) -> DeviceProblem | None:
        """As of `Devices`. Raises Unsupported where it is not known which phases end when."""
        if self._early_arrival is not None:
            raise self._early_arrival
        found = super().unwritten(spot)
        return _unsure(found) if found is not None and self._signals_after() else found

    def _signals_after(self) -> bool:
        """Whether warps that do not meet arrive together after what each has done: more is ordered than is seen."""
        many = self.places.count(self.places[0])
        groups = (self.events[k : k + many] for k in range(0, len(self.events) if many > WARPS else 0, many))
        return any(
            any(event.semaphore is not None and event.kind != "phase" for event in together)
            and any(len(events) > 1 for events in apart)
            for together, *apart in groups
        )

    def look(self) -> None:
        """As of `Devices`; arrays in global memory are a memory apart, of which nothing else is asked."""
        super().look()
        self.apart = {key[1][1]: self.memory.pop(key) for key in [*self.memory] if key[1][1] in self.arrays}

    def woken_by(self, key: Key, device: int) -> Iterable[int]:
        """All other threads: a barrier is one for them."""
        return (n for n in range(len(self.events)) if n != device)

    def run(
        self, held: frozenset[tuple[str, int, int]], partly: bool = False
    ) -> tuple[tuple[int, ...], dict[Key, int]]:
        """As of `Devices`; where an MMA is held back that has not ended ("mma"), so are all arrivals behind it."""
        behind = [self._arrivals_behind(d, at) for kind, d, at in held if kind == "mma"]
        return super().run(frozenset(end for end in held if end[0] != "mma").union(*behind), partly)

    def _arrivals_behind(self, device: int, at: int) -> frozenset[tuple[str, int, int]]:
        """The arrivals that come only when something on tensor memory has ended: its thread's, and those of MMAs after.

        These have to use what it has written.
        """
        if (device, at) not in self._behind:
            own = {("sent", device, k) for k in self._arrives[device] if k > at}
            event = self.events[device][at]
            first = [TouchedTime(event, piece, ("at", device, at)) for piece in event.pieces if piece.writes]
            for other, arrivals in enumerate(self._arrives):
                mmas = [e for e in self.events[other] if e.kind == "use" and e.queue == TENSOR and other != device]
                for mma in mmas if arrivals and first else []:
                    spans = [TouchedTime(mma, piece, ("at", other, mma.position)) for piece in mma.pieces]
                    if any(
                        self._pipelined(one, span)
                        and common_element(KNOWN, one.piece.region, span.piece.region) is not False
                        and self.before(one, span)
                        for one, span in product(first, spans)
                        if (one.piece.device, one.piece.memory) == (span.piece.device, span.piece.memory)
                    ):
                        own |= {("sent", other, k) for k in arrivals if k > mma.position}
                        break
            self._behind[device, at] = frozenset(own)
        return self._behind[device, at]

    def _pipelined(self, one: TouchedTime, other: TouchedTime) -> bool:
        """Whether the second is an MMA that comes after the first, a copy or an MMA, if it is begun after it.

        Those on an accumulator have to use the same part of it.
        """
        a, b = one.event, other.event
        if not a.queue == b.queue == TENSOR or b.kind != "use" or self._program(a) != self._program(b):
            return False
        if {piece.device for piece in a.pieces} != {piece.device for piece in b.pieces}:
            return False
        alike = one.piece.writes and other.piece.writes and one.piece.region == other.piece.region
        return a.kind == "start" or alike

    def reached(self, end: tuple[str, int, int]) -> tuple[int, ...]:
        """How far other threads may come before something has ended: they see of a thread what it signals next."""
        kind, device, position = end
        if kind == "at" and position < len(self.events[device]):
            end = kind, device, self._signals[device][position]
        return super().reached(end)

    def before(self, one: TouchedTime, other: TouchedTime) -> bool:
        """Whether the first has surely ended when the other one begins, or comes first in the order of the MMAs."""
        a, b = one.event, other.event
        if self._pipelined(one, other):
            one = replace(one, end=("at", a.device, a.position))
        if not super().before(one, other):
            return False
        by_tensor = a.device != b.device and one.piece.region.name in self._tensor
        return self._ordering is self or not by_tensor or self._ordering.before(one, other)

    def _in_order(self, one: TouchedTime, other: TouchedTime) -> bool:
        if one.piece.region.name in self.arrays and one.event.device != other.event.device:
            # what they write need not be the same
            return False
        return one.event.queue == other.event.queue == "" and super()._in_order(one, other)

    def _meeting(self, one: TouchedTime, other: TouchedTime) -> DeviceProblem | None:
        """As of `Devices`; in global memory copies come only after those of their own program."""
        found = super()._meeting(one, other)
        if found is not None or one.piece.region.name not in self.apart:
            return found
        if not (one.piece.writes or other.piece.writes):
            return None
        if common_element(KNOWN, one.piece.region, other.piece.region) is False:
            return None
        for first, then in ((one, other), (other, one)):
            alike = first.event.kind == "start" and self._program(first.event) == self._program(then.event)
            if then.event.kind == "start" and not alike and self.before(first, then):
                a, b, name = first.event, then.event, first.piece.region.name
                what = problems.NO_PROXY_FENCE(self._does(then), name, self._does(first), _line(a.spot))
                hint = problems.LOOK_AT_LINE(_line(b.spot))
                return _unsure(self._problem("meets", what, hint, name, b, other=a.device, to=a))
        return None

    def _program(self, event: Event) -> Place:
        """Where in the grid the program of an event is."""
        (kernel,) = self.kernels
        place = self.places[event.device]
        return tuple(n for name, n in zip(kernel.grid_names, place, strict=True) if name != kernel.threads)

    def in_global(self, name: str, one: Spot, other: Spot) -> Iterator[DeviceProblem]:
        """What goes wrong where an effect of one thread and one of another touch an array in global memory."""
        if self._early_arrival is not None:
            raise self._early_arrival
        spans = self.apart.get(name, [])
        own, others = ([span for span in spans if span.event.spot is spot] for spot in (one, other))
        spend(1 + len(own) * len(others) // PER_STEP)
        for a, b in combinations(own, 2) if one is other else product(own, others):
            problem = self._meeting(a, b) if a.event.device != b.event.device else None
            if problem is not None:
                yield _unsure(problem) if self._signals_after() else problem

    def _does(self, span: TouchedTime) -> str:
        loops, turns = span.event.spot.loops, span.event.turns
        warp = next((f", warp {turn}" for loop, turn in zip(loops, turns, strict=False) if loop.warps), "")
        return f"{self.name(span.event.device)}{warp} {span.piece.does}"

    # questions

    def problems(self) -> Iterator[DeviceProblem]:
        """All that goes wrong between threads, and on each of them with its copies."""
        if self._early_arrival is not None:
            raise self._early_arrival
        stuck = self._stuck()
        yield from stuck
        more = map(_unsure, self._others(not stuck)) if self._signals_after() else self._others(not stuck)
        yield from more

    def _others(self, ends: bool) -> Iterator[DeviceProblem]:
        """What goes wrong beside waits that never end. ends: whether there are none."""
        if ends:
            yield from self._unseen()
            yield from self._unended()
            yield from self._left_over()
        for problem in self._meetings([*self.memory.values(), *self.apart.values()]):
            yield problem
            if problem.sure:
                break
        yield from self._uncommitted()

    def _met(self, one: TouchedTime, other: TouchedTime, met: object) -> DeviceProblem | None:
        freed = [span for span in (one, other) if span.piece.does == _FREES]
        if freed:
            # which scope gets the memory next, and what it does there, is not known
            what, event = problems.SCOPE_ENDED(one.piece.region.name), freed[0].event
            ended = self._problem("own", what, problems.LOOK_AT_LINE(_line(event.spot)), one.piece.region.name, event)
            return replace(ended, sure=False)
        if any(super(Warpgroups, self).before(*pair) for pair in ((one, other), (other, one))):
            out = self._out_of_tensor_order(one, other, met)
            return replace(out, sure=out.sure and not self._is_of_one(one.event, other.event))
        found = super()._met(one, other, met)
        if found is not None and self._is_of_one(one.event, other.event):
            # what warps do together one of them does after what it has done itself
            return replace(found, kind="own", sure=False)
        started = [span for span in (one, other) if span.event.kind != "touch"]
        if found is None or not started:
            return found
        alike = all(span.event.kind == "use" for span in started)
        if alike and one.event.device == other.event.device and one.event.queue == other.event.queue in _TENSOR_QUEUES:
            # two MMAs of one thread that do not use one accumulator alike, or two stores: PTX says nothing
            return replace(found, kind="own", sure=False)
        # JAX lets `delay_release` rest on an MMA having ended when the next one starts, and PTX does not promise it
        followed = any(map(self._is_followed, started))
        return replace(found, kind="own", sure=found.sure and not followed)

    def _is_followed(self, span: TouchedTime) -> bool:
        """Whether another MMA was started before one was waited for; who touches the sum of one has no such excuse."""
        until = (event.kind for event in self._until_waited(span) if event.queue == MMAS)
        mma = span.event.queue == MMAS and span.piece.region.name not in self._sums
        # its own group ends first
        return mma and [*until].count("close") > 1

    def _out_of_tensor_order(self, one: TouchedTime, other: TouchedTime, met: object) -> DeviceProblem:
        """What only barriers order that do not order tensor memory."""
        a, b = one.event, other.event
        name, element = one.piece.region.name, met if isinstance(met, tuple) else ()
        shown = "" if element == () else f"element {element} of "
        what = problems.TENSOR_ORDER(self._does(one), shown, name, self._does(other), _line(b.spot))
        hint = problems.LOOK_AT_TENSOR_ORDER()
        found = self._problem("own", what, hint, name, a, element=element, other=b.device, to=b)
        # JAX's own tests order what two programs do there by barriers of their cluster that do not say so
        by_cluster = self._by_clusters.before(one, other) or self._by_clusters.before(other, one)
        sure = one.piece.sure and other.piece.sure and isinstance(met, tuple) and not by_cluster
        return found if sure else replace(found, what=f"perhaps {what}", sure=False)

    @cached_property
    def _by_clusters(self) -> Warpgroups:
        """The same threads, of which all barriers of a cluster order tensor memory."""
        (kernel,) = self.kernels
        orders = frozenset(r.name for r in kernel.body.references if r.orders or r.across)
        return Warpgroups(kernel, self.places, self._by_tensor(orders), plain=True)

    def _until_waited(self, span: TouchedTime) -> Sequence[Event]:
        return self.events[span.event.device][span.event.position + 1 : span.end[2]]

    def _stuck(self) -> list[DeviceProblem]:
        for device, events in enumerate(self.events):
            if self.end[device] == len(events):
                continue
            event = events[self.end[device]]
            assert event.semaphore is not None
            _, _, name, at = event.semaphore
            if name == _MEET:
                # another warp never comes
                continue
            wanted, arrived = (n // self._parts for n in (event.amount, self.counts.get(event.semaphore, 0)))
            what = problems.NEVER_ARRIVES(self.name(device), wanted, slot_text(name, at), arrived)
            hint = problems.LOOK_AT_COPIES_IN(slot_text(name, at))
            return [self._problem("never", what, hint, name, event)]
        return []

    def _unseen(self) -> Iterator[DeviceProblem]:
        """Phases that end while a thread has still to see the one before."""
        for device, events in enumerate(self.events):
            for event in events:
                if event.kind != "phase" or event.by_name:
                    continue
                key = event.semaphore
                assert key is not None
                _, counts = self.run(frozenset((("at", device, event.position),)))
                if counts.get(key, 0) >= event.amount + self._arrivals[key[2]]:
                    name, at = key[2:]
                    many, wanted = counts[key] // self._parts, event.amount // self._parts
                    what = problems.PHASE_UNSEEN(many, slot_text(name, at), self.name(device), wanted)
                    hint = problems.LOOK_AT_PHASE(slot_text(name, at), self.name(device))
                    yield self._problem("phase", what, hint, name, event)
                    return

    def _unended(self) -> Iterator[DeviceProblem]:
        """Copies, and MMAs, that nothing has waited for when the threads have ended."""
        for spans in self.memory.values():
            for span in (s for s in spans if not s.piece.aside):
                kind, device, position = span.end
                if kind == "at" and position < len(self.events[device]):
                    continue
                if span.event.queue in (TENSOR_LOADS, TENSOR_STORES):
                    # they end by themselves, and what nobody reads needs no commit
                    continue
                held = self.end if kind == "at" else self.reached(span.end)
                if span.event.kind != "touch" and held == tuple(map(len, self.events)):
                    name = span.piece.region.name
                    what = problems.NOT_WAITED(self._does(span), name)
                    hint = problems.LOOK_AT_LINE(_line(span.event.spot))
                    found = self._problem("tail" if kind == "come" else "ends", what, hint, name, span.event)
                    behind = self.events[device][span.event.position :]
                    if any(
                        e.kind == "drain" and e.amount and e.queue == span.event.queue == COPIES_OUT for e in behind
                    ):
                        # the code says that it may be left: JAX's own kernels end so, and PTX does not promise it
                        what = problems.LEFT_AT_END(what)
                        found = replace(found, what=what, sure=False)
                    elif not span.piece.sure:
                        found = replace(found, what=f"perhaps {what}", sure=False)
                    yield found
                    return

    def _left_over(self) -> Iterator[DeviceProblem]:
        """Arrivals that nobody has waited for when a scope ends whose barriers another one gets."""
        (kernel,) = self.kernels
        freed = [(e, barrier) for e in kernel.body.effects if isinstance(e, Freed) for barrier in e.references]
        names = {b.name for e, b in freed if b.arrivals and not b.by_name and gets_its_place(kernel.body, e, b)}
        for key in (key for key in self.counts if key[2] in names):
            own = [event for events in self.events for event in events if event.semaphore == key]
            awaited = max((event.amount for event in own if event.kind == "phase"), default=0)
            if self.counts[key] > awaited:
                slot = slot_text(key[2], key[3])
                what, hint = problems.LEFT_ON_BARRIER(slot), problems.LOOK_AT_COPIES_IN(slot)
                yield replace(self._problem("own", what, hint, key[2], own[-1]), sure=False)
                return

    def _uncommitted(self) -> Iterator[DeviceProblem]:
        """Stores of threads to what a copy or an MMA reads, or a copy fills, without a commit between."""
        shared = {r.name for r in self.kernels[0].body.references if r.memory == "shared"}
        commits = [event for events in self.events for event in events if event.kind == "commit"]
        for spans in self.memory.values():
            own = [s for s in spans if not s.piece.aside]
            stores = [s for s in own if s.event.kind == "touch" and s.piece.writes]
            for read in (s for s in own if s.event.kind in ("start", "use")):
                if read.piece.writes and read.piece.region.name not in shared:
                    continue
                for store in stores:
                    if (
                        not self.before(store, read)
                        or common_element(KNOWN, store.piece.region, read.piece.region) is False
                    ):
                        continue
                    if any(self._between(store, event, read) for event in commits):
                        continue
                    if self._overwritten(store, read, spans):
                        continue
                    name = store.piece.region.name
                    line = store.event.spot.source.rpartition(":")[2] or "?"
                    does = "a copy" if read.event.kind == "start" else "an MMA"
                    does += " overwrites" if read.piece.writes else " reads"
                    what = problems.NOT_COMMITTED(does, name, line)
                    hint = problems.LOOK_AT_COMMIT()
                    found = self._problem("commit", what, hint, name, read.event)
                    sure = store.piece.sure and read.piece.sure
                    yield found if sure else replace(found, what=f"perhaps {what}", sure=False)
                    return

    def _between(self, store: TouchedTime, event: Event, read: TouchedTime) -> bool:
        commit = TouchedTime(event, store.piece, ("at", event.device, event.position))
        return self.before(store, commit) and self.before(commit, read)

    def _overwritten(self, store: TouchedTime, read: TouchedTime, spans: Sequence[TouchedTime]) -> bool:
        """Whether a copy has filled the same memory between a store and a read."""
        region = store.piece.region
        copies = (s for s in spans if s.event.kind == "start" and s.piece.writes and s.piece.region == region)
        return any(self.before(store, copy) and self.before(copy, read) for copy in copies)

    def _spans(self) -> Iterator[TouchedTime]:
        for device, events in enumerate(self.events):
            ends = waited(events)
            written = waited([event for event in events if not event.of_reads])
            for event in events:
                at = ("at", device, event.position)
                if event.kind == "touch":
                    yield from (TouchedTime(event, piece, at) for piece in event.pieces)
                elif event.queue == TENSOR:
                    yield from (TouchedTime(event, piece, ("mma", device, event.position)) for piece in event.pieces)
                elif event.kind in ("start", "use"):
                    for piece in event.pieces:
                        until = written if piece.writes and piece.region.name in self.arrays else ends
                        end = ("at", device, until.get(event.position, len(events)))
                        come = ("come", device, event.position)
                        yield TouchedTime(event, piece, come if event.semaphore else end)


def _unsure(problem: DeviceProblem) -> DeviceProblem:
    return replace(problem, what=f"perhaps {problem.what}", sure=False) if problem.sure else problem


def _unfenced(events: Sequence[Event], tensor: Collection[str], orders: Collection[str]) -> Iterator[Event]:
    """The arrivals and waits of a thread with what it does on tensor memory on the side of the barrier, and no fence.

    A fence is one before an arrival, or one after a wait, as is what a barrier of `orders` does itself. An arrival that
    comes when the MMAs of its thread have ended has a fence, too (PTX ISA, tcgen05.commit).
    """
    dirty = False
    waits: list[Event] = []
    for event in events:
        arrives = event.semaphore is not None and event.kind not in ("phase", "wait")
        ordered = event.semaphore is not None and event.semaphore[2] in orders
        if event.kind == "after" or (event.kind == "phase" and ordered):
            waits = []
        elif event.kind == "phase":
            waits.append(event)
        elif event.kind == "before" or (arrives and ordered):
            dirty = False
        elif arrives and event.queue != TENSOR and dirty:
            yield event
        if event.queue in _TENSOR_QUEUES or any(piece.memory[1] in tensor for piece in event.pieces):
            yield from waits
            dirty, waits = True, []


def _whole(kernel: Kernel) -> int:
    """The parts of one arrival: of a copy that programs of a cluster share each brings some."""
    return prod(int(n) for name, n in zip(kernel.grid_names, kernel.grid, strict=True) if name in _cluster(kernel))


def _cluster(kernel: Kernel) -> frozenset[str]:
    return frozenset(kernel.together) - {kernel.threads}


def _phase(kernel: Kernel, barrier: BodyReference) -> int:
    """How many parts of arrivals end a phase of a barrier."""
    extents = dict(zip(kernel.grid_names, kernel.grid, strict=True))
    along = [prod(int(extents.get(axis, 1)) for axis in group) for group in barrier.across]
    # of the programs along each the own one is in all
    return barrier.arrivals * (sum(along) - len(along) + 1) * _whole(kernel)


def _signals(events: Sequence[Event]) -> list[int]:
    """For each event the next one, or itself, that other threads see; one past the last where there is none."""
    found = [len(events)] * len(events)
    following = len(events)
    for event in reversed(events):
        if event.semaphore is not None and event.kind not in ("phase", "wait"):
            following = event.position
        found[event.position] = following
    return found


def waited(events: Sequence[Event]) -> dict[int, int]:
    """Of what is started in order, by its place: the event that waits for it, one past the last where none does.

    events: of one thread, some of them or all.
    """
    ends: dict[int, int] = {}
    open_: dict[str, list[list[int]]] = {name: [[]] for name in _IN_ORDER}
    for event in events:
        groups = open_.get(event.queue, [])
        match event.kind:
            case "start" | "use" if event.queue in open_:
                groups[-1].append(event.position)
            case "close":
                groups.append([])
            case "drain":
                # what is in no group is not waited for
                while len(groups) - 1 > event.amount:
                    for position in groups.pop(0):
                        ends.setdefault(position, event.position)
            case "used":
                for position in event.needs:
                    ends.setdefault(position, event.position)
    left = (position for groups in open_.values() for group in groups for position in group)
    return dict.fromkeys(left, events[-1].position + 1 if events else 0) | ends


def _word(fence: Committed | TensorFence) -> str:
    """The kind of its event."""
    if isinstance(fence, Committed):
        return "commit"
    return "before" if fence.before else "after"


_ELEMENT_BY_ELEMENT = frozenset(arithmetic.PRIMITIVES)


def _all_needed(value: Value, known: dict[int, frozenset[int]]) -> frozenset[int]:
    """The arrays, by identity, of which element k is needed for element k of a value, for each k.

    Where one of several is chosen, an array has to be in all of them. known: what was found of other values.
    """
    if id(value) not in known:
        name, operands = value.made or ("", ())
        operands = operands[1:] if name == "select_n" else operands
        each = [_all_needed(one, known) if one.dims == value.dims else frozenset[int]() for one in operands]
        if not each or name not in _ELEMENT_BY_ELEMENT:
            found = frozenset[int]()
        else:
            found = frozenset.intersection(*each) if name == "select_n" else frozenset.union(*each)
        known[id(value)] = found | {id(value)}
    return known[id(value)]


class ThreadTrace(Run):
    """One thread of one program: its events in order. A domain of `forward`.

    warp: of a warpgroup whose warps are threads of their own, which one; the first one also does what all do together.
    Where they do not meet, 0 is what they do together, and they are counted from 1 (`threads_of_each`).
    units: how much work it does, of what a GPU gives out.  inside: whether the turns of the loop over it are gone
    through.  arrays: in global memory, that are looked at.  touched, written: those that a warp touches by itself.
    """

    def __init__(
        self,
        kernel: Kernel,
        places: Sequence[Place],
        number: int,
        warp: int = 0,
        units: int = 0,
        inside: bool = True,
        arrays: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(kernel)
        self.number, self.place, self.warp = number, places[number], warp
        self.units, self.inside, self.arrays = units, inside, arrays
        self.touched: set[str] = set()
        self.written: set[str] = set()
        axes = [k for k, name in enumerate(kernel.grid_names) if name != kernel.threads]
        programs = [tuple(place[k] for k in axes) for place in places]
        # of each program of the cluster its first thread, which stands for it
        self._programs: dict[Place, int] = {}
        for first, program in enumerate(programs):
            self._programs.setdefault(program, first)
        self._program = programs[number]
        self._axes = {kernel.grid_names[k]: n for n, k in enumerate(axes)}
        shared = [
            k for k, e in enumerate(self.body.effects) if not isinstance(e, Freed) and any(map(_is_shared, _views(e)))
        ]
        self._last_shared = max(shared, default=-1)
        self.events: list[Event] = []
        self._in_one_place = {r.name: r for r in self.body.references if r.within is not None}
        self._phases: dict[Key, int] = {}
        # a copy out that data decide on and that nothing has waited for: its line, and the condition
        self._perhaps: tuple[str, OpenCondition] | None = None
        # of arrays that loads of tensor memory give, by identity, the position of the last load
        self._begun: dict[int, int] = {}
        # what a stored value needs is the same in each turn
        self._needed: dict[int, frozenset[int]] = {}

    def run(self) -> list[Event]:
        """The events, up to its end."""
        names: dict[str, Number] = dict(zip(self.kernel.grid_names, self.place, strict=True))
        names |= {self.body.units: self.units} if self.body.units else {}
        begin = Here(names, self.place)
        self._note("touch", Spot(-1, (), (), self.kernel.source), begin)
        forward(nested(self.body.effects), self, begin, None)
        return self.events

    # the domain

    def loop(self, nest: Nest, here: Here, state: None) -> None:
        """Goes through each turn; of warps that do something by themselves through its own."""
        if nest.loop.units and not self.inside:
            return
        if not nest.loop.warps:
            super().loop(nest, here, state)
            return
        first = self.number - self.warp
        others = [(first, 0, _MEET, (warp,)) for warp in range(1, WARPS)]
        spot = Spot(nest.first, (), nest.around, nest.loop.source)
        mine: Key = (first, 0, _MEET, (self.warp,))
        meet: Key = (first, 0, _MEET, ())
        if not self.kernel.ordered:
            # nothing holds them together
            if self.warp:
                forward(nest.parts, self, here.turn(nest.loop, self.warp - 1, {}), state)
            return
        if self.warp:
            self._note("wait", spot, here, 1, mine)
        for key in () if self.warp else others:
            self._note("signal", spot, here, 1, key)
        forward(nest.parts, self, here.turn(nest.loop, self.warp, {}), state)
        if self.warp:
            self._note("signal", spot, here, 1, meet)
        else:
            self._note("wait", spot, here, WARPS - 1, meet)

    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Notes an event, if it happens."""
        if self.warp and not _by_warps(effect):
            return
        if isinstance(effect, Freed):
            self._frees(effect, here)
            return
        if isinstance(effect, Access) and not self._looks_at(effect.view) and not _by_warps(effect):
            return
        on = self._at(here)
        held: Any = True
        for condition in effect.spot.path:
            one = on(condition)
            if one is False:
                spend(1)
                return
            held = one if isinstance(one, OpenCondition) else held
        spend(1 + on.steps // 4)
        on.steps = 0
        if _by_warps(effect):
            by_itself = {array_of(self.kernel, t.view.reference.name): t for t in touches(effect) if _in_global(t.view)}
            self.touched |= set(by_itself)
            self.written |= {name for name, touch in by_itself.items() if touch.writes}
        if isinstance(effect, Access):
            self._accesses(on, effect, here, held is True)
        elif held is not True and not _is_copy_out(effect):
            raise Unsupported(problems.THREAD_REACHES(_line(effect.spot), held))
        else:
            if held is not True:
                self._perhaps = _line(effect.spot), held
            self._orders(on, effect, here, held is True)

    def _note_used(self, access: Access, here: Here) -> None:
        """Before a store to tensor memory, notes which loads have ended: all whose elements it has to have."""
        if access.queue == TENSOR_LOADS and access.value is not None:
            self._begun[id(access.value)] = len(self.events)
        elif access.queue == TENSOR_STORES:
            needed = _all_needed(access.value, self._needed)
            needs = tuple(sorted(self._begun[one] for one in needed if one in self._begun))
            if needs:
                self._note("used", access.spot, here, needs=needs)

    def _accesses(self, on: Symbolic, access: Access, here: Here, sure: bool) -> None:
        """A load or a store, or the part of an MMA that is one, of what is looked at."""
        if not self._looks_at(access.view):
            return
        does = {"read": "reads", "write": "writes", "add": ADDS}[access.kind]
        # MMAs of a warpgroup on one accumulator come one after the other
        adds = adds_to(access) and access.queue in ("", MMAS)
        pieces = tuple(
            self._piece(on, access.view, here, access.kind != "read", does, sure and access.mask is None, adds, program)
            for program in self._along((access.across,))
        )
        self._note_used(access, here)
        self._note("use" if access.queue else "touch", access.spot, here, pieces=pieces, queue=access.queue)
        if access.queue and access.queue != MMAS:
            self._note("close", access.spot, here, queue=access.queue)

    def _looks_at(self, view: View) -> bool:
        """Whether what is done to a view is noted."""
        return not _in_global(view) or array_of(self.kernel, view.reference.name) in self.arrays

    def _frees(self, freed: Freed, here: Here) -> None:
        """A scope ends before more memory is touched, which may lie in the same place: all has to be over there."""
        pieces = tuple(
            DeviceMemory(
                self._programs[self._program],
                (0, one.name, here.turns[: len(one.fresh_in)]),
                ViewedRegion(one.name, tuple((0, extent, 1) for extent in one.dims), True),
                True,
                _FREES,
                False,
                True,
            )
            for one in self._with_those_within(freed.references)
            if one.memory in _SHARED and freed.spot.number <= self._last_shared
        )
        if pieces:
            self._note("touch", freed.spot, here, pieces=pieces)

    def _with_those_within(self, references: Sequence[BodyReference]) -> list[BodyReference]:
        """Memory, and the arrays that are in it."""
        names = {one.name for one in references}
        return [*references, *(r for r in self._in_one_place.values() if r.within and r.within[0] in names)]

    def _orders(self, on: Symbolic, effect: Effect, here: Here, sure: bool = True) -> None:
        match effect:
            case StartedCopy():
                self._copies(on, effect, here, sure)
            case StartedUse(views, semaphore, spot, across):
                pieces = tuple(
                    self._piece(on, view, here, False, "multiplies", True, program=program)
                    for view in views
                    for program in self._along((across,))
                )
                self._note("use", spot, here, pieces=pieces, queue=semaphore.reference.name)
                self._note("close", spot, here, queue=semaphore.reference.name)
            case Wait(_, semaphore, spot, left, of_reads) if semaphore.reference.in_order:
                if self._perhaps and semaphore.reference.name == COPIES_OUT:
                    if left:
                        # how many of the last groups are left depends on which there are
                        raise Unsupported(problems.THREAD_REACHES(*self._perhaps))
                    self._perhaps = None
                self._note("drain", spot, here, left or 0, queue=semaphore.reference.name, of_reads=of_reads)
            case Wait(_, semaphore, spot) if semaphore.reference.by_name:
                key = self._key(on, semaphore)
                amount = self._phases[key] * _phase(self.kernel, semaphore.reference)
                self._note("phase", spot, here, amount, key, by_name=True)
            case Signal(semaphore, amount, spot) if semaphore.reference.by_name and amount is not None:
                self._arrives_by_name(on, semaphore, amount, here, spot)
            case Wait(_, semaphore, spot):
                key = self._key(on, semaphore)
                self._phases[key] = self._phases.get(key, 0) + _phase(self.kernel, semaphore.reference)
                self._note("phase", spot, here, self._phases[key], key)
            case Signal(semaphore, _, spot) if semaphore.reference.in_order:
                self._note("close", spot, here, queue=semaphore.reference.name)
            case Signal(semaphore, _, spot, after=after) if after:
                self._arrives(on, effect, here)
            case Signal(semaphore, amount, spot, wait) if not wait and amount is not None:
                times = self._number(on(amount), problems.ARRIVALS()) * _whole(self.kernel)
                for program in self._along(semaphore.reference.across):
                    self._note("signal", spot, here, times, self._key(on, semaphore, program))
            case Committed(spot) | TensorFence(spot):
                self._note(_word(effect), spot, here)
            case _:
                raise Unsupported(problems.BETWEEN_THREADS(_line(effect.spot)))

    def _copies(self, on: Symbolic, copy: StartedCopy, here: Here, sure: bool) -> None:
        """A copy that starts. One to tensor memory is done for all programs at once."""
        queue = copy.semaphore.reference.name if copy.semaphore.reference.in_order else ""
        pieces = [
            self._piece(on, view, here, writes, does, sure and copy.mask is None, program=program)
            for view, writes, does in ((copy.source, False, "copies from"), (copy.target, True, "copies into"))
            if self._looks_at(view)
            for program in (self._along((copy.across,)) if queue else [None])
        ]
        if not queue:
            self._fills(on, copy, here, [piece for piece in pieces if not piece.writes])
            return
        self._note("start", copy.spot, here, pieces=tuple(pieces), queue=queue)
        if copy.grouped:
            self._note("close", copy.spot, here, queue=queue)

    def _arrives_by_name(self, on: Symbolic, barrier: View, amount: Term, here: Here, spot: Spot) -> None:
        """An arrival on a named barrier, which a run may leave out. Its phase is that of its number."""
        key = self._key(on, barrier)
        self._phases[key] = self._phases.get(key, 0) + 1
        times = self._number(on(amount), problems.ARRIVALS()) * _whole(self.kernel)
        self._note("start", spot, here, times, key, by_name=True)

    def _arrives(self, on: Symbolic, signal: Signal, here: Here) -> None:
        """An arrival that comes when what the thread has begun on tensor memory has ended."""
        keys = [self._key(on, signal.semaphore, program) for program in self._along((signal.across,))]
        if len(keys) > 2:
            raise Unsupported(problems.BETWEEN_THREADS(_line(signal.spot)))
        self._note(
            "start",
            signal.spot,
            here,
            _whole(self.kernel),
            keys[0],
            queue=signal.after,
            sent=keys[1] if keys[1:] else None,
        )

    def _fills(self, on: Symbolic, copy: StartedCopy, here: Here, read: Sequence[DeviceMemory]) -> None:
        """A copy into shared memory: into that of all programs along some axes each of them brings its share.

        read: of its source, as far as that is looked at.
        """
        sharing = self._along((copy.across,))
        if copy.given:
            self._asks_for_work(on, copy, here)
            return
        if copy.led:
            piece = self._piece(on, copy.target, here, True, "copies into", copy.mask is None)
            share, key = _whole(self.kernel) // len(sharing), self._key(on, copy.semaphore, sharing[0])
            self._note("start", copy.spot, here, share, key, (piece, *read))
            return
        for program in sharing:
            # shares of one copy are parts of their own: two of them never meet
            shared = len(sharing) > 1
            piece = self._piece(on, copy.target, here, True, "copies into", copy.mask is None, shared, program)
            share, key = _whole(self.kernel) // len(sharing), self._key(on, copy.semaphore, program)
            self._note("start", copy.spot, here, share, key, (piece, *read))

    def _asks_for_work(self, on: Symbolic, copy: StartedCopy, here: Here) -> None:
        """What comes into the memory of all programs of a cluster, for which the first one has asked.

        Each also arrives itself, so that an arrival is its own and that of the answer together.
        """
        whole = _whole(self.kernel)
        if whole > 1:
            self._note("signal", copy.spot, here, whole - 1, self._key(on, copy.semaphore))
        programs = list(self._programs.values())
        for program in programs if self._programs[self._program] == programs[0] else ():
            piece = self._piece(on, copy.target, here, True, "is given", True, program=program)
            self._note("start", copy.spot, here, 1, self._key(on, copy.semaphore, program), (piece,))

    def _along(self, groups: Sequence[Sequence[str]]) -> list[int]:
        """The programs of the cluster that differ along the axes of one group alone, its own among them."""
        apart = [{self._axes[axis] for axis in group if axis in self._axes} for group in (*groups, ())]

        def reached(program: Sequence[int]) -> bool:
            differs = {k for k, (a, b) in enumerate(zip(program, self._program, strict=True)) if a != b}
            return any(differs <= along for along in apart)

        return [first for program, first in self._programs.items() if reached(program)]

    # parts of events

    def _note(
        self,
        kind: str,
        spot: Spot,
        here: Here,
        amount: int = 0,
        semaphore: Key | None = None,
        pieces: tuple[DeviceMemory, ...] = (),
        queue: str = "",
        sent: Key | None = None,
        by_name: bool = False,
        of_reads: bool = False,
        needs: Place = (),
    ) -> None:
        place, turn = len(self.events), tuple(n for n in here.turns if type(n) is int)
        pieces += tuple(other for piece in pieces for other in self._aside(piece))
        event = Event(
            kind,
            self.number,
            0,
            place,
            spot,
            self.place,
            turn,
            amount,
            False,
            semaphore,
            sent,
            pieces,
            queue,
            by_name,
            of_reads,
            needs,
        )
        self.events.append(event)
        if len(self.events) > MOST_EVENTS:
            raise Unsupported(problems.EVENTS_ONE_THREAD(MOST_EVENTS))

    def _piece(
        self,
        on: Symbolic,
        view: View,
        here: Here,
        writes: bool,
        does: str,
        sure: bool,
        adds: bool = False,
        program: int | None = None,
    ) -> DeviceMemory:
        reference = view.reference
        region = region_of(self.kernel, on, view)
        known = region.exact and all(type(n) is int for run in region.runs for n in run[:2])
        if not known:
            # which part is not known: all of it may be
            region = ViewedRegion(region.name, tuple((0, extent, 1) for extent in reference.dims), False)
        if _in_global(view):
            name = array_of(self.kernel, region.name)
            region = ViewedRegion(name, region.runs, region.exact)
            return DeviceMemory(0, (0, name, ()), region, writes, does, sure and known)
        memory = (0, region.name, here.turns[: len(reference.fresh_in)])
        # accumulators, and what else is no shared memory, are a thread's own
        own = self._programs[self._program] if program is None else program
        owner = own if reference.memory in _SHARED else self.number
        return DeviceMemory(owner, memory, region, writes, does, sure and known, adds)

    def _aside(self, piece: DeviceMemory) -> Iterator[DeviceMemory]:
        """What is touched of other arrays that have the same place."""
        reference = self._in_one_place.get(piece.memory[1])
        if reference is None:
            return
        for region, sure in in_others(reference, piece.region, list(self._in_one_place.values())):
            memory = (piece.memory[0], region.name, *piece.memory[2:])
            yield replace(piece, memory=memory, region=region, sure=piece.sure and sure, adds=False, aside=True)

    def _key(self, on: Symbolic, view: View, program: int | None = None) -> Key:
        region = region_of(self.kernel, on, view)
        name = view.reference.name
        if not view.reference.arrivals or not region.exact or any(size != 1 for _, size, _ in region.runs):
            raise Unsupported(problems.BARRIERS_MEANT(name))
        at = tuple(self._number(a, problems.BARRIER_MEANT(name)) for a, _, _ in region.runs)
        return self._programs[self._program] if program is None else program, 0, name, at


_Run = TypeVar("_Run", bound=Run)


class _Stores(Run):
    """One thread: the boxes of an output that it surely stores to, or copies into."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(kernel)
        self.name = name
        self.boxes: list[Box] = []

    def loop(self, nest: Nest, here: Here, state: None) -> None:
        """Goes through each turn, where it stores at all: of others it need not be known how often they run."""
        if any(view is not None and view.reference.name == self.name for view in map(writes_to, nest.effects)):
            super().loop(nest, here, state)

    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Notes what is stored, where it surely happens."""
        view = writes_to(effect)
        if view is None or view.reference.name != self.name or getattr(effect, "mask", None) is not None:
            return
        on = self._at(here)
        if all(on(condition) is True for condition in effect.spot.path):
            box = box_of(region_of(self.kernel, on, view))
            self.boxes += [] if box is None else [box]
        spend(1 + on.steps // 4)
        on.steps = 0


def all_stored(kernel: Kernel, reference: BodyReference) -> bool:
    """Whether the programs of a GPU, run one by one, store to every element of an output.

    Raises Unsupported where it is not known what they do, or where they are too many.
    """
    boxes: list[Box] = []
    for stores in _of_each_thread(kernel, lambda: _Stores(kernel, reference.name)):
        boxes += stores.boxes
        if len(boxes) > MOST_EVENTS:
            raise Unsupported(problems.STORES(MOST_EVENTS, reference.name))
    return covered(_all_of(reference), boxes)


def _of_each_thread(kernel: Kernel, begin: Callable[[], _Run]) -> Iterator[_Run]:
    """A run of each thread of a GPU's kernel, one by one. Raises Unsupported where they are too many.

    Of work that a GPU gives out each is done once, whoever does it.
    """
    if any(type(extent) is not int for extent in kernel.grid) or prod(map(int, kernel.grid)) > MOST_STORING:
        raise Unsupported(problems.MOST_PROGRAMS(MOST_STORING))
    parts = nested(kernel.body.effects)
    units: dict[str, Number] = {kernel.body.units: 1} if kernel.body.units else {}
    for place in product(*(range(int(extent)) for extent in kernel.grid)):
        run = begin()
        forward(parts, run, Here({**dict(zip(kernel.grid_names, place, strict=True)), **units}, place), None)
        yield run


class _TouchedBoxes(Run):
    """One thread: what it may touch of some arrays, as boxes, and whether it writes there."""

    def __init__(self, kernel: Kernel, names: Collection[str]) -> None:
        super().__init__(kernel)
        self.names = names
        self.boxes: dict[str, set[tuple[Box, bool]]] = {name: set() for name in names}

    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Notes what it touches, unless it surely does not happen."""
        own = [touch for touch in touches(effect) if touch.view.reference.name in self.names]
        if not own:
            return
        on = self._at(here)
        if all(on(condition) is not False for condition in effect.spot.path):
            for touch in own:
                # of work that is given out what is written depends on no turn (`control.check_units`)
                known = touch.writes or not self.body.units
                box = self._hull(on, touch.view) if known else _all_of(touch.view.reference)
                self.boxes[touch.view.reference.name].add((box, touch.writes))
        spend(1 + on.steps // 4)
        on.steps = 0

    def _hull(self, on: Symbolic, view: View) -> Box:
        """A box of all elements that a view shows, as far as there are any; all where it is not known which."""
        dims, region = view.reference.dims, region_of(self.kernel, on, view)
        around = hull_of(region) if region.exact else None
        if around is None:
            return _all_of(view.reference)
        return tuple((max(low, 0), min(high, extent)) for (low, high), extent in zip(around, dims, strict=True))


def _all_of(reference: BodyReference) -> Box:
    return tuple((0, extent) for extent in reference.dims)


def kept_apart(kernel: Kernel, names: Collection[str]) -> frozenset[str]:
    """Of some arrays those of which no two threads of a GPU touch one element, one of them writing, run one by one.

    Raises Unsupported where it is not known what they do, or where they are too many. No two of what a GPU gives out
    may meet.
    """
    touched: dict[str, list[tuple[Box, bool, int]]] = {name: [] for name in names}
    for number, run in enumerate(_of_each_thread(kernel, lambda: _TouchedBoxes(kernel, names))):
        for name, boxes in run.boxes.items():
            touched[name] += [(box, writes, number) for box, writes in boxes]
        if sum(map(len, touched.values())) > MOST_EVENTS:
            raise Unsupported(problems.EVENTS_ONE_THREAD(MOST_EVENTS))
    return frozenset(name for name, boxes in touched.items() if not _meet(boxes))


def _meet(boxes: Iterable[tuple[Box, bool, int]]) -> bool:
    """Whether two threads have an element in common of which one writes it."""
    open_: list[tuple[Box, bool, int]] = []
    for box, writes, number in sorted(boxes):
        first = box[0][0] if box else 0
        open_ = [one for one in open_ if not box or one[0][0][1] > first]
        spend(1 + len(open_) // 8)
        others = (other for other, written, who in open_ if who != number and (writes or written))
        if any(all(a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True)) for other in others):
            return True
        open_.append((box, writes, number))
    return False


def _line(spot: Spot) -> str:
    return spot.source.rpartition(":")[2] or "?"
