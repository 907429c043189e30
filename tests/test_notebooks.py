"""The notebooks run as they are, with the claims they make in their own asserts."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

NOTEBOOKS = sorted(Path(__file__).resolve().parents[1].joinpath("notebooks").glob("*.py"))


def test_there_are_notebooks() -> None:
    """An empty folder would make the test below pass without running anything."""
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_notebook_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every cell runs, every assert in it holds, and it shows something."""
    if "import jax\n" in path.read_text():
        pytest.importorskip("jax", reason="JAX is not installed")
    runpy.run_path(str(path))
    assert capsys.readouterr().out
