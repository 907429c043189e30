"""Small random Axe layouts."""

from __future__ import annotations

from hypothesis import strategies as st

from layoutproof.layouts.axe import AxeLayout, Swizzle

STRIDES = (0, 1, 2, 3, 4, 5, 6, 8, 9, 12, -1, -2, -6)


@st.composite
def layouts(draw: st.DrawFn, most: int = 3, replicas: int = 2, swizzled: bool = False) -> AxeLayout:
    """Up to `most` digits of 1..4 and `replicas` iters of R on two axes, with offsets; perhaps a swizzle on m alone."""
    swizzle = draw(st.one_of(st.none(), swizzles())) if swizzled else None
    axes = st.just("m") if swizzle is not None else st.sampled_from(("m", "w"))
    strides = st.sampled_from([s for s in STRIDES if s >= 0 or swizzle is None])
    iters = st.tuples(st.integers(1, 4), strides, axes)
    shard = draw(st.lists(iters, min_size=1, max_size=most))
    more = draw(st.lists(st.tuples(st.integers(1, 3), strides, axes), max_size=replicas))
    low = 0 if swizzle is not None else -5
    offset = draw(st.dictionaries(axes, st.integers(low, 5), max_size=2))
    return AxeLayout(tuple(shard), tuple(more), offset, swizzle=swizzle)


@st.composite
def swizzles(draw: st.DrawFn) -> Swizzle:
    """A swizzle of small parameters."""
    distance = draw(st.integers(0, 3))
    return Swizzle(draw(st.integers(0, 2)), draw(st.integers(0, distance)), distance, draw(st.booleans()))
