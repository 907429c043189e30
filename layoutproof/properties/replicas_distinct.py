"""No two copies of one element share a place: every copy that a layout speaks of is really another one.

Why it matters: copies that coincide are fewer copies than the layout says, so what reduces over them, or waits for
each, counts wrongly. Axe's own definition takes for granted that they differ, and they need not.
Refuted by: the smallest `element` with the smallest two copies of it, `first_copy` and `second_copy`, at one place.
Example: `S[4:1@m] + R[(2,3):(2@gpuid,2@gpuid)]` has 6 copies on 4 devices: (0, 1) and (1, 0) are both on device 2.
A layout without copies is proved: there is one place for each element.
"""

from __future__ import annotations

from layoutproof.core.axes import named
from layoutproof.core.claim import And, At, Claim, LexLess, Same
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point

LAYOUTS = 1


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim: no element with two copies first < second at the same place."""

    def explain(at: Point, on: Numbers) -> str:
        place = named(m, at["element"], at["first_copy"], on)
        return f"copies {at['first_copy']} and {at['second_copy']} of {at['element']} are both stored at {place}"

    points = {"element": m.domain, "first_copy": m.copies, "second_copy": m.copies}
    same = Same(At(m, "element", "first_copy"), At(m, "element", "second_copy"))
    return (Claim(points, And((LexLess("first_copy", "second_copy"), same)), explain),)


def figures(m: IndexMap) -> dict[str, object]:
    """copies: how many the layout speaks of, for each element."""
    count = m.copies.count()
    return {"copies": count if type(count) is int else str(count)}
