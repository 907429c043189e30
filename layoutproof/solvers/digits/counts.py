"""How many places a map reaches and how evenly, exactly: coordinates without common digits multiply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from layoutproof.core.counting import Tally
from layoutproof.core.errors import BudgetExceeded, Unsupported
from layoutproof.core.index_map import IndexMap
from layoutproof.core.progressions import Progression, low_high
from layoutproof.solvers.digits import DIGITS, placed
from layoutproof.solvers.digits.sets import check_independent, forms_of, is_exact
from layoutproof.solvers.sumset import check, cuts, span, sums, superincreasing

MOST = 1 << 20
"""Most additions made to count how many elements share each coordinate."""


def tally(m: IndexMap) -> Tally:
    """The numbers of a map of constant size. Raises Undecided where coordinates share digits or divisors do not nest.

    >>> from layoutproof.core.space import Space
    >>> rows = IndexMap(Space(("i",), (6,)), Space(("o",), (9,)), lambda x, c, on: (4 * (x[0] // 3) + x[0] % 3,))
    >>> tally(rows)
    Tally(places=6, inside=6, low=(0,), high=(6,), fewest=1, most=1)
    """
    roots, coordinates = placed(m, DIGITS)
    forms = forms_of(coordinates, roots)
    check_independent(forms)
    if not all(is_exact(root) for root in roots):
        raise Unsupported("digits count only where divisors nest evenly")
    rank = len(m.domain.extents)
    extents = m.range.extents or [None] * len(forms)
    places, inside, fewest, most, low, high = 1, 1, 1, 1, [], []
    for (form, constant), extent in zip(forms, extents, strict=True):
        own = [(d.extent, c) for d, c in form.items() if d.dimension < rank]
        others = [(d.extent, c) for d, c in form.items() if d.dimension >= rank]
        ends = low_high([*own, *others], constant)
        low.append(ends[0])
        high.append(ends[1])
        reached, elements = _spread(own, others)
        places *= reached
        fewest *= elements[0]
        most *= elements[1]
        box = ends[1] + 1 if extent is None else DIGITS.size(extent)
        inside *= reached if ends[0] >= 0 and ends[1] < box else _reached([*own, *others], constant, box)
    shown = {digit for form, _ in forms for digit in form}
    leaves = [leaf for root in roots for leaf in root.leaves()]
    hidden = prod(leaf.extent for leaf in leaves if leaf.dimension < rank and leaf not in shown)
    return Tally(places, inside, tuple(low), tuple(high), fewest * hidden, most * hidden)


def _spread(own: Sequence[Progression], others: Sequence[Progression]) -> tuple[int, tuple[int, int]]:
    """How many different sums there are, and how many choices of `own` the least and the most common of them have."""
    if superincreasing([*own, *others]):
        return prod(extent for extent, _ in [*own, *others]), (1, 1)
    # strides that cannot reach each other count on their own
    ordered = sorted([(abs(s), s, e, True) for e, s in own] + [(abs(s), s, e, False) for e, s in others])
    reached, fewest, most, start = 1, 1, 1, 0
    for end, _ in cuts([(extent, stride) for _, stride, extent, _ in ordered], 0):
        group = ordered[start:end]
        start = end
        parts = [[(extent, stride) for _, stride, extent, is_own in group if is_own is kind] for kind in (True, False)]
        found = _spread_of_group(*parts)
        reached, fewest, most = reached * found[0], fewest * found[1][0], most * found[1][1]
    return reached, (fewest, most)


def _spread_of_group(own: Sequence[Progression], others: Sequence[Progression]) -> tuple[int, tuple[int, int]]:
    check(span([*own, *others]))
    replicas = sums(others)[1]
    reached = sums([*own, *others])[1].bit_count()
    ways = prod(extent for extent, _ in own)
    if ways * replicas.bit_count() == reached:
        return reached, (1, 1)
    work = (1 + span(own)) * (sum(extent for extent, _ in own) + replicas.bit_count())
    if work > MOST:
        raise BudgetExceeded("digits do not count that many elements that share coordinates")
    shifts = [k for k in range(replicas.bit_length()) if replicas >> k & 1]
    found: Counter[int] = Counter({0: 1})
    for extent, stride in own:
        added: Counter[int] = Counter()
        for value, times in found.items():
            for k in range(extent):
                added[value + stride * k] += times
        found = added
    elements: Counter[int] = Counter()
    for value, times in found.items():
        for shift in shifts:
            elements[value + shift] += times
    return reached, (min(elements.values()), max(elements.values()))


def _reached(steps: Sequence[Progression], constant: int, extent: int) -> int:
    """How many of 0 .. extent - 1 are sums."""
    check(span(steps))
    low, bits = sums(steps)
    low += constant
    within = bits >> max(0, -low)
    # an extent may be far larger than what is reached of it
    room = min(max(0, extent - max(0, low)), within.bit_length())
    return (within & ((1 << room) - 1)).bit_count()
