"""An index for each place, read off its digits: shown to be right, it proves that every place is reached."""

from __future__ import annotations

from typing import Any

from layoutproof.core.errors import Unsupported
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent, surely_less
from layoutproof.core.space import Space
from layoutproof.solvers.digits import DIGITS, placed
from layoutproof.solvers.digits.number import Digit, DigitSum, ascending, leaves_of


def witness(m: IndexMap) -> IndexMap:
    """Place -> an index and a replica that are likely to be there; nothing says that they are, or are in their box.

    In each coordinate the digit with the largest step takes as much as it can, then the next. Raises Undecided for maps
    that digits cannot follow, and where the order of the steps depends on sizes.

    >>> from layoutproof.layouts.map import read
    >>> witness(read("(i < 10) -> (i // 4, i % 4) in [3, 4]").index_map()).at((2, 1))
    (9,)
    """
    roots, coordinates = placed(m, DIGITS)
    steps: list[tuple[int, list[tuple[Digit, Extent]], Extent]] = []
    seen: set[Digit] = set()
    for k, coordinate in enumerate(coordinates):
        form, constant = (coordinate.over_leaves(), coordinate.constant) if type(coordinate) is DigitSum else ({}, 0)
        fresh = {digit: step for digit, step in form.items() if digit not in seen}
        if not all(surely_less(0, step) for step in fresh.values()):
            raise Unsupported("a place gets no larger with a digit")
        steps.append((k, ascending(fresh)[::-1], constant))
        seen.update(fresh)
    extents = (*m.domain.extents, *m.replicas.extents)

    def place(at: Index, _: Index, on: Numbers) -> Index:
        values: dict[Digit, Any] = {}
        for k, digits, constant in steps:
            rest = at[k] - on.size(constant)
            for digit, step in digits:
                size = on.size(step)
                values[digit] = rest // size
                rest = rest % size
        found: list[Any] = [0] * len(extents)
        for root in roots:
            for leaf in leaves_of([root]):
                if leaf in values:
                    found[root.dimension] = found[root.dimension] + values[leaf] * on.size(leaf.weight)
        return tuple(found)

    return IndexMap(m.range, Space((*m.domain.names, *m.replicas.names), extents), place, symbols=m.sizes())
