"""Sets of places by plain enumeration: the smallest counterexamples that the properties of replicas must find."""

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
    replicas: Sequence[tuple[int, int, str]] = (),
    offset: dict[str, int] | None = None,
    within: dict[str, int] | None = None,
) -> IndexMap:
    """An Axe layout from its definition: D `shard`, R `replicas`, O `offset`, range 1 + largest or `within`."""
    start = offset or {}
    axes = tuple(dict.fromkeys([*(a for _, _, a in (*shard, *replicas)), *start, *(within or {})]))

    def place(index: Any, replica: Any, on: Any) -> Any:
        digits = from_row_major(row_major(index, shape, on), [e for e, _, _ in shard], on)
        totals = {axis: start.get(axis, 0) for axis in axes}
        for digit, (_, stride, axis) in zip((*digits, *replica), (*shard, *replicas), strict=True):
            totals[axis] = totals[axis] + digit * stride
        return tuple(totals[axis] for axis in axes)

    highest = {
        axis: start.get(axis, 0) + sum((e - 1) * s for e, s, a in (*shard, *replicas) if a == axis and s > 0)
        for axis in axes
    }
    extents = tuple((within or {}).get(axis, max(1, highest[axis] + 1)) for axis in axes)
    domain = Space(tuple(f"i{k}" for k in range(len(shape))), tuple(shape))
    box = Space(tuple(f"r{k}" for k in range(len(replicas))), tuple(e for e, _, _ in replicas))
    return IndexMap(domain, Space(axes, extents), place, box)


def places(m: IndexMap, index: Index) -> list[Index]:
    return [m.at(index, replica) for replica in every(m.replicas.extents)]


def collision(m: IndexMap) -> Point | None:
    """The smallest two elements with a common place, and their smallest replicas there."""
    holders: dict[Index, list[tuple[Index, Index]]] = defaultdict(list)
    for index in every(m.domain.extents):
        for replica in every(m.replicas.extents):
            holders[m.at(index, replica)].append((index, replica))
    pairs = [
        (first, second, one, other)
        for found in holders.values()
        for first, one in found
        for second, other in found
        if first < second
    ]
    if not pairs:
        return None
    names = ("first", "second", "first_replica", "second_replica") if m.replicas.extents else ("first", "second")
    return dict(zip(names, min(pairs), strict=False))


def repeated(m: IndexMap, axes: Sequence[str] | None = None) -> Point | None:
    """The smallest element with two replicas that agree on the axes (on all of them by default)."""
    kept = [k for k, name in enumerate(m.range.names) if axes is None or name in axes]
    for index in every(m.domain.extents):
        for one, other in itertools.product(every(m.replicas.extents), repeat=2):
            if one < other and all(m.at(index, one)[k] == m.at(index, other)[k] for k in kept):
                return {"element": index, "first_replica": one, "second_replica": other}
    return None


def missing(one: IndexMap, other: IndexMap, replica_name: str = "replica") -> Point | None:
    """The smallest element and replica of `one` with a place that `other` does not give that element."""
    for index in every(one.domain.extents):
        known = {_by_axis(other, place) for place in places(other, index)}
        for replica in every(one.replicas.extents):
            if _by_axis(one, one.at(index, replica)) not in known:
                return {"element": index} | ({replica_name: replica} if one.replicas.extents else {})
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
        for replica in every(m.replicas.extents):
            if any(not 0 <= v < e for v, e in zip(m.at(index, replica), box, strict=True)):
                return {"element": index} | ({"replica": replica} if m.replicas.extents else {})
    return None


def _by_axis(m: IndexMap, place: Index) -> frozenset[tuple[str, int]]:
    """A place as a vector over named axes: an axis that is not written is 0."""
    return frozenset((name, entry) for name, entry in zip(m.range.names, place, strict=True) if entry)
