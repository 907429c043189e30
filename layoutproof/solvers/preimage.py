"""Which elements are at a place: by digits where the layout has any, else by bits, one by one, or by the other engines.

Every row is run through `place` on plain ints before anyone sees it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import reduce
from math import prod
from typing import Any

from layoutproof.core.claim import At, Claim, PlacePredicate
from layoutproof.core.errors import BudgetExceeded, InternalError, Undecided, Unsupported
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.space import Space
from layoutproof.solvers import bits
from layoutproof.solvers.decide import decide
from layoutproof.solvers.digits.preimage import Preimage
from layoutproof.solvers.digits.preimage import preimage as by_digits

LOOKED_AT = 100_000
"""Elements times replicas that are looked at one by one."""

ASKED = 16
"""Elements that are asked for one after the other, each the smallest after the last."""

Row = tuple[int, ...]


def preimage(m: IndexMap, wanted: Mapping[int, int], most: int) -> Preimage:
    """Every index and replica whose coordinates, by number, have the wanted values; at most `most` are listed.

    Exact, whatever the size of the array. Raises Undecided for sizes that are not known and where no engine can tell.

    >>> from layoutproof.layouts.map import read
    >>> preimage(read("(i < 7) -> (i * i,)").index_map(), {0: 9}, 5)
    Preimage(rows=(((3,), ()),), elements=1, pairs=1)
    """
    if m.sizes():
        raise Unsupported(f"the size {m.sizes()[0]} is not known, so places hold no elements that could be named")
    try:
        found = by_digits(m, wanted, most)
    except Undecided as undecided:
        found = _otherwise(m, wanted, most, str(undecided))
    for index, replica in found.rows:
        place = m.at(index, replica)
        if any(place[k] != value for k, value in wanted.items()):
            raise InternalError(f"element {index} is at {place}, and was found at {dict(wanted)}: please report this")
    return found


def _otherwise(m: IndexMap, wanted: Mapping[int, int], most: int, why: str) -> Preimage:
    rank = len(m.domain.extents)
    whole = _joined(m)
    extents: Any = whole.domain.extents
    if prod(extents) <= LOOKED_AT:
        at = (row for row in itertools.product(*map(range, extents)) if _is_at(whole, row, wanted))
        return _counted(list(at), rank, most)
    try:
        rows, many = bits.preimage(whole, wanted, LOOKED_AT if m.replicas.extents else most)
    except Undecided as undecided:
        return _counted(_one_after_the_other(whole, wanted, f"{why}; bits: {undecided}"), rank, most)
    if not m.replicas.extents:
        return Preimage(tuple([(row, ()) for row in rows]), many, many)
    if many > len(rows):
        raise BudgetExceeded(f"more than {LOOKED_AT} elements and replicas have these coordinates")
    return _counted(rows, rank, most)


def _is_at(m: IndexMap, row: Row, wanted: Mapping[int, int]) -> bool:
    place = m.at(row)
    return all(place[k] == value for k, value in wanted.items())


def _counted(rows: list[Row], rank: int, most: int) -> Preimage:
    elements = len({row[:rank] for row in rows})
    return Preimage(tuple([(row[:rank], row[rank:]) for row in rows[:most]]), elements, len(rows))


def _joined(m: IndexMap) -> IndexMap:
    """The same places, the replica a part of the index."""
    rank = len(m.domain.extents)
    box = Space(m.domain.names + m.replicas.names, m.domain.extents + m.replicas.extents)
    return IndexMap(box, m.range, lambda index, replica, on: m.place(index[:rank], index[rank:], on))


def _one_after_the_other(m: IndexMap, wanted: Mapping[int, int], why: str) -> list[Row]:
    """All of them, the smallest first, each asked for as the smallest after the last."""
    rows: list[Row] = []
    itself = IndexMap(m.domain, m.domain, lambda index, replica, on: index)
    while len(rows) < ASKED:
        after = rows[-1] if rows else None

        def there(places: tuple[Index, ...], on: Numbers, after: Row | None = after) -> object:
            conditions = [on.equal(places[0][k], value) for k, value in wanted.items()]
            if after is not None:
                conditions.append(_later(places[1], after, on))
            return reduce(on.logical_and, conditions)

        claim = Claim({"element": m.domain}, PlacePredicate((At(m, "element"), At(itself, "element")), there))
        found = decide(claim)
        if found.reason:
            raise Unsupported(f"{why}; {found.reason}" if not rows else found.reason)
        if found.point is None:
            return rows
        rows.append(found.point["element"])
    raise BudgetExceeded(f"at least {ASKED} elements have these coordinates, the first at {rows[0]}; {why}")


def _later(index: Index, than: Row, on: Numbers) -> object:
    """Whether an index comes after another in lexicographic order."""
    later: Any = None
    for entry, bound in reversed(list(zip(index, than, strict=True))):
        more = on.less(bound, entry)
        later = more if later is None else on.logical_or(more, on.logical_and(on.equal(entry, bound), later))
    return later
