"""A walk's knowledge of memory besides copies: the numbers in scalar memory, and the written parts of scratch.

A number that the body stores to scalar memory is loaded again later, by this program or by one after it: the slot of a
double buffer, a flag. After a store with an unknown place or number, all cells of the reference are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from layoutproof.bodies.effects import Access, Body, writes_to
from layoutproof.bodies.symbolic import Number

Place = tuple[Number, ...]
Cells = tuple[tuple[tuple[str, Place], Number], ...]
"""Numbers by reference and place, sorted."""
Box = tuple[tuple[int, int], ...]
"""First and one past the last, per dimension."""

LOST: Place = ("lost",)  # type: ignore[assignment]
"""The place that says that nothing is known of a reference but what stands beside it."""


def kept_by(body: Body) -> frozenset[str]:
    """The references in scalar memory, filled once or never for all programs, that the body stores to.

    What is not modelled may store to the others: no number that is stored to them is known to be there later.
    """
    references = (e.view.reference for e in body.effects if isinstance(e, Access) and writes_to(e) is not None)
    filled = {r.name for r in references if r.memory == "smem" and r.role in ("prefetch", "scratch")}
    return frozenset(filled - body.beyond)


def number_at(cells: Cells, name: str, at: Place) -> Number | None:
    """The number at a place of a reference; None where it is not known to have been stored."""
    return dict(cells).get((name, at))


def lost(cells: Cells, name: str) -> bool:
    """Whether cells without a stored number may hold any number."""
    return (name, LOST) in dict(cells)


def stored(cells: Cells, name: str, at: Place, number: Number) -> Cells:
    """After a number was stored."""
    return tuple(sorted({**dict(cells), (name, at): number}.items(), key=repr))


def without(cells: Cells, names: Iterable[str]) -> Cells:
    """After something was stored to references of which neither the place nor the number is known."""
    gone = frozenset(names)
    left = {key: number for key, number in cells if key[0] not in gone}
    return tuple(sorted((left | {(name, LOST): 0 for name in gone}).items(), key=repr))


def covered(box: Box, by: Sequence[Box]) -> bool:
    """Whether every element of a box is in one of some others.

    >>> covered(((0, 4), (0, 8)), [((0, 2), (0, 8)), ((2, 4), (0, 8))])
    True
    >>> covered(((0, 4), (0, 8)), [((0, 2), (0, 8)), ((3, 4), (0, 8))])
    False
    """
    if not box:
        return bool(by)
    met = [other for other in by if all(a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True))]
    (low, high), *rest = box
    edges = sorted({low, high, *(e for other in met for e in other[0] if low < e < high)})
    return all(
        covered(tuple(rest), [other[1:] for other in met if other[0][0] <= a and b <= other[0][1]])
        for a, b in pairwise(edges)
    )


def meets(box: Box, other: Box) -> bool:
    """Whether two boxes have an element in common."""
    return all(a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True))


def minus(box: Box, other: Box) -> list[Box]:
    """What of a box is not in another one, as boxes that do not meet.

    >>> minus(((0, 4), (0, 8)), ((2, 9), (0, 4)))
    [((0, 2), (0, 8)), ((2, 4), (4, 8))]
    """
    if not meets(box, other):
        return [box]
    found = []
    for dim, ((a, b), (c, d)) in enumerate(zip(box, other, strict=True)):
        for low, high in ((a, min(b, c)), (max(a, d), b)):
            if low < high:
                found.append((*box[:dim], (low, high), *box[dim + 1 :]))
        box = (*box[:dim], (max(a, c), min(b, d)), *box[dim + 1 :])
    return found


def joined(boxes: Iterable[Box]) -> list[Box]:
    """The same elements in fewer boxes: those that lie next to each other are one.

    >>> joined([((0, 2), (0, 4)), ((0, 2), (4, 8)), ((2, 4), (0, 8))])
    [((0, 4), (0, 8))]
    """
    found = sorted(set(boxes))
    for dim in reversed(range(len(found[0]) if found else 0)):
        rows: dict[Box, list[tuple[int, int]]] = {}
        for box in found:
            rows.setdefault((*box[:dim], *box[dim + 1 :]), []).append(box[dim])
        found = []
        for rest, spans in rows.items():
            spans.sort()
            (low, high), *more = spans
            for a, b in more:
                if a <= high:
                    high = max(high, b)
                    continue
                found.append((*rest[:dim], (low, high), *rest[dim:]))
                low, high = a, b
            found.append((*rest[:dim], (low, high), *rest[dim:]))
    return sorted(found)
