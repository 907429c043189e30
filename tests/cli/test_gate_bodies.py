"""Kernels that a spec file names by their function: the lock tells a body that changed, and the gate judges it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="tracing kernels needs the extra [jax]")

from layoutproof.cli import main as cli
from tests import said

pytestmark = pytest.mark.slow

CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def copy(x):
    def body(x_ref, o_ref):
        {line}
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=({grid},), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
"""
RIGHT = "o_ref[...] = x_ref[...]"
SPEC = """\
source: here
kernels:
  copy: {trace: "code.py:copy", args: ["f32[32,128]"]}
checks:
  - injective: f32[8]{0}
"""
BODIES = {
    "read past the block": ("o_ref[...] = x_ref[pl.ds(pl.program_id(0), 8)]", 1, {"refuted": "body_in_bounds of "}),
    "a row not stored": ("o_ref[:7] = x_ref[:7]", 1, {"refuted": "outputs_stored of "}),
    "data says which row": (
        "o_ref[...] = x_ref[pl.ds(x_ref[0, 0].astype(jnp.int32), 8)]",
        3,
        {"unknown": "body_in_bounds of "},
    ),
    "another number": ("o_ref[...] = x_ref[...] * 2", 0, {}),
}
INFINITE = "o_ref[...] = jnp.where(x_ref[...] > 0, x_ref[...], jnp.inf)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    Path("specs").mkdir()
    Path("specs/k.yaml").write_text(SPEC)


def code(line: str = RIGHT, grid: int = 4) -> None:
    """The user's program with a body of one line."""
    Path("code.py").write_text(CODE.format(line=line, grid=grid))


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str]]:
    """The exit code, and each class with why, of the first finding of it."""
    capsys.readouterr()
    found = cli.run(["gate", *arguments, "--json"])
    return found, {f["question"]: f["reason"] for f in reversed(json.loads(capsys.readouterr().out)["findings"])}


def git(*arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *arguments], capture_output=True, check=True)


def commit() -> None:
    """A new repository with all that is here."""
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "one")):
        git(*words)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("against", [(), ("--against", "main")], ids=["lock", "git"])
def test_a_body_that_changed(
    name: str, against: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grid and maps are as before. What is refuted now is denied, what nobody can tell is exit 3, all else is said."""
    line, expected, why = BODIES[name]
    code()
    assert cli.run(["gate", "--lock"]) == 0
    if against:
        commit()
    assert gate(capsys, *against) == (0, {})
    code(line)
    exit_code, found = gate(capsys, *against)
    assert (exit_code, set(found)) == (expected, {"kernel_body", *why}), found
    assert found["kernel_body"].startswith("the body is another: ")
    for question, start in why.items():
        assert found[question].startswith(start)
    # as wrong as it was is no change, and a repair is none that is denied
    assert cli.run(["gate", "--lock"]) == 0
    assert gate(capsys) == (0, {})
    code()
    assert gate(capsys)[0] == 0
    assert set(gate(capsys)[1]) == {"kernel_body"}


def test_other_lines_and_names_are_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    code()
    assert cli.run(["gate", "--lock"]) == 0
    Path("code.py").write_text("# a comment\n\n" + Path("code.py").read_text().replace("x_ref", "rows"))
    assert gate(capsys) == (0, {})


def test_a_number_that_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    """The infinity of a mask changed its sign, and nothing else did."""
    code(INFINITE)
    assert cli.run(["gate", "--lock"]) == 0
    code(INFINITE.replace("jnp.inf", "-jnp.inf"))
    exit_code, found = gate(capsys)
    assert (exit_code, set(found)) == (0, {"kernel_body"})


def test_a_call_without_words(capsys: pytest.CaptureFixture[str]) -> None:
    """Its grid is a number of the running program, which no spec file can say: its body is locked all the same."""
    grid = "pl.cdiv(n, 8)"
    text = CODE.replace("def copy(x)", "def copy(n, x)").format(line=RIGHT, grid=grid)
    Path("code.py").write_text(text)
    Path("specs/k.yaml").write_text(SPEC.replace('["f32', '["s32[]", "f32'))
    assert cli.run(["gate", "--lock"]) == 0
    lock = Path("layoutproof.lock").read_text()
    assert '"body", "copy:body"' in lock
    assert '"layout", "copy' not in lock
    assert gate(capsys) == (0, {})
    Path("code.py").write_text(text.replace(RIGHT, "o_ref[...] = x_ref[pl.ds(pl.program_id(0), 8)]"))
    exit_code, found = gate(capsys)
    assert exit_code == 3, found
    assert found["unknown"].startswith("body_in_bounds of ")
    Path("code.py").write_text(text.replace("(i, 0)", "(i + 1, 0)"))
    assert set(gate(capsys)[1]) == {"kernel"}
    Path("code.py").write_text(text.partition("    return pl.")[0] + "    return x\n")
    assert gate(capsys)[0] == 3


def test_grid_and_body_change_together(capsys: pytest.CaptureFixture[str]) -> None:
    """Both are told, each once."""
    code()
    assert cli.run(["gate", "--lock"]) == 0
    code("o_ref[:7] = x_ref[:7]", grid=3)
    exit_code, found = gate(capsys)
    assert exit_code == 1
    assert {"kernel_body", "kernel", "refuted"} <= set(found)
    assert cli.run(["gate", "--json"]) == 1
    reasons = [f["reason"] for f in json.loads(capsys.readouterr().out)["findings"] if f["question"] == "refuted"]
    assert sorted(r.partition(" of ")[0] for r in reasons) == ["outputs_covered", "outputs_stored"]


def test_a_lock_without_a_body(capsys: pytest.CaptureFixture[str]) -> None:
    """What it was is unknown, in one line that says what to do; after that all is in step."""
    code()
    assert cli.run(["gate", "--lock"]) == 0
    lines = Path("layoutproof.lock").read_text().splitlines()
    kept = [line for line in lines if '"body", "copy:' not in line]
    assert len(kept) == len(lines) - 1
    Path("layoutproof.lock").write_text("\n".join(kept) + "\n")
    commit()
    for against in ((), ("--against", "main")):
        exit_code, found = gate(capsys, *against)
        assert (exit_code, set(found)) == (3, {"unknown"})
        assert found["unknown"].endswith(said.stretch("gating.write_anew", command="layoutproof gate --lock"))
    assert cli.run(["gate", "--lock"]) == 0
    assert Path("layoutproof.lock").read_text().splitlines() == lines
    assert gate(capsys) == (0, {})


def test_an_entry_under_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    """What is traced is the same entry, and its code is compared all the same."""
    code()
    assert cli.run(["gate", "--lock"]) == 0
    commit()
    Path("specs/k.yaml").write_text(SPEC.replace("  copy:", "  other:"))
    assert gate(capsys, "--against", "main")[0] == 0
    code("o_ref[:7] = x_ref[:7]")
    exit_code, found = gate(capsys, "--against", "main")
    assert exit_code == 1
    assert {"kernel_body", "refuted"} <= set(found)


def test_a_new_call_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    """A call that the function did not make, with a body that is wrong; what the file itself expects is none."""
    code()
    assert cli.run(["gate", "--lock"]) == 0
    text = Path("code.py").read_text()
    wrong = text.partition("def copy")[2].replace(RIGHT, "o_ref[:7] = x_ref[:7]").replace("body", "late")
    Path("code.py").write_text(
        text.replace("def copy", "def first") + f"\ndef late{wrong}\ndef copy(x):\n    return late(first(x))\n"
    )
    exit_code, found = gate(capsys)
    assert exit_code == 1
    assert found["refuted"].startswith("outputs_stored of ")


@pytest.mark.parametrize("value", [3, [1, 2, []], ["a", "b", [["q", "s", "green"]]], ["a", "b"], {"a": 1}])
def test_a_line_that_is_none(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad input, with its place."""
    code()
    assert cli.run(["gate", "--lock"]) == 0
    with Path("layoutproof.lock").open("a") as lock:
        lock.write(json.dumps(["specs/k.yaml", "body", "copy:body", value]) + "\n")
    assert cli.run(["gate"]) == 2
    assert said.stretch("gating.no_lock_line") in capsys.readouterr().err
