"""Every place that the first layout gives an element, the second gives it too: every required replica exists.

Why it matters: a reader that expects a replica on each of its devices may be handed a layout with more replicas, never
one with fewer or with others. `same_map` asks for both directions.
Refuted by: the smallest `element` (and `replica` of the first layout's) whose place is not among the second's.
Example: `S[4:1@m] + R[2:2@gpuid]` refines `S[4:1@m] + R[4:1@gpuid]`, not the other way round: the replica on device 1.
Compared as in `same_map`: addresses for two memories, coordinates otherwise, axes by name.
Fix: add the replica that the counterexample names.
Incident: TVM's `tile` does not scale the replicas of the outer layout, so that they are not where readers expect them:
BUGS-FOUND.md.
Refuted:
    layoutproof ask refines "S[4:1@m] + R[4:1@gpuid]" "S[4:1@m] + R[2:2@gpuid]"
Proved:
    layoutproof ask refines "S[4:1@m] + R[2:2@gpuid]" "S[4:1@m] + R[4:1@gpuid]"
Limits: Coordinates are compared as they are: a local index counted otherwise is another place.
"""

from __future__ import annotations

from layoutproof.core.axes import aligned, named
from layoutproof.core.claim import At, Claim, NotAmong
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.reshape import common_unit, comparable
from layoutproof.core.result import Point

LAYOUTS = 2

NOT_STORED = Template(
    "properties.refines_not_stored", "{element} is stored at {place}, where {whose} does not store it"
)
SHAPES = Template("properties.refines_shapes", "refines compares layouts of one shape, not {shapes}")


def claims(required: IndexMap, offered: IndexMap) -> tuple[Claim, ...]:
    """One claim: no place of the first that the second lacks.

    Args:
        required: The map whose places are needed.
        offered: The map that must have them too.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: The shapes differ.
    """
    if required.domain.extents != offered.domain.extents:
        shapes = " and ".join(f"[{', '.join(map(str, m.domain.extents))}]" for m in (required, offered))
        raise LayoutError(SHAPES(shapes))
    one, other = comparable(*aligned(required, offered), common_unit(required, offered))
    return (missing_place(required, one, other, "replica", "the second layout"),)


def missing_place(shown: IndexMap, one: IndexMap, other: IndexMap, replica: str, whose: str) -> Claim:
    """The claim that every place of `one` is among those of `other`; `shown` is `one` as the user knows it."""
    replica = replica if one.replicas.extents else ""

    def explain(at: Point, on: Numbers) -> str:
        chosen = at.get(replica, ())
        which = f"{at['element']}, replica {chosen}," if chosen else f"{at['element']}"
        return NOT_STORED(which, named(shown, at["element"], chosen, on), whose)

    points = {"element": one.domain} | ({replica: one.replicas} if replica else {})
    return Claim(points, NotAmong(At(one, "element", replica), other, "element"), explain)
