"""Two programs compared at random points of prime fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from layoutproof.values.fields import Depth
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import first_place
from layoutproof.values.pair import Pair
from layoutproof.values.points import Field, Points
from layoutproof.values.refusals import TOO_DEEP, ChainTooShort, Collision, NotModelled, OutOfBounds
from layoutproof.values.sets import NOBODY
from layoutproof.values.stability import StabilityAudit
from layoutproof.values.walk import Prepared

Array = np.ndarray[Any, Any]

MOST_POINTS, MOST_ASIDE = 8, 4
"""Times more points than asked are tried where roots of what is no square leave elements without an answer, and where a
comparison came out one way alone."""


@dataclass
class _Tally:
    """Of one output, over points: where some point differs and says so, or differs without saying, and how many agree
    and say so."""

    differs: Array
    doubtful: Array
    agrees: Array

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> _Tally:
        """Before the first point."""
        return cls(np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(shape, int))

    def add(self, different: Array, says: Array) -> None:
        """Counts one point in. says: where it says something."""
        self.differs |= different & says
        self.doubtful |= different & ~says
        self.agrees += ~different & says

    def undecided(self, points: int) -> Array:
        """Which elements fewer points say something of than were asked for, of those of which one said nothing."""
        found: Array = self.doubtful & (self.agrees < points)
        return found


@dataclass
class AtPoints:
    """What the points say. told: whether some told which element a maximum is.  chose: whether some drew which of
    several is the greatest.  last: the point that differs, with the element that does: (position among those compared,
    index)."""

    state: str
    reason: str = ""
    place: str = ""
    points: int = 0
    axioms: set[str] = field(default_factory=set)
    bits: int = 0
    audit: StabilityAudit = field(default_factory=StabilityAudit)
    inside: bool = True
    ordered: bool = True
    race: str = ""
    defined: bool = True
    told: bool = False
    chose: bool = False
    last: tuple[Points, int, tuple[int, ...]] | None = None
    complete: bool = True

    def run(self, pair: Pair, numbers: Points, values: Sequence[Shaped]) -> list[Field]:
        """The outputs of the one that is asked about, whose exponentials, sums and places are noted."""
        results, walk = pair.walked(numbers, 0, values, self.audit if numbers.bounds else None)
        self.inside, self.ordered = self.inside and walk.inside, self.ordered and walk.ordered
        self.defined, self.complete = self.defined and walk.defined, self.complete and walk.complete
        self.race = self.race or walk.race
        return results


class OneWay:
    """The outcomes of one comparison for a whole array, over points: both outcomes have to occur."""

    def __init__(self) -> None:
        self.taken: Array | None = None

    def after(self, numbers: Points) -> bool:
        """Whether after this point some comparison came out one way alone."""
        ever = np.array(numbers.taken, bool).reshape(-1, 3)
        self.taken = ever if self.taken is None or self.taken.shape != ever.shape else self.taken | ever
        return bool((self.taken[:, 0] & ~self.taken[:, 1:].all(1)).any())


@dataclass
class _Next:
    """How the next point is drawn.

    bounds: whether it is told what is at most 0: the same at every point, so after the first one it is asked where that
    may explain a difference.  of_both: whether the reference is told, too; else where ours has such.  lean, preferred:
    as of `Points`.  asked: whether whoever ran last was told.
    """

    depth: Depth
    seed: int = 0
    bounds: bool = True
    of_both: bool = False
    lean: bool = True
    preferred: Array = field(default_factory=lambda: NOBODY)
    asked: bool = True

    def once_more_with_bounds(self) -> bool:
        """Whether the point is drawn again with bounds, which it had not."""
        if self.asked:
            return False
        self.bounds, self.of_both, self.seed = True, True, self.seed - 1
        return True

    def deeper(self, left: bool, prepared: Prepared) -> bool:
        """Whether there is a longer chain. left: whether a maximum was not taken where it could be: at that level
        perhaps it is wanted."""
        self.seed -= 1
        self.lean = not left
        deeper = self.depth if left else prepared.deeper(self.depth)
        self.depth = deeper or self.depth
        return deeper is not None


Answers = list[tuple[Array, Array]]
"""Of each output, where the two differ, and where that says something."""


def at_points(
    pair: Pair, points: int, tick: Callable[[str], None] = lambda what: None, chosen: bool = False
) -> AtPoints:
    """What random points say.

    points: how many have to say something of each element.  tick: is told what is done.  chosen: as of `Points`.
    """
    following, done = _Next(Depth(pair.prepared.levels)), 0
    found, one_way = AtPoints("same"), OneWay()
    tallies: list[_Tally] = []
    while done < MOST_POINTS * points:
        following.seed += 1
        if following.seed > 8 * points + 8:
            return AtPoints("unknown", "sets of maxima meet by chance at every point", "")
        tick(f"point {done + 1}")
        numbers = _point(pair.prepared, following, chosen)
        try:
            answers = _answers(pair, numbers, following, found)
        except ChainTooShort:
            if not following.deeper(numbers.left, pair.prepared):
                return AtPoints("unknown", TOO_DEEP)
            continue
        except Collision:
            continue
        except (NotModelled, OutOfBounds) as refusal:
            if following.once_more_with_bounds():
                continue
            said = refusal.said if isinstance(refusal, OutOfBounds) else refusal.what
            return AtPoints("unknown", said, refusal.place)
        if answers is None:
            following.seed -= 1
            continue
        following.bounds = following.of_both = False
        found.axioms |= numbers.axioms
        found.bits = int(numbers.fields[-1].p).bit_length() - 1
        found.points = done = done + 1
        tallies = tallies or [_Tally.of(different.shape) for different, _ in answers]
        for tally, answer in zip(tallies, answers, strict=True):
            tally.add(*answer)
        for k, tally in enumerate(tallies):
            if tally.differs.any():
                found.state = "differs"
                index = first_place(tally.differs)
                found.last = None if index is None else (numbers, k, index)
                return found
        aside = one_way.after(numbers) and done < MOST_ASIDE * points
        if done >= points and not aside and not any(t.undecided(points).any() for t in tallies):
            return found
    left = sum(int(t.undecided(points).sum()) for t in tallies)
    return AtPoints(
        "unknown", f"{left} elements rest on square roots that exist at fewer than {points} of {done} points"
    )


def _point(prepared: Prepared, following: _Next, chosen: bool) -> Points:
    depth = following.depth
    numbers = Points(
        following.seed, depth.levels, following.bounds, following.lean, depth.oracles, prepared.readings,
        prepared.compared_with(), chosen,
    )  # fmt: skip
    numbers.preferred = following.preferred
    return numbers


def _answers(pair: Pair, numbers: Points, following: _Next, found: AtPoints) -> Answers | None:
    """What one point says of each output; None where the same point is to be asked once more.

    Raises:
        ChainTooShort, Collision, NotModelled, OutOfBounds: As the walks do.
    """
    following.asked = following.bounds
    values = pair.draw(numbers)
    ours = found.run(pair, numbers, values)
    mine, numbers.told = numbers.told, set()
    numbers.bounds = following.asked = following.bounds and (following.of_both or not numbers.bounded)
    theirs, _ = pair.walked(numbers, 1, values)
    answers = [numbers.differs(a, b) for a, b in zip(ours, theirs, strict=True)]
    if pair.prepared.compares_with(numbers.met):
        # with the order of these
        return None
    if any(numbers.lost(v) for v in (*ours, *theirs)):
        raise NotModelled("a mask value or an infinity is computed with in a way that the model does not say")
    if not following.asked and any((different & says).any() for different, says in answers):
        following.bounds = following.of_both = True
        return None
    found.chose = found.chose or numbers.chose
    found.told = found.told or bool(mine | numbers.told)
    if not following.preferred.size and (apart := numbers.apart(mine, numbers.told)).size:
        # these decide whether the two tell the same: where a maximum is one of them
        following.preferred = apart
        return None
    following.preferred = NOBODY
    return answers


def not_same(pair: Pair) -> str:
    """Why one random point does not show that two are the same; "" where it does."""
    if pair.undrawn:
        return "integers that are data"
    said = at_points(pair, 1)
    if said.state == "same" and said.inside and said.defined:
        return ""
    return said.reason or ("the field differs" if said.state == "differs" else "an access out of bounds")
