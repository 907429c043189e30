"""CuTe layout A cut into tiles B: `{divide: [A, B]}`, CuTe's logical_divide. Mode 0 is a tile, mode 1 counts the tiles.

No result: a B whose modes overlap or interleave; otherwise as for `compose`. Where B does not divide A, the last tile
goes past A's end, as in CuTe.
Example: `{divide: ["(4,2,3):(2,1,8)", "4:2"]}` is `((2,2),(2,3)):((4,1),(2,8))`.
Source: NVIDIA/cutlass `include/cute/layout.hpp` (logical_divide).
"""

from __future__ import annotations

from layoutproof.algebra.cute.tiling import logical_divide
from layoutproof.core.errors import Reason
from layoutproof.layouts.cute.layout import CuteLayout

OF = CuteLayout
LAYOUTS = 2
EQUATION = "T(i, j) = A(B(i) + C(j)), C the complement of B in A"


def apply(a: CuteLayout, b: CuteLayout) -> CuteLayout | Reason:
    """A divided by B, or why there is none."""
    return logical_divide(a, b)
