"""XLA shapes with layouts as frozen data: exactly the fields the language has.

Source: openxla/xla at 183fa00cb5 (2026-08-22), `xla/layout.h`, `xla/xla_data.proto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.element_types import ELEMENT_BITS as ELEMENT_BITS
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import Extent

COMBINE = -1
"""A `*` in a tile: this dimension is merged into the next more minor one before tiling (docs/tiled_layout.md)."""


@dataclass(frozen=True, slots=True)
class XlaLayout:
    """One array shape with its layout, e.g. `bf16[4096,11008]{1,0:T(8,128)(2,1)}`.

    dims: extents, dimension 0 first; an int, or a `Size` where the text has a size symbol.
    dynamic: one entry per dimension: "" static, "<=" bounded dynamic (the extent is the bound), "?" unbounded
        (the extent is then the size symbol `d0`, `d1`, ...).
    minor_to_major: dimension numbers, fastest first.
    tiles: tile levels, outermost first; each a tuple of tile sizes, most major first, `COMBINE` for `*`.
    tail_alignment: L(n), in elements.  element_bits: E(n), 0 = natural.  memory_space: S(n).
    index_type, pointer_type: #(t), *(t), leftovers of sparse layouts.
    splits: SC(dim:i,j..)(..), dim counts *physical* dimensions, most major 0.  metadata_bytes: M(n).
    buffer: written `b(...)`.
    """

    element_type: str
    dims: tuple[Extent, ...]
    dynamic: tuple[str, ...]
    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    tail_alignment: int = 1
    index_type: str = ""
    pointer_type: str = ""
    element_bits: int = 0
    memory_space: int = 0
    splits: tuple[tuple[int, tuple[int, ...]], ...] = ()
    metadata_bytes: int = 0
    buffer: bool = False

    def __str__(self) -> str:
        return _text(self)

    def index_map(self) -> IndexMap:
        """Logical index -> physical index; LayoutError for what is written but has no defined meaning."""
        from layoutproof.layouts.xla.place import index_map

        return index_map(self)

    def steps(self, index: Sequence[int]) -> list[tuple[str, tuple[int, ...], tuple[Extent, ...]]]:
        """How one index becomes a physical index, tile level by tile level; see `place.steps`."""
        from layoutproof.layouts.xla.place import steps

        return steps(self, index)


@dataclass(frozen=True, slots=True)
class XlaTuple:
    """A tuple of shapes, e.g. `(f32[2]{0}, token[])`; `elements` in order."""

    elements: tuple[XlaShape, ...]

    def __str__(self) -> str:
        return _text(self)

    def index_map(self) -> IndexMap:
        """Always a LayoutError: a tuple has no single map, its elements have."""
        raise LayoutError(f"a tuple of {len(self.elements)} shapes has no layout of its own; ask about one element")


@dataclass(frozen=True, slots=True)
class XlaOpaque:
    """A value without elements: `token[]` or `opaque[]`."""

    element_type: str

    def __str__(self) -> str:
        return _text(self)

    def index_map(self) -> IndexMap:
        """Always a LayoutError: there are no elements to place."""
        raise LayoutError(f"{self.element_type}[] has no elements, so there is nothing to place")


XlaShape = XlaLayout | XlaTuple | XlaOpaque


def tile_text(tile: Sequence[int]) -> str:
    """A tile as XLA writes it.

    >>> tile_text((COMBINE, 128))
    '(*,128)'
    """
    return f"({','.join('*' if size == COMBINE else str(size) for size in tile)})"


def _text(shape: XlaShape) -> str:
    from layoutproof.layouts.xla.text import to_text

    return to_text(shape)
