"""CuTe's layout algebra: every result is checked against its defining equation before it is returned.

A layout stands for the function x -> offset of a linear position x, first mode fastest, last mode open-ended (what
CuTe does when an index lies past the last element). Where no layout satisfies the equation, a `Reason` comes back that
names the smallest position at which it fails; a wrong layout never does. Operands have constant extents and strides.
Source of the definitions: include/cute/layout.hpp and python/pycute/layout.py of NVIDIA/cutlass at 07a0238.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from layoutproof.algebra import problems
from layoutproof.algebra.cute.laws import (
    CAP,
    Modes,
    complement_fails,
    composition_fails,
    constants,
    leaf_digits,
    normal_form,
)
from layoutproof.core.errors import LayoutError, Reason
from layoutproof.layouts.cute.layout import CuteLayout, linear_offset
from layoutproof.layouts.cute.nested import Nested, modes_of, refill

Answer = CuteLayout | Reason
Tiler = CuteLayout | int | tuple["Tiler", ...] | None
"""A layout; n for n:1; a tuple of tilers, applied mode by mode; None to leave a mode alone."""


def coalesce(a: CuteLayout) -> CuteLayout:
    """The layout with fewest modes and a(x) unchanged for every x < size(a).

    Requires: constants, no swizzle.  ensures: unique (see `laws`); one mode is written as integers.

    Args:
        a: A CuTe layout.

    Returns:
        The layout.

    >>> str(coalesce(CuteLayout((2, (1, 6)), (1, (6, 2)))))
    '12:1'
    """
    return _from_modes(normal_form(constants(a)))


def composition(a: CuteLayout, b: Tiler) -> Answer:
    """The layout R with R(x) == a(b(x)) for every x < size(b), b's shape refined mode by mode.

    Requires: constants; strides of b >= 0; a swizzle only on `a`.  ensures: R, or a Reason when no layout satisfies the
    equation: a layout that agrees on the first elements is forced, and the Reason names the element where it fails. b's
    offsets may lie past size(a): then a's last mode goes on, as in CuTe, which is past the end of a's memory. A tuple
    composes mode by mode.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.

    Raises:
        LayoutError: When an equation cannot be decided (see `laws.CAP`).

    >>> str(composition(CuteLayout((4, 6, 8, 10), (2, 3, 5, 7)), CuteLayout(6, 12)))
    '(2,3):(9,5)'
    >>> print(composition(CuteLayout((6, 2), (1, 7)), CuteLayout((3, 2), (2, 3))))
    no layout is (6,2):(1,7) o (3,2):(2,3): it would be (3,2):(2,3), which gives 7 at 5 instead of 8
    """
    if not isinstance(b, CuteLayout):
        return by_mode(composition, a, b)
    if a.swizzle is not None:
        inner = composition(CuteLayout(a.shape, a.stride), b)
        if isinstance(inner, Reason):
            return inner
        return CuteLayout(inner.shape, inner.stride, a.swizzle, a.offset, a.element_type)
    modes = normal_form(constants(a), open_ended=True)
    shapes, strides, weight = [], [], 1
    for extent, stride in constants(b):
        if stride < 0:
            raise LayoutError(problems.NEGATIVE_STRIDE_COMPOSED(b, a))
        found = _leaf(modes, extent, stride)
        if isinstance(found, Reason):
            at = None if found.position is None else found.position * weight
            return Reason(f"no layout is {a} o {extent}:{stride}: {found.text}", at, found.wanted, found.got)
        shapes.append(_flat([e for e, _ in found]))
        strides.append(_flat([s for _, s in found]))
        weight *= extent
    shape, stride_ = (_refilled(b.shape, entries) for entries in (shapes, strides))
    result = CuteLayout(shape, stride_, element_type=a.element_type)
    fails = composition_fails(a, b, result)
    if fails is None:
        return result
    why = f"no layout is {a} o {b}: it would be {result}, which gives {fails.got} at {fails.position}"
    return Reason(f"{why} instead of {fails.wanted}", fails.position, fails.wanted, fails.got)


def _leaf(a: Modes, extent: int, stride: int) -> Modes | Reason:
    """x -> A(x * stride) for x < extent, as modes in normal form."""
    digits = leaf_digits(a, extent, stride)
    if digits is not None:
        return normal_form(tuple((count, units * a[k][1]) for count, units, k in digits))
    return infer(lambda x: linear_offset(a, x * stride), extent)


def infer(function: Callable[[int], int], size: int) -> Modes | Reason:
    """The modes, in normal form, of the layout that is `function` on 0..size-1; a Reason when there is none.

    ensures: exact: the first stride is f(1), the first extent the first x with f(x) != x*f(1), and so on, so a
    disagreement anywhere rules every layout out. Raises LayoutError past `CAP` elements.

    >>> infer(lambda x: [0, 3, 101, 104][x], 4)
    ((2, 3), (2, 101))
    >>> print(infer(lambda x: [0, 2, 3][x], 3))
    the first 2 elements force an extent of 2, which does not divide 3
    >>> print(infer(lambda x: [0, 6, 7, 8, 9, 15][x], 6))
    it would give 13 at 3 instead of 8
    """
    if size > CAP:
        raise LayoutError(problems.TOO_MANY_ELEMENTS(size, CAP))
    values = [function(x) for x in range(size)]
    modes: list[tuple[int, int]] = []
    done, uneven = 1, 0
    while done < size and not uneven:
        stride, count = values[done], 1
        while done * count < size and values[done * count] == count * stride:
            count += 1
        uneven = size // done % count
        modes.append((count, stride))
        done *= count
    found = tuple(modes) or ((1, 0),)
    # a value at x depends on modes that the values before x force, so the first mismatch rules every layout out
    for x, value in enumerate(values[:done]):
        got = linear_offset(found, x)
        if got != value:
            return Reason(f"it would give {got} at {x} instead of {value}", x, value, got)
    if uneven:
        count = modes[-1][0]
        left = size * count // done
        return Reason(f"the first {done} elements force an extent of {count}, which does not divide {left}", done)
    return found


def complement(a: CuteLayout, target: int = 1) -> Answer:
    """The layout R of increasing offsets such that a(i) + R(j) are all different, with size(R) * size(a) >= target.

    Requires: constants, strides >= 0; zero strides are left out (CuTe's `filter`).  ensures: CuTe's own
    post-conditions, also where gaps do not divide, in which case R is as isl-layout (arXiv 2511.10374) has it and
    NVIDIA's tools return a layout that is too small. Reason when the modes of `a` interleave or overlap.

    Args:
        a: A CuTe layout.
        target: The least size of the result times that of `a`, in elements.

    Returns:
        The layout, or the reason why there is none.

    >>> str(complement(CuteLayout((4, 2), (1, 16)), 32)), str(complement(CuteLayout((2, 2), (1, 5)), 20))
    ('4:4', '(2,3):(2,9)')
    """
    if type(target) is not int or target < 1:
        raise LayoutError(problems.COMPLEMENT_TARGET(target))
    kept = sorted((m for m in constants(a) if m[0] > 1 and m[1] != 0), key=lambda m: m[1])
    if kept and kept[0][1] < 0:
        raise LayoutError(problems.NEGATIVE_STRIDE_COMPLEMENT(a))
    modes: list[tuple[int, int]] = []
    reach, count = 1, 1
    for k, (extent, stride) in enumerate(kept):
        if stride < reach:
            return Reason(
                f"{a} overlaps or interleaves: its stride {stride} lies within the {reach} places of smaller modes"
            )
        gap = 1 + _slack(kept[k:], reach) // reach
        modes.append((gap, reach))
        count *= gap * extent
        reach += (gap - 1) * reach + (extent - 1) * stride
    modes.append((-(-target // count), reach))
    result = _from_modes(normal_form(tuple(modes)))
    return _kept(result, complement_fails(a, target, result))


def _slack(modes: list[tuple[int, int]], reach: int) -> int:
    """By how much all of `modes` stay clear of what lies below them, when `reach` places are below the first."""
    slack = modes[0][1] - reach
    for extent, stride in modes:
        slack = min(slack, stride - reach)
        reach += (extent - 1) * stride
    return max(0, slack)


def right_inverse(a: CuteLayout) -> CuteLayout:
    """The layout R with a(R(i)) == i for every i < size(R), as long as a's offsets go 0, 1, 2, ..

    Requires: constants.  ensures: the equation; size(R) is 1 when no element but the first is in order.

    Args:
        a: A CuTe layout.

    Returns:
        The layout.

    >>> str(right_inverse(CuteLayout((4, 8, 2), (8, 1, 33))))
    '(8,4):(4,1)'
    """
    modes = constants(a)
    weighted, position = [], 1
    for extent, stride in modes:
        weighted.append((stride, extent, position))
        position *= extent
    found: list[tuple[int, int]] = []
    reach = 1
    for stride, extent, weight in sorted(weighted):
        if extent == 1 or stride < reach:
            continue
        if stride != reach:
            break
        found.append((extent, weight))
        reach *= extent
    result = _from_modes(normal_form(tuple(found)))
    fails = composition_fails(a, result, _identity(result))
    if fails is not None:
        raise LayoutError(problems.NO_RIGHT_INVERSE(a, fails.text))
    return result


def left_inverse(a: CuteLayout) -> Answer:
    """A layout R with R(a(i)) == i for every i < size(a).

    Requires: constants; a(i) all different, else a Reason.  ensures: the equation. CuTe's own construction is taken
    where it satisfies it; where gaps do not divide (there CuTe's is wrong) one with an extent per gap. Both are for
    modes that do not interleave; `(3,2):(2,3)` has the left inverse `(2,4):(2,1)`, which neither finds.

    Args:
        a: A CuTe layout.

    Returns:
        The layout, or the reason why there is none, or none is known.

    >>> str(left_inverse(CuteLayout((4, 2, 2), (4, 2, 32)))), str(left_inverse(CuteLayout((2, 2), (1, 5))))
    ('(2,2,4,2,2):(16,4,1,32,8)', '(5,2):(1,2)')
    """
    rest = complement(a)
    if isinstance(rest, Reason):
        return Reason(f"no left inverse of {a} is known: {rest}")
    size = int(a.size())
    if size > 1 and 0 in [stride for extent, stride in constants(a) if extent > 1]:
        return Reason(f"{a} stores several elements at one offset, so it has no left inverse")
    identity = _identity(a)
    first = right_inverse(CuteLayout((a.shape, rest.shape), (a.stride, rest.stride)))
    if composition_fails(first, a, identity) is None:
        return first
    weights, position = [], 1
    for extent, stride in constants(a):
        weights.append((stride, extent, position))
        position *= extent
    ordered = sorted(entry for entry in weights if entry[1] > 1)
    cuts = [stride for stride, _, _ in ordered]
    if any(after % before for before, after in itertools.pairwise(cuts)):
        return Reason(f"no left inverse of {a} is known: its strides {cuts} do not divide one another")
    modes = [(cuts[0], 0)] if cuts and cuts[0] > 1 else []
    for (stride, extent, weight), after in zip(ordered, [*cuts[1:], 0], strict=True):
        modes.append((after // stride if after else extent, weight))
    second = _from_modes(normal_form(tuple(modes)))
    return _kept(second, composition_fails(second, a, identity))


def by_mode(operation: Callable[[CuteLayout, Tiler], Answer], a: CuteLayout, tiler: Tiler) -> Answer:
    """`operation` with n read as n:1, a tuple applied mode by mode, None leaving a mode as it is."""
    if tiler is None:
        return a
    if type(tiler) is int:
        return operation(a, CuteLayout(tiler, 1))
    if not isinstance(tiler, tuple):
        raise LayoutError(problems.TILER(tiler))
    parts = split(a)
    if len(tiler) > len(parts):
        raise LayoutError(problems.TILERS(len(tiler), len(parts), a))
    answers = [operation(part, one) for part, one in zip(parts, tiler, strict=False)]
    return join([*answers, *parts[len(tiler) :]])


def split(a: CuteLayout) -> list[CuteLayout]:
    """Its top-level modes as layouts."""
    constants(a)
    pairs = zip(modes_of(a.shape), modes_of(a.stride), strict=True)
    return [CuteLayout(shape, stride, element_type=a.element_type) for shape, stride in pairs]


def join(parts: list[Answer] | list[CuteLayout]) -> Answer:
    """The layout with these modes; the first Reason among them, if any."""
    for part in parts:
        if isinstance(part, Reason):
            return part
    layouts = [part for part in parts if isinstance(part, CuteLayout)]
    kind = layouts[0].element_type if layouts else ""
    return CuteLayout(tuple([p.shape for p in layouts]), tuple([p.stride for p in layouts]), element_type=kind)


def _from_modes(modes: Modes) -> CuteLayout:
    return CuteLayout(_flat([e for e, _ in modes]), _flat([s for _, s in modes]))


def _flat(entries: list[int]) -> Nested:
    return entries[0] if len(entries) == 1 else tuple(entries)


def _refilled(pattern: Nested, entries: list[Nested]) -> Nested:
    values = iter(entries)
    return refill(pattern, lambda _: next(values))


def _identity(like: CuteLayout) -> CuteLayout:
    """x -> x in the shape of `like`."""
    strides, step = [], 1
    for extent, _ in constants(like):
        strides.append(step)
        step *= extent
    return CuteLayout(like.shape, _refilled(like.shape, strides))


def _kept(result: CuteLayout, fails: Reason | None) -> Answer:
    return result if fails is None else fails
