"""The one form of an Axe layout that all layouts with its map have: `{canonical: A}`.

Extents of 1 are dropped, digits that continue one another are joined, replicas have positive strides and fill what they
overlap, zero offsets are dropped. Shape and bounds are kept.
Example: `{canonical: "S[(8,2,2,2,2):(4@lane,1@warp,2@lane,1@lane,1@reg)] + R[2:-4@warp] + 9@warp"}` is
`S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp`.
Source: arXiv:2601.19092, appendix A, whose rule C2 is not confluent.
"""

from __future__ import annotations

from layoutproof.algebra.axe.canonical_form import canonical, same
from layoutproof.core.errors import InternalError
from layoutproof.layouts.axe.layout import AxeLayout

OF = AxeLayout
LAYOUTS = 1
EQUATION = "T(x) = A(x)"


def apply(layout: AxeLayout) -> AxeLayout:
    """The canonical form."""
    found = canonical(layout)
    if not same(found, layout):
        raise InternalError(f"the canonical form {found} is not the map of {layout}: please report this")
    return found
