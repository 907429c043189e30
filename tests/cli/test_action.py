"""The GitHub action as a runner starts it: what it installs, what it runs, with which flags, and how it ends."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **GIT}, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a repository with one spec file, as a runner has it."""
    upstream = tmp_path / "upstream"
    (upstream / "specs").mkdir(parents=True)
    (upstream / "specs" / "a.yaml").write_text("layouts:\n  a: f32[3,5]{1,0}\nchecks:\n  - injective: a\n")
    git(upstream, "init", "-q", "-b", "main")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", str(upstream), "work")
    return tmp_path / "work"


def program(folder: Path, text: str) -> str:
    """A folder with a program called python, to stand first on PATH."""
    folder.mkdir(exist_ok=True)
    file = folder / "python"
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def run(folder: Path, python: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's script in a checkout. python: the text of the program that it calls python."""
    given = {"AGAINST": "origin/main", "BASE": "main", "DEFAULT": "main", "PATHS_TO_GATE": "specs", "MORE": ""}
    given |= {"PATHS_TO_CHECK": "specs", "GITHUB_OUTPUT": str(folder / "output"), **inputs}
    path = os.pathsep.join((program(folder.parent / "bin", python), os.environ["PATH"]))
    environment = {**os.environ, **GIT, "LAYOUTPROOF_CACHE": "off", "PYTHONPATH": str(ROOT), **given, "PATH": path}
    return subprocess.run(
        [str(ROOT / "action" / "run")], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


REAL = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
RECORDING = '#!/bin/sh\necho "$@" >> "$CALLS"\ncase "$4" in check) exit $CHECK;; gate) exit $GATE;; esac\n'


def test_a_moved_layout_is_denied(checkout: Path) -> None:
    """Unchanged is 0; a moved layout is an annotation, a summary page, a SARIF file, and 1."""
    fine = run(checkout, REAL)
    assert (fine.returncode, fine.stderr) == (0, "")
    (checkout / "specs" / "a.yaml").write_text("layouts:\n  a: f32[3,5]{0,1}\nchecks:\n  - injective: a\n")
    page = checkout / "summary.md"
    done = run(checkout, REAL, SARIF="out.sarif", GITHUB_STEP_SUMMARY=str(page))
    assert done.returncode == 1, done.stderr
    assert "::error file=specs/a.yaml,line=2" in done.stdout
    assert "1 claim as stated" in page.read_text()
    assert "**deny** `moved`" in page.read_text()
    assert (checkout / "out.sarif").exists()
    assert (checkout / "output").read_text().splitlines() == ["exit-code=0", "exit-code=1"]


def test_a_false_claim_fails_though_nothing_changed(checkout: Path) -> None:
    """`check` runs too: a claim that is false on both sides is no change, and is red."""
    (checkout / "specs" / "b.yaml").write_text("checks:\n  - injective: {strided: 'f32[3,5] strides (4,1)'}\n")
    done = run(checkout, REAL, PATHS_TO_GATE="")
    assert done.returncode == 1
    assert "are both stored at offset 4" in done.stdout


@pytest.mark.parametrize(
    ("check", "gate", "code"), [(0, 0, 0), (3, 1, 1), (2, 3, 2), (1, 2, 1), (0, 3, 3), (3, 0, 3), (0, 130, 130)]
)
def test_the_graver_code_wins(check: int, gate: int, code: int, checkout: Path) -> None:
    """1 over 2 over 3 over 0."""
    calls = checkout / "calls"
    assert run(checkout, RECORDING, CALLS=str(calls), CHECK=str(check), GATE=str(gate)).returncode == code


@pytest.mark.parametrize(
    ("inputs", "flags"),
    [
        ({}, ()),
        ({"FORK": "true"}, ("--no-trace",)),
        ({"APPROVED": "true"}, ("--accept-approvals",)),
        ({"FORK": "false", "APPROVED": "false"}, ()),
    ],
)
def test_flags(inputs: dict[str, str], flags: tuple[str, ...], checkout: Path) -> None:
    """A fork's code is not imported; approvals of the change count only when the label was just set."""
    calls = checkout / "calls"
    run(checkout, RECORDING, CALLS=str(calls), CHECK="0", GATE="0", **inputs)
    check, gate = calls.read_text().splitlines()
    assert ("--no-trace" in check) == ("--no-trace" in flags)
    for flag in ("--no-trace", "--accept-approvals"):
        assert (flag in gate) == (flag in flags)


def test_what_a_runner_fills_in() -> None:
    """The label counts only in the run that its setting starts, and a fork is told from the repository itself."""
    environment = STEPS[2]["env"]
    assert environment["APPROVED"] == (
        "${{ github.event.action == 'labeled' && github.event.label.name == inputs.approval-label }}"
    )
    assert "head.repo.fork" in environment["FORK"]
    script = (ROOT / "action" / "run").read_text()
    for name in environment:
        assert f"${name}" in script or f"${{{name}" in script or name in ("CHECKOUT",), name


@pytest.mark.parametrize(
    ("version", "installed"), [("", "/the/checkout"), ("0.1.0", "layoutproof==0.1.0")], ids=["own checkout", "release"]
)
def test_what_is_installed(version: str, installed: str, tmp_path: Path) -> None:
    """The action's own checkout, never a bare name that anybody may register; a release only where one is named."""
    calls = tmp_path / "calls"
    path = os.pathsep.join((program(tmp_path / "bin", RECORDING), os.environ["PATH"]))
    given = {"CALLS": str(calls), "VERSION": version, "CHECKOUT": "/the/checkout", "PACKAGES": "jax", "PATH": path}
    subprocess.run(["bash", "-c", STEPS[1]["run"]], env={**os.environ, **given}, check=True)
    assert calls.read_text().split()[-2:] == [installed, "jax"]
    assert ACTION["inputs"]["version"]["default"] == ""


def test_a_module_in_the_checkout_is_not_imported(checkout: Path) -> None:
    """A pull request that brings a `yaml.py` runs none of it."""
    (checkout / "yaml.py").write_text("open('ran', 'w').close()\nraise SystemExit('from the pull request')\n")
    done = run(checkout, REAL, FORK="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (checkout / "ran").exists()
