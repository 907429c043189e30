"""CuTe layout A repeated as B says: `{product: [A, B]}`, CuTe's logical_product. Mode 0 is A, mode 1 the repetitions.

No result: an A whose modes overlap or interleave; otherwise as for `compose`.
Example: `{product: ["(4,2):(1,4)", "3:1"]}` is `((4,2),3):((1,4),8)`.
Source: NVIDIA/cutlass `include/cute/layout.hpp` (logical_product).
"""

from __future__ import annotations

from layoutproof.algebra.cute.tiling import logical_product
from layoutproof.core.errors import Reason
from layoutproof.layouts.cute.layout import CuteLayout

OF = CuteLayout
LAYOUTS = 2
EQUATION = "T(i, j) = A(i) + C(B(j)), C the complement of A"


def apply(a: CuteLayout, b: CuteLayout) -> CuteLayout | Reason:
    """A repeated by B, or why there is none."""
    return logical_product(a, b)
