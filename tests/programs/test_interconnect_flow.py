"""Bounds of the links against the best flow there is, found by a linear program on small lines, rings and tori."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

import pytest

from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.programs.interconnect import Coordinates, exchanged
from layoutproof.programs.record import Collective, Often, Place, Provenance, Record

optimize = pytest.importorskip("scipy.optimize", reason="scipy, which JAX brings, solves linear programs")

pytestmark = pytest.mark.slow

RINGS, LINES = (replace(CHIPS["v5e"], closes=closes) for closes in (1, 1000))
SIZE = 5040
"""Bytes on one device: a multiple of every number of devices here."""
Sends = list[tuple[int, tuple[int, ...], int]]
"""From a device to several, so many bytes: the same bytes to all of them, which may part on the way."""


def chips(extents: Sequence[int]) -> tuple[Coordinates, ...]:
    return tuple(product(*map(range, extents)))


def links(extents: Sequence[int], rings: bool) -> list[tuple[int, int]]:
    """Both ways of each link between neighbours."""
    places = chips(extents)
    number = {place: n for n, place in enumerate(places)}
    found = []
    for place, (k, extent) in product(places, enumerate(extents)):
        if place[k] + 1 < extent or (rings and extent > 2):
            beside = (*place[:k], (place[k] + 1) % extent, *place[k + 1 :])
            found += [(number[place], number[beside]), (number[beside], number[place])]
    return found


def best(sends: Sends, extents: Sequence[int], rings: bool) -> float:
    """Bytes over the busiest link, by the best of all routes.

    A flow for each pair, under the capacity that its source has on each link; these together within one capacity.
    """
    import numpy as np
    from scipy.sparse import coo_array

    ways = links(extents, rings)
    flows = [(s, to) for s, (_, targets, _) in enumerate(sends) for to in targets]
    many, width = prod(extents), len(ways)
    columns = (len(sends) + len(flows)) * width + 1
    equal: list[tuple[int, int, float]] = []
    right = np.zeros(len(flows) * many)
    under: list[tuple[int, int, float]] = []
    for f, (s, to) in enumerate(flows):
        source, _, size = sends[s]
        for w, (start, end) in enumerate(ways):
            column = (len(sends) + f) * width + w
            equal += [(f * many + start, column, 1), (f * many + end, column, -1)]
            under += [(width + f * width + w, column, 1), (width + f * width + w, s * width + w, -1)]
        right[f * many + source], right[f * many + to] = size, -size
    under += [(w, s * width + w, 1) for s in range(len(sends)) for w in range(width)]
    under += [(w, columns - 1, -1) for w in range(width)]

    def matrix(entries: list[tuple[int, int, float]], rows: int) -> object:
        at, column, value = zip(*entries, strict=True)
        return coo_array((value, (at, column)), shape=(rows, columns))

    cost = np.zeros(columns)
    cost[-1] = 1
    rows = width + len(flows) * width
    found = optimize.linprog(
        cost, A_ub=matrix(under, rows), b_ub=np.zeros(rows), A_eq=matrix(equal, len(right)), b_eq=right,
        method="highs",
    )  # fmt: skip
    assert found.status == 0, found.message
    return float(found.fun)


def sends_of(kind: str, groups: Sequence[Sequence[int]]) -> Sends:
    """What a collective sends, each device to others. Sums flow as gathers turned round."""
    if kind == "collective-permute":
        return [(start, (end,), SIZE) for start, end in groups if start != end]
    found: Sends = []
    for group in groups:
        for d in group:
            others, share = tuple(o for o in group if o != d), SIZE // len(group)
            if kind == "all-to-all":
                found += [(d, (o,), share) for o in others]
            else:
                found.append((d, others, share))
    return found


def bound(collectives: Sequence[tuple[str, Sequence[Sequence[int]]]], extents: Sequence[int], rings: bool) -> float:
    """Bytes over each link at the least, by the largest term."""
    made = Provenance(target="v5e", chips=chips(extents))
    shape = f"s8[{SIZE}]"
    rows = tuple(
        Collective(Place("it"), kind, f"{kind} over {','.join('{' + ','.join(map(str, g)) + '}' for g in groups)}",
                   len(groups), None, (shape,), (shape,), None, None, Often())
        for kind, groups in collectives
    )  # fmt: skip
    terms = exchanged(Record("step", made, collectives=rows), RINGS if rings else LINES).values()
    return max((term.bytes.least / term.links for term in terms), default=0)


def divided(many: int, parts: int, random_: random.Random) -> list[list[int]]:
    """Groups of so many devices, in any order."""
    order = random_.sample(range(many), many)
    return [order[start : start + parts] for start in range(0, many, parts)]


TORI = [(5,), (6,), (2, 3), (3, 3), (4, 2), (4, 4), (2, 2, 3)]


@pytest.mark.parametrize("rings", [True, False])
@pytest.mark.parametrize("extents", TORI)
def test_the_bound_of_pairs_is_below_the_best_flow(extents: tuple[int, ...], rings: bool) -> None:
    """Permutations and exchanges of all with all, alone and together: no routes are faster than the bound."""
    many = prod(extents)
    for seed in range(4):
        rng = random.Random(seed)
        pairs = list(zip(range(many), rng.sample(range(many), many), strict=True))[: rng.randint(1, many)]
        parts = rng.choice([n for n in range(2, many + 1) if many % n == 0])
        exchange = divided(many, parts, rng)
        sets: list[list[tuple[str, Sequence[Sequence[int]]]]] = [
            [("collective-permute", pairs)],
            [("all-to-all", exchange)],
            [("all-to-all", exchange), ("collective-permute", pairs)],
        ]
        for given in sets:
            truth = best([send for kind, groups in given for send in sends_of(kind, groups)], extents, rings)
            assert bound(given, extents, rings) <= truth * (1 + 1e-7), (given, truth)


@pytest.mark.parametrize("rings", [True, False])
@pytest.mark.parametrize("extents", [(5,), (2, 3), (3, 3), (4, 2)])
def test_the_bound_of_gathers_and_sums_is_below_the_best_flow(extents: tuple[int, ...], rings: bool) -> None:
    """A gather parts on its way; a reduce-scatter is one turned round; a sum is both, one after the other."""
    many = prod(extents)
    for seed in range(3):
        rng = random.Random(seed)
        groups = divided(many, rng.choice([n for n in range(2, many + 1) if many % n == 0]), rng)
        truth = best(sends_of("all-gather", groups), extents, rings) * (1 + 1e-7)
        assert bound([("all-gather", groups)], extents, rings) <= truth, groups
        assert bound([("reduce-scatter", groups)], extents, rings) <= truth, groups
        assert bound([("all-reduce", groups)], extents, rings) <= 2 * truth, groups


@pytest.mark.parametrize(
    ("extents", "rings", "kind", "groups"),
    [
        ((6,), True, "all-to-all", [range(6)]),
        ((5,), True, "all-to-all", [range(5)]),
        ((6,), False, "all-to-all", [range(6)]),
        ((4, 4), True, "all-to-all", [range(16)]),
        ((4, 4), False, "all-to-all", [range(4 * k, 4 * k + 4) for k in range(4)]),
        # to the next one on a ring: a part may go the long way round, so that it takes n - 1 of n
        ((6,), True, "collective-permute", [(d, (d + 1) % 6) for d in range(6)]),
        ((6,), True, "collective-permute", [(d, (d + 2) % 6) for d in range(6)]),
        ((6,), True, "collective-permute", [(d, (d + 3) % 6) for d in range(6)]),
        ((6,), False, "collective-permute", [(d, 5 - d) for d in range(6)]),
        ((4, 4), False, "collective-permute", [(d, 15 - d) for d in range(16)]),
        ((6,), True, "all-gather", [range(6)]),
        ((6,), False, "all-gather", [range(6)]),
    ],
)
def test_what_is_even_is_bounded_tightly(
    extents: tuple[int, ...], rings: bool, kind: str, groups: Sequence[Sequence[int]]
) -> None:
    """The bisection, the hops and the ends of lines are the best flow itself."""
    truth = best(sends_of(kind, groups), extents, rings)
    assert bound([(kind, groups)], extents, rings) == pytest.approx(truth, rel=1e-6)


def test_a_ring_that_is_taken_for_a_line_is_noticed() -> None:
    """The planted fault: with a link less than there is the bound is above the best flow, so that these tests fail."""
    every = [range(6)]
    assert bound([("all-to-all", every)], (6,), False) > 1.5 * best(sends_of("all-to-all", every), (6,), True)
    pairs = [(d, (d + 1) % 6) for d in range(6)]
    assert bound([("collective-permute", pairs)], (6,), False) > best(sends_of("collective-permute", pairs), (6,), True)
