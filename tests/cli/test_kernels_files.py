"""`layoutproof kernels` on files: spec files, programs; and its arguments in one text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from tests.cli.user_code import kernels_command
from tests.said import words

pytestmark = pytest.mark.slow

SPEC = """\
source: x
layouts:
  plain: f32[3,5]{1,0}
  good: {kernel: {grid: [4], outputs: [{array: "f32[32,128]", block: [8, 128], index: "i -> (i, 0)"}]}}
  bad: {kernel: {grid: [3], outputs: [{array: "f32[32,128]", block: [8, 128], index: "i -> (i, 0)"}]}}
"""
TRACED = 'kernels:\n  mine: {trace: "users_kernels.py:copy", args: ["f32[1000,128]"]}\n'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One command line in a folder with user code: its exit code, stdout and stderr."""
    return kernels_command(capsys, tmp_path, monkeypatch)


def test_a_spec_file(run: Any) -> None:
    """Each kernel that it names, with its line; what is no kernel is no business of this command."""
    Path("a.yaml").write_text(SPEC)
    code, out, err = run("a.yaml")
    assert (code, err) == (1, "")
    assert "a.yaml:4" in out
    assert "no program writes" in out
    assert (
        out.splitlines()[-1]
        == "2 Pallas calls: 1 proved, 1 refuted, 0 unknown; grid and BlockSpecs proved; body not looked at"
    )
    assert run("a.yaml", "--target", "v5e")[0] == 1
    assert run("a.yaml", "--arg", "3")[0] == 2
    assert run("a.yaml", "--assume", "0 <= t < 3")[0] == 2


def test_traced_calls_of_a_spec_file(run: Any) -> None:
    """They are traced like any function."""
    pytest.importorskip("jax", reason="JAX is not installed")
    Path("a.yaml").write_text(SPEC + TRACED)
    code, out, _ = run("a.yaml")
    assert code == 1
    assert "target   none given" in out
    assert (
        out.splitlines()[-1]
        == "3 Pallas calls: 1 proved, 2 refuted, 0 unknown; grid and BlockSpecs proved; body not looked at"
    )


def test_the_target_of_an_entry(run: Any) -> None:
    """Each call is asked what its own entry names; a target of the command is that of all."""
    pytest.importorskip("jax", reason="JAX is not installed")
    entry = '  {}: {{trace: "users_kernels.py:copy", args: ["f32[1024,128]"]{}}}\n'
    entries = ((f"k{k}", more) for k, more in enumerate((", target: v5e", "", ", target: 7x")))
    Path("a.yaml").write_text("source: x\nkernels:\n" + "".join(entry.format(*each) for each in entries))
    for options, targets in (((), ["v5e,", "none", "7x,"]), (("--target", "v6e"), ["v6e,"] * 3)):
        code, out, _ = run("a.yaml", *options)
        assert code == 0
        assert [line.split()[1] for line in out.splitlines() if line.startswith("  target ")] == targets


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1\n", "a.yaml:1: " + words("specs.no_definitions")),
        ("search: x\n", "a.yaml:1: " + words("specs.no_definitions")),
        ("layouts:\n  a: f32[3]\n", words("specs.no_pallas_call", function="a.yaml")),
        ("layouts:\n  a: {kernel: {grid: [4]}}\n", "a.yaml:2: a: "),
        ("layouts: [\n", "a.yaml:"),
    ],
)
def test_files_without_kernels(text: str, message: str, run: Any) -> None:
    """What is wrong, and where; nothing to prove is never green."""
    Path("a.yaml").write_text(text)
    code, out, err = run("a.yaml")
    assert code in (2, 3)
    assert out == ""
    assert err.startswith(message)


def test_arguments_in_one_text(run: Any) -> None:
    """The same as one by one; brackets keep their commas."""
    pytest.importorskip("jax", reason="JAX is not installed")
    alone = run("users_kernels:pipelined", "--arg", "f32[32,128]", "--arg", "3")
    assert run("users_kernels:pipelined", "--args", "f32[32,128], 3") == (alone[0], alone[1], "")
    assert run("users_kernels:pipelined", "--args", "f32[32,128]", "--arg", "3")[:2] == alone[:2]
    assert "'tuple' object has no attribute 'shape'" in run("users_kernels:copy", "--args", "(8, 128), 5")[2]


def test_the_calls_as_a_spec_file(run: Any) -> None:
    """What is printed is checked without JAX, and says the same."""
    pytest.importorskip("jax", reason="JAX is not installed")
    code, out, _ = run("users_kernels:copy", "--arg", "f32[1000,128]", "--spec", "--target", "v5e")
    assert code == 0
    Path("b.yaml").write_text(out)
    assert cli.run(["check", "b.yaml"]) == 1
    assert (
        run("b.yaml", "--target", "v5e")[1].splitlines()[-1]
        == "1 Pallas call: 0 proved, 1 refuted, 0 unknown; 1 not asked"
    )


TABLES = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def rows(t, u, x):
    def body(t_ref, u_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2, grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t, u: (t[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t, u: (u[i], 0)))
    return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype))(t, u, x)
"""


def test_what_is_assumed_goes_into_the_spec_file(run: Any) -> None:
    """Onto among the first entries, and entries tied together: said there in the words that were given, and used."""
    pytest.importorskip("jax", reason="JAX is not installed")
    Path("tables.py").write_text(TABLES)
    call = ("tables.py:rows", "--args", "s32[5], s32[4], f32[32,128]", "--spec")
    bounds = "0 <= prefetch0 < 4; 0 <= prefetch1 < 4"
    related = "prefetch0[i] <= prefetch0[i + 1] if i + 1 < 5; prefetch1[i] <= prefetch1[i + 1] + 3"
    code, out, _ = run(*call, "--assume", f"{bounds}; prefetch1 is injective; prefetch1[:4] is onto; {related}")
    assert code == 0
    for text in ("prefetch1[:4] is onto", *related.split("; ")):
        assert text in " ".join(out.split())
    Path("b.yaml").write_text(out)
    assert cli.run(["check", "b.yaml"]) == 0
    # no tables are as these say
    for old, new in (("prefetch1[:4] is onto", "prefetch1[:3] is onto"), ("prefetch0[i + 1] if i + 1 < 5", "0 - 1")):
        assert old in out
        Path("b.yaml").write_text(out.replace(old, new))
        assert cli.run(["check", "b.yaml"]) == 3
