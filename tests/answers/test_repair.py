"""`lp.repair` and `--fix`: an edit is judged before it is shown, and written only where that was asked for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.cli.main import run
from tests.said import words

pytest.importorskip("jax", reason="jax is not installed: functions are traced with it")
pytestmark = pytest.mark.slow

RIGHT = """import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def body(x, y, o, acc):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc[...] = jnp.zeros_like(acc)

    acc[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == 1)
    def _():
        o[...] = acc[...]


def matmul(x, y):
    return pl.pallas_call(
        body,
        grid=(2, 1, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x, y)


def reference(x, y):
    return x @ y
"""
ARGS = ("f32[16,256]", "f32[256,128]")
ZEROS = """    @pl.when(pl.program_id(2) == 0)
    def _():
        acc[...] = jnp.zeros_like(acc)

"""


def wrong(folder: Path, old: str, new: str) -> Path:
    """The file with a fault."""
    assert RIGHT.count(old) == 1
    path = folder / "ops.py"
    path.write_text(RIGHT.replace(old, new))
    return path


def test_what_is_right_is_left_alone(tmp_path: Path) -> None:
    path = wrong(tmp_path, "grid=(2, 1, 2)", "grid=(2, 1, 2)")
    assert lp.repair(f"{path}:matmul", *ARGS, reference=f"{path}:reference") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ZEROS, ""),
        ("lambda i, j, k: (k, j)", "lambda i, j, k: (j, k)"),
        ("program_id(2) == 1", "program_id(2) == 0"),
    ],
)
def test_the_fault_is_found_by_values(tmp_path: Path, old: str, new: str) -> None:
    """The file is as it was until it is written, and right afterwards."""
    path = wrong(tmp_path, old, new)
    before = path.read_text()
    found = lp.repair(f"{path}:matmul", *ARGS, reference=f"{path}:reference")
    assert found is not None
    assert found.same in (lp.Verdict.SAMPLED, lp.Verdict.PROVED)
    assert found.kernels is lp.Verdict.PROVED
    assert path.read_text() == before
    found.write()
    assert path.read_text() == found.after != before
    assert lp.same(f"{path}:matmul", f"{path}:reference", *ARGS).exit_code == 0
    with pytest.raises(lp.LayoutError, match="has changed since"):
        found.write()


def test_without_a_reference_only_what_repairs_such_a_fault(tmp_path: Path) -> None:
    """`=` for `+=` would silence the question about scratch as well, and compute something else."""
    path = wrong(tmp_path, ZEROS, "")
    found = lp.repair(f"{path}:matmul", *ARGS)
    assert found is not None
    assert found.edit.kind == "zero"
    assert found.same is None
    assert "same FUNCTION --reference FUNCTION" in found.doubt
    # a wrong number is no fault of places: nothing is edited for it
    path = wrong(tmp_path, "program_id(2) == 1", "program_id(2) == 0")
    assert lp.repair(f"{path}:matmul", *ARGS, most=3) is None


@pytest.mark.parametrize("condition", ["program_id(0) == 0", "program_id(2) == 1", "program_id(0) + 0 == 0"])
def test_no_store_is_left_under_a_wrong_condition(tmp_path: Path, condition: str) -> None:
    """A second block of zeros before the first answers the questions about scratch, and keeps the numbers wrong."""
    order = 'pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary", "arbitrary"))'
    text = RIGHT.replace("grid=(2, 1, 2)", f"grid=(2, 1, 2), compiler_params={order}")
    path = tmp_path / "ops.py"
    path.write_text(text.replace("program_id(2) == 0", condition))
    found = lp.repair(f"{path}:matmul", *ARGS)
    assert found is not None
    assert (found.after, found.edit.kind) == (text, "zero")


def test_the_last_line_says_what_was_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a reference, and nowhere else."""
    monkeypatch.chdir(tmp_path)
    for command, without in ((["kernels"], True), (["same", "--reference", "ops.py:reference"], False)):
        wrong(tmp_path, ZEROS, "")
        options = ["--args", ", ".join(ARGS), "--no-cache", "--fix", "--diff"]
        assert run([*command[:1], "ops.py:matmul", *command[1:], *options]) == 1
        out = capsys.readouterr().out
        said = words("answers.numbers_not_compared")
        assert (out.rstrip().splitlines()[-1] == said, said in out) == (without, without)


def test_most_is_a_budget(tmp_path: Path) -> None:
    path = wrong(tmp_path, "lambda i, j, k: (k, j)", "lambda i, j, k: (j, k)")
    said: list[str] = []
    assert lp.repair(f"{path}:matmul", *ARGS, reference=f"{path}:reference", most=0, tick=said.append) is None
    assert said == []


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--diff` writes nothing and its diff applies; `--fix` writes; `--json` has the patch."""
    monkeypatch.chdir(tmp_path)
    path = wrong(tmp_path, ZEROS, "")
    before = path.read_text()
    command = ["same", "ops.py:matmul", "--reference", "ops.py:reference", "--args", ", ".join(ARGS), "--no-cache"]
    assert run([*command, "--fix", "--diff", "--json"]) == 1
    entry = json.loads(capsys.readouterr().out)["repair"]
    assert entry["kernels"] == "proved"
    assert not entry["written"]
    assert path.read_text() == before
    subprocess.run(["git", "apply", "-"], input=entry["diff"], text=True, check=True, cwd=tmp_path)
    patched = path.read_text()
    assert patched != before
    path.write_text(before)
    assert run([*command, "--fix"]) == 1
    assert path.read_text() == patched
    assert "judged   kernels is proved, same is" in capsys.readouterr().out
    assert run([*command, "--fix"]) == 0
    assert run(["kernels", "ops.py:matmul", "--args", ", ".join(ARGS), "--diff"]) == 2


def test_bad_input(tmp_path: Path) -> None:
    path = wrong(tmp_path, ZEROS, "")
    with pytest.raises(lp.LayoutError, match="none by name"):
        lp.repair(f"{path}:matmul", *ARGS, reference=f"{path}:reference", named={"bm": 1})
    with pytest.raises(lp.LayoutError, match="a function is written"):
        lp.repair("ops", *ARGS)
    with pytest.raises(lp.LayoutError):
        lp.repair(f"{tmp_path}/none.py:matmul", *ARGS)
