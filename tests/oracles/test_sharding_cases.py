"""Every row of the reference data about XLA's shardings: text, iota arrays, tile limits, V3 to V2, replica groups.

Rows come from XLA's own tests (hlo_sharding_test.cc, tile_assignment_test.cc, hlo_parser_test.cc at 183fa00cb5) and
from asking jaxlib 0.10.2. A row of a kind that is not known here fails.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.layouts.sharding import Mesh, NamedSharding, TileSharding, parse, read
from layoutproof.layouts.sharding.lexer import cursor_at
from layoutproof.layouts.sharding.mesh import to_tiles
from layoutproof.layouts.sharding.mesh_text import read_mesh
from layoutproof.layouts.sharding.tiles import Tiles, canonical, iota, listed
from tests.recorded import rows

pytestmark = pytest.mark.slow

Row = dict[str, Any]

GARBAGE = ("tiles but <=[", "devices but device_ids")
"""Refused in both modes although jaxlib prints it: it aborts as soon as a device is asked for."""

UNSOUND = (
    *GARBAGE,
    "devices are listed",
    "is listed twice",
    "is negative",
    "is not a permutation",
    "has a single tile",
    "at least 1 tile",
    "given twice",
    "contradict each other",
    "belongs to maximal",
)
"""What mode "strict" refuses of the texts that jaxlib's parser takes."""


def text(row: Row) -> None:
    """Mode "xla" takes the text iff XLA does and prints the same; mode "strict" as well, save what is unsound."""
    for mode, allowed in (("xla", GARBAGE), ("strict", UNSOUND)):
        found, problem = _read(row["input"], mode)
        if not found:
            probe = row["source"].startswith("oracle probe")
            sound = not (probe and any(reason in problem for reason in allowed))
            assert not (row["expected_valid"] and sound), (mode, row["input"], problem)
            continue
        assert row["expected_valid"], (row["input"], found)
        printed = {row["expected_print"]}
        if "version_skew" in row and row["oracle"]["status"] == "ok":
            # newer XLA forgets the mesh of a fully replicated or unreduced sharding; we keep it, as jaxlib 0.10.2 does
            printed.add(row["oracle"]["out"]["str"])
        assert found in printed, row["input"]
        if "oracle" in row and isinstance(row["oracle"]["out"], dict) and "devices" in row["oracle"]["out"]:
            tiles = parse(row["input"], mode)
            tiles = to_tiles(tiles) if isinstance(tiles, NamedSharding) else tiles
            assert isinstance(tiles, TileSharding)
            if tiles.tiles is not None and row["oracle"]["out"]["devices"]:
                assert list(listed(tiles.tiles)) == row["oracle"]["out"]["devices"], row["input"]
                assert list(tiles.tiles.dims) == row["oracle"]["out"]["dims"], row["input"]


def _read(written: str, mode: str) -> tuple[str, str]:
    """(printed, "") or ("", why it is refused)."""
    try:
        return str(read(written, mode)), ""
    except lp.LayoutError as error:
        return "", error.problem


def iota_canonical(row: Row) -> None:
    """The canonical reshape and transpose are the shortest."""
    found = canonical(row["reshape_dims"], row["transpose_perm"])
    assert found == (tuple(row["expected_reshape_dims"]), tuple(row["expected_transpose_perm"]))


def iota_array(row: Row) -> None:
    """The devices of an iota, row-major."""
    found = listed(iota(row["dims"], row["reshape_dims"], row["transpose_perm"]))
    assert list(found) == row["expected_row_major"]


def v1_equals_v2(row: Row) -> None:
    """The list and the iota are one assignment: the same devices, and `same_map` of an array sharded by each."""
    second = iota(row["dims"], row["reshape_dims"], row["transpose_perm"])
    assert list(listed(second)) == row["devices"]
    shape = ",".join(str(2 * extent) for extent in row["dims"])
    one = f"[{shape}] sharded {{{Tiles(tuple(row['dims']), devices=tuple(row['devices']))}}}"
    assert lp.ask("same_map", one, f"[{shape}] sharded {{{second}}}").verdict is lp.Verdict.PROVED


def v3_to_v2(row: Row) -> None:
    """The V2 form of a mesh sharding, as XLA's test and as jaxlib print it."""
    sharding = parse(row["input"])
    assert isinstance(sharding, NamedSharding)
    assert str(to_tiles(sharding)) == row["expected_v2"] == row["oracle_v2"]


def tile_offset_limit(row: Row) -> None:
    """Each device holds exactly the elements from its tile's offset to its limit, at their distance from the offset."""
    shape, dims = row["shape"], row["dims"]
    replication = row.get("replication", 1)
    assignment = f"devices=[{','.join(map(str, dims + [replication] * (replication > 1)))}]"
    assignment += ",".join(map(str, row["devices"])) + " last_tile_dim_replicate" * (replication > 1)
    layout = read(f"[{','.join(map(str, shape))}] sharded {{{assignment}}}")
    expected = set()
    for device, (offset, limit) in row["expected"].items():
        for index in itertools.product(*map(range, offset, limit)):
            expected.add((index, int(device), tuple(i - o for i, o in zip(index, offset, strict=True))))
    found = set()
    m = layout.index_map()
    for index in itertools.product(*map(range, shape)):
        for replica in itertools.product(*map(range, m.replicas.extents)):
            device, *within = m.at(index, replica)
            found.add((index, device, tuple(within)))
    assert found == expected
    assert lp.ask("owned", layout).verdict is lp.Verdict.PROVED


def replica_groups(row: Row) -> None:
    """Groups of devices: the rows of a two-dimensional tile assignment, or of a mesh turned to the named axes."""
    groups = re.fullmatch(r"(\[.*\]<=.*)|(\{\{.*\}\})|((?:maximal_)?mesh.*?) (\{.*\})", row["input"])
    assert groups is not None, f"a spelling of replica groups that is not known: {row['input']}"
    if groups[1]:
        sharding = parse(f"{{devices={groups[1]}}}")
        assert isinstance(sharding, TileSharding)
        assert sharding.tiles is not None
        found = _rows(sharding.tiles)
    elif groups[2]:
        found = [list(map(int, group.split(","))) for group in re.findall(r"\{([\d,]+)\}", groups[2])]
    else:
        mesh, _ = read_mesh(cursor_at(groups[3], True))
        found = _over(mesh, re.findall(r"'([^']*)'(?::\((\d+)\)(\d+))?", groups[4]))
    assert found == row["expected_groups"]


def _over(mesh: Mesh, axes: list[tuple[str, str, str]]) -> list[list[int]]:
    """The devices that differ only in the named axes, or parts of axes, last one fastest."""
    if mesh.maximal:
        return [list(listed(mesh.tiles))]
    extents: list[int] = []
    moved: dict[int, int] = {}
    for name, whole in zip(mesh.names, mesh.tiles.dims, strict=True):
        parts = [(k, int(pre or 1), int(size or whole)) for k, (n, pre, size) in enumerate(axes) if n == name]
        cuts = sorted({1, whole, *(pre for _, pre, _ in parts), *(pre * size for _, pre, size in parts)})
        for before, after in itertools.pairwise(cuts):
            moved |= {k: len(extents) for k, pre, _ in parts if pre == before}
            extents.append(after // before)
    last = [moved[k] for k in sorted(moved)]
    order = [k for k in range(len(extents)) if k not in last] + last
    devices = np.array(listed(mesh.tiles)).reshape(extents).transpose(order)
    found: list[list[int]] = devices.reshape(-1, prod(extents[k] for k in last)).tolist()
    return found


def _rows(tiles: Tiles) -> list[list[int]]:
    devices = list(listed(tiles))
    _, size = tiles.dims
    return [devices[k : k + size] for k in range(0, len(devices), size)]


KINDS: dict[str, Callable[[Row], None]] = {
    check.__name__: check
    for check in (text, iota_canonical, iota_array, v1_equals_v2, v3_to_v2, tile_offset_limit, replica_groups)
}


def test_every_row() -> None:
    """Each row holds; all that fail are named, not only the first."""
    failures, every = [], rows("xla_sharding_cases.jsonl")
    for row in every:
        if row["kind"] not in KINDS:
            failures.append(f"a kind of row that no check here knows: {row['kind']}")
            continue
        try:
            KINDS[row["kind"]](row)
        except (AssertionError, lp.LayoutError, KeyError) as error:
            failures.append(f"{row['kind']} {row.get('input', row)}: {type(error).__name__} {error}")
    assert not failures, "\n".join(failures)
    assert every


def test_a_wrong_row_fails() -> None:
    """The checks can fail: each row with its expectation changed does."""
    passed = []
    for row in rows("xla_sharding_cases.jsonl"):
        wrong = _spoiled(row)
        try:
            KINDS[row["kind"]](wrong)
        except (AssertionError, lp.LayoutError, KeyError):
            continue
        passed.append(wrong)
    assert passed == []


def _spoiled(row: Row) -> Row:
    match row["kind"]:
        case "text":
            valid = row["expected_valid"]
            return {**row, "expected_valid": not valid, "expected_print": "{}x"}
        case "iota_canonical":
            return {**row, "expected_reshape_dims": [*row["expected_reshape_dims"], 2]}
        case "iota_array":
            return {**row, "expected_row_major": row["expected_row_major"][::-1]}
        case "v1_equals_v2":
            return {**row, "devices": row["devices"][::-1]}
        case "v3_to_v2":
            return {**row, "expected_v2": "{manual}"}
        case "tile_offset_limit":
            device = next(iter(row["expected"]))
            offset, limit = row["expected"][device]
            return {**row, "expected": {**row["expected"], device: [offset, [limit[0] + 1, *limit[1:]]]}}
        case _:
            return {**row, "expected_groups": [*row["expected_groups"][::-1], [0]]}
