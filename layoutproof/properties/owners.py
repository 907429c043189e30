"""Each owner (device, lane) holds its own elements, each at a place of its own in the local memory.

Proved: no two elements share a place, so each owner's local memory holds different elements at different places; and
replicas of one element are on different owners. With `dense` also that every place of the range holds an element, on
every owner; with `balanced` that every owner holds equally many elements.
`owner` names the axes that together number an owner, e.g. [gpuid]; all other axes are local memory. Without it every
axis is an owner that no known target counts as memory (m, reg, P, F, TLane, TCol, ..).
Figures, for constant sizes: `owners` that hold an element, `idle_owners` of the range that hold none,
`fewest_elements` and `most_elements` of an owner, and of local memory `local_span` (from the lowest to the highest
place used), `local_places` (used by some owner) and `local_holes` (the difference).
Why it matters: a sharding can be correct and still waste memory, or leave a device without work.
Refuted by: `first` and `second` at one place; an `element` with `first_replica` and `second_replica` on one owner; with
`dense` the smallest `place` that is free; with `balanced` the two numbers, `elements_per_owner`.
Example: `S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)] on (64,128)` is proved, and its figures say that each of the 4
devices holds 2,048 elements spread over 4,032 places; `dense` refutes it at (0, 64).
Fix: give the local part the strides of the local tensor.
Incident: a tensor over four GPUs whose local strides are those of the whole: each holds 2,048 elements spread over
4,032 places, an example of https://arxiv.org/abs/2601.19092
Refuted:
    layoutproof ask owners "S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)] on (64,128)" --dense true
Proved:
    layoutproof ask owners "S[(2,32,2,64):(1@gpuid,64@m,2@gpuid,1@m)] on (64,128)" --dense true
Limits: Local memory is what no axis of `owner` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from layoutproof.core.axes import named, onto
from layoutproof.core.claim import And, At, Claim, Equal, LexLess, SizeCondition, Uncovered
from layoutproof.core.counting import Count, Tally
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.term import Term, size_term
from layoutproof.properties import injective

LAYOUTS = 1

AXIS_TWICE = Template(
    "properties.owners_axis_twice", "owner names the axis {axis!r} twice; each axis numbers an owner once"
)
BOTH = Template("properties.owners_both", "replicas {first} and {second} of {element} are both on {where}")
NOTHING_PLACED = Template("properties.owners_nothing_placed", "nothing is placed at {where}")
NO_AXES = Template(
    "properties.owners_no_axes", "say which axes number an owner, e.g. owner: [gpuid]{found}; the axes here are {have}"
)
UNEQUAL = Template("properties.owners_unequal", "one owner holds {fewest} elements and another {most}")


def claims(
    m: IndexMap, owner: Sequence[str] | None = None, dense: bool = False, balanced: bool = False
) -> tuple[Claim, ...]:
    """Elements apart, replicas on different owners; with `dense` no place of the range is free.

    Args:
        m: The map of one layout.
        owner: Axes that say who owns an element; None for the axes of the language.
        dense: Demand that no place of the range is free.
        balanced: Demand that no owner holds more elements than another.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: An axis is unknown.
    """
    owners, _ = split(m, owner)
    found = list(injective.claims(m))
    if m.replicas.extents:
        found.append(_replicas_apart(m, owners))
    if dense:

        def explain(at: Point, on: Numbers) -> str:
            where = ", ".join(f"{axis} {entry}" for axis, entry in zip(m.range.names, at["place"], strict=True))
            return NOTHING_PLACED(where)

        found.append(Claim({"place": m.range}, Uncovered(m, "place"), explain))
    return tuple(found)


def counted(
    count: Count, m: IndexMap, owner: Sequence[str] | None = None, dense: bool = False, balanced: bool = False
) -> tuple[dict[str, object], tuple[Claim, ...]]:
    """The figures of the module's text, and the claim that no owner holds more elements than another.

    Args:
        count: Counts the places of a map exactly.
        m: The map of one layout.
        owner: Axes that say who owns an element; None for the axes of the language.
        dense: Demand that no place of the range is free.
        balanced: Demand that no owner holds more elements than another.

    Returns:
        (figures, further claims).
    """
    owners, local = split(m, owner)
    try:
        per_owner, memory = count(owners), count(local)
    except Undecided:
        if balanced:
            raise
        return {}, ()
    span = prod(high - low + 1 for low, high in zip(memory.low, memory.high, strict=True))
    figures: dict[str, object] = {
        "owners": per_owner.places,
        "idle_owners": owners.range.count() - per_owner.inside,
        "fewest_elements": per_owner.fewest,
        "most_elements": per_owner.most,
        "local_span": span,
        "local_places": memory.places,
        "local_holes": span - memory.places,
    }
    return figures, (_even(per_owner),) if balanced else ()


def split(m: IndexMap, owner: Sequence[str] | None) -> tuple[IndexMap, IndexMap]:
    """The map to the owner axes, and the map to the others. LayoutError without any owner."""
    if not owner or isinstance(owner, str) or not isinstance(owner, Sequence):
        have = ", ".join(m.range.names) or "no names"
        got = f", not {owner!r}" if owner else ""
        raise LayoutError(NO_AXES(got, have))
    if twice := [name for name in owner if list(owner).count(name) > 1]:
        raise LayoutError(AXIS_TWICE(twice[0]))
    owners = onto(m, tuple(owner))
    return owners, onto(m, tuple([name for name in m.range.names if name not in owner]))


def _replicas_apart(m: IndexMap, owners: IndexMap) -> Claim:
    def explain(at: Point, on: Numbers) -> str:
        where = named(owners, at["element"], at["first_replica"], on)
        return BOTH(at["first_replica"], at["second_replica"], at["element"], where)

    points = {"element": m.domain, "first_replica": m.replicas, "second_replica": m.replicas}
    same = Equal(At(owners, "element", "first_replica"), At(owners, "element", "second_replica"))
    return Claim(points, And((LexLess("first_replica", "second_replica"), same)), explain)


def _even(tally: Tally) -> Claim:
    def explain(at: Point, on: Numbers) -> str:
        return UNEQUAL(tally.fewest, tally.most)

    numbers = (tally.fewest, tally.most)
    uneven = SizeCondition(Term("<", *(size_term(number) for number in numbers)))
    return Claim({}, uneven, explain, witness={"elements_per_owner": numbers})
