"""An Axe layout with digits of its own for each dimension of a shape: `{group: [A, "(8,8)"]}`.

The map stays the same; extents of D are split where a dimension ends. The result has this shape.
No result: an extent of D that would belong to two dimensions, as (6,2) for the shape (4,3). A shape with another number
of elements is an error.
Example: `{group: ["S[64:1]", "(8,8)"]}` is `S[(8,8):(8,1)] on (8,8)`.
Source: arXiv:2601.19092, section 3.2 and Algorithm 1.
"""

from __future__ import annotations

from layoutproof.algebra.axe.grouping import group
from layoutproof.core.errors import LayoutError, Reason, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Extent
from layoutproof.layouts.axe.layout import AxeLayout

OF = AxeLayout
LAYOUTS = 1
ARGUMENT = "shape"
EQUATION = "T(x) = A(x)"


def apply(layout: AxeLayout, shape: object) -> AxeLayout | Reason:
    """The grouped layout, or why there is none. LayoutError for a shape that is not admitted."""
    found = group(layout, _shape(shape))
    return found if isinstance(found, Reason) else found[0]


def _shape(value: object) -> list[Extent]:
    entries = value.strip().strip("()").split(",") if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(type(entry) in (int, str) for entry in entries):
        raise LayoutError(f'a shape is written "(8,8)", not {shorten(repr(value), 60)}')
    return [parse_size(entry.strip()) if isinstance(entry, str) else entry for entry in entries]
