"""The engine for xor: places as affine maps over GF(2) of the index's bits, decided by rank.

Applies to constant sizes where every coordinate is affine in the bits of the index: swizzles, linear layouts, tiles and
strides by powers of two. Cost grows with the square of the number of bits, never with the size of the array. Extents
that are no powers of two are rounded up: a proof for more indices is one for fewer, and the smallest violation counts
when it is an index of the array.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from layoutproof.core.claim import (
    And,
    At,
    Claim,
    Differ,
    Equal,
    LexLess,
    Outside,
    SizeCondition,
    Uncovered,
    outline,
)
from layoutproof.core.counting import Tally
from layoutproof.core.errors import BudgetExceeded, Unsupported
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Point
from layoutproof.core.space import Space
from layoutproof.solvers.bits.number import BitNumbers, BitSum, rows_of

_NUMBERS = BitNumbers()

LISTED = 16
"""Free bits whose choices are looked at one by one."""


def decide(claim: Claim, effort: int = 1) -> Point | None:
    """None when no violation exists, else the smallest one; Undecided when the map is not affine over bits.

    >>> from layoutproof.core.space import Space
    >>> swap = IndexMap(Space(("i",), (16,)), Space(("o",), (8,)), lambda x, c, on: (on.xor(x[0] % 8, x[0] // 8),))
    >>> pair = {"first": swap.domain, "second": swap.domain}
    >>> decide(Claim(pair, And((LexLess("first", "second"), Equal(At(swap, "first"), At(swap, "second"))))))
    {'first': (0,), 'second': (9,)}
    """
    if claim.where is not None or claim.sizes():
        raise Unsupported("bits are for constant sizes")
    if not outline(claim).whole:
        raise Unsupported("bits decide claims about whole domains")
    match claim.violation:
        case And((LexLess(first, second), Equal(At(left, p, ""), At(right, q, "")))) if left is right and (p, q) == (
            first,
            second,
        ):
            index = _shared(left)
            return None if index is None else {first: (0,) * len(index), second: index}
        case Outside(At(m, point, ""), extents):
            return _named(point, _outside(m, extents or m.range.extents))
        case Differ(At(left, point, ""), At(right, same, "")) if point == same:
            return _named(point, _differ(left, right))
        case Equal(At(left, point, ""), At(right, same, "")) if point == same:
            return _named(point, _same(left, right))
        case Uncovered(m, point):
            return _named(point, _unreached(m))
        case SizeCondition(condition):
            return {} if condition.evaluate({}, INTS) else None
    raise Unsupported("bits do not know this kind of claim")


def _named(point: str, index: tuple[int, ...] | None) -> Point | None:
    return None if index is None else {point: index}


def _places(*maps: IndexMap) -> list[tuple[Any, ...]]:
    """The coordinates of each map on one index; input bit 0 is the last dimension's least significant."""
    domain = maps[0].domain
    if any(m.replicas.extents for m in maps):
        raise Unsupported("bits do not combine replicas")
    if 0 in domain.extents:
        raise Unsupported("there are no indices")
    given = [_given(m) for m in maps]
    if all(given):
        return given
    index: list[Any] = []
    widths = _widths(domain)
    bit = all_ = sum(widths)
    for width in widths:
        bit -= width
        columns = [0] * bit + [1 << k for k in range(width)] + [0] * (all_ - bit - width)
        index.append(BitSum(columns, 0, (1 << width) - 1) if width else 0)
    try:
        return [known or m.place(tuple(index), (), _NUMBERS) for known, m in zip(given, maps, strict=True)]
    except ZeroDivisionError:
        raise Unsupported("the map divides by zero") from None


def _given(m: IndexMap) -> tuple[Any, ...]:
    """The coordinates of a map whose place is a matrix of bits already; () for others."""
    if not is_matrix(m):
        return ()
    place: Any = m.place
    return tuple([BitSum(columns) if any(columns) else 0 for columns in place.bit_columns])


def is_matrix(m: IndexMap) -> bool:
    """Whether the place of a map is a matrix of bits, by its attributes `bit_columns` and `bit_box`.

    `bit_columns` has for each coordinate what each bit of an index adds to it by xor, the least significant bit of the
    last entry first; it holds for indices of the box with the extents `bit_box`.
    """
    box = getattr(m.place, "bit_box", None)
    return box is not None and box == m.domain.extents


@lru_cache(maxsize=8)
def _placed(m: IndexMap) -> tuple[Any, ...]:
    """The coordinates of one map; kept, because claims come in groups about one map."""
    return _places(m)[0]


def _placed_alike(left: IndexMap, right: IndexMap) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The coordinates of two maps on indices of one box."""
    if left.domain.extents != right.domain.extents:
        raise Unsupported("the two maps have indices of different boxes")
    return _placed(left), _placed(right)


@lru_cache(maxsize=8)
def _independent(m: IndexMap) -> bool:
    """Whether its columns are surely independent: no two have the same highest bit, and none is 0."""
    inputs = sum(_widths(m.domain))
    highest = set(map(int.bit_length, _columns(_placed(m), inputs)))
    return len(highest) == inputs and 0 not in highest


def _widths(space: Space) -> list[int]:
    return [max(0, int(extent) - 1).bit_length() for extent in space.extents]


def _inside(space: Space, number: int) -> tuple[int, ...]:
    """The index whose bits are `number`; Undecided when rounding up made it."""
    index: list[int] = []
    for width in reversed(_widths(space)):
        index.append(number & ((1 << width) - 1))
        number >>= width
    index.reverse()
    if any(entry >= extent for entry, extent in zip(index, space.extents, strict=True)):  # type: ignore[operator]
        raise Unsupported("the smallest violation is outside the array, which is no box of powers of two")
    return tuple(index)


def _columns(coordinates: tuple[object, ...], inputs: int) -> list[int]:
    """The columns of all coordinates side by side as one number."""
    if len(coordinates) == 1 and type(coordinates[0]) is BitSum:
        return coordinates[0].columns
    columns, start = [0] * inputs, 0
    for coordinate in coordinates:
        if type(coordinate) is BitSum:
            columns = [a | c << start for a, c in zip(columns, coordinate.columns, strict=True)]
            start += coordinate.support.bit_length()
    return columns


def _shared(m: IndexMap) -> tuple[int, ...] | None:
    """The smallest index besides 0 that has the place of index 0: the smallest element of the kernel."""
    if _independent(m):
        return None
    columns = _columns(_placed(m), sum(_widths(m.domain)))
    leading: dict[int, tuple[int, int]] = {}
    for v, column in enumerate(columns):
        # less significant bits first: the first dependent column has the smallest leading bit, and only one kernel
        # element has it
        inputs = 1 << v
        while column:
            high = column.bit_length()
            known = leading.get(high)
            if known is None:
                leading[high] = (column, inputs)
                break
            column ^= known[0]
            inputs ^= known[1]
        else:
            return _inside(m.domain, inputs)
    return None


def _differ(left: IndexMap, right: IndexMap) -> tuple[int, ...] | None:
    one, other = _placed_alike(left, right)
    lowest = -1
    for a, b in zip(one, other, strict=True):
        if type(a) is BitSum and type(b) is BitSum and a.columns == b.columns and a.constant == b.constant:
            continue
        if type(a) is int and type(b) is int:
            difference: Any = 0 if a == b else 1
        else:
            difference = a ^ b
        constant = difference if type(difference) is int else difference.constant
        if constant:
            return _inside(left.domain, 0)
        if type(difference) is not int:
            first = next(v for v, column in enumerate(difference.columns) if column)
            lowest = first if lowest < 0 else min(lowest, first)
    # all smaller indices have only bits that no difference depends on
    return None if lowest < 0 else _inside(left.domain, 1 << lowest)


def _same(left: IndexMap, right: IndexMap) -> tuple[int, ...] | None:
    one, other = _placed_alike(left, right)
    system = _System()
    for a, b in zip(one, other, strict=True):
        if type(a) is int and type(b) is int:
            if a != b:
                return None
            continue
        if not all(system.add(row, 0) for row in rows_of(a ^ b)):
            return None
    return _inside(left.domain, system.smallest())


def _outside(m: IndexMap, extents: tuple[Any, ...]) -> tuple[int, ...] | None:
    coordinates = _placed(m)
    found: list[int] = []
    for coordinate, extent in zip(coordinates, extents, strict=True):
        if type(coordinate) is int:
            if not 0 <= coordinate < extent:
                found.append(0)
        elif coordinate.support >= extent:
            found += _at_least(rows_of(coordinate), extent)
    return _inside(m.domain, min(found)) if found else None


def _at_least(rows: list[int], extent: int) -> list[int]:
    """For each way that a value can exceed extent - 1 (equal above bit k, 1 over 0 at k), the smallest input."""
    most = extent - 1
    if most < 0:
        return [0]
    above = _System()
    found: list[int] = []
    for k in range(max(len(rows), most.bit_length()) - 1, -1, -1):
        row = rows[k] if k < len(rows) else 0
        if not most >> k & 1:
            exceeding = above.copy()
            if exceeding.add(row, 1):
                found.append(exceeding.smallest())
        if not above.add(row, most >> k & 1):
            break
    return found


def _unreached(m: IndexMap) -> tuple[int, ...] | None:
    own = _widths(m.domain)
    if tuple([1 << width for width in own]) != m.domain.extents:
        raise Unsupported("bits count places of boxes of powers of two only")
    coordinates = _placed(m)
    widths = _widths(m.range)
    start, inputs = sum(widths), sum(own)
    inside = all(
        (c >= 0 if type(c) is int else True) and not (c if type(c) is int else c.support) >> width
        for c, width in zip(coordinates, widths, strict=True)
    )
    if inside and start == inputs and _independent(m):
        return None
    columns = [0] * inputs
    constant = 0
    for coordinate, width in zip(coordinates, widths, strict=True):
        start -= width
        value = coordinate if type(coordinate) is BitSum else BitSum([0] * len(columns), coordinate)
        if value.constant < 0 or value.support >> width:
            raise Unsupported("bits do not look for holes of a map that may leave its range")
        columns = [a | c << start for a, c in zip(columns, value.columns, strict=True)]
        constant |= value.constant << start
    leading = _leading(columns)
    if _reduce(constant, leading):
        return _inside(m.range, 0)
    for bit in range(sum(widths)):
        # places below this bit are all reached, so it is the smallest when it is not
        if _reduce(1 << bit, leading):
            return _inside(m.range, 1 << bit)
    return None


def _reduce(column: int, leading: dict[int, int]) -> int:
    while column and (known := leading.get(column.bit_length())):
        column ^= known
    return column


def preimage(m: IndexMap, wanted: Mapping[int, int], most: int) -> tuple[list[tuple[int, ...]], int]:
    """The indices whose coordinates, by number, have the wanted values: the first of them in order, and how many.

    Undecided when the map is not affine over bits, and over its budget.

    >>> from layoutproof.core.space import Space
    >>> swap = IndexMap(Space(("i",), (16,)), Space(("o",), (8,)), lambda x, c, on: (on.xor(x[0] % 8, x[0] // 8),))
    >>> preimage(swap, {0: 3}, 9)
    ([(3,), (10,)], 2)
    """
    coordinates = _placed(m)
    system = _System()
    for number, value in wanted.items():
        coordinate = coordinates[number]
        rows = rows_of(coordinate)
        if value < 0 or value >> len(rows):
            return [], 0
        if not all(system.add(row, value >> k & 1) for k, row in enumerate(rows)):
            return [], 0
    widths = _widths(m.domain)
    free = [1 << v for v in range(sum(widths)) if 2 << v not in system.rows]
    exact = all(1 << width == extent for width, extent in zip(widths, m.domain.extents, strict=True))
    if not exact and len(free) > LISTED:
        raise BudgetExceeded(f"more than 2**{LISTED} indices of the box of powers of two have these coordinates")
    found: list[tuple[int, ...]] = []
    many = 0
    # free bits are more significant than those they decide, so counting them up keeps the order of indices
    for choice in range(1 << len(free)):
        number = sum([bit for k, bit in enumerate(free) if choice >> k & 1])
        for pivot, row in system.rows.items():
            if ((number << 1 | 1) & row & ~pivot).bit_count() & 1:
                number |= pivot >> 1
        with contextlib.suppress(Unsupported):
            index = _inside(m.domain, number)
            many += 1
            if len(found) < most:
                found.append(index)
        if exact and len(found) == most:
            break
    return found, 1 << len(free) if exact else many


@lru_cache(maxsize=8)
def tally(m: IndexMap) -> Tally:
    """The numbers of a map by rank; Undecided where it is not affine over bits, or some places leave the range.

    >>> from layoutproof.core.space import Space
    >>> fold = IndexMap(Space(("i",), (16,)), Space(("o",), (8,)), lambda x, c, on: (on.xor(x[0] % 8, x[0] // 8),))
    >>> tally(fold)
    Tally(places=8, inside=8, low=(0,), high=(7,), fewest=2, most=2)
    """
    own = _widths(m.domain)
    if tuple([1 << width for width in own]) != m.domain.extents:
        raise Unsupported("bits count places of boxes of powers of two only")
    coordinates = _placed(m)
    low, high = zip(*[_least_and_most(coordinate) for coordinate in coordinates], strict=True)
    boxed = zip(low, high, m.range.extents, strict=True) if m.range.extents else ()
    if any(least < 0 or most >= extent for least, most, extent in boxed):
        raise Unsupported("bits do not count the places within a range that some leave")
    inputs = sum(own)
    places = 1 << len(_leading(_columns(coordinates, inputs)))
    elements = (1 << inputs) // places
    return Tally(places, places, low, high, elements, elements)


def _least_and_most(coordinate: Any) -> tuple[int, int]:
    if type(coordinate) is int:
        return coordinate, coordinate
    low = high = coordinate.constant
    for width, row in sorted(_leading(coordinate.columns).items(), reverse=True):
        bit = 1 << width - 1
        low, high = low ^ row if low & bit else low, high if high & bit else high ^ row
    return low, high


def _leading(columns: Iterable[int]) -> dict[int, int]:
    """Independent sums of columns that span all of them, by the length of each in bits, no two alike."""
    leading: dict[int, int] = {}
    for column in columns:
        if rest := _reduce(column, leading):
            leading[rest.bit_length()] = rest
    return leading


class _System:
    """Linear equations over GF(2), each row solved for its least significant input bit, no two for the same."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}

    def copy(self) -> _System:
        other = _System()
        other.rows = dict(self.rows)
        return other

    def add(self, row: int, value: int) -> bool:
        """Adds `row == value` (bit 0 of the row its constant); False when that contradicts what is there."""
        row ^= value
        for pivot, known in self.rows.items():
            if row & pivot:
                row ^= known
        if row <= 1:
            return row == 0
        inputs = row & ~1
        pivot = inputs & -inputs
        for other, known in self.rows.items():
            if known & pivot:
                self.rows[other] = known ^ row
        self.rows[pivot] = row
        return True

    def smallest(self) -> int:
        """The smallest input that satisfies all: free bits are more significant than those they decide, so all 0."""
        return sum(pivot >> 1 for pivot, row in self.rows.items() if row & 1)
