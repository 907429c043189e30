"""`.ci/nightly` runs what it is asked for, and its table says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / ".ci" / "nightly").exists(), reason="only a clone has it")


def nightly(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The script, with `echo` for the Python that runs the parts: a log is then the command line."""
    given = {**os.environ, "PYTHON": "echo", **environment}
    return subprocess.run(
        ["bash", ".ci/nightly", *words], cwd=ROOT, capture_output=True, text=True, env=given, timeout=120
    )


def test_named_parts_alone_run(tmp_path: Path) -> None:
    """Two parts, a hundredth of their questions: two rows, two logs, and the share in the headline."""
    done = nightly(str(tmp_path), "inverse", "z3-alone", SHARE="1")
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.splitlines()
    assert head.endswith(f"logs in {tmp_path}, 1 % of the questions")
    assert [row.split()[:2] for row in rows] == [["z3-alone", "passed"], ["inverse", "passed"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inverse.log", "z3-alone.log"]
    assert "benchmarks/inverse.py --questions 1000 --seed" in (tmp_path / "inverse.log").read_text()
    assert (tmp_path / "z3-alone.log").read_text().endswith(" 60\n")


def test_a_part_that_fails_fails_the_night(tmp_path: Path) -> None:
    done = nightly(str(tmp_path), "inverse", PYTHON="false")
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].split()[:3] == ["inverse", "FAILED", "(1)"]
    assert "of the questions" not in done.stdout


def test_a_part_that_is_none_is_refused(tmp_path: Path) -> None:
    """Before anything runs, with the names that there are."""
    done = nightly(str(tmp_path / "logs"), "inverse", "fuz")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no part is called fuz; there are: install random-examples" in done.stderr
    assert "z3-alone" in done.stderr
    assert "python-3.12" in done.stderr
    assert not (tmp_path / "logs").exists()
