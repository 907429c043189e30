"""A BlockSpec as Axe: programs are the digits of D, offsets in a block the replicas R; each array dimension is an axis.

Each coordinate must be a sum of strides times grid indices, and each grid index move one dimension of the array.
"""

from __future__ import annotations

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.size import Extent
from layoutproof.layouts.axe.layout import AxeLayout, Iter
from layoutproof.layouts.blockspec import BlockSpecLayout
from layoutproof.questions import problems
from layoutproof.solvers.digits import DIGITS, placed
from layoutproof.solvers.digits.number import DigitSum, leaves_of


def convert(layout: BlockSpecLayout) -> AxeLayout:
    """`f32[8] blockspec (2) (i) -> (i) grid (4)` is `S[4:2@dim0] + R[2:1@dim0] on (4) within (8@dim0)`."""
    m = layout.index_map()
    rank = len(m.domain.extents)
    try:
        roots, coordinates = placed(m, DIGITS)
    except Undecided as undecided:
        raise LayoutError(problems.TO_AXE_COORDINATE_DIGITS(undecided)) from None
    steps: dict[object, tuple[Extent, str]] = {}
    offsets: dict[str, Extent] = {}
    for axis, coordinate in zip(m.range.names, coordinates, strict=True):
        form, constant = (
            (coordinate.over_leaves(), coordinate.constant) if type(coordinate) is DigitSum else ({}, coordinate)
        )
        if constant != 0:
            offsets[axis] = constant
        for digit, step in form.items():
            if digit in steps:
                raise LayoutError(problems.TO_AXE_TWO_AXES(steps[digit][1], axis))
            steps[digit] = (step, axis)
    iters: tuple[list[Iter], list[Iter]] = ([], [])
    for k, extent in enumerate((*m.domain.extents, *m.replicas.extents)):
        found = [leaf for leaf in leaves_of(roots) if leaf.dimension == k]
        if found and any(leaf not in steps for leaf in found):
            name = (*m.domain.names, *m.replicas.names)[k]
            raise LayoutError(problems.TO_AXE_INDEX_STILL(name))
        row = [(leaf.extent, *steps[leaf]) for leaf in found] or [(1, 1, m.range.names[0])] * (extent == 1 and k < rank)
        iters[k >= rank].extend(row)
    within = dict(zip(m.range.names, m.range.extents, strict=True))
    return AxeLayout(tuple(iters[0]), tuple(iters[1]), offsets, m.domain.extents, within)
