"""Direct sum of two Axe layouts: `{sum: [A, B]}`, the paper's A + B over the same dimensions as a tiling.

As `tile`, but A is not scaled by the width of B, so elements may share places: ask `injective` of the result. Shapes
are those that the layouts state (`on`); where one states none, the extents of its D.
No result: shapes of two ranks; an extent of D that would belong to two dimensions; a swizzled A; a swizzled B where A
steps by less than whole windows.
Example: `{sum: ["S[(2,2):(8,2)]", "S[(2,2):(4,1)]"]}` is `S[16:1] on (4,4)`, which is no tiling by any A.
Source: arXiv:2601.19092, section 3.3 and appendix F.
"""

from __future__ import annotations

from layoutproof.algebra.axe.sums import direct_sum
from layoutproof.core.errors import Reason
from layoutproof.layouts.axe.layout import AxeLayout

OF = AxeLayout
LAYOUTS = 2
EQUATION = "T(x || y) = A(x) + B(y)"


def apply(left: AxeLayout, right: AxeLayout) -> AxeLayout | Reason:
    """A + B, or why there is none."""
    return direct_sum(left, left.box(), right, right.box())
