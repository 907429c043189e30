"""Bytes that a block takes in a TPU's vector memory, on any kind of number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.core.numbers import INTS, Numbers

LANES = 128
SUBLANES = 8


def vmem_bytes(dims: Sequence[Any], bits: int, on: Numbers = INTS) -> Any:
    """Bytes of an array of `dims` elements of `bits` bits in VMEM, padding included.

    Columns are rounded up to 128, rows to the smallest power of two that holds them, from the rows that share 32 bits
    up to 8; one dimension alone to 128 columns of 32 bits. Measured on libtpu 0.0.42.1 (the compiler's own
    figure for windows, facts in `hardware/tpu_memory`).

    >>> vmem_bytes((512, 1024), 32), vmem_bytes((1, 512), 32), vmem_bytes((5, 512), 8), vmem_bytes((1024,), 16)
    (2097152, 2048, 4096, 2048)
    """
    packing = max(1, 32 // bits)
    if not dims:
        return packing * LANES * bits // 8
    if len(dims) == 1:
        return _up(dims[0], LANES * packing) * bits // 8
    lead: Any = 1
    for extent in dims[:-2]:
        lead = lead * extent
    rows, columns = dims[-2], dims[-1]
    tile: Any = max(SUBLANES, packing)
    size = tile // 2
    while size >= packing:
        tile = on.select(on.less(size, rows), tile, size)
        size //= 2
    return lead * _up(rows, tile) * _up(columns, LANES) * bits // 8


def _up(value: Any, by: Any) -> Any:
    return (value + by - 1) // by * by
