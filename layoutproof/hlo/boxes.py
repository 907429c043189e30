"""Boxes of indices: from and to in every dimension. Unions of them are sets of elements, which are counted exactly."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from math import prod

from layoutproof.core.errors import Undecided
from layoutproof.hlo import problems

Box = tuple[tuple[int, int], ...]
MOST = 4096
"""Boxes into which one set of elements is cut."""


def whole(dims: Sequence[int]) -> Box:
    """All of an array."""
    return tuple((0, extent) for extent in dims)


def common(one: Box, two: Box) -> Box:
    """The intersection; of no volume where it is empty."""
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, two, strict=True))


def volume(box: Box) -> int:
    """How many indices it has."""
    return prod(max(0, end - start) for start, end in box)


def shifted(box: Box, by: Sequence[int]) -> Box:
    """The same box elsewhere."""
    return tuple((start + step, end + step) for (start, end), step in zip(box, by, strict=True))


def without(box: Box, hole: Box) -> list[Box]:
    """The difference of two boxes, as disjoint boxes.

    >>> without(((0, 4), (0, 4)), ((1, 2), (0, 2)))
    [((0, 1), (0, 4)), ((2, 4), (0, 4)), ((1, 2), (2, 4))]
    """
    inner = common(box, hole)
    if not volume(inner):
        return [box] if volume(box) else []
    found: list[Box] = []
    left = list(box)
    for k, ((start, end), (first, last)) in enumerate(zip(box, inner, strict=True)):
        for cut in ((start, first), (last, end)):
            if cut[0] < cut[1]:
                found.append((*left[:k], cut, *left[k + 1 :]))
        left[k] = (first, last)
    return found


def count(boxes: Iterable[Box]) -> int:
    """How many indices are in one of the boxes or in several.

    >>> count([((0, 4), (0, 2)), ((2, 6), (0, 2)), ((0, 4), (0, 2))])
    12

    Raises Undecided where the union falls into too many boxes.
    """
    apart: list[Box] = []
    for box in dict.fromkeys(boxes):
        new = [box]
        for other in apart:
            new = [part for each in new for part in without(each, other)]
            if not new:
                break
        apart += new
        if len(apart) > MOST:
            raise Undecided(problems.TOO_MANY_BOXES(MOST))
    return sum(map(volume, apart))


def reshaped(box: Box, dims: Sequence[int], source: Sequence[int]) -> list[Box]:
    """The elements that a box of a row-major reshape has, as boxes of what was reshaped.

    dims: extents after.  source: extents before.

    >>> reshaped(((0, 1), (4, 8)), (2, 8), (4, 4)), reshaped(((3, 9),), (16,), (4, 4))
    ([((1, 2), (0, 4))], [((0, 1), (3, 4)), ((1, 2), (0, 4)), ((2, 3), (0, 1))])

    Raises Undecided where there are too many of them.
    """
    if not volume(box):
        return []
    if box == whole(dims):
        return [whole(source)]
    parts: list[list[Box]] = []
    for ours, theirs in _factors(dims, source):
        inner = box[ours.start : ours.stop]
        extents, before = dims[ours.start : ours.stop], source[theirs.start : theirs.stop]
        if inner == whole(extents):
            parts.append([whole(before)])
        elif tuple(extents) == tuple(before):
            parts.append([inner])
        else:
            parts.append([each for run in _runs(inner, extents) for each in _of_run(run, before)])
        if prod(map(len, parts)) > MOST:
            raise Undecided(problems.TOO_MANY_BOXES(MOST))
    return [tuple(itertools.chain(*each)) for each in itertools.product(*parts)]


def _factors(dims: Sequence[int], source: Sequence[int]) -> Iterable[tuple[range, range]]:
    """The least groups of dimensions of both sides with as many elements."""
    i = j = 0
    while i < len(dims) or j < len(source):
        a, b = i, j
        one = two = 1
        while True:
            if one == two and (i > a or j > b) and not (one == 1 and (i < len(dims) and j < len(source))):
                break
            if one <= two and i < len(dims):
                one, i = one * dims[i], i + 1
            elif j < len(source):
                two, j = two * source[j], j + 1
            elif i < len(dims):
                one, i = one * dims[i], i + 1
            else:
                break
        # dimensions of one element belong to no group of their own
        while i < len(dims) and dims[i] == 1:
            i += 1
        while j < len(source) and source[j] == 1:
            j += 1
        yield range(a, i), range(b, j)


def _runs(box: Box, dims: Sequence[int]) -> list[tuple[int, int]]:
    """The offsets of a box, row-major, as ranges in order."""
    at = len(dims)
    inner = 1
    while at and box[at - 1] == (0, dims[at - 1]):
        at -= 1
        inner *= dims[at]
    if not at:
        return [(0, inner)]
    start, end = box[at - 1]
    outer = box[: at - 1]
    if volume(outer) > MOST:
        raise Undecided(problems.TOO_MANY_RUNS(MOST))
    found: list[tuple[int, int]] = []
    for index in itertools.product(*[range(a, b) for a, b in outer]):
        offset = 0
        for number, extent in zip(index, dims, strict=False):
            offset = offset * extent + number
        offset *= dims[at - 1]
        run = ((offset + start) * inner, (offset + end) * inner)
        if found and found[-1][1] == run[0]:
            found[-1] = (found[-1][0], run[1])
        else:
            found.append(run)
    return found


def _of_run(run: tuple[int, int], dims: Sequence[int]) -> list[Box]:
    """The boxes that a range of offsets is, row-major."""
    start, end = run
    if start >= end:
        return []
    if not dims:
        return [()]
    inner = prod(dims[1:])
    first, last = start // inner, (end - 1) // inner
    if first == last:
        return [((first, first + 1), *each) for each in _of_run((start - first * inner, end - first * inner), dims[1:])]
    found: list[Box] = []
    if start % inner:
        found += [((first, first + 1), *each) for each in _of_run((start % inner, inner), dims[1:])]
        first += 1
    tail = end % inner
    stop = last if tail else last + 1
    if first < stop:
        found.append(((first, stop), *whole(dims[1:])))
    if tail:
        found += [((last, last + 1), *each) for each in _of_run((0, tail), dims[1:])]
    return found
