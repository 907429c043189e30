"""What a process has opened, and whether it is still so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from layoutproof.serving.watched import YOUNG, changed, stamp

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
OPENS = """
import json, sys
from layoutproof.serving.watched import Opened
watch = Opened([sys.argv[1]])
watch.begin()
import helper
try:
    import absent_module
except ImportError:
    pass
open("data.txt").read()
open("made.txt", "w").write("x")
open(sys.argv[1] + "/own.txt", "w").write("x")
open(sys.argv[1] + "/own.txt").read()
print(json.dumps([watch.told(), watch.told(), helper.VALUE]))
"""


def settled(*paths: Path) -> None:
    """The files were changed a while ago, for a file system that counts in milliseconds."""
    time.sleep(0.06)
    assert all(stamp(str(path)) != YOUNG for path in paths)


def seen_in(folder: Path) -> tuple[dict[str, Any], int]:
    """What a process opened that imports `helper`, and what it found there."""
    (folder / "own").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": ""}
    words = [sys.executable, "-c", OPENS, str(folder / "own")]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    seen, again, value = json.loads(done.stdout)
    assert again == {}
    return seen, value


def test_all_that_a_process_opened_is_noted_and_nothing_of_its_own(tmp_path: Path) -> None:
    """Modules, data, the folders in which it looked; not what it wrote, nor what lies in its own folder."""
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    (tmp_path / "data.txt").write_text("x")
    settled(tmp_path / "helper.py", tmp_path / "data.txt")
    seen, _ = seen_in(tmp_path)
    inside = {Path(path).name for path in seen if path.startswith(f"{tmp_path}{os.sep}")}
    assert inside >= {"helper.py", "data.txt"}
    assert not inside & {"made.txt", "own.txt"}
    assert str(tmp_path) in seen
    assert any(path.endswith("json/decoder.py") for path in seen)
    assert changed(seen) == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [("helper.py", "VALUE = 2\n"), ("data.txt", "y"), ("absent_module.py", ""), ("absent_module/__init__.py", "")],
)
def test_each_change_is_noticed(name: str, text: str, tmp_path: Path) -> None:
    """Also of the same size, with its old time; also of a module that was looked for in vain."""
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    (tmp_path / "data.txt").write_text("x")
    settled(tmp_path / "helper.py", tmp_path / "data.txt")
    seen, _ = seen_in(tmp_path)
    path = tmp_path / name
    before = path.stat() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if before is not None:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed(seen) != ""


def test_what_changes_nothing_is_not_noticed(tmp_path: Path) -> None:
    """Another file beside it that cannot be imported, and the compiled form of a module."""
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    (tmp_path / "data.txt").write_text("x")
    settled(tmp_path / "helper.py", tmp_path / "data.txt")
    seen, _ = seen_in(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "__pycache__").mkdir(exist_ok=True)
    assert changed(seen) == ""


def test_a_compiled_module_that_python_takes_for_current_is_not_believed(tmp_path: Path) -> None:
    """Its source was changed once more, within its second, and kept its size."""
    (tmp_path / "data.txt").write_text("x")
    helper = tmp_path / "helper.py"
    helper.write_text("VALUE = 1\n")
    before = helper.stat()
    plain = [sys.executable, "-c", "import helper; print(helper.VALUE)"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

    def value() -> str:
        return subprocess.run(plain, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    assert value() == "1\n"
    helper.write_text("VALUE = 2\n")
    os.utime(helper, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert value() == "1\n", "Python has changed: this guard is no longer needed"
    assert seen_in(tmp_path)[1] == 2


def test_a_file_that_changes_in_the_moment_in_which_it_is_opened_is_taken_for_changed(tmp_path: Path) -> None:
    """One more change may have the same time."""
    path = tmp_path / "a.py"
    path.write_text("")
    assert changed({str(path): stamp(str(path))}) == str(path)
    settled(path)
    assert changed({str(path): stamp(str(path))}) == ""
