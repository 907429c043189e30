"""Composition of two CuTe layouts: `{compose: [A, B]}`, the layout that is A(B(i)) at i.

No result: where A(B(i)) is not the function of any layout; the reason names the smallest i at which it fails. There
CuTe's own composition gives a layout too, which is another function.
Example: `{compose: ["(6,2):(8,2)", "(4,3):(3,1)"]}` is `((2,2),3):((24,2),8)`.
Source: NVIDIA/cutlass `include/cute/layout.hpp` (composition).
"""

from __future__ import annotations

from layoutproof.algebra.cute.algebra import composition
from layoutproof.core.errors import Reason
from layoutproof.layouts.cute.layout import CuteLayout

OF = CuteLayout
LAYOUTS = 2
EQUATION = "T(i) = A(B(i))"


def apply(a: CuteLayout, b: CuteLayout) -> CuteLayout | Reason:
    """A o B, or why there is none."""
    return composition(a, b)
