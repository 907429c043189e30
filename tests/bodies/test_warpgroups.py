"""Threads of a GPU's program against all of their interleavings, on programs drawn by chance."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest

from layoutproof.bodies.effects import TENSOR, Spot
from layoutproof.bodies.moments import DeviceMemory, Event, Key
from layoutproof.bodies.regions import ViewedRegion
from layoutproof.bodies.warpgroups import Warpgroups

SPOT = Spot(0, (), (), "kernel.py:1")
BARRIERS: dict[str, int] = {"full": 1, "empty": 1, "both": 2}
"""Arrivals of a phase."""


def memory(slot: int, writes: bool) -> DeviceMemory:
    region = ViewedRegion("slots", ((slot, 1, 1),), True)
    return DeviceMemory(0, (0, "slots"), region, writes, "writes" if writes else "reads")


def drawn(seed: int) -> list[list[Event]]:
    """Two or three threads with up to six steps each, after the first one that nothing comes before."""
    draw = random.Random(seed)
    threads = []
    for thread in range(draw.choice((2, 2, 3))):
        events = [Event("touch", thread, 0, 0, SPOT, (thread,), ())]
        waited: dict[Key, int] = {}
        for place in range(1, draw.randint(2, 6)):
            name = draw.choice([*BARRIERS])
            key: Key = (0, 0, name, ())
            more = ("use", "copy", "arrive") if seed % 2 else ()
            kind = draw.choice(("touch", "touch", "signal", "phase", "start", *more))
            made: dict[str, Any] = {}
            if kind == "touch":
                made = {"pieces": (memory(draw.randrange(2), draw.random() < 0.5),)}
            elif kind == "phase":
                waited[key] = waited.get(key, 0) + BARRIERS[name]
                made = {"amount": waited[key], "semaphore": key}
            elif kind == "use":
                made = {"pieces": (memory(draw.randrange(2), False),), "queue": TENSOR}
            elif kind == "copy":
                made = {"pieces": (memory(draw.randrange(2), True),), "queue": TENSOR}
            else:
                pieces = (memory(draw.randrange(2), True),) if kind == "start" else ()
                queue = TENSOR if kind == "arrive" else ""
                made = {"amount": 1, "semaphore": key, "pieces": pieces, "queue": queue}
            kind = "start" if kind in ("arrive", "copy") else kind
            events.append(Event(kind, thread, 0, place, SPOT, (thread,), (), **made))
        threads.append(events)
    return threads


LINKS = {f"link {k}": 1 for k in range(1, 6)}


def chained(seed: int) -> list[list[Event]]:
    """Touches of one slot, copies to it and MMAs on it by threads in turn, each but a few said to the next one.

    By a signal, or by an arrival behind what the thread has begun on tensor memory.
    """
    draw = random.Random(seed)
    threads: list[list[Event]] = [[Event("touch", k, 0, 0, SPOT, (k,), ())] for k in range(3)]

    def note(thread: int, kind: str, **made: Any) -> None:
        threads[thread].append(Event(kind, thread, 0, len(threads[thread]), SPOT, (thread,), (), **made))

    order = [draw.randrange(3) for _ in range(draw.randint(2, len(LINKS)))]
    for k, thread in enumerate(order):
        if k and draw.random() < 0.9:
            key: Key = (0, 0, f"link {k}", ())
            by_queue = draw.random() < 0.5
            note(order[k - 1], "start" if by_queue else "signal", amount=1, semaphore=key, queue=TENSOR * by_queue)
            note(thread, "phase", amount=1, semaphore=key)
        kind = draw.choice(("touch", "start", "use"))
        pieces = (memory(0, kind == "start" or draw.random() < 0.3 * (kind == "touch")),)
        note(thread, kind, pieces=pieces, queue="" if kind == "touch" else TENSOR)
    return threads


State = tuple[tuple[int, ...], frozenset[tuple[int, int]], tuple[tuple[Key, int], ...]]


def reachable(threads: Sequence[Sequence[Event]]) -> Iterator[tuple[State, int]]:
    """All states of all interleavings, each with how many steps lead on. A copy ends at any time after its start.

    So does an MMA on tensor memory, but not before a copy that brings what it reads. An arrival behind them comes when
    those before it have ended.
    """
    start: State = ((0,) * len(threads), frozenset(), ())
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        positions, flying, counts = state
        count, following = dict(counts), list[State]()
        for thread, position in enumerate(positions):
            event = threads[thread][position] if position < len(threads[thread]) else None
            if event is None or (event.kind == "phase" and count.get(event.semaphore, 0) < event.amount):  # type: ignore[arg-type]
                continue
            moved = (*positions[:thread], position + 1, *positions[thread + 1 :])
            more = {event.semaphore: count.get(event.semaphore, 0) + 1} if event.kind == "signal" else {}  # type: ignore[arg-type]
            up = flying | {(thread, position)} if event.kind in ("start", "use") else flying
            following.append((moved, up, tuple(sorted({**count, **more}.items()))))  # type: ignore[dict-item, type-var]
        for thread, position in flying:
            event = threads[thread][position]
            own = [threads[thread][k] for other, k in flying if other == thread and k < position]
            if event.queue and event.semaphore and any(one.queue and not one.semaphore for one in own):
                continue
            if any(follows(threads[other][k], event) for other, k in flying):
                continue
            more = {event.semaphore: count.get(event.semaphore, 0) + 1} if event.semaphore else {}
            following.append((positions, flying - {(thread, position)}, tuple(sorted({**count, **more}.items()))))
        yield state, len(following)
        todo += [state for state in dict.fromkeys(following) if state not in seen]
        seen.update(following)


def follows(one: Event, other: Event) -> bool:
    """Whether the second is an MMA that reads what the first copies to tensor memory: it comes after it."""
    return one.kind == "start" and one.queue == TENSOR and other.kind == "use" and meet(one, other)


def meet(one: Event, other: Event) -> bool:
    return any((a.writes or b.writes) and a.region.runs == b.region.runs for a in one.pieces for b in other.pieces)


def all_of_it(threads: Sequence[Sequence[Event]], arrivals: Mapping[str, int] = BARRIERS) -> set[str]:
    """What goes wrong in some interleaving. arrivals: of each barrier."""
    found = set[str]()
    for (positions, flying, counts), following in reachable(threads):
        ready = [events[k] for events, k in zip(threads, positions, strict=True) if k < len(events)]
        moving = [threads[thread][k] for thread, k in flying]
        if not following and ready:
            found.add("never")
        begins = [event for event in ready if event.kind in ("touch", "start", "use")]
        for one, other in combinations([*moving, *begins], 2):
            # an MMA that has begun before the copy does not come after it, and may run when the copy begins
            late = one in moving and other in begins and follows(other, one)
            if meet(one, other) and (late or not (follows(one, other) or follows(other, one))):
                found.add("meets")
        for events, k in zip(threads, positions, strict=True):
            for key, amount in ((e.semaphore, e.amount) for e in events[k:] if e.kind == "phase"):
                assert key is not None
                if dict(counts).get(key, 0) >= amount + arrivals[key[2]]:
                    found.add("phase")
    return found


def program_of(
    threads: list[list[Event]], arrivals: Mapping[str, int], places: Sequence[int] | None = None, ordered: bool = True
) -> Warpgroups:
    """The threads as those of one program. arrivals: of each barrier.  places: the warpgroup of each, None for its own.

    ordered: whether JAX's barriers order what threads do.
    """
    of = range(len(threads)) if places is None else places
    kind = {"across": (), "memory": "semaphore", "orders": False}
    kernel: Any = SimpleNamespace(
        grid=(len(set(of)),),
        grid_names=("wg",),
        together=("wg",),
        threads="wg",
        ordered=ordered,
        source="kernel.py:1",
        body=SimpleNamespace(
            references=[SimpleNamespace(name=name, arrivals=count, **kind) for name, count in arrivals.items()],
            effects=(),
            asks=frozenset({"wg"}),
        ),
    )
    return Warpgroups(kernel, [(k,) for k in of], threads)


@pytest.mark.parametrize("seed", range(300))
def test_what_threads_do_is_what_all_interleavings_show(seed: int) -> None:
    threads = drawn(seed)
    program = program_of(threads, BARRIERS)
    kinds = {"meets" if problem.kind == "own" else problem.kind for problem in program.problems() if problem.sure}
    expected = all_of_it(threads)
    if "never" in expected:
        # of threads that never end no phase is asked for
        expected.discard("phase")
    assert kinds - {"tail", "ends", "commit"} == expected


@pytest.mark.parametrize("seed", range(300))
def test_what_one_thread_hands_to_the_next_is_ordered_as_all_interleavings_show(seed: int) -> None:
    threads = chained(seed)
    problems = [p for p in program_of(threads, LINKS).problems() if p.kind in ("own", "meets")]
    assert bool(problems) is ("meets" in all_of_it(threads, LINKS))
