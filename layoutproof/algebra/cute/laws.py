"""The defining equation of every operation of the CuTe algebra, decided exactly: the referee.

Each function takes the operands and a claimed result and says where the equation first fails, or None when it holds
for every element. The result's origin does not matter: ours, NVIDIA's and a reader's own are judged alike.

A layout stands for the function x -> offset of a linear position x, first mode fastest. As in CuTe, a position past
the last element lets the last mode go on. Two facts decide most questions without looking at elements:
* a function 0..n-1 -> Z has at most one layout without unit modes and mergeable neighbours: its first stride is f(1),
  its first extent the first x with f(x) != x*f(1), and so on. So layouts are the same function exactly when these
  normal forms are equal.
* where the digits of B land in digits of A without a carry, A after B is linear in the digits of B.
What the two leave open is enumerated, up to `CAP` elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from layoutproof.algebra import problems
from layoutproof.core.errors import LayoutError, Reason
from layoutproof.layouts.cute.layout import CuteLayout, linear_offset
from layoutproof.layouts.cute.nested import Nested, show, size_of

CAP = 1 << 20
"""Elements up to which an equation is checked one by one."""

Modes = tuple[tuple[int, int], ...]
"""(extent, stride) of each mode, fastest first."""


def constants(layout: CuteLayout) -> Modes:
    """The modes of a layout of constant size without a swizzle; LayoutError otherwise."""
    if layout.swizzle is not None:
        raise LayoutError(problems.SWIZZLE_IN_ALGEBRA(layout))
    modes = layout.modes()
    if not all(type(number) is int for mode in modes for number in mode):
        raise LayoutError(problems.NAMED_LAYOUT(layout))
    return modes  # type: ignore[return-value]


def count_of(modes: Modes) -> int:
    """The number of elements."""
    return math.prod(extent for extent, _ in modes)


def normal_form(modes: Modes, open_ended: bool = False) -> Modes:
    """The same function x -> offset with fewest modes; with `open_ended` also past the last element.

    >>> normal_form(((2, 1), (1, 6), (6, 2)))
    ((12, 1),)
    >>> normal_form(((2, 1), (1, 80)), open_ended=True)
    ((2, 1), (1, 80))
    """
    merged: list[tuple[int, int]] = []
    for k, (extent, stride) in enumerate(modes):
        keeps_on = open_ended and k + 1 == len(modes)
        if extent == 1 and not keeps_on:
            continue
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged) or ((1, 0),)


def same_function(left: Modes, right: Modes) -> Reason | None:
    """None when both give one offset for every x; else the smallest x, or the sizes that differ."""
    counts = count_of(left), count_of(right)
    if counts[0] != counts[1]:
        return Reason(f"it has {counts[1]} elements instead of {counts[0]}")
    one, other = normal_form(left), normal_form(right)
    if one == other:
        return None
    # up to the first mode that differs both are one function; there, the shorter run or the smaller element tells
    x = 1
    for (extent, stride), (extent2, stride2) in zip(one, other, strict=False):
        if stride != stride2:
            break
        x *= min(extent, extent2)
        if extent != extent2:
            break
    wanted, got = linear_offset(left, x), linear_offset(right, x)
    return Reason(f"it gives {got} at {x} instead of {wanted}", x, wanted, got)


def leaf_digits(a: Modes, extent: int, stride: int) -> list[tuple[int, int, int]] | None:
    """x -> A(x * stride) for x < extent as digits (extent, units, mode of A), fastest first.

    None when these digits do not come out whole. Requires: `a` in open-ended normal form, stride >= 0.
    """
    digits: list[tuple[int, int, int]] = []
    for k, (room, _) in enumerate(a):
        if extent == 1 or stride == 0:
            break
        if k + 1 == len(a) or (extent - 1) * stride < room:
            return [*digits, (extent, stride, k)]
        if stride % room == 0:
            stride //= room
            continue
        count = room // stride
        if room % stride or extent % count:
            return None
        digits.append((count, stride, k))
        extent, stride = extent // count, 1
    return [*digits, (extent, 0, 0)] if extent > 1 else digits


def composed(a: Modes, b: Modes) -> Modes | None:
    """A after B as modes, when B's digits land in A's without a carry; None when that is not so.

    >>> composed(((6, 1), (2, 7)), ((3, 2), (2, 3)))
    >>> composed(((6, 1), (2, 7)), ((3, 2), (2, 6)))
    ((3, 2), (2, 7))
    """
    a = normal_form(a, open_ended=True)
    loads = [0] * len(a)
    modes: list[tuple[int, int]] = []
    for extent, stride in b:
        digits = leaf_digits(a, extent, stride) if stride >= 0 else None
        if digits is None:
            return None
        for count, units, k in digits:
            loads[k] += (count - 1) * units
            modes.append((count, units * a[k][1]))
    if any(load >= room for load, (room, _) in zip(loads[:-1], a[:-1], strict=True)):
        return None
    return tuple(modes) or ((1, 0),)


def composition_fails(a: CuteLayout, b: CuteLayout, result: CuteLayout) -> Reason | None:
    """Requires: constants; a swizzle only on `a`.  ensures: None iff result(x) == a(b(x)) for every x < size(b),
    and result's shape refines b's mode by mode.

    Raises LayoutError when that is neither structural nor within `CAP` elements.

    >>> law = composition_fails(CuteLayout((6, 2), (1, 7)), CuteLayout((3, 2), (2, 3)), CuteLayout((3, 2), (2, 3)))
    >>> (law.position, law.wanted, law.got)
    (5, 8, 7)
    """
    if (a.swizzle, a.offset) != (result.swizzle, result.offset):
        return Reason(f"{result} has another swizzle than {a}")
    inner, outer, found = _plain(a), constants(b), constants(_plain(result))
    modes = constants(inner)
    if size_of(result.shape) != size_of(b.shape):
        return Reason(f"{result} has {size_of(result.shape)} elements; {b} has {size_of(b.shape)}")
    if not refines(result.shape, b.shape):
        return Reason(f"the shape {show(result.shape)} does not refine {show(b.shape)} mode by mode")
    structural = composed(modes, outer)
    if structural is not None:
        return _named(same_function(structural, found), f"{a} o {b}", result)
    count = int(b.size())
    return _first_difference(
        lambda x: linear_offset(modes, linear_offset(outer, x)),
        lambda x: linear_offset(found, x),
        count,
        f"{a} o {b}",
        result,
    )


def complement_fails(a: CuteLayout, target: int, result: CuteLayout) -> Reason | None:
    """The post-conditions of CuTe's complement (include/cute/layout.hpp), for an `a` that is injective up to
    zero strides: result(0) == 0, result increases, no offset of result but 0 plus one of `a` is taken twice,
    and size(result) >= target / size(filter(a)).

    ensures: None iff all hold. Raises LayoutError as `composition_fails` does.

    >>> str(complement_fails(CuteLayout((2, 2), (1, 5)), 20, CuteLayout((2, 2), (2, 10))))
    '(2,2):(2,10) has 4 elements; 20 places and 4 elements of (2,2):(1,5) need at least 5'
    """
    kept = tuple(mode for mode in constants(a) if mode[0] > 1 and mode[1] != 0)
    modes = constants(result)
    need = -(-target // count_of(kept))
    if int(result.size()) < need:
        count = count_of(kept)
        return Reason(
            f"{result} has {result.size()} elements; {target} places and {count} elements of {a} need at least {need}"
        )
    kept_result = tuple(mode for mode in modes if mode[0] > 1)
    if superincreasing(kept_result) and superincreasing(tuple(sorted(kept + kept_result, key=lambda m: m[1]))):
        return None
    count = int(result.size())
    total = count * count_of(kept)
    if total > CAP:
        raise LayoutError(problems.COMPLEMENT_TOO_LARGE(result, a, total, CAP))
    return _overlap(a, kept, result, modes, count)


def _overlap(a: CuteLayout, kept: Modes, result: CuteLayout, modes: Modes, count: int) -> Reason | None:
    taken: set[int] = set()
    before = -1
    block = [linear_offset(kept, x) for x in range(count_of(kept))]
    for x in range(count):
        start = linear_offset(modes, x)
        if start <= before or (x == 0 and start != 0):
            return Reason(f"{result} gives {start} at {x}, not more than {before} before it", x, before + 1, start)
        for offset in block:
            if start + offset in taken:
                return Reason(f"{result} at {x} puts {a} onto the offset {start + offset}, which is taken", x)
            taken.add(start + offset)
        before = start
    return None


def superincreasing(modes: Modes) -> bool:
    """Whether every stride exceeds all that the modes before it reach together: then x -> offset increases.

    >>> superincreasing(((2, 1), (3, 5))), superincreasing(((3, 2), (2, 3)))
    (True, False)
    """
    reach = 0
    for extent, stride in modes:
        if stride <= reach:
            return False
        reach += (extent - 1) * stride
    return True


def refines(fine: Nested, coarse: Nested) -> bool:
    """Whether `fine` splits the extents of `coarse` and nothing else: CuTe's `compatible(coarse, fine)`.

    >>> refines(((2, 2), 3), (4, 3)), refines((4, 3), ((2, 2), 3))
    (True, False)
    """
    if isinstance(coarse, tuple):
        return isinstance(fine, tuple) and len(fine) == len(coarse) and all(map(refines, fine, coarse))
    return bool(size_of(fine) == coarse)


def _first_difference(
    wanted: Callable[[int], int], got: Callable[[int], int], count: int, formula: str, result: CuteLayout
) -> Reason | None:
    if count > CAP:
        raise LayoutError(problems.RESULT_TOO_LARGE(result, formula, count, CAP))
    for x in range(count):
        want, have = wanted(x), got(x)
        if want != have:
            return Reason(f"{result} is not {formula}: it gives {have} at {x} instead of {want}", x, want, have)
    return None


def _named(reason: Reason | None, formula: str, result: CuteLayout) -> Reason | None:
    if reason is None:
        return None
    return Reason(f"{result} is not {formula}: {reason.text}", reason.position, reason.wanted, reason.got)


def _plain(layout: CuteLayout) -> CuteLayout:
    return CuteLayout(layout.shape, layout.stride)
