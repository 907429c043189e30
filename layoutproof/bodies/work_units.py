"""Work that a GPU gives out while a kernel runs (`dynamic_scheduling_loop`): how many turns are to be looked at.

A program does its own work first, and then that of programs which have not begun, as the GPU gives it out: which, in
what order and how much of it, is not known. What the threads do in shared memory does not depend on which it is (that
is asked), and each number of turns from 1 to that of all work is possible. Few are looked at one by one. Of more,
those that follow are like earlier ones where three things hold:

- from some turn on, the events of each thread repeat after a period, and so does what comes behind the loop;
- in a period as many arrivals come on a barrier as each thread waits for there;
- no thread begins a turn before all others have ended the one SKEW + 1 before.

Then all that can happen between two events depends on turns that are at most SKEW + 1 apart, and is what happened a
period earlier: the same events with as many arrivals before them, by induction over the turns. A touch of memory that
is further apart comes after one that is near, as the same memory is touched in each period.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.bodies.moments import Event, Key

FEW = 6
"""Turns of which each number is looked at."""
SKEW = 2
"""Turns by which one thread may be ahead of another one."""
_LATEST, _LONGEST = 6, 4
"""The latest turn at which events begin to repeat, and the longest period."""
OUTSIDE = -1
"""The turn of what is in no turn."""

Described = tuple[object, ...]


def turn_of(event: Event) -> int:
    """In which turn of the loop over work an event is, OUTSIDE if in none."""
    return next((n for loop, n in zip(event.spot.loops, event.turns, strict=False) if loop.units), OUTSIDE)


def by_turn(events: Sequence[Event]) -> dict[int, list[Described]]:
    """What a thread does in each turn, equal where it is the same: of a wait, how many more arrivals it is for."""
    waited: dict[Key, int] = {}
    found: dict[int, list[Described]] = {}
    for event in events:
        more = event.amount
        if event.kind == "phase" and event.semaphore is not None:
            more -= waited.get(event.semaphore, 0)
            waited[event.semaphore] = event.amount
        inner = tuple(n for loop, n in zip(event.spot.loops, event.turns, strict=False) if not loop.units)
        what = event.kind, event.spot.number, inner, more, event.semaphore, event.sent, event.queue, event.pieces
        found.setdefault(turn_of(event), []).append(what)
    return found


def steady(threads: Sequence[Sequence[Event]], turns: int) -> tuple[int, int] | None:
    """(From which turn on, after how many turns) what all threads do repeats; None where it does not."""
    parts = [by_turn(events) for events in threads]
    for period in range(1, _LONGEST + 1):
        for first in range(_LATEST + 1):
            later = range(first, turns - period)
            if len(later) > period and all(part.get(t) == part.get(t + period) for part in parts for t in later):
                return first, period
    return None


def balanced(threads: Sequence[Sequence[Event]], first: int, period: int) -> bool:
    """Whether in the turns of a period as many arrivals come on each barrier as any thread waits for there."""
    arrived: dict[Key, int] = {}
    waited: list[dict[Key, int]] = []
    for events in threads:
        mine: dict[Key, int] = {}
        parts = by_turn(events)
        for kind, _, _, amount, *keys, _, _ in (
            what for t in range(first, first + period) for what in parts.get(t, ())
        ):
            for key in keys:
                if key is not None:
                    into = mine if kind in ("phase", "wait") else arrived
                    into[key] = into.get(key, 0) + amount  # type: ignore[index, call-overload]
        waited.append(mine)
    return all(many == arrived.get(key, 0) for mine in waited for key, many in mine.items())


def begin_and_end(events: Sequence[Event]) -> dict[int, tuple[int, int]]:
    """The first and the last event of a thread in each turn, by their places."""
    found: dict[int, tuple[int, int]] = {}
    for event in events:
        turn = turn_of(event)
        found[turn] = found.get(turn, (event.position, 0))[0], event.position
    return found
