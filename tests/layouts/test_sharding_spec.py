"""Shardings over a mesh written as JAX or SBP write them, as plain data: the mesh form they stand for, and errors."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.layouts.sharding import read

MESH = {"x": 2, "y": 4}


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({"mesh": MESH, "spec": ["x", None, ["y"]]}, "{mesh['x'=2,'y'=4], [{'x'}, {}, {'y'}]}"),
        ({"mesh": MESH, "spec": [["y", "x"]]}, "{mesh['x'=2,'y'=4], [{'y', 'x'}]}"),
        ({"mesh": MESH, "spec": []}, "{mesh['x'=2,'y'=4], replicated}"),
        ({"mesh": MESH, "spec": ["x"], "unreduced": ["y"]}, "{mesh['x'=2,'y'=4], [{'x'}], unreduced={'y'}}"),
        (
            {"mesh": {"x": 2, "y": 2}, "spec": ["x"], "device_ids": [3, 1, 2, 0]},
            "{mesh['x'=2,'y'=2], device_ids=(3,1,2,0), [{'x'}]}",
        ),
        ({"mesh": MESH, "spec": ["x"], "shape": [4, 4]}, "[4,4] sharded {mesh['x'=2,'y'=4], [{'x'}, {}]}"),
        (
            {"mesh": {"x": 2}, "spec": ["x"], "shape": "f32[4]{0}", "device_ids": [5, 7]},
            "f32[4]{0} sharded {mesh['x'=2], [{'x'}]} on devices 5,7",
        ),
        ({"mesh": MESH, "sbp": "(split(0), broadcast)"}, "{mesh['x'=2,'y'=4], [{'x'}]}"),
        ({"mesh": MESH, "sbp": "(S(1),S(1))"}, "{mesh['x'=2,'y'=4], [{}, {'x', 'y'}]}"),
        ({"mesh": MESH, "sbp": "( P , B )", "shape": [3]}, "[3] sharded {mesh['x'=2,'y'=4], [{}], unreduced={'x'}}"),
        ("(split(0), split(1)) on mesh['x'=2,'y'=4]", "{mesh['x'=2,'y'=4], [{'x'}, {'y'}]}"),
        (
            "[4,4] sharded (split(0), broadcast) on mesh['x'=2,'y'=2]",
            "[4,4] sharded {mesh['x'=2,'y'=2], [{'x'}, {}]}",
        ),
        ({"sharding": "{replicated}", "shape": [4], "devices": 2}, "[4] sharded {replicated} on 2 devices"),
        ("[4]\n  sharded\t{replicated} on 2 devices", "[4] sharded {replicated} on 2 devices"),
    ],
)
def test_reads(value: Any, printed: str) -> None:
    """Each spelling is the mesh form, and reads back from its text."""
    found = read(value)
    assert str(found) == printed
    assert read(printed) == found
    assert lp.read_layout({"sharding": value}) == found


@pytest.mark.parametrize(
    ("sbp", "axe"),
    [
        ("(split(0), split(1))", "S[(2,32,2,64):(1@gpuid,64@m,2@gpuid,1@m)] on (64,128)"),
        ("(split(0), broadcast)", "S[(2,32,128):(1@gpuid,128@m,1@m)] + R[2:2@gpuid] on (64,128)"),
    ],
)
def test_the_two_shardings_of_the_seed(sbp: str, axe: str) -> None:
    """The articles' two Axe layouts are these signatures, with device ids that count the first mesh axis fastest.

    Source: the Axe article's example 2 (gpuid = i // 32 + 2 * (j // 64)); there m has gaps, here rows are dense.
    """
    mesh = "mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0))"
    layout = f"f32[64,128]{{1,0}} sharded {sbp} on {mesh}"
    assert lp.ask("same_map", axe, layout).verdict is lp.Verdict.PROVED
    for index in [(0, 0), (33, 70), (63, 127), (31, 64)]:
        devices = {place["device"] for place in lp.locate(layout, index)}
        rows, columns = index[0] // 32, index[1] // 64
        expected = {rows + 2 * columns} if "split(1)" in sbp else {rows, rows + 2}
        assert devices == expected


def named(entry: Any) -> list[str]:
    """The mesh axes of one entry of a partition specification."""
    return [] if entry is None else [entry] if isinstance(entry, str) else entry


def test_specs_place_by_definition() -> None:
    """A dimension over axes (a, b) is cut by the number a * size(b) + b; axes not named replicate."""
    sizes = {"x": 2, "y": 3}
    mesh = np.arange(6).reshape(2, 3)
    entries: list[Any] = [None, "x", "y", ["x", "y"], ["y", "x"]]
    for spec in itertools.product(entries, repeat=2):
        used = [name for entry in spec for name in named(entry)]
        if len(set(used)) != len(used):
            with pytest.raises(lp.LayoutError, match="overlap"):
                read({"mesh": sizes, "spec": list(spec)})
            continue
        layout = read({"mesh": sizes, "spec": list(spec), "shape": [6, 12]})
        for index in itertools.product(range(6), range(0, 12, 5)):
            owners = set()
            for x, y in itertools.product(range(2), range(3)):
                at = {"x": x, "y": y}
                mine = True
                for entry, i, extent in zip(spec, index, (6, 12), strict=True):
                    number, count = 0, 1
                    for name in named(entry):
                        number, count = number * sizes[name] + at[name], count * sizes[name]
                    mine = mine and i // (extent // count) == number
                if mine:
                    owners.add(int(mesh[x, y]))
            assert {place["device"] for place in lp.locate(layout, index)} == owners


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"mesh": MESH, "spec": ["z"]}, "no axis 'z'; its axes: x, y"),
        ({"mesh": MESH, "spec": ["x", "x"]}, "overlap: each axis may be used once"),
        ({"mesh": MESH, "spec": "x"}, "spec is a list"),
        ({"mesh": MESH, "spec": [3]}, "an entry of spec"),
        ({"mesh": MESH, "spec": ["x", "y"], "shape": [4]}, "2 entries for an array with 1 dimensions"),
        ({"mesh": {"x": 0}, "spec": []}, "has size 0"),
        ({"mesh": {"a'b": 2}, "spec": []}, "a name without quotes"),
        ({"mesh": {"": 2}, "spec": []}, "a name without quotes"),
        ({"mesh": ["x"], "spec": []}, "a mesh is a mapping"),
        ({"mesh": MESH, "spec": [], "device_ids": [0, 1]}, "has 8 devices, each once"),
        ({"mesh": MESH, "spec": [], "device_ids": [0] * 8}, "has 8 devices, each once"),
        ({"mesh": {"x": 2}, "spec": ["x"], "device_ids": [5, 7]}, "give its shape too"),
        ({"mesh": MESH, "sbp": "(split(0))"}, "1 entries for 2 mesh axes"),
        ({"mesh": MESH, "sbp": "(split(0), shift)"}, "split(k), broadcast or partial_sum"),
        ({"mesh": MESH, "sbp": "(split(0) broadcast)"}, "separated by commas"),
        ({"mesh": MESH, "sbp": "(split(2), broadcast)", "shape": [4, 4]}, "split(2) of an array with 2 dimensions"),
        ({"mesh": MESH}, "got mesh"),
        ({"spec": []}, "got spec"),
        ({"mesh": MESH, "spec": [], "sbp": "(B, B)"}, "as mesh and spec, or as mesh and sbp"),
        ({"sharding": "{replicated}", "mesh": MESH}, "got sharding, mesh"),
        ({"shard": "{replicated}"}, "no key 'shard'"),
        ({"sharding": 3}, "sharding is a text"),
        ({"sharding": "{replicated}", "shape": 3}, "a shape is a text"),
        ({"sharding": "{replicated}", "shape": [-1]}, "an extent is an integer, at least 0"),
        ({"sharding": "{replicated}", "shape": [4], "devices": 0}, "devices is how many there are"),
        ({"sharding": "{replicated}", "devices": 2}, "give its shape too"),
        (3, "a sharding is a text"),
        ("(split(0), broadcast)", "say which"),
        ("(split(0), broadcast) on rack", "expected mesh"),
        ("(split(0), broadcast) on mesh['x'=2,'y'=2] x", "unexpected 'x'"),
    ],
)
def test_refused(value: Any, problem: str) -> None:
    """Every malformed mapping or signature is a LayoutError with its reason."""
    with pytest.raises(lp.LayoutError) as caught:
        read(value)
    assert problem in caught.value.problem


def test_a_mesh_without_devices_counts_from_0() -> None:
    """JAX's AbstractMesh raises ValueError when its devices are asked for."""

    class AbstractMesh:
        shape: ClassVar[dict[str, int]] = {"x": 2, "y": 4}

        @property
        def devices(self) -> object:
            raise ValueError("AbstractMesh does not implement devices")

    assert str(read({"mesh": AbstractMesh(), "spec": ["x"]})) == "{mesh['x'=2,'y'=4], [{'x'}]}"
