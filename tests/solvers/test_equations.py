"""One linear equation over a box: the smallest two equal sums, by search, by sets of bits, and by trying all."""

from __future__ import annotations

import itertools
import random

import pytest

from layoutproof.core.errors import BudgetExceeded
from layoutproof.core.progressions import Progression
from layoutproof.solvers import equations
from layoutproof.solvers.equations import collides, smallest_pair, solution

STRIDES = (1, 2, 3, 4, 5, 6, 7, 8, 12, -1, -3, -4)
Pair = tuple[tuple[int, ...], ...]


def tried(moving: list[Progression], free: list[Progression]) -> Pair | None:
    """The smallest x < y with c and d that make one sum, by trying all in order."""

    def total(digits: tuple[int, ...], progressions: list[Progression]) -> int:
        return sum(v * s for v, (_, s) in zip(digits, progressions, strict=True))

    choices = list(itertools.product(*[range(e) for e, _ in moving]))
    copies = list(itertools.product(*[range(e) for e, _ in free]))
    for x, y in itertools.product(choices, repeat=2):
        for c, d in itertools.product(copies, repeat=2) if x < y else ():
            if total(x, moving) + total(c, free) == total(y, moving) + total(d, free):
                return x, y, c, d
    return None


def halves(found: list[int] | None, count: int) -> Pair | None:
    """x, y, c, d of the differences that `smallest_pair` gives."""
    if found is None:
        return None
    first, last = found[:count], found[count:]
    signs = ((first, -1), (first, 1), (last, 1), (last, -1))
    return tuple(tuple(max(0, sign * v) for v in part) for part, sign in signs)


def some(rng: random.Random) -> tuple[list[Progression], list[Progression]]:
    moving = [(rng.randint(2, 4), rng.choice(STRIDES)) for _ in range(rng.randint(1, 3))]
    return moving, [(rng.randint(2, 3), rng.choice(STRIDES)) for _ in range(rng.randint(0, 2))]


@pytest.mark.parametrize("steps", [equations.STEPS, 0])
def test_the_smallest_pair_is_the_one_that_trying_all_finds(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By search; and, where a search has no steps left, by bits."""
    monkeypatch.setattr(equations, "STEPS", steps)
    rng, refuted = random.Random(20261122), 0
    for _ in range(300):
        moving, free = some(rng)
        wanted = tried(moving, free)
        assert halves(smallest_pair(moving, free), len(moving)) == wanted, (moving, free)
        assert collides(moving, free) is (wanted is not None), (moving, free)
        refuted += wanted is not None
    assert 100 < refuted < 250


def test_extents_cost_nothing() -> None:
    """10**12 elements whose strides collide far apart: found by divisors and bounds, where no set of bits is."""
    assert smallest_pair([(10**6, 10**6), (10**6 + 1, 1)]) == [1, -(10**6)]
    assert smallest_pair([(10**6, 10**6), (10**6, 1)]) is None
    assert solution([10**9, 7], [(1, 10**9), (-(10**12), 10**12)]) == [7, -(10**9)]


def test_a_search_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither steps nor bits: no verdict."""
    monkeypatch.setattr(equations, "STEPS", 0)
    with pytest.raises(BudgetExceeded):
        smallest_pair([(10**6, 10**9), (10**6, 10**9 - 7), (10**6, 3)])
