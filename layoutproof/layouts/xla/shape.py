"""XLA shapes with layouts as frozen data: exactly the fields the language has, the text XLA prints, the index map.

Source: openxla/xla at 183fa00cb5 (2026-08-22), `xla/layout.h`, `xla/xla_data.proto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from layoutproof.core.element_types import ELEMENT_BITS as ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.shown import Shown
from layoutproof.core.size import Extent, ceil_div, product
from layoutproof.core.space import Space, axis_names, dimension_names
from layoutproof.layouts.xla import problems
from layoutproof.layouts.xla.tiling import COMBINE as COMBINE
from layoutproof.layouts.xla.tiling import padded, tile_text, tilings


@dataclass(frozen=True, slots=True)
class XlaLayout(Shown):
    """One array shape with its layout, e.g. `bf16[4096,11008]{1,0:T(8,128)(2,1)}`.

    dims: extents, dimension 0 first; an int, or a `Size` where the text has a size symbol.
    dynamic: one entry per dimension: "" static, "<=" bounded dynamic (the extent is the bound), "?" unbounded
        (the extent is then the size symbol `d0`, `d1`, ...).
    minor_to_major: dimension numbers, fastest first.
    tiles: tile levels, outermost first; each a tuple of tile sizes, most major first, `COMBINE` for `*`; a `Size`
        where the text has a size symbol, for a tile of any size.
    tail_alignment: L(n), in elements.  element_bits: E(n), 0 = natural.  memory_space: S(n).
    index_type, pointer_type: #(t), *(t), leftovers of sparse layouts.
    splits: SC(dim:i,j..)(..), dim counts *physical* dimensions, most major 0.  metadata_bytes: M(n).
    buffer: written `b(...)`.
    """

    element_type: str
    dims: tuple[Extent, ...]
    dynamic: tuple[str, ...]
    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[Extent, ...], ...] = ()
    tail_alignment: int = 1
    index_type: str = ""
    pointer_type: str = ""
    element_bits: int = 0
    memory_space: int = 0
    splits: tuple[tuple[int, tuple[int, ...]], ...] = ()
    metadata_bytes: int = 0
    buffer: bool = False

    def __str__(self) -> str:
        return to_text(self)

    def index_map(self) -> IndexMap:
        """Logical index -> physical index; LayoutError for what is written but has no defined meaning."""
        return _index_map(self)

    def steps(self, index: Sequence[int]) -> list[tuple[str, tuple[int, ...], tuple[Extent, ...]]]:
        """How one index becomes a physical index: (what was done, the index after it, the extents it lies in).

        >>> from layoutproof.layouts.xla.text import parse
        >>> [(done, at) for done, at, _ in parse("f32[3,5]{1,0:T(2,2)}").steps((2, 3))]
        [('permute {1,0}', (2, 3)), ('tile (2,2)', (1, 1, 0, 1))]
        """
        order = physical_order(self)
        levels = tilings(len(order), self.tiles)
        extents = levels.extents([self.dims[d] for d in order])
        found = levels.numbers([index[d] for d in order], extents, INTS)
        words = [
            f"permute {{{','.join(map(str, self.minor_to_major))}}}",
            *[f"tile {tile_text(t)}" for t in self.tiles],
        ]
        return [
            (done, tuple([found[k] for k in standing]), tuple([extents[k] for k in standing]))
            for done, standing in zip(words, levels.after, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class XlaTuple:
    """A tuple of shapes, e.g. `(f32[2]{0}, token[])`; `elements` in order."""

    elements: tuple[XlaShape, ...]

    def __str__(self) -> str:
        return to_text(self)

    def index_map(self) -> IndexMap:
        """Always a LayoutError: a tuple has no single map, its elements have."""
        raise LayoutError(problems.TUPLE(len(self.elements)))


@dataclass(frozen=True, slots=True)
class XlaOpaque:
    """A value without elements: `token[]` or `opaque[]`."""

    element_type: str

    def __str__(self) -> str:
        return to_text(self)

    def index_map(self) -> IndexMap:
        """Always a LayoutError: there are no elements to place."""
        raise LayoutError(problems.NO_ELEMENTS(self.element_type))


XlaShape = XlaLayout | XlaTuple | XlaOpaque


def to_text(shape: XlaShape) -> str:
    """The text XLA prints for `shape`; size symbols as `str` prints them. `parse` reads it back to an equal shape.

    >>> from layoutproof.layouts.xla.text import parse
    >>> to_text(parse("(f32[3, N], token[])"))
    '(f32[3,N]{1,0}, token[])'
    """
    if isinstance(shape, XlaOpaque):
        return f"{shape.element_type}[]"
    if isinstance(shape, XlaTuple):
        parts = (
            f"/*index={number}*/{to_text(element)}" if number and number % 5 == 0 else to_text(element)
            for number, element in enumerate(shape.elements)
        )
        return f"({', '.join(parts)})"
    layout = _layout_text(shape)
    text = dims_text(shape) + layout
    return f"b({text})" if shape.buffer else text


def _layout_text(shape: XlaLayout) -> str:
    parts: list[str] = []
    if shape.tiles:
        parts.append(_tiles_text(shape.tiles))
    if shape.tail_alignment != 1:
        parts.append(f"L({shape.tail_alignment})")
    if shape.index_type:
        parts.append(f"#({shape.index_type})")
    if shape.pointer_type:
        parts.append(f"*({shape.pointer_type})")
    if shape.element_bits:
        parts.append(f"E({shape.element_bits})")
    if shape.memory_space:
        parts.append(f"S({shape.memory_space})")
    if shape.splits:
        parts.append("SC")
        parts += [f"({dimension}:{_join(indices)})" for dimension, indices in shape.splits]
    if shape.metadata_bytes > 0:
        parts.append(f"M({shape.metadata_bytes})")
    if not parts and not shape.dims:
        return ""
    return f"{{{_join(shape.minor_to_major)}{':' if parts else ''}{''.join(parts)}}}"


@lru_cache(maxsize=1024)
def _tiles_text(tiles: tuple[tuple[Extent, ...], ...]) -> str:
    # a program has thousands of layouts and a dozen tilings
    return "T" + "".join(map(tile_text, tiles))


@lru_cache(maxsize=1024)
def _join(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def dims_text(shape: XlaLayout) -> str:
    """Element type and dimensions without the layout, e.g. `f32[3,<=5]`."""
    if not any(shape.dynamic):
        return f"{shape.element_type}[{','.join(map(str, shape.dims))}]"
    parts = ["?" if how == "?" else f"{how}{extent}" for extent, how in zip(shape.dims, shape.dynamic, strict=True)]
    return f"{shape.element_type}[{','.join(parts)}]"


def wrong_order(shape: XlaLayout, valid: bool) -> str:
    """The mistake in the length of minor_to_major and, if it must be `valid`, its entries; "" for none."""
    order, rank = shape.minor_to_major, len(shape.dims)
    if len(order) == rank and (not valid or _names_each(order, rank)):
        return ""
    written = "minor_to_major {" + shorten(",".join(map(str, order)), 60) + "}"
    array = shorten(dims_text(shape), 60)
    if len(order) != rank:
        entries = "1 entry" if len(order) == 1 else f"{len(order)} entries"
        return f"{written} has {entries} but {array} has {rank} dimension{'' if rank == 1 else 's'}"
    seen: set[int] = set()
    for dimension in order:
        if not 0 <= dimension < rank:
            return f"{written} names dimension {dimension} but the dimensions of {array} are 0 to {rank - 1}"
        if dimension in seen:
            return f"{written} names dimension {dimension} twice: it must name each of 0 to {rank - 1} once"
        seen.add(dimension)
    return ""


def physical_order(layout: XlaLayout) -> tuple[int, ...]:
    """Dimension numbers, most major first: the reverse of minor_to_major.

    Raises LayoutError when minor_to_major is not a permutation (XLA's parser accepts that, its verifier does not).
    """
    if not _names_each(layout.minor_to_major, len(layout.dims)):
        raise LayoutError(wrong_order(layout, valid=True))
    return layout.minor_to_major[::-1]


@lru_cache(maxsize=1024)
def _names_each(order: tuple[int, ...], rank: int) -> bool:
    return sorted(order) == list(range(rank))


@lru_cache(maxsize=1024)
def _index_map(layout: XlaLayout) -> IndexMap:
    """The map of one array: logical index -> physical index, tile level by tile level.

    Raises LayoutError for what XLA's text can say but has no definition: split configurations, sparse leftovers,
    a tile without meaning, a minor_to_major that is no permutation.
    """
    if layout.splits:
        raise LayoutError(problems.SPLIT_MEMORY())
    if layout.index_type or layout.pointer_type:
        raise LayoutError(problems.SPARSE_LEFTOVER())
    order = physical_order(layout)
    dims, rank = layout.dims, len(order)
    levels = tilings(rank, layout.tiles)
    every = levels.extents([dims[d] for d in order])
    standing = levels.after[-1]
    extents: tuple[Extent, ...] = tuple([every[k] for k in standing])

    def place(index: Index, replica: Index, on: Numbers) -> Index:
        found = levels.numbers([index[d] for d in order], every, on)
        return tuple([found[k] for k in standing])

    natural = max(8, ELEMENT_BITS[layout.element_type])
    align = layout.tail_alignment
    memory = Memory(
        layout.element_bits or natural,
        natural,
        ceil_div(product(extents), align) * align,
        layout.memory_space,
        layout.metadata_bytes,
        cache(lambda: padded(dims, order, levels, extents)),
    )
    return IndexMap(
        Space(dimension_names(rank), dims),
        Space(axis_names(len(extents)), extents),
        place,
        memory=memory,
    )
