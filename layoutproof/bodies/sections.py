"""What a device does by itself between two moments at which it reaches others, made short.

Other devices see of a closed section, in which all copies that it starts have ended, only which memory it has touched:
none of its waits is for another device, so that a run in which one of its events is held back stops or goes on where it
does for any other one. A pipeline over blocks of an array is thus a few touches, however many blocks there are. Within
a section each touch is held against the copies that are in flight then, and each read against what was written before.
What is not closed, or not in order, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.bodies.cells import Box, joined, meets, minus
from layoutproof.bodies.moments import KNOWN, DeviceMemory, Event, Key, box_of
from layoutproof.bodies.regions import ViewedRegion, common_element

Memory = tuple[int, tuple[Any, ...]]

SHORT = 64
"""Events of a section that stays as it is: what is said of one of them names its program and its turn."""


def shortened(events: Sequence[Event], open_: Iterable[Key] = ()) -> list[Event]:
    """The same to all other devices, in fewer events; as it is where it is short, not closed or not in order.

    events: of one device, none of which reaches another or waits for one.  open_: semaphores that count something
    before.
    """
    if len(events) <= SHORT or {e.semaphore for e in events} & set(open_):
        return list(events)
    section = _Section()
    if not all(map(section.takes, events)) or section.counts:
        return list(events)
    return list(section.moments())


@dataclass(slots=True)
class _Touched:
    """What one effect touches of one memory, turn after turn.

    boxes: all of it; of what it reads, that part that was written before.  unwritten: of what it reads, the rest.
    """

    event: Event
    piece: DeviceMemory
    boxes: set[Box] = field(default_factory=set)
    unwritten: set[Box] = field(default_factory=set)
    strided: set[ViewedRegion] = field(default_factory=set)


class _Section:
    """A walk through a section. counts: of semaphores that do not count 0."""

    def __init__(self) -> None:
        self.counts: dict[Key, int] = {}
        self._flights: dict[Key, list[Event]] = {}
        self._written: dict[Memory, dict[Box, None]] = {}
        self._perhaps: set[Memory] = set()
        self._touched: dict[tuple[Any, ...], _Touched] = {}

    def takes(self, event: Event) -> bool:
        """Goes on by one event; False where it does not go on by itself, or is not in order."""
        if event.kind in ("signal", "start"):
            assert event.semaphore is not None
            self.counts[event.semaphore] = self.counts.get(event.semaphore, 0) + event.amount
        if event.kind == "wait":
            return self._waits(event)
        if not all(self._in_order(piece) and self._notes(event, piece) for piece in event.pieces):
            return False
        if event.kind == "start" and event.semaphore is not None:
            self._flights.setdefault(event.semaphore, []).append(event)
        return True

    def _waits(self, event: Event) -> bool:
        key = event.semaphore
        left = self.counts.get(key, 0) - event.amount if key is not None else -1
        if key is None or left < 0:
            return False
        self.counts[key] = left
        if not left:
            # every byte was waited for
            del self.counts[key]
            for copy in self._flights.pop(key, ()):
                self._writes(copy.pieces[1])
        return True

    def _in_order(self, piece: DeviceMemory) -> bool:
        """Whether no copy in flight moves what is touched."""
        for copy in (copy for flights in self._flights.values() for copy in flights):
            for other in copy.pieces:
                if (piece.device, piece.memory) != (other.device, other.memory):
                    continue
                orders = (piece.writes or other.writes) and not (piece.adds and other.adds)
                if orders and common_element(KNOWN, piece.region, other.region) is not False:
                    return False
        return True

    def _notes(self, event: Event, piece: DeviceMemory) -> bool:
        """Remembers a touch; False where it is unknown whether the elements read were written."""
        memory, box = (piece.device, piece.memory), box_of(piece.region)
        key = (event.spot.number, event.kind, piece.does, piece.writes, piece.sure, piece.adds, memory)
        held = self._touched.setdefault(key, _Touched(event, piece))
        if (held.event.program, held.event.turns) != (event.program, event.turns):
            held.event = replace(held.event, program=(), turns=())
        if box is None:
            held.strided.add(piece.region)
        elif not piece.reads:
            held.boxes.add(box)
        if piece.reads:
            left = [] if box is None else _without(box, self._written.get(memory, ()))
            if (left or box is None) and memory in self._perhaps:
                return False
            held.unwritten.update(left)
            held.boxes.update([] if box is None or left == [box] else _without(box, left))
        if piece.writes and event.kind != "start":
            self._writes(piece)
        return True

    def _writes(self, piece: DeviceMemory) -> None:
        memory, box = (piece.device, piece.memory), box_of(piece.region)
        if box is None or not piece.sure:
            self._perhaps.add(memory)
        else:
            self._written.setdefault(memory, {})[box] = None

    def moments(self) -> Iterator[Event]:
        """First what is read that nothing has written before, then all writes, then what else is read."""
        touched = list(self._touched.values())
        reads = [one for one in touched if one.piece.reads]
        for one in sorted(reads, key=lambda one: one.piece.writes):
            yield from _moment(one, one.unwritten, one.strided)
        for one in touched:
            if not one.piece.reads:
                yield from _moment(one, one.boxes, one.strided)
        for one in reads:
            yield from _moment(one, one.boxes, ())


def _without(box: Box, others: Iterable[Box]) -> list[Box]:
    """What of a box is in none of some others."""
    left = [box]
    for other in others:
        if meets(box, other):
            left = [part for one in left for part in minus(one, other)]
    return left


def _moment(one: _Touched, boxes: Iterable[Box], strided: Iterable[ViewedRegion]) -> Iterator[Event]:
    """One event that touches some boxes of one memory; none where there are none."""
    name = one.piece.region.name
    whole = [ViewedRegion(name, tuple((a, b - a, 1) for a, b in box), True) for box in joined(boxes)]
    pieces = tuple(replace(one.piece, region=region) for region in (*whole, *strided))
    if pieces:
        event = one.event
        # what a copy has filled is no read
        kind = "filled" if event.kind == "start" and one.piece.writes else "touch"
        yield Event(kind, event.device, event.call, 0, event.spot, event.program, event.turns, pieces=pieces)
