"""Answers do not depend on hash seeds, threads, the order of questions or what else the machine does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import stable

pytestmark = pytest.mark.slow

COMMAND = Path(__file__).parents[2] / "benchmarks" / "stable.py"


def test_a_few_runs() -> None:
    """Processes with other hash seeds, that ask in another order from eight threads, beside one that burns time."""
    options = ("--runs", "3", "--questions", "25", "--no-bodies", "--busy", "1")
    done = subprocess.run([sys.executable, str(COMMAND), *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("3 runs of 25 questions (20 layouts, 5 kernels), 0 answers differ, ")


def test_an_answer_that_differs_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole answers are compared: another reason alone is a difference, shown once with both."""
    said = ({"layouts/0": "proved", "kernels/4": "unknown (5 steps)"}, {"layouts/0": "proved", "kernels/4": "unknown"})
    monkeypatch.setattr(stable, "in_a_process", lambda options, run: said[min(run, 1)])
    monkeypatch.setattr(sys, "argv", ["stable.py", "--runs", "4", "--busy", "0"])
    assert stable.main() == 1
    shown = capsys.readouterr().out
    assert "kernels/4 of seed 1, run 1:\n  unknown (5 steps)\n  unknown\n" in shown
    assert shown.count("unknown (5 steps)") == 1
    assert "4 runs of 2 questions (1 layouts, 1 kernels), 1 answers differ" in shown
