"""The cache: the same answers as without it, and whatever happens to its files is no worse than having none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutproof.compiler import cache
from layoutproof.core.result import Verdict
from layoutproof.questions import cached
from layoutproof.questions.ask import ask as prove

KEY = ["ask", "injective", ["f32[3,5]{1,0}"], {}]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is kept, and in a folder of the test."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cached, "MIN_SECONDS_TO_CACHE", 0.0)


def files(folder: Path) -> list[Path]:
    """Every file that is kept."""
    return sorted(p for p in (folder / "cache").rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("name", "layouts", "options"),
    [
        ("injective", ["f32[3,5]{1,0:T(2,2)}"], {}),
        ("injective", [{"strided": "f32[3,5] strides (4,1)"}], {}),
        ("padding", ["f32[N,5]{1,0:T(8,128)}"], {"at_most": "2%"}),
        ("bitcast", ["f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}"], {"where": "b % 8 == 0"}),
        ("bitcast", ["f32[2,3]{1,0}", "f32[3,2]{0,1}"], {"permutation": (1, 0)}),
        ("injective", ["f32[0]{0}"], {}),
    ],
)
def test_an_answer_that_is_kept_is_the_same(
    name: str, layouts: list[str], options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every field, and nothing is proved a second time."""
    asked = prove(name, *layouts, **options)  # type: ignore[arg-type]
    first = cached.ask(name, *layouts, **options)
    assert len(files(tmp_path)) == 1

    def never(*_: object, **__: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr("layoutproof.questions.ask.ask", never)
    second = cached.ask(name, *layouts, **options)
    assert first == asked
    assert second == asked


def test_other_questions_are_other_entries(tmp_path: Path) -> None:
    """Layout, option, property and the tool itself are all in the key."""
    cached.ask("injective", "f32[3]{0}")
    cached.ask("injective", "f32[4]{0}")
    cached.ask("covers", "f32[3]{0}")
    cached.ask("injective", "f32[3]{0}", effort=2)
    assert len(files(tmp_path)) == 4


def test_another_tool_is_never_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another version wrote is not even looked at."""
    cache.put(KEY, 1)
    assert cache.get(KEY) == 1
    monkeypatch.setattr(cache, "tool", lambda: "0" * 32)
    assert cache.get(KEY) is None


def test_the_tool_is_its_files_and_its_solvers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the same files and libraries; another one when a file, the version or a solver is another one."""
    package, library = tmp_path / "package", tmp_path / "library"
    (package / "core").mkdir(parents=True)
    (package / "core" / "a.py").write_text("x = 1")
    (library / "islpy-2026.1.dist-info").mkdir(parents=True)
    monkeypatch.setattr("layoutproof.__file__", str(package / "__init__.py"))
    monkeypatch.setattr(sys, "path", [str(library), *sys.path])

    def tool() -> str:
        cache.tool.cache_clear()
        return cache.tool()

    first = tool()
    seen = {first}
    assert tool() == first
    (package / "core" / "a.py").write_text("x = 12")
    seen.add(tool())
    (library / "islpy-2026.1.dist-info").rename(library / "islpy-2026.2.dist-info")
    seen.add(tool())
    monkeypatch.setattr("layoutproof.__version__", "0.0.1")
    seen.add(tool())
    cache.tool.cache_clear()
    assert len(seen) == 4
    assert all(len(digest) == 32 and set(digest) <= set("0123456789abcdef") for digest in seen)


def flipped(data: bytes) -> bytes:
    """One bit of the middle changed."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize(
    "breakage",
    [
        lambda d: d[: len(d) // 2],
        flipped,
        lambda d: b"",
        lambda d: b"\xff" * 50,
        lambda d: d.replace(b"proved", b"proven"),
        lambda d: d.replace(b'"proved"', b'"refuted"'),
    ],
)
def test_a_broken_file_is_ignored(breakage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Cut, flipped, empty, edited: the question is asked again, and the answer is right."""
    cached.ask("injective", "f32[3,5]{1,0}")
    (path,) = files(tmp_path)
    path.write_bytes(breakage(path.read_bytes()))
    assert cached.ask("injective", "f32[3,5]{1,0}").verdict is Verdict.PROVED
    assert json.loads(path.read_bytes().partition(b"\n")[2])["value"]["verdict"] == "proved"


def test_an_entry_of_another_question_is_ignored(tmp_path: Path) -> None:
    """Also when somebody renamed files: the key is in them."""
    cache.put(["a"], 1)
    (one,) = files(tmp_path)
    cache.put(["b"], 2)
    (other,) = [p for p in files(tmp_path) if p != one]
    one.write_bytes(other.read_bytes())
    assert (cache.get(["a"]), cache.get(["b"])) == (None, 2)


def test_off_and_not_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off keeps nothing; a folder that cannot be made is no error."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "off")
    cache.put(KEY, 1)
    assert cache.get(KEY) is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "file"))
    cache.put(KEY, 1)
    assert cache.get(KEY) is None
    assert cached.ask("injective", "f32[3]{0}").verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("platform", "variable", "end"),
    [
        ("linux", "XDG_CACHE_HOME", "there/layoutproof"),
        ("win32", "LOCALAPPDATA", "there/layoutproof"),
        ("darwin", "HOME", "there/Library/Caches/layoutproof"),
    ],
)
def test_where_it_is(platform: str, variable: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each platform's convention."""
    monkeypatch.delenv("LAYOUTPROOF_CACHE")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path / "there"))
    assert cache.folder() == tmp_path / end


WRITER = """
import sys
from layoutproof.compiler import cache
cache.tool = lambda: "0" * 32  # so that whoever edits the package meanwhile does not matter
number, name = 0, sys.argv[1]
while True:
    cache.put(["shared", number % 50], {"number": number % 50, "text": "x" * 2000})
    number += 1
"""


def test_many_writers_and_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes write the same entries while this one reads, and are killed: whole entries only."""
    monkeypatch.setattr(cache, "tool", lambda: "0" * 32)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(k)]) for k in range(2)]
    try:
        end = time.monotonic() + 60
        while len(files(tmp_path)) < 50:
            assert time.monotonic() < end
            time.sleep(0.01)
        for _ in range(2000):
            kept = cache.get(["shared", 7])
            assert kept == {"number": 7, "text": "x" * 2000}
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
    for number in range(50):
        assert cache.get(["shared", number]) == {"number": number, "text": "x" * 2000}
    cache.put(["shared", 7], 8)
    assert cache.get(["shared", 7]) == 8


def test_what_others_left_is_forgotten_after_a_month(tmp_path: Path) -> None:
    """Only folders that are named as ours are, and only when nothing was added for long."""
    old, young, theirs = (tmp_path / "cache" / name for name in ("a" * 32, "b" * 32, "their things"))
    for folder in (old, young, theirs):
        folder.mkdir(parents=True)
    long_ago = time.time() - 40 * 86400
    os.utime(old, (long_ago, long_ago))
    os.utime(theirs, (long_ago, long_ago))
    cache.put(KEY, 1)
    assert (old.exists(), young.exists(), theirs.exists()) == (False, True, True)


def test_a_whole_run(tmp_path: Path) -> None:
    """Kept for the same files, made anew for others; what ends with 2 or depends on Python code is not kept."""
    spec = tmp_path / "a.yaml"
    spec.write_text("checks: []")
    made: list[int] = []

    def run(code: int) -> tuple[str, int]:
        def make() -> tuple[str, int]:
            made.append(code)
            return f"run {len(made)}", code

        return cache.remembered(cache.key_of_paths(["check"], [str(spec)]), make)

    assert [run(1), run(1)] == [("run 1", 1), ("run 1", 1)]
    spec.write_text("checks: [1]")
    assert [run(2), run(2)] == [("run 2", 2), ("run 3", 2)]
    assert run(0) == run(0)
    spec.write_text("kernels: [a.py]")
    assert cache.key_of_paths(["check"], [str(spec)]) is None
    assert cache.key_of_paths(["check"], [str(tmp_path / "none.yaml")]) is None
    assert run(0) != run(0)
