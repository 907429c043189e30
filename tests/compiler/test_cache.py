"""The cache: the same answers as without it, and whatever happens to its files is no worse than having none."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from layoutproof.cli.main import cli, run
from layoutproof.compiler import cache, kept
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.questions import cached
from layoutproof.questions.ask import ask as prove

pytestmark = pytest.mark.slow

KEY = ["ask", "injective", ["f32[3,5]{1,0}"], {}]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is kept, and in a folder of the test."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    for variable in ("HOME", "XDG_STATE_HOME", "APPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.delenv("LAYOUTPROOF_CACHE_KEY")
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


def test_every_field_of_an_answer_is_kept() -> None:
    """A fix, an assumption, a hint or a severity of one that is kept was lost."""
    by_type = {"str": "said", "int": 7, "bool": True, "tuple[str, ...]": ("N % 8 == 0",), "Verdict": Verdict.UNKNOWN}
    given: dict[str, Any] = {
        f.name: by_type[str(f.type)] for f in dataclasses.fields(Finding) if str(f.type) in by_type
    }
    inner = Finding(**given)
    given |= {
        "counterexample": {"sizes": {"N": 3}, "first": (0, 4)},
        "figures": {"per_dimension": [{"dimensions": [0]}], "share": 0.5, "none": None},
        "follows": (inner,),
    }
    assert set(given) == {f.name for f in dataclasses.fields(Finding)}
    held = kept.classes(Finding)
    entry = json.loads(json.dumps(kept.as_json(Finding(**given), held)))
    assert kept.from_json(entry, held) == Finding(**given)
    assert kept.from_json(entry, {}) is None


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
    """The same for the same files and libraries, another one for others; an edit may keep a file's size and time."""
    package, library = tmp_path / "package", tmp_path / "library"
    (package / "core").mkdir(parents=True)
    (package / "core" / "a.py").write_text("x = 1")
    for name in ("islpy-2026.1", "libtpu-0.0.51"):
        (library / f"{name}.dist-info").mkdir(parents=True)
    # a pipe that nobody writes to is no list of plugins
    os.mkfifo(library / "libtpu-0.0.51.dist-info" / "entry_points.txt")
    monkeypatch.setattr("layoutproof.__file__", str(package / "__init__.py"))
    monkeypatch.setattr(sys, "path", [str(library), *sys.path])

    def tool() -> str:
        cache.tool.cache_clear()
        return cache.tool()

    first = tool()
    seen = {first}
    assert tool() == first
    time_of = (package / "core" / "a.py").stat()
    (package / "core" / "a.py").write_text("x = 2")
    os.utime(package / "core" / "a.py", ns=(time_of.st_atime_ns, time_of.st_mtime_ns))
    seen.add(tool())
    for before, after in (("islpy-2026.1", "islpy-2026.2"), ("libtpu-0.0.51", "libtpu-0.0.52")):
        (library / f"{before}.dist-info").rename(library / f"{after}.dist-info")
        seen.add(tool())
    monkeypatch.setattr("layoutproof.__version__", "0.0.1")
    seen.add(tool())
    cache.tool.cache_clear()
    assert len(seen) == 5
    assert all(len(digest) == 32 and set(digest) <= set("0123456789abcdef") for digest in seen)


def flipped(data: bytes) -> bytes:
    """One bit of the middle changed."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def signed(data: bytes, code: Callable[[bytes], str]) -> bytes:
    """An entry edited, with a code that can be made without the secret."""
    body = data.partition(b"\n")[2].replace(b'"proved"', b'"refuted"')
    return code(body).encode() + b"\n" + body


@pytest.mark.parametrize(
    "breakage",
    [
        lambda d: d[: len(d) // 2],
        flipped,
        lambda d: b"",
        lambda d: b"\xff" * 50,
        lambda d: d.replace(b"proved", b"proven"),
        lambda d: d.replace(b'"proved"', b'"refuted"'),
        lambda d: signed(d, lambda body: hashlib.sha256(body).hexdigest()),
        lambda d: signed(d, lambda body: hmac.new(b"", body, "sha256").hexdigest()),
        lambda d: signed(d, lambda body: ""),
    ],
)
def test_a_broken_file_is_ignored(breakage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Cut, flipped, empty, edited, also with a code made anew: it is asked again, and the answer is right."""
    cached.ask("injective", "f32[3,5]{1,0}")
    (path,) = files(tmp_path)
    path.write_bytes(breakage(path.read_bytes()))
    assert cached.ask("injective", "f32[3,5]{1,0}").verdict is Verdict.PROVED
    assert json.loads(path.read_bytes().partition(b"\n")[2])["value"]["Finding"]["verdict"] == {"Verdict": "proved"}


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
from layoutproof.compiler import cache, kept
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


def test_the_secret_of_whoever_makes_it_first_stays() -> None:
    """Two processes start at once and find none: what the first one wrote is believed by both, and afterwards."""
    cache.put(KEY, 1)
    path = next(Path(os.environ["XDG_STATE_HOME"]).rglob("cache.key"))
    first = path.read_bytes()
    # the other one looked before the first had made it
    cache._make_secret(path)
    assert path.read_bytes() == first
    assert [each.name for each in path.parent.iterdir()] == ["cache.key"]
    assert cache.get(KEY) == 1


def test_a_secret_is_made_without_hard_links_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: str, target: Path) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", link)
    cache.put(KEY, 1)
    assert cache.get(KEY) == 1
    assert len(next(Path(os.environ["XDG_STATE_HOME"]).rglob("cache.key")).read_bytes()) == 32


def test_what_others_left_is_forgotten_after_a_month(tmp_path: Path) -> None:
    """Only folders that are named as ours are, and only when nothing was added for long."""
    old, young, theirs = (tmp_path / "cache" / name for name in ("a" * 32, "b" * 32, "their things"))
    for folder in (old, young, theirs):
        folder.mkdir(parents=True)
    (tmp_path / "cache").chmod(0o700)
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

        return cache.remembered(lambda: cache.key_of_paths(["check"], [str(spec)]), make)

    assert [run(1), run(1)] == [("run 1", 1), ("run 1", 1)]
    spec.write_text("checks: [1]")
    assert [run(2), run(2)] == [("run 2", 2), ("run 3", 2)]
    assert run(0) == run(0)
    spec.write_text("kernels: [a.py]")
    assert cache.key_of_paths(["check"], [str(spec)]) is None
    assert cache.key_of_paths(["check"], [str(tmp_path / "none.yaml")]) is None
    assert run(0) != run(0)


def test_a_file_that_is_written_meanwhile(tmp_path: Path) -> None:
    """What was proved of the new text is not kept as an answer about the old one; without an edit it is kept."""
    spec = tmp_path / "a.yaml"
    spec.write_text("checks: []")

    def key() -> list[object] | None:
        return cache.key_of_paths(["check"], [str(spec)])

    def edited() -> tuple[str, int]:
        spec.write_text("checks: [1]")
        return "of the new text", 0

    assert cache.remembered(key, edited)[0] == "of the new text"
    spec.write_text("checks: []")
    assert cache.remembered(key, lambda: ("of the old text", 1))[0] == "of the old text"
    assert cache.remembered(key, lambda: ("anew", 1))[0] == "of the old text"


def plants(entry: Path, elsewhere: Path) -> dict[str, Callable[[], object]]:
    """What may lie where an entry would. elsewhere: the entry itself."""

    def bound() -> None:
        with contextlib.chdir(entry.parent), socket.socket(socket.AF_UNIX) as made:
            made.bind("s")
        (entry.parent / "s").rename(entry)

    def endless() -> None:
        with entry.open("wb") as stream:
            stream.truncate(1 << 40)

    def owned() -> None:
        shutil.copyfile(elsewhere, entry)
        entry.chmod(0o666)

    return {
        "pipe": lambda: os.mkfifo(entry),
        "socket": bound,
        "device": lambda: entry.symlink_to("/dev/zero"),
        "link": lambda: entry.symlink_to(elsewhere),
        "folder": entry.mkdir,
        "huge": endless,
        "of others": owned,
        "nested": lambda: entry.write_bytes(b"0" * 64 + b"\n" + b"[" * 1_000_000),
    }


@pytest.mark.parametrize("what", list(plants(Path(), Path())))
def test_what_is_no_file_of_ours_is_no_entry(what: str, tmp_path: Path) -> None:
    """A miss at once; where it can be replaced the next answer is kept there."""
    cache.put(KEY, 1)
    (entry,) = files(tmp_path)
    entry.rename(tmp_path / "entry")
    plants(entry, tmp_path / "entry")[what]()
    assert cache.get(KEY) is None
    cache.put(KEY, 2)
    assert cache.get(KEY) == (None if what == "folder" else 2)


def nested(deep: int) -> object:
    """A list in a list, so often."""
    value: object = 0
    for _ in range(deep):
        value = [value]
    return value


def test_what_is_too_deep_to_be_kept_is_not_kept() -> None:
    """Neither as a key nor as a value; nothing is raised."""
    cache.put(KEY, nested(100_000))
    cache.put(nested(100_000), 1)
    assert (cache.get(KEY), cache.get(nested(100_000))) == (None, None)


def test_everything_kept_is_of_the_user_alone(tmp_path: Path) -> None:
    """Folders 0700, files 0600, the key with them, whatever the umask; the key is no part of the folder."""
    before = os.umask(0)
    try:
        cache.put(KEY, 1)
    finally:
        os.umask(before)
    (entry,) = files(tmp_path)
    key = next((tmp_path / "home").rglob("cache.key"))
    assert len(key.read_bytes()) == 32
    made = [tmp_path / "cache", entry.parent.parent, entry.parent, entry, key.parent, key]
    assert [oct(stat.S_IMODE(path.stat().st_mode)) for path in made] == [*["0o700"] * 3, "0o600", "0o700", "0o600"]
    assert cache.refused() == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda kept, key: kept.chmod(0o777), "cache: others may read or write it, by its mode 777: `chmod 700` it"),
        (lambda kept, key: kept.chmod(0o750), "by its mode 750"),
        (lambda kept, key: (kept.rename(key.parent / "x"), kept.symlink_to(key.parent / "x")), "cache: it is a link"),
        (lambda kept, key: (shutil.rmtree(kept), kept.write_text("")), "cache: it is no folder"),
        (lambda kept, key: (key.unlink(), key.symlink_to("/dev/zero")), "cache.key: it is a link"),
        (lambda kept, key: (key.unlink(), os.mkfifo(key, 0o600)), "cache.key: a pipe, not a file"),
        (lambda kept, key: key.write_bytes(b"short"), "cache.key: not a key of 32 bytes"),
        (lambda kept, key: key.chmod(0o640), "cache.key: others may read or write it, by its mode 640: `chmod 600`"),
        (lambda kept, key: key.parent.chmod(0o777), "by its mode 777"),
    ],
)
def test_what_others_have_a_hand_in_is_refused(
    change: Callable[[Path, Path], object], why: str, tmp_path: Path
) -> None:
    """One reason, in words; nothing is believed and nothing is kept."""
    cache.put(KEY, 1)
    kept, key = tmp_path / "cache", next((tmp_path / "home").rglob("cache.key"))
    kept.chmod(0o700)
    change(kept, key)
    cache._secret_in.cache_clear()
    assert why in cache.refused()
    assert "\n" not in cache.refused()
    seen = files(tmp_path)
    assert cache.get(KEY) is None
    cache.put(["more"], 2)
    assert files(tmp_path) == seen


def test_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is closed to everybody else."""
    cache.put(KEY, 1)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "it belongs to another user, number" in cache.refused()
    assert cache.get(KEY) is None


def test_the_key_is_not_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may write the entries would have it too."""
    cache.put(KEY, 1)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(next((tmp_path / "home").rglob("cache.key")).parent))
    assert "lies in the folder itself" in cache.refused()
    assert cache.get(KEY) is None


def test_a_restored_folder_is_believed_by_who_has_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has another one, or none, as a fork, can neither use nor add to what is kept."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE_KEY", "a" * 64)
    cache.put(KEY, 1)
    assert cache.get(KEY) == 1
    for other in ("b" * 64, ""):
        monkeypatch.setenv("LAYOUTPROOF_CACHE_KEY", other)
        assert cache.get(KEY) is None
    cache.put(KEY, 2)
    monkeypatch.setenv("LAYOUTPROOF_CACHE_KEY", "a" * 64)
    assert cache.get(KEY) is None
    monkeypatch.setenv("LAYOUTPROOF_CACHE_KEY", "secret")
    assert "has 6 characters, and a secret needs 32" in cache.refused()
    assert cache.get(KEY) is None


def test_an_entry_of_another_tool_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when somebody moves it to where this tool looks: its own secret is in it, and the other tool."""
    now = cache.tool()
    monkeypatch.setattr(cache, "tool", lambda: "0" * 32)
    cache.put(KEY, "wrong")
    (old,) = files(tmp_path)
    monkeypatch.setattr(cache, "tool", lambda: now)
    cache.put(KEY, "right")
    (new,) = [path for path in files(tmp_path) if path != old]
    shutil.copyfile(old, new)
    assert cache.get(KEY) is None


@pytest.mark.parametrize("text", ['"tr\\x61ce": [a.py]', '"tr\\\n  ace": [a.py]', '"ker\\u006eels": [a.py]'])
def test_words_spelled_by_escapes(text: str) -> None:
    """YAML's quotes know more than one spelling of a word that names code."""
    assert cache.speaks_of_code(text.encode())
    assert cache.speaks_of_code("checks: []".encode("utf-16"))
    assert not cache.speaks_of_code(b"checks: []")


def test_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """For one command: nothing is kept, and nothing that was kept is believed; the next one keeps again."""
    (tmp_path / "a.yaml").write_text("source: x\nchecks:\n  - injective: f32[3]{0}\n")
    words = ["check", str(tmp_path / "a.yaml")]
    assert [run([*words, "--no-cache"]), files(tmp_path)] == [0, []]
    assert run(words) == 0
    kept = files(tmp_path)
    assert kept
    capsys.readouterr()
    for options, said in (([], True), (["--no-cache"], False), ([], True)):
        assert run([*words, *options]) == 0
        assert ("nothing changed since" in capsys.readouterr().out) is said
    (tmp_path / "cache").chmod(0o777)
    assert run(words) == 0
    shown = capsys.readouterr()
    assert "nothing changed" not in shown.out
    assert len(shown.err.splitlines()) == 1
    assert f"no answer is kept or believed: {tmp_path / 'cache'}: others may" in shown.err
    assert run([*words, "--no-cache"]) == 0
    assert capsys.readouterr().err == ""


def test_each_command_that_keeps_answers_can_do_without() -> None:
    """Those whose work reaches `questions.cached` or a compiler's answers."""
    for name in ("check", "compile", "gate", "hlo", "kernels", "search", "why"):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert any("--no-cache" in parameter.opts for parameter in command.params), name
