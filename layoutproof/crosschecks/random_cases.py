"""Cases at random, from a seed: layouts of every language, kernels. The same seed gives the same cases for ever."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.registry.read import read_layout


def random_cases(count: int, seed: int) -> Iterator[Case]:
    """So many cases, the languages in turn.

    >>> [case.kind for case in random_cases(2, 0)]
    ['layout', 'layout']
    """
    kinds = list(GENERATORS)
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        text = GENERATORS[kinds[number % len(kinds)]](rng)
        yield Case("layout", text, read_layout(text), f"seed {seed} number {number}")


def xla(rng: random.Random) -> str:
    """XLA's tiled layouts: extents 1 to 9, any order, up to two levels of tiles."""
    rank = rng.randint(0, 4)
    dims = [rng.randint(1, 9) for _ in range(rank)]
    order = rng.sample(range(rank), rank)
    levels = rng.randint(0, 2)
    tiles = [[rng.choice((1, 2, 3, 4, 8)) for _ in range(rng.randint(1, max(1, min(rank, 3))))] for _ in range(levels)]
    shape = f"{rng.choice(('f32', 'bf16', 's8', 'pred', 'f64'))}[{_list(dims)}]"
    tiling = ":T" + "".join(f"({_list(tile)})" for tile in tiles) if tiles else ""
    return f"{shape}{{{_list(order)}{tiling}}}" if rank or tiles else shape


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


GENERATORS: Mapping[str, Callable[[random.Random], str]] = {"xla": xla}
"""One text of each language."""
