"""The layout that the TPU compiler gives an array by default, or for a given order of its dimensions.

Source: measured on the real compiler, libtpu 0.0.42.1 (built 2026-06-17). The rule below disagreed with it in 0 of
503,919 random queries (nine chip configurations, 28 element types, rank 0 to 6, extents 0 to 2048) and was re-checked
with libtpu 0.0.50.1 on 10,850 rows, 0 disagreements. In November 2026 it was asked again on libtpu 0.0.42.1: 2,760,000
random queries over 30 element types (1 bit to complex128), rank 0 to 12, up to 2**48 elements, 0 disagreements; only
that round asked enough about 1 and 2 bits to find their rule. Facts about those versions, no promise of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import index

from layoutproof.core.errors import LayoutError
from layoutproof.hardware import problems
from layoutproof.hardware.facts import AS_THE_RULE, Fact
from layoutproof.hardware.tpu_chips import Chip, chip_of
from layoutproof.hardware.tpu_tiles import LANES, SUBLANES, packing_of, round_up, tile_extent

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Element widths in bits that have a default layout; 64 and 128 (complex too) get the layout of 32."""

MOST_ELEMENTS = 1 << 48
"""Above it padded bytes may pass 2**63 - 1: the compiler's own arithmetic overflows, it answers oddly or aborts."""


FACTS = (
    Fact("default layouts", AS_THE_RULE, "libtpu 0.0.52", "2,760,000 random arrays of ranks 0 to 12, 30 types"),
    Fact("layouts of 6 bits", "refused", "libtpu 0.0.52", "f6e2m3fn and f6e3m2fn"),
)
"""The facts behind the rule for default layouts."""


@dataclass(frozen=True, slots=True)
class DefaultLayout:
    """A layout as XLA writes it, without dims and element type.

    minor_to_major: dimension numbers, fastest first.  tiles: tile levels, outermost first, none = not tiled.
    element_bits: bits each element takes, E(n); 0 = the type's own whole bytes.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]
    element_bits: int

    def __str__(self) -> str:
        tiles = "".join(f"({','.join(map(str, tile))})" for tile in self.tiles)
        bits = f"E({self.element_bits})" if self.element_bits else ""
        rest = (f"T{tiles}" if tiles else "") + bits
        return "{" + ",".join(map(str, self.minor_to_major)) + (f":{rest}" if rest else "") + "}"


def default_layout(dims: Sequence[int], bits: int, target: str) -> DefaultLayout:
    """The layout the TPU compiler picks for one array; for a sharded array, of its per-device shard.

    `dims` are extents in elements, dimension 0 first; `bits` is the width of one element: pred counts as 8, complex
    as its whole 64 or 128. The (minor, second-minor) pair is the one with the fewest padded elements among *all* pairs
    of dimensions, on a tie the largest minor, then the largest second-minor; the rest stays row-major. Padding is
    counted with 8 rows a tile at most, but a pair that fills its whole tiles goes before all others: that matters only
    to 1 and 2 bits, whose tiles have more rows. One row more can therefore flip the order:

    >>> print(default_layout((104, 100), 32, "v5e"), default_layout((105, 100), 32, "v5e"))
    {1,0:T(8,128)} {0,1:T(8,128)}
    >>> print(default_layout((4096, 11008), 16, "v5e"), default_layout((64, 256), 4, "7x"))
    {1,0:T(8,128)(2,1)} {1,0:T(64,128)(8,1)E(4)}

    Raises LayoutError on an unknown target, a width not in `WIDTHS`, a negative or symbolic extent, or more than
    2**48 elements.
    """
    shape = _numbers(dims)
    order = tuple(range(len(shape) - 1, -1, -1))
    if len(shape) < 2 or 0 in shape:
        return layout_in_order(shape, bits, target, order)
    chip = _chip(bits, target)
    fewest = [_small_rows(extent, bits, chip) for extent in shape]
    minor, second = _cheapest_pair(shape, fewest)
    return layout_in_order(shape, bits, target, (minor, second, *(d for d in order if d not in (minor, second))))


def row_major(dims: Sequence[int], bits: int, target: str) -> DefaultLayout:
    """The layout of an array in row-major order, as kernels get it. Parameters and errors as for `layout_in_order`."""
    return layout_in_order(dims, bits, target, tuple(reversed(range(len(dims)))))


def layout_in_order(dims: Sequence[int], bits: int, target: str, minor_to_major: Sequence[int]) -> DefaultLayout:
    """The layout the TPU compiler gives one array whose order of dimensions is settled: its tiles and stored width.

    Kernels get their operands in row-major order, whatever the default order is. Parameters and errors as for
    `default_layout`, of which this is the part that chooses the tile.

    >>> print(layout_in_order((105, 100), 32, "v5e", (1, 0)), layout_in_order((64, 256), 4, "v2", (1, 0)))
    {1,0:T(8,128)} {1,0:T(8,128)(4,1)}
    """
    chip = _chip(bits, target)
    stored = chip.stored(bits)
    shape, order = _numbers(dims), tuple(minor_to_major)
    element_bits = stored if stored < 8 else 0
    if 0 in shape:
        return DefaultLayout(order, (), element_bits)
    if prod(shape) > MOST_ELEMENTS:
        raise LayoutError(problems.TOO_LARGE(list(shape)))
    packing = packing_of(stored)
    fewest = chip.packed_rows * packing
    inner: tuple[tuple[int, ...], ...] = ((packing, 1),) if packing > 1 else ()
    if not shape:
        return DefaultLayout((), ((fewest * LANES,),), element_bits)
    if len(shape) == 1:
        most = max(SUBLANES, packing_of(bits))
        tile = (tile_extent(shape[0], fewest * LANES, most * LANES),)
        return DefaultLayout(order, (tile, (LANES,), *inner) if inner else (tile,), element_bits)
    return DefaultLayout(order, ((_rows(shape[order[1]], bits, chip), LANES), *inner), element_bits)


def tile_rows(extent: int, bits: int, target: str) -> int:
    """Rows of the tile that an array of rank 2 or more gets whose second-minor dimension has this extent.

    bits, target and errors as for `layout_in_order`, whose tile this is.

    >>> tile_rows(100, 16, "v5e"), tile_rows(3, 16, "v5e"), tile_rows(64, 8, "v5e"), tile_rows(65, 8, "v5e")
    (8, 4, 32, 8)
    """
    return _rows(extent, bits, _chip(bits, target))


def _chip(bits: int, target: str) -> Chip:
    """The generation; LayoutError for a width that has no default layout."""
    chip = chip_of(target)
    if bits not in WIDTHS:
        raise LayoutError(_bad_width(bits))
    return chip


def _rows(extent: int, bits: int, chip: Chip) -> int:
    large = SUBLANES * packing_of(chip.stored(bits))
    return large if bits in chip.large_tiles and extent % large == 0 else _small_rows(extent, bits, chip)


def _small_rows(extent: int, bits: int, chip: Chip) -> int:
    """Rows of the tile over a second-minor extent, the growth to 8 packed rows aside."""
    # a sub-byte type that is stored in whole bytes still asks for the row counts of its own width
    fewest = max(chip.packed_rows * packing_of(chip.stored(bits)), packing_of(bits))
    return int(tile_extent(extent, fewest, SUBLANES))


def _cheapest_pair(shape: Sequence[int], rows_of: Sequence[int]) -> tuple[int, int]:
    """The minor and second-minor dimension with the fewest padded elements, of rank >= 2 without a zero."""
    total = prod(shape)
    downwards = range(len(shape) - 1, -1, -1)
    padded_minor = [round_up(extent, LANES) for extent in shape]
    # measured: the compiler counts 8 rows at most, also where the tile it then takes has 16 or 32 (1 and 2 bits)
    padded_second = [round_up(extent, min(rows, SUBLANES)) for extent, rows in zip(shape, rows_of, strict=True)]
    best, cost = (0, 0), 0
    # from the last dimension down, and only a strictly lower cost wins: this is the tie rule
    for minor in downwards:
        for second in downwards:
            if second == minor:
                continue
            # no padding in the tile itself beats no padding in 8 of its rows
            if shape[minor] % LANES == 0 and shape[second] % rows_of[second] == 0:
                return minor, second
            padded = total // (shape[minor] * shape[second]) * padded_minor[minor] * padded_second[second]
            if padded < cost or cost == 0:
                best, cost = (minor, second), padded
    return best


def _numbers(dims: Sequence[int]) -> tuple[int, ...]:
    try:
        shape = tuple(map(index, dims))
    except TypeError:
        shown = ", ".join(map(str, dims))
        raise LayoutError(problems.NAMED_DEFAULT(shown)) from None
    if any(extent < 0 for extent in shape):
        raise LayoutError(problems.NEGATIVE_EXTENT(list(shape)))
    return shape


def _bad_width(bits: int) -> str:
    if bits == 6:
        # libtpu 0.0.42.1, f6e2m3fn and f6e3m2fn: "Invalid XLA PrimitiveType: 36 (F6E2M3FN)"
        return "no default layout for 6-bit elements: the TPU compiler (libtpu 0.0.42.1) refuses these types"
    return f"no default layout for {bits}-bit elements; known widths are {', '.join(map(str, WIDTHS))}"
