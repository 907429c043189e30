"""Consistency of the reads of one table, as conditions on any kind of number.

Reads of a table are unknowns of their own (see `windows`). These conditions let exactly those values stand together
that some whole table holds: without them a refutation could rest on a table that cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.core.element_types import integer_range
from layoutproof.core.index_map import Index, row_major
from layoutproof.core.numbers import Numbers, Numeral
from layoutproof.core.size import Extent, product
from layoutproof.core.term import fixed
from layoutproof.kernel.kernel import Table

Seen = tuple[Table, Index, Any]
"""One read: the table, the indices, the value."""


def restricted(table: Table) -> bool:
    """Whether a single read is already bound by more than the table's bounds."""
    return _placed(table) or table.total is not None or (_symbolic(table) and (table.injective or table.onto))


def consistent_reads(seen: Sequence[Seen], on: Numbers) -> object:
    """Whether some tables hold all these values. A read outside of a table is bound by equality only."""
    held: Any = True
    for table in {id(t): t for t, _, _ in seen if _symbolic(t)}.values():
        held = on.logical_and(held, _exists(table, on))
    inside = [_inside(table, at, on) for table, at, _ in seen]
    for table, _, value in seen:
        if any(type(bound) is not int for bound in range_of(table)):
            # a bound that is a size may be beyond the integers that the table can hold
            least, most = integer_range(table.bits, table.signed)
            held = on.logical_and(held, on.logical_and(on.less(least - 1, value), on.less(value, most)))
    for k, one in enumerate(seen):
        if _placed(one[0]):
            held = on.logical_and(held, on.logical_or(on.logical_not(inside[k]), _room(one, on)))
        for j in range(k + 1, len(seen)):
            if seen[j][0] is one[0]:
                held = on.logical_and(held, _pair(one, seen[j], on.logical_and(inside[k], inside[j]), on))
    for table in {id(t): t for t, _, _ in seen}.values():
        if table.total is not None and table.low is not None:
            own = [(s, i) for s, i in zip(seen, inside, strict=True) if s[0] is table]
            held = on.logical_and(held, _below_total(table, own, on))
        if table.onto and not table.monotone and table.low is not None and table.high is not None:
            held = on.logical_and(
                held, _enough(table, [(s, i) for s, i in zip(seen, inside, strict=True) if s[0] is table], on)
            )
    return held


def range_of(table: Table) -> tuple[Extent, Extent]:
    """The values that a table may hold: low <= value < high; without assumptions, the range of its integer type."""
    least, most = integer_range(table.bits, table.signed)
    low, high = fixed((least if table.low is None else table.low, most if table.high is None else table.high))
    return low, high


def takes_every_value(table: Table) -> bool:
    """Whether every value of a table occurs in it: as assumed, or since it has as many entries, of which no two agree.

    >>> takes_every_value(Table("t", (4,), low=0, high=4, injective=True))
    True
    >>> takes_every_value(Table("t", (4,), low=0, high=5, injective=True))
    False
    """
    if table.low is None or table.high is None:
        return False
    entries, values = fixed((product(table.dims), table.high - table.low))
    return table.onto or (table.injective and entries == values)


def _placed(table: Table) -> bool:
    """Whether the place of an entry in the table alone bounds its value."""
    return table.monotone and (table.injective or table.onto)


def _symbolic(table: Table) -> bool:
    """Whether there are such tables for some sizes and none for others; where all is constant, others look at that."""
    low, high = range_of(table)
    return any(type(n) is not int for n in (*table.dims, low, high))


def _exists(table: Table, on: Numbers) -> object:
    low, high = range_of(table)
    entries, values = on.size(product(table.dims)), on.size(high - low)
    held: Any = True
    if table.injective:
        held = on.less(entries, values + 1)
    if table.onto and table.low is not None and table.high is not None:
        held = on.logical_and(held, on.less(values, entries + 1))
    return held


def _inside(table: Table, at: Index, on: Numbers) -> object:
    held: Any = True
    for entry, extent in zip(at, table.dims, strict=True):
        held = on.logical_and(held, on.logical_and(on.less(-1, entry), on.less(entry, on.size(extent))))
    return held


def _pair(one: Seen, other: Seen, inside: Any, on: Numbers) -> Any:
    (table, at, value), (_, there, second) = one, other
    same: Any = True
    for a, b in zip(at, there, strict=True):
        same = on.logical_and(same, on.equal(a, b))
    equal = on.equal(value, second)
    held = on.logical_or(on.logical_not(same), equal)
    outside = on.logical_not(inside)
    if table.injective:
        held = on.logical_and(held, on.logical_or(outside, on.logical_or(same, on.logical_not(equal))))
    if table.monotone:
        dims = fixed(table.dims)
        here, later = row_major(at, dims, on), row_major(there, dims, on)
        rising = on.logical_or(on.logical_not(on.less(here, later)), _rising(table, later - here, second - value, on))
        falling = on.logical_or(on.logical_not(on.less(later, here)), _rising(table, here - later, value - second, on))
        held = on.logical_and(held, on.logical_or(outside, on.logical_and(rising, falling)))
    return held


def _rising(table: Table, entries: Any, by: Any, on: Numbers) -> Any:
    """From one entry of a monotone table to another, `entries` > 0 later, the value may rise by `by`."""
    # each step is at least 1 where no value comes twice, at most 1 where none is left out
    least = on.less(entries - 1, by) if table.injective else on.less(-1, by)
    return on.logical_and(least, on.less(by, entries + 1)) if table.onto else least


def _room(seen: Seen, on: Numbers) -> object:
    """The entries before and after a read have values to hold: of a monotone table that is injective or onto."""
    table, at, value = seen
    low, high = (on.size(bound) for bound in range_of(table))
    before = row_major(at, fixed(table.dims), on)
    after = on.size(product(table.dims)) - 1 - before
    held: Any = True
    if table.injective:
        held = on.logical_and(on.less(low + before, value + 1), on.less(value + after, high))
    if table.onto and table.low is not None and table.high is not None:
        held = on.logical_and(held, on.logical_and(on.less(value, low + before + 1), on.less(high, value + after + 2)))
    return held


def _enough(table: Table, seen: Sequence[tuple[Seen, Any]], on: Numbers) -> Any:
    """A table that holds every value has entries enough left for those not seen yet: repeated ones are bounded."""
    low, high = (on.size(bound) for bound in range_of(table))
    spare = on.size(product(table.dims)) - (high - low)
    repeated: Any = 0
    for k, ((_, _, value), inside) in enumerate(seen):
        new, known = _is_new(seen, k, on), on.logical_not(inside)
        for (_, _, other), also in seen[:k]:
            known = on.logical_or(known, on.logical_and(also, on.equal(value, other)))
        repeated = repeated + on.select(on.logical_and(new, known), 1, 0)
    return on.less(repeated, spare + 1)


def _below_total(table: Table, seen: Sequence[tuple[Seen, Any]], on: Numbers) -> Any:
    """The entries that are read leave enough of the total for all others, which hold the least each."""
    low = on.size(range_of(table)[0])
    left = (table.total or 0) - on.size(product(table.dims)) * low
    over: Any = 0
    for k, ((_, _, value), _) in enumerate(seen):
        over = over + on.select(_is_new(seen, k, on), value - low, 0)
    return on.less(over, left + 1)


def _is_new(seen: Sequence[tuple[Seen, Numeral]], k: int, on: Numbers) -> object:
    """Whether a read is inside of its table, and of an entry that none of those before it has read."""
    (_, at, _), new = seen[k]
    for (_, there, _), also in seen[:k]:
        same: Any = also
        for a, b in zip(at, there, strict=True):
            same = on.logical_and(same, on.equal(a, b))
        new = on.logical_and(new, on.logical_not(same))
    return new
