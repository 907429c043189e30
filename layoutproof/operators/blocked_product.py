"""CuTe layout A repeated as B says, mode by mode: `{blocked_product: [A, B]}`; neighbours are of one block.

No result: an A whose modes overlap or interleave; otherwise as for `compose`.
Example: `{blocked_product: ["(2,5):(5,1)", "(3,4):(1,3)"]}` is `((2,3),(5,4)):((5,10),(1,30))`.
Source: NVIDIA/cutlass `include/cute/layout.hpp` (blocked_product).
"""

from __future__ import annotations

from layoutproof.algebra.cute import tiling
from layoutproof.core.errors import Reason
from layoutproof.layouts.cute.layout import CuteLayout

OF = CuteLayout
LAYOUTS = 2
EQUATION = "T((i0, j0), (i1, j1), ..) = A(i0, i1, ..) + C(B(j0, j1, ..)), C the complement of A"


def apply(a: CuteLayout, b: CuteLayout) -> CuteLayout | Reason:
    """A repeated by B mode by mode, or why there is none."""
    return tiling.blocked_product(a, b)
