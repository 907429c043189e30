"""`gate --blame` and the cause of a finding, with two devices of the processor; and `git bisect run`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gating.repository import git, run
from tests.said import stretch

pytestmark = pytest.mark.slow

pytest.importorskip("jax")

ROOT = Path(__file__).resolve().parents[2]
MODEL = """
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def put(x, spec):
    return jax.lax.with_sharding_constraint(x, spec)


def layer(x, w):
    h = jnp.tanh(x @ w)
    h = put(h, P(None, "x"))
    return h @ w.T


def step(x, w):
    return jnp.sum(layer(x, w))
"""
SPEC = """programs:
  step: {function: "model:step", args: ["f32[64,128]", "f32[128,256]"], mesh: {x: 2}, in: ["P()", "P(None, 'x')"]}
checks:
  - {argument_memory: step, at_most: 1MiB}
"""
BLAME = ["gate", "--against", "HEAD", "--compile-base", "--blame", "--json"]
GATHERED = ('h = put(h, P(None, "x"))', "h = put(h, P(None, None))")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    (place / "specs").mkdir(parents=True)
    for name, text in {"model.py": MODEL, "specs/a.yaml": SPEC, "pyproject.toml": "", "README": "a\n"}.items():
        (place / name).write_text(text)
    git(place, "init", "-q", "-b", "main")
    git(place, "add", ".")
    git(place, "commit", "-qm", "good")
    return place


def edit(folder: Path, *pairs: tuple[str, str]) -> None:
    text = (folder / "model.py").read_text()
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "model.py").write_text(text)


def collectives(out: str) -> list[dict[str, object]]:
    return [f for f in json.loads(out)["findings"] if f["question"] == "new_collective"]


def test_one_hunk_of_many_and_the_value_that_it_changed(folder: Path) -> None:
    edit(folder, ("\nimport jax\n", "\n# one\n# two\nimport jax\n"), GATHERED, ("jnp.sum(", "2 * jnp.sum("))
    (folder / "README").write_text("b\n")
    (folder / "more.py").write_text("a = 1\n")
    (found,) = run(folder, BLAME)
    (little,) = run(folder, [*BLAME, "--compilations", "1"])
    assert found.code == 1, found.out
    said = collectives(found.out)
    assert said
    for each in said:
        assert each["hunks"] == ["model.py:15: + h = put(h, P(None, None))"]
        assert str(each["cause"]).startswith("model.py:15: sharding_constraint says sharding=P(None, None)")
    (note,) = [n for n in json.loads(found.out)["notes"] if n.startswith("blame: ")]
    assert note.startswith("blame: 5 hunks, ")
    # the line that values name was tried first, and with one compilation nothing more
    assert [each["hunks"] for each in collectives(little.out)][:1] == [["model.py:15: + h = put(h, P(None, None))"]]
    assert "1 of at most 1 compilations" in little.out


@pytest.mark.nightly
def test_two_hunks_of_which_neither_does_it_alone(folder: Path) -> None:
    edit(folder, ("\n\ndef layer", "\n\nWHOLE = P(None, None)\n\n\ndef layer"), ('P(None, "x"))', "WHOLE)"))
    (found,) = run(folder, BLAME)
    (spent,) = run(folder, [*BLAME, "--compilations", "1"])
    for each in collectives(found.out):
        assert [str(h).partition(": ")[2] for h in each["hunks"]] == [
            "+ WHOLE = P(None, None) (and 2 more lines)", "+ h = put(h, WHOLE)"
        ]  # fmt: skip
    assert collectives(found.out)
    # a use without its definition does not compile, and what is over budget is unknown
    assert all("hunks" not in each for each in collectives(spent.out))
    assert stretch("gating.blame_budget", most=1) in spent.out


def test_how_a_program_is_asked_for_is_a_cause_too(folder: Path) -> None:
    (folder / "specs" / "a.yaml").write_text(SPEC.replace("f32[64,128]", "f32[256,128]"))
    (found,) = run(folder, BLAME)
    said = [f for f in json.loads(found.out)["findings"] if f["question"] == "peak_memory"]
    assert said, found.out
    for each in said:
        assert each["cause"].startswith("specs/a.yaml:2: args says ")
        assert [h.partition(": ")[0] for h in each["hunks"]] == ["specs/a.yaml:2"]


def test_a_collective_that_moved_by_a_line_is_not_new(folder: Path) -> None:
    edit(folder, GATHERED)
    git(folder, "commit", "-qam", "gathered")
    edit(
        folder, ("\nimport jax\n", "\n\n\nimport jax\n"), ("    return h @ w.T", "\n    # nothing\n    return h @ w.T")
    )
    (lines,) = run(folder, BLAME)
    # a function of its own gives every operation another name
    edit(folder, ("\ndef layer", "\n@jax.jit\ndef layer"))
    (inner,) = run(folder, BLAME)
    for found in (lines, inner):
        assert collectives(found.out) == []
        assert "new_collective" not in found.out
        assert found.code == 0, found.out


def test_it_is_asked_of_two_compiled_trees(folder: Path) -> None:
    for options in (["--blame"], ["--against", "HEAD", "--blame"], ["--compilations", "3"]):
        (found,) = run(folder, ["gate", *options])
        assert found.code == 2
    assert "--compilations needs --blame" in found.err


@pytest.mark.nightly
def test_the_lines_of_the_documents_bisect(folder: Path, tmp_path: Path) -> None:
    """Of six commits the third ends the compiler's process: with code 3 itself git would call it the first bad one."""
    page = (ROOT / "docs" / "programs.md").read_text()
    block = re.search(r"```sh\n(layoutproof gate [^\n]*\n[^\n]*\n[^\n]*exit 125[^\n]*\n)```", page)
    assert block is not None
    assert len(block[1].splitlines()) == 3
    good = git(folder, "rev-parse", "HEAD").strip()
    commits = []
    for message, old, new in (
        ("a comment", "\nimport jax\n", "\n# one\nimport jax\n"),
        ("ends", "\ndef put", "\nimport os\nos.abort()\n\ndef put"),
        ("no longer", "\nimport os\nos.abort()\n", "\n"),
        ("bad", *GATHERED),
        ("another comment", "# one", "# two"),
    ):
        edit(folder, (old, new))
        git(folder, "commit", "-qam", message)
        commits.append(git(folder, "rev-parse", "HEAD").strip())
    script = tmp_path / "step.sh"
    script.write_text(block[1])
    # every command finds this layoutproof
    tool = tmp_path / "bin" / "layoutproof"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m layoutproof "$@"\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    git(folder, "bisect", "start", commits[-1], good)
    done = subprocess.run(
        ["git", "bisect", "run", "sh", str(script), good], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    log = git(folder, "bisect", "log")
    assert f"{commits[3]} is the first bad commit" in done.stdout, done.stdout + done.stderr
    assert f"git bisect skip {commits[1]}" in log
