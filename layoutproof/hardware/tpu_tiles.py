"""The tile of a TPU: the one rule by which every part of this program rounds an array up. On any kind of number.

A vector register holds 8 rows (sublanes) of 128 columns (lanes) of 32 bits, and narrower elements share the 32 bits of
a row. So a tile has 128 columns; its rows are the smallest power of two that holds the extent, from the fewest that the
generation and the packing allow up to 8. Who asks differs only in where "the fewest" and "the most" are:

    XLA's default layouts     `hardware/tpu`            the chip's fewest; some widths grow to 8 rows of 32 bits
    windows in VMEM           `vmem_bytes`              the rows that share 32 bits
    slices of a pipeline      `hardware/tpu_pipelines`  the chip's fewest, by bytes
    copies from and to HBM    `grain`                   no tile at all, only what shares a row of 32 bits
Sources: each of these names its own; all were measured on libtpu 0.0.42.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.core.numbers import INTS, Numbers
from layoutproof.hardware.facts import AS_THE_RULE, Fact

LANES = 128
"""Extent of the minor axis of every tile, on every generation."""

SUBLANES = 8
"""Rows of 32 bits in one vector register: the tile's row count unless the elements are packed more tightly."""


FACTS = (
    Fact("lanes", str(LANES), "libtpu 0.0.52", "the tile of f32[1024,1024]"),
    Fact("sublanes", str(SUBLANES), "libtpu 0.0.52", "the tile of f32[1024,1024]"),
    Fact("window bytes", AS_THE_RULE, "libtpu 0.0.52", "what the compiler says that windows take"),
)
"""The facts behind the tiles."""


def packing_of(bits: int) -> int:
    """How many elements of `bits` bits share 32 bits; 1 for wider ones."""
    return max(1, 32 // bits)


def tile_extent(extent: Any, fewest: int, most: int, on: Numbers = INTS) -> Any:
    """The smallest power of two that holds `extent`, at least `fewest` and at most `most`, both powers of two.

    Where `fewest` is more than `most` it is `fewest`.

    >>> [tile_extent(n, 2, 8) for n in (1, 2, 3, 5, 8, 100)], tile_extent(3, 32, 8)
    ([2, 2, 4, 8, 8, 8], 32)
    """
    found: Any = max(fewest, most)
    smaller = most // 2
    while smaller >= fewest:
        found = on.select(on.less(smaller, extent), found, smaller)
        smaller //= 2
    return found


def round_up(value: Any, by: Any) -> Any:
    """The least multiple of `by` that is at least `value`.

    >>> round_up(9, 8), round_up(8, 8)
    (16, 8)
    """
    return (value + (by - 1)) // by * by


def grain(rank: int, bits: int) -> tuple[int, ...]:
    """The multiples to which a copy between HBM and VMEM rounds a block up: 128 columns, rows that share 32 bits.

    >>> grain(3, 16), grain(1, 8)
    ((1, 2, 128), (128,))
    """
    return (*(1,) * (rank - 2), packing_of(bits), LANES)[-rank:] if rank else ()


GRAIN = 1024
"""The multiple of bytes of VMEM of one window with all its buffers. Measured on libtpu 0.0.52."""


def vmem_bytes(dims: Sequence[Any], bits: int, on: Numbers = INTS, rows_of_words: int = 1) -> Any:
    """Bytes of an array of `dims` elements of `bits` bits in VMEM, padding included.

    Whole tiles of the last two dimensions, whose fewest rows are those that share 32 bits; one dimension alone is
    rounded up to 128 columns of 32 bits. Measured on libtpu 0.0.42.1 (the compiler's own figure for windows, facts in
    `hardware/tpu_memory`).

    rows_of_words: the fewest rows of 32 bits of the chip, 2 on v2 and v3.

    >>> vmem_bytes((512, 1024), 32), vmem_bytes((1, 512), 32), vmem_bytes((5, 512), 8), vmem_bytes((1024,), 16)
    (2097152, 2048, 4096, 2048)
    """
    packing = packing_of(bits) * rows_of_words
    if not dims:
        return packing * LANES * bits // 8
    if len(dims) == 1:
        return round_up(dims[0], LANES * packing) * bits // 8
    lead: Any = 1
    for extent in dims[:-2]:
        lead = lead * extent
    rows, columns = dims[-2], dims[-1]
    tile = tile_extent(rows, packing, SUBLANES, on)
    return lead * round_up(rows, tile) * round_up(columns, LANES) * bits // 8
