"""Ways through a body so far: the copies in flight on each semaphore, assumed conditions, scalar and written memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from layoutproof.bodies.cells import Box, Cells
from layoutproof.bodies.regions import ViewedRegion
from layoutproof.bodies.symbolic import HashedOnce, Name, Number, named, renamed

FORGOTTEN: Name = ("forgotten",)
"""Stands for conditions that were taken to hold and are not remembered one by one."""
TURN: Name = ("turn",)
"""The turn of the loop that has started a copy in each of its turns."""
Key = tuple[str, tuple[Number, ...]]


@dataclass(frozen=True, slots=True)
class Flight(HashedOnce):
    """A copy that was started: by which effect, its source and target, its bytes, in which program and line.

    lists: memory out of which it takes places.  adds: whether it adds to its target.  each: () for one copy; (count,)
    for one of each turn below count of a loop, whose numbers speak of TURN.
    """

    effect: int
    source: ViewedRegion
    target: ViewedRegion
    size: Number
    program: tuple[Number, ...]
    line: str
    lists: tuple[ViewedRegion, ...] = ()
    adds: bool = False
    each: tuple[Number, ...] = ()

    __hash__ = HashedOnce.__hash__

    @property
    def bytes(self) -> Number:
        """Its bytes, of all turns together."""
        return named("sum", self.size, self.each[0]) if self.each else self.size

    def renamed(self, change: Callable[[Name], Name | Number]) -> Flight:
        """The same with other names of its numbers, or other numbers."""
        source, target, *lists = (
            replace(one, runs=tuple((renamed(a, change), renamed(n, change), stride) for a, n, stride in one.runs))
            for one in (self.source, self.target, *self.lists)
        )
        size, each = renamed(self.size, change), renamed(self.each, change)
        return replace(self, source=source, target=target, lists=tuple(lists), size=size, each=each)

    def moves(self, name: str, writes: bool, adds: bool) -> Iterator[tuple[ViewedRegion, str]]:
        """The regions of an array that it moves and that an access may not touch, each with what it does there.

        name: of the array.  writes, adds: what the access does. Additions of two copies to one element commute.
        """
        if self.target.name == name and not (self.adds and adds):
            yield self.target, "into"
        if writes:
            if self.source.name == name:
                yield self.source, "out of"
            for one in self.lists:
                if one.name == name:
                    yield one, "to places out of"


@dataclass(frozen=True, slots=True)
class Slot:
    """One semaphore: the copies on it that may be in flight, bytes waited for since it counted 0, signals counted."""

    flights: tuple[Flight, ...] = ()
    waited: Number = 0
    signals: int = 0


@dataclass(frozen=True, slots=True)
class Way:
    """One path through the body so far: the slots that do not count 0, and the path conditions.

    cells: of scalar memory.  loaded: the results of this program's loads of it.  written: the written scratch.
    """

    slots: tuple[tuple[Key, Slot], ...] = ()
    assumed: tuple[tuple[Name, bool], ...] = ()
    cells: Cells = ()
    loaded: tuple[tuple[str, Number], ...] = ()
    written: frozenset[tuple[str, Box]] = frozenset()

    def slot(self, key: Key) -> Slot:
        """The state of a slot."""
        return dict(self.slots).get(key, Slot())

    def with_slot(self, key: Key, slot: Slot) -> Way:
        """Another count of one slot."""
        slots = dict(self.slots) | {key: slot}
        kept = {k: s for k, s in slots.items() if s != Slot()}
        return replace(self, slots=tuple(sorted(kept.items(), key=lambda item: repr(item[0]))))
