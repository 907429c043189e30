"""Candidates of a traced function that decide alike: one of them is traced, the others are what its terms say.

A candidate is traced twice: with plain ints, and with numbers that record each decision which the function makes with
them (`core.recorded`). The decisions form a tree: who takes the same way through it gets the same calls, whose
grids, blocks and scratch are terms over the variables. All else that follows from a number is a decision too, but for
its text in an error that is raised, and for what a body that allocates nothing reads of it.
It is traced with plain ints first, so that the user's own caches never hold a recorded number.
Terms are used only where they agree, for the traced candidate, with tracing on plain ints. A path whose calls have
memory or pipelines of their own in the body, or which JAX does not take with recorded numbers, is not used for other
candidates, and where most paths belong to one candidate alone no more are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.numbers import INTS
from layoutproof.core.recorded import Quoted, Recorded, Trail, filled
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Unmodelled

FEW = 8
"""Ways that serve one candidate after which no more are looked for; of fewer candidates each is traced."""

MANY = 64
"""Ways after which it is asked whether they are taken more than once."""

Kernels = tuple[Kernel | Unmodelled, ...]
Trace = Callable[[Mapping[str, Any]], Kernels]


class Contradicted(Exception):
    """Terms and tracing differ, or two traces do: the function looks at something else than its arguments."""


@dataclass(frozen=True, slots=True)
class Alike:
    """The result of all candidates on one path: calls over the variables, or the function's error.

    quoted: the numbers that it says.
    """

    calls: tuple[Kernel, ...] = ()
    refused: LayoutError | None = None
    quoted: tuple[Quoted, ...] = ()

    def error(self, values: Mapping[str, int]) -> LayoutError | None:
        """The function's error for one candidate."""
        if self.refused is None or not self.quoted:
            return self.refused
        return LayoutError(filled(self.refused.problem, self.quoted, values))


@dataclass(slots=True)
class _DecisionNode:
    """A node of the tree: its decision, and the child for each outcome; at the end of a path, its result."""

    term: Term | None = None
    after: dict[int, _DecisionNode] = field(default_factory=dict)
    end: Alike | None = None


@dataclass(slots=True)
class Candidates:
    """The calls of one candidate after the other.

    trace: the calls for plain or recorded numbers; LayoutError where the function refuses them.  count: how many there
    will be.  traced: how many were traced.  ways: how many ways were seen.  own: of those, how many serve only the
    candidate that was traced.  alone: how many, but refusals, are of one candidate, whose numbers were all read.
    contradicted: whether the function did not do twice the same, so that no way holds.
    stopped: whether each is traced from now on, because there are few, or few are alike.
    bodies: whether decisions of bodies belong to a path too.
    """

    trace: Trace
    count: int
    traced: int = 0
    looked_at: int = 0
    ways: int = 0
    own: int = 0
    alone: int = 0
    refusals: int = 0
    contradicted: bool = False
    stopped: bool = False
    bodies: bool = True
    _root: _DecisionNode = field(default_factory=_DecisionNode)

    def calls(self, values: Mapping[str, int]) -> tuple[Kernels | LayoutError, bool]:
        """The calls of a candidate, or what the function refuses it with; and whether it was traced itself.

        The amounts of calls that were not traced are terms over the variables, the same for all who decide alike.
        """
        # a refusal of one candidate alone costs little, and says nothing of the others
        ways, looked_at = self.ways - self.refusals, self.looked_at - self.refusals
        few = any(n >= least and 2 * n > looked_at for n, least in ((self.alone, FEW), (ways, MANY)))
        self.stopped |= self.count <= FEW or self.contradicted or few
        useful = not self.stopped
        self.looked_at += 1
        place = _walked(self._root, values) if useful else None
        end = Alike() if place is None or place.end is None else place.end
        error = end.error(values)
        if error is not None:
            return error, False
        if end.calls:
            return end.calls, False
        found = _attempt(self.itself, values)
        # numbers below 1 are no block sizes, and what is found of them is of no others
        if useful and place is None and min(values.values(), default=1) > 0:
            self._learn(values, found)
        return found, True

    def like(self, values: Mapping[str, int]) -> tuple[Kernel, ...]:
        """The calls with terms of those who decide as a candidate that was traced; () = there are none."""
        place = None if self.stopped else _walked(self._root, values)
        return () if place is None or place.end is None else place.end.calls

    def itself(self, values: Mapping[str, int]) -> Kernels:
        """The calls of one candidate, by tracing it."""
        self.traced += 1
        return self.trace(values)

    def _learn(self, values: Mapping[str, int], found: Kernels | LayoutError) -> None:
        """One more way of the tree, from a candidate that takes none of those that are there."""
        if self.refusals > FEW and 2 * self.refusals > self.ways and isinstance(found, LayoutError):
            return
        self.ways += 1
        end, decided = _recorded(self.trace, values, found, self.bodies)
        if end == Alike() and self.bodies and not isinstance(found, LayoutError):
            # where recorded numbers get in the way inside of a body, bodies are left to those who are traced
            without, less = _recorded(self.trace, values, found, False)
            if without != Alike():
                self.bodies, self._root = False, _DecisionNode()
                end, decided = without, less
        self.own += end == Alike()
        read = {term for term, _ in decided.decisions}
        all_read = all(Term("name", name) in read for name in values)
        if end == Alike() or all_read:
            self.refusals += isinstance(found, LayoutError)
            self.alone += not isinstance(found, LayoutError)
        if not (isinstance(found, LayoutError) and (decided.stopped_inside or end == Alike())):
            # a body may refuse a candidate for a value that is not recorded, such as the shape of a reference
            self._put(decided.decisions, end)

    def _put(self, decisions: Sequence[tuple[Term, int]], end: Alike) -> None:
        place = self._root
        for term, outcome in decisions:
            if place.end is not None or (place.term is not None and str(place.term) != str(term)):
                self.contradicted = True
                return
            place.term = term
            place = place.after.setdefault(outcome, _DecisionNode())
        self.contradicted |= place.term is not None
        place.end = end


def _walked(place: _DecisionNode, values: Mapping[str, int]) -> _DecisionNode | None:
    """The end of a candidate's path, None where no candidate took that path before."""
    while place.term is not None:
        following = place.after.get(int(place.term.evaluate(values, INTS)))
        if following is None:
            return None
        place = following
    return place if place.end is not None else None


def _attempt(trace: Trace, values: Mapping[str, object]) -> Kernels | LayoutError:
    try:
        return trace(values)
    except LayoutError as error:
        return error


def _recorded(
    trace: Trace, values: Mapping[str, int], found: Kernels | LayoutError, bodies: bool
) -> tuple[Alike, Trail]:
    """The result for all candidates on this one's path, and its decisions. found: its result with plain ints."""
    from layoutproof.pallas.from_jax.recorded_calls import general, recorded_calls, trail

    decided = trail()
    numbers = {name: Recorded(Term("name", name), value, decided) for name, value in values.items()}
    with recorded_calls(decided, bodies) as amounts:
        again = _attempt(trace, numbers)
    for quote in decided.quoted:
        if not (isinstance(again, LayoutError) and quote.mark in again.problem):
            # the error was caught, and nobody knows who has read its text
            decided.decide(quote.term, quote.value)
    end = Alike()
    if isinstance(found, LayoutError) or any(isinstance(call, Unmodelled) or call.scoped for call in found):
        # what a body reads of numbers, how often a loop is unrolled and the shape of a value, decides what it allocates
        for term, value in decided.read_inside.items():
            decided.decide(term, value)
    if isinstance(found, LayoutError):
        if isinstance(again, LayoutError) and not decided.stopped_inside:
            refused = Alike(refused=again, quoted=tuple(decided.quoted))
            end = refused if str(refused.error(values)) == str(found) else end
    elif not isinstance(again, LayoutError) and len(found) == len(again) == len(amounts):
        calls = [general(call, own) for call, own in zip(found, amounts, strict=True) if isinstance(call, Kernel)]
        if len(calls) == len(found) and all(map(_is, calls, found, [values] * len(calls))):
            end = Alike(tuple(call for call in calls if call is not None))
    return end, decided


def _is(call: Kernel | None, traced: Kernel | Unmodelled, values: Mapping[str, int]) -> bool:
    """Whether terms give what tracing gave, but for the body."""
    from layoutproof.pallas.from_jax.recorded_calls import bound

    if call is None or not isinstance(traced, Kernel):
        return False
    try:
        return same(bound(call, values), traced)
    except (LayoutError, Undecided):
        # JAX takes blocks below 1, and the kernel language does not
        return False


def same(call: Kernel, other: Kernel) -> bool:
    """Whether two calls are one but for their bodies."""
    return repr(call) == repr(other)
