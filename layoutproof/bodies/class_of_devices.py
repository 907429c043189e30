"""A loop that several devices go through alike: it is walked for one of them, and moved to the others.

Its terms are evaluated where it begins, on both devices, with its counters and all that it hands on left as names. What
comes out the same, as sums of named numbers, is the same in every turn: how often the loop runs, what it waits for,
under which conditions. Where a view starts may lie apart by a number: then it does in every turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.bodies.effects import Access, Body, Effect, Loop, Signal, StartedCopy, View, Wait
from layoutproof.bodies.forward import Nest
from layoutproof.bodies.moments import DeviceMemory, Event
from layoutproof.bodies.regions import bytes_of, region_of
from layoutproof.bodies.symbolic import Symbolic, plus
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel

Shifts = Mapping[int, tuple[tuple[int, ...], ...]]
"""By the number of an effect: how far each of what it touches lies from where it lies on another device."""


@dataclass(frozen=True, slots=True)
class Walked:
    """A loop that one device went through. on: evaluates at its begin.  after: the names that it has set."""

    on: Symbolic
    events: tuple[Event, ...]
    after: Mapping[str, Any]


def shifts(kernel: Kernel, nest: Nest, one: Symbolic, other: Symbolic) -> Shifts | None:
    """How far apart two devices touch memory in a loop; None where they are not known to do the same else.

    one, other: evaluate where the loop begins.
    """
    if any(one(term) != other(term) for term in _decisive(kernel.body, nest)):
        return None
    found: dict[int, tuple[tuple[int, ...], ...]] = {}
    for effect in nest.effects:
        parts = _parts(effect)
        if parts is None or effect.spot.number in found:
            return None
        views, counted, semaphores = parts
        if any(bytes_of(one, view) != bytes_of(other, view) for view in counted):
            return None
        apart = [_apart(kernel, view, one, other) for view in (*views, *semaphores)]
        known = [gaps for gaps in apart if gaps is not None]
        if len(known) < len(apart) or any(any(gaps) for gaps in known[len(views) :]):
            return None
        found[effect.spot.number] = tuple(known[: len(views)])
    return found


def _parts(effect: Effect) -> tuple[Sequence[View], Sequence[View], Sequence[View]] | None:
    """What an effect touches, what it counts the bytes of, and its semaphores; None of one that is not looked at."""
    match effect:
        case Access(_, view):
            return (view,), (), ()
        case StartedCopy(source, target, semaphore, device=None, sent=None):
            return (source, target), (source,), (semaphore,)
        case Wait(view, semaphore):
            return (), (view,), (semaphore,)
        case Signal(semaphore, device=None):
            return (), (), (semaphore,)
    return None


def _decisive(body: Body, nest: Nest) -> Iterable[Term]:
    """What says which effects happen, how often, and what is handed on."""
    loops: dict[int, Loop] = {id(nest.loop): nest.loop}
    for effect in nest.effects:
        yield from effect.spot.path
        loops |= {id(loop): loop for loop in effect.spot.loops}
        if isinstance(effect, Signal) and effect.amount is not None:
            yield effect.amount
    for loop in loops.values():
        yield from (term for term in (loop.count, body.goes_on.get(loop.name)) if term is not None)
        for one in body.handed:
            if one.loop is loop:
                yield from (one.start, one.following)


def _apart(kernel: Kernel, view: View, one: Symbolic, other: Symbolic) -> tuple[int, ...] | None:
    """How far apart a view starts, in each dimension; None where its sizes differ, or that is no number."""
    a, b = region_of(kernel, one, view), region_of(kernel, other, view)
    if a.exact != b.exact or [run[1:] for run in a.runs] != [run[1:] for run in b.runs]:
        return None
    gaps = [plus(there, here, -1) for (here, _, _), (there, _, _) in zip(a.runs, b.runs, strict=True)]
    return tuple(gap for gap in gaps if type(gap) is int) if all(type(gap) is int for gap in gaps) else None


def moved(event: Event, device: int, by: Shifts) -> Event:
    """The same event of another device."""
    pieces = tuple(
        replace(piece, device=device, region=replace(piece.region, runs=_runs(piece, gaps)))
        for piece, gaps in zip(event.pieces, by[event.spot.number], strict=True)
    )
    key = None if event.semaphore is None else (device, *event.semaphore[1:])
    return replace(event, device=device, semaphore=key, pieces=pieces)


def _runs(piece: DeviceMemory, gaps: Sequence[int]) -> tuple[Any, ...]:
    if not piece.region.exact:
        # which part is touched is unknown on both devices
        return piece.region.runs
    return tuple((plus(a, gap), n, s) for (a, n, s), gap in zip(piece.region.runs, gaps, strict=True))
