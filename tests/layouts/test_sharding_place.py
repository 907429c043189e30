"""Where a sharding puts each element: the definition by enumeration, uneven shards, replicas, proofs and figures."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.layouts.sharding import read
from tests.layouts import shardings_at_random as at_random

pytestmark = pytest.mark.slow

Places = dict[tuple[int, ...], set[tuple[int, ...]]]


def ints(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"-?\d+", text)]


def by_definition_of_tiles(text: str, shape: tuple[int, ...]) -> Places:
    """{element: {(device, index in the shard)}} of a V1 or V2 sharding, straight from its text with NumPy."""
    dims = ints(text[text.index("[") : text.index("]")])
    rest = text[text.index("]") + 1 :]
    if rest.startswith("<="):
        reshape = ints(rest[: rest.index("]")])
        perm = ints(rest[rest.index("T(") : rest.index(")")]) if "T(" in rest else [0]
        devices = np.arange(prod(reshape)).reshape(reshape).transpose(perm).reshape(dims)
    else:
        devices = np.array(ints(rest.split(" ")[0])).reshape(dims)
    blocks = [-(-d // n) for d, n in zip(shape, dims, strict=False)]
    found: Places = {}
    for index in itertools.product(*map(range, shape)):
        tile = tuple(i // max(1, c) for i, c in zip(index, blocks, strict=True))
        within = tuple(i % max(1, c) for i, c in zip(index, blocks, strict=True))
        found[index] = {(int(device), *within) for device in devices[tile].flat}
    return found


def by_definition_of_mesh(text: str, shape: tuple[int, ...]) -> Places:
    """The same of a V3 sharding: a device owns an element if its mesh coordinates are the element's tile numbers."""
    ids_form, dims_form = r"(?:, device_ids=\((?P<ids>[^ ]*)\))?", r"\[(?P<dims>.*?)\](?:[,}]|$)"
    head = re.match(rf"\{{mesh\[(?P<axes>[^\]]*)\]{ids_form}, {dims_form}", text)
    assert head is not None, text
    names = re.findall(r"'(\w)'", head["axes"])
    sizes = ints(head["axes"])
    ids = head["ids"]
    mesh = np.arange(prod(sizes)).reshape(sizes)
    if ids and ids.startswith("["):
        reshape = ints(ids[: ids.index("]")])
        perm = ints(ids[ids.index("T(") :]) if "T(" in ids else [0]
        mesh = np.arange(prod(sizes)).reshape(reshape).transpose(perm).reshape(sizes)
    elif ids:
        mesh = np.array(ints(ids)).reshape(sizes)
    dims = re.findall(r"\{([^}]*)\}", head["dims"])
    found: Places = {index: set() for index in itertools.product(*map(range, shape))}
    for point in itertools.product(*map(range, sizes)):
        numbers, counts = [], []
        for dim in dims:
            number = count = 1
            number = 0
            for name, pre, size in re.findall(r"'(\w)'(?::\((\d+)\)(\d+))?", dim):
                axis = names.index(name)
                extent = int(size) if size else sizes[axis]
                inner = sizes[axis] // (int(pre or 1) * extent)
                number = number * extent + point[axis] // inner % extent
                count *= extent
            numbers.append(number)
            counts.append(count)
        blocks = [-(-d // n) for d, n in zip(shape, counts, strict=True)]
        ranges = [range(min(t * c, d), min((t + 1) * c, d)) for t, c, d in zip(numbers, blocks, shape, strict=True)]
        for index in itertools.product(*ranges):
            within = tuple(i - t * c for i, t, c in zip(index, numbers, blocks, strict=True))
            found[index].add((int(mesh[point]), *within))
    return found


def places(layout: Any) -> Places:
    """The same from the map of a layout."""
    m = layout.index_map()
    replicas = list(itertools.product(*map(range, m.replicas.extents)))
    return {
        index: {m.at(index, replica) for replica in replicas}
        for index in itertools.product(*map(range, m.domain.extents))
    }


@given(st.randoms(use_true_random=False))
def test_tile_assignments_place_by_definition(rng: random.Random) -> None:
    """V1 and V2, even and uneven, with subgroups: each element's set of (device, index in the shard)."""
    shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(1, 3)))
    text = at_random.tiled(rng, len(shape))
    count = len(ints(text.split("]")[1].split(" ")[0])) if "<=" not in text else None
    devices = f" on {count} devices" if count else f" on {prod(ints(text[: text.index(']')]))} devices"
    found = read(f"[{','.join(map(str, shape))}] sharded {text}{devices}")
    assert places(found) == by_definition_of_tiles(text, shape)


@given(st.randoms(use_true_random=False))
def test_mesh_shardings_place_by_definition(rng: random.Random) -> None:
    """V3 with parts of axes, device orders, replicated, manual and unreduced axes."""
    shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(1, 3)))
    text = at_random.named(rng, len(shape))
    try:
        found = read(f"[{','.join(map(str, shape))}] sharded {text}")
    except lp.LayoutError as error:
        # the generator does not avoid these two
        assert "left out" in error.problem or "written as one" in error.problem, text  # noqa: PT017
        return
    assert places(found) == by_definition_of_mesh(text, shape)


@given(st.randoms(use_true_random=False))
def test_owned_and_even_agree_with_counting(rng: random.Random) -> None:
    """`owned` is proved of every sharding; `even` exactly when all devices hold equally much; figures are counts."""
    shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 2)))
    text = at_random.tiled(rng, len(shape))
    try:
        layout = read(f"[{','.join(map(str, shape))}] sharded {text}")
    except lp.LayoutError as error:
        assert "over how many devices" in error.problem  # noqa: PT017
        return
    held = Counter(place[0] for found in places(layout).values() for place in found)
    owned = lp.ask("owned", layout)
    assert owned.verdict is lp.Verdict.PROVED
    devices = owned.figures["devices"]
    assert owned.figures["idle_devices"] == devices - len(held)
    assert {len(found) for found in places(layout).values()} == {owned.figures["replicas"]}
    even = lp.ask("even", layout)
    room = prod(even.figures["shard"])
    assert (even.verdict is lp.Verdict.PROVED) == (len(held) == devices and set(held.values()) == {room})
    assert even.figures["padded_elements"] == devices * room
    assert even.figures["elements"] == sum(held.values())
    by_device = even.figures["padding_elements_by_device"]
    assert len(by_device) == devices
    assert by_device == {device: room - held[int(device)] for device in by_device}
    if even.verdict is lp.Verdict.REFUTED:
        ((dimension,), (tile,)) = even.counterexample["dimension"], even.counterexample["tile"]
        row = even.figures["per_dimension"][dimension]
        sizes = [
            min((t + 1) * row["shard"], row["extent"]) - min(t * row["shard"], row["extent"])
            for t in range(row["tiles"])
        ]
        assert tile == next(t for t, size in enumerate(sizes) if size < row["shard"])
        assert sizes[-1] == row["last"]


@pytest.mark.parametrize(
    ("extent", "tiles", "sizes"),
    [(5, 4, [2, 2, 1, 0]), (2, 4, [1, 1, 0, 0]), (10, 4, [3, 3, 3, 1]), (8, 4, [2, 2, 2, 2]), (9, 4, [3, 3, 3, 0])],
)
def test_blocks_are_not_balanced(extent: int, tiles: int, sizes: list[int]) -> None:
    """XLA's uneven blocks: all ceil(d/n) but the last ones, which may be empty."""
    found = places(read(f"[{extent}] sharded {{devices=[{tiles}]<=[{tiles}]}}"))
    counts = Counter(device for ((device, _),) in found.values())
    assert [counts[device] for device in range(tiles)] == sizes


def test_one_map_from_index_to_device_and_offset() -> None:
    """The layout of the shape is that of the padded shard: offsets are those of the shard's own layout."""
    layout = read("f32[64,100]{1,0:T(8,128)} sharded {devices=[2,3]<=[3,2]T(1,0)}")
    shard = lp.read_layout("f32[32,34]{1,0:T(8,128)}")
    assert layout.index_map().range.names == ("device", "offset")
    for index in [(0, 0), (31, 33), (32, 34), (63, 99), (40, 70)]:
        tile, within = (index[0] // 32, index[1] // 34), (index[0] % 32, index[1] % 34)
        device = np.arange(6).reshape(3, 2).T[tile]
        assert lp.locate(layout, index) == [{"device": device, "offset": lp.locate(shard, within)[0]["offset"]}]
    assert lp.ask("even", layout).figures["bytes_per_device"] == 32 * 128 * 4
    assert lp.ask("even", layout).figures["bytes"] == 6 * 32 * 128 * 4


@pytest.mark.parametrize(
    "text",
    [
        "f32[16,12]{1,0:T(4,4)} sharded {devices=[2,2]<=[4]}",
        "[12,10] sharded {devices=[3,2,2]<=[2,6]T(1,0) last_tile_dim_replicate}",
        "[5,7] sharded {devices=[2,2,2]6,1,0,3,2,7,5,4 last_tile_dim_replicate}",
        "[6] sharded {devices=[4]<=[2,2]T(1,0)}",
    ],
)
@pytest.mark.parametrize("engine", ["digits", "isl", "smt", "brute"])
def test_engines_agree(text: str, engine: str) -> None:
    """Every engine that decides proves `owned`, also for devices in no order."""
    result = lp.ask("owned", text, engine=engine)
    assert result.verdict is not lp.Verdict.REFUTED
    if engine in ("isl", "brute"):
        assert result.verdict is lp.Verdict.PROVED, result.reason


def test_run_time_sizes() -> None:
    """Extents may be symbols: ownership is proved for all of them, evenness where the extent divides."""
    assert lp.ask("owned", "f32[N,M] sharded {devices=[4,1]<=[4]}").verdict is lp.Verdict.PROVED
    assert lp.ask("even", "f32[4*N,M]{1,0} sharded {devices=[4,1]<=[4]}").verdict is lp.Verdict.PROVED
    refuted = lp.ask("even", "f32[N,M]{1,0} sharded {devices=[4,1]<=[4]}", where="N >= 4")
    assert refuted.counterexample == {"sizes": {"N": 5, "M": 1}}
    assert "tile 2 holds 1 of 2, and the last tile 0" in refuted.reason


def test_owned_refutes_a_map_that_only_speaks_of_devices() -> None:
    """A map of the user's with an axis `device` is judged too: shared places, and replicas on one device, are found."""
    from layoutproof.core.index_map import IndexMap
    from layoutproof.core.space import Space

    def sharded(place: Any, replicas: int = 1) -> IndexMap:
        box = Space(("replica",), (replicas,)) if replicas > 1 else Space()
        return IndexMap(Space(("i",), (8,)), Space(("device", "at"), (4, 2)), place, box)

    assert lp.ask("owned", sharded(lambda x, c, on: (x[0] // 2, x[0] % 2))).verdict is lp.Verdict.PROVED
    shared = lp.ask("owned", sharded(lambda x, c, on: (x[0] // 2, x[0] // 4)))
    assert shared.counterexample == {"first": (0,), "second": (1,)}
    outside = lp.ask("owned", sharded(lambda x, c, on: (x[0] // 2, x[0] % 3)))
    assert outside.counterexample == {"element": (2,)}
    twice = lp.ask("owned", sharded(lambda x, c, on: (x[0] // 4 * 2, x[0] % 2 + c[0]), 2))
    assert twice.verdict is lp.Verdict.REFUTED
    with pytest.raises(lp.LayoutError, match="no axis named device"):
        lp.ask("owned", "f32[4]{0}")
    with pytest.raises(lp.LayoutError, match="even is about sharded arrays"):
        lp.ask("even", "f32[4]{0}")


def test_replicas_on_one_device_are_refuted() -> None:
    """Two replicas at different places of one device are no two owners."""
    from layoutproof.core.index_map import IndexMap
    from layoutproof.core.space import Space

    m = IndexMap(
        Space(("i",), (2,)),
        Space(("device", "at"), (2, 2)),
        lambda x, c, on: (x[0], c[0]),
        Space(("replica",), (2,)),
    )
    result = lp.ask("owned", m)
    assert result.counterexample == {"element": (0,), "first_replica": (0,), "second_replica": (1,)}
    assert "both on device 0" in result.reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[4,4] sharded {devices=[2]0,1}", "has tiles for 1 dimensions, the array has 2"),
        ("[4] sharded {replicated}", "does not say over how many devices"),
        ("[4] sharded {unknown} on 2 devices", "says nothing of where elements are"),
        ("[4] sharded {devices=[2]0,1} on 3 devices", "has 2 devices, but it is said to be on 3"),
        ("[4] sharded {devices=[2]0,3} on 2 devices", "names device 3, but there are only 2"),
        ("[4] sharded {maximal device=3} on 2 devices", "device 3 is not one of 2 devices"),
        ("[4] sharded {devices=[2]0,1} on devices 4,4", "distinct numbers"),
        ("[4] sharded {devices=[2]0,1} on 2 machines", "expected devices"),
        ("[4] sharded {{devices=[2]0,1}}", "one array has one sharding"),
        ("(f32[4], f32[4]) sharded {devices=[2]0,1}", "is one array"),
        ("{devices=[2]0,1}", "say which: 'f32[64,128] sharded {devices=[2]0,1}'"),
    ],
)
def test_refused(text: str, problem: str) -> None:
    """What does not say where an array's elements are is an error with the reason."""
    with pytest.raises(lp.LayoutError) as caught:
        lp.read_layout(text).index_map()
    assert problem in caught.value.problem


def test_devices_by_number() -> None:
    """`on devices ..` numbers the devices in the order in which the sharding counts them."""
    assert lp.locate("[4] sharded {devices=[2]1,0} on devices 5,9", (3,)) == [{"device": 5, "local_i": 1}]
    assert lp.locate("[4] sharded {replicated} on devices 7,2", (3,)) == [
        {"device": 7, "local_i": 3},
        {"device": 2, "local_i": 3},
    ]
    text = "f32[4]{0} sharded {replicated} on devices 7,2"
    assert str(lp.read_layout(text)) == text
