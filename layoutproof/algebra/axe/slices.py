"""Slices: the layout of a box of the index space, f(u) = L(u + begin).

A slice of digits need not be digits again: (4:100),(4:1) sliced to [2, 6) is, to [3, 6) is not. Here the answer is
exact for every dimension that has digits of its own. The steps of f from one index to the next decide its digits
completely: the fastest extent is where the step first changes, and so on up; and whether that candidate is the
function is then proved by counting, for every kind of carry of the one and of the other, whether some index has both
(`agree`). Nothing is enumerated, so 10**12 elements take as long as 10.

The paper's Lemma E.2 and Algorithm 4 (and TVM's `tile_slice.cc`) wrap into a digit that is full already (off by
one) and leave the domain at the first digit; TVM does not look at the bounds either.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

from layoutproof.algebra import problems
from layoutproof.algebra.axe.canonical_form import canonical, normal
from layoutproof.algebra.axe.grouping import blocks_of
from layoutproof.algebra.axe.symbolic_slice import symbolic
from layoutproof.core.errors import LayoutError, Reason
from layoutproof.core.size import Extent, surely_less
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter, add, admit, shown

Vector = tuple[tuple[str, int], ...]
"""A step: (axis, number) of every axis it moves along, sorted."""


def slice_(layout: AxeLayout, shape: Sequence[Extent], region: Sequence[tuple[Extent, Extent]]) -> AxeLayout | Reason:
    """The layout of the box `region`, (begin, end) per dimension of `shape`; TVM: `slice`.

    Requires: the shape is admitted and 0 <= begin < end <= extent for constants (LayoutError otherwise); a begin with
    run-time sizes is taken to satisfy that at run time. Ensures: result(u) = layout(u + begin) for every index u of the
    box, proved; canonical, of the box's shape. A Reason where the box has no digits of its own.

    Args:
        layout: An Axe layout.
        shape: The logical shape, in elements.
        region: (begin, end) per dimension, in elements.

    Returns:
        The layout, or the reason why there is none.

    >>> str(slice_(AxeLayout(((2, 192, "m"), (8, 8, "m"), (3, 64, "m"), (8, 1, "m"))), (16, 24), [(0, 8), (8, 24)]))
    'S[(8,2,8):(8,64,1)] + 64 on (8,16)'
    >>> str(slice_(AxeLayout(((4, 100, "m"), (4, 1, "m"))), (16,), [(3, 6)]))
    'dimension 0: the slice [3, 6) of the extents (4, 4) is no product of digits'
    """
    admit(layout, shape)
    box = _box(shape, region)
    iters = normal(layout.D) or layout.D[:1]
    blocks = blocks_of(iters, shape)
    if isinstance(blocks, Reason):
        return _whole(layout, iters, shape, box, blocks)
    shard: list[Iter] = []
    offset: dict[str, Any] = dict(layout.O)
    for dimension, (block, (begin, count)) in enumerate(zip(blocks, box, strict=True)):
        one = normal(block)
        sliced = sliced_digits(one, begin, count)
        if isinstance(sliced, Reason):
            return Reason(f"dimension {dimension}: {sliced}")
        shard += sliced[0]
        offset = add(offset, sliced[1])
    extents = tuple([count for _, count in box])
    result = AxeLayout(tuple(shard) or ((1, 1, MEMORY),), layout.R, offset, extents, layout.within, layout.swizzle)
    return canonical(result)


def sliced_digits(
    iters: Sequence[Iter], begin: Extent, count: Extent
) -> tuple[tuple[Iter, ...], dict[str, Extent]] | Reason:
    """Digits r and a place o with o + r(u) = f(begin + u) for 0 <= u < count; proved.

    Requires normal `iters` and begin + count <= their product (where that has no run-time sizes).

    >>> sliced_digits(((4, 100, "m"), (4, 1, "m")), 2, 4)
    (((2, 98, 'm'), (2, 1, 'm')), {'m': 2})
    """
    if type(begin) is not int or type(count) is not int or any(type(e) is not int for e, _, _ in iters):
        return symbolic(iters, begin, count)
    if any(type(s) is not int for _, s, _ in iters):
        return symbolic(iters, begin, count)
    extents: list[Any] = [e for e, _, _ in iters]
    if len(iters) == 1 or count == math.prod(extents):
        # one digit, or all of them: nothing can carry
        start = _at(iters, begin)
        return (((count, iters[0][1], iters[0][2]),) if len(iters) == 1 else tuple(iters)), start
    found = _uncarried(iters, begin, count)
    if found is not None:
        return found, _at(iters, begin)
    found = _candidate(iters, begin, count)
    if found is not None:
        radices: list[Any] = [(e, _vector(s, a)) for e, s, a in found]
        source: list[Any] = [(e, _vector(s, a)) for e, s, a in iters]
        if agree(source, radices, begin, count):
            return found, _at(iters, begin)
    return Reason(f"the slice [{begin}, {begin + count}) of the extents {shown(extents)} is no product of digits")


def _uncarried(iters: Sequence[Iter], begin: int, count: int) -> tuple[Iter, ...] | None:
    """Whole fast digits, then a part of one digit that ends before it carries: there u's digits just add to begin's."""
    at = len(iters) - 1
    while at > 0:
        extent: Any = iters[at][0]
        if begin % extent or count % extent:
            break
        begin, count, at = begin // extent, count // extent, at - 1
    extent, stride, axis = iters[at]
    if at > 0 and begin % extent + count > extent:
        return None
    return ((count, stride, axis), *iters[at + 1 :])


def agree(source: Sequence[tuple[int, Vector]], target: Sequence[tuple[int, Vector]], begin: int, count: int) -> bool:
    """Whether f(begin + u) - f(begin) = g(u) for 0 <= u < count, f and g given by digits, first slowest.

    Both change from u-1 to u by what the number of carries says: f has j carries where P_j, the product of its last j
    extents, divides begin + u and P_{j+1} does not; g likewise with u. The two agree iff, wherever some u in [1, count)
    has j carries in f and i in g, both steps are the same. How many such u there are is counted in closed form.
    """
    steps, products = _carries(source)
    others, radices = _carries(target)
    counts = [[_multiples(p, q, begin, count) for q in radices] for p in products]
    for j, step in enumerate(steps):
        for i, other in enumerate(others):
            if step == other:
                continue
            if counts[j][i] - counts[j + 1][i] - counts[j][i + 1] + counts[j + 1][i + 1]:
                return False
    # an index beyond all digits of g would have no digit
    return radices[-1] >= count and all(counts[len(steps)][i] == 0 for i in range(len(radices)))


def _multiples(p: int, q: int, begin: int, count: int) -> int:
    """How many u in [1, count) have p | begin + u and q | u."""
    common = math.gcd(p, q)
    if begin % common:
        return 0
    step = p // common * q
    if step == 1:
        return count - 1
    # u = q*k with q*k = -begin modulo p
    rest = p // common
    first = q * ((-begin // common) * pow(q // common, -1, rest) % rest) if rest > 1 else 0
    if first == 0:
        first = step
    return 0 if first >= count else (count - 1 - first) // step + 1


def _carries(digits: Sequence[tuple[int, Vector]]) -> tuple[list[Vector], list[int]]:
    """The step at each number of carries, and the products of the last 0, 1, .. extents."""
    steps: list[Vector] = []
    products = [1]
    back: dict[str, int] = {}
    for extent, vector in reversed(digits):
        total = dict(back)
        for axis, number in vector:
            total[axis] = total.get(axis, 0) + number
            back[axis] = back.get(axis, 0) - number * (extent - 1)
        steps.append(tuple(sorted((axis, number) for axis, number in total.items() if number)))
        products.append(products[-1] * extent)
    return steps, products


def _candidate(iters: Sequence[Iter], begin: int, count: int) -> tuple[Iter, ...] | None:
    """The only digits that the slice can have, if it has any: each extent is where the step first changes."""
    products = list(itertools.accumulate([e for e, _, _ in reversed(iters)], operator.mul, initial=1))
    found: list[Iter] = []
    done = 1
    while done < count:
        step = _difference(iters, begin, begin + done)
        if len(step) > 1:
            return None
        axis, number = step[0] if step else (MEMORY, 0)
        # blocks of `done` are settled, so the step between two of them depends only on the carries where one starts
        extent = count // done
        for level in range(len(iters)):
            at = _first(products[level], products[level + 1], done, begin)
            if at is not None and at < count and _difference(iters, begin + at - done, begin + at) != step:
                extent = min(extent, at // done)
        if count % (done * extent) or extent < 2:
            return None
        found.insert(0, (extent, number, axis))
        done *= extent
    return tuple(found)


def _first(p: int, above: int, q: int, begin: int) -> int | None:
    """The smallest u >= 1 with q | u, p | begin + u and not above | begin + u."""
    common = math.gcd(p, q)
    if begin % common:
        return None
    rest = p // common
    step = rest * q
    first = q * ((-begin // common) * pow(q // common, -1, rest) % rest) if rest > 1 else 0
    for at in (first or step, (first or step) + step):
        if (begin + at) % above:
            return at
    return None


def _difference(iters: Sequence[Iter], start: int, end: int) -> Vector:
    total: dict[str, int] = {}
    for extent, stride, axis in reversed(iters):
        start, low = divmod(start, extent)  # type: ignore[operator]
        end, high = divmod(end, extent)  # type: ignore[operator]
        if high != low:
            total[axis] = total.get(axis, 0) + (high - low) * stride
    return tuple(sorted([(axis, number) for axis, number in total.items() if number]))


def _vector(stride: Extent, axis: str) -> Vector:
    return ((axis, stride),) if stride else ()


def _at(iters: Sequence[Iter], index: int) -> dict[str, Extent]:
    place: dict[str, Any] = {}
    left: Any = index
    for number in range(len(iters) - 1, -1, -1):
        extent, stride, axis = iters[number]
        digit = left if number == 0 else left % extent
        left = left // extent
        if type(digit) is not int or digit:
            place[axis] = place.get(axis, 0) + digit * stride
    return place


def _box(shape: Sequence[Extent], region: Sequence[tuple[Extent, Extent]]) -> list[tuple[Extent, Extent]]:
    """(begin, count) per dimension; LayoutError for what is outside."""
    if len(region) != len(shape):
        raise LayoutError(problems.REGION_RANK(len(region), len(shape), shown(shape)))
    box: list[tuple[Any, Any]] = []
    for dimension, (extent, (begin, end)) in enumerate(zip(shape, region, strict=True)):
        count: Any = end - begin
        known = surely_less(-1, begin) and surely_less(0, count) and surely_less(end, extent + 1)
        if not known and all(type(value) is int for value in (extent, begin, end)):
            raise LayoutError(problems.SLICE_OUTSIDE(begin, end, dimension, extent))
        if not surely_less(0, count) or surely_less(extent, count) or surely_less(begin, 0) or surely_less(extent, end):
            raise LayoutError(problems.SLICE_OUTSIDE(begin, end, dimension, extent))
        box.append((begin, count))
    return box


def _whole(
    layout: AxeLayout, iters: Sequence[Iter], shape: Sequence[Extent], box: Sequence[tuple[Extent, Extent]], why: Reason
) -> AxeLayout | Reason:
    """Where digits cross dimensions: only a box that is one run of indices is a slice of all digits together."""
    partial = [d for d, (extent, (_, count)) in enumerate(zip(shape, box, strict=True)) if count != extent]
    if partial and any(count != 1 for _, count in box[: partial[-1]]):
        return Reason(f"{why}; and the box is not one run of indices")
    begin: Any = 0
    count: Any = 1
    for extent, (first, many) in zip(shape, box, strict=True):
        begin, count = begin * extent + first, count * many
    sliced = sliced_digits(normal(iters), begin, count)
    if isinstance(sliced, Reason):
        return sliced
    extents = tuple([many for _, many in box])
    return canonical(AxeLayout(sliced[0], layout.R, add(layout.O, sliced[1]), extents, layout.within, layout.swizzle))
