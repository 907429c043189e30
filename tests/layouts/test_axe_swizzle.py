"""Swizzled addresses: where they end, against every address."""

from __future__ import annotations

import itertools
import random

from layoutproof.layouts.axe import AxeLayout
from layoutproof.layouts.axe.swizzle import Swizzle, reached, swizzled


def test_the_ends_of_what_a_swizzle_reaches() -> None:
    """By closed form where the sums are all of 0..highest, and only there."""
    rng, closed = random.Random(20261122), 0
    for number in range(400):
        moved = rng.randint(1, 2)
        s = Swizzle(rng.randint(0, 2), moved, rng.randint(moved, 2), rng.random() < 0.4)
        iters = [(rng.randint(1, 5), rng.randint(1, 4)) for _ in range(rng.randint(1, 3))]
        start = rng.choice((0, 0, 0, 1, 16))
        sums = [start + sum(row) for row in itertools.product(*[[k * t for k in range(e)] for e, t in iters])]
        addresses = [swizzled(at, s) for at in sums]
        assert reached(s, iters, start) == (min(addresses), max(addresses)), (number, s, iters, start)
        closed += sorted(set(sums)) == list(range(max(sums) + 1)) and max(addresses) != max(sums)
    assert closed > 20


def test_the_box_is_the_shape_where_it_is_stated() -> None:
    assert AxeLayout(((4, 8, "m"), (8, 1, "m"))).box() == (4, 8)
    assert AxeLayout(((4, 8, "m"), (8, 1, "m")), shape=(2, 16)).box() == (2, 16)
