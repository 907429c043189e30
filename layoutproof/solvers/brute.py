"""Trying every point on plain ints: slow, and simple enough to be read as the meaning of a claim.

The other solvers are held against this one, and every refutation is replayed here. Where there are many points of
constant extents, `tables` tries them on arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, prod
from typing import Any

from layoutproof.core.budget import spend
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
    allows,
    further_points,
    maps_of,
)
from layoutproof.core.errors import BudgetExceeded, Undecided, Unsupported
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import Extent
from layoutproof.core.space import Space
from layoutproof.core.substitution import largest
from layoutproof.solvers import tables
from layoutproof.solvers.sizes import assignments

CAP = 2_000_000
"""Combinations of points tried at effort 1."""

CAP_SYMBOLIC = 100_000
"""The same where trying all is out of reach and proves nothing: over size symbols, and of more than `CAP` points."""

KEPT = 10_000
"""Places remembered. Pairs out of a longer box exceed the cap anyway, and single points never come back."""

FEW = 3_000
"""Points and places that one by one take some tens of milliseconds."""

BY_HAND = 200
"""Points and places up to which one by one is as quick as arrays, which take half a millisecond before the first."""

FEW_ROWS = 60_000
"""The same on arrays."""

SOME = 100_000
"""Points and places that take less than a second."""

QUICK = 1 << 22
"""Points and places that arrays take some tenths of a second for."""

FIRST = 20_000
"""Indices looked at by `bounded_search` where there are more and arrays do not do."""

LOOKED_AT = 10_000
"""Combinations of points of a claim within a claim."""

FURTHER = 10_000
"""Points looked at that may not exist beside those of a claim; more are another engine's."""

Ints = tuple[int, ...]


def decide(claim: Claim, effort: int = 1) -> Point | None:
    """The smallest violation, or None when no choice of points violates the claim.

    Many of them are tried on arrays, where the claim runs on those. Else raises Undecided where there are more than
    `CAP * effort` combinations and none of the first `CAP_SYMBOLIC * effort` is a violation. So it does for every claim
    over size symbols that it cannot refute, unless its condition allows few sizes: no number of sizes that are tried
    proves one for all.

    >>> from layoutproof.core.space import Space
    >>> line = IndexMap(Space(("i",), (5,)), Space(("o",), (3,)), lambda x, c, on: (x[0] % 3,))
    >>> pair = {"first": line.domain, "second": line.domain}
    >>> decide(Claim(pair, And((LexLess("first", "second"), Equal(At(line, "first"), At(line, "second"))))))
    {'first': (0,), 'second': (3,)}
    """
    if BY_HAND < _work(claim) < inf:
        try:
            return tables.decide(claim, tables.MOST * effort, weight(claim.violation))
        except Undecided:
            pass  # one by one it may be
    return _one_by_one(claim, effort)


def _one_by_one(claim: Claim, effort: int) -> Point | None:
    names = claim.sizes()
    few = bool(names) or _count(claim) > CAP * effort
    cap = left = (min(CAP, CAP_SYMBOLIC) if few else CAP) * effort
    each = weight(claim.violation, further=True) if few and not names else 1
    last, met = largest(claim.where, names), False
    for sizes in assignments(len(names)):
        if met and last is not None and max(sizes, default=0) > last:
            return None
        trial = _SizedClaim(claim, dict(zip(names, sizes, strict=True)), cap)
        counts = trial.counts()
        met |= counts
        for points in trial.points() if counts else ():
            left -= each
            if left < (trial.placed if names else 0):
                break
            if trial.violates(points):
                return {"sizes": sizes, **points} if names else points
        # sizes that `where` excludes cost one too, or this would not end where it excludes all; so does each element
        # whose place was looked up for a hole, or a map that puts many on few places would take minutes, and each
        # further point
        left -= 1 + trial.placed if names else 0
        if left < 0:
            break
        if not names:
            return None
    if names:
        checked = f"all up to {max(sizes) - 1} were checked" if max(sizes) > 1 else "1 alone gives too many points"
        raise Unsupported(f"the sizes {', '.join(names)} are symbolic: {checked}, which proves nothing for the others")
    raise BudgetExceeded(f"there are more than {CAP * effort} combinations of points to try")


def can_try_all(claim: Claim, effort: float = 1) -> bool:
    """Whether `decide` tries every choice of points unless it finds a violation, so that it may prove the claim."""
    return not claim.sizes() and (_count(claim) <= CAP * effort or tables.work(claim) <= tables.MOST * effort)


def few(claim: Claim, effort: float = 1) -> Point | None:
    """The same as `decide` where there are at most `FEW` points and places to try, or `FEW_ROWS` on arrays; else
    Undecided.

    >>> from layoutproof.core.space import Space
    >>> line = IndexMap(Space(("i",), (1000,)), Space(("o",), (1001,)), lambda x, c, on: (x[0] + x[0] // 7,))
    >>> few(Claim({"place": line.range}, Uncovered(line, "place")))
    {'place': (7,)}
    """
    if _work(claim) <= FEW:
        return decide(claim)
    if tables.work(claim) <= FEW_ROWS:
        return tables.decide(claim)
    raise BudgetExceeded(f"there are more than {FEW} points and places to try")


def bounded_search(claim: Claim, effort: float = 1) -> Point | None:
    """The same up to `SOME` of them, or up to `QUICK` on arrays, and as many as `decide` where places are sorted or
    marked; of more the smallest violation, if it is among the first indices of a claim about one point; else Undecided.

    Wrong layouts mostly go wrong early, and looking in order finds the smallest violation where a symbolic engine would
    labour over a large flattened space.
    """
    if not claim.sizes():
        try:
            # pairs and holes beyond QUICK: sorting them takes a second, z3 takes longer to give up
            most = tables.MOST if tables.sorts(claim) else QUICK // weight(claim.violation)
            return tables.decide(claim, int(most * effort), weight(claim.violation))
        except Undecided:
            pass  # one by one it may be
    if _work(claim) * weight(claim.violation) <= SOME:
        return decide(claim)
    if len(claim.points) != 1 or claim.sizes() or isinstance(claim.violation, Uncovered):
        raise Unsupported("a bounded search is for claims about one index of an array of constant size")
    trial = _SizedClaim(claim, {}, FIRST)
    for points in itertools.islice(trial.points(), int(FIRST * effort) // weight(claim.violation)):
        if trial.violates(points):
            return points
    raise BudgetExceeded(f"the first {FIRST} indices are no violation")


def violates(claim: Claim, point: Point, effort: int = 1) -> bool:
    """Whether `point` has the claim's sizes and points, each within its space, and violates the claim on plain ints.

    Raises Undecided where the claim asks for an unreached place of a map with more than `CAP * effort` places.

    >>> from layoutproof.core.space import Space
    >>> line = IndexMap(Space(("i",), (5,)), Space(("o",), (4,)), lambda x, c, on: (x[0],))
    >>> outside = Claim({"index": line.domain}, Outside(At(line, "index")))
    >>> [violates(outside, {"index": (i,)}) for i in (3, 4, 5)]
    [False, True, False]
    """
    names = claim.sizes()
    expected = ("sizes", *claim.points) if names else tuple(claim.points)
    if tuple(point) != expected or not all(type(v) is int for values in point.values() for v in values):
        return False
    sizes = point["sizes"] if names else ()
    if len(sizes) != len(names) or any(size < 1 for size in sizes):
        return False
    trial = _SizedClaim(claim, dict(zip(names, sizes, strict=True)), CAP * effort)
    points = {name: tuple(point[name]) for name in claim.points}
    return trial.counts() and trial.within(points) and trial.violates(points)


def _count(claim: Claim) -> int:
    """How many choices of points there are, of constant extents."""
    return prod(max(0, int(extent)) for space in claim.points.values() for extent in space.extents)


def weight(formula: Formula, further: bool = False) -> int:
    """How often the work of looking up a place it is to work a formula out once; further: at all further points."""
    match formula:
        case PlacePredicate():
            return formula.weight
        case And(parts) | Or(parts):
            return max(1, sum(weight(part, further) for part in parts))
        case NotExists(more, inner) if further:
            extents = [extent for space in more.values() for extent in space.extents]
            many = prod(map(int, extents)) if all(type(e) is int for e in extents) else FURTHER
            return max(1, min(many, FURTHER) * weight(inner, further))
    return 1


def _work(claim: Claim) -> float:
    """Points to try and places to look up at most; infinity for symbolic sizes."""
    if claim.sizes():
        return inf
    maps = maps_of(claim.violation)
    count = _count(claim)
    for points in further_points(claim.violation):
        extents = [extent for space in points.values() for extent in space.extents]
        count *= 1 + prod(map(int, extents)) if all(type(e) is int for e in extents) else SOME
    return count + sum(prod(map(int, (*m.domain.extents, *m.replicas.extents))) for m in maps)


def _box(extents: Sequence[int]) -> Iterator[Ints]:
    """Every index of a box in lexicographic order, lazily: one extent alone may be too much for memory."""
    if not extents:
        yield ()
        return
    for first in range(extents[0]):
        for rest in _box(extents[1:]):
            yield (first, *rest)


class _SizedClaim:
    """A claim whose size symbols have values."""

    def __init__(self, claim: Claim, sizes: Mapping[str, int], cap: int) -> None:
        self.claim = claim
        self.on = Numbers(sizes)
        self.cap = cap
        # by identity: maps are never compared, and the claim keeps them alive
        self.known: dict[tuple[int, Ints, Ints], Ints] = {}
        self.reached: dict[int, set[Ints]] = {}
        self.placed = 0

    def counts(self) -> bool:
        """Whether the claim speaks of these sizes."""
        return allows(self.claim.where, self.on)

    def sizes(self, extents: Iterable[Extent]) -> Ints:
        return tuple(_on_ints(self.on.size, extent) for extent in extents)

    def points(self) -> Iterator[dict[str, Ints]]:
        """Every choice of points, in lexicographic order of all of them in a row."""
        boxes = [(name, self.sizes(space.extents)) for name, space in self.claim.points.items()]
        for row in _box([extent for _, box in boxes for extent in box]):
            chosen, start = {}, 0
            for name, box in boxes:
                chosen[name] = row[start : start + len(box)]
                start += len(box)
            yield chosen

    def within(self, points: Mapping[str, Ints]) -> bool:
        boxes = [(points[name], self.sizes(space.extents)) for name, space in self.claim.points.items()]
        return all(
            len(point) == len(box) and all(0 <= v < e for v, e in zip(point, box, strict=True)) for point, box in boxes
        )

    def violates(self, points: Mapping[str, Ints]) -> bool:
        return self.holds(self.claim.violation, points)

    def holds(self, formula: Formula, points: Mapping[str, Ints]) -> bool:
        match formula:
            case LexLess(first, second):
                return points[first] < points[second]
            case Equal(left, right):
                return self.at(left, points) == self.at(right, points)
            case Differ(left, right):
                return self.at(left, points) != self.at(right, points)
            case Outside(place, extents):
                box = self.sizes(place.map.range.extents if extents is None else extents)
                return any(not 0 <= v < e for v, e in zip(self.at(place, points), box, strict=True))
            case Uncovered(index_map, point):
                return points[point] not in self.image(index_map)
            case NotAmong(place, index_map, point):
                replicas = _box(self.sizes(index_map.replicas.extents))
                return all(
                    self.place(index_map, points[point], replica) != self.at(place, points) for replica in replicas
                )
            case SizeCondition(condition):
                return bool(_on_ints(condition.evaluate, {}, self.on))
            case PlacePredicate(places, condition):
                return bool(_on_ints(condition, tuple(self.at(place, points) for place in places), self.on))
            case NotViolated(claim):
                return not self.breaks(claim)
            case NotExists(more, inner):
                return not self.exists(more, inner, points)
            case And(parts):
                # every part is looked at: a map that divides by zero has no place there, whatever the others say
                held = [self.holds(part, points) for part in parts]
                return all(held)
            case Or(parts):
                return any(self.holds(part, points) for part in parts)

    def at(self, where: At, points: Mapping[str, Ints]) -> Ints:
        return self.place(where.map, points[where.point], points[where.replica] if where.replica else ())

    def place(self, index_map: IndexMap, index: Ints, replica: Ints) -> Ints:
        key = (id(index_map), index, replica)
        if key in self.known:
            return self.known[key]
        spend(1)
        place = tuple(_on_ints(index_map.place, index, replica, self.on))
        if len(self.known) < KEPT:
            self.known[key] = place
        return place

    def breaks(self, claim: Claim) -> bool:
        """Whether some choice of the points of another claim, at the same sizes, violates that claim."""
        trial = _SizedClaim(claim, self.on.sizes, self.cap)
        for number, points in enumerate(trial.points()):
            if number == LOOKED_AT:
                raise BudgetExceeded(f"there are more than {LOOKED_AT} combinations of points to look at")
            self.placed += 1
            if trial.violates(points):
                return True
        return False

    def exists(self, more: Mapping[str, Space], formula: Formula, points: Mapping[str, Ints]) -> bool:
        """Whether some choice of further points makes a formula true."""
        boxes = [(name, self.sizes(space.extents)) for name, space in more.items()]
        if prod(extent for _, box in boxes for extent in box) > FURTHER:
            raise BudgetExceeded(f"there are more than {FURTHER} further points to look at")
        for row in _box([extent for _, box in boxes for extent in box]):
            known, start = dict(points), 0
            for name, box in boxes:
                known[name] = row[start : start + len(box)]
                start += len(box)
            self.placed += 1
            if self.holds(formula, known):
                return True
        return False

    def image(self, index_map: IndexMap) -> set[Ints]:
        if id(index_map) not in self.reached:
            domain, replicas = self.sizes(index_map.domain.extents), self.sizes(index_map.replicas.extents)
            if prod(domain + replicas) > self.cap:
                raise BudgetExceeded(f"the map has more than {self.cap} places: it cannot be replayed by enumeration")
            image: set[Ints] = set()
            for row in _box(domain + replicas):
                self.placed += 1
                index, replica = row[: len(domain)], row[len(domain) :]
                image.add(tuple(_on_ints(index_map.place, index, replica, self.on)))
            self.reached[id(index_map)] = image
        return self.reached[id(index_map)]


def _on_ints(run: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return run(*arguments)
    except ZeroDivisionError:
        raise Unsupported("divides by zero") from None
