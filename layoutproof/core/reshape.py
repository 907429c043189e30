"""Reshape and transpose as maps between logical indices, and the address of an element in bits.

A reshape keeps the row-major position. It is done group by group, where a group is the shortest run of dimensions with
equal products on both sides (XLA's common factors), so that untouched dimensions pass through without a division.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap, from_row_major, row_major
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent, product
from layoutproof.core.space import Space

Reindex = Callable[[Index, Numbers], Index]


def reshape(before: Sequence[Extent], after: Sequence[Extent]) -> Reindex:
    """index in `before` -> index in `after` at the same row-major position.

    Raises LayoutError when the element counts differ.

    >>> reshape((4, 6), (2, 2, 6))((3, 5), Numbers())
    (1, 1, 5)
    """
    if product(before) != product(after):
        raise LayoutError(problems.NO_RESHAPE(_show(before), product(before), _show(after), product(after)))
    groups = common_factors(before, after)

    def reindex(index: Index, on: Numbers) -> Index:
        result: list[Any] = []
        for (b0, b1), (a0, a1) in groups:
            outer = [k for k in range(b0, b1) if before[k] != 1]
            inner = [k for k in range(a0, a1) if after[k] != 1]
            entries = dict.fromkeys(range(a0, a1), 0)
            position = row_major(tuple(index[k] for k in outer), [before[k] for k in outer], on)
            entries.update(zip(inner, from_row_major(position, [after[k] for k in inner], on), strict=True))
            result.extend(entries[k] for k in range(a0, a1))
        return tuple(result)

    return reindex


def common_factors(before: Sequence[Extent], after: Sequence[Extent]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Runs [b0,b1) of `before` and [a0,a1) of `after` with equal products, as short as they get.

    >>> common_factors((2, 3, 4, 5), (6, 20))
    [((0, 2), (0, 1)), ((2, 4), (1, 2))]
    """
    groups: list[tuple[tuple[int, int], tuple[int, int]]] = []
    b0 = a0 = 0
    while b0 < len(before) or a0 < len(after):
        b1, a1 = _next_factor(before, after, b0, a0)
        groups.append(((b0, b1), (a0, a1)))
        b0, a0 = b1, a1
    return groups


def _next_factor(before: Sequence[Extent], after: Sequence[Extent], b0: int, a0: int) -> tuple[int, int]:
    ends: dict[Any, int] = {}
    total: Any = 1
    for b1 in range(b0, len(before)):
        total = total * before[b1]
        ends.setdefault(total, b1 + 1)
    total = 1
    for a1 in range(a0, len(after)):
        total = total * after[a1]
        if total in ends and total != 0:
            return ends[total], a1 + 1
    return len(before), len(after)


def transposed(m: IndexMap, permutation: Sequence[int]) -> Reindex:
    """index -> index of the transposed array: dimension k of the result is dimension permutation[k] of the operand.

    Raises LayoutError when `permutation` is not one of 0..rank-1.
    """
    rank = len(m.domain.extents)
    if sorted(permutation) != list(range(rank)):
        raise LayoutError(problems.NO_PERMUTATION(tuple(permutation), rank - 1))
    return lambda index, on: tuple(index[p] for p in permutation)


def after(reindex: Reindex, m: IndexMap, domain: Space) -> IndexMap:
    """The map index -> m.place(reindex(index)), from `domain`."""
    place = m.place

    def there(index: Index, replica: Index, on: Numbers) -> Index:
        return place(reindex(index, on), replica, on)

    return IndexMap(domain, m.range, there, m.replicas, m.memory, m.sizes())


def address(m: IndexMap, unit: int) -> IndexMap:
    """The map to (memory space, first bit of the element / unit), for a map with a memory.

    `unit` must divide the element width and the prefix, in bits. Raises LayoutError for a map without a memory.
    """
    memory = m.memory
    if memory is None:
        raise LayoutError(problems.NO_ADDRESS())
    flat = m.flat().place
    step, start = memory.bits // unit, memory.prefix_bytes * 8 // unit
    end = memory.allotted * step + start

    def place(index: Index, replica: Index, on: Numbers) -> Index:
        (offset,) = flat(index, replica, on)
        return (memory.space, offset if (step, start) == (1, 0) else offset * step + start)

    box = Space(("space", "address"), (memory.space + 1, end))
    return IndexMap(m.domain, box, place, m.replicas, memory, m.sizes())


def _show(dims: Sequence[Extent]) -> str:
    return ",".join(map(str, dims))


def common_unit(left: IndexMap, right: IndexMap) -> int:
    """The largest number of bits that divides all element addresses of both memories; 0 when one has no memory."""
    if left.memory is None or right.memory is None:
        return 0
    if left.memory.bits == right.memory.bits and left.memory.prefix_bytes == right.memory.prefix_bytes == 0:
        return left.memory.bits
    prefixes = (left.memory.prefix_bytes * 8, right.memory.prefix_bytes * 8)
    return gcd(left.memory.bits, right.memory.bits, *prefixes)


def comparable(left: IndexMap, right: IndexMap, unit: int, by_address: bool = False) -> tuple[IndexMap, IndexMap]:
    """Two maps of one domain whose coordinates are equal exactly when the elements share a place.

    Natural coordinates where both ranges are the same box (row-major order is one-to-one on a box, so nothing is lost
    and everything stays affine), addresses in `unit` bits otherwise. Raises LayoutError when coordinates cannot be
    compared.
    """
    first, second = left.memory, right.memory
    if first is None or second is None:
        counts = [m.coordinates() for m in (left, right)]
        if counts[0] != counts[1]:
            left, right = (m.flat() if m.memory else m for m in (left, right))
            counts = [m.coordinates() for m in (left, right)]
        if counts[0] != counts[1]:
            raise LayoutError(problems.MAP_COORDINATES(counts[0], counts[1]))
        return left, right
    alike = (first.bits, first.prefix_bytes, first.space) == (second.bits, second.prefix_bytes, second.space)
    if alike and not by_address:
        boxes = [m.range.extents for m in (left, right)]
        if boxes[0] == boxes[1]:
            return left, right
        # an offset may lie outside the memory it states, coordinates of tiles lie in their box by construction
        tiled = all(len(box) > 1 for box in boxes)
        one, other = ([e for e in box if e != 1] for box in boxes)
        if tiled and one == other:
            return _without_units(left), _without_units(right)
    return address(left, unit), address(right, unit)


def _without_units(m: IndexMap) -> IndexMap:
    """The map without its axes of extent 1, whose coordinate is always 0."""
    extents = m.range.extents
    if 1 not in extents:
        return m
    axes = [k for k, extent in enumerate(extents) if extent != 1]
    place = m.place
    kept = Space(tuple([m.range.names[k] for k in axes]), tuple([extents[k] for k in axes]))

    def some(index: Index, replica: Index, on: Numbers) -> Index:
        coordinates = place(index, replica, on)
        return tuple([coordinates[k] for k in axes])

    return IndexMap(m.domain, kept, some, m.replicas, m.memory, m.sizes())
