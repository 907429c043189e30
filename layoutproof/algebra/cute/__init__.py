"""CuTe layouts: coalesce, composition, complement, inverses, divide, product. Start at `algebra.py`."""

from __future__ import annotations

from layoutproof.algebra.cute.algebra import Tiler, coalesce, complement, composition, left_inverse, right_inverse
from layoutproof.algebra.cute.tiling import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from layoutproof.layouts.cute.layout import CuteLayout, Swizzle

__all__ = [
    "CuteLayout",
    "Swizzle",
    "Tiler",
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "flat_divide",
    "flat_product",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "raked_product",
    "right_inverse",
    "tiled_divide",
    "tiled_product",
    "zipped_divide",
    "zipped_product",
]
