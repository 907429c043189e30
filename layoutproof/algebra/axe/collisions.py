"""Whether two choices of digits give one sum: an exact search, with a count of all sums where it takes too long."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.layouts.axe.sumset import Progression, count, superincreasing

STEPS = 20_000
"""Steps of the search for two equal sums before all sums are counted instead."""


def collides(moving: Sequence[Progression], free: Sequence[Progression] = ()) -> bool:
    """Whether two different choices of `moving`'s digits, each with any digits of `free`, have one sum.

    Exact. Raises Undecided where neither search nor a bit set can tell.

    >>> collides([(4, 1), (4, 1)]), collides([(2, 2), (2, 3)])
    (True, False)
    >>> collides([(4, 1)], [(2, 3)]), collides([(4, 1)], [(2, 4)])
    (True, False)
    """
    if superincreasing([*moving, *free]) and all(s != 0 for e, s in moving if e > 1):
        return False
    if any(e > 1 and s == 0 for e, s in moving):
        return True
    found = _equal_sums(moving, free)
    if found is not None:
        return found
    elements = 1
    for extent, _ in moving:
        elements *= extent
    return count([*moving, *free]) != elements * count(free)


def _equal_sums(moving: Sequence[Progression], free: Sequence[Progression]) -> bool | None:
    """Whether differences of digits, not all of `moving`'s zero, sum to zero; None when the search takes too long."""
    digits = sorted(
        [(abs(s), e, True) for e, s in moving if e > 1] + [(abs(s), e, False) for e, s in free if e > 1 and s],
        reverse=True,
    )
    reaches = [0] * (len(digits) + 1)
    for at in range(len(digits) - 1, -1, -1):
        reaches[at] = reaches[at + 1] + digits[at][0] * (digits[at][1] - 1)
    failed: set[tuple[int, int, bool]] = set()
    stack = [(0, 0, False)]
    while stack:
        state = stack.pop()
        at, left, moved = state
        if at == len(digits):
            if left == 0 and moved:
                return True
            continue
        if state in failed:
            continue
        failed.add(state)
        if len(failed) > STEPS:
            return None
        stride, extent, counts = digits[at]
        lowest = max(1 - extent, -((left + reaches[at + 1]) // stride))
        highest = min(extent - 1, (reaches[at + 1] - left) // stride)
        if highest - lowest > STEPS:
            return None
        for digit in range(lowest, highest + 1):
            stack.append((at + 1, left + digit * stride, moved or (counts and digit != 0)))
    return False
