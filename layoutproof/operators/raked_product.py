"""CuTe layout A repeated as B says, mode by mode: `{raked_product: [A, B]}`; neighbours are of different blocks.

No result: an A whose modes overlap or interleave; otherwise as for `compose`.
Example: `{raked_product: ["(2,5):(5,1)", "(3,4):(1,3)"]}` is `((3,2),(4,5)):((10,5),(30,1))`.
Source: NVIDIA/cutlass `include/cute/layout.hpp` (raked_product).
"""

from __future__ import annotations

from layoutproof.algebra.cute import tiling
from layoutproof.core.errors import Reason
from layoutproof.layouts.cute.layout import CuteLayout

OF = CuteLayout
LAYOUTS = 2
EQUATION = "T((j0, i0), (j1, i1), ..) = A(i0, i1, ..) + C(B(j0, j1, ..)), C the complement of A"


def apply(a: CuteLayout, b: CuteLayout) -> CuteLayout | Reason:
    """A repeated by B mode by mode, or why there is none."""
    return tiling.raked_product(a, b)
