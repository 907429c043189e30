"""Two different elements never share one place.

Why it matters: a shared place means that writing one element silently destroys another.
Refuted by: the smallest such pair, as `first` and `second`; where elements have several replicas, also which replicas,
`first_replica` and `second_replica`. Replicas of one element may coincide here: that is `replicas_distinct`.
Example: `f32[3,5] strides (4,1)` is refuted: (0, 4) and (1, 0) are both stored at offset 4.
Fix: give each dimension a stride of at least the extent times stride of the dimension inside it.
Incident: TVM's `TileLayout.span` leaves the sign of strides out, and tiles that it lays side by side collide:
BUGS-FOUND.md.
Refuted:
    layoutproof ask injective "f32[3,5] strides (4,1)"
Proved:
    layoutproof ask injective "f32[3,5] strides (5,1)"
Limits: Two elements of one layout. Two buffers that overlap are no question of one layout.
"""

from __future__ import annotations

from layoutproof.core.axes import named
from layoutproof.core.claim import And, At, Claim, Equal, LexLess
from layoutproof.core.index_map import IndexMap, unnamed
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point

LAYOUTS = 1

BOTH = Template("properties.injective_both", "{elements} are both stored at {place}")


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim: no first < second at the same place.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.
    """
    points = {"first": m.domain, "second": m.domain}
    replicas = ("", "")
    if m.replicas.extents:
        replicas = ("first_replica", "second_replica")
        points |= dict.fromkeys(replicas, m.replicas)

    def explain(at: Point, on: Numbers) -> str:
        place = named(m, at["first"], at.get("first_replica", ()), on)
        both = [f"{at[name]}{_replica(at, name)}" for name in ("first", "second")]
        return BOTH(" and ".join(both), place)

    same = Equal(At(m, "first", replicas[0]), At(m, "second", replicas[1]))
    plain = unnamed(m)
    implied_by = None if plain is None else claims(plain)[0]
    return (Claim(points, And((LexLess("first", "second"), same)), explain, implied_by=implied_by),)


def _replica(at: Point, name: str) -> str:
    return f" (replica {at[f'{name}_replica']})" if f"{name}_replica" in at else ""
