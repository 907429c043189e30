"""One axis written as several, `tx = 32*warpid + laneid`, and the bounds under which that loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from layoutproof.core import problems
from layoutproof.core.bounds import check_length
from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import LONGEST, parse_expression
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.space import Space
from layoutproof.core.term import Term


@dataclass(frozen=True, slots=True)
class Fusion:
    """`whole` = sum of factor * part, largest factor first; `bounds`: exclusive, of each part but the first."""

    whole: str
    parts: tuple[str, ...]
    factors: tuple[int, ...]
    bounds: tuple[int, ...]


def read_fusion(text: str) -> Fusion:
    """A fusion from its equation. LayoutError unless the factors are whole numbers that divide one another.

    >>> read_fusion("tx = 32*warpid + laneid")
    Fusion(whole='tx', parts=('warpid', 'laneid'), factors=(32, 1), bounds=(32,))
    """
    whole, equals, right = check_length(text, LONGEST).partition("=") if isinstance(text, str) else ("", "", "")
    if not equals or not whole.strip().isidentifier():
        raise LayoutError(problems.FUSION_FORM(text))
    term = parse_expression(right.strip())
    names = term.names()
    if not names or not _is_linear(term):
        raise LayoutError(problems.FUSION_SUM(right.strip()), text=text)
    zero = dict.fromkeys(names, 0)
    start = term.evaluate(zero, INTS)
    factors = {name: term.evaluate({**zero, name: 1}, INTS) - start for name in names}
    ordered = sorted(names, key=lambda name: -factors[name])
    steps = [factors[name] for name in ordered]
    if start != 0 or steps[-1] < 1 or any(a % b or a == b for a, b in pairwise(steps)):
        raise LayoutError(problems.FUSION_FACTORS(text), text=text)
    bounds = tuple([a // b for a, b in pairwise(steps)])
    return Fusion(whole.strip(), tuple(ordered), tuple(steps), bounds)


def _is_linear(term: Term) -> bool:
    if term.op in ("int", "name"):
        return True
    if term.op == "*":
        return all(_is_linear(part) for part in term.args) and any(not part.names() for part in term.args)
    return term.op == "+" and all(_is_linear(part) for part in term.args)


def fuse(m: IndexMap, fusion: Fusion) -> IndexMap:
    """The map with the parts put together; itself where it has none of them. A part that it lacks is 0."""
    names, extents, place = m.range.names, m.range.extents, m.place
    have = [name for name in fusion.parts if name in names]
    if not have:
        return m
    if fusion.whole in names:
        raise LayoutError(problems.FUSION_PARTS(fusion.whole, ", ".join(have)))
    kept = [k for k, name in enumerate(names) if name not in fusion.parts]
    factors = [(names.index(p), f) for p, f in zip(fusion.parts, fusion.factors, strict=True) if p in names]

    def together(index: Index, replica: Index, on: Numbers) -> Index:
        coordinates = place(index, replica, on)
        total: Any = 0
        for k, factor in factors:
            total = total + coordinates[k] * factor
        return (*(coordinates[k] for k in kept), total)

    extent: Any = 1
    for k, factor in factors:
        extent = extent + (extents[k] - 1) * factor
    space = Space((*(names[k] for k in kept), fusion.whole), (*(extents[k] for k in kept), extent))
    return IndexMap(m.domain, space, together, m.replicas, symbols=m.sizes())


def bounds_of(m: IndexMap, fusions: Sequence[Fusion]) -> dict[str, int]:
    """The exclusive upper bounds of the axes of the map under which the fusion is one to one."""
    pairs = [pair for f in fusions for pair in zip(f.parts[1:], f.bounds, strict=True)]
    return {name: bound for name, bound in pairs if name in m.range.names}
