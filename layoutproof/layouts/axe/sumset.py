"""Sums of arithmetic progressions: the coordinates that a layout reaches on one axis.

{ start + sum d_k*s_k | 0 <= d_k < e_k } for a list of (e, s). Such sets decide almost everything about constant
layouts: the image of a whole layout is the product of one set per axis (each iter is on one axis), its copies too.
All integers are unbounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from layoutproof.core.errors import Undecided

ENUMERATED = 1 << 20
"""Sums that are listed one by one, at most."""
LARGEST_BITSET = 1 << 29
"""Bits of the largest set kept as one integer (64 MiB)."""
Progression = tuple[int, int]
"""(extent, stride)."""


def low_high(iters: Sequence[Progression], start: int = 0) -> tuple[int, int]:
    """The smallest and the largest sum.

    >>> low_high([(4, 10), (3, -1)], 5)
    (3, 35)
    """
    low = high = start
    for extent, stride in iters:
        if stride > 0:
            high += stride * (extent - 1)
        else:
            low += stride * (extent - 1)
    return low, high


def superincreasing(iters: Sequence[Progression]) -> bool:
    """Whether each stride exceeds the sum of what all smaller ones reach; then all digits give different sums."""
    reach = 0
    for stride, extent in sorted([(abs(s), e) for e, s in iters if e > 1]):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def saturated(iters: Sequence[Progression]) -> tuple[Progression, ...]:
    """The same set of sums, apart from where it starts, from few progressions with positive strides, sorted by stride.

    Drops extents of 1 and strides of 0, turns negative strides round (start moves by (e-1)*s, see `low_high`), and
    absorbs (e, s), (f, q*s) with q <= e into (e + q*(f-1), s). Paper: C0-C2; C2 is not confluent, so the result is
    one of several where gaps are missing (see `canonical_set`).

    >>> saturated([(4, 2), (2, 8), (3, 0), (2, -1)])
    ((16, 1),)
    """
    found = sorted([(abs(s), e) for e, s in iters if e > 1 and s != 0])
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


def gaps(progressions: Sequence[Progression]) -> bool:
    """Whether extent*stride < next stride everywhere (paper: GC). Saturated lists with gaps are unique (Thm A.2)."""
    return all(e * s < t for (e, s), (_, t) in itertools.pairwise(progressions))


def count(iters: Sequence[Progression]) -> int:
    """How many different sums there are, exactly. Raises Undecided beyond 2**29 values without structure.

    >>> count([(3, 2), (2, 3)]), count([(10**6, 10**7), (10**6, 1)])
    (6, 1000000000000)
    """
    total = 1
    for _, cluster in clusters(saturated(iters)):
        if superincreasing(cluster):
            for extent, _ in cluster:
                total *= extent
        else:
            total *= len(_listed(cluster)) if _small(cluster) else bitset(cluster).bit_count()
    return total


def clusters(progressions: Sequence[Progression]) -> list[tuple[int, tuple[Progression, ...]]]:
    """The list cut wherever all strides above are multiples of a number g beyond what lies below: (g, the part / g).

    Each sum then is one sum of each part, in one way. Requires strides > 0, ascending.

    >>> clusters([(2, 2), (3, 3), (5, 1000), (4, 3000)])
    [(1, ((2, 2), (3, 3))), (1000, ((5, 1), (4, 3)))]
    """
    above = [0] * (len(progressions) + 1)
    for at in range(len(progressions) - 1, -1, -1):
        above[at] = math.gcd(above[at + 1], progressions[at][1])
    found: list[tuple[int, tuple[Progression, ...]]] = []
    start, unit, reach = 0, above[0], 0
    for at, (extent, stride) in enumerate(progressions):
        if reach and above[at] > reach:
            found.append((unit, tuple([(e, s // unit) for e, s in progressions[start:at]])))
            start, unit, reach = at, above[at], 0
        reach += stride * (extent - 1)
    if start < len(progressions):
        found.append((unit, tuple([(e, s // unit) for e, s in progressions[start:]])))
    return found


def _small(progressions: Sequence[Progression]) -> bool:
    return math.prod([e for e, _ in progressions]) <= 4096


def _listed(progressions: Sequence[Progression]) -> set[int]:
    return values(progressions, 0)


def bitset(progressions: Sequence[Progression]) -> int:
    """The sums as bits of one integer, bit 0 for the start. Requires strides > 0."""
    reach = sum(s * (e - 1) for e, s in progressions)
    if reach >= LARGEST_BITSET:
        raise Undecided(f"a set of sums over {reach} places without structure is too large to list")
    bits = 1
    for extent, stride in progressions:
        # doubling: after k copies are there, as many again at distance k
        have = 1
        while have < extent:
            more = min(have, extent - have)
            bits |= bits << (more * stride)
            have += more
    return bits


def values(iters: Sequence[Progression], start: int = 0, most: int = ENUMERATED) -> set[int]:
    """The different sums as a set. Raises Undecided for more than `most` combinations."""
    total = 1
    few = [(e, s) for e, s in iters if e > 1 and s != 0]
    found = {start}
    for extent, stride in few:
        total = len(found) * extent
        if total > most:
            raise Undecided(f"more than {most} places would have to be listed")
        found = {value + digit * stride for value in found for digit in range(extent)}
    return found


def canonical_set(iters: Sequence[Progression]) -> tuple[Progression, ...]:
    """Progressions that depend on the set of sums only: equal sets, equal result.

    By saturation where that leaves gaps; otherwise the first decomposition with the smallest strides and the largest
    extents, for sets up to 4,096 elements. Beyond that the saturated list, which then is a choice.

    >>> canonical_set([(6, 2), (2, 3)]) == canonical_set([(3, 2), (4, 3)])
    True
    """
    few = saturated(iters)
    if len(few) < 2 or gaps(few):
        return few
    try:
        target = frozenset(values(few, 0, 4096))
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
    if gaps(one) and gaps(other):
        return False
    parts, others = clusters(one), clusters(other)
    if [unit for unit, _ in parts] != [unit for unit, _ in others]:
        parts, others = [(1, one)], [(1, other)]
    for (_, part), (_, match) in zip(parts, others, strict=True):
        if _small(part) and _small(match):
            if _listed(part) != _listed(match):
                return False
        elif low_high(part) != low_high(match) or bitset(part) != bitset(match):
            return False
    return True
