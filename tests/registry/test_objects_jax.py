"""Layouts of JAX's objects, against the memory of eight devices as JAX left it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("objects_on_devices.py")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def on_devices() -> list[dict[str, Any]]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    run = subprocess.run([sys.executable, str(CHILD)], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def test_every_element_is_in_the_memory_where_it_is_said_to_be(on_devices: list[dict[str, Any]]) -> None:
    """On every device that has it, at its offset, and nowhere else."""
    arrays = on_devices[:-1]
    for case in arrays:
        held = [[(int(d), k, v) for k, v in enumerate(values)] for d, values in case["memory"].items()]
        for element in range(prod(case["shape"])):
            truth = sorted([d, k] for shard in held for d, k, v in shard if v == element)
            assert case["places"][element] == truth, (case["text"], element)
    assert len(arrays) == 18
    assert {len(case["memory"]) for case in arrays} == {1, 4, 8}


def test_an_array_says_its_real_layout_and_sharding(on_devices: list[dict[str, Any]]) -> None:
    """The text names the order in memory, the sharding, and the devices where they are not the first ones."""
    texts = [case["text"] for case in on_devices[:-1]]
    assert texts[:3] == [
        "s32[8,8]{1,0}",
        "s32[8,8]{0,1}",
        "s32[8,8]{1,0} sharded {mesh['a'=4,'b'=2], [{'a'}, {'b'}]}",
    ]
    assert "s32[8,8]{1,0} sharded {mesh['a'=2,'b'=2], [{'a'}, {'b'}]} on devices 6,3,5,2" in texts
    assert "s8[]" in texts


def test_shapes_with_a_sharding_or_a_format(on_devices: list[dict[str, Any]]) -> None:
    """A ShapeDtypeStruct says as much as it was given."""
    assert on_devices[-1]["shapes"] == {
        "sharded": "bf16[64,256] sharded {mesh['a'=4,'b'=2], [{'a'}, {'b'}]}",
        "abstract": "bf16[64,256] sharded {mesh['a'=4,'b'=2], [{'a'}, {}]}",
        "order": "bf16[64,256]{0,1}",
        "tiled": "bf16[64,256]{1,0:T(8,128)(2,1)}",
        "sharded and tiled": "bf16[64,256]{1,0:T(8,128)(2,1)} sharded {mesh['a'=4,'b'=2], [{'a'}, {}]}",
        "default": "bf16[64,256]{1,0:T(8,128)(2,1)}",
    }


WORDS = {
    "shape": "f32[8,8] is a shape without a layout; give an array, or jax.ShapeDtypeStruct(",
    "type": "s32[8,8] is a shape without a layout",
    "format": "says nothing of the array's shape and element type: give jax.ShapeDtypeStruct(",
    "layout": "says nothing of the array's shape and element type",
    "sharding": "a sharding places the elements of an array; say which",
    "mesh": "of JAX's objects arrays, shapes and shardings have a layout, not Mesh(",
    "key": "XLA has no element type 'key<fry>'",
    "deleted": "the array f32[3] was deleted or donated",
    "open tiles": "leaves the tiles to the compiler: give tiling=() for none",
    "traced": "s32[8,8] is traced: it has a layout only once the program is compiled",
}


def test_what_does_not_say_where_its_elements_are_is_refused(on_devices: list[dict[str, Any]]) -> None:
    """The error names what is missing, and how to give it; nothing is guessed."""
    found = on_devices[-1]["refused"]
    assert {name: words in found.get(name, "") for name, words in WORDS.items()} == dict.fromkeys(WORDS, True), found
