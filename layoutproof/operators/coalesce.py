"""A CuTe layout with the fewest modes: `{coalesce: A}`. The offset of every linear position stays the same.

Example: `{coalesce: "(2,(1,6)):(1,(6,2))"}` is `12:1`.
Source: NVIDIA/cutlass `include/cute/layout.hpp` (coalesce).
"""

from __future__ import annotations

from layoutproof.algebra.cute.algebra import coalesce
from layoutproof.layouts.cute.layout import CuteLayout

OF = CuteLayout
LAYOUTS = 1
EQUATION = "T(i) = A(i)"


def apply(a: CuteLayout) -> CuteLayout:
    """The layout with the fewest modes."""
    return coalesce(a)
