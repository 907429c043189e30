"""Axe layout B repeated as Axe layout A says: `{tile: [A, B]}`, the paper's A (x) B.

Dimension by dimension A counts the repetitions and B the elements of one: an outer (8,8) over an inner (2,3) has the
shape (16,24). Each repetition is as far from the next as B is wide. Shapes are those that the layouts state (`on`);
where one states none, the extents of its D.
No result: shapes of two ranks; an extent of D that would belong to two dimensions; a swizzled A; a swizzled B whose
width is no whole number of its windows.
Example: `{tile: ["S[(8,8):(8,1)]", "S[(2,3):(3,1)]"]}` is `S[(8,2,8,3):(48,3,6,1)] on (16,24)`.
Source: arXiv:2601.19092, section 3.3. TVM's tile scales neither A's replicas nor its offset.
"""

from __future__ import annotations

from layoutproof.algebra.axe.tiling import tile
from layoutproof.core.errors import Reason
from layoutproof.layouts.axe.layout import AxeLayout

OF = AxeLayout
LAYOUTS = 2
EQUATION = "T(x || y) = A(x) * span(B) + B(y)"


def apply(outer: AxeLayout, inner: AxeLayout) -> AxeLayout | Reason:
    """A (x) B, or why there is none."""
    return tile(outer, outer.box(), inner, inner.box())
