"""No two replicas of one element share a place: an element has as many places as it has replicas.

Why it matters: where replicas coincide there are fewer than the layout says, and what reduces over them or waits for
each counts wrongly. Axe's own definition takes for granted that they differ, and they need not.
Refuted by: the smallest `element` with its smallest two replicas, `first_replica` and `second_replica`, at one place.
Example: `S[4:1@m] + R[(2,3):(2@gpuid,2@gpuid)]` has 6 replicas on 4 devices: (0, 1) and (1, 0) are both on device 2.
A layout without replicas is proved: there is one place for each element.
Fix: give each replica iter a stride beyond what those inside of it reach.
Incident: the paper takes for granted that an element has as many places as replicas; six replicas can be four places:
https://arxiv.org/abs/2601.19092
Refuted:
    layoutproof ask replicas_distinct "S[4:1@m] + R[(2,3):(2@gpuid,2@gpuid)]"
Proved:
    layoutproof ask replicas_distinct "S[4:1@m] + R[2:2@gpuid]"
Limits: Replicas of one element; two elements at one place are `injective`.
"""

from __future__ import annotations

from layoutproof.core.axes import named
from layoutproof.core.claim import And, At, Claim, Equal, LexLess
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point

LAYOUTS = 1

BOTH = Template(
    "properties.replicas_distinct_both", "replicas {first} and {second} of {element} are both stored at {place}"
)


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim: no element with two replicas first < second at the same place.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.
    """

    def explain(at: Point, on: Numbers) -> str:
        place = named(m, at["element"], at["first_replica"], on)
        return BOTH(at["first_replica"], at["second_replica"], at["element"], place)

    points = {"element": m.domain, "first_replica": m.replicas, "second_replica": m.replicas}
    same = Equal(At(m, "element", "first_replica"), At(m, "element", "second_replica"))
    return (Claim(points, And((LexLess("first_replica", "second_replica"), same)), explain),)


def figures(m: IndexMap) -> dict[str, object]:
    """replicas: how many the layout speaks of, for each element.

    Args:
        m: The map of one layout.

    Returns:
        Exact numbers by name; closed forms as text where sizes are symbolic.
    """
    count = m.replicas.count()
    return {"replicas": count if type(count) is int else str(count)}
