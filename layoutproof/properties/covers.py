"""Every place in the range holds an element.

Why it matters: an output with a place that nothing writes holds garbage.
Refuted by: the smallest `place` without an element. Padded layouts are refuted by design: padding is such a place;
ask `bijective` for "one-to-one onto everything that is not padding".
Where elements have several replicas, each replica's place counts as held; the figure `holes` then says how many are not
(constant sizes).
Example: `f32[4,128]{1,0:T(4,128)}` is proved, `f32[3,128]{1,0:T(4,128)}` is refuted at place (0, 0, 3, 0).
Fix: choose extents that whole tiles fill, or ask `bijective`, which padding does not refute.
Incident: a swizzle of a grid left the last tiles of a result without a workgroup:
https://github.com/ROCm/aiter/pull/4315
Refuted:
    layoutproof ask covers "f32[3,128]{1,0:T(4,128)}"
Proved:
    layoutproof ask covers "f32[4,128]{1,0:T(4,128)}"
Limits: The range is the layout's own; places outside of it are not looked at.
"""

from __future__ import annotations

from layoutproof.core.claim import Claim, SizeCondition, Uncovered
from layoutproof.core.counting import Count
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.term import Term, size_term

LAYOUTS = 1

HOLE = Template("properties.covers_hole", "no element is placed at {place}")
NO_RANGE = Template("properties.covers_no_range", "this map states no range to cover; give one: '... in [32, 4]'")
TAIL = Template("properties.covers_tail", "offsets {first}..{last} are alignment at the tail and hold no element")


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """No place of the box without an element; and nothing allotted beyond the box (tail alignment).

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: The map states no range.
    """
    if not m.range.extents and m.memory is None:
        raise LayoutError(NO_RANGE())

    def explain(at: Point, on: Numbers) -> str:
        return HOLE(at["place"])

    reached = Claim({"place": m.range}, Uncovered(m, "place"), explain)
    if m.memory is None or m.memory.allotted == m.range.count():
        return (reached,)
    places, allotted = size_term(m.range.count()), size_term(m.memory.allotted)

    def explain_tail(at: Point, on: Numbers) -> str:
        box, all_ = on.size(m.range.count()), on.size(m.memory.allotted)  # type: ignore[union-attr]
        return TAIL(box, all_ - 1)

    return (reached, Claim({}, SizeCondition(Term("<", places, allotted)), explain_tail))


def counted(count: Count, m: IndexMap) -> tuple[dict[str, object], tuple[Claim, ...]]:
    """holes: places of the range without an element, for maps with replicas or without a memory.

    Args:
        count: Counts the places of a map exactly.
        m: The map of one layout.

    Returns:
        (figures, further claims).
    """
    if m.memory is not None and not m.replicas.extents:
        # the count of padding, without looking at places
        return {}, ()
    try:
        return {"holes": m.range.count() - count(m).inside}, ()
    except Undecided:
        return {}, ()
