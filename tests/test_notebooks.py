"""The notebooks run from their first cell to their last, agree with their scripts, and check what readers answer.

`python -m tests.notebooks` makes them again after a change of a script or of what it shows.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbclient, of the extra [dev]")
pytest.importorskip("nbclient", reason="notebooks need nbclient, of the extra [dev]")
pytest.importorskip("jupytext", reason="notebooks need jupytext, of the extra [dev]")
pytest.importorskip("ipykernel", reason="notebooks need ipykernel, of the extra [dev]")

from tests.notebooks import FOLDER, cells_of, executed, scripts  # noqa: E402

pytestmark = pytest.mark.slow

NEEDS = {"03_pallas": "jax", "05_search": "jax", "06_a_program": "libtpu"}
"""What a notebook's program needs beside layoutproof. Their outputs name versions, so only what is run is compared."""
EXERCISES: dict[str, list[tuple[str, str, str]]] = {
    "01_one_function": [
        ("exercise_1", "5", "6"),
        ("exercise_2", "'i + N * j'", "'4 * j + i'"),
        ("exercise_3", "'i'", "'(i + j) // 8'"),
    ],
    "02_xla_tiles": [
        ("exercise_1", "'N % 8 == 0'", "'N % 4 == 0'"),
        ("exercise_2", "3, 5", "3, 2"),
        ("exercise_3", "128", "129"),
    ],
    "03_pallas": [
        ("exercise_1", "'xy'", "'y'"),
        ("exercise_2", "1000", "128"),
        ("exercise_3", "'7 - i'", "'i % 7'"),
    ],
    "04_axe_and_shardings": [
        ("exercise_1", "64", "65"),
        ("exercise_2", "4", "1"),
        ("exercise_3", '''"[{'x'}, {}]"''', '''"[{}, {'x'}]"'''),
    ],
    "05_search": [
        ("exercise_1", "200, 1000, 1000", "256, 1000, 1000"),
        ("exercise_2", "1024, 1024", "2048, 2048"),
        ("exercise_3", "384", "380"),
    ],
    "06_a_program": [
        ("exercise_1", "'N % 16 == 0'", "'N % 2 == 0'"),
        ("exercise_2", "8", "7"),
        ("exercise_3", "16", "12"),
    ],
}
"""Of each notebook: an exercise, an answer that is right, and one that is wrong in another way than the notebook's."""
NO_NETWORK = """
import socket
_connect = socket.socket.connect
def _at_home(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "localhost", "::1"):
        raise OSError(f"a notebook connects to {address}")
    return _connect(self, address)
socket.socket.connect = _at_home
"""


def stored(script: Path) -> Any:
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def test_there_are_six() -> None:
    """Each script has its notebook and each notebook its script and its exercises."""
    names = [script.stem for script in scripts()]
    assert names == sorted(EXERCISES)
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == names


@pytest.mark.parametrize("script", scripts(), ids=lambda p: p.stem)
def test_a_notebook_is_its_script(script: Path) -> None:
    """The same cells in the same order; what is stored is small and names no machine, no file of one run, no time."""
    book = stored(script)
    assert [(c.cell_type, c.source) for c in book.cells] == [(c.cell_type, c.source) for c in cells_of(script).cells]
    text = script.with_suffix(".ipynb").read_text()
    assert len(text) < 200_000
    assert not re.search(r"/(home|tmp|root|work|usr|opt|Users)/|ipykernel_\d|[\d.]+ (s|ms|seconds)\b", text)
    assert all(output.output_type != "error" for cell in book.cells for output in cell.get("outputs", []))
    first = next(cell for cell in book.cells if cell.cell_type == "code")
    assert any("image/svg+xml" in output.get("data", {}) for output in first.outputs)


@pytest.mark.parametrize("script", scripts(), ids=lambda p: p.stem)
def test_only_public_names(script: Path) -> None:
    """A reader can write all of it: layoutproof is imported as lp, and its names are those that it lists."""
    import layoutproof as lp

    tree = ast.parse(script.read_text())
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in [*node.names, *([ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else [])]
        if alias.name.startswith("layoutproof")
    ]
    assert imported == ["layoutproof"]
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "lp"}
    assert used <= set(lp.__all__)


@pytest.mark.commit
@pytest.mark.parametrize("script", scripts(), ids=lambda p: p.stem)
def test_a_notebook_runs_and_checks_its_exercises(script: Path) -> None:
    """Every cell runs without network and shows what is stored; right answers are accepted, wrong ones refused."""
    needed = NEEDS.get(script.stem)
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    tried = [
        f"assert {name}({right}).exit_code == 0, {name!r}\nassert {name}({wrong}).exit_code == 1, {name!r}"
        for name, right, wrong in EXERCISES[script.stem]
    ]
    book = executed(cells_of(script), more=tried, before=NO_NETWORK)
    if needed is None:
        assert [cell.get("outputs") for cell in book.cells] == [cell.get("outputs") for cell in stored(script).cells]
