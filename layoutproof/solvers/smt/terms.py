"""A map as terms of Z3 in the user's own context: one integer unknown per index, replica and size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutproof.core.index_map import IndexMap, row_major
from layoutproof.core.size import Extent
from layoutproof.core.space import axis_names, distinct
from layoutproof.solvers.interval import Interval
from layoutproof.solvers.smt.bounded import Bounded, BoundedNumbers, bounds, term_of
from layoutproof.solvers.smt.library import z3
from layoutproof.solvers.smt.plain import Plain

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import ArithRef


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Unknowns by name, terms over them, and assumptions."""

    index: dict[str, Any]
    replica: dict[str, Any]
    sizes: dict[str, Any]
    place: dict[str, Any]
    offset: Any
    padding: Any
    assumptions: tuple[Any, ...]


def terms(m: IndexMap) -> Terms:
    """The map, its offset and its padding (None without a memory), under the assumption that indices are in the box.

    Raises Unsupported for a divisor that is never positive, and for an xor of values without a bound.
    """
    names, rank = distinct((*m.domain.names, *m.replicas.names), m.sizes()), len(m.domain.extents)
    plain = Plain()
    sizes = {name: z3.Int(name) for name in m.sizes()}
    on = BoundedNumbers(plain, {name: Bounded(plain, Interval(1, math.inf), size) for name, size in sizes.items()})
    unknowns = {name: z3.Int(name) for name in names}
    assumed = [size >= 1 for size in sizes.values()]
    entries: list[Any] = []
    for unknown, extent in zip(unknowns.values(), (*m.domain.extents, *m.replicas.extents), strict=True):
        size = on.size(extent)
        assumed += [unknown >= 0, unknown < term_of(plain, size)]
        highest = bounds(size).high - 1
        entries.append(0 if highest <= 0 else Bounded(plain, Interval(0, highest), unknown))
    place = m.place(tuple(entries[:rank]), tuple(entries[rank:]), on)
    offset = padding = None
    if m.memory is not None:
        offset = term_of(plain, row_major(place, m.range.extents, on))
        padding = _of_size(m.memory.allotted - m.domain.count(), on)
    axes: Sequence[str] = distinct(m.range.names or axis_names(len(place)))
    coordinates = {axis: term_of(plain, entry) for axis, entry in zip(axes, place, strict=True)}
    index, replica = {n: unknowns[n] for n in names[:rank]}, {n: unknowns[n] for n in names[rank:]}
    return Terms(index, replica, sizes, coordinates, offset, padding, (*assumed, *plain.assumed))


def _of_size(extent: Extent, on: BoundedNumbers) -> ArithRef:
    return term_of(on.dialect, on.size(extent))
