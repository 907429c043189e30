"""Warps that do not meet before what their warpgroup does together, against all interleavings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from layoutproof.bodies.effects import WARPS
from layoutproof.bodies.moments import Event, Key
from layoutproof.core.errors import Unsupported
from tests.bodies.test_warpgroups import SPOT, meet, memory, program_of

pytestmark = pytest.mark.slow

BARRIERS = ("full", "empty")
"""A phase of each takes one arrival, which all warps of a warpgroup make up together, or a warp alone."""


def drawn(seed: int) -> list[list[Event]]:
    """Two warpgroups: what each does together, and what its warps do before; of the second one they do nothing."""
    draw = random.Random(seed)
    threads: list[list[Event]] = []
    for group in range(2):
        waits = dict.fromkeys(BARRIERS, 0) if group else {}
        for part in range(WARPS + 1):
            number = len(threads)
            events = [Event("touch", number, 0, 0, SPOT, (group,), (number,))]
            steps = draw.randint(1, 3) if part == 0 else draw.randint(0, 2) if group == 0 and part in (1, 2) else 0
            own = dict(waits)
            for _ in range(steps):
                name = draw.choice(BARRIERS)
                key: Key = (0, 0, name, ())
                kind = draw.choice(("touch", "signal", "phase"))
                made: dict[str, Any] = {"amount": WARPS, "semaphore": key}
                if kind == "touch":
                    made = {"pieces": (memory(draw.randrange(2), draw.random() < 0.5),)}
                elif kind == "phase":
                    own[name] = own.get(name, 0) + 1
                    made["amount"] = own[name] * WARPS
                events.append(Event(kind, number, 0, len(events), SPOT, (group,), (number,), **made))
            threads.append(events)
    return threads


def by_warps(threads: list[list[Event]]) -> list[tuple[int, list[tuple[Event, int]]]]:
    """What each warp does, one after the other, with how much each counts: (its warpgroup, its steps)."""
    found = []
    for group in range(2):
        together, *apart = threads[group * (WARPS + 1) : (group + 1) * (WARPS + 1)]
        for own in apart:
            found.append((group, [*((one, WARPS) for one in own[1:]), *((one, 1) for one in together[1:])]))
    return found


def reachable(warps: list[list[tuple[Event, int]]]) -> Iterator[tuple[tuple[int, ...], int]]:
    """The places of all warps in all states, each with how many steps lead on."""
    start: tuple[tuple[int, ...], tuple[tuple[Key, int], ...]] = ((0,) * len(warps), ())
    seen, todo = {start}, [start]
    while todo:
        positions, counts = todo.pop()
        count, following = dict(counts), []
        for warp, position in enumerate(positions):
            if position == len(warps[warp]):
                continue
            event, amount = warps[warp][position]
            after = dict(count)
            if event.semaphore is not None and event.kind == "phase" and count.get(event.semaphore, 0) < event.amount:
                continue
            if event.semaphore is not None and event.kind == "signal":
                after[event.semaphore] = count.get(event.semaphore, 0) + amount
            moved = (*positions[:warp], position + 1, *positions[warp + 1 :])
            following.append((moved, tuple(sorted(after.items()))))
        yield positions, len(following)
        todo += [state for state in dict.fromkeys(following) if state not in seen]
        seen.update(following)


def shown(threads: list[list[Event]]) -> set[str]:
    """What goes wrong in some interleaving."""
    found = set[str]()
    warps = by_warps(threads)
    steps = [own for _, own in warps]
    for positions, following in reachable(steps):
        ready = [(k, own[at][0]) for k, (own, at) in enumerate(zip(steps, positions, strict=True)) if at < len(own)]
        if not following and ready:
            found.add("never")
        for k, one in ready:
            for other, event in ready:
                # the parts that warps have of what they do together are asked about elsewhere
                if (
                    k < other
                    and one is not event
                    and meet(one, event)
                    and not (warps[k][0] == warps[other][0] and one.device == event.device)
                ):
                    found.add("meets")
    return found


@pytest.mark.parametrize("seed", range(200))
def test_what_warps_that_do_not_meet_do_is_what_interleavings_show(seed: int) -> None:
    threads = drawn(seed)
    places = [group for group in range(2) for _ in range(WARPS + 1)]
    expected = shown(threads)
    try:
        problems = [*program_of(threads, dict.fromkeys(BARRIERS, WARPS), places, ordered=False).problems()]
    except Unsupported:
        return
    sure = {"meets" if problem.kind == "own" else problem.kind for problem in problems if problem.sure}
    # that a phase ends unseen is not asked of the interleavings
    assert sure - {"phase"} <= expected
    assert problems or not expected
