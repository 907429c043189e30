"""Exact integer sets (islpy): every quasi-affine claim, for constant sizes and for run-time sizes alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import reduce

import islpy as isl

from layoutproof.core.claim import (
    And,
    At,
    Claim,
    Differ,
    Equal,
    Formula,
    LexLess,
    NotAmong,
    NotExists,
    NotViolated,
    Or,
    Outside,
    PlacePredicate,
    SizeCondition,
    Uncovered,
)
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.result import Point
from layoutproof.core.space import Space
from layoutproof.solvers.growing import smallest as smallest_sizes
from layoutproof.solvers.isl.quasi import SET, Affine, Condition, Frame
from layoutproof.solvers.isl.relation import inside
from layoutproof.solvers.isl.steps import Steps, steps

BUDGET = 300_000
"""Operations of isl at effort 1. Layouts of tools in use need below 10,000; 300,000 can take some seconds."""

CALL = 30_000
"""Operations of one call at effort 1. A running call cannot be interrupted, and 30,000 take some three seconds at
worst; products of shardings need 20,000."""


def decide(claim: Claim, effort: float = 1) -> Point | None:
    """The smallest violation, or None when none exists for any sizes >= 1 that satisfy `claim.where`.

    Raises Undecided when a budget is spent, and for what is not quasi-affine: products of two values that vary,
    divisors that vary, xor.

    >>> from layoutproof.core.space import Space
    >>> line = IndexMap(Space(("i",), (5,)), Space(("o",), (3,)), lambda x, c, on: (x[0] % 3,))
    >>> pair = {"first": line.domain, "second": line.domain}
    >>> decide(Claim(pair, And((LexLess("first", "second"), Equal(At(line, "first"), At(line, "second"))))))
    {'first': (0,), 'second': (3,)}
    """
    return _within_budget(claim, {}, effort)


def proves(claim: Claim, effort: float = 1) -> bool:
    """Whether there is no violation. As `decide`, without a search for the smallest one, which can take most of it."""
    with _at_effort(effort) as run:
        _, bad = _violated(claim, {}, run)
        return bool(run(bad.is_empty))


def growing(claim: Claim, effort: float = 1) -> Point:
    """The smallest violation where one stays one when sizes grow: isl is asked about constant sizes only.

    Raises Undecided for other claims, and NotSmallest as `solvers.growing` does.
    """
    return smallest_sizes(claim, lambda asked, known: _within_budget(asked, known, effort))


def _within_budget(claim: Claim, known: Mapping[str, int], effort: float) -> Point | None:
    with _at_effort(effort) as run:
        return _decide(claim, known, run)


def _at_effort(effort: float) -> AbstractContextManager[Steps]:
    return steps(int(BUDGET * effort), int(CALL * max(1, effort)))


def _decide(claim: Claim, known: Mapping[str, int], run: Steps) -> Point | None:
    """The smallest violation with the sizes that are known; the point has those that are not."""
    sizes, bad = _violated(claim, known, run)
    if run(bad.is_empty):
        return None
    count = bool(sizes) + len(sizes) + sum(len(space.extents) for space in claim.points.values())
    row = _smallest(bad, run, count)[bool(sizes) :]
    found = {"sizes": row[: len(sizes)]} if sizes else {}
    start = len(sizes)
    for name, space in claim.points.items():
        end = start + len(space.extents)
        found[name] = row[start:end]
        start = end
    return found


def _violated(claim: Claim, known: Mapping[str, int], run: Steps) -> tuple[tuple[str, ...], isl.Set]:
    """The sizes that are not known, and every violation: the largest of them if there are any, they, and the points."""
    sizes = tuple(name for name in claim.sizes() if name not in known)
    # the largest size goes first: the lexicographic minimum then has the smallest sizes
    largest = ("the largest size",) if sizes else ()
    entries = [f"{name}[{k}]" for name, space in claim.points.items() for k in range(len(space.extents))]
    frame = Frame(run, (*largest, *(f"the size {name}" for name in sizes), *entries))
    on = Affine(frame, {**known, **{name: frame.variable(k) for k, name in enumerate(sizes, 1)}})
    points: dict[str, Index] = {}
    assumed = [on.logical_not(on.less(frame.variable(0), on.sizes[name])) for name in sizes]
    assumed += [on.less(0, on.sizes[name]) for name in sizes]
    start = len(largest) + len(sizes)
    for name, space in claim.points.items():
        points[name] = tuple(frame.variable(start + k) for k in range(len(space.extents)))
        assumed += inside(points[name], space.extents, on)
        start += len(space.extents)
    if claim.where is not None:
        assumed.append(claim.where.evaluate({}, on))
    return sizes, _violations(claim.violation, points, on, reduce(on.logical_and, assumed, frame.everything))


def _smallest(some: isl.Set, run: Steps, count: int) -> tuple[int, ...]:
    """The lexicographically smallest point of a set that is not empty."""
    # islpy 2026.2.2: lexmin fails on { [i, i] : i mod 2 = 0 and .. } ("affine expression involves some of the domain
    # dimensions"), and dim_min_val takes 0 for the minimum of a part that has rational points only
    rows = []
    for basic in run(some.get_basic_sets):
        if run(basic.is_empty):
            continue
        part, row = run(isl.Set.from_basic_set, basic), []
        for k in range(count):
            row.append(run(part.dim_min_val, k))
            part = run(part.fix_val, SET, k, row[-1])
        rows.append(row)
    # reading numbers out must not fail half-way
    run.context.set_max_operations(0)
    return min(tuple(value.to_python() for value in row) for row in rows)


def _violations(formula: Formula, points: Mapping[str, Index], on: Affine, within: isl.Set) -> isl.Set:
    """Where the formula holds, as a part of the set `within`."""

    def at(where: At) -> Index:
        return where.map.place(points[where.point], points[where.replica] if where.replica else (), on)

    def any_of(conditions: Iterable[Condition]) -> isl.Set:
        # one part at a time: each stays a small set, where the condition alone may be a large one
        return reduce(on.logical_or, [on.logical_and(within, condition) for condition in conditions], on.frame.nothing)

    match formula:
        case LexLess(first, second):
            result, equal = on.frame.nothing, within
            for a, b in zip(points[first], points[second], strict=True):
                result = on.logical_or(result, on.logical_and(equal, on.less(a, b)))
                equal = on.logical_and(equal, on.equal(a, b))
            return result
        case Equal(left, right):
            return reduce(on.logical_and, [on.equal(a, b) for a, b in zip(at(left), at(right), strict=True)], within)
        case Differ(left, right):
            return any_of(on.logical_not(on.equal(a, b)) for a, b in zip(at(left), at(right), strict=True))
        case Outside(place, extents):
            box = place.map.range.extents if extents is None else extents
            return any_of(on.logical_not(condition) for condition in inside(at(place), box, on))
        case Uncovered(index_map, point):
            return on.frame.run(within.subtract, _reached(index_map, None, points[point], on))
        case NotAmong(place, index_map, point):
            return on.frame.run(within.subtract, _reached(index_map, points[point], at(place), on))
        case SizeCondition(condition):
            return on.logical_and(within, condition.evaluate({}, on))
        case PlacePredicate(places, condition):
            return on.logical_and(within, condition(tuple(at(place) for place in places), on))
        case NotViolated(claim):
            return on.frame.run(within.subtract, _exists(claim.points, claim.violation, {}, on))
        case NotExists(more, inner):
            return on.frame.run(within.subtract, _exists(more, inner, points, on, within))
        case And(parts):
            return reduce(lambda left, part: _violations(part, points, on, left), parts, within)
        case Or(parts):
            return reduce(on.logical_or, [_violations(part, points, on, within) for part in parts], on.frame.nothing)


def _exists(
    more: Mapping[str, Space], formula: Formula, points: Mapping[str, Index], on: Affine, within: isl.Set | None = None
) -> isl.Set:
    """Where some choice of `more` points makes the formula true, in the variables there are.

    within: a set outside of which the result does not matter.
    """
    count = len(on.frame.labels)
    entries = [f"{name}[{k}]" for name, space in more.items() for k in range(len(space.extents))]
    frame = Frame(on.frame.run, (*on.frame.labels, *entries))
    wide = Affine(frame, {name: frame.widen(size) for name, size in on.sizes.items()})
    known = {name: tuple(frame.widen(entry) for entry in point) for name, point in points.items()}
    assumed, start = [], count
    if within is not None:
        assumed.append(frame.run(within.add_dims, SET, len(entries)))
    for name, space in more.items():
        known[name] = tuple(frame.variable(start + k) for k in range(len(space.extents)))
        assumed += inside(known[name], space.extents, wide)
        start += len(space.extents)
    found = _violations(formula, known, wide, reduce(wide.logical_and, assumed, frame.everything))
    return frame.run(found.project_out, SET, count, len(entries))


def _reached(index_map: IndexMap, index: Index | None, place: Index, on: Affine) -> isl.Set:
    """Where some replica of `index`, or of some index where that is None, has its place at `place`."""
    box = (*(index_map.domain.extents if index is None else ()), *index_map.replicas.extents)
    count, more = len(on.frame.labels), len(box)
    frame = Frame(on.frame.run, (*on.frame.labels, *(f"index[{k}]" for k in range(more))))
    wide = Affine(frame, {name: frame.widen(size) for name, size in on.sizes.items()})
    added = tuple(frame.variable(count + k) for k in range(more))
    rank = 0 if index is not None else len(index_map.domain.extents)
    chosen = added[:rank] if index is None else tuple(frame.widen(entry) for entry in index)
    places = zip(index_map.place(chosen, added[rank:], wide), place, strict=True)
    conditions = [
        *inside(added, box, wide),
        *(wide.equal(coordinate, frame.widen(entry)) for coordinate, entry in places),
    ]
    return frame.run(reduce(wide.logical_and, conditions, frame.everything).project_out, SET, count, more)
