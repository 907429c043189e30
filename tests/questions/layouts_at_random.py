"""Random XLA layouts for the engine's property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from layoutproof.layouts.xla.shape import COMBINE, XlaLayout


@st.composite
def xla_layouts(
    draw: st.DrawFn, element_type: str = "f32", most_bits: int = 0, most_rank: int = 4, most_tile_rank: int = 4
) -> XlaLayout:
    """Extents 0-9 (rarely 0), any order, 0-3 tile levels with stars, perhaps L.

    most_bits: if given, E is one of 0, 1, 2, 4 up to it.
    """
    rank = draw(st.integers(0, most_rank))
    extent = st.integers(1, 9) | st.integers(0, 9)
    dims = tuple(draw(st.lists(extent, min_size=rank, max_size=rank)))
    order = tuple(draw(st.permutations(range(rank))))
    tiles = []
    for _ in range(draw(st.integers(0, 3))):
        outer = draw(st.lists(st.integers(1, 5) | st.just(COMBINE), max_size=most_tile_rank - 1))
        tiles.append((*outer, draw(st.integers(1, 5))))
    align = draw(st.sampled_from((1, 1, 3, 8, 128)))
    bits = draw(st.sampled_from([b for b in (0, 1, 2, 4) if b <= most_bits]))
    return XlaLayout(element_type, dims, ("",) * rank, order, tuple(tiles), align, element_bits=bits)
