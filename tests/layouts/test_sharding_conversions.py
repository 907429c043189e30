"""Axe and shardings say the same map, or say why not."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.questions.conversions import axe_to_sharding, sharding_to_axe
from layoutproof.questions.convert import convert
from tests.layouts import shardings_at_random as at_random

pytestmark = pytest.mark.slow


def places(layout: Any, axes: tuple[str, ...]) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
    """{element: set of places}, coordinates in the order of `axes`."""
    m = layout.index_map()
    order = [m.range.names.index(axis) for axis in axes]
    found = {}
    for index in itertools.product(*map(range, m.domain.extents)):
        replicas = itertools.product(*map(range, m.replicas.extents))
        found[index] = {tuple(m.at(index, replica)[k] for k in order) for replica in replicas}
    return found


@given(st.randoms(use_true_random=False))
def test_random_shardings_and_back(rng: random.Random) -> None:
    """Where there is an Axe form it has the same places, and turned back again too; both are also proved the same."""
    rank = rng.randint(1, 3)
    text = at_random.tiled(rng, rank).replace("unreduced", "replicated").replace("manual", "replicated")
    shape = ",".join(str(rng.choice([2, 4, 6, 12])) for _ in range(rank))
    order = list(range(rank))
    rng.shuffle(order)
    try:
        layout = lp.read_layout(f"f32[{shape}]{{{','.join(map(str, order))}}} sharded {text}")
        axe = sharding_to_axe.convert(layout)
    except lp.LayoutError as error:
        assert any(w in error.problem for w in ("uneven", "no sum of digits", "how many devices")), text  # noqa: PT017
        return
    assert places(axe, ("gpuid", "m")) == places(layout, ("device", "offset"))
    back = axe_to_sharding.convert(axe)
    assert places(back, ("device", "offset")) == places(layout, ("device", "offset"))
    assert lp.ask("same_map", axe, layout).verdict is lp.Verdict.PROVED


@pytest.mark.parametrize(
    ("sharding", "axe"),
    [
        ("f32[4,6]{1,0} sharded {devices=[2,1]<=[2]}", "S[(2,2,6):(1@gpuid,6@m,1@m)] on (4,6)"),
        ("f32[4,4]{0,1} sharded {replicated} on 3 devices", "S[(1,4,4):(1@gpuid,1@m,4@m)] + R[3:1@gpuid] on (4,4)"),
        ("f32[4,4]{1,0} sharded {maximal device=3}", "S[(1,4,4):(1@gpuid,4@m,1@m)] + 3@gpuid on (4,4)"),
        ("f32[4*N,M]{1,0} sharded {devices=[4,1]<=[4]}", "S[(4,N,M):(1@gpuid,M@m,1@m)] on (4*N,M)"),
        ("f32[4,4]{1,0} sharded {devices=[4,1]3,2,1,0}", "S[(4,4):(-1@gpuid,1@m)] + 3@gpuid on (4,4)"),
        (
            "f32[64,128]{1,0:T(128)} sharded {devices=[2,2]<=[2,2]T(1,0)}",
            "S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)] on (64,128)",
        ),
        (
            "f32[64,128]{1,0} sharded {devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
            "S[(2,32,128):(1@gpuid,128@m,1@m)] + R[2:2@gpuid] on (64,128)",
        ),
        ("f32[8,2]{1,0:T(128)} sharded {devices=[1,2]<=[2]}", "S[(1,8,2):(1@gpuid,128@m,1@gpuid)] on (8,2)"),
        ("f32[2]{0} sharded {replicated} on devices 5,7", "S[(1,2):(1@gpuid,1@m)] + R[2:2@gpuid] + 5@gpuid on (2)"),
    ],
)
def test_both_ways(sharding: str, axe: str) -> None:
    """Each is the text of the other, proved the same map by `convert`; the last two are the seed's S0S1 and S0R."""
    assert str(convert(sharding, "axe")) == axe
    assert str(convert(axe, "sharding")) == sharding


def test_tiled_shards() -> None:
    """Tiles of whole shards become digits on m, and come back as tiles."""
    text = "f32[64,512]{1,0:T(8,128)} sharded {devices=[2,2]<=[4]}"
    axe = convert(text, "axe")
    assert str(axe) == "S[(2,4,8,2,2,128):(2@gpuid,2048@m,128@m,1@gpuid,1024@m,1@m)] on (64,512)"
    assert str(convert(axe, "sharding")) == text


def test_without_a_layout_each_dimension_of_the_shard_is_an_axis() -> None:
    """The index within the shard converts too; no memory is made up for it."""
    axe = convert("[6,4] sharded {devices=[3,1]<=[3]}", "axe")
    assert str(axe) == "S[(3,2,4):(1@device,1@local_i,1@local_j)] on (6,4)"


@pytest.mark.parametrize(
    ("layout", "to", "problem"),
    [
        ("f32[5,4]{1,0} sharded {devices=[4,1]<=[4]}", "axe", "dimension 0 of extent 5 over 4 tiles is uneven"),
        ("f32[4]{0} sharded {devices=[4]3,1,0,2}", "axe", "no sum of digits"),
        ("f32[24,16]{1,0:T(8,128)} sharded {devices=[2,1]<=[2]}", "axe", "of extent 24 is padded"),
        (
            "f32[4]{0} sharded {devices=[2,2]<=[4] last_tile_dims={unreduced}}",
            "axe",
            "unreduced replicas hold different",
        ),
        ("S[(32,2,128):(128@m,1@gpuid,1@m)] on (64,128)", "sharding", "begin D with 1@gpuid"),
        ("S[(1,2,2,2):(1@g,2@m,1@g,1@m)] on (8)", "sharding", "dealt out in turns"),
        ("S[(2,4):(1@gpuid,1@m)] + R[2:1@gpuid] on (8)", "sharding", "listed twice"),
        ("S[(2,4):(1@gpuid,1@m)] + R[2:4@m] on (8)", "sharding", "a second one in the same memory"),
        ("S[(2,4):(1@gpuid,1@m)] + 3@m on (8)", "sharding", "starts at offset 0, not at 3"),
        ("S[(2,4):(-1@gpuid,1@m)] on (8)", "sharding", "device -1 is negative"),
        ("S[(2,2,2):(1@x,1@y,1@m)] on (8)", "sharding", "this layout has x, y"),
        ("S[(2,4):(1@gpuid,3@m)] on (8)", "sharding", "was found for the memory of a shard, (4):(3)"),
        ("S[8:1]", "sharding", "this layout has none"),
        ("f32[] sharded {replicated} on 2 devices", "axe", "no dimensions"),
    ],
)
def test_no_form(layout: str, to: str, problem: str) -> None:
    """What the other language cannot say is refused with the reason."""
    with pytest.raises(lp.LayoutError) as caught:
        convert(layout, to)
    assert problem in caught.value.problem
