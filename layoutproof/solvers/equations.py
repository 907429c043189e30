"""One linear equation over a box of integers, sum of s_k * z_k = c: a solution, and the smallest pair of equal sums.

Strides of real layouts leave few choices: with the largest stride first, the range of the smaller ones and their
common divisor leave one or two values for each digit, for all extents. Where strides are too alike for that, sets
of sums as bits take over (`sumset`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import gcd, prod

from layoutproof.core.errors import BudgetExceeded
from layoutproof.core.progressions import Progression
from layoutproof.solvers.sumset import ZERO, Set, add, check, common, count, inside, span, sums, superincreasing

STEPS = 2_000
"""Choices of digits looked at in one search."""

SEARCHED = 1 << 20
"""Longest set in bits among which a smallest counterexample is looked for."""

Range = tuple[int, int]
"""(first, last)."""

Order = Sequence[tuple[int, int]]
"""Pairs (k, sign): the lexicographic objective max(0, sign * z_k)."""


class TooManySteps(BudgetExceeded):
    """A search that takes more than its steps."""


def solution(strides: Sequence[int], ranges: Sequence[Range], target: int = 0) -> list[int] | None:
    """Values z_k in ranges[k] with sum of strides[k] * z_k == target; None when there are none.

    Raises TooMany after `STEPS` choices.

    >>> solution([3, 5], [(-5, 5), (1, 3)]), solution([2, 4], [(0, 9), (0, 9)], 3)
    ([-5, 3], None)
    """
    return next(solutions(strides, ranges, target, STEPS), None)


def solutions(strides: Sequence[int], ranges: Sequence[Range], target: int, steps: int) -> Iterator[list[int]]:
    """All values z_k in ranges[k] with sum of strides[k] * z_k == target, each once.

    A z_k whose stride is 0 stays at the first value of its range. Raises TooMany after `steps` choices.

    >>> list(solutions([2, 3], [(0, 3), (0, 3)], 6, 99))
    [[3, 0], [0, 2]]
    """
    values: list[int] = []
    free: list[tuple[int, int]] = []
    low = high = shared = 0
    for k, ((first, last), stride) in enumerate(zip(ranges, strides, strict=True)):
        values.append(first)
        if first >= last or not stride:
            if first > last:
                return
            target -= stride * first
        else:
            low, high = (
                (low + stride * first, high + stride * last)
                if stride > 0
                else (low + stride * last, high + stride * first)
            )
            shared = gcd(shared, stride)
            free.append((abs(stride), k))
    if not low <= target <= high or (shared and target % shared):
        return
    if len(free) == 1:
        k = free[0][1]
        values[k] = target // strides[k]
    if len(free) < 2:
        yield values
        return
    free.sort(reverse=True)
    # of the digits after each: the least and the largest sum, and the divisor of all their strides
    least = [0] * (len(free) + 1)
    most = [0] * (len(free) + 1)
    divisor = [0] * (len(free) + 1)
    for at in range(len(free) - 1, -1, -1):
        size, k = free[at]
        ends = strides[k] * ranges[k][0], strides[k] * ranges[k][1]
        least[at], most[at] = least[at + 1] + min(ends), most[at + 1] + max(ends)
        divisor[at] = gcd(divisor[at + 1], size)

    def choices(at: int, left: int) -> Iterator[int]:
        """Values of a digit, the smallest first, for which the others are not yet known to miss `left`."""
        _, k = free[at]
        stride, (first, last), shared = strides[k], ranges[k], divisor[at + 1]
        low, high = left - most[at + 1], left - least[at + 1]
        if stride < 0:
            low, high, stride, left = -high, -low, -stride, -left
        first, last = max(first, -(-low // stride)), min(last, high // stride)
        if first > last:
            return iter(())
        step = shared // gcd(stride, shared) if shared else 1
        if step > 1:
            # stride * z must leave the rest that the others, all multiples of `shared`, cannot make
            ours = gcd(stride, shared)
            first += (left // ours * pow(stride // ours, -1, step) - first) % step
        if first >= 0:
            return iter(range(first, last + 1, step))
        last -= (last - first) % step
        middle = min(first % step, last + step)
        return itertools.chain(range(middle, last + 1, step), range(middle - step, first - 1, -step))

    failed: set[tuple[int, int]] = set()
    lefts = [target]
    open_ = [choices(0, target)]
    # how many solutions there were when each was opened: without a new one, the rest there has none
    found, before = 0, [0]
    for _ in range(steps):
        at = len(open_) - 1
        value = next(open_[at], None)
        if value is None:
            left = lefts.pop()
            if found == before.pop():
                failed.add((at, left))
            open_.pop()
            if not open_:
                return
            continue
        k = free[at][1]
        values[k] = value
        left = lefts[at] - strides[k] * value
        if at + 1 == len(free):
            found += 1
            yield list(values)
        elif (at + 1, left) not in failed:
            lefts.append(left)
            open_.append(choices(at + 1, left))
            before.append(found)
    raise TooManySteps(f"{steps} choices of digits were looked at")


def collides(moving: Sequence[Progression], free: Sequence[Progression] = ()) -> bool:
    """Whether two different choices of `moving`'s digits, each with any digits of `free`, have one sum.

    Exact. Raises Undecided where neither search nor a bit set can tell.

    >>> collides([(4, 1), (4, 1)]), collides([(2, 2), (2, 3)])
    (True, False)
    >>> collides([(4, 1)], [(2, 3)]), collides([(4, 1)], [(2, 4)])
    (True, False)
    """
    moving = [(e, s) for e, s in moving if e > 1]
    if any(s == 0 for _, s in moving):
        return True
    if superincreasing([*moving, *free]):
        return False
    strides = _differences(moving, free)
    try:
        return any(solution(strides, _ranges(moving, free, first)) for first in range(len(moving)))
    except TooManySteps:
        return count([*moving, *free]) != prod([e for e, _ in moving]) * count(free)


def smallest_pair(moving: Sequence[Progression], free: Sequence[Progression] = ()) -> list[int] | None:
    """The smallest two choices x < y of `moving`'s digits with c, d of `free`'s of which x, c and y, d have one sum.

    Given as y - x in each digit, then c - d; at most one of the two is not 0. Smallest are the digits of x, of y, of c
    and of d, in this order. None when there is no such pair. Raises Undecided where neither search nor a set of a
    million bits can tell.

    >>> smallest_pair([(3, 4), (5, 1)]), smallest_pair([(4, 1)], [(2, 3)])
    ([1, -4], [3, 1])
    >>> smallest_pair([(2, 2), (2, 3)])
    """
    strides = _differences(moving, free)
    order = [(k, sign) for sign in (-1, 1) for k in range(len(moving))]
    order += [(k, sign) for sign in (1, -1) for k in range(len(moving), len(strides))]
    try:
        return _pair_by_search(strides, moving, free, order)
    except TooManySteps:
        return _pair_by_bits(strides, moving, free, order)


def _differences(moving: Sequence[Progression], free: Sequence[Progression]) -> list[int]:
    return [s for _, s in moving] + [-s for _, s in free]


def _ranges(moving: Sequence[Progression], free: Sequence[Progression], first: int) -> list[Range]:
    """The ranges of differences where x < y differ in no digit before `first`."""
    ranges = [(1 - e, e - 1) for e, _ in (*moving, *free)]
    ranges[: first + 1] = [*[(0, 0)] * first, (1, moving[first][0] - 1)]
    return ranges


def _key(differences: Sequence[int], order: Order) -> list[int]:
    return [max(0, sign * differences[k]) for k, sign in order]


def _pair_by_search(
    strides: Sequence[int], moving: Sequence[Progression], free: Sequence[Progression], order: Order
) -> list[int] | None:
    best: list[int] | None = None
    zeros = 0
    for first in range(len(moving) - 1, -1, -1):
        ranges = _ranges(moving, free, first)
        for k in range(first + 1, zeros):
            # a smaller pair has no larger digit of x where the best one so far has a 0
            ranges[k] = (0, ranges[k][1])
        found = solution(strides, ranges)
        if found is None:
            continue
        found = _smallest(strides, ranges, order, found)
        if best is None or _key(found, order) < _key(best, order):
            best = found
            zeros = next((k for k in range(len(moving)) if found[k] < 0), len(moving))
            if zeros == len(moving):
                # x is 0 throughout, and y is larger where it starts with an earlier digit
                break
    return best


def _smallest(strides: Sequence[int], ranges: Sequence[Range], order: Order, found: list[int]) -> list[int]:
    """The least solution in this order, given one."""
    bounds = [*ranges]
    for k, sign in order:
        low, high = bounds[k]
        if low == high:
            continue
        idle = (low, min(0, high)) if sign > 0 else (max(0, low), high)
        if sign * found[k] <= 0:
            bounds[k] = idle
            continue
        smallest = max(0, low if sign > 0 else -high)
        while smallest < sign * found[k]:
            # 0 first, which mostly does; then halves
            middle = 0 if smallest == 0 else (smallest + sign * found[k]) // 2
            bounds[k] = idle if middle == 0 else (smallest, middle) if sign > 0 else (-middle, -smallest)
            better = solution(strides, bounds)
            if better is None:
                smallest = middle + 1
            else:
                found = better
                if middle == 0:
                    break
        else:
            bounds[k] = (found[k], found[k])
    return found


def _pair_by_bits(
    strides: Sequence[int], moving: Sequence[Progression], free: Sequence[Progression], order: Order
) -> list[int] | None:
    width = span([*moving, *free])
    check(width)
    divisor = gcd(*strides)
    replicas = sums([(e, s // divisor) for e, s in free])
    everything = sums([(e, s // divisor) for e, s in moving], replicas)
    if everything[1].bit_count() == prod([e for e, _ in moving]) * replicas[1].bit_count():
        return None
    check(2 * width, SEARCHED)
    found = [smallest_zero(strides, _ranges(moving, free, first), order) for first in range(len(moving))]
    return min([each for each in found if each is not None], key=lambda each: _key(each, order))


def smallest_zero(strides: Sequence[int], ranges: Sequence[Range], order: Order) -> list[int] | None:
    """Values z_k in ranges[k] with sum of strides[k] * z_k == 0, the least in this order, by sets of sums as bits.

    >>> smallest_zero([4, 1], [(1, 2), (-4, 4)], [(1, -1), (0, 1)])
    [1, -4]
    """
    bounds = [*ranges]
    if not common(_sum_of(strides, bounds, None), ZERO)[1]:
        return None
    for k, sign in order:
        low, high = bounds[k]
        if low == high:
            continue
        stride = -strides[k]
        others = _sum_of(strides, bounds, k)
        # with sign * z <= 0 this entry counts for nothing
        idle = (low, min(0, high)) if sign > 0 else (max(0, low), high)
        if idle[0] <= idle[1] and common(add(ZERO, stride, *idle), others)[1]:
            bounds[k] = idle
            continue
        busy = (max(1, low), high) if sign > 0 else (low, min(-1, high))
        start, bits = common(add(ZERO, stride, *busy), others)
        # values grow with the entry's magnitude or shrink with it; the entry nearest to 0 is at one end
        nearest = start + ((bits & -bits).bit_length() if stride * sign > 0 else bits.bit_length()) - 1
        bounds[k] = (nearest // stride, nearest // stride)
    return [low for low, _ in bounds]


def _sum_of(strides: Sequence[int], bounds: Sequence[Range], but: int | None) -> Set:
    total = ZERO
    for k, (stride, (low, high)) in enumerate(zip(strides, bounds, strict=True)):
        if k != but:
            total = add(total, stride, low, high)
    return total


def smallest_missing(progressions: Sequence[Progression], start: int, among: Set) -> list[int] | None:
    """The lexicographically smallest digits whose sum with `start` is not in `among`; None when all are."""
    after = [ZERO]
    for each in reversed(progressions):
        after.append(sums([each], after[-1]))
    after.reverse()
    if inside(_shifted(after[0], start), among):
        return None
    found = []
    for k, (extent, stride) in enumerate(progressions):
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


def _shifted(some: Set, by: int) -> Set:
    return some[0] + by, some[1]
