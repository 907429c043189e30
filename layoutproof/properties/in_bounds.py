"""Every element's place lies inside the range: each coordinate is at least 0 and below its extent.

Why it matters: a place outside the range is another tensor's memory.
Refuted by: the smallest `element` whose place is outside.
Example: `f32[4] strides (2) in 7` is proved (offsets 0, 2, 4, 6), `f32[4] strides (2) in 6` is refuted at (3).
Checked per coordinate, so a column that runs over into the next row is found although its offset is inside the memory.
"""

from __future__ import annotations

from layoutproof.core.claim import At, Claim, Outside
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point

LAYOUTS = 1


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim: no element (and no copy of one) outside the range."""
    if not m.range.extents and m.memory is None:
        raise LayoutError("this map states no range, so nothing is out of bounds; give one: '... in [32, 4]'")
    points = {"element": m.domain} | ({"copy": m.copies} if m.copies.extents else {})

    def explain(at: Point, on: Numbers) -> str:
        place = m.place(at["element"], at.get("copy", ()), on)
        for axis, extent, entry in zip(m.range.names, m.range.extents, place, strict=True):
            if not 0 <= entry < on.size(extent):
                return f"{at['element']} is placed at {axis} = {entry}, outside 0..{on.size(extent) - 1}"
        return f"{at['element']} is placed outside"

    copy = "copy" if m.copies.extents else ""
    return (Claim(points, Outside(At(m, "element", copy)), explain),)
