"""Named barriers of the hardware against all interleavings of threads drawn by chance.

A barrier counts arrivals up to its number, and begins anew: who waits does so for the phase of its own arrival.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from layoutproof.bodies.moments import Event, Key
from layoutproof.core.errors import Unsupported
from tests.bodies.test_warpgroups import SPOT, meet, memory, program_of

COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
"""Arrivals of warps that end a phase."""


def drawn(seed: int) -> list[list[Event]]:
    """Two or three threads; in half of them each turn has the same barriers, so that many are right.

    Of a third of them some threads have two warps, each of which arrives and goes on by itself.
    """
    draw = random.Random(seed)
    many = draw.choice((2, 3)) if seed % 3 else 2
    warps = [1 if seed % 3 else draw.choice((1, 2)) for _ in range(many)]
    name = next(name for name, count in COUNTS.items() if count == sum(warps))
    threads = []
    for thread in range(many):
        events = [Event("touch", thread, 0, 0, SPOT, (thread,), ())]
        arrived: dict[Key, int] = {}

        def note(kind: str, events: list[Event] = events, thread: int = thread, **made: Any) -> None:
            events.append(Event(kind, thread, 0, len(events), SPOT, (thread,), (), **made))

        def barrier(
            sync: bool, which: str, arrived: dict[Key, int] = arrived, note: Any = note, thread: int = thread
        ) -> None:
            key: Key = (0, 0, which, (draw.choice((8, 8, 8, 9)) if seed % 2 else 8,))
            arrived[key] = arrived.get(key, 0) + 1
            note("start", amount=warps[thread], semaphore=key, by_name=True)
            if sync:
                note("phase", amount=arrived[key] * COUNTS[which], semaphore=key, by_name=True)

        for _ in range(draw.randint(1, 2) if seed % 2 else 2):
            for _ in range(draw.randint(0, 2)):
                note("touch", pieces=(memory(draw.randrange(2), draw.random() < 0.5),))
            barrier(draw.random() < 0.6, name if seed % 4 else draw.choice([*COUNTS]))
        if draw.random() < 0.5:
            note("touch", pieces=(memory(draw.randrange(2), draw.random() < 0.5),))
        threads.append(events)
    return threads


State = tuple[tuple[int, ...], tuple[tuple[Key, int, int], ...], tuple[int, ...]]


def by_warps(threads: Sequence[Sequence[Event]]) -> list[Sequence[Event]]:
    """Each thread as often as it has warps."""
    amounts = ([event.amount for event in events if event.kind == "start"] for events in threads)
    return [events for events, own in zip(threads, amounts, strict=True) for _ in range(max(own, default=1))]


def reachable(threads: Sequence[Sequence[Event]]) -> Iterator[tuple[State, int]]:
    """All states, each with how many steps lead on: places, of each barrier its phase and arrivals, awaited phases."""
    start: State = ((0,) * len(threads), (), (0,) * len(threads))
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        positions, barriers, awaited = state
        now = {key: (phase, count) for key, phase, count in barriers}
        following = list[State]()
        for thread, position in enumerate(positions):
            event = threads[thread][position] if position < len(threads[thread]) else None
            if event is None:
                continue
            after, waits = dict(now), list(awaited)
            if event.semaphore is not None:
                phase, count = now.get(event.semaphore, (0, 0))
                if event.kind == "phase" and phase == awaited[thread]:
                    continue
                if event.kind == "start":
                    waits[thread] = phase
                    full = count + 1 == COUNTS[event.semaphore[2]]
                    after[event.semaphore] = (phase + 1, 0) if full else (phase, count + 1)
            moved = (*positions[:thread], position + 1, *positions[thread + 1 :])
            following.append((moved, tuple(sorted((k, *v) for k, v in after.items())), tuple(waits)))
        yield state, len(following)
        todo += [state for state in dict.fromkeys(following) if state not in seen]
        seen.update(following)


def shown(threads: Sequence[Sequence[Event]]) -> set[str]:
    """What goes wrong in some interleaving."""
    found = set[str]()
    warps = by_warps(threads)
    for (positions, _, _), following in reachable(warps):
        ready = [events[k] for events, k in zip(warps, positions, strict=True) if k < len(events)]
        if not following and ready:
            found.add("never")
        pairs = ((one, other) for k, one in enumerate(ready) for other in ready[k + 1 :])
        # what warps of one thread do to each other is not asked here
        if any(one.device != other.device and meet(one, other) for one, other in pairs):
            found.add("meets")
    return found


def told(threads: list[list[Event]]) -> tuple[set[str], bool]:
    """What is said to go wrong, and whether all is known; only what is refused is not."""
    try:
        program = program_of(threads, COUNTS)
        return {problem.kind for problem in program.problems() if problem.sure}, program._early_arrival is None
    except Unsupported:
        return set(), False


@pytest.mark.parametrize("seed", range(400))
def test_what_named_barriers_order_is_what_all_interleavings_show(seed: int) -> None:
    threads = drawn(seed)
    kinds, known = told(threads)
    expected = shown(threads)
    assert kinds <= expected
    assert not known or kinds == expected


def test_what_is_drawn_is_known_often_and_goes_wrong_in_every_way() -> None:
    answers = [told(drawn(seed)) for seed in range(200)]
    assert sum(known for _, known in answers) > 50
    right = sum(known and not kinds for kinds, known in answers)
    assert min(right, *(sum(kind in kinds for kinds, _ in answers) for kind in ("meets", "never"))) > 10
