"""JAX's own devices: which device holds which element, and which value lies where in its shard."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.layouts.sharding import read
from tests.layouts.test_sharding_place import places

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("sharding_on_devices.py")
ROOT = Path(__file__).resolve().parents[2]

PLATFORMS = {
    "cpu": {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"},
    "gpu": {},
}


@pytest.fixture(scope="module", params=PLATFORMS)
def on_devices(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """What JAX did on the devices of one platform; skips, saying why, where there are none."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed, so there are no devices to shard over")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **PLATFORMS[request.param]}
    run = subprocess.run(
        [sys.executable, str(CHILD), request.param], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    if isinstance(found, dict):
        pytest.skip(f"JAX has no {request.param} devices: {found['none']}")
    assert request.param != "cpu" or len({i for case in found for i in case["ids"]}) == 8
    return found  # type: ignore[no-any-return]


def test_devices_indices_map(on_devices: list[dict[str, Any]]) -> None:
    """The reading of every NamedSharding puts each element on exactly the devices, at the places, that JAX says."""
    for case in on_devices:
        expected: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for device, parts in case["indices"].items():
            for index in itertools.product(*[range(start, stop) for start, stop in parts]):
                within = tuple(i - start for i, (start, _) in zip(index, parts, strict=True))
                expected.setdefault(index, set()).add((int(device), *within))
        assert places(read(case["text"])) == expected, case["text"]


def test_what_jax_prints_is_the_same_map(on_devices: list[dict[str, Any]]) -> None:
    """The object's own text, and its spec on its mesh, have every element on the devices that JAX says."""
    for case in on_devices:
        for printed in case["printed"]:
            assert places(read(printed)) == places(read(case["text"])), printed


def test_values_of_the_shards(on_devices: list[dict[str, Any]]) -> None:
    """In the shards of real arrays each value lies at our offset, row-major within the shard."""
    for case in on_devices:
        dims = case["dims"]
        text = case["text"].replace(
            f"[{','.join(map(str, dims))}]", f"s32[{','.join(map(str, dims))}]{{{'1,0' if len(dims) == 2 else '0'}}}", 1
        )
        held = dict(case["shards"])
        seen = 0
        for value, index in enumerate(itertools.product(*map(range, dims))):
            for place in lp.locate(text, index):
                assert held[place["device"]][place["offset"]] == value, (text, index)
                seen += 1
        assert seen == sum(len(values) for values in held.values()), text


def test_the_hlo_sharding_of_jax_is_the_same_map(on_devices: list[dict[str, Any]]) -> None:
    """JAX's own conversion to XLA's form, on the mesh's devices in order, is proved the same map as our reading."""
    for case in on_devices:
        devices = ",".join(map(str, case["ids"]))
        other = f"[{','.join(map(str, case['dims']))}] sharded {case['hlo']} on devices {devices}"
        assert lp.ask("same_map", case["text"], other).verdict is lp.Verdict.PROVED, (case["text"], other)


def test_every_reading_is_owned_and_even(on_devices: list[dict[str, Any]]) -> None:
    """What JAX accepts is even, and is proved owned with as many replicas as JAX has shards of each element."""
    for case in on_devices:
        owned, even = lp.ask("owned", case["text"]), lp.ask("even", case["text"])
        assert owned.verdict is even.verdict is lp.Verdict.PROVED
        held = sum(len(values) for _, values in case["shards"])
        assert owned.figures["replicas"] * prod(case["dims"]) == held


def test_jax_refuses_what_is_not_even() -> None:
    """JAX makes no uneven array, where XLA's text has one: that is why the test above only sees even ones."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed, so it cannot be asked")
    code = (
        "import jax, numpy as np\n"
        "from jax.sharding import *\n"
        "mesh = Mesh(np.array(jax.devices('cpu')), ('x',))\n"
        "try:\n"
        "    jax.device_put(np.arange(5), NamedSharding(mesh, PartitionSpec('x')))\n"
        "except ValueError as error:\n"
        "    print('refused', 'divi' in str(error))\n"
    )
    environment = {**os.environ, **PLATFORMS["cpu"]}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    # jax 0.12 prints a warning before
    assert run.stdout.splitlines()[-1:] == ["refused True"], run.stderr[-2000:]
    assert lp.ask("even", "[5] sharded {devices=[8]<=[8]}").verdict is lp.Verdict.REFUTED
