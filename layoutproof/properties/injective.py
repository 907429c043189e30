"""Two different elements never share one place.

Why it matters: a shared place means that writing one element silently destroys another.
Refuted by: the smallest such pair, as `first` and `second`; where elements have several copies, also which copies.
Example: `f32[3,5] strides (4,1)` is refuted: (0, 4) and (1, 0) are both stored at offset 4.
Mend: give each dimension a stride of at least the extent times stride of the dimension inside it.
"""

from __future__ import annotations

from layoutproof.core.claim import All, At, Before, Claim, Same
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point

LAYOUTS = 1


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim: no first < second at the same place."""
    points = {"first": m.domain, "second": m.domain}
    copies = ("", "")
    if m.copies.extents:
        copies = ("first_copy", "second_copy")
        points |= dict.fromkeys(copies, m.copies)

    def explain(at: Point, on: Numbers) -> str:
        place = m.show_place(at["first"], at.get("first_copy", ()), on)
        return f"{at['first']} and {at['second']} are both stored at {place}"

    same = Same(At(m, "first", copies[0]), At(m, "second", copies[1]))
    return (Claim(points, All((Before("first", "second"), same)), explain),)
