"""Tiles of row-major operands, and the copies that operands with another default layout cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.hardware.tpu import DefaultLayout, default_layout, row_major
from layoutproof.hardware.tpu_tiles import round_up
from layoutproof.kernel.kernel import Operand


def tile_of(dims: Sequence[int], bits: int, target: str) -> tuple[int, ...]:
    """(rows, 128), or (elements,) of one dimension: the tile that Mosaic expects of an operand in row-major order.

    An operand with another default order is copied first (`relaid`); of narrow types XLA then sometimes, not always,
    picks tiles of 8 rows, so that a smaller block passes.
    """
    try:
        # an array of no elements is not tiled; its blocks are held against the smallest tile
        return row_major([extent or 1 for extent in dims], bits, target).tiles[0]
    except LayoutError as error:
        raise Unsupported(error.problem) from None


def relaid(dims: Sequence[int], bits: int, target: str) -> bool:
    """Whether an array's default layout has another order than row-major, so that a kernel gets a copy of it."""
    return _relaid(tuple(dims), bits, target)


@lru_cache(maxsize=1024)
def _relaid(dims: tuple[int, ...], bits: int, target: str) -> bool:
    # of one array it is asked for every size of its blocks
    try:
        return default_layout(dims, bits, target).minor_to_major != tuple(reversed(range(len(dims))))
    except LayoutError as error:
        raise Unsupported(error.problem) from None


def relayout(operand: Operand, target: str) -> tuple[int, str]:
    """(bytes, why) of the copy between the operand's default layout and the row-major one that kernels get; (0, "").

    Bytes are what the copy reads and writes, padding of both layouts included. Measured on libtpu 0.0.42.1: the copy
    stands before the kernel for inputs, after it for outputs.
    """
    if any(type(n) is not int for n in operand.dims):
        raise Unsupported(f"the default layout of [{', '.join(map(str, operand.dims))}] depends on its sizes")
    dims = [int(n) for n in operand.dims]
    if operand.memory not in ("vmem", "any", "hbm") or len(dims) < 2 or 0 in dims:
        return 0, ""
    bits = ELEMENT_BITS[operand.dtype]
    if not relaid(dims, bits, target):
        return 0, ""
    default = default_layout(dims, bits, target)
    read, write = _bytes(dims, default, bits), _bytes(dims, row_major(dims, bits, target), bits)
    when = "after" if operand.role == "out" else "before"
    text = f"{operand.dtype}[{','.join(map(str, dims))}]"
    return read + write, (
        f"{text} is laid out as {default} by default, and kernels get row-major arrays: {when} the kernel "
        f"{read} bytes are read and {write} written to change that"
    )


def _bytes(dims: Sequence[int], layout: DefaultLayout, bits: int) -> int:
    padded = list(dims)
    for tile, dimension in zip(reversed(layout.tiles[0] if layout.tiles else ()), layout.minor_to_major, strict=False):
        padded[dimension] = round_up(padded[dimension], tile)
    return -(-prod(padded) * (layout.element_bits or max(bits, 8)) // 8)
