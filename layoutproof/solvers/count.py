"""Counting places: by structure or rank where that is possible, one by one where there are few."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from math import prod

from layoutproof.core.counting import Tally
from layoutproof.core.errors import BudgetExceeded, Undecided, Unsupported
from layoutproof.core.index_map import IndexMap
from layoutproof.solvers import bits
from layoutproof.solvers.digits.counts import tally as by_digits

MOST = 100_000
"""Elements times replicas that are looked at one by one."""


def count(m: IndexMap) -> Tally:
    """The numbers of a map of constant size; Undecided for sizes that are not known and for too many elements.

    >>> from layoutproof.core.space import Space
    >>> count(IndexMap(Space(("i",), (6,)), Space(("o",), (4,)), lambda x, c, on: (x[0] // 2,)))
    Tally(places=3, inside=3, low=(0,), high=(2,), fewest=2, most=2)
    """
    if m.sizes():
        raise Unsupported(f"the size {m.sizes()[0]} is not known, so places cannot be counted")
    if bits.is_matrix(m):
        with contextlib.suppress(Undecided):
            return bits.tally(m)
    try:
        return by_digits(m)
    except Undecided as undecided:
        with contextlib.suppress(Undecided):
            return bits.tally(m)
        boxes: list[tuple[int, ...]] = [m.domain.extents, m.replicas.extents]  # type: ignore[list-item]
        if prod(boxes[0]) * prod(boxes[1]) > MOST:
            raise BudgetExceeded(f"{undecided}; and there are more than {MOST} places to count one by one") from None
    return one_by_one(m)


def one_by_one(m: IndexMap) -> Tally:
    """The same by looking at every element and replica."""
    elements: defaultdict[tuple[int, ...], int] = defaultdict(int)
    for index in itertools.product(*map(range, m.domain.extents)):  # type: ignore[arg-type]
        replicas = itertools.product(*map(range, m.replicas.extents))  # type: ignore[arg-type]
        for place in {m.at(index, replica) for replica in replicas}:
            elements[place] += 1
    columns = list(zip(*elements, strict=True))
    extents: tuple[int, ...] = m.range.extents  # type: ignore[assignment]
    inside = [p for p in elements if not extents or all(0 <= v < e for v, e in zip(p, extents, strict=True))]
    return Tally(
        len(elements),
        len(inside),
        tuple(map(min, columns)),
        tuple(map(max, columns)),
        min(elements.values()),
        max(elements.values()),
    )
