"""Sums of arithmetic progressions, { start + sum of d_k * s_k | 0 <= d_k < e_k }: their ends, and one by one.

It is the set of numbers that a strided coordinate reaches. `solvers.sumset` decides questions about such sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layoutproof.core.errors import BudgetExceeded

Progression = tuple[int, int]
"""(extent, stride)."""

LISTED = 1 << 20
"""Sums that are listed one by one, at most."""


def low_high(progressions: Iterable[Progression], start: int = 0) -> tuple[int, int]:
    """The smallest and the largest sum.

    >>> low_high([(4, 10), (3, -1)], 5)
    (3, 35)
    """
    low = high = start
    for extent, stride in progressions:
        if stride > 0:
            high += stride * (extent - 1)
        else:
            low += stride * (extent - 1)
    return low, high


def values(progressions: Sequence[Progression], start: int = 0, most: int = LISTED) -> set[int]:
    """The different sums as a set. Raises Undecided for more than `most` combinations."""
    found = {start}
    for extent, stride in progressions:
        if extent == 1 or stride == 0:
            continue
        if len(found) * extent > most:
            raise BudgetExceeded(f"more than {most} places would have to be listed")
        found = {value + digit * stride for value in found for digit in range(extent)}
    return found
