"""What a device does by itself in few events: what it reads and writes, and what has to stay as it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from layoutproof.bodies.cells import Box, joined, minus
from layoutproof.bodies.effects import Spot
from layoutproof.bodies.moments import ADDS, DeviceMemory, Event, Key, box_of
from layoutproof.bodies.regions import ViewedRegion
from layoutproof.bodies.sections import SHORT, shortened

SPOTS = [Spot(k, (), (), f"kernel.py:{k}") for k in range(9)]
COMES: Key = (0, 0, "comes", (0,))
BLOCKS = SHORT


def memory(name: str, rows: tuple[int, int], does: str) -> DeviceMemory:
    region = ViewedRegion(name, ((rows[0], rows[1] - rows[0], 1), (0, 128, 1)), True)
    return DeviceMemory(0, (0, name), region, does != "reads" and does != "copies from", does)


def touch(spot: int, name: str, rows: tuple[int, int], does: str) -> Event:
    return Event("touch", 0, 0, 0, SPOTS[spot], (), (), pieces=(memory(name, rows, does),))


def copy(rows: tuple[int, int], key: Key = COMES) -> Event:
    pieces = (memory("x", rows, "copies from"), memory("window", (0, 8), "copies into"))
    return Event("start", 0, 0, 0, SPOTS[0], (), (), 4096, True, key, None, pieces)


def wait(amount: int = 4096, key: Key = COMES) -> Event:
    return Event("wait", 0, 0, 0, SPOTS[1], (), (), amount, True, key)


def blocks() -> list[Event]:
    """Copies a block into a window, adds what is in it to a block of a result."""
    found: list[Event] = []
    for k in range(BLOCKS):
        rows = (8 * k, 8 * k + 8)
        found += [copy(rows), wait(), touch(2, "window", (0, 8), "reads"), touch(3, "result", rows, ADDS)]
    return found


def said(events: list[Event]) -> list[tuple[str, str, str, Box | None]]:
    return [(e.kind, p.does, p.region.name, box_of(p.region)) for e in events for p in e.pieces]


def test_blocks() -> None:
    rows = ((0, 8 * BLOCKS), (0, 128))
    window = ((0, 8), (0, 128))
    assert said(shortened(blocks())) == [
        ("touch", "copies from", "x", rows),
        # what is added to is read before anything has written it
        ("touch", ADDS, "result", rows),
        ("filled", "copies into", "window", window),
        # what is read was written by then
        ("touch", "reads", "window", window),
    ]


def test_a_part_is_not_written() -> None:
    """A read of which the first half alone was written."""
    events = [*blocks(), touch(4, "result", (8 * BLOCKS - 8, 8 * BLOCKS + 8), "reads")]
    reads = [one for one in said(shortened(events)) if one[1:3] == ("reads", "result")]
    ends = 8 * BLOCKS
    assert [box[0] for *_, box in reads if box is not None] == [(ends, ends + 8), (ends - 8, ends)]


def _late() -> list[Event]:
    """The window is read before the copy has ended."""
    first, second, third, *rest = blocks()
    return [first, third, second, *rest]


def _open() -> list[Event]:
    return [*blocks(), copy((0, 8))]


def _short_wait() -> list[Event]:
    """What is waited for never comes."""
    first, second, *rest = blocks()
    return [first, replace(second, amount=8192), *rest]


def _two_of_one() -> list[Event]:
    """Two copies on one semaphore, of which one was waited for when the window is read."""
    other = replace(copy((0, 8)), pieces=(memory("x", (0, 8), "copies from"), memory("second", (0, 8), "copies into")))
    first, second, *rest = blocks()
    return [other, first, second, *rest, wait()]


@pytest.mark.parametrize("events", [_late(), _open(), _short_wait(), _two_of_one(), blocks()[:SHORT]])
def test_stays(events: list[Event]) -> None:
    assert shortened(events) == events


def test_a_semaphore_that_counts_something_before() -> None:
    assert shortened(blocks(), [COMES]) == blocks()


def test_boxes() -> None:
    """Against the elements, one by one."""
    sides = [(a, b) for a in range(4) for b in range(a + 1, 5)]
    boxes: list[Box] = list(product(sides, sides))

    def elements(box: Box) -> set[tuple[int, ...]]:
        return set(product(*(range(a, b) for a, b in box)))

    for one, other in product(boxes, boxes):
        left = minus(one, other)
        assert sum(len(elements(part)) for part in left) == len(elements(one) - elements(other))
        assert set().union(*map(elements, left)) == elements(one) - elements(other)
        assert set().union(*map(elements, joined([one, other]))) == elements(one) | elements(other)
