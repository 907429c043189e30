"""A map as isl's own: the relation between an element and each of its places, parametric in the sizes."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import islpy as isl

from layoutproof.core.errors import Unsupported
from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import Extent
from layoutproof.core.space import axis_names, distinct
from layoutproof.solvers.isl.quasi import SET, Affine, Condition, Frame, Number, Quasi
from layoutproof.solvers.isl.steps import Steps, steps

BUDGET = 300_000
"""Operations of isl for one relation; layouts of tools in use need some thousands."""
CALL = 100_000
"""Operations of one call."""
WIDEST = 24
"""Bits of a value of which an xor is written out, bit by bit."""

_WORDS = frozenset({"exists", "mod", "floor", "ceil", "floord", "ceild", "min", "max", "implies", "infty", "infinity"})
_WORDS |= {"nan", "rat", "int", "true", "false"}


def relation(m: IndexMap) -> isl.Map:
    """An `islpy.Map` in islpy's default context: index -> coordinates, of every replica.

    Parameters are the size symbols, each >= 1. Dimensions and axes have their names where isl can read them. Raises
    Undecided for what is not quasi-affine: products and quotients of values that vary, xor of unbounded ones.

    >>> from layoutproof.core.space import Space
    >>> relation(IndexMap(Space(("i",), (3,)), Space(("o",), (9,)), lambda x, c, on: (2 * x[0],)))
    Map("{ [i] -> [o = 2i] : 0 <= i <= 2 }")
    """
    with steps(BUDGET, CALL) as run:
        made = _relation(m, run)
    # a set that a user joins with others must be in the context in which islpy reads texts
    return isl.Map(made)


def _relation(m: IndexMap, run: Steps) -> str:
    sizes, rank, copies = m.sizes(), len(m.domain.extents), len(m.replicas.extents)
    axes = m.range.names or axis_names(m.coordinates())
    frame = Frame(run, (*(f"the size {name}" for name in sizes), *m.domain.names, *m.replicas.names, *axes))
    on = _Bits(frame, {name: frame.variable(k) for k, name in enumerate(sizes)})
    first = len(sizes)
    entries = [frame.variable(first + k) for k in range(rank + copies)]
    places = [frame.variable(first + rank + copies + k) for k in range(len(axes))]
    box = [on.less(0, size) for size in on.sizes.values()]
    box += inside(entries, (*m.domain.extents, *m.replicas.extents), on)
    on.box = reduce(on.logical_and, box, frame.everything)
    coordinates = m.place(tuple(entries[:rank]), tuple(entries[rank:]), on)
    equal = [on.equal(place, entry) for place, entry in zip(places, coordinates, strict=True)]
    whole = reduce(on.logical_and, equal, on.box)
    whole = run(whole.project_out, SET, first + rank, copies)
    found = run(isl.Map.from_range, whole)
    found = run(found.move_dims, isl.dim_type.param, 0, isl.dim_type.out, 0, first)
    found = run(found.move_dims, isl.dim_type.in_, 0, isl.dim_type.out, 0, rank)
    found = run(run(found.coalesce).remove_redundancies)
    names = distinct((*m.domain.names, *axes), sizes)
    for kind, labels in (
        (isl.dim_type.param, sizes),
        (isl.dim_type.in_, names[:rank]),
        (isl.dim_type.out, names[rank:]),
    ):
        for k, name in enumerate(labels):
            found = run(found.set_dim_name, kind, k, _readable(name, kind == isl.dim_type.param))
    # printing must not fail half-way
    run.context.set_max_operations(0)
    return str(found)


def _readable(name: str, needed: bool) -> str | None:
    if name.isidentifier() and name.isascii() and name.lower() not in _WORDS and not keyword.iskeyword(name):
        return name
    if needed:
        raise Unsupported(f"isl reads {name!r} as a word of its own, so it cannot name a size")
    return None


def inside(entries: Sequence[Number], extents: Iterable[Extent], on: Affine) -> list[Condition]:
    """The conditions that entries are those of a box."""
    pairs = list(zip(entries, extents, strict=True))
    return [on.less(-1, entry) for entry, _ in pairs] + [on.less(entry, on.size(extent)) for entry, extent in pairs]


class _Bits(Affine):
    """Quasi-affine functions of points in a box: there an xor is a sum over the bits of its operands."""

    box: Any = None

    def xor(self, left: Number, right: Number) -> Number:
        if type(left) is int and type(right) is int:
            return left ^ right
        total: Number = 0
        for k in range(max(self._width(left), self._width(right))):
            total = total + (left // (1 << k) + right // (1 << k)) % 2 * (1 << k)
        return total

    def _width(self, value: Number) -> int:
        if isinstance(value, int):
            low = high = value
        else:
            low, high = self._ends(value)
        if low < 0:
            raise Unsupported("takes an xor of a value that may be negative, which isl is not asked")
        if high.bit_length() > WIDEST:
            raise Unsupported(f"takes an xor of a value of more than {WIDEST} bits, which isl is not asked")
        return high.bit_length()

    def _ends(self, value: Quasi) -> tuple[int, int]:
        run = self.frame.run
        inside = run(value.pw.intersect_domain, self.box)
        if run(self.box.is_empty):
            return 0, 0
        ends = run(inside.min_val), run(inside.max_val)
        if not all(run(end.is_int) for end in ends):
            raise Unsupported("takes an xor of a value that has no bound, which is not quasi-affine")
        return ends[0].to_python(), ends[1].to_python()
