"""Shardings: against a plain enumeration, and against the language of shardings for what a device holds."""

from __future__ import annotations

import itertools
import json
import random
from math import prod
from typing import Any

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.layouts import sharding, xla
from layoutproof.layouts.sharding.array import ShardedArray
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.registry.defaults import tpu_default
from layoutproof.searching.arrays_file import answer, read
from layoutproof.searching.shardings import RULE, RULE_OF_HELD, Arrays, Contraction, best_shardings
from layoutproof.specs.positions import read_yaml
from tests.said import stretch

pytestmark = pytest.mark.slow

EXTENTS = (1, 2, 6, 7, 8, 12, 30, 64, 100, 128, 256, 1000, 1024)
RESTRICTIONS = ((), ("even",), ("whole",), ("even", "whole"))
WORDS = {"even": "even shards", "whole": "shards of whole tiles"}


def shape(text: str) -> XlaLayout:
    read = xla.read(text)
    assert isinstance(read, XlaLayout)
    return read


def any_problem(rng: random.Random) -> tuple[dict[str, tuple[XlaLayout, tuple[str, ...]]], dict[str, int]]:
    mesh = {axis: rng.choice((1, 2, 3, 4)) for axis in "xyz"[: rng.choice((1, 2, 2, 3))]}
    sizes = {name: rng.choice(EXTENTS) for name in "abcd"}
    arrays = {}
    for k in range(rng.randint(1, 2 if len(mesh) < 3 else 1)):
        own = tuple(rng.sample("abcd", rng.randint(1, 3)))
        names = tuple(name if rng.random() < 0.7 else "" for name in own)
        text = f"{rng.choice(('f32', 'bf16', 's8'))}[{','.join(str(sizes[n]) for n in own)}]"
        arrays[f"array{k}"] = (shape(text), names)
    return arrays, mesh


def held_bytes(element_type: str, held: list[int], target: str) -> tuple[int, Any]:
    """Bytes of one shard in the compiler's own layout, and the tile size of each tiled dimension."""
    layout = tpu_default(f"{element_type}[{','.join(map(str, held))}]", target)
    tile = dict(zip(layout.minor_to_major, reversed(layout.tiles[0]), strict=False))
    padded = [-(-extent // tile.get(d, 1)) * tile.get(d, 1) for d, extent in enumerate(held)]
    return prod(padded) * {"f32": 4, "bf16": 2, "s8": 1}[element_type], tile


def plainly(arrays: Arrays, mesh: dict[str, int], target: str) -> list[dict[str, int]]:
    """bytes a device, even, whole of every assignment: each axis to one dimension of each array, or to none."""
    slots = [list(itertools.product([None, *range(len(own))], repeat=len(mesh))) for _, own in arrays.values()]
    found = []
    for picked in itertools.product(*slots):
        cuts: dict[tuple[str, str], bool] = {}
        row = {"bytes": 0, "even": True, "whole": True}
        alike = True
        for (given, own), axes in zip(arrays.values(), picked, strict=True):
            parts = [1] * len(own)
            for d, name in enumerate(own):
                for axis, at in zip(mesh, axes, strict=True):
                    if name:
                        alike = alike and cuts.setdefault((name, axis), at == d) == (at == d)
                    parts[d] *= mesh[axis] if at == d else 1
            held = [-(-int(n) // p) for n, p in zip(given.dims, parts, strict=True)]
            size, tile = held_bytes(given.element_type, held, target)
            row["bytes"] += size
            row["even"] &= all(int(n) % p == 0 for n, p in zip(given.dims, parts, strict=True))
            row["whole"] &= all(parts[d] == 1 or held[d] % size == 0 for d, size in tile.items())
        if alike:
            found.append(row)
    return found


@pytest.mark.parametrize("seed", range(300))
def test_the_best_are_those_of_a_plain_enumeration(seed: int) -> None:
    """Through the file, as a user states it, whatever is required of the shards; the answer says what was."""
    rng = random.Random(seed)
    arrays, mesh = any_problem(rng)
    target = rng.choice(("v3", "v5e", "7x"))
    require = rng.choice((None, None, *RESTRICTIONS))
    every = plainly(arrays, mesh, target)
    kept = ("even",) if require is None else require
    good = sorted(row["bytes"] for row in every if all(row[word] for word in kept))
    memory = rng.choice((good[0], good[-1], good[0] - 1, 1 << 40))
    shapes = {}
    sizes: dict[str, int] = {}
    for name, (given, own) in arrays.items():
        dims = [n or extent for n, extent in zip(own, given.dims, strict=True)]
        sizes |= {n: int(extent) for n, extent in zip(own, given.dims, strict=True) if n}
        shapes[name] = f"{given.element_type}[{','.join(map(str, dims))}]"
    document = {"target": target, "sizes": sizes, "mesh": mesh, "memory": memory, "shardings": shapes}
    document |= {} if require is None else {"require": list(require)}
    answered = answer(read(read_yaml(json.dumps(document))), best=4)
    rows: Any = answered.as_json()["shardings"]  # type: ignore[typeddict-item]
    found = [sum(shard["bytes"] for shard in one.values()) for one in rows["best"]]
    assert found == [size for size in good if size <= memory][:4]
    assert answered.verdict.exit_code == (1 if memory < good[0] else 0)
    assert rows["require"] == rows["certificate"]["require"] == list(kept)
    assert rows["certificate"]["covered"] == len(every)
    assert rows["least_bytes"] == good[0]
    assert rows["least_bytes_unrestricted"] == min(row["bytes"] for row in every)
    assert all(WORDS[word] in answered.text() for word in kept)
    assert "restriction" in answered.text()
    assert bool(rows["infeasible"]) == (memory < good[0])
    # these cannot hold, and without any one of its conditions it can
    needed = [word for word in WORDS if WORDS[word] in rows["infeasible"]]
    assert not needed or not any(row["bytes"] <= memory and all(row[w] for w in needed) for row in every)
    for said, enough in rows["enough"].items():
        rest = [word for word in needed if WORDS[word] != said]
        assert min(row["bytes"] for row in every if all(row[w] for w in rest)) == enough <= memory


def plainly_weighed(
    arrays: Arrays, products: list[Contraction], mesh: dict[str, int], price: int, target: str
) -> list[tuple[int, int]]:
    """(cost, bytes held) of every even assignment of each axis to names: held + price x sent, all of it by hand."""
    names = list(dict.fromkeys(n for _, own in arrays.values() for n in own))
    sets = [frozenset(s) for k in range(len(names) + 1) for s in itertools.combinations(names, k)]
    exclusive = [set(own) for _, own in arrays.values()]
    exclusive += [{n for a in (*p.inputs, p.output) for n in arrays[a][1]} for p in products]
    allowed = [s for s in sets if all(len(s & together) <= 1 for together in exclusive)]
    found = []
    for picked in itertools.product(allowed, repeat=len(mesh)):
        held = {}
        even = True
        for array, (given, own) in arrays.items():
            parts = [prod(mesh[a] for a, cut in zip(mesh, picked, strict=True) if n in cut) for n in own]
            even &= all(int(e) % p == 0 for e, p in zip(given.dims, parts, strict=True))
            rows = [-(-int(e) // p) for e, p in zip(given.dims, parts, strict=True)]
            held[array] = held_bytes(given.element_type, rows, target)[0]
        sent = 0
        for p in products:
            summed = {n for a in p.inputs for n in arrays[a][1]} - set(arrays[p.output][1])
            devices = prod(mesh[a] for a, cut in zip(mesh, picked, strict=True) if cut & summed)
            sent += 2 * held[p.output] * (devices - 1) // devices
        if even:
            found.append((sum(held.values()) + price * sent, sum(held.values())))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_the_cheapest_with_what_is_sent_are_those_of_a_plain_enumeration(seed: int) -> None:
    """Products of random matrices, chained or not, with a limit of memory that the cheapest may not keep."""
    rng = random.Random(seed)
    mesh = {axis: rng.choice((2, 3, 4)) for axis in "xy"[: rng.randint(1, 2)]}
    sizes = {name: rng.choice(EXTENTS) for name in "abcd"}
    texts = {"p": "ab", "q": "bc", "r": "ac"} | ({"s": "cd", "t": "ad"} if rng.random() < 0.6 else {"u": "d"})
    arrays = {
        name: (shape(f"{rng.choice(('f32', 'bf16'))}[{','.join(str(sizes[n]) for n in own)}]"), tuple(own))
        for name, own in texts.items()
    }
    products = [Contraction(("p", "q"), "r")] + ([Contraction(("r", "s"), "t")] if "s" in texts else [])
    price = rng.choice((0, 1, 7))
    every = sorted(plainly_weighed(arrays, products, mesh, price, "v5e"))
    memory = rng.choice((1 << 40, rng.choice(every)[1], min(size for _, size in every)))
    found = best_shardings(arrays, mesh, memory, "v5e", best=3, products=products, price=price)
    assert [one.cost for one in found.best] == [cost for cost, size in every if size <= memory][:3]
    assert all(one.bytes <= memory for one in found.best)
    assert found.least == min(size for _, size in every)


def plainly_held(
    arrays: Arrays, products: list[Contraction], mesh: dict[str, int], price: int, fsdp: list[str]
) -> list[tuple[int, int]]:
    """(cost, bytes held) of every even assignment where arrays of `fsdp` may be held in more parts: by hand, on v5e.

    Every axis of every array is free, and what no product allows is left out afterwards.
    """
    slots = [(array, axis) for array in arrays for axis in mesh]
    found = []
    for picked in itertools.product(*([None, *arrays[array][1]] for array, _ in slots)):
        cut = dict(zip(slots, picked, strict=True))
        if not all(agree(arrays, products, axis, cut) for axis in mesh):
            continue
        free = [slot for slot in slots if slot[0] in fsdp and cut[slot] is None]
        for more in itertools.product(*([None, *arrays[array][1]] for array, _ in free)):
            extra = dict(zip(free, more, strict=True))
            at_rest = {slot: extra.get(slot) or cut[slot] for slot in slots}
            sent = 0
            for p in products:
                for array in p.inputs:
                    n = prod(mesh[a] for a in mesh if extra.get((array, a)) is not None)
                    sent += size_of(array, arrays, mesh, cut)[0] * (n - 1) // n
                summed = {n for a in p.inputs for n in arrays[a][1]} - set(arrays[p.output][1])
                over = [a for a in mesh if any(cut[b, a] in summed for b in p.inputs)]
                first = [a for a in over if extra.get((p.output, a)) is not None]
                n, m = prod(mesh[a] for a in first), prod(mesh[a] for a in over if a not in first)
                sent += size_of(p.output, arrays, mesh, cut)[0] * (n - 1) // n
                part = {**cut, **{(p.output, a): extra[p.output, a] for a in first}}
                sent += 2 * size_of(p.output, arrays, mesh, part)[0] * (m - 1) // m
            held = [size_of(array, arrays, mesh, at_rest) for array in arrays]
            if all(even for _, even in held):
                total = sum(n for n, _ in held)
                found.append((total + price * sent, total))
    return found


def size_of(
    array: str, arrays: Arrays, mesh: dict[str, int], cut: dict[tuple[str, str], str | None]
) -> tuple[int, bool]:
    """Bytes of a shard where axes cut these names, and whether they divide them."""
    given, own = arrays[array]
    parts = [prod(mesh[a] for a in mesh if cut.get((array, a)) == n) for n in own]
    rows = [-(-int(e) // p) for e, p in zip(given.dims, parts, strict=True)]
    return held_bytes(given.element_type, rows, "v5e")[0], all(
        int(e) % p == 0 for e, p in zip(given.dims, parts, strict=True)
    )


def agree(arrays: Arrays, products: list[Contraction], axis: str, cut: dict[tuple[str, str], str | None]) -> bool:
    """Whether arrays that share a name are cut alike by an axis, and it cuts one name of each product."""
    names = {cut[array, axis] for array in arrays} - {None}
    alike = all(cut[array, axis] in names & set(own) or not names & set(own) for array, (_, own) in arrays.items())
    together = [{n for a in (*p.inputs, p.output) for n in arrays[a][1]} for p in products]
    return alike and all(len(names & each) <= 1 for each in [*together, *(set(own) for _, own in arrays.values())])


@pytest.mark.parametrize("seed", range(40))
def test_arrays_that_are_fully_sharded_are_those_of_a_plain_enumeration(seed: int) -> None:
    """A product and its backward pass, with weights and gradients that may be held in more parts."""
    rng = random.Random(seed)
    mesh = {axis: rng.choice((2, 3, 4)) for axis in "xy"[: rng.randint(1, 2)]}
    sizes = {name: rng.choice((6, 8, 12, 64, 128, 1024)) for name in "abc"}
    backward = len(mesh) == 1 or seed % 4 == 0
    texts = {"p": "ab", "q": "bc", "r": "ac"} | ({"dq": "bc"} if backward else {})
    arrays = {
        name: (shape(f"{rng.choice(('f32', 'bf16'))}[{','.join(str(sizes[n]) for n in own)}]"), tuple(own))
        for name, own in texts.items()
    }
    products = [Contraction(("p", "q"), "r"), *([Contraction(("p", "r"), "dq")] if backward else [])]
    fsdp = rng.sample(["q", "dq"] if backward else ["q", "r"], rng.randint(1, 2))
    price = rng.choice((0, 1, 7))
    every = sorted(plainly_held(arrays, products, mesh, price, fsdp))
    memory = rng.choice((1 << 40, rng.choice(every)[1], min(size for _, size in every)))
    found = best_shardings(arrays, mesh, memory, "v5e", best=1000, products=products, price=price, fsdp=fsdp)
    assert [one.cost for one in found.best] == [cost for cost, size in every if size <= memory][:1000]
    few = best_shardings(arrays, mesh, memory, "v5e", best=3, products=products, price=price, fsdp=fsdp)
    assert [one.cost for one in few.best] == [one.cost for one in found.best[:3]]
    assert all(one.bytes <= memory for one in found.best)
    assert found.least == min(size for _, size in every)


def test_sums_are_scattered_before_they_are_added_up_over_other_axes() -> None:
    """Both axes cut what is summed over, and one of them what is held: the other adds up a fourth."""
    texts = {"p": ("ab", "f32[64,128]"), "q": ("bc", "f32[128,256]"), "r": ("ac", "f32[64,256]")}
    arrays = {name: (shape(text), tuple(own)) for name, (own, text) in texts.items()}
    mesh, products = {"x": 2, "y": 4}, [Contraction(("p", "q"), "r")]
    found = best_shardings(arrays, mesh, 1 << 40, "v5e", best=1000, products=products, fsdp=["r"])
    assert [one.cost for one in found.best] == [
        cost for cost, _ in sorted(plainly_held(arrays, products, mesh, 1, ["r"]))
    ]
    both = [one.exchanges for one in found.best if [each.axes for each in one.exchanges] == [("y",), ("x",)]]
    assert {(one.kind, one.bytes) for one, _ in both} == {("reduce-scatter", 64 * 256 * 4 * 3 // 4)}
    # a fourth of the rows, or of the columns: 64 in tiles of 128
    assert {(one.kind, one.bytes) for _, one in both} == {("all-reduce", 16 * 256 * 4), ("all-reduce", 64 * 128 * 4)}


FULLY_SHARDED = """
target: v5e
sizes: {batch: 65536, model: 8192, hidden: 8192}
mesh: {data: 8}
memory: 400MiB
shardings: {x: "bf16[batch,model]", w: "bf16[model,hidden]", h: "bf16[batch,hidden]", dw: "f32[model,hidden]"}
products: ["x, w -> h", "h, w -> x", "x, h -> dw"]
fsdp: [w, dw]
"""


def test_a_layer_that_does_not_fit_is_fully_sharded() -> None:
    """ZeRO's third stage: one axis cuts the batch and what is held of the weight, which is gathered; its gradient is
    scattered.
    """
    answered = answer(read(read_yaml(FULLY_SHARDED)), best=1)
    rows: Any = answered.as_json()["shardings"]  # type: ignore[typeddict-item]
    first, weight = rows["best"][0], 8192 * 8192 * 2
    assert (first["x"]["spec"], first["h"]["spec"]) == ([["data"], None], [["data"], None])
    assert ["data"] in first["w"]["spec"]
    assert ["data"] in first["dw"]["spec"]
    said = {(one["kind"], one["array"], one["product"]): one["bytes"] for one in rows["exchanges"][0]}
    assert said == {
        ("all-gather", "w", "x, w -> h"): weight * 7 // 8,
        ("all-gather", "w", "h, w -> x"): weight * 7 // 8,
        ("reduce-scatter", "dw", "x, h -> dw"): 2 * weight * 7 // 8,
    }
    assert rows["all_reduces"] == [[]]
    assert "all-gather of w for x, w -> h over data  117440512 bytes" in answered.text()
    assert "reduce-scatter of x, h -> dw over data  234881024 bytes" in answered.text()
    assert rows["rule"] == RULE + RULE_OF_HELD


def test_without_it_the_gradient_is_added_up_on_every_device() -> None:
    more = FULLY_SHARDED.replace("fsdp: [w, dw]\n", "").replace("400MiB", "4GiB")
    rows: Any = answer(read(read_yaml(more)), best=1).as_json()["shardings"]  # type: ignore[typeddict-item]
    assert {one["kind"] for one in rows["exchanges"][0]} == {"all-reduce"}
    assert rows["least_bytes"] > 400 << 20
    with pytest.raises(LayoutError, match=stretch("searching.fsdp_in_no_product", name="z")) as caught:
        answer(read(read_yaml(FULLY_SHARDED.replace("[w, dw]", "[w, z]"))))
    assert caught.value.line is not None


def test_many_weights_are_held_each_as_is_best() -> None:
    """Of a layer with seven weights no combination is left out, and they are not gone through one by one."""
    weights = {"wq": "eh", "wk": "eh", "wv": "eh", "wo": "he", "up": "ef", "gate": "ef", "down": "fe"}
    texts = {"x": "te", "q": "th", "y": "te", "h": "tf", **weights}
    sizes = {"t": 8192, "e": 4096, "h": 4096, "f": 14336}
    arrays = {n: (shape(f"bf16[{','.join(str(sizes[d]) for d in own)}]"), tuple(own)) for n, own in texts.items()}
    products = [
        *(Contraction(("x", w), "q") for w in ("wq", "wk", "wv")), Contraction(("q", "wo"), "y"),
        *(Contraction(("x", w), "h") for w in ("up", "gate")), Contraction(("h", "down"), "y"),
    ]  # fmt: skip
    mesh = {"data": 4, "tensor": 4}
    found = best_shardings(arrays, mesh, 1 << 34, "v6e", products=products, fsdp=list(weights), price=0)
    assert not found.reason
    # both axes free of every weight: 9 ways to hold each
    assert found.covered > 9**7
    # where nothing is paid for what is sent, both axes cut each weight
    shards = found.best[0].shards
    assert [shards[n].bytes for n in weights] == [2 * prod(sizes[d] for d in own) // 16 for own in weights.values()]


FEED_FORWARD = """
target: v5e
sizes: {tokens: 4096, model: 8192, hidden: 28672}
mesh: {tp: 8}
shardings:
  x: bf16[tokens,model]
  up: bf16[model,hidden]
  h: bf16[tokens,hidden]
  down: bf16[hidden,model]
  y: bf16[tokens,model]
"""
BIASES = ("", "  b: bf16[hidden]\n", "  c: bf16[model]\n", "  b: bf16[hidden]\n  c: bf16[model]\n", "  c: f32[model]\n")


@pytest.mark.parametrize("bias", BIASES)
def test_a_feed_forward_block_is_cut_as_megatron_does(bias: str) -> None:
    """Shoeybi and others, Megatron-LM, arXiv 1909.08053, section 3: the first matrix by columns, the second by rows."""
    weighed = answer(read(read_yaml(FEED_FORWARD + bias + 'products: ["x, up -> h", "h, down -> y"]\n')), best=1)
    rows: Any = weighed.as_json()["shardings"]  # type: ignore[typeddict-item]
    first = rows["best"][0]
    assert (first["up"]["spec"], first["down"]["spec"]) == ([None, ["tp"]], [["tp"], None])
    assert (first["x"]["spec"], first["y"]["spec"], first["h"]["spec"]) == ([None, None], [None, None], [None, ["tp"]])
    assert rows["all_reduces"] == [[{"product": "h, down -> y", "axes": ["tp"], "bytes": 2 * 4096 * 8192 * 2 * 7 // 8}]]
    assert "P(None, 'tp')" in weighed.text()
    assert "P('tp', None)" in weighed.text()
    assert "all-reduce of h, down -> y over tp  117440512 bytes" in weighed.text()
    # without products nothing is said to be sent, and the answer says that
    unweighed = answer(read(read_yaml(FEED_FORWARD + bias)), best=1)
    assert "not counted" in unweighed.text()
    assert "not counted" not in weighed.text()


@pytest.mark.parametrize(
    ("product", "what"),
    [
        ("x, up h", stretch("searching.product_form")),
        ("x, up -> z", "z is not among the arrays"),
        ("x, up -> down", None),
        ("x -> h", stretch("searching.product_dimension", dimension="hidden", output="h")),
        ("x, up, w -> h", stretch("searching.product_without_names", name="w")),
    ],
)
def test_products_that_are_none(product: str, what: str | None) -> None:
    text = FEED_FORWARD + f"  w: bf16[8,model]\nproducts: '{product}'\n"
    if what is None:
        assert answer(read(read_yaml(text))).verdict.exit_code == 0
        return
    with pytest.raises(LayoutError, match=what) as caught:
        answer(read(read_yaml(text)))
    assert caught.value.line is not None


def test_a_cut_that_leaves_a_tile_partly_empty_may_be_the_best() -> None:
    arrays = {"w": (shape("f32[100,50]"), ("", ""))}
    even = best_shardings(arrays, {"x": 4}, 1 << 40, "v5e")
    # 25 rows of 50, in tiles of 8 x 128; the whole array turned around takes 56 x 128
    assert even.least == 32 * 128 * 4
    assert even.best[0].shards["w"].spec == (("x",), ())
    whole = best_shardings(arrays, {"x": 4}, 1 << 40, "v5e", require=("even", "whole"))
    assert (whole.least, whole.best[0].shards["w"].spec) == (56 * 128 * 4, ((), ()))
    # 50 columns over 4 devices are 13, the last shard padded
    every = best_shardings(arrays, {"x": 4}, 1 << 40, "v5e", require=())
    assert (every.least, every.best[0].shards["w"].spec) == (16 * 128 * 4, ((), ("x",)))
    assert even.least_of_all == whole.least_of_all == every.least


@pytest.mark.parametrize("seed", range(40))
def test_a_shard_is_what_the_language_of_shardings_says(seed: int) -> None:
    arrays, mesh = any_problem(random.Random(1000 + seed))
    for one in best_shardings(arrays, mesh, 1 << 40, "v5e", best=3).best:
        for name, shard in one.shards.items():
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
    found = best_shardings(arrays, {"x": 4}, 1 << 40, "v5e", best=2)
    assert found.covered == 9
    assert found.best[0].bytes == 8192 * 512 * 2 // 4 + 104 * 128 * 4


def test_what_cannot_be_asked() -> None:
    with pytest.raises(LayoutError, match="two dimensions n"):
        best_shardings({"a": (shape("f32[8,8]"), ("n", "n"))}, {"x": 2}, 1 << 30, "v5e")
    wide = {"a": (shape(f"f32[{','.join(['2'] * 8)}]"), ("",) * 8)}
    many = best_shardings(wide, {f"x{k}": 2 for k in range(8)}, 1 << 30, "v5e")
    assert "at most" in many.reason
    assert not many.best
