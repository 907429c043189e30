"""Arrays and kernels at random of the sizes at which a TPU compiler's rules change: about 8, 128 and 1024."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from math import prod
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.crosschecks.case import Case
from layoutproof.registry.read import read_layout

EDGES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 512, 513, 1024)
MOST = 1 << 14
"""Elements of one array."""
TYPES = tuple(name for name in ELEMENT_BITS if not name.startswith("f6"))
"""All that the compiler has layouts for."""
LEVELS = (((8, 128),), ((2, 128),), ((8, 128), (2, 1)), ((8, 128), (4, 1)), ((32, 128), (4, 1)), ((1, 128),))
"""Tiles that programs have."""


def arrays(count: int, seed: int) -> Iterator[Case]:
    """So many arrays; the same seed gives the same ones."""
    for number in range(count):
        text = array(random.Random(f"{seed} {number}"))
        yield Case("layout", text, read_layout(text), f"seed {seed} number {number}")


def kernels(count: int, seed: int) -> Iterator[Case]:
    """So many kernels; the same seed gives the same ones."""
    for number in range(count):
        mapping = kernel(random.Random(f"{seed} {number}"))
        yield Case("kernel", json.dumps(mapping), read_layout(mapping), f"seed {seed} number {number}")


def array(rng: random.Random) -> str:
    """An array of any element type and order, with the tiles of programs, tiles at random, or none."""
    dims = extents(rng, rng.choice((0, 1, 2, 2, 2, 3, 3, 4, 5)))
    order = rng.sample(range(len(dims)), len(dims))
    if rng.random() < 0.5:
        order = sorted(order, reverse=True)
    tiles: tuple[tuple[int, ...], ...] = ()
    if dims and rng.random() < 0.8:
        tiles = rng.choice(LEVELS) if len(dims) > 1 and rng.random() < 0.5 else _tiles(rng, len(dims))
    element = rng.choice(TYPES)
    bits = ELEMENT_BITS[element]
    stored = f"E({bits})" if bits < 8 and rng.random() < 0.7 else ""
    rest = ("T" + "".join(f"({','.join(map(str, tile))})" for tile in tiles) if tiles else "") + stored
    layout = f"{{{','.join(map(str, order))}{':' + rest if rest else ''}}}" if dims or rest else ""
    return f"{element}[{','.join(map(str, dims))}]{layout}"


def extents(rng: random.Random, rank: int) -> list[int]:
    """Extents about the edges, with not too many elements together."""
    dims = [rng.choice(EDGES) if rng.random() < 0.7 else rng.randint(1, 300) for _ in range(rank)]
    while prod(dims) > MOST:
        largest = dims.index(max(dims))
        dims[largest] = rng.choice([n for n in EDGES if n < dims[largest]])
    return dims


def _tiles(rng: random.Random, rank: int) -> tuple[tuple[int, ...], ...]:
    sizes = (1, 2, 3, 4, 8, 16, 128, 256)
    return tuple(
        tuple(rng.choice(sizes) for _ in range(rng.randint(1, min(rank, 3) + 1))) for _ in range(rng.choice((1, 1, 2)))
    )


KERNEL_TYPES = ("f32", "f32", "bf16", "bf16", "s8", "s8", "s32", "s16", "u8", "s4", "f8e5m2", "f8e4m3fn", "pred")


def kernel(rng: random.Random) -> dict[str, object]:
    """A kernel of one or two operands: blocks that JAX takes more often than not, some Element, some squeezed."""
    rank = rng.choice((1, 2, 2, 2, 3))
    grid = {f"g{k}": rng.choice((1, 2, 3, 4, 8)) for k in range(rank)}
    operands = [_operand(rng, list(grid)) for _ in range(rng.choice((1, 1, 2)))]
    found: dict[str, Any] = {"name": "k", "grid": grid, "outputs": operands[:1]}
    if operands[1:]:
        found["inputs"] = operands[1:]
    if rng.random() < 0.1:
        found["vmem_limit"] = rng.choice((1 << 16, 1 << 20, 1 << 24, 1 << 26))
    if rng.random() < 0.1:
        found["scratch"] = [{"array": f"f32[{rng.choice((8, 20, 64))},128]", "memory": "vmem"}]
    return {"kernel": found}


def _operand(rng: random.Random, names: list[str]) -> dict[str, object]:
    rank = rng.choice((1, 2, 2, 2, 3))
    dims = [rng.choice((3, 8, 12, 16, 32, 60, 64, 96, 128, 256, 300, 1024)) for _ in range(rank)]
    block: list[Any] = [rng.choice((n, 8, 16, 32, 64, 2, None)) for n in dims]
    block[-1] = rng.choice((dims[-1], dims[-1], 128, 256, 512, 100))
    windows = rng.random() < 0.15
    index = []
    for k, size in enumerate(block):
        name = rng.choice((names[k % len(names)], names[0], "0"))
        if windows:
            step = rng.choice((1, 4, 8, 16, 128)) if k < rank - 1 else 128
            name = rng.choice((f"{name}*{step}", f"{name}*{step}+{step}", f"{step}-{name}*{step}", "0"))
            block[k] = f"Element({size})" if size else None
        index.append(name)
    return {
        "array": f"{rng.choice(KERNEL_TYPES)}[{','.join(map(str, dims))}]",
        "block": block,
        "index": f"({', '.join(names)}) -> ({', '.join(index)}{',' if rank == 1 else ''})",
    }
