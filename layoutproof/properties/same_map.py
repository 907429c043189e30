"""Two layouts put every element at the same place.

Why it matters: two spellings of one layout are interchangeable, and a change that is only a respelling is harmless.
Compared are addresses (memory space, bit) for two memory layouts of one shape, however they are spelled; coordinates
for maps without a memory. How much is allotted is not compared: that is what `bitcast` adds.
Refuted by: the smallest `element` that the two put at different places.
Example: `bf16[16,256]{1,0:T(8,128)(2,1)}` and `..T(8,128)(2,128)(2,1)` are the same map; dropping `(2,1)` moves (0, 1).
"""

from __future__ import annotations

from layoutproof.core.claim import At, Claim, Differ
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.reshape import common_unit, comparable
from layoutproof.core.result import Point

LAYOUTS = 2


def claims(left: IndexMap, right: IndexMap) -> tuple[Claim, ...]:
    """One claim: no element at two different places."""
    if left.domain.extents != right.domain.extents:
        shapes = " and ".join(f"[{', '.join(map(str, m.domain.extents))}]" for m in (left, right))
        raise LayoutError(f"same_map compares layouts of one shape, not {shapes}; for a reshape ask bitcast")
    if left.copies.extents or right.copies.extents:
        raise LayoutError("same_map compares layouts with one place per element; these have copies")
    one, other = comparable(left, right, common_unit(left, right))

    def explain(at: Point, on: Numbers) -> str:
        places = [m.show_place(at["element"], (), on) for m in (left, right)]
        if places[0] == places[1]:
            places = [f"(space, bit) {m.place(at['element'], (), on)}" for m in comparable(left, right, 1, True)]
        return f"{at['element']} is stored at {places[0]} by the first and at {places[1]} by the second"

    return (Claim({"element": left.domain}, Differ(At(one, "element"), At(other, "element")), explain),)
