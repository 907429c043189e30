"""Part of an Axe layout: `{slice: [A, "0:8, 4:8"]}`, the box from begin to end of each dimension, ends left out.

`:` is a whole dimension, `4:` goes to its end; a list `[[0, 8], [4, 8]]` says the same. The shape is what the layout
states (`on`); where it states none, the extents of its D.
No result: a box whose elements do not step like digits, as [3, 6) of (4:100),(4:1). A box outside the shape is wrong.
Example: `{slice: ["S[(2,8,3,8):(192,8,64,1)] on (16,24)", "0:8, 8:24"]}` is `S[(8,2,8):(8,64,1)] + 64 on (8,16)`.
Source: arXiv:2601.19092, section 3.3, whose Lemma E.2 is off by one, as is TVM's slice.
"""

from __future__ import annotations

from layoutproof.algebra.axe.slices import slice_
from layoutproof.core.errors import LayoutError, Reason, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Extent
from layoutproof.layouts.axe.layout import AxeLayout, shown

OF = AxeLayout
LAYOUTS = 1
ARGUMENT = "box"
EQUATION = "T(u) = A(u + begin)"


def apply(layout: AxeLayout, box: object) -> AxeLayout | Reason:
    """The layout of the box, or why there is none. LayoutError for a box that cannot be read or is outside."""
    shape = layout.box()
    parts = box.split(",") if isinstance(box, str) else box
    if not isinstance(parts, list):
        raise _unread(box)
    if len(parts) != len(shape):
        raise LayoutError(
            f"the box {_text(box)} has {len(parts)} dimensions, the shape {shown(shape)} has {len(shape)}"
        )
    return slice_(layout, shape, [_bounds(part, extent, box) for part, extent in zip(parts, shape, strict=True)])


def _bounds(part: object, extent: Extent, box: object) -> tuple[Extent, Extent]:
    ends = part.split(":") if isinstance(part, str) else part
    if not isinstance(ends, list) or len(ends) != 2:
        raise _unread(box)
    begin, end = (_end(one, default, box) for one, default in zip(ends, (0, extent), strict=True))
    return begin, end


def _end(value: object, default: Extent, box: object) -> Extent:
    if type(value) is int:
        return value
    if not isinstance(value, str):
        raise _unread(box)
    return parse_size(value.strip()) if value.strip() else default


def _unread(box: object) -> LayoutError:
    return LayoutError(f'a box is begin:end for each dimension, as in "0:8, 4:8", not {_text(box)}')


def _text(box: object) -> str:
    return shorten(box if isinstance(box, str) else repr(box), 60)
