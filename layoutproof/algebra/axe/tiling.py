"""Tiling A (outer) over B (inner), and recognising both from the result.

Definition (paper, section 3.3): over the interleaved domain, with span the width of B on each axis,

    T(x || y) = A(x) * span(B) + B(y).

TVM scales neither A's replicas nor its offset and counts B's offset and negative strides in the span; here the result
is checked against the definition, part by part: D by normal forms over x alone and y alone (it is additive in both),
the replicas as exact sets per axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.algebra import problems
from layoutproof.algebra.axe.canonical_form import canonical, normal, same_replicas
from layoutproof.algebra.axe.grouping import Blocks, blocks_of, divided
from layoutproof.core.errors import InternalError, LayoutError, Reason
from layoutproof.core.size import Extent, divide, product, surely_less
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter, add, admit, shown, swizzled_bounds
from layoutproof.layouts.axe.swizzle import Swizzle, window


def spans(layout: AxeLayout) -> dict[str, Extent]:
    """How wide the layout is on each axis that it uses: largest - smallest coordinate + 1, without the offset.

    Exact: 1 + the sum of |stride|*(extent - 1) over D and R (paper, Lemma C.1). Of the tile where it is swizzled.

    Args:
        layout: An Axe layout.

    Returns:
        Axis -> width.

    >>> spans(AxeLayout(((4, -1, "m"),), ((2, 8, "w"),), {"m": 100}))
    {'m': 4, 'w': 9}
    """
    found: dict[str, Any] = {}
    for extent, stride, axis in (*layout.D, *layout.R):
        width = _absolute(stride, layout) * (extent - 1)
        found[axis] = found.get(axis, 1) + width
    return found


def span(layout: AxeLayout, axis: str) -> Extent:
    """The width on one axis, 1 where the layout does not use it; of a swizzled layout, of what it really reaches.

    TVM's `span` counts the offset, takes negative strides as negative, and ignores the swizzle.

    Args:
        layout: An Axe layout.
        axis: Name of an axis.

    Returns:
        In elements of the axis.

    >>> span(AxeLayout(((9, 1, "m"),), swizzle=Swizzle(0, 3, 3)), "m")
    10
    """
    if layout.swizzle is not None and axis == MEMORY:
        low, high = swizzled_bounds(layout)
        return high - low + 1
    return spans(layout).get(axis, 1)


def tile(
    outer: AxeLayout, outer_shape: Sequence[Extent], inner: AxeLayout, inner_shape: Sequence[Extent]
) -> AxeLayout | Reason:
    """`inner` repeated as `outer` says, of shape outer_shape * inner_shape (TVM: `inner.tile(outer, ..)`).

    Requires: shapes of one rank, admitted (LayoutError otherwise); no swizzle on the outer layout; for a swizzled inner
    one, a span of whole swizzle windows (a Reason otherwise). Ensures: the definition above, checked; canonical.

    Args:
        outer: The layout that says where the repetitions go.
        outer_shape: Its shape, in repetitions.
        inner: The layout that is repeated.
        inner_shape: Its shape, in elements.

    Returns:
        The layout, or the reason why there is none.

    >>> grid, atom = AxeLayout(((8, 8, "m"), (8, 1, "m"))), AxeLayout(((2, 3, "m"), (3, 1, "m")))
    >>> str(tile(grid, (8, 8), atom, (2, 3)))
    'S[(8,2,8,3):(48,3,6,1)] on (16,24)'
    """
    if len(outer_shape) != len(inner_shape):
        raise LayoutError(problems.RANKS_DIFFER(shown(outer_shape), shown(inner_shape)))
    if outer.swizzle is not None:
        return Reason("the outer layout is swizzled, so its places have no multiples")
    outer_blocks = blocks_of(normal(outer.D) or outer.D, admit(outer, outer_shape))
    inner_blocks = blocks_of(normal(inner.D) or inner.D, admit(inner, inner_shape))
    if isinstance(outer_blocks, Reason) or isinstance(inner_blocks, Reason):
        return outer_blocks if isinstance(outer_blocks, Reason) else inner_blocks  # type: ignore[return-value]
    swizzle = inner.swizzle
    plain = inner if swizzle is None else AxeLayout(inner.D, inner.R, inner.O)
    width = spans(plain)
    if swizzle is not None and (reason := unrepeatable(inner, swizzle)) is not None:
        return reason
    shard: list[Iter] = []
    for coarse, fine in zip(outer_blocks, inner_blocks, strict=True):
        shard += [(e, s * width.get(a, 1), a) for e, s, a in coarse]
        shard += fine
    replicas = (*_scaled(outer.R, width), *inner.R)
    shape = tuple([a * b for a, b in zip(outer_shape, inner_shape, strict=True)])
    result = AxeLayout(tuple(shard), replicas, add(outer.O, inner.O, width), shape, None, swizzle)
    if problem := tiles(result, outer, outer_shape, plain, inner_shape):
        raise InternalError(f"tiling {inner} by {outer}: {problem}: please report this")
    return canonical(result)


def tile_to(inner: AxeLayout, to_shape: Sequence[Extent], inner_shape: Sequence[Extent]) -> AxeLayout | Reason:
    """`inner` repeated in row-major order until it fills `to_shape` (TVM: `tile_to`).

    Args:
        inner: The layout that is repeated.
        to_shape: Shape to fill, in elements.
        inner_shape: Its shape, in elements.

    Returns:
        The layout, or the reason why there is none.

    >>> str(tile_to(AxeLayout(((8, 8, "m"), (8, 1, "m"))), (64, 64), (8, 8)))
    'S[(8,8,8,8):(512,8,64,1)] on (64,64)'
    """
    counts = divided(to_shape, inner_shape, "tile_to")
    grid: list[Iter] = []
    step: Any = 1
    for extent in reversed(counts):
        grid.insert(0, (extent, step, MEMORY))
        step = step * extent
    return tile(AxeLayout(tuple(grid)), counts, inner, inner_shape)


def tiles(
    result: AxeLayout,
    outer: AxeLayout,
    outer_shape: Sequence[Extent],
    inner: AxeLayout,
    inner_shape: Sequence[Extent],
) -> str:
    """Why result(x || y) = outer(x)*span(inner) + inner(y) fails, or "" when it is proved. Swizzles are not looked at.

    D is additive in digits, so the equation holds for D iff it does over x alone and over y alone; there both sides
    are digit lists, equal iff their normal forms are. The replicas and offsets are compared as sets.
    """
    width = spans(AxeLayout(inner.D, inner.R, inner.O))
    halves = halves_of(result, outer_shape, inner_shape)
    if isinstance(halves, Reason):
        return halves.text
    coarse, fine = halves
    if normal(coarse) != normal(_scaled(outer.D, width)):
        return "over the outer index it is not the outer layout times the span"
    if normal(fine) != normal(inner.D):
        return "over the inner index it is not the inner layout"
    replicas = (*_scaled(outer.R, width), *inner.R)
    offset = add(outer.O, inner.O, width)
    if replicas == result.R and offset == result.O:
        return ""
    if result.symbols() or outer.symbols() or inner.symbols():
        return "the replicas differ in writing, and have run-time sizes"
    if same_replicas(result, AxeLayout((), replicas, offset)):
        return ""
    return "its replicas and offset are not those of the outer layout times the span plus the inner layout's"


def halves_of(
    tiled: AxeLayout, outer_shape: Sequence[Extent], inner_shape: Sequence[Extent]
) -> tuple[tuple[Iter, ...], tuple[Iter, ...]] | Reason:
    """D over the outer index and over the inner one, when D splits at the interleaved shape."""
    shape = [extent for pair in zip(outer_shape, inner_shape, strict=True) for extent in pair]
    if product(shape) != tiled.size():
        raise LayoutError(problems.OTHER_SIZE(shown(shape), tiled.size(), tiled))
    blocks: Blocks | Reason = blocks_of(normal(tiled.D) or tiled.D, shape)
    if isinstance(blocks, Reason):
        return blocks
    return tuple([i for b in blocks[::2] for i in b]), tuple([i for b in blocks[1::2] for i in b])


def _scaled(iters: Sequence[Iter], width: Mapping[str, Extent]) -> list[Iter]:
    return [(e, s * width.get(a, 1), a) for e, s, a in iters]


def unrepeatable(inner: AxeLayout, swizzle: Swizzle) -> Reason | None:
    """Why tiles of a swizzled layout would be swizzled differently, or None: a span of whole windows is needed."""
    size = window(swizzle)
    width = spans(AxeLayout(inner.D, inner.R, inner.O)).get(MEMORY, 1)
    if swizzle.swizzle_len == 0 or divide(width, size)[1] == 0:
        return None
    return Reason(
        f"the inner layout is {width} wide, no multiple of the swizzle's window of {size} elements, "
        "so each tile would be swizzled differently"
    )


def _absolute(stride: Extent, layout: AxeLayout) -> Extent:
    if surely_less(-1, stride):
        return stride
    if surely_less(stride, 1):
        return stride * -1
    raise LayoutError(problems.SIGN_OPEN(stride, layout))
