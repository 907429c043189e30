"""Shardings: against a plain enumeration, and against the language of shardings for what a device holds."""

from __future__ import annotations

import itertools
import random
from math import prod

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.engine.cheapest import padded_bytes
from layoutproof.engine.defaults import tpu_default
from layoutproof.jobs.search.shardings import Arrays, best_shardings
from layoutproof.layouts import sharding, xla
from layoutproof.layouts.sharding.model import ShardedArray
from layoutproof.layouts.xla.shape import XlaLayout

EXTENTS = (1, 2, 6, 8, 12, 30, 64, 128, 256, 1024)


def shape(text: str) -> XlaLayout:
    read = xla.read(text)
    assert isinstance(read, XlaLayout)
    return read


def any_problem(rng: random.Random) -> tuple[dict[str, tuple[XlaLayout, tuple[str, ...]]], dict[str, int]]:
    mesh = {axis: rng.choice((1, 2, 3, 4)) for axis in "xyz"[: rng.randint(1, 2)]}
    sizes = {name: rng.choice(EXTENTS) for name in "abcd"}
    arrays = {}
    for k in range(rng.randint(1, 2)):
        own = tuple(rng.sample("abcd", rng.randint(1, 3)))
        names = tuple(name if rng.random() < 0.7 else "" for name in own)
        text = f"{rng.choice(('f32', 'bf16', 's8'))}[{','.join(str(sizes[n]) for n in own)}]"
        arrays[f"array{k}"] = (shape(text), names)
    return arrays, mesh


def plainly(arrays: Arrays, mesh: dict[str, int], target: str) -> list[tuple[int, bool, bool]]:
    """(bytes a device, even, whole) of every assignment: each axis to one dimension of each array, or to none."""
    slots = [list(itertools.product([None, *range(len(own))], repeat=len(mesh))) for _, own in arrays.values()]
    found = []
    for picked in itertools.product(*slots):
        cuts: dict[tuple[str, str], bool] = {}
        alike = True
        total, even, whole = 0, True, True
        for (read, own), axes in zip(arrays.values(), picked, strict=True):
            parts = [1] * len(own)
            for d, name in enumerate(own):
                for axis, at in zip(mesh, axes, strict=True):
                    if name:
                        alike = alike and cuts.setdefault((name, axis), at == d) == (at == d)
                    parts[d] *= mesh[axis] if at == d else 1
            held = [-(-int(n) // p) for n, p in zip(read.dims, parts, strict=True)]
            layout = tpu_default(f"{read.element_type}[{','.join(map(str, held))}]", target)
            total += padded_bytes(layout)
            even = even and all(int(n) % p == 0 for n, p in zip(read.dims, parts, strict=True))
            for size, d in zip(reversed(layout.tiles[0]), layout.minor_to_major, strict=False):
                whole = whole and (parts[d] == 1 or held[d] % size == 0)
        if alike:
            found.append((total, even, whole))
    return found


@pytest.mark.parametrize("seed", range(100))
def test_the_best_are_those_of_a_plain_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    arrays, mesh = any_problem(rng)
    target = rng.choice(("v3", "v5e", "7x"))
    every = plainly(arrays, mesh, target)
    good = sorted(size for size, even, whole in every if even and whole)
    memory = rng.choice((good[0], good[-1], good[0] - 1, 1 << 40))
    answer = best_shardings(arrays, mesh, memory, target, best=4)
    assert answer.covered == len(every)
    assert answer.least == good[0]
    found = [sum(shard.bytes for shard in shards.values()) for shards in answer.best]
    assert found == [size for size in good if size <= memory][:4]
    assert bool(answer.conflict) == (memory < good[0])
    if not answer.conflict:
        return
    # the conflict cannot hold, and without any one of its conditions it can
    needs = {"even shards": 1, "shards of whole tiles": 2}
    words = [needs[word] for word in answer.conflict[1:]]
    assert not any(row[0] <= memory and all(row[w] for w in words) for row in every)
    for word, enough in answer.enough:
        rest = [w for w in words if w != needs[word]]
        assert min(row[0] for row in every if all(row[w] for w in rest)) == enough <= memory


@pytest.mark.parametrize("seed", range(40))
def test_a_shard_is_what_the_language_of_shardings_says(seed: int) -> None:
    arrays, mesh = any_problem(random.Random(1000 + seed))
    for shards in best_shardings(arrays, mesh, 1 << 40, "v5e", best=3).best:
        for name, shard in shards.items():
            read = arrays[name][0]
            text = f"{read.element_type}[{','.join(map(str, read.dims))}]"
            array = sharding.read({"mesh": mesh, "spec": [list(axes) or None for axes in shard.spec], "shape": text})
            assert isinstance(array, ShardedArray)
            cut = array.index_map().place.shards  # type: ignore[attr-defined]
            held = {extents for _, extents in cut.holders()}
            assert held == {shard.layout.dims}
            assert len(cut.holders()) == prod(mesh.values())


def test_arrays_without_a_common_name_are_chosen_apart() -> None:
    arrays = {"a": (shape("bf16[8192,512]"), ("", "")), "b": (shape("f32[100,512]"), ("", ""))}
    answer = best_shardings(arrays, {"x": 4}, 1 << 40, "v5e", best=2)
    assert answer.covered == 9
    assert sum(shard.bytes for shard in answer.best[0].values()) == 8192 * 512 * 2 // 4 + 104 * 128 * 4


def test_what_cannot_be_asked() -> None:
    with pytest.raises(LayoutError, match="two dimensions n"):
        best_shardings({"a": (shape("f32[8,8]"), ("n", "n"))}, {"x": 2}, 1 << 30, "v5e")
    wide = {"a": (shape(f"f32[{','.join(['2'] * 8)}]"), ("",) * 8)}
    many = best_shardings(wide, {f"x{k}": 2 for k in range(8)}, 1 << 30, "v5e")
    assert "at most" in many.reason
    assert not many.best
