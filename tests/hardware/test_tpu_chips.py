"""The one table of chips: it agrees with itself, with JAX where that is installed, and no other file holds a second."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import layoutproof
from layoutproof.hardware import tpu_layouts
from layoutproof.hardware.tpu import default_layout, tile_rows
from layoutproof.hardware.tpu_chips import CHIPS, OTHER_NAMES, Chip, generation
from layoutproof.hardware.tpu_tiles import SUBLANES, tile_extent
from layoutproof.kernel.kernel import Block, Operand

pytestmark = pytest.mark.slow

ROOT = Path(layoutproof.__file__).parent


@pytest.mark.parametrize("chip", CHIPS.values(), ids=CHIPS)
def test_an_entry_agrees_with_itself(chip: Chip) -> None:
    """Names lead back to it, no other chip has them, and no kernel gets more by asking for nothing."""
    assert [generation(name) for name in (chip.kind, *chip.aliases)] == [chip.name] * (1 + len(chip.aliases))
    assert [other for other, name in OTHER_NAMES.items() if name == chip.name] == [*chip.aliases, *chip.nicknames]
    assert chip.vmem_scoped <= chip.vmem < chip.hbm
    assert {chip.peak(32), chip.peak(8), chip.peak(8, floating=False)} <= {chip.bf16, chip.int8, chip.fp8} - {0}


def test_every_name_is_one_chips() -> None:
    """A name of two chips would be lost in the table of names."""
    names = [name for chip in CHIPS.values() for name in (chip.name, *chip.aliases, *chip.nicknames)]
    assert sorted(names) == sorted({*CHIPS, *OTHER_NAMES})


def test_jax_says_the_same() -> None:
    """Cores, memory and speed of each device kind, from the file that the table names as its source."""
    info = pytest.importorskip("jax._src.pallas.mosaic.tpu_info", reason="jax 0.10 keeps it there")
    wrong = []
    for chip in CHIPS.values():
        said = info._get_tpu_info_impl(info.chip_version_from_device_kind(chip.kind), chip.cores)
        ours = (chip.smem, chip.bandwidth, chip.bf16, chip.int8, chip.fp8)
        theirs = (said.smem_capacity_bytes, said.mem_bw_bytes_per_second, said.bf16_ops_per_second)
        if ours != (*map(int, theirs), int(said.int8_ops_per_second), int(said.fp8_ops_per_second)):
            wrong.append((chip.name, ours, said))
    assert wrong == []


def tables(source: str) -> list[int]:
    """Lines of dictionaries that are keyed by three chips or more, and of constants for the lanes of a tile."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            found += [node.lineno] * (len(keys & {*CHIPS}) > 2)
        elif isinstance(node, ast.Assign) and any("LANES" in ast.unparse(target) for target in node.targets):
            found.append(node.lineno)
    return found


def test_there_is_no_second_table() -> None:
    """Neither of chips nor of the tile's extents; a planted one is found."""
    kept = {"hardware/tpu_chips.py", "hardware/tpu_tiles.py"}
    files = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert {name: lines for name, text in files.items() if name not in kept and (lines := tables(text))} == {}
    assert len(tables(files["hardware/tpu_tiles.py"])) == 2
    planted = 'CHIPS = {"v4": 1, "v5e": 2, "v6e": 3}\nLANES, SUBLANES = 128, 8\n'
    assert sorted(tables(planted)) == [1, 2]


@pytest.mark.parametrize("extent", range(1, 40))
@pytest.mark.parametrize("fewest", [1, 2, 4, 8, 32])
def test_the_extent_of_a_tile_is_the_least_power_of_two(extent: int, fewest: int) -> None:
    """Found by looking through all of them."""
    fits = [2**k for k in range(8) if 2**k >= min(extent, SUBLANES) and 2**k >= fewest]
    assert tile_extent(extent, fewest, SUBLANES) == fits[0]


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("dims", [(100, 128), (3, 128), (5, 300), (64, 256), (96, 640)])
def test_who_asks_for_a_tile_gets_the_same(dims: tuple[int, int], bits: int, target: str) -> None:
    """An array that is row-major by default has the tile that kernels expect, and its rows are `tile_rows`."""
    layout = default_layout(dims, bits, target)
    expected = tpu_layouts.tile_of(dims, bits, target)
    assert expected[0] == tile_rows(dims[0], bits, target)
    if layout.minor_to_major == (1, 0):
        assert layout.tiles[0] == expected


def test_bytes_of_a_copy_use_the_tile_of_the_default_rule() -> None:
    """s4[100,5] on v3: each element takes a byte, and its rows come in eights: 104 x 128 and, copied, 8 x 128."""
    copied, why = tpu_layouts.relayout(Operand("x", "in", (100, 5), "s4", (Block("blocked", 8),) * 2, ()), "v3")
    layout = default_layout((100, 5), 4, "v3")
    assert (str(layout), copied) == ("{0,1:T(8,128)(4,1)}", 8 * 128 + 104 * 128), why
