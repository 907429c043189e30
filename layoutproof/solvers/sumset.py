"""The set of sums of arithmetic progressions, { start + sum of d_k * s_k | 0 <= d_k < e_k }: exact, without listing it.

Such sets decide almost everything about constant layouts: each coordinate takes the sums of its digits, and so do the
replicas of one element. A set of integers is (low, bits) where it is looked at: low + k is in it iff bit k is set.
Adding a progression is a shift and an or for each doubling of its extent, so a set that spans a million values costs
microseconds per progression. All integers are unbounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from layoutproof.core.errors import BudgetExceeded, Undecided
from layoutproof.core.progressions import Progression, low_high, values

Set = tuple[int, int]
"""(low, bits)."""

ZERO: Set = (0, 1)

EXACT = 1 << 24
"""Longest set in bits that a verdict looks at; a longer one is another engine's."""

LARGEST = 1 << 29
"""Longest set in bits at all (64 MiB)."""

FEW = 4096
"""Sums that are listed rather than kept as bits."""


def span(progressions: Iterable[Progression]) -> int:
    """Largest minus smallest sum."""
    return sum([abs(stride) * (extent - 1) for extent, stride in progressions])


def check(width: int, most: int = EXACT) -> None:
    """Raises Undecided when a set of this many values is too long."""
    if width >= most:
        raise BudgetExceeded(f"digits overlap within a coordinate, and its {width + 1} values are too many to look at")


def by_stride(progressions: Iterable[Progression]) -> list[tuple[int, int]]:
    """(|stride|, extent) of those that move anything, smallest stride first."""
    return sorted([(abs(stride), extent) for extent, stride in progressions if extent > 1])


def superincreasing(progressions: Iterable[Progression]) -> bool:
    """Whether each stride outweighs all smaller ones together, so that every digit can be read back from the sum.

    >>> superincreasing([(4, 1), (2, 4)]), superincreasing([(5, 1), (2, 4)])
    (True, False)
    """
    reach = 0
    for stride, extent in by_stride(progressions):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def gap(progressions: Iterable[Progression]) -> int:
    """How far the sums go up from the smallest one without a gap: that many consecutive values are reached.

    >>> gap([(4, 1), (2, 4)]), gap([(3, 1), (2, 4)])
    (8, 3)
    """
    reach = 1
    for stride, extent in by_stride(progressions):
        # sorted by stride, so nothing that follows can reach the value `reach` either
        if stride > reach:
            break
        reach += stride * (extent - 1)
    return reach


def saturated(progressions: Iterable[Progression]) -> tuple[Progression, ...]:
    """The same set of sums, apart from where it starts, from few progressions with positive strides, sorted by stride.

    Drops extents of 1 and strides of 0, turns negative strides round (start moves by (e-1)*s, see `low_high`), and
    absorbs (e, s), (f, q*s) with q <= e into (e + q*(f-1), s). Paper (arXiv:2601.19092): C0-C2; C2 is not confluent, so
    the result is one of several where gaps are missing (see `canonical_set`).

    >>> saturated([(4, 2), (2, 8), (3, 0), (2, -1)])
    ((16, 1),)
    """
    found = sorted([(abs(s), e) for e, s in progressions if e > 1 and s != 0])
    at = 0
    while at < len(found):
        stride, extent = found[at]
        for other in range(at + 1, len(found)):
            quotient, rest = divmod(found[other][0], stride)
            if rest == 0 and quotient <= extent:
                found[at] = (stride, extent + quotient * (found[other][1] - 1))
                del found[other]
                break
        else:
            at += 1
    return tuple([(e, s) for s, e in found])


def has_gaps(progressions: Sequence[Progression]) -> bool:
    """Whether extent*stride < next stride everywhere (paper: GC). Saturated lists with gaps are unique (Thm A.2)."""
    return all(e * s < t for (e, s), (_, t) in itertools.pairwise(progressions))


def cuts(progressions: Sequence[Progression], start: int) -> list[tuple[int, int]]:
    """Where progressions sorted by |stride| fall into groups that vanish one by one whenever start + sum vanishes.

    Gives (how many of them belong to the groups so far, the part of `start` that belongs to the group). The strides
    above a cut share a divisor that is more than everything below it can make.
    """
    divisor = 0
    above = [0] * (len(progressions) + 1)
    for k in range(len(progressions) - 1, -1, -1):
        divisor = math.gcd(divisor, progressions[k][1])
        above[k] = divisor
    found, below, rest = [], 0, start
    for k, (extent, stride) in enumerate(progressions):
        if k and above[k]:
            part = rest % above[k]
            part = part - above[k] if 2 * part > above[k] else part
            if below + abs(part) < above[k]:
                found.append((k, part))
                rest, below = rest - part, 0
        below += abs(stride) * (extent - 1)
    return [*found, (len(progressions), rest)]


def clusters(progressions: Sequence[Progression]) -> list[tuple[int, tuple[Progression, ...]]]:
    """The list cut wherever all strides above are multiples of a number g beyond what lies below: (g, the part / g).

    Each sum then is one sum of each part, in one way. Requires strides > 0, ascending.

    >>> clusters([(2, 2), (3, 3), (5, 1000), (4, 3000)])
    [(1, ((2, 2), (3, 3))), (1000, ((5, 1), (4, 3)))]
    """
    found: list[tuple[int, tuple[Progression, ...]]] = []
    start = 0
    for end, _ in cuts(progressions, 0):
        unit = math.gcd(*[s for _, s in progressions[start:]])
        if start < end:
            found.append((unit, tuple([(e, s // unit) for e, s in progressions[start:end]])))
        start = end
    return found


def count(progressions: Iterable[Progression]) -> int:
    """How many different sums there are, exactly. Raises Undecided beyond 2**29 values without structure.

    >>> count([(3, 2), (2, 3)]), count([(10**6, 10**7), (10**6, 1)])
    (6, 1000000000000)
    """
    total = 1
    for _, cluster in clusters(saturated(progressions)):
        choices = math.prod([extent for extent, _ in cluster])
        if superincreasing(cluster):
            total *= choices
        else:
            total *= len(values(cluster)) if choices <= FEW else bits_of(cluster).bit_count()
    return total


def add(some: Set, stride: int, first: int, last: int) -> Set:
    """All sums of a value and stride * v, first <= v <= last.

    >>> add(ZERO, 2, 0, 3) == (0, 0b1010101)
    True
    """
    low, bits = some
    done, many, step = 1, last - first + 1, abs(stride)
    while 2 * done <= many:
        bits |= bits << (step * done)
        done *= 2
    if done < many:
        bits |= bits << (step * (many - done))
    return low + min(stride * first, stride * last), bits


def sums(progressions: Iterable[Progression], start: Set = ZERO) -> Set:
    """All sums of one value of each progression and one of `start`."""
    for extent, stride in progressions:
        start = add(start, stride, 0, extent - 1)
    return start


def bits_of(progressions: Sequence[Progression]) -> int:
    """The sums as bits of one integer, bit 0 for the smallest. Raises Undecided where they would take over 64 MiB."""
    reach = span(progressions)
    if reach >= LARGEST:
        raise BudgetExceeded(f"a set of sums over {reach} places without structure is too large to list")
    return sums(progressions)[1]


def common(left: Set, right: Set) -> Set:
    """The intersection of two sets."""
    low = max(left[0], right[0])
    return low, (left[1] >> (low - left[0])) & (right[1] >> (low - right[0]))


def inside(left: Set, right: Set) -> bool:
    """Whether every value of `left` is one of `right`."""
    (low, bits), (low2, bits2) = left, right
    if low < low2:
        return False
    return not bits & ~(bits2 >> (low - low2))


def same_set(left: Sequence[Progression], right: Sequence[Progression]) -> bool:
    """Whether two lists have the same sums, apart from where they start. Raises Undecided where it cannot tell.

    >>> same_set([(6, 2), (2, 3)], [(3, 2), (4, 3)]), same_set([(2, 1)], [(2, 2)])
    (True, False)
    """
    one, other = saturated(left), saturated(right)
    if one == other:
        return True
    if low_high(one) != low_high(other):
        return False
    if has_gaps(one) and has_gaps(other):
        return False
    parts, others = clusters(one), clusters(other)
    if [unit for unit, _ in parts] != [unit for unit, _ in others]:
        parts, others = [(1, one)], [(1, other)]
    for (_, part), (_, match) in zip(parts, others, strict=True):
        if max(math.prod([e for e, _ in side]) for side in (part, match)) <= FEW:
            if values(part) != values(match):
                return False
        elif span(part) != span(match) or bits_of(part) != bits_of(match):
            return False
    return True


def canonical_set(progressions: Sequence[Progression]) -> tuple[Progression, ...]:
    """Progressions that depend on the set of sums only: equal sets, equal result.

    By saturation where that leaves gaps; otherwise the first decomposition with the smallest strides and the largest
    extents, for sets up to 4,096 elements. Beyond that the saturated list, which then is a choice.

    >>> canonical_set([(6, 2), (2, 3)]) == canonical_set([(3, 2), (4, 3)])
    True
    """
    few = saturated(progressions)
    if len(few) < 2 or has_gaps(few):
        return few
    try:
        target = frozenset(values(few, 0, FEW))
    except Undecided:
        return few
    return decompose(target) or few


def decompose(
    target: frozenset[int], base: frozenset[int] = frozenset({0}), budget: int = 20_000
) -> tuple[Progression, ...] | None:
    """The first list of progressions whose sums, added to `base`, are `target`; None when there is none in the budget.

    Requires 0 as the smallest element of both. Order: smallest stride first, then largest extent.

    >>> decompose(frozenset({0, 1, 2, 10, 11, 12}))
    ((3, 1), (2, 10))
    >>> decompose(frozenset({0, 1, 3})) is None
    True
    """
    steps = [budget]
    strides = sorted(target - {0})

    def extend(made: frozenset[int], first: int) -> tuple[Progression, ...] | None:
        if len(made) == len(target):
            return ()
        # all strides still to come are at least this one, so the smallest missing element bounds it
        missing = next(value for value in strides if value not in made)
        for at in range(first, len(strides)):
            stride = strides[at]
            if stride > missing:
                break
            grown, extents = made, []
            while True:
                steps[0] -= 1
                if steps[0] < 0:
                    return None
                more = grown | {value + stride for value in grown}
                if len(more) == len(grown) or not more <= target:
                    break
                grown = more
                extents.append(grown)
            for number in range(len(extents), 0, -1):
                rest = extend(extents[number - 1], at + 1)
                if rest is not None:
                    return ((number + 1, stride), *rest)
        return None

    return extend(base, 0) if base <= target else None
