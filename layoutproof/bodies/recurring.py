"""What holds at the head of a loop whose turns are not counted: ways through the body that recur every few turns.

A pipeline by hand, with two buffers and a bound that a table says, starts the next copy in one turn and waits for it in
the next one: no turn leaves everything as it was, two of them do. So a few turns are walked from what holds before
them, of a counter `period * t`; what is another number after them becomes one of which nothing is known, until what
holds after them is what held before (widening: Cousot and Cousot, POPL 1977). Semaphores, their slots, effects and
bytes are never widened: ways with other ones are other ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from layoutproof.bodies.cells import Cells, without
from layoutproof.bodies.regions import ViewedRegion
from layoutproof.bodies.symbolic import LinearSum, Name, Number, OpenCondition, named
from layoutproof.bodies.ways import Flight, Slot, Way

PERIODS = (1, 2, 3, 4)
"""Turns after which ways may recur: the buffers of a pipeline."""
MOST_WIDENINGS = 4
"""Times that what holds is made weaker, for one period."""
ANY = "any"
"""The operation of numbers of which nothing is known."""

Shape = tuple[object, ...]
Ahead = frozenset[tuple[int, LinearSum, bool]]
"""(k, number, whether counter + k < number)."""
Heads = Mapping[Shape, tuple[Way, Ahead]]
"""By what ways have to be alike in: what holds of all of them."""


def speaks_of(value: object, place: Name) -> bool:
    """Whether a name, a number or a condition has a place in it: the turns of one loop, in one program."""
    if value == place:
        return True
    if isinstance(value, LinearSum):
        return any(speaks_of(name, place) for name, _ in value.parts)
    if isinstance(value, OpenCondition):
        return any(speaks_of(part, place) for part in value.args)
    return isinstance(value, tuple) and any(speaks_of(part, place) for part in value)


def compared_ahead(ways: Iterable[Way], place: Name) -> frozenset[tuple[int, LinearSum]]:
    """What was compared with numbers before a loop, and may be with the counter and a number in it."""
    names = {name for way in ways for name, _ in way.assumed if name[0] == "<" and not speaks_of(name, place)}
    return frozenset((name[1], name[2]) for name in names)


def widened(heads: Heads, ways: Iterable[tuple[Way, Ahead]], place: Name) -> Heads | None:
    """What holds of all of some ways and of what held before.

    Numbers that speak of the turns so far mean others at the next head: none of them is left. None where a slot of a
    semaphore is not known.
    """
    found = dict(heads)
    for way, ahead in ways:
        if any(type(number) is not int for (_, at), _ in way.slots for number in at):
            return None
        shape = tuple((key, slot.signals, slot.waited, *map(_shape, slot.flights)) for key, slot in way.slots)
        before, known = found.get(shape, (way, ahead))
        found[shape] = _either(before, way, place), known & ahead
    return found


def handed_widened(before: Mapping[str, Number], after: Sequence[Number], place: Name) -> dict[str, Number]:
    """Numbers that a loop hands on: what holds of them before some turns and after them."""
    pairs = zip(before.items(), after, strict=True)
    return {name: _number(value, later, (place, name)) for (name, value), later in pairs}


def _shape(flight: Flight) -> Shape:
    regions = (flight.source, flight.target, *flight.lists)
    runs = [(region.name, region.exact, *(stride for _, _, stride in region.runs)) for region in regions]
    return (flight.effect, flight.size, flight.program, flight.adds, flight.each, *runs)


def _either(one: Way, other: Way, place: Name) -> Way:
    """What holds of two ways of one shape."""
    slots = [
        (key, _slots(slot, there, (place, key))) for (key, slot), (_, there) in zip(one.slots, other.slots, strict=True)
    ]
    return replace(
        one,
        slots=tuple(slots),
        assumed=tuple(each for each in one.assumed if each in other.assumed and not speaks_of(each, place)),
        cells=_cells(one.cells, other.cells, place),
        loaded=tuple(each for each in one.loaded if each in other.loaded and not speaks_of(each, place)),
        written=one.written & other.written,
    )


def _slots(one: Slot, other: Slot, at: Name) -> Slot:
    pairs = zip(one.flights, other.flights, strict=True)
    return replace(one, flights=tuple(_flights(a, b, (*at, k)) for k, (a, b) in enumerate(pairs)))


def _flights(one: Flight, other: Flight, at: Name) -> Flight:
    lists = zip(one.lists, other.lists, strict=True)
    return replace(
        one,
        source=_regions(one.source, other.source, (*at, "source")),
        target=_regions(one.target, other.target, (*at, "target")),
        lists=tuple(_regions(a, b, (*at, k)) for k, (a, b) in enumerate(lists)),
    )


def _regions(one: ViewedRegion, other: ViewedRegion, at: Name) -> ViewedRegion:
    runs = [
        (_number(a, b, (*at, k, "start")), _number(n, m, (*at, k, "size")), stride)
        for k, ((a, n, stride), (b, m, _)) in enumerate(zip(one.runs, other.runs, strict=True))
    ]
    return replace(one, runs=tuple(runs))


def _number(one: Number, other: Number, at: Name) -> Number:
    """A number where both are the same, and the same at the next head. at: the loop's place, and which number it is."""
    if type(one) is int and one == other:
        return one
    anything = named(ANY, at)
    return one if one == other and (one == anything or not speaks_of(one, at[0])) else anything


def _cells(one: Cells, other: Cells, place: Name) -> Cells:
    """Numbers in scalar memory that are the same in both."""
    left, right = dict(one), dict(other)
    unlike = [k for k in left.keys() | right.keys() if left.get(k) != right.get(k) or speaks_of(left.get(k), place)]
    return without(one, {name for name, _ in unlike}) if unlike else one
