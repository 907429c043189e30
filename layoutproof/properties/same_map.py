"""Two layouts put every element at the same place.

Why it matters: two texts of one layout are interchangeable, and a change from one to the other is harmless.
Compared are addresses (memory space, bit) for two memory layouts of one shape, however they are spelled; coordinates
for maps without a memory. How much is allotted is not compared: that is what `bitcast` adds.
Where elements have several replicas, the sets of places are compared: neither layout has a place that the other lacks.
Axes are compared by name, in any order; an axis that only one layout has is 0 on the other.
With `fusion`, axes are put together first, e.g. [tx = 32*warpid + laneid], and it is proved that they stay within the
bounds that make this one-to-one (laneid < 32): a place that does not is what refutes it, as in `in_bounds`.
Refuted by: the smallest `element` that the two put at different places; with replicas, the smallest `element` and
`first_replica` at a place that the second layout lacks, or else `element` and `second_replica` at one that the first
lacks.
Example: `bf16[16,256]{1,0:T(8,128)(2,1)}` and `..T(8,128)(2,128)(2,1)` are the same map; dropping `(2,1)` moves (0, 1).
Fix: `layoutproof show A B` marks what lies elsewhere.
Incident: JAX compared layouts as text, and refused one in which only dimensions of one element stand in another order:
https://github.com/jax-ml/jax/issues/25066
Refuted:
    layoutproof ask same_map "bf16[16,256]{1,0:T(8,128)(2,1)}" "bf16[16,256]{1,0:T(8,128)}"
Proved:
    layoutproof ask same_map "bf16[16,256]{1,0:T(8,128)(2,1)}" "bf16[16,256]{1,0:T(8,128)(2,128)(2,1)}"
Limits: How much is allotted, and in which memory, is not compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.core.axes import aligned, named, onto
from layoutproof.core.claim import At, Claim, Differ
from layoutproof.core.errors import LayoutError
from layoutproof.core.fusion import bounds_of, fuse, read_fusion
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.reshape import common_unit, comparable
from layoutproof.core.result import Point
from layoutproof.properties import in_bounds, refines

LAYOUTS = 2

FUSION_AXES = Template("properties.same_map_fusion_axes", "fusion speaks of {axes}, and the layouts have {have}")
FUSION_FORM = Template(
    "properties.same_map_fusion_form", "fusion is a list of equations such as 'tx = 32*warpid + laneid', not {found!r}"
)
SHAPES = Template(
    "properties.same_map_shapes", "same_map compares layouts of one shape, not {shapes}; for a reshape ask bitcast"
)
STORED = Template(
    "properties.same_map_stored", "{element} is stored at {first} by the first and at {second} by the second"
)


def claims(left: IndexMap, right: IndexMap, fusion: Sequence[str] | None = None) -> tuple[Claim, ...]:
    """One claim: no element at two different places; with replicas two, one per direction; bounds of fused axes.

    Args:
        left: The map of the first layout.
        right: The map of the second.
        fusion: Equations such as "tx = 32*warpid + laneid" that make one axis of several; None for none.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: The maps cannot be compared, or an equation cannot be read.
    """
    if fusion:
        if not isinstance(fusion, Sequence):
            raise LayoutError(FUSION_FORM(fusion))
        fusions = [read_fusion(text) for text in ([fusion] if isinstance(fusion, str) else fusion)]
        known = {*left.range.names, *right.range.names}
        for each in fusions:
            if not {each.whole, *each.parts} & known:
                axes, have = ", ".join((each.whole, *each.parts)), ", ".join(sorted(known))
                raise LayoutError(FUSION_AXES(axes, have))
        within = [(m, bounds_of(m, fusions)) for m in (left, right)]
        first = [claim for m, box in within if box for claim in in_bounds.claims(onto(m, tuple(box)), box)]
        for each in fusions:
            left, right = fuse(left, each), fuse(right, each)
        return (*first, *claims(left, right))
    if left.domain.extents != right.domain.extents:
        shapes = " and ".join(f"[{', '.join(map(str, m.domain.extents))}]" for m in (left, right))
        raise LayoutError(SHAPES(shapes))
    one, other = comparable(*aligned(left, right), common_unit(left, right))
    if left.replicas.extents or right.replicas.extents:
        return (
            refines.missing_place(left, one, other, "first_replica", "the second layout"),
            refines.missing_place(right, other, one, "second_replica", "the first layout"),
        )

    def explain(at: Point, on: Numbers) -> str:
        places = [named(m, at["element"], (), on) for m in (left, right)]
        if places[0] == places[1]:
            places = [f"(space, bit) {m.place(at['element'], (), on)}" for m in comparable(left, right, 1, True)]
        return STORED(at["element"], places[0], places[1])

    return (Claim({"element": left.domain}, Differ(At(one, "element"), At(other, "element")), explain),)
