"""Random shardings: tile assignments with subgroups, meshes with parts of axes, and small arrays that they fit."""

from __future__ import annotations

import random
from math import prod

KINDS = ("manual", "replicated", "unreduced")


def factors(rng: random.Random, number: int, most: int = 4) -> list[int]:
    """A random ordered factorization, with some ones in it."""
    found: list[int] = []
    while number > 1:
        factor = rng.choice([k for k in range(2, number + 1) if number % k == 0])
        found.append(factor)
        number //= factor
    for _ in range(rng.randrange(3)):
        found.insert(rng.randint(0, len(found)), 1)
    rng.shuffle(found)
    while len(found) > most:
        found[0] *= found.pop()
    return found or [1]


def tiled(rng: random.Random, rank: int | None = None) -> str:
    """A V1 or V2 sharding; of `rank` data dimensions where that is given."""
    count = rng.choice([2, 3, 4, 6, 8, 8, 12, 16, 24, 36])
    dims = factors(rng, count)
    subgroups: list[str] = []
    if rng.random() < 0.6:
        subgroups = [rng.choice(KINDS) for _ in range(rng.randint(1, min(3, len(dims))))]
    if rank is not None:
        while len(dims) - len(subgroups) != rank:
            if len(dims) - len(subgroups) < rank:
                dims.insert(0, 1)
            else:
                first = dims.pop(0)
                dims[0] *= first
    if rng.random() < 0.3:
        devices = list(range(count))
        rng.shuffle(devices)
        assignment = ",".join(map(str, devices))
    else:
        reshape = factors(rng, count)
        perm = list(range(len(reshape)))
        rng.shuffle(perm)
        assignment = f"<=[{','.join(map(str, reshape))}]"
        assignment += f"T({','.join(map(str, perm))})" if len(reshape) > 1 else ""
    text = f"devices=[{','.join(map(str, dims))}]{assignment}"
    if subgroups == ["replicated"] and rng.random() < 0.5:
        text += " last_tile_dim_replicate"
    elif subgroups:
        text += f" last_tile_dims={{{', '.join(subgroups)}}}"
    if rng.random() < 0.1:
        text += f" {rng.choice(['shard_as', 'shard_like'])} {rng.randrange(9)}"
    return "{" + text + "}"


def named(rng: random.Random, rank: int | None = None) -> str:
    """A V3 sharding, mostly sound; of `rank` data dimensions where that is given."""
    sizes = [rng.choice([1, 2, 2, 3, 4, 4, 8, 12]) for _ in range(rng.randint(1, 3))]
    while prod(sizes) > 48:
        sizes[rng.randrange(len(sizes))] = 2
    names = "abc"[: len(sizes)]
    mesh = "mesh[" + ",".join(f"'{n}'={s}" for n, s in zip(names, sizes, strict=True)) + "]"
    kind = rng.random()
    if kind < 0.2 and prod(sizes) > 1:
        devices = list(range(prod(sizes)))
        rng.shuffle(devices)
        mesh += f", device_ids=({','.join(map(str, devices))})"
    elif kind < 0.4:
        reshape = factors(rng, prod(sizes))
        perm = list(range(len(reshape)))
        rng.shuffle(perm)
        transpose = f"T({','.join(map(str, perm))})" if len(reshape) > 1 else ""
        mesh += f", device_ids=([{','.join(map(str, reshape))}]{transpose})"
    axes = []
    for name, size in zip(names, sizes, strict=True):
        if rng.random() < 0.4 and size in (4, 8, 12):
            cut = rng.choice([k for k in range(2, size) if size % k == 0])
            axes += [f"'{name}':(1){cut}", f"'{name}':({cut}){size // cut}"]
        else:
            axes.append(f"'{name}'")
    rng.shuffle(axes)
    dims: list[list[str]] = [[] for _ in range(rng.randint(0, 3) if rank is None else rank)]
    groups: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for axis in axes:
        place = rng.randrange(len(dims) + 4)
        if place < len(dims):
            dims[place].append(axis)
        elif place < len(dims) + 3:
            groups[KINDS[place - len(dims)]].append(axis)
    shown = ["{" + ", ".join(d + (["?"] if rng.random() < 0.1 else [])) + "}" for d in dims]
    text = f"{{{mesh}, [{', '.join(shown)}]"
    for kind_, members in groups.items():
        if members:
            text += f", {kind_}={{{', '.join(sorted(members))}}}"
    return text + "}"


def spoiled(rng: random.Random, text: str) -> str:
    """The text with one character dropped, doubled or exchanged."""
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(["", text[at] * 2, rng.choice("0123 ,{}[]()'=<T?ab")]) + text[at + 1 :]
