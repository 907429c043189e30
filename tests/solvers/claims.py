"""Maps and claims for the solver tests, built from core alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from layoutproof.core.claim import And, At, Claim, Differ, Equal, LexLess, Outside, Uncovered
from layoutproof.core.errors import Undecided
from layoutproof.core.expression import parse_condition
from layoutproof.core.index_map import IndexMap, row_major
from layoutproof.core.size import ceil_div, symbol
from layoutproof.core.space import Space

N, M, T = symbol("N"), symbol("M"), symbol("T")


def box(*extents: Any) -> Space:
    return Space(tuple(f"d{k}" for k in range(len(extents))), extents)


def mapping(
    domain: Sequence[Any], place: Callable[..., Any], range_: Sequence[Any] = (1,), replicas: Sequence[Any] = ()
) -> IndexMap:
    """`place(on, *index, *replica)` gives one coordinate or a tuple of them."""

    def placed(index: Any, replica: Any, on: Any) -> Any:
        coordinates = place(on, *index, *replica)
        return coordinates if isinstance(coordinates, tuple) else (coordinates,)

    return IndexMap(box(*domain), box(*range_), placed, box(*replicas))


def tiled(shape: Sequence[Any], packed: bool = False, short: int = 0) -> IndexMap:
    """T(8,128), or T(8,128)(2,1), of two dimensions in natural coordinates; `short` tile columns are missing."""
    rows, columns = ceil_div(shape[0], 8), ceil_div(shape[1], 128) - short
    if packed:
        return mapping(
            shape, lambda _, i, j: (i // 8, j // 128, i % 8 // 2, j % 128, i % 2), (rows, columns, 4, 128, 2)
        )
    return mapping(shape, lambda _, i, j: (i // 8, j // 128, i % 8, j % 128), (rows, columns, 8, 128))


def flattened(m: IndexMap) -> IndexMap:
    """The offset in the range box, also where places lie outside of it."""
    extents = m.range.extents
    return IndexMap(
        m.domain, box(m.range.count()), lambda x, c, on: (row_major(m.place(x, c, on), extents, on),), m.replicas
    )


def _where(text: str) -> Any:
    return parse_condition(text) if text else None


def injective(m: IndexMap, where: str = "") -> Claim:
    points = {"first": m.domain, "second": m.domain}
    one, other = At(m, "first"), At(m, "second")
    if m.replicas.extents:
        points |= {"replica1": m.replicas, "replica2": m.replicas}
        one, other = At(m, "first", "replica1"), At(m, "second", "replica2")
    return Claim(points, And((LexLess("first", "second"), Equal(one, other))), where=_where(where))


def in_bounds(m: IndexMap, where: str = "", extents: tuple[Any, ...] | None = None) -> Claim:
    points = {"index": m.domain} | ({"replica": m.replicas} if m.replicas.extents else {})
    return Claim(points, Outside(At(m, "index", "replica" if m.replicas.extents else ""), extents), where=_where(where))


def same(a: IndexMap, b: IndexMap, where: str = "") -> Claim:
    return Claim({"index": a.domain}, Differ(At(a, "index"), At(b, "index")), where=_where(where))


def covers(m: IndexMap, where: str = "") -> Claim:
    return Claim({"place": m.range}, Uncovered(m, "place"), where=_where(where))


def answer_or_reason(solver: Any, claim: Claim) -> Any:
    """What the solver decides, or why it does not."""
    try:
        return solver.decide(claim)
    except Undecided as undecided:
        return str(undecided)
