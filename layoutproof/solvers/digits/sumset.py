"""One-dimensional sums of steps as bits of one int: what a coordinate of a layout takes for values, exactly.

A set of integers is (low, bits): low + k is in it iff bit k is set. Adding a digit with stride s and extent e is a
shift and an or for each doubling of e, so a set that spans a million values costs microseconds per digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from layoutproof.core.errors import Undecided

Step = tuple[int, int]
"""(stride, extent): stride * v for 0 <= v < extent."""

Set = tuple[int, int]
"""(low, bits)."""

ZERO: Set = (0, 1)

EXACT = 1 << 24
"""Longest set in bits; a longer one is another engine's."""

SEARCHED = 1 << 20
"""Longest set in bits among which a smallest counterexample is looked for."""


def span(steps: Iterable[Step]) -> int:
    """Largest minus smallest sum."""
    return sum(abs(stride) * (extent - 1) for stride, extent in steps)


def check(width: int, most: int = EXACT) -> None:
    """Raises Undecided when a set of this many values is too long."""
    if width >= most:
        raise Undecided(f"digits overlap within a coordinate, and its {width + 1} values are too many to look at")


def add(values: Set, stride: int, first: int, last: int) -> Set:
    """All sums of a value and stride * v, first <= v <= last.

    >>> add(ZERO, 2, 0, 3) == (0, 0b1010101)
    True
    """
    low, bits = values
    done, count, step = 1, last - first + 1, abs(stride)
    while 2 * done <= count:
        bits |= bits << (step * done)
        done *= 2
    if done < count:
        bits |= bits << (step * (count - done))
    return low + min(stride * first, stride * last), bits


def sums(steps: Iterable[Step], start: Set = ZERO) -> Set:
    """All sums of one value of each step."""
    for stride, extent in steps:
        start = add(start, stride, 0, extent - 1)
    return start


def common(left: Set, right: Set) -> Set:
    """What two sets share."""
    low = max(left[0], right[0])
    return low, (left[1] >> (low - left[0])) & (right[1] >> (low - right[0]))


def inside(left: Set, right: Set) -> bool:
    """Whether every value of `left` is one of `right`."""
    (low, bits), (low2, bits2) = left, right
    if low < low2:
        return False
    return not bits & ~(bits2 >> (low - low2))


def superincreasing(steps: Iterable[Step]) -> bool:
    """Whether each stride outweighs all smaller ones together, so that every digit can be read back from the sum.

    >>> superincreasing([(1, 4), (4, 2)]), superincreasing([(1, 5), (4, 2)])
    (True, False)
    """
    total = 0
    for stride, extent in sorted((abs(stride), extent) for stride, extent in steps):
        if stride <= total:
            return False
        total += stride * (extent - 1)
    return True


def gap(steps: Iterable[Step]) -> int:
    """How far the sums go up from the smallest one without a gap: that many consecutive values are reached.

    >>> gap([(1, 4), (4, 2)]), gap([(1, 3), (4, 2)])
    (8, 3)
    """
    reach = 1
    for stride, extent in sorted((abs(stride), extent) for stride, extent in steps):
        # sorted by stride, so nothing that follows can reach the value `reach` either
        if stride > reach:
            break
        reach += stride * (extent - 1)
    return reach


def normal(steps: Sequence[Step]) -> tuple[int, tuple[Step, ...]]:
    """The smallest sum, and steps with positive strides that make the rest; equal ones make equal sets.

    >>> normal([(4, 2), (-1, 4)])
    (-3, ((1, 8),))
    """
    merged: list[Step] = []
    for stride, extent in sorted((abs(stride), extent) for stride, extent in steps if stride and extent > 1):
        if merged:
            # a step of q strides after at least q of them leaves no gap: the two are one longer step
            times, over = divmod(stride, merged[-1][0])
            if over == 0 and times <= merged[-1][1]:
                merged[-1] = (merged[-1][0], merged[-1][1] + times * (extent - 1))
                continue
        merged.append((stride, extent))
    return sum(stride * (extent - 1) for stride, extent in steps if stride < 0), tuple(merged)


def cuts(steps: Sequence[Step], start: int) -> list[tuple[int, int]]:
    """Where steps sorted by |stride| fall into groups that vanish one by one whenever start + sum vanishes.

    Gives (how many steps belong to the groups so far, the part of `start` that belongs to the group). The strides above
    a cut share a divisor that is more than everything below it can make.
    """
    divisor = 0
    above = [0] * (len(steps) + 1)
    for k in range(len(steps) - 1, -1, -1):
        divisor = gcd(divisor, steps[k][0])
        above[k] = divisor
    found, below, rest = [], 0, start
    for k, step in enumerate(steps):
        if k and above[k]:
            part = rest % above[k]
            part = part - above[k] if 2 * part > above[k] else part
            if below + abs(part) < above[k]:
                found.append((k, part))
                rest, below = rest - part, 0
        below += span([step])
    return [*found, (len(steps), rest)]


def smallest_zero(steps: Sequence[Step], ranges: Sequence[Step], order: Sequence[Step]) -> list[int] | None:
    """Values z_k in ranges[k] with sum of strides[k] * z_k == 0, the least in this order; None when there are none.

    steps: only the strides count.  order: pairs (k, sign); what is made as small as possible, one after the other, is
    max(0, sign * z_k).
    """
    bounds = [list(pair) for pair in ranges]
    if not common(_sum_of(steps, bounds, None), ZERO)[1]:
        return None
    for k, sign in order:
        low, high = bounds[k]
        if low == high:
            continue
        stride = -steps[k][0]
        others = _sum_of(steps, bounds, k)
        # with sign * z <= 0 this entry counts for nothing
        idle = (low, min(0, high)) if sign > 0 else (max(0, low), high)
        if idle[0] <= idle[1] and common(add(ZERO, stride, *idle), others)[1]:
            bounds[k] = [*idle]
            continue
        busy = (max(1, low), high) if sign > 0 else (low, min(-1, high))
        start, bits = common(add(ZERO, stride, *busy), others)
        # values grow with the entry's magnitude or shrink with it; the entry nearest to 0 is at one end
        nearest = start + ((bits & -bits).bit_length() if stride * sign > 0 else bits.bit_length()) - 1
        bounds[k] = [nearest // stride, nearest // stride]
    return [low for low, _ in bounds]


def _sum_of(steps: Sequence[Step], bounds: Sequence[Sequence[int]], but: int | None) -> Set:
    total = ZERO
    for k, ((stride, _), (low, high)) in enumerate(zip(steps, bounds, strict=True)):
        if k != but:
            total = add(total, stride, low, high)
    return total


def smallest_missing(steps: Sequence[Step], start: int, among: Set) -> list[int] | None:
    """The lexicographically smallest values whose sum with `start` is not in `among`; None when all are."""
    after = [ZERO]
    for step in reversed(steps):
        after.append(sums([step], after[-1]))
    after.reverse()
    if inside(_shifted(after[0], start), among):
        return None
    found = []
    for k, (stride, extent) in enumerate(steps):
        low, high = 0, extent - 1
        while low < high:
            middle = (low + high) // 2
            if inside(_shifted(add(after[k + 1], stride, low, middle), start), among):
                low = middle + 1
            else:
                high = middle
        found.append(low)
        start += stride * low
    return found


def _shifted(values: Set, by: int) -> Set:
    return values[0] + by, values[1]
