"""A map as terms of Z3 in the user's own context: one integer unknown per index, replica and size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import z3

from layoutproof.core.errors import Unsupported
from layoutproof.core.index_map import IndexMap, row_major
from layoutproof.core.size import Extent
from layoutproof.core.space import axis_names, distinct
from layoutproof.solvers.interval import Bound, Interval
from layoutproof.solvers.smt.bounded import Bounded, BoundedNumbers, bounds, term_of

WIDTH = 128
"""Bits in which an xor is taken: no number of a layout of known sizes needs more."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Unknowns by name, what is made of them, and what is assumed."""

    index: dict[str, Any]
    replica: dict[str, Any]
    sizes: dict[str, Any]
    place: dict[str, Any]
    offset: Any
    padding: Any
    assumptions: tuple[Any, ...]


class Plain:
    """z3's own integer operations, in the context that everybody shares; see `Dialect`.

    Quotient and remainder are Python's where the divisor is positive, and every divisor in doubt is assumed to be.
    """

    floors = True

    def __init__(self) -> None:
        self.assumed: list[Any] = []
        self.finite = True

    def note(self, low: Bound, high: Bound) -> None:
        """Whether the value that is written next has a bound."""
        self.finite = not (math.isinf(low) or math.isinf(high))

    def variable(self, name: str, low: Bound) -> Any:
        return z3.Int(name)

    def constant(self, value: int) -> Any:
        return z3.IntVal(value)

    def add(self, left: Any, right: Any) -> Any:
        return left + right

    def subtract(self, left: Any, right: Any) -> Any:
        return left - right

    def multiply(self, left: Any, right: Any) -> Any:
        return left * right

    def quotient(self, value: Bounded | int, by: Bounded | int) -> Any:
        return term_of(self, value) / term_of(self, by)

    def remainder(self, value: Bounded | int, by: Bounded | int) -> Any:
        return term_of(self, value) % term_of(self, by)

    def positive(self, divisor: Any) -> None:
        self.assumed.append(divisor >= 1)

    def xor(self, left: Any, right: Any) -> Any:
        if not self.finite:
            raise Unsupported("takes the xor of values that depend on symbolic sizes")
        return z3.BV2Int(z3.Int2BV(left, WIDTH) ^ z3.Int2BV(right, WIDTH), is_signed=True)

    def below(self, value: Any, bound: Any) -> Any:
        return z3.And(value >= 0, value < bound)

    def less(self, left: Any, right: Any) -> Any:
        return left < right

    def equal(self, left: Any, right: Any) -> Any:
        return left == right

    def logical_and(self, left: Any, right: Any) -> Any:
        return z3.And(left, right)

    def logical_or(self, left: Any, right: Any) -> Any:
        return z3.Or(left, right)

    def logical_not(self, condition: Any) -> Any:
        return z3.Not(condition)

    def choose(self, condition: Any, left: Any, right: Any, low: Bound) -> Any:
        return z3.If(condition, left, right)


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


def _of_size(extent: Extent, on: BoundedNumbers) -> Any:
    return term_of(on.dialect, on.size(extent))
