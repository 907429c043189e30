"""Coordinates by the name of their axis: which of them a claim is about, and maps that name them in another order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.space import Space

_POSITION = re.compile(r"p\d+|offset")
"""Names that say where a coordinate stands, not which axis it is on."""


def named(m: IndexMap, index: Index, replica: Index, on: Numbers) -> str:
    """A place in words: each coordinate with the name of its axis, where axes have names; see `IndexMap.show_place`.

    >>> from layoutproof.core.numbers import INTS
    >>> lanes = IndexMap(Space(("i",), (8,)), Space(("lane", "reg"), (4, 2)), lambda x, c, on: (x[0] // 2, x[0] % 2))
    >>> named(lanes, (5,), (), INTS)
    'lane 2, reg 1'
    """
    names = m.range.names
    if m.memory is not None or not names or any(_POSITION.fullmatch(name) for name in names):
        return m.show_place(index, replica, on)
    return ", ".join(f"{axis} {entry}" for axis, entry in zip(names, m.place(index, replica, on), strict=True))


def onto(m: IndexMap, names: Sequence[str]) -> IndexMap:
    """The map to the coordinates with these names, in this order. LayoutError for an axis that the map lacks.

    >>> both = IndexMap(Space(("i",), (8,)), Space(("a", "b"), (2, 4)), lambda x, c, on: (x[0] // 4, x[0] % 4))
    >>> onto(both, ("b",)).at((6,))
    (2,)
    """
    unknown = [name for name in names if name not in m.range.names]
    if unknown:
        have = f"it has {', '.join(m.range.names)}" if m.range.names else "its axes have no names"
        raise LayoutError(problems.NO_AXIS(unknown[0], have))
    kept = [m.range.names.index(name) for name in names]
    place = m.place

    def some(index: Index, replica: Index, on: Numbers) -> Index:
        coordinates = place(index, replica, on)
        return tuple([coordinates[k] for k in kept])

    box = Space(tuple(names), tuple([m.range.extents[k] for k in kept]))
    return IndexMap(m.domain, box, some, m.replicas, symbols=m.sizes())


def aligned(left: IndexMap, right: IndexMap) -> tuple[IndexMap, IndexMap]:
    """Both maps with the same axes in the same order; an axis that only one of them has is 0 on the other.

    Left as they are where a memory or positions, not names, say what a coordinate is. Raises LayoutError when one
    places its elements in a memory and the other on an axis such as `lane` that is none.
    """
    one, other = left.range.names, right.range.names
    if (left.memory is None) != (right.memory is None):
        names = other if left.memory else one
        if len(names) == 1 and names[0] != "m" and not _POSITION.fullmatch(names[0]):
            raise LayoutError(problems.NOT_MEMORY(names[0]))
    if one == other or left.memory or right.memory or not one or not other:
        return left, right
    if any(_POSITION.fullmatch(name) for name in (*one, *other)):
        return left, right
    names = (*one, *(name for name in other if name not in one))
    return _over(left, names), _over(right, names)


def _over(m: IndexMap, names: tuple[str, ...]) -> IndexMap:
    if m.range.names == names:
        return m
    places = {name: k for k, name in enumerate(m.range.names)}
    place = m.place

    def spread(index: Index, replica: Index, on: Numbers) -> Index:
        coordinates = place(index, replica, on)
        return tuple([coordinates[places[name]] if name in places else 0 for name in names])

    extents = tuple([m.range.extents[places[name]] if name in places else 1 for name in names])
    return IndexMap(m.domain, Space(names, extents), spread, m.replicas, symbols=m.sizes())
