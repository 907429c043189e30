"""XLA's tiling rule written a second time, on NumPy arrays, so that tests need not trust the package about it.

From docs/tiled_layout.md: physical extents most major first; each tile level cuts the last dimensions it covers into
tile numbers and positions within a tile, padding by rounding up; memory is the row-major box that remains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

_SHAPE = re.compile(
    r"(?P<type>[a-z]+(?P<bits>\d*)\w*)\[(?P<dims>[\d,]*)\](?:\{(?P<order>[\d,]*)(?::(?P<props>.*))?\})?"
)


@dataclass(frozen=True)
class Plain:
    """An array of constant size: element type, stored bits per element, extents, order and tiles as XLA prints them."""

    element_type: str
    bits: int
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def read(text: str) -> Plain:
    """The array that `text` writes; AssertionError for what is not modelled here (`*`, L, S, M, size symbols)."""
    found = _SHAPE.fullmatch(text)
    assert found, f"{text} is no plain XLA shape"
    dims = numbers(found["dims"])
    order = tuple(range(len(dims) - 1, -1, -1)) if found["order"] is None else numbers(found["order"])
    props = re.fullmatch(r"(?:T(?P<tiles>(?:\([\d,]+\))+))?(?:E\((?P<bits>\d+)\))?", found["props"] or "")
    assert props, f"{text} says more than tiles and E"
    tiles = tuple(numbers(tile) for tile in (props["tiles"] or "").strip("()").split(")(") if tile)
    return Plain(found["type"], int(props["bits"] or max(8, int(found["bits"] or 8))), dims, order, tiles)


def cut(extents: tuple[int, ...], index: list[Any], tile: tuple[int, ...]) -> tuple[tuple[int, ...], list[Any]]:
    """Extents and index after one tile level."""
    missing = max(0, len(tile) - len(extents))
    extents, index = (1,) * missing + extents, [0] * missing + index
    kept = len(extents) - len(tile)
    counts = tuple(-(-extent // size) for extent, size in zip(extents[kept:], tile, strict=True))
    outer = [entry // size for entry, size in zip(index[kept:], tile, strict=True)]
    inner = [entry % size for entry, size in zip(index[kept:], tile, strict=True)]
    return extents[:kept] + counts + tile, index[:kept] + outer + inner


def offset(array: Plain, index: Any) -> tuple[Any, int]:
    """Where `index` (ints or arrays, one per dimension) is, in elements; and how many elements are allotted."""
    order = tuple(reversed(array.minor_to_major))
    extents, place = tuple(array.dims[d] for d in order), [index[d] for d in order]
    for tile in array.tiles:
        extents, place = cut(extents, place, tile)
    total: Any = 0
    for extent, entry in zip(extents, place, strict=True):
        total = total * extent + entry
    return total, prod(extents)


def offsets(array: Plain) -> np.ndarray[Any, Any]:
    """The offset of every element, in the array's logical shape."""
    grid = np.indices(array.dims, dtype=np.int64) if array.dims else ()
    return np.broadcast_to(np.asarray(offset(array, tuple(grid))[0], dtype=np.int64), array.dims)


def allotted(array: Plain) -> int:
    """Bytes with all tile levels counted."""
    return -(-offset(array, (0,) * len(array.dims))[1] * array.bits // 8)


def first_difference(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """The smallest index (dimension 0 first) at which two tables of one shape differ."""
    different = np.argwhere(left != right)
    return tuple(int(entry) for entry in different[0]) if len(different) else None
