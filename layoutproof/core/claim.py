"""A claim as data: named points, and one formula that says what a violation looks like.

Every engine reads the same few nodes. `At(m, "first")` stands for `m.place(first)`, so an engine runs `place` on its
own kind of number when it meets the node. Building a formula evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.result import Counterexample, Point, show_point
from layoutproof.core.size import Extent, symbols_of
from layoutproof.core.space import Space
from layoutproof.core.term import Term


@dataclass(frozen=True, slots=True, eq=False)
class At:
    """The coordinates of `map.place(point, replica)`.

    Attributes:
        map: The map to evaluate.
        point: Name of the point that is the index.
        replica: Name of the point that chooses the replica, "" where there are none.
    """

    map: IndexMap
    point: str
    replica: str = ""


@dataclass(frozen=True, slots=True)
class LexLess:
    """`first` comes before `second` in lexicographic order (dimension 0 first)."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Equal:
    """All coordinates equal."""

    left: At
    right: At


@dataclass(frozen=True, slots=True)
class Differ:
    """Some coordinate differs."""

    left: At
    right: At


@dataclass(frozen=True, slots=True)
class Outside:
    """Some coordinate is below 0 or not below its extent (`extents` default to the map's range)."""

    place: At
    extents: tuple[Extent, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Uncovered:
    """No index of the map's domain has its place at `point`."""

    map: IndexMap
    point: str


@dataclass(frozen=True, slots=True, eq=False)
class NotAmong:
    """No replica of `map` puts the element `point` at `place`: it is missing from the other map's set of places."""

    place: At
    map: IndexMap
    point: str


@dataclass(frozen=True, slots=True, eq=False)
class SizeCondition:
    """A condition over the size symbols, e.g. that padding exceeds a bound."""

    condition: Term


@dataclass(frozen=True, slots=True, eq=False)
class PlacePredicate:
    """A condition on several places, `condition(coordinates of each, numbers)`, written with what `Numbers` has.

    weight: the cost of one evaluation, relative to that of a short condition.
    """

    places: tuple[At, ...]
    condition: Callable[[tuple[Index, ...], Numbers], Any]
    weight: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class NotViolated:
    """At these sizes no choice of the claim's points violates it (its own `where` aside)."""

    claim: Claim


@dataclass(frozen=True, slots=True, eq=False)
class NotExists:
    """No choice of further points, each within its space, makes a formula true that speaks of them and of the others.

    Attributes:
        points: The box that each further point ranges over.
        formula: The formula that none of them makes true.
    """

    points: Mapping[str, Space]
    formula: Formula


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Formula, ...]


Formula = (
    LexLess
    | Equal
    | Differ
    | Outside
    | Uncovered
    | NotAmong
    | SizeCondition
    | PlacePredicate
    | NotViolated
    | NotExists
    | And
    | Or
)


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """No choice of `points` (each within its space, in this order) and sizes makes `violation` true.

    Attributes:
        points: The box that each named point ranges over.
        violation: The formula that says what a violation is.
        explain: Turns a violating point (plain ints, with numbers that know the point's sizes) into a sentence.
        witness: Further named numbers that belong to every counterexample.
        where: A condition on size symbols, each an integer >= 1; None for all sizes.
        symbols: The order of the size symbols: that of the layouts, as the user wrote them.
        implied_by: Another claim, mostly an easier one, whose proof proves this one. Its refutation says nothing.
        hint: Where to look, from a violating point; "" if unknown.
        shown: The counterexample as people see it, from the claim's own; None shows the claim's own.
        provided: Claims that must hold at the sizes of a violation too; where one does not, nothing is violated.
        key: Equal only for claims with the same points and the same violation, "" where nothing says that.
    """

    points: Mapping[str, Space]
    violation: Formula
    explain: Callable[[Point, Numbers], str] = lambda point, on: show_point(point)
    witness: Point = field(default_factory=dict)
    where: Term | None = None
    symbols: tuple[str, ...] = ()
    implied_by: Claim | None = None
    hint: Callable[[Point, Numbers], str] = lambda point, on: ""
    shown: Callable[[Point, Numbers], Counterexample] | None = None
    provided: tuple[Claim, ...] = ()
    key: str = ""

    def numbers(self, point: Point) -> Numbers:
        """Plain ints that know the sizes of a point.

        Args:
            point: A violation, with "sizes" where some are symbolic.

        Returns:
            The evaluator.
        """
        if "sizes" not in point:
            return INTS
        return Numbers(dict(zip(self.sizes(), point["sizes"], strict=True)))

    def counterexample(self, point: Point) -> Counterexample:
        """A violating point and the witness as people see them, the sizes by name.

        Args:
            point: A violation, with "sizes" where some are symbolic.

        Returns:
            Points by name; "sizes" maps each symbol to its value.
        """
        if self.shown is None and "sizes" not in point:
            return {**point, **self.witness}
        on = self.numbers(point)
        sizes = {"sizes": dict(on.sizes)} if "sizes" in point else {}
        return {**(point if self.shown is None else self.shown(point, on)), **sizes, **self.witness}

    def sizes(self) -> tuple[str, ...]:
        """The size symbols of the claim.

        Returns:
            `symbols` first, then the others in order of first appearance.
        """
        return outline(self).sizes


def allows(where: Term | None, on: Numbers) -> bool:
    """Whether sizes satisfy a condition. Those for which it divides by 0 do not.

    >>> from layoutproof.core.expression import parse_condition
    >>> [n for n in range(1, 9) if allows(parse_condition("6 % (N - 1) == 0"), Numbers({"N": n}))]
    [2, 3, 4, 7]
    """
    try:
        return where is None or bool(where.evaluate({}, on))
    except ZeroDivisionError:
        return False


class Outline(NamedTuple):
    """The facts of a claim that every engine needs before it looks at its points.

    sizes: as `Claim.sizes`.
    maps: each map that its violation speaks of, once.
    whole: whether each point ranges over exactly the domain (or replicas) of every map that is evaluated at it. Engines
        that reason about a map as a whole decide such claims; others are about another box of indices.
    nested: whether a violation is that no further point exists, which neither z3 nor a look at a few points says
        quickly.
    """

    sizes: tuple[str, ...]
    maps: tuple[IndexMap, ...]
    whole: bool
    nested: bool


@lru_cache(maxsize=16)
def outline(claim: Claim) -> Outline:
    """The outline of a claim by one walk over it; cached, because every engine needs it."""
    points, whole = claim.points, True
    maps: dict[IndexMap, None] = {}
    said: list[str] = []
    for part in _leaves(claim.violation):
        if type(part) is Uncovered:
            maps[part.map] = None
            continue
        for at in places_of(part):
            m = at.map
            maps[m] = None
            space = points[at.point]
            if space is not m.domain and space.extents != m.domain.extents:
                whole = False
            if at.replica and points[at.replica].extents != m.replicas.extents:
                whole = False
        said += names_of(part)
    names = [*claim.symbols, *symbols_of([e for space in points.values() for e in space.extents])]
    for m in maps:
        names += symbols_of(m.range.extents)
        names += m.symbols
    names += said
    if claim.where is not None:
        names += claim.where.names()
    violation = claim.violation
    parts = violation.parts if type(violation) is And else (violation,)
    return Outline(tuple(dict.fromkeys(names)) if names else (), tuple(maps), whole, NotExists in map(type, parts))


def _leaves(formula: Formula) -> Sequence[Formula]:
    """The parts that a formula joins by `And` and `Or`, at any depth; itself where it joins none."""
    if type(formula) is not And and type(formula) is not Or:
        return (formula,)
    found: list[Formula] = []
    for part in formula.parts:
        if type(part) is And or type(part) is Or:
            found += _leaves(part)
        else:
            found.append(part)
    return found


def maps_of(formula: Formula) -> tuple[IndexMap, ...]:
    """Every map that a formula speaks of, as often as it does."""
    if isinstance(formula, Uncovered):
        return (formula.map,)
    if isinstance(formula, And | Or):
        return tuple([m for part in _leaves(formula) for m in maps_of(part)])
    return tuple([at.map for at in places_of(formula)])


def places_of(formula: Formula) -> tuple[At, ...]:
    """Every place that a formula speaks of."""
    match formula:
        case Equal(left, right) | Differ(left, right):
            return (left, right)
        case LexLess():
            return ()
        case Outside(place):
            return (place,)
        case NotAmong(place, index_map, point):
            return (place, At(index_map, point))
        case PlacePredicate(places):
            return places
        case And() | Or():
            return tuple([at for part in _leaves(formula) for at in places_of(part)])
    return ()


def names_of(formula: Formula) -> tuple[str, ...]:
    """Size symbols that stand in the formula itself rather than in a map."""
    match formula:
        case SizeCondition(condition):
            return condition.names()
        case Outside(_, extents):
            return symbols_of(extents) if extents else ()
        case NotExists(points, inner):
            return (*symbols_of([e for space in points.values() for e in space.extents]), *names_of(inner))
        case And() | Or():
            return tuple([name for part in _leaves(formula) for name in names_of(part)])
    return ()


def further_points(formula: Formula) -> tuple[Mapping[str, Space], ...]:
    """The points that some part of a formula says do not exist, part by part."""
    match formula:
        case NotExists(points, inner):
            return (points, *further_points(inner))
        case And(parts) | Or(parts):
            return tuple([found for part in parts for found in further_points(part)])
    return ()
