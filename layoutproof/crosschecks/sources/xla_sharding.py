"""XLA's own shardings, in jaxlib: the texts that it takes and prints, and which device has which tile.

Ours is mode "xla". Of a mesh its form without one is compared too, and of tiles the device of each. A text that aborts
XLA is refused here. Wrong texts, each with one character changed, are asked of the versions whose readings of them mode
"xla" has; those that XLA prints although no device can be asked for are refused here, and are not counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.crosschecks.asking import Failed
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped
from layoutproof.crosschecks.texts import missing, neighbours, said, version
from layoutproof.layouts.sharding import NamedSharding, ShardedArray, TileSharding, parse
from layoutproof.layouts.sharding.mesh import to_tiles
from layoutproof.layouts.sharding.tiles import listed
from layoutproof.registry.read import read_layout

__all__ = ["compare", "missing", "random_cases", "version"]

_GARBAGE = (
    "is not a permutation",
    "tiles but <=[",
    "devices but device_ids",
    "dimensions and the reshape has",
    "devices are listed",
)
"""Refused here although XLA prints it: once a device is asked for, it aborts, reads memory that is not its own, or
takes another order than the one that is written."""


def random_cases(count: int, seed: int) -> Iterator[Case]:
    """So many arrays with a sharding; the same seed gives the same ones."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        rank = rng.randint(1, 3)
        tiles = [rng.choice((1, 2, 2, 3, 4)) for _ in range(rank)]
        # a single tile is {replicated}
        tiles[0] *= 2 if prod(tiles) == 1 else 1
        groups = rng.sample(("manual", "replicated", "unreduced"), rng.choice((0, 0, 1, 1, 2)))
        dims = [*tiles, *(rng.choice((2, 2, 3)) for _ in groups)]
        text = f"devices=[{_list(dims)}]{_devices(rng, dims)}"
        if groups == ["replicated"] and rng.random() < 0.5:
            text += " last_tile_dim_replicate"
        elif groups:
            text += f" last_tile_dims={{{', '.join(groups)}}}"
        sizes = [rng.choice((1, 3, 4, 8)) * n for n in tiles]
        text = f"[{_list(sizes)}] sharded {{{text}}}" if rng.random() < 0.7 else _named(rng, sizes)
        yield Case("layout", text, read_layout(text), f"seed {seed} number {number}")


def _named(rng: random.Random, dims: Sequence[int]) -> str:
    sizes = [rng.choice((2, 3, 4)) for _ in range(rng.randint(1, 3))]
    axes = [f"'{name}'" for name in "abc"[: len(sizes)]]
    mesh = ",".join(f"{axis}={size}" for axis, size in zip(axes, sizes, strict=True))
    rng.shuffle(axes)
    owned: list[list[str]] = [[] for _ in range(len(dims) + 1)]
    for axis in axes:
        owned[rng.randrange(len(owned))].append(axis)
    shown = ", ".join(f"{{{', '.join(own)}}}" for own in owned[:-1])
    return f"[{_list(dims)}] sharded {{mesh[{mesh}], [{shown}]}}"


def _devices(rng: random.Random, dims: Sequence[int]) -> str:
    count = prod(dims)
    if rng.random() < 0.4:
        return _list(rng.sample(range(count), count))
    order = rng.sample(range(len(dims)), len(dims))
    shape = rng.sample(list(dims), len(dims))
    return f"<=[{_list(shape)}]" + (f"T({_list(order)})" if len(dims) > 1 else "")


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The printed text, the form without a mesh, and the devices; or a refusal; of each case and its neighbours."""
    texts = []
    for case in cases:
        whole = _text(case)
        texts.append([whole, *(near for near in neighbours(whole) if _worth(near))] if whole else [])
    answers = said([("sharding", text) for mine in texts for text in mine])
    for mine in texts:
        outcomes = [_one(text, next(answers)) for text in mine]
        wrong = next((one for one in outcomes if isinstance(one, Disagree)), None)
        counted = sum(one.compared for one in outcomes if isinstance(one, Agree))
        yield wrong or (Agree(counted) if counted else Skipped("no sharding of XLA's"))


def _text(case: Case) -> str:
    sharding = case.parsed.sharding if isinstance(case.parsed, ShardedArray) else case.parsed
    return str(sharding) if isinstance(sharding, NamedSharding | TileSharding) else ""


def _worth(text: str) -> bool:
    """Whether it may be asked: a list of too many devices makes XLA write past an array, which spoils later answers."""
    try:
        parse(text)
    except LayoutError as error:
        return "devices are listed" not in error.problem
    return True


def _one(text: str, answer: Any) -> Outcome:
    theirs = None if isinstance(answer, Failed) else answer
    words = str(answer) if isinstance(answer, Failed) else "refused" if answer is None else str(answer["printed"])
    try:
        found = parse(text, "xla")
    except LayoutError as error:
        if theirs is None:
            return Agree()
        garbage = any(part in error.problem for part in _GARBAGE)
        return Agree(0) if garbage else Disagree("text", f"{text!r} is refused: {error.problem}", words)
    if theirs is None:
        return Disagree("text", f"{text!r} is {found}", words)
    if str(found) != theirs["printed"]:
        return Disagree("text", f"{text!r} is {found}", words)
    tiles = to_tiles(found) if isinstance(found, NamedSharding) else found
    if "tiles" in theirs and str(tiles) != theirs["tiles"]:
        return Disagree("form without a mesh", f"{text!r} is {tiles}", theirs["tiles"])
    if "devices" in theirs and isinstance(tiles, TileSharding) and tiles.tiles is not None:
        devices = list(listed(tiles.tiles))
        if devices != theirs["devices"]:
            at = next((k for k, (a, b) in enumerate(zip(devices, theirs["devices"], strict=False)) if a != b), 0)
            return Disagree("device of a tile", str(devices), str(theirs["devices"]), (at,))
        return Agree(1 + len(devices))
    return Agree()
