"""Canonical form, equality of maps, and what a whole layout reaches: exact, for constants, without enumeration.

Why this decides (all finite, over unbounded integers; T = O + the sums of R's digits):
  1. L and L' are the same map iff E_D = E_D', D and D' are the same function, and T = T'. (At x = 0 the sets are T
     and T'; a finite set has no translation onto itself, so D(x) + T = D'(x) + T leaves D(x) = D'(x).)
  2. D and D' are the same function iff they have the same normal form: no extent 1, no adjacent pair on one axis with
     s_i = e_{i+1} * s_{i+1}; a stride of 0 has no axis. (Paper, Theorem A.8.)
  3. T is a product of one set of sums per axis, because each iter is on one axis (`sumset`).
Sources: arXiv:2601.19092 appendix A, rules D0, D1, C0-C2 (C2 is not confluent: R = {(3,2), (2,3), (2,6)} saturates in
two ways; see `sumset.canonical_set`); apache/tvm `tile_canonicalize.cc`, which has D0 and D1 only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core.errors import BudgetExceeded, Undecided, Unsupported
from layoutproof.core.progressions import LISTED, low_high, values
from layoutproof.core.size import Extent, evaluate
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter, addresses, axis_iters, constant
from layoutproof.layouts.axe.swizzle import swizzled, trivial
from layoutproof.solvers.equations import collides
from layoutproof.solvers.sumset import canonical_set, count, same_set


def normal(iters: Sequence[Iter]) -> tuple[Iter, ...]:
    """The normal form of D: equal exactly for equal functions; () for the function of one element.

    Works with sizes too; then equal normal forms prove equal functions, and different ones prove nothing.

    >>> normal(((8, 4, "lane"), (1, 7, "m"), (4, 1, "lane"), (2, 0, "warp")))
    ((32, 1, 'lane'), (2, 0, 'm'))
    """
    merged: list[Iter] = []
    for extent, stride, axis in iters:
        if extent == 1:
            continue
        if stride == 0:
            axis = MEMORY
        if merged:
            before, step, name = merged[-1]
            if step == extent * stride and name == axis:
                merged[-1] = (before * extent, stride, axis)
                continue
        merged.append((extent, stride, axis))
    return tuple(merged)


def canonical(layout: AxeLayout) -> AxeLayout:
    """The same map in canonical form: D normal, R's strides positive and absorbed, O without zeros.

    Requires nothing. Ensures: the same map (same set of places for every index); idempotent; for constants, equal maps
    give equal forms, apart from replica sets of more than 4,096 places without gaps, which `same` still decides. Keeps
    shape and bounds.

    Args:
        layout: An Axe layout.

    Returns:
        The layout.

    >>> replicas = ((3, -2, "w"), (2, 6, "w"), (1, 9, "w"))
    >>> str(canonical(AxeLayout(((4, 8, "m"), (8, 1, "m")), replicas, {"w": 9, "m": 0})))
    'S[32:1@m] + R[6:2@w] + 5@w'
    """
    offset = {axis: value for axis, value in layout.O.items() if value != 0}
    replicas = layout.R
    if replicas:
        replicas = _canonical_replicas(replicas, offset)
    swizzle = layout.swizzle
    if swizzle is not None:
        swizzle = reduced(layout).swizzle
    shard = normal(layout.D) or ((1, 1, MEMORY),)
    return AxeLayout(shard, replicas, offset, layout.shape, layout.within, swizzle)


def _canonical_replicas(replicas: Sequence[Iter], offset: dict[str, Extent]) -> tuple[Iter, ...]:
    """R per axis from its set of sums; moves what negative strides mean into `offset`."""
    if len(replicas) == 1:
        extent, stride, axis = replicas[0]
        if type(extent) is int and type(stride) is int and extent > 1 and stride > 0:
            return tuple(replicas)
    found: list[Iter] = []
    for axis in dict.fromkeys([axis for _, _, axis in replicas]):
        mine = [(e, s) for e, s, a in replicas if a == axis]
        if any(type(e) is not int or type(s) is not int for e, s in mine):
            found += [(e, s, axis) for e, s in mine if e != 1 and s != 0]
            continue
        low = sum([s * (e - 1) for e, s in mine if s < 0])  # type: ignore[operator, misc]
        if low:
            offset[axis] = offset.get(axis, 0) + low
            if offset[axis] == 0:
                del offset[axis]
        found += [(e, s, axis) for e, s in canonical_set(mine)]  # type: ignore[arg-type]
    return tuple(found)


def same(left: AxeLayout, right: AxeLayout) -> bool:
    """Whether two layouts send every index to the same set of places; shapes and bounds are not compared.

    Requires: for run-time sizes, every symbol >= 1; True then means for all of them, False for some.

    Args:
        left: An Axe layout.
        right: An Axe layout.

    Returns:
        True or False.

    Raises:
        Undecided: Neither is proved.

    >>> a = AxeLayout(((4, 1, "m"),), ((2, 1, "w"), (2, 2, "w")))
    >>> same(a, AxeLayout(((2, 2, "m"), (2, 1, "m")), ((4, -1, "w"),), {"w": 3}))
    True
    """
    if left.swizzle is not None or right.swizzle is not None:
        return _same_swizzled(left, right)
    alike = normal(left.D) == normal(right.D)
    if alike and left.R == right.R and left.O == right.O:
        return True
    if _plain_ints(left) and _plain_ints(right):
        return alike and same_replicas(left, right)
    if _same_forms(canonical(left), canonical(right)):
        return True
    return _differ_somewhere(left, right, tuple(dict.fromkeys((*left.symbols(), *right.symbols()))))


def _plain_ints(layout: AxeLayout) -> bool:
    for extent, stride, _ in layout.D + layout.R:
        if type(extent) is not int or type(stride) is not int:
            return False
    return all(type(value) is int for value in layout.O.values())


def same_replicas(left: AxeLayout, right: AxeLayout) -> bool:
    """Whether O + the sums of R are the same set. Requires constants."""
    if not left.R and not right.R:
        return nonzero(left.O) == nonzero(right.O)
    for axis in dict.fromkeys([axis for _, _, axis in (*left.R, *right.R)] + [*left.O, *right.O]):
        mine: list[Any] = [(e, s) for e, s, a in left.R if a == axis]
        other: list[Any] = [(e, s) for e, s, a in right.R if a == axis]
        starts: list[Any] = [left.O.get(axis, 0), right.O.get(axis, 0)]
        if low_high(mine, starts[0]) != low_high(other, starts[1]) or not (mine == other or same_set(mine, other)):
            return False
    return True


def nonzero(offset: Mapping[str, Extent]) -> dict[str, Extent]:
    """The nonzero parts of an offset, by axis."""
    return {axis: value for axis, value in offset.items() if value != 0}


def _same_forms(left: AxeLayout, right: AxeLayout) -> bool:
    return left.D == right.D and sorted(map(str, left.R)) == sorted(map(str, right.R)) and left.O == right.O


def _differ_somewhere(left: AxeLayout, right: AxeLayout, symbols: tuple[str, ...]) -> bool:
    """False when some sizes tell the two apart; otherwise Undecided."""
    for base in (2, 3, 5, 7):
        sizes = {name: base + 2 * number for number, name in enumerate(symbols)}
        try:
            if not same(with_sizes(left, sizes), with_sizes(right, sizes)):
                return False
        except Undecided:
            continue
    raise Unsupported(f"cannot tell whether {left} and {right} are the same for all sizes")


def with_sizes(layout: AxeLayout, sizes: Mapping[str, int]) -> AxeLayout:
    """The layout with numbers for its run-time sizes.

    Args:
        layout: An Axe layout.
        sizes: Size symbol -> int.

    Returns:
        The layout.
    """

    def put(value: Any) -> Any:
        return evaluate(value, sizes.__getitem__)

    return AxeLayout(
        tuple([(put(e), put(s), axis) for e, s, axis in layout.D]),
        tuple([(put(e), put(s), axis) for e, s, axis in layout.R]),
        {axis: put(value) for axis, value in layout.O.items()},
        None if layout.shape is None else tuple([put(e) for e in layout.shape]),
        None if layout.within is None else {axis: put(e) for axis, e in layout.within.items()},
        layout.swizzle,
    )


def reduced(layout: AxeLayout) -> AxeLayout:
    """The same map without a swizzle that moves none of its addresses."""
    if layout.swizzle is None or layout.symbols() or not trivial(layout.swizzle, low_high(*addresses(layout))[1]):
        return layout
    return AxeLayout(layout.D, layout.R, layout.O, layout.shape, layout.within)


def _same_swizzled(left: AxeLayout, right: AxeLayout) -> bool:
    left, right = reduced(left), reduced(right)
    plain = [AxeLayout(each.D, each.R, each.O) for each in (left, right)]
    if left.swizzle == right.swizzle:
        # one bijection after both: equal exactly when the tiles are
        return same(plain[0], plain[1])
    constant(left, right)
    elements = int(left.size())
    if elements != right.size():
        return False
    sets = [values(axis_iters(each, MEMORY)[0][len(each.D) :], axis_iters(each, MEMORY)[1]) for each in plain]
    if elements * max(map(len, sets)) > LISTED:
        raise BudgetExceeded(f"two different swizzles of {elements} elements would have to be compared one by one")
    for index in range(elements):
        fibers = []
        for each, starts in zip((left, right), sets, strict=True):
            base = _shard_at(each.D, index)
            fibers.append({swizzled(base + s, each.swizzle) if each.swizzle else base + s for s in starts})
        if fibers[0] != fibers[1]:
            return False
    return True


def _shard_at(iters: Sequence[Iter], index: int) -> int:
    total = 0
    for extent, stride, _ in reversed(iters):
        index, digit = divmod(index, extent)  # type: ignore[operator]
        total += digit * stride
    return total


def injective(layout: AxeLayout) -> bool:
    """Whether D alone sends different indices to different places. Requires constants.

    Args:
        layout: An Axe layout.

    Returns:
        True or False.

    >>> injective(AxeLayout(((2, 2, "m"), (2, 3, "m")))), injective(AxeLayout(((4, 1, "m"), (4, 1, "m"))))
    (True, False)
    """
    return _apart(layout, ())


def fibers_disjoint(layout: AxeLayout) -> bool:
    """Whether no place is shared by two different indices, whatever their replicas. Requires constants.

    Replicas of one element may coincide with each other; that is `replicas_distinct`.

    Args:
        layout: An Axe layout.

    Returns:
        True or False.

    >>> fibers_disjoint(AxeLayout(((2, 1, "p"), (2, 1, "m")), ((2, 2, "p"),)))
    True
    >>> fibers_disjoint(AxeLayout(((4, 1, "m"),), ((4, 1, "m"),)))
    False
    """
    return _apart(layout, layout.R)


def _apart(layout: AxeLayout, replicas: Sequence[Iter]) -> bool:
    # coordinates on different axes are independent, and a swizzle is a bijection
    by_axis: dict[str, list[Any]] = {}
    for extent, stride, axis in layout.D:
        if type(extent) is not int or type(stride) is not int:
            constant(layout)
        if extent != 1:
            by_axis.setdefault(axis, []).append((extent, stride))
    for axis, moving in by_axis.items():
        free: list[Any] = [(e, s) for e, s, a in replicas if a == axis] if replicas else []
        if len(moving) == 1 and not free:
            if moving[0][1] == 0:
                return False
        elif collides(moving, free):
            return False
    return True


def replicas_distinct(layout: AxeLayout) -> bool:
    """Whether all replicas of an element are at different places (|L(x)| = E_R, which Def. 2.3 takes for granted).

    Args:
        layout: An Axe layout.

    Returns:
        True or False.

    >>> replicas_distinct(AxeLayout(((4, 1, "m"),), ((2, 2, "a"), (3, 2, "a"))))
    False
    """
    constant(layout)
    for axis in dict.fromkeys([axis for _, _, axis in layout.R]):
        mine: list[Any] = [(e, s) for e, s, a in layout.R if a == axis]
        if collides(mine):
            return False
    return True


@dataclass(frozen=True, slots=True)
class AxisFacts:
    """What a layout reaches on one axis: smallest and largest coordinate, how many between them, how many of them
    used (`image`), how many not (`holes`), and how many different offsets the replicas give."""

    low: int
    high: int
    span: int
    image: int
    holes: int
    replicas: int


def axis_facts(layout: AxeLayout, axis: str) -> AxisFacts:
    """The exact facts of one axis, of the tile where the layout is swizzled. Requires constants.

    Args:
        layout: An Axe layout.
        axis: Name of an axis.

    Returns:
        The facts: least and largest coordinate, span, how many are used.

    >>> axis_facts(AxeLayout(((4, 1, "m"), (2, 10, "m"))), "m")
    AxisFacts(low=0, high=13, span=14, image=8, holes=6, replicas=1)
    """
    constant(layout)
    iters, start = axis_iters(layout, axis)
    low, high = low_high(iters, start)
    image = count(iters)
    replicas = count([(e, s) for e, s, a in layout.R if a == axis])  # type: ignore[misc]
    return AxisFacts(low, high, high - low + 1, image, high - low + 1 - image, replicas)
