"""TPU generations as data, and the layout that the TPU compiler gives an array when nobody asks for another.

Source: measured on the real compiler, libtpu 0.0.42.1 (built 2026-06-17). The rule below disagreed with it in 0 of
503,919 random queries (nine chip configurations, 28 element types, rank 0 to 6, extents 0 to 2048) and was re-checked
with libtpu 0.0.50.1 on 10,850 rows, 0 disagreements. In November 2026 it was asked again on libtpu 0.0.42.1: 2,760,000
random queries over 30 element types (1 bit to complex128), rank 0 to 12, up to 2**48 elements, 0 disagreements; only
that round asked enough about 1 and 2 bits to find their rule. Facts about those versions, no promise of the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from types import MappingProxyType

from layoutproof.core.errors import LayoutError, unknown_name

LANES = 128
"""Extent of the minor axis of every tile, on every generation."""

SUBLANES = 8
"""Rows of 32 bits in one vector register: the tile's row count unless the elements are packed more tightly."""

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Element widths in bits that have a default layout; 64 and 128 (complex too) get the layout of 32."""

MOST_ELEMENTS = 1 << 48
"""Above it padded bytes may pass 2**63 - 1: the compiler's own arithmetic overflows, it answers oddly or aborts."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What one TPU generation does differently when it lays out an array.

    packed_rows: the fewest rows of a tile, counted in groups of elements that share 32 bits.
    sub_byte: elements narrower than 8 bits are stored packed; if not, each takes a byte.
    large_tiles: widths in bits whose tile grows to 8 packed rows of 32 bits where the extent divides evenly.
    """

    packed_rows: int
    sub_byte: bool
    large_tiles: frozenset[int]


_OLD = Generation(packed_rows=2, sub_byte=False, large_tiles=frozenset())
_NEW = Generation(packed_rows=1, sub_byte=True, large_tiles=frozenset({1, 2, 4, 8}))
_LITE = Generation(packed_rows=1, sub_byte=True, large_tiles=frozenset({1, 2, 4}))

GENERATIONS: Mapping[str, Generation] = MappingProxyType(
    {"v2": _OLD, "v3": _OLD, "v4": _NEW, "v4lite": _LITE, "v5e": _NEW, "v5p": _NEW, "v6e": _NEW, "7x": _NEW}
)
"""Every generation the compiler knows, by canonical name. Eight names, three kinds of behaviour."""

_ALIASES: Mapping[str, str] = MappingProxyType(
    {"v5": "v5p", "v5lite": "v5e", "v6lite": "v6e", "v4megacore": "v4", "v4i": "v4lite"}
)

OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {**_ALIASES, "v7x": "7x", "v7": "7x", "ironwood": "7x", "trillium": "v6e", "v5litepod": "v5e", "v6": "v6e"}
)
"""Names in use that are not accepted, with what they most likely mean: marketing names, Cloud's accelerator types."""

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of memory that a program may use on one device.

    hbm: the largest array accepted as a program's only argument, found to 1 MiB (the compiler's own text says
        0.01 GiB at most above it).
    vmem: what the windows of one Pallas kernel may take together, found to 16 KiB, when it raises its own limit.
    vmem_scoped: the same for a kernel that asks for no limit.
    """

    hbm: int
    vmem: int
    vmem_scoped: int


MEMORY: Mapping[str, Memory] = MappingProxyType(
    {
        "v2": Memory(7661 * MIB, 16 * MIB, 16 * MIB),
        "v3": Memory(15853 * MIB, 16 * MIB, 16 * MIB),
        "v4": Memory(15614 * MIB, 16 * MIB, 16 * MIB),
        "v4lite": Memory(7933 * MIB, 16 * MIB, 16 * MIB),
        "v5e": Memory(16125 * MIB, 128 * MIB, 16 * MIB),
        "v5p": Memory(98040 * MIB, 65472 * KIB, 16 * MIB),
        "v6e": Memory(31995 * MIB, 131008 * KIB, 32 * MIB),
        "7x": Memory(97019 * MIB, 64 * MIB, 32 * MIB),
    }
)
"""By canonical name; measured on libtpu 0.0.42.1, one chip. A v4 in megacore mode has 31484 MiB of HBM instead."""


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


def generation(name: str) -> str:
    """The canonical name of a TPU generation: v2 v3 v4 v4lite v5e v5p v6e 7x.

    Takes the compiler's names and device kinds too, in any case and spacing. `v4 megacore` is `v4`, because it lays
    out arrays the same. Raises LayoutError, listing the known names, on any other.

    >>> generation("v5e"), generation("TPU v5 lite"), generation("TPU v5"), generation("tpu7x")
    ('v5e', 'v5e', 'v5p', '7x')
    >>> generation("v7x")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: unknown TPU generation 'v7x'; did you mean '7x'? ...
    """
    if name in GENERATIONS:
        return name
    plain = "".join(str(name).lower().split()).replace("-", "").replace("_", "").removeprefix("tpu")
    plain = _ALIASES.get(plain, plain)
    if plain not in GENERATIONS:
        raise unknown_name("TPU generation", name, GENERATIONS, OTHER_NAMES)
    return plain


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
    chip, stored = _stored(bits, target)
    tile_rows = [_tile_rows(extent, bits, stored, chip) for extent in shape]
    minor, second = _cheapest_pair(shape, tile_rows)
    return layout_in_order(shape, bits, target, (minor, second, *(d for d in order if d not in (minor, second))))


def layout_in_order(dims: Sequence[int], bits: int, target: str, minor_to_major: Sequence[int]) -> DefaultLayout:
    """The layout the TPU compiler gives one array whose order of dimensions is settled: its tiles and stored width.

    Kernels get their operands in row-major order, whatever the default order is. Parameters and errors as for
    `default_layout`, of which this is the part that chooses the tile.

    >>> print(layout_in_order((105, 100), 32, "v5e", (1, 0)), layout_in_order((64, 256), 4, "v2", (1, 0)))
    {1,0:T(8,128)} {1,0:T(8,128)(4,1)}
    """
    chip, stored = _stored(bits, target)
    shape, order = _numbers(dims), tuple(minor_to_major)
    element_bits = stored if stored < 8 else 0
    if 0 in shape:
        return DefaultLayout(order, (), element_bits)
    if prod(shape) > MOST_ELEMENTS:
        raise LayoutError(f"{list(shape)} has more than 2**48 elements; no default layout is known above that")
    packing = _packing(stored)
    fewest = chip.packed_rows * packing
    if not shape:
        return DefaultLayout((), ((fewest * LANES,),), element_bits)
    if len(shape) == 1:
        most = max(SUBLANES, _packing(bits))
        tile: tuple[int, ...] = (_rows(shape[0], fewest * LANES, most * LANES),)
        inner: tuple[tuple[int, ...], ...] = ((LANES,), (packing, 1))
    else:
        rows, large = shape[order[1]], SUBLANES * packing
        whole = bits in chip.large_tiles and rows % large == 0
        tile = (large if whole else _tile_rows(rows, bits, stored, chip), LANES)
        inner = ((packing, 1),)
    return DefaultLayout(order, (tile, *inner) if packing > 1 else (tile,), element_bits)


def _stored(bits: int, target: str) -> tuple[Generation, int]:
    """The generation, and the bits that one element takes there."""
    chip = GENERATIONS[generation(target)]
    if bits not in WIDTHS:
        raise LayoutError(_bad_width(bits))
    return chip, bits if chip.sub_byte else max(bits, 8)


def _packing(bits: int) -> int:
    """How many elements share 32 bits; 1 for wider ones."""
    return max(1, 32 // bits)


def _tile_rows(extent: int, bits: int, stored: int, chip: Generation) -> int:
    """Rows of the tile over a second-minor extent, the growth to 8 packed rows aside."""
    # a sub-byte type that is stored in whole bytes still asks for the row counts of its own width
    return _rows(extent, max(chip.packed_rows * _packing(stored), _packing(bits)), SUBLANES)


def _cheapest_pair(shape: Sequence[int], tile_rows: Sequence[int]) -> tuple[int, int]:
    """The minor and second-minor dimension with the fewest padded elements, of rank >= 2 without a zero."""
    total = prod(shape)
    downwards = range(len(shape) - 1, -1, -1)
    padded_minor = [_round_up(extent, LANES) for extent in shape]
    # measured: the compiler counts 8 rows at most, also where the tile it then takes has 16 or 32 (1 and 2 bits)
    padded_second = [_round_up(extent, min(rows, SUBLANES)) for extent, rows in zip(shape, tile_rows, strict=True)]
    best, cost = (0, 0), 0
    # from the last dimension down, and only a strictly lower cost wins: this is the tie rule
    for minor in downwards:
        for second in downwards:
            if second == minor:
                continue
            # no padding in the tile itself beats no padding in 8 of its rows
            if shape[minor] % LANES == 0 and shape[second] % tile_rows[second] == 0:
                return minor, second
            padded = total // (shape[minor] * shape[second]) * padded_minor[minor] * padded_second[second]
            if padded < cost or cost == 0:
                best, cost = (minor, second), padded
    return best


def _rows(extent: int, fewest: int, most: int) -> int:
    power = 1 << (extent - 1).bit_length()
    return max(fewest, min(power, most))


def _round_up(extent: int, by: int) -> int:
    return -(-extent // by) * by


def _numbers(dims: Sequence[int]) -> tuple[int, ...]:
    try:
        shape = tuple(map(index, dims))
    except TypeError:
        shown = ", ".join(map(str, dims))
        raise LayoutError(f"[{shown}]: the default layout depends on divisibility; give numbers") from None
    if any(extent < 0 for extent in shape):
        raise LayoutError(f"{list(shape)}: an extent is never negative")
    return shape


def _bad_width(bits: int) -> str:
    if bits == 6:
        # libtpu 0.0.42.1, f6e2m3fn and f6e3m2fn: "Invalid XLA PrimitiveType: 36 (F6E2M3FN)"
        return "no default layout for 6-bit elements: the TPU compiler (libtpu 0.0.42.1) refuses these types"
    return f"no default layout for {bits}-bit elements; known widths are {', '.join(map(str, WIDTHS))}"
