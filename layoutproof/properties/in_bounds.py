"""Every element's place lies inside the range: each coordinate is at least 0 and below its extent.

Why it matters: a place outside the range is another tensor's memory.
Refuted by: the smallest `element` whose place is outside.
Example: `f32[4] strides (2) in 7` is proved (offsets 0, 2, 4, 6), `f32[4] strides (2) in 6` is refuted at (3).
With `within` axes have the extents that it says, e.g. {lane: 32, warp: 4} or the name of a target (cuda, trainium),
whose hardware limits then hold for the axes it knows; the others keep the layout's own.
An Axe layout with unbounded axes is inside by definition: then the answer is unknown, and says what to write.
Checked per coordinate, so a column that runs over into the next row is found although its offset is inside the memory.
Fix: allot what the last element needs: 1 + the sum of (extent - 1) * stride.
Incident: a swizzle of a grid by 8, which did not divide its rows, addressed tiles past the end: wrong results, or a
fault: https://github.com/ROCm/FlyDSL/pull/979
Refuted:
    layoutproof ask in_bounds "f32[4] strides (2) in 6"
Proved:
    layoutproof ask in_bounds "f32[4] strides (2) in 7"
Limits: The range is the layout's, or that of `within`; the real size of a device is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.core.claim import At, Claim, Outside
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap, unnamed
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import Extent

LAYOUTS = 1

EXTENT_FORM = Template(
    "properties.in_bounds_extent_form", "the extent of axis {axis} is a whole number of at least 1, not {found!r}"
)
NO_RANGE = Template(
    "properties.in_bounds_no_range", "this map states no range, so nothing is out of bounds; give one: '... in [32, 4]'"
)
OUTSIDE = Template("properties.in_bounds_outside", "{element} is placed outside")
PLACED = Template("properties.in_bounds_placed", "{element} is placed at {axis} = {entry}, outside 0..{last}")
TARGET_NAME = Template(
    "properties.in_bounds_target_name", "within is a mapping of axes to extents here, not the target name {found!r}"
)
UNKNOWN_AXIS = Template("properties.in_bounds_unknown_axis", "the layout has no axis {axis!r}; {have}")
VACUOUS = Template(
    "properties.in_bounds_vacuous",
    "vacuous: nothing bounds the axes; the layout reaches {reach}. Say how far they go: --within "
    "with a target (cuda) or '{{{axis}: 32}}', or end the layout with within (32@{axis})",
)
WITHIN_FORM = Template(
    "properties.in_bounds_within_form",
    "within is a mapping of axes to extents, e.g. {{lane: 32}}, or a target, not {found!r}",
)


def claims(m: IndexMap, within: Mapping[str, int] | str | None = None) -> tuple[Claim, ...]:
    """One claim: no element (and no replica of one) outside the range, or outside `within`.

    Args:
        m: The map of one layout.
        within: Extents to stay inside of, by axis, or the name of a target; None for the range of the map.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: The map states no range.
    """
    if not m.range.extents and m.memory is None:
        raise LayoutError(NO_RANGE())
    points = {"element": m.domain} | ({"replica": m.replicas} if m.replicas.extents else {})
    extents = None if within is None else _extents(m, within)
    shown = m.range.extents if extents is None else extents

    def explain(at: Point, on: Numbers) -> str:
        place = m.place(at["element"], at.get("replica", ()), on)
        which = f"{at['element']}, replica {at['replica']}," if "replica" in at else f"{at['element']}"
        for axis, extent, entry in zip(m.range.names, shown, place, strict=True):
            if not 0 <= entry < on.size(extent):
                return PLACED(which, axis, entry, on.size(extent) - 1)
        return OUTSIDE(which)

    replica = "replica" if m.replicas.extents else ""
    plain = unnamed(m) if extents is None else None
    implied_by = None if plain is None else claims(plain)[0]
    return (Claim(points, Outside(At(m, "element", replica), extents), explain, implied_by=implied_by),)


def vacuous(m: IndexMap, within: Mapping[str, int] | str | None = None) -> str:
    """Why a proof would say nothing: each axis is as long as the layout reaches, whatever that is.

    Args:
        m: The map of one layout.
        within: As for `claims`.

    Returns:
        The reason and what to write, or "" where some axis is bounded.
    """
    axes = m.range.names
    if not axes or set(axes) - set(m.unbounded) or within:
        return ""
    reach = ", ".join(f"{axis} 0..{extent - 1}" for axis, extent in zip(axes, m.range.extents, strict=True))
    return VACUOUS(reach, axes[0])


def _extents(m: IndexMap, within: Mapping[str, int] | str) -> tuple[Extent, ...]:
    if isinstance(within, str):
        raise LayoutError(TARGET_NAME(within))
    if not isinstance(within, Mapping):
        raise LayoutError(WITHIN_FORM(within))
    for axis, extent in within.items():
        if axis not in m.range.names:
            have = f"it has {', '.join(m.range.names)}" if m.range.names else "its axes have no names"
            raise LayoutError(UNKNOWN_AXIS(axis, have))
        if type(extent) is not int or extent < 1:
            raise LayoutError(EXTENT_FORM(axis, extent))
    return tuple([within.get(name, extent) for name, extent in zip(m.range.names, m.range.extents, strict=True)])
