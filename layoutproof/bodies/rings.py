"""Rings of every size: the effects of devices on each other where each does the same at the same distance.

Let no place of the mesh be special: each device has the same events, on memory and semaphores of devices that lie at
the same distances, of at most C places, to its right or left. The same events then make a ring of any number of
devices. Three steps show that those of fewer than some size stand for all of them.

All at once. Let all devices go on in rounds, in each as far as the signals of the rounds before let them. They keep in
step, since nothing tells them apart, and each gets the same signals however many there are: so where one ring ends
after R rounds, all do, with the same counts on semaphores.

One held back. Hold an event of device 0, or the end of a copy that it starts. After r rounds only devices at most
(r + 1) C places from it can be elsewhere than they would be: the signals that a device gets come from C places away at
most. So those further than (R + 1) C end as always. Those that are nearer get all signals of these, and how far they
come depends on nothing else: a run that goes on wherever it can comes to one end. On rings of more than
2 (R + 1) C + 2 C devices that is the same question, whatever the size.

Two at a time. The questions are about two events that touch memory of one device, or reach it: of devices at most 2 C
places apart. Whether one comes first is seen from a run in which the other is held, so that it is the same on all rings
of more than 2 (R + 1) C + 4 C devices. Therefore: a property of rings of 2 to 2 (R + 1) C + 4 C + 1 holds for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.bodies.devices import DeviceProblem, Devices
from layoutproof.bodies.effects import Spot
from layoutproof.bodies.moments import Event, Key
from layoutproof.core.errors import Undecided

MOST_PLACES = 40
"""Devices of the largest ring that is run."""
MOST_RUN = 1_500_000
"""Events that are run on all rings, one of each held back in turn."""


@dataclass(frozen=True, slots=True)
class Rings:
    """The results for rings of other sizes.

    least: proved for rings of so many devices or more; 0 where not.  size, problem: the smallest ring on which
    something goes wrong, and what; 0 and None where there is none.
    """

    least: int
    size: int = 0
    problem: DeviceProblem | None = None


def rings_of(devices: Devices) -> Rings | None:
    """The results for rings of other sizes; None where devices do not all do the same, or the runs are too long."""
    steps = alike(devices)
    if steps is None:
        return None
    reach = max((abs(other) for event in steps for other in _others(event)), default=0)
    most = 2 * (_rounds(devices) + 1) * reach + 4 * reach + 1
    if 2 * reach >= len(devices.events) or most > MOST_PLACES or len(steps) ** 2 * most**2 // 2 > MOST_RUN:
        return None
    least, failed = 2, Rings(0)
    try:
        for size in range(2, max(most, 2) + 1):
            problem = next(ring(devices, steps, size).problems(), None)
            if problem is not None:
                least = size + 1
                failed = Rings(0, size, problem) if failed.problem is None else failed
    except Undecided:
        return None
    return Rings(0 if least > most else least, failed.size, failed.problem)


def alike(devices: Devices) -> tuple[Event, ...] | None:
    """The events of each device, with others as their distance from it; None where they differ, or are no ring."""
    if len(devices.axes) != 1 or devices.cores or len(devices.events) < 3:
        return None
    size = len(devices.events)

    def from_here(events: list[Event], here: int) -> tuple[Event, ...]:
        def distance(other: int) -> int:
            return (other - here + size // 2) % size - size // 2

        return tuple(replace(_moved(event, 0, distance), spot=same(event.spot)) for event in events)

    spots: dict[tuple[int, str], Spot] = {}

    def same(spot: Spot) -> Spot:
        return spots.setdefault((spot.number, spot.source), spot)

    found = from_here(devices.events[0], 0)
    return found if all(from_here(events, k) == found for k, events in enumerate(devices.events)) else None


class _Ring(Devices):
    """Devices that do the same, each relative to its place: a property of device 0 holds for all."""

    def reached(self, end: tuple[str, int, int]) -> tuple[int, ...]:
        """How far devices may come before something has ended: as before that of device 0, so many places on."""
        kind, device, position = end
        found = super().reached((kind, 0, position))
        return found[len(found) - device :] + found[: len(found) - device]


def ring(devices: Devices, steps: tuple[Event, ...], size: int) -> Devices:
    """As many devices in a ring, each of which has some events. steps: with others as their distance.

    Of memory, that of device 0 alone is looked at.
    """
    made = object.__new__(_Ring)
    made.kernels, made.cores, made.word = devices.kernels, devices.cores, devices.word
    ((axis, _),) = devices.axes
    made.axes, made.places = ((axis, size),), tuple((k,) for k in range(size))
    made.begins = [devices.begins[0]] * size
    made.events = [[_moved(event, k, lambda other, k=k: (k + other) % size) for event in steps] for k in range(size)]
    made.look()
    made.memory = {key: spans for key, spans in made.memory.items() if key[0] == 0}
    return made


def _moved(event: Event, here: int, of: object) -> Event:
    """The same event of another device. of: which device another one becomes."""

    def key(one: Key | None) -> Key | None:
        return None if one is None else (of(one[0]), *one[1:])  # type: ignore[operator]

    pieces = tuple(replace(piece, device=of(piece.device)) for piece in event.pieces)  # type: ignore[operator]
    return replace(event, device=here, semaphore=key(event.semaphore), sent=key(event.sent), pieces=pieces)


def _others(event: Event) -> list[int]:
    """The distances at which an event reaches."""
    keys = [key[0] for key in (event.semaphore, event.sent) if key is not None]
    return keys + [piece.device for piece in event.pieces]


def _rounds(devices: Devices) -> int:
    """After how many rounds all devices have ended, or wait for ever; as many as events, if not fewer."""
    positions, rounds = [0] * len(devices.events), 0
    counts: dict[Key, int] = {}
    moved = True
    while moved:
        moved, rounds, coming = False, rounds + 1, dict[Key, int]()
        for device, events in enumerate(devices.events):
            while positions[device] < len(events):
                event = events[positions[device]]
                key = event.semaphore
                if event.kind == "wait" and key is not None:
                    if counts.get(key, 0) < event.amount:
                        break
                    counts[key] = counts.get(key, 0) - event.amount
                for one in (key, event.sent) if event.kind in ("signal", "start") else ():
                    if one is not None:
                        coming[one] = coming.get(one, 0) + event.amount
                positions[device] += 1
                moved = True
        for one, amount in coming.items():
            counts[one] = counts.get(one, 0) + amount
    return rounds
