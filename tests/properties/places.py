"""Sets of places by plain enumeration: the smallest counterexamples that the properties of copies must find."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from layoutproof.core.index_map import IndexMap, from_row_major, row_major
from layoutproof.core.space import Space

Index = tuple[int, ...]
Point = dict[str, Index]


def every(extents: Sequence[Any]) -> Iterator[Index]:
    return itertools.product(*map(range, extents))


def axe(
    shape: Sequence[int],
    shard: Sequence[tuple[int, int, str]],
    copies: Sequence[tuple[int, int, str]] = (),
    offset: dict[str, int] | None = None,
    within: dict[str, int] | None = None,
) -> IndexMap:
    """An Axe layout straight from its definition: D `shard`, R `copies`, O `offset`; range 1 + largest, or `within`."""
    start = offset or {}
    axes = tuple(dict.fromkeys([*(a for _, _, a in (*shard, *copies)), *start, *(within or {})]))

    def place(index: Any, copy: Any, on: Any) -> Any:
        digits = from_row_major(row_major(index, shape, on), [e for e, _, _ in shard], on)
        totals = {axis: start.get(axis, 0) for axis in axes}
        for digit, (_, stride, axis) in zip((*digits, *copy), (*shard, *copies), strict=True):
            totals[axis] = totals[axis] + digit * stride
        return tuple(totals[axis] for axis in axes)

    highest = {
        axis: start.get(axis, 0) + sum((e - 1) * s for e, s, a in (*shard, *copies) if a == axis and s > 0)
        for axis in axes
    }
    extents = tuple((within or {}).get(axis, max(1, highest[axis] + 1)) for axis in axes)
    domain = Space(tuple(f"i{k}" for k in range(len(shape))), tuple(shape))
    box = Space(tuple(f"r{k}" for k in range(len(copies))), tuple(e for e, _, _ in copies))
    return IndexMap(domain, Space(axes, extents), place, box)


def places(m: IndexMap, index: Index) -> list[Index]:
    return [m.at(index, copy) for copy in every(m.copies.extents)]


def collision(m: IndexMap) -> Point | None:
    """The smallest two elements with a common place, and their smallest copies there."""
    holders: dict[Index, list[tuple[Index, Index]]] = defaultdict(list)
    for index in every(m.domain.extents):
        for copy in every(m.copies.extents):
            holders[m.at(index, copy)].append((index, copy))
    pairs = [
        (first, second, one, other)
        for found in holders.values()
        for first, one in found
        for second, other in found
        if first < second
    ]
    if not pairs:
        return None
    names = ("first", "second", "first_copy", "second_copy") if m.copies.extents else ("first", "second")
    return dict(zip(names, min(pairs), strict=False))


def repeated(m: IndexMap, axes: Sequence[str] | None = None) -> Point | None:
    """The smallest element with two copies that agree on the axes (on all of them by default)."""
    kept = [k for k, name in enumerate(m.range.names) if axes is None or name in axes]
    for index in every(m.domain.extents):
        for one, other in itertools.product(every(m.copies.extents), repeat=2):
            if one < other and all(m.at(index, one)[k] == m.at(index, other)[k] for k in kept):
                return {"element": index, "first_copy": one, "second_copy": other}
    return None


def missing(one: IndexMap, other: IndexMap, copy_name: str = "copy") -> Point | None:
    """The smallest element and copy of `one` with a place that `other` does not give that element."""
    for index in every(one.domain.extents):
        known = {_by_axis(other, place) for place in places(other, index)}
        for copy in every(one.copies.extents):
            if _by_axis(one, one.at(index, copy)) not in known:
                return {"element": index} | ({copy_name: copy} if one.copies.extents else {})
    return None


def hole(m: IndexMap) -> Point | None:
    used = {place for index in every(m.domain.extents) for place in places(m, index)}
    return next(({"place": place} for place in every(m.range.extents) if place not in used), None)


def holes(m: IndexMap) -> int:
    used = {place for index in every(m.domain.extents) for place in places(m, index)}
    return sum(place not in used for place in every(m.range.extents))


def outside(m: IndexMap, within: dict[str, int]) -> Point | None:
    box = [within.get(name, extent) for name, extent in zip(m.range.names, m.range.extents, strict=True)]
    for index in every(m.domain.extents):
        for copy in every(m.copies.extents):
            if any(not 0 <= v < e for v, e in zip(m.at(index, copy), box, strict=True)):
                return {"element": index} | ({"copy": copy} if m.copies.extents else {})
    return None


def _by_axis(m: IndexMap, place: Index) -> frozenset[tuple[str, int]]:
    """A place as a vector over named axes: an axis that is not written is 0."""
    return frozenset((name, entry) for name, entry in zip(m.range.names, place, strict=True) if entry)
