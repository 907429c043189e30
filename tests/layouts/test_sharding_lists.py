"""Lists of devices: a permutation gives each tile a device of its own, whatever its order, and is settled as one."""

from __future__ import annotations

import random

import pytest

import layoutproof as lp


def _listed(shape: str, dims: str, count: int, kind: str = "") -> str:
    devices = random.Random(count).sample(range(count), count)
    return f"{shape} sharded {{devices=[{dims}]{','.join(map(str, devices))}{kind}}}"


@pytest.mark.parametrize("name", ["owned", "injective", "in_bounds"])
@pytest.mark.parametrize(
    "text",
    [
        _listed("f32[1000003,77]", "8,1", 8),
        _listed("f32[1000003,77]", "512,1", 512),
        _listed("f32[N,M]", "256,2", 512),
        _listed("f32[65536,8192]{1,0:T(8,128)}", "2048,2", 4096),
        _listed("f32[1000003,770]", "32768,2", 65536),
        _listed("f32[1000003,770]", "16384,2,2", 65536, " last_tile_dim_replicate"),
        "f32[64,64] sharded {devices=[2,2]<=[4]} on devices 7,3,9,1",
    ],
)
def test_a_shuffled_list_is_proved_by_structure(name: str, text: str) -> None:
    """No engine looks at the list: its numbers are exchanged one to one."""
    found = lp.ask(name, text)
    assert (found.verdict, found.decided_by) == (lp.Verdict.PROVED, "digits")


def test_what_is_wrong_beside_the_list_is_still_found() -> None:
    """The twins: shards that overlap in memory, and a bound below the highest device."""
    text = _listed("f32[64,4]", "8,1", 8)
    assert lp.ask("in_bounds", text, within={"device": 7}).verdict is lp.Verdict.REFUTED
    assert lp.ask("in_bounds", text, within={"device": 8}).verdict is lp.Verdict.PROVED
    replicated = _listed("f32[64,4]", "2,1,4", 8, " last_tile_dim_replicate")
    assert lp.ask("owned", replicated).verdict is lp.Verdict.PROVED
    assert lp.ask("owned", replicated).figures["replicas"] == 4
    with pytest.raises(lp.LayoutError, match="twice"):
        lp.ask("owned", "f32[64,4] sharded {devices=[4,1]0,1,1,2}")


def test_small_lists_are_what_looking_at_every_element_says() -> None:
    """Structure against enumeration, for lists of all kinds."""
    for count, dims, kind in ((4, "2,2", ""), (6, "3,2", ""), (8, "2,2,2", " last_tile_dim_replicate"), (5, "5,1", "")):
        text = _listed("f32[7,5]", dims, count, kind)
        for name in ("owned", "injective", "in_bounds"):
            assert lp.ask(name, text, engine="brute").verdict is lp.ask(name, text).verdict is lp.Verdict.PROVED
