"""What a process opens, heard from Python itself in a process of its own, since no hook can be taken away."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEARS = """
import json, os, sys
from layoutproof.core.opens import opening
heard = []
def hear(event, given):
    found = opening(event, given)
    if found is not None and found.path.startswith(sys.argv[1]):
        heard.append([os.path.relpath(found.path, sys.argv[1]), found.folder, found.reads, found.writes])
sys.addaudithook(hear)
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("open('a').close()", ["a", False, True, False]),
        ("open(b'a', 'rb').close()", ["a", False, True, False]),
        ("open('a', 'r+').close()", ["a", False, True, True]),
        ("open('a', 'a+').close()", ["a", False, True, True]),
        ("open('a', 'w').close()", ["a", False, False, True]),
        ("open('a', 'w+').close()", ["a", False, False, True]),
        ("open('b', 'x').close()", ["b", False, False, True]),
        ("os.close(os.open('a', os.O_RDONLY))", ["a", False, True, False]),
        ("os.close(os.open('a', os.O_WRONLY))", ["a", False, False, True]),
        ("os.listdir()", [".", True, True, False]),
        ("list(os.scandir(b'.'))", [".", True, True, False]),
        ("open(os.open('a', os.O_RDONLY)).close()", ["a", False, True, False]),
        (
            "import importlib.machinery as m\n"
            "try: m.ExtensionFileLoader('a', os.path.abspath('a')).create_module(m.ModuleSpec('a', None, origin='a'))\n"
            "except ImportError: pass",
            ["a", False, True, False],
        ),
    ],
)
def test_what_each_way_of_opening_reads_and_writes(code: str, expected: list[object], tmp_path: Path) -> None:
    """By path, descriptor, module of machine code; one entry each."""
    (tmp_path / "a").write_text("x")
    text = f"{HEARS}{code}\nprint(json.dumps(heard))"
    root = str(Path(__file__).resolve().parents[2])
    words = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {root!r})\n{text}", str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [expected]
