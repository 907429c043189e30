"""Whatever takes a path or a text, given one that can be no path, or leads to no file: an error in words."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

TAKES: dict[str, Callable[[Any], object]] = {
    "audit": lp.audit,
    "check": lambda text: lp.check([text]),
    "check one": lp.check,
    "compile": lambda text: lp.compile(text, target="v5e"),
    "crosscheck": lambda text: lp.crosscheck(text, sources=["numpy"]),
    "gate old": lambda text: lp.gate(text, "folder"),
    "gate new": lambda text: lp.gate("folder", text),
    "init": lp.init,
    "kernels": lp.kernels,
    "search": lp.search,
    "why": lp.why,
}
NO_PATH = {
    "long": "a" * 5000,
    "long parts": "a/" * 3000,
    "long module": "a" * 5000 + ":f",
    "long file": "a" * 5000 + ".py:f",
    "NUL": "a\0b",
    "NUL in a file": "a\0b.yaml",
    "NUL in a module": "a\0b.py:f",
    "surrogate": "\ud800",
    "surrogate in a file": "\ud800.py:f",
    "surrogate in a spec": "\ud800.yaml",
    "below a file": "file/x",
    "pipe": "pipe",
    "pipe of YAML": "pipe.yaml",
    "socket": "socket",
    "device": "device",
    "link to itself": "loop",
    "link to nothing": "nowhere",
}
NO_TEXT = {"number": 5, "nothing": None}


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("pipe", "pipe.yaml"):
        os.mkfifo(name)
    for link, end in (("device", "/dev/zero"), ("loop", "loop"), ("nowhere", "gone")):
        os.symlink(end, link)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize("takes", TAKES)
@pytest.mark.parametrize("what", [*NO_PATH, *NO_TEXT])
def test_a_text_that_is_no_path_is_bad_input(takes: str, what: str) -> None:
    """Never an error of the system, and nothing is waited for."""
    if what in NO_TEXT and takes in ("crosscheck", "gate old", "gate new"):
        given: object = str(NO_TEXT[what])
    else:
        given = {**NO_PATH, **NO_TEXT}[what]
    try:
        answer = TAKES[takes](given)
    except lp.LayoutError as error:
        code = 2 if str(error) else -1
    else:
        # a file that cannot be read is a finding among those of others
        code = answer.exit_code  # type: ignore[attr-defined]
    # who has no compiler hears of that first
    assert code == (3 if takes == "compile" and what in NO_PATH and find_spec("libtpu") is None else 2)


@pytest.mark.usefixtures("_here")
def test_a_text_of_one_line_that_is_a_path_is_read() -> None:
    """The twin: what is a path stays one."""
    text = "HloModule m\nENTRY e {\n  ROOT p = f32[8,128]{1,0} parameter(0)\n}\n"
    Path("folder", "m.hlo").write_text(text)
    assert [lp.audit(given).exit_code for given in ("folder", "folder/m.hlo", Path("folder"), text)] == [0] * 4
