"""Which program has each element: as JAX's page prints it, as interpret mode fills it, and as the commands say it."""

from __future__ import annotations

import json
import random
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.kernel.kernel_elements import unwritten
from tests.said import Said, raises

EIGHT_BY_SIX = (
    [[0, 0, 0, 1, 1, 1]] * 2 + [[10] * 3 + [11] * 3] * 2 + [[20] * 3 + [21] * 3] * 2 + [[30] * 3 + [31] * 3] * 2
)
TENS = (
    [[9] * 3 + [19] * 3] * 2 + [[109] * 3 + [119] * 3] * 2 + [[209] * 3 + [219] * 3] * 2 + [[309] * 3 + [319] * 3] * 2
)
PAGE = {
    "s32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2) out": EIGHT_BY_SIX,
    "s32[7,5] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2) out": [row[:5] for row in EIGHT_BY_SIX[:7]],
    "s32[1,2] blockspec (2, 3) (i, j) -> (i, j) grid (1, 1) out": [[0, 0]],
    "s32[8,6] blockspec (2, 3) (i, j, k) -> (i, j) grid (4, 2, 10) out": TENS,
    "s32[4,4] blockspec None None grid (2, 3) out": [[12] * 4] * 4,
    "s32[8,6] blockspec (Element(2), Element(3)) (i, j) -> (2*i, 3*j) grid (4, 2) out": EIGHT_BY_SIX,
    "s32[7,7] blockspec (Element(2, (1, 0)), Element(3, (2, 0))) (i, j) -> (2*i, 3*j) grid (4, 3) out": [
        [0, 1, 1, 1, 2, 2, 2], *[[10, 11, 11, 11, 12, 12, 12]] * 2, *[[20, 21, 21, 21, 22, 22, 22]] * 2,
        *[[30, 31, 31, 31, 32, 32, 32]] * 2,
    ],
}  # fmt: skip
"""JAX's page on grids and BlockSpecs: each call of `show_program_ids`, and what it prints."""


@pytest.mark.parametrize("spec", PAGE)
def test_the_page(spec: str) -> None:
    assert lp.program_ids(spec).tolist() == PAGE[spec]


def interpreted(shape: tuple[int, ...], block: tuple[int, ...], grid: tuple[int, ...], dtype: str, at: Any) -> Any:
    """The page's own `show_program_ids`, run."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from jax.experimental import pallas as pl

    def body(out: Any) -> None:
        digits = sum(pl.program_id(axis) * 10 ** (len(grid) - 1 - axis) for axis in range(len(grid)))
        out[...] = jax.numpy.full(out.shape, digits).astype(dtype)

    spec = pl.BlockSpec(block, at)
    made = jax.ShapeDtypeStruct(shape, dtype)
    return np.asarray(pl.pallas_call(body, out_shape=made, grid=grid, in_specs=[], out_specs=spec, interpret=True)())


@pytest.mark.parametrize("seed", range(6))
def test_interpret_mode_at_random(seed: int) -> None:
    """Where nothing is written, interpret mode holds what we say it does."""
    rng = random.Random(seed)
    dtype, ours = rng.choice([("float32", "f32"), ("int32", "s32"), ("int8", "s8"), ("bfloat16", "bf16")])
    shape, block = (rng.randint(1, 9), rng.randint(1, 9)), (rng.randint(1, 4), rng.randint(1, 4))
    # no more programs than blocks: interpret mode moves a block that is outside to where it is not
    grid = tuple(rng.randint(1, -(-n // b)) for n, b in zip(shape, block, strict=True))
    text = f"{ours}[{shape[0]},{shape[1]}] blockspec {block} (i, j) -> (i, j) grid {grid} out"
    expected = interpreted(shape, block, grid, dtype, lambda i, j: (i, j)).astype(np.float64)
    found = lp.program_ids(text).astype(np.float64)
    found[found < 0] = float(unwritten(ours))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "ours"), [("float32", "f32"), ("int16", "s16"), ("uint8", "u8"), ("bool", "pred")])
def test_nothing_written(dtype: str, ours: str) -> None:
    value = interpreted((2, 2), (1, 2), (1, 1), dtype, lambda i, j: (0, 0))[1, 0]
    assert str(value).lower() == unwritten(ours).lower()


def test_show_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = "f32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (3, 3) out"
    assert cli.run(["show", spec, "--programs", "--svg", str(tmp_path / "p.svg")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "12 elements are not written: interpret mode holds NaN there" in lines
    assert "3 programs have a block outside the array, the first is (0, 2)" in lines
    assert "  2    10  10  10 │  11  11  11" in lines
    assert "  7   NaN NaN NaN │ NaN NaN NaN" in lines
    texts = [node.text for node in xml.parse(tmp_path / "p.svg").iter() if node.tag.endswith("text")]
    assert texts.count("NaN") == 12
    assert cli.run(["show", spec, "--programs", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["programs"]
    assert found["ids"][2] == [10, 10, 10, 11, 11, 11]
    assert found["ids"][7] == [None] * 6
    assert (found["nobody"], found["several"], found["interpret"]) == (12, 0, "NaN")
    assert found["outside"] == [[0, 2], [1, 2], [2, 2]]


def test_a_revisited_block_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", "s32[8,6] blockspec (2, 3) (i, j, k) -> (i, j) grid (4, 2, 10) out", "--programs"]) == 0
    said = "48 elements are written by several programs: where those run at once, any may b"
    assert said in capsys.readouterr().out


def test_an_operand_of_a_kernel() -> None:
    kernel = {
        "kernel": {
            "grid": [2],
            "inputs": [{"name": "x", "array": "f32[4]", "block": [2], "index": "i -> (1 - i)"}],
            "outputs": [{"name": "o", "array": "f32[4]", "block": [2], "index": "i -> (i)"}],
        }
    }
    assert lp.program_ids(kernel).tolist() == [0, 0, 1, 1]
    assert lp.program_ids(kernel, "x").tolist() == [1, 1, 0, 0]
    with raises(
        lp.LayoutError,
        Said("questions.operand_meant", kernel="kernel", found="no operand 'y' with blocks", known="x, o"),
    ):
        lp.program_ids(kernel, "y")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("f32[N] blockspec (2) (i) -> (i) grid (2)", "N has no value; programs are shown for numbers"),
        ("f32[4000000] blockspec (2) (i) -> (i) grid (2000000)", "2000000 programs; at most 1000000 are walked"),
        ("f32[3,5]{1,0}", "which program has an element is about a kernel"),
    ],
)
def test_what_is_not_shown(spec: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", spec, "--programs"]) == 2
    assert said in capsys.readouterr().err


OUTSIDE = "f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (11, 5)"


def test_locate_says_that_a_block_is_outside(capsys: pytest.CaptureFixture[str]) -> None:
    """The page's `slices_for_invocation` asserts it."""
    assert cli.run(["locate", OUTSIDE, "10,4"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("  the block lies outside the array: elements 100:110 of dimension 0, which has 100")
    assert cli.run(["locate", OUTSIDE, "2,4", "--json"]) == 0
    partial = "100 of 200 elements are not in the array: undefined when read, NaN in interpret mode"
    assert json.loads(capsys.readouterr().out)["notes"] == [partial]
    assert cli.run(["locate", OUTSIDE, "2,3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_locate_of_negative_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["locate", "f32[8] blockspec (2) (i) -> (i - 1) grid (5) out", "0", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith("the block lies outside the array: elements -2:0 of dimension 0, which has 8")
