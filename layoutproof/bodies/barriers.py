"""How far apart barriers keep the effects of two subcores of a core: in which segment of its run each effect is.

A subcore is in segment n when it has passed n barriers. Effects of two subcores of one core in different
segments do not overlap. Only barriers count that every program reaches equally often: under no condition, in
loops that run equally often in all programs. Of other barriers it is asked whether they are reached (`odd`).
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.bodies.effects import Body, Loop, Spot, StartedCopy, Wait
from layoutproof.core.folding import linear
from layoutproof.core.term import ONE, ZERO, Term


def is_even(barrier: Spot) -> bool:
    """Whether every program surely comes to a barrier equally often."""
    return not barrier.path and all(loop.count is not None and loop.count.op == "int" for loop in barrier.loops)


def odd(body: Body) -> tuple[Spot, ...]:
    """The barriers of which it is to be asked whether all subcores of a core reach them equally often."""
    return tuple(one for one in body.barriers if not is_even(one))


def segment(body: Body, spot: Spot) -> Term:
    """How many barriers, of those that all programs reach, a program has passed when an effect happens."""
    parts: list[tuple[int, Term]] = []
    for barrier in body.barriers:
        if not is_even(barrier):
            continue
        common = [one for one, other in zip(barrier.loops, spot.loops, strict=False) if one is other]
        inner = 1
        for loop in barrier.loops[len(common) :]:
            inner *= _times(loop)
        # turns of the common loops that have ended, each with all that it passes
        scale = inner
        for loop in reversed(common):
            parts.append((scale, Term("name", loop.name)))
            scale *= _times(loop)
        if barrier.number <= spot.number:
            parts.append((inner, ONE))
    return linear(parts) if parts else ZERO


def _times(loop: Loop) -> int:
    return int(loop.count.args[0]) if loop.count is not None else 0


def ends_in_its_segment(body: Body, copy: StartedCopy) -> bool:
    """Whether a copy has surely ended when its subcore comes to the next barrier.

    Between the barriers around its start as many copies are waited for as are started on its semaphore.
    """
    if not body.barriers:
        return True
    before = max((one.number for one in body.barriers if one.number <= copy.spot.number), default=0)
    after = min((one.number for one in body.barriers if one.number > copy.spot.number), default=len(body.effects))
    semaphore = copy.semaphore.reference
    own = [
        effect
        for effect in body.effects[before:after]
        if isinstance(effect, StartedCopy | Wait) and effect.semaphore.reference is semaphore
    ]
    waits = [effect for effect in own if isinstance(effect, Wait)]
    plain = all(_alike(effect.spot, copy.spot) for effect in own)
    return plain and 2 * len(waits) == len(own) and waits[-1].spot.number > copy.spot.number


def _alike(one: Spot, other: Spot) -> bool:
    return one.loops == other.loops and _conditions(one.path) == _conditions(other.path)


def _conditions(path: Sequence[Term]) -> list[int]:
    return list(map(id, path))
