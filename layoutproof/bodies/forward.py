"""The one way over the effects of a body: in program order, loop by loop, whatever is asked on the way.

What is asked is a domain (abstract interpretation: Cousot and Cousot, POPL 1977): it has a state, and says what an
effect and what a loop make of it. For `memory_state` the state is a condition on one element, for `in_flight` the ways
through the body so far, for `runs` nothing but what is seen on the way. The literal `walk` goes backwards from its
question, shares none of this, and is what the others are held against.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from layoutproof.bodies import problems
from layoutproof.bodies.effects import Body, Effect, Handed, Loop, short_place
from layoutproof.bodies.symbolic import Number, Symbolic, named
from layoutproof.core.budget import spend
from layoutproof.core.errors import Unsupported
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.scalar_memory import every_table

Place = TypeVar("Place", contravariant=True)
State = TypeVar("State")


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """A loop with what is in it, in program order.

    around: the loops that it is in, outermost first.  first, end: the number of its first effect, and one more than
    that of its last one.
    """

    loop: Loop
    around: tuple[Loop, ...]
    parts: tuple[Effect | Nest, ...]
    first: int
    end: int

    @property
    def effects(self) -> tuple[Effect, ...]:
        """All effects in it, also those of loops in it."""
        return tuple(e for part in self.parts for e in (part.effects if isinstance(part, Nest) else (part,)))


Part = Effect | Nest


def nested(effects: Sequence[Effect], depth: int = 0) -> tuple[Part, ...]:
    """Effects in order, those of one loop together."""
    found: list[Part] = []
    k = 0
    while k < len(effects):
        loops = effects[k].spot.loops
        if len(loops) <= depth:
            found.append(effects[k])
            k += 1
            continue
        end = k
        while end < len(effects) and loops[depth] in effects[end].spot.loops[depth : depth + 1]:
            end += 1
        ends = effects[k].spot.number, effects[end - 1].spot.number + 1
        found.append(Nest(loops[depth], loops[:depth], nested(effects[k:end], depth + 1), *ends))
        k = end
    return tuple(found)


@lru_cache(maxsize=8)
def nests_of(body: Body) -> Mapping[str, Nest]:
    """The loops of a body in which something happens, by the names of their counters."""
    found: dict[str, Nest] = {}
    todo = [*nested(body.effects)]
    while todo:
        part = todo.pop()
        if isinstance(part, Nest):
            found[part.loop.name] = part
            todo += part.parts
    return found


def within(parts: Iterable[Part], loops: Iterable[Loop], number: int) -> tuple[Part, ...]:
    """Those of some parts that are in the innermost of some loops and in no other one, and before effect `number`."""
    found = tuple(parts)
    for loop in loops:
        found = next((part.parts for part in found if isinstance(part, Nest) and part.loop is loop), ())
    return tuple(part for part in found if (part.first if isinstance(part, Nest) else part.spot.number) < number)


class Domain(Protocol[Place, State]):
    """An abstract domain of the walk. place: where in a run it is, in the domain's own form."""

    def effect(self, effect: Effect, place: Place, state: State) -> State:
        """The state after an effect."""

    def loop(self, nest: Nest, place: Place, state: State) -> State:
        """The state after a loop: all of its turns one by one (`turns`), or what one of them says of all."""


def forward(parts: Iterable[Part], domain: Domain[Place, State], place: Place, state: State) -> State:
    """The state after some parts, from the one before."""
    for part in parts:
        after = domain.loop if isinstance(part, Nest) else domain.effect
        state = after(part, place, state)  # type: ignore[arg-type]
    return state


# places that numbers say


@dataclass(frozen=True, slots=True, eq=False)
class Here:
    """A place of a run: the program, the turn of each loop around, and what names are here.

    A loop adds the names of what it has handed on when it has ended.
    """

    names: dict[str, Number]
    program: tuple[Number, ...]
    turns: tuple[Number, ...] = ()

    def turn(self, loop: Loop, number: Number, more: Mapping[str, Number]) -> Here:
        """The place in one turn of a loop."""
        return Here({**self.names, loop.name: number, **more}, self.program, (*self.turns, number))


class Evaluates(Protocol):
    """An evaluator of numbers at a place."""

    body: Body

    def values(self, terms: Sequence[Term], here: Here) -> list[Any]:
        """The values of some terms: numbers, and conditions, which may be open."""

    def handed(self, one: Handed, value: object, here: Here) -> Number:
        """The remembered value of a number that a loop carries."""

    def turned(self, loop: Loop) -> None:
        """A turn has ended; raises where there are too many."""


def turns(on: Evaluates, loop: Loop, count: int | None, here: Here) -> Iterator[tuple[Here, Any]]:
    """The places in the turns of a loop, one after the other, each with whether the loop goes on there.

    count: the trip count; None for a while loop, whose condition is evaluated once more than its body runs; the body's
    effects have it on their path. Where the condition is None or open, no further turn is known.
    """
    goes_on = on.body.goes_on.get(loop.name)
    handed = [one for one in on.body.handed if one.loop is loop]

    def told(terms: Sequence[Term], place: Here) -> list[Number]:
        return [on.handed(one, v, place) for one, v in zip(handed, on.values(terms, place), strict=True)]

    values = told([one.start for one in handed], here)
    more: Any = True
    turn = 0
    while count is None or turn < count:
        inner = here.turn(loop, turn, {one.name: value for one, value in zip(handed, values, strict=True)})
        if count is None:
            more = None if goes_on is None else on.values([goes_on], inner)[0]
        yield inner, more
        if more is not True:
            break
        values = told([one.following for one in handed], inner)
        on.turned(loop)
        turn += 1
    if isinstance(more, bool):
        here.names.update({one.after: value for one, value in zip(handed, values, strict=True)})


class Run(ABC):
    """A run in which each number is what it is, as far as it is known: the part of a domain that all such have.

    Its state is nothing but what is noted on the way. kernel: whose body it goes through.  loaded: the results of loads
    that are known, by their tables.
    """

    def __init__(self, kernel: Kernel, loaded: Mapping[str, Number] = MappingProxyType({})) -> None:
        self.kernel, self.loaded = kernel, loaded
        self.body = kernel.body
        self.tables = {table.name: table for table in every_table(kernel)}
        self._last: tuple[Here, dict[str, Number], Symbolic] | None = None

    @abstractmethod
    def effect(self, effect: Effect, here: Here, state: None) -> None:
        """Notes an effect, if it happens."""

    def loop(self, nest: Nest, here: Here, state: None) -> None:
        """Goes through each turn."""
        count = None if nest.loop.count is None else self._at(here)(nest.loop.count)
        if nest.loop.count is not None and type(count) is not int:
            self._open(nest, f": {count}")
            return
        for inner, more in turns(self, nest.loop, count, here):
            if not isinstance(more, bool):
                self._open(nest)
                return
            forward(nest.parts, self, inner, state)

    def _open(self, nest: Nest, count: str = "") -> None:
        """A loop of which it is not known how often it runs."""
        raise Unsupported(problems.TRIP_COUNT_OF(short_place(nest.loop.source), count))

    def values(self, terms: Sequence[Term], here: Here) -> list[Any]:
        """The values of terms."""
        on = self._at(here)
        return [on(term) for term in terms]

    def handed(self, one: Handed, value: object, here: Here) -> Number:
        """A number that a loop hands on."""
        return int(value) if isinstance(value, int) else named("name", one.name, (here.program, here.turns))

    def turned(self, loop: Loop) -> None:
        """Stops where there are too many."""
        spend(1)

    def _at(self, here: Here) -> Symbolic:
        if self._last is None or self._last[0] is not here or self._last[1] != here.names:
            place = (here.program, here.turns)
            on = Symbolic(self.body, here.names, {}, place, {}, self.tables, self.loaded, None, self.kernel.relations)
            # a loop that has ended adds to the names of its place
            self._last = here, dict(here.names), on
        return self._last[2]

    def _number(self, value: object, what: str) -> int:
        if type(value) is not int:
            raise Unsupported(f"{what}: {value}")
        return value
