"""Claims without the final permutation of places, a swizzle mostly, where it makes no difference to them.

Two elements share a place after a permutation iff they did before it; a set that is permuted in itself is left or
filled as before. isl knows no exclusive or, and z3 none of numbers without a bound: both are asked the easier question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from layoutproof.core.claim import And, At, Claim, Differ, Equal, Formula, LexLess, Outside, Uncovered
from layoutproof.core.index_map import IndexMap, permutation
from layoutproof.core.result import Point
from layoutproof.core.size import Extent, evaluate, symbol
from layoutproof.core.substitution import alternatives, substitution
from layoutproof.core.term import Term


@lru_cache(maxsize=8)
def unpermuted(claim: Claim) -> Claim:
    """The claim, or one about maps that permute nothing at the end, with the same violations.

    Of a place without an element only whether there is one is the same, not which: see `moved`.
    """
    violation = _formula(claim)
    return claim if violation is claim.violation else replace(claim, violation=violation)


def moved(claim: Claim, point: Point) -> Point:
    """A violation of the claim, where `point` is one of `unpermuted(claim)`; perhaps not the smallest one."""
    if not isinstance(claim.violation, Uncovered) or unpermuted(claim) is claim:
        return point
    found, name = permutation(claim.violation.map), claim.violation.point
    assert found is not None
    place = tuple([found.apply(n) if axis == found.axis else n for axis, n in enumerate(point[name])])
    return {**point, name: place}


def _formula(claim: Claim) -> Formula:
    violation = claim.violation
    match violation:
        case And((LexLess() as order, Equal(left, right))) if left.map is right.map:
            plain = before(left.map)
            if plain is not left.map:
                return And((order, Equal(replace(left, map=plain), replace(right, map=plain))))
        case Differ(left, right):
            first, second = permutation(left.map), permutation(right.map)
            if first is not None and second is not None and first.same(second):
                return Differ(*(replace(at, map=before(at.map)) for at in (left, right)))
        case Outside(At(m) as place, extents):
            box = m.range.extents if extents is None else extents
            if keeps(m, box, claim.where):
                return Outside(replace(place, map=before(m)), box)
        case Uncovered(m, point):
            if keeps(m, claim.points[point].extents, claim.where):
                return Uncovered(before(m), point)
    return violation


@lru_cache(maxsize=8)
def before(m: IndexMap) -> IndexMap:
    """The map without a permutation of its places at the end, which makes no two places one, and one of them two."""
    found = permutation(m)
    return m if found is None else replace(m, place=found.before)


def keeps(m: IndexMap, box: Sequence[Extent], where: Term | None) -> bool:
    """Whether a map permutes places at the end, and those of a box among themselves, for the sizes that are allowed."""
    found = permutation(m)
    if found is None:
        return False
    cases = [{}] if where is None else [substitution(case) for case in alternatives(where)]
    extent = box[found.axis]
    sized = (evaluate(extent, lambda name: known.get(name, symbol(name))) for known in cases)  # noqa: B023
    return all(map(found.keeps, sized))
