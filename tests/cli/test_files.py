"""Files that are none, that never end, or that are larger than anything real: each command says so, at once."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.core import files
from layoutproof.core.errors import LayoutError
from tests import said
from tests.cli.in_one_process import commands
from tests.hlo.dumps import SMALL

pytestmark = pytest.mark.slow

GOOD = "source: here\nchecks:\n  - injective: 'f32[3,5]{1,0:T(2,2)}'\n"
SEARCH = "search: matmul\nkernel: {}\n"
POSIX = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no named pipes")


def _sparse(path: Path, size: int = 700 << 20) -> None:
    with path.open("wb") as stream:
        stream.truncate(size)


@POSIX
def test_no_door_waits_for_a_pipe_or_reads_what_is_too_large(tmp_path: Path) -> None:
    """Every command that takes a file, on a pipe, a device, a link to itself and 700 MB of nothing: told so, exit 2."""
    for name in ("p.yaml", "p.txt", "p.mlir", "p.json", "p.py"):
        os.mkfifo(tmp_path / name)
    for name in ("b.yaml", "b.txt", "b.json", "b.py"):
        _sparse(tmp_path / name)
    (tmp_path / "l.yaml").symlink_to("l.yaml")
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "search.yaml").write_text("search: s\ntrace: {function: 'm:f'}\n")
    asked = {
        "a pipe, not a file": (
            *(["check", "p.yaml"], ["hlo", "p.txt"], ["search", "p.yaml"], ["gate", "p.yaml", "good.yaml"]),
            *(["kernels", "p.txt"], ["kernels", "p.mlir"], ["kernels", "p.yaml"], ["kernels", "p.py:f"]),
            *(["gate", "p.txt", "p.txt"], ["search", "search.yaml", "--prune", "p.json"]),
        ),
        "a device, not a file": (
            *(["check", "/dev/zero"], ["hlo", "/dev/zero"], ["search", "/dev/zero"]),
            ["gate", "good.yaml", "/dev/zero"],
        ),
        "symbolic link": (["check", "l.yaml"], ["search", "l.yaml"], ["hlo", "l.yaml"], ["gate", "l.yaml", "l.yaml"]),
        "larger than": (
            *(["check", "b.yaml"], ["hlo", "b.txt"], ["search", "b.yaml"], ["gate", "b.txt", "b.txt"]),
            *(["gate", "good.yaml", "b.yaml"], ["kernels", "b.txt"], ["kernels", "b.py:f"]),
            ["search", "search.yaml", "--prune", "b.json"],
        ),
    }
    answers, peak = commands(tmp_path, *(line for lines in asked.values() for line in lines))
    words = [word for word, lines in asked.items() for _ in lines]
    for word, answer in zip(words, answers, strict=True):
        assert answer.code == 2, answer
        assert word in answer.out + answer.err
        assert "bug in layoutproof" not in answer.out + answer.err
    assert peak < 300  # MiB; what was read before the size was looked at took 737


@POSIX
def test_what_cannot_be_read_in_a_folder_is_told_and_hides_nothing(tmp_path: Path) -> None:
    """A pipe, a sparse file and a link that leads nowhere beside good files: each is an error, the good ones judged."""
    inside = tmp_path / "d"
    inside.mkdir()
    (inside / "good.yaml").write_text(GOOD)
    (inside / "good.txt").write_text(SMALL)
    os.mkfifo(inside / "p.yaml")
    os.mkfifo(inside / "p.hlo")
    _sparse(inside / "b.yml")
    (inside / "gone.txt").symlink_to("nowhere")
    (checked, audited, gated), _ = commands(tmp_path, ["check", "d"], ["hlo", "d"], ["gate", "d", "d"])
    assert checked.code == audited.code == gated.code == 2
    assert "1 claim as stated: 1 proved; 2 NOT readable; in 3 files" in checked.out
    assert "d/p.yaml" in checked.out
    assert "d/b.yml" in checked.out
    assert "d/good.txt" in audited.out
    assert "dump   d/p.hlo\n  because  a pipe, not a file" in audited.out
    assert "dump   d/gone.txt\n  because  No such file" in audited.out
    assert "3 findings in 5 files: 0 denied, 3 error" in gated.out


@POSIX
def test_config_and_lock_files_are_files(tmp_path: Path) -> None:
    """A pipe in the place of pyproject.toml, and of the lock file, is told; and a lock is not written of a pipe."""
    (tmp_path / "good.yaml").write_text(GOOD)
    os.mkfifo(tmp_path / "layoutproof.lock")
    (locked,), _ = commands(tmp_path, ["gate"])
    os.mkfifo(tmp_path / "pyproject.toml")
    (configured,), _ = commands(tmp_path, ["gate", "good.yaml", "good.yaml"])
    os.remove(tmp_path / "layoutproof.lock")
    os.mkfifo(tmp_path / "p.yaml")
    (written,), _ = commands(tmp_path, ["gate", "--lock", "p.yaml"])
    assert (locked.code, locked.err) == (2, "layoutproof.lock: a pipe, not a file\n")
    assert configured.code == 2
    assert "pyproject.toml: a pipe, not a file" in configured.err
    assert (written.code, written.err) == (2, "p.yaml: a pipe, not a file\n")
    assert not (tmp_path / "layoutproof.lock").exists()


def test_links_in_circles_between_folders_end(tmp_path: Path) -> None:
    """A folder that links to itself is looked through once."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "again").symlink_to(tmp_path / "d", target_is_directory=True)
    (tmp_path / "d" / "good.yaml").write_text(GOOD)
    (checked, gated), _ = commands(tmp_path, ["check", "d"], ["gate", "d", "d"])
    assert checked.code == 0
    assert checked.out.startswith("1 claim as stated: 1 proved; ")
    assert gated.code == 0
    assert "in 1 file" in gated.out


def test_a_dump_is_read_as_it_comes(tmp_path: Path) -> None:
    """Packed, with a mark of UTF-8 or UTF-16, and from standard input: the same audit, and no change for the gate."""
    plain = SMALL
    forms = {
        "plain.txt": plain.encode(),
        "marked.txt": b"\xef\xbb\xbf" + plain.encode(),
        "wide.txt": plain.encode("utf-16"),
        "packed.hlo.gz": gzip.compress(plain.encode()),
        "both.txt.gz": gzip.compress(b"\xef\xbb\xbf" + plain.encode()),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
    audits, _ = commands(tmp_path, *(["hlo", name] for name in forms))
    first = audits[0]
    assert (first.code, "plain.txt: 1 of 1 bitcast proved" in first.out) == (0, True)
    for name, answer in zip(forms, audits, strict=True):
        assert answer == (first.code, first.out.replace("plain.txt", name), first.err)
    gated, _ = commands(tmp_path, *(["gate", "plain.txt", name] for name in forms))
    assert [answer.code for answer in gated] == [0] * len(forms)
    assert {answer.out.partition(": ")[2] for answer in gated} == {"no change in 1 file\n"}
    for name in ("plain.txt", "packed.hlo.gz"):
        command = [sys.executable, "-m", "layoutproof", "hlo", "-"]
        done = subprocess.run(command, input=forms[name], capture_output=True, check=False, timeout=60)
        assert done.returncode == 0
        assert done.stdout.decode() == first.out.replace("plain.txt", "-")


def test_a_packed_dump_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 kB that unpack to 100 MB, and a packed file that was cut: told, and what came before is audited."""
    with gzip.open(tmp_path / "bomb.txt.gz", "wb") as stream:
        for _ in range(100):
            stream.write(b"\0" * (1 << 20))
    many = "".join(SMALL.replace("HloModule small", f"HloModule small{k}") for k in range(100))
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(many.encode(), compresslevel=0)[:-20])
    asked = [[command, name] for name in ("bomb.txt.gz", "cut.txt.gz") for command in ("hlo", "kernels")]
    answers, peak = commands(tmp_path, *asked)
    assert [answer.code for answer in answers] == [2] * 4
    assert "a line of more than 32 MiB" in answers[0].out
    assert "not a whole file" in answers[2].out
    assert "98 programs" in answers[2].out
    assert peak < 300
    monkeypatch.setattr(files, "MAX_TEXT", 1000)
    (tmp_path / "lines.txt.gz").write_bytes(gzip.compress(b"\n" * 2000))
    with pytest.raises(LayoutError, match="larger than"), files.lines(tmp_path / "lines.txt.gz") as text:
        list(text)
    with pytest.raises(LayoutError, match="larger than 1 MiB"):
        files.unpacked(gzip.compress(b"\0" * 3_000_000), 1 << 20)


def test_an_endless_text_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are counted, not only bytes: of short ones there are too many long before the text is too large. What came
    before is audited, and a text within the bound is read to its end."""
    few = "import layoutproof.core.files as f; f.MAX_LINES = 1000; from layoutproof.cli.main import main; main()"
    command = f"yes | {shlex.quote(sys.executable)} -c {shlex.quote(few)} hlo -"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert "more than 1,000 lines" in done.stdout + done.stderr
    monkeypatch.setattr(files, "MAX_LINES", 1000)
    found = lp.audit(SMALL + "\n" * 1000)
    assert found.exit_code == 2
    assert "more than 1,000 lines" in str(found)
    assert "1 program" in str(found)
    assert "more than" not in str(lp.audit(SMALL + "\n" * 900))


@pytest.mark.parametrize("pack", [False, True])
def test_a_flood_of_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: bool) -> None:
    """What packs best, line ends alone, has a bound of its own, packed or not; as many as that are read."""
    monkeypatch.setattr(files, "MAX_LINES", 1000)
    path = tmp_path / "a.txt.gz"
    for count in (1000, 1001):
        path.write_bytes(gzip.compress(b"\n" * count) if pack else b"\n" * count)
        if count == 1000:
            assert len(files.unpacked(path.read_bytes())) == count
            with files.lines(path) as text:
                assert len(list(text)) == count
            continue
        with pytest.raises(LayoutError, match="more than 1,000 lines"):
            files.unpacked(path.read_bytes())
        with pytest.raises(LayoutError, match="more than 1,000 lines"), files.lines(path) as text:
            list(text)


def test_a_file_for_another_command_is_told_which(tmp_path: Path) -> None:
    """A search file given to check, and a spec file given to search: one line, with the command that takes it."""
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "search.yaml").write_text(SEARCH)
    (checked, searched), _ = commands(tmp_path, ["check", "search.yaml"], ["search", "good.yaml"])
    assert checked.code == searched.code == 2
    assert "search.yaml:1:1" in checked.out
    assert said.stretch("specs.search_file", file="search.yaml") in checked.out
    assert searched.err == (
        "good.yaml:2:1: a spec file: it makes claims and states no problem; "
        "prove them with: layoutproof check good.yaml\n"
    )


def test_a_file_without_checks_is_for_the_gate_and_never_green(tmp_path: Path) -> None:
    """`check` says that nothing is asked and ends with 3, beside green files too; the gate compares what it states."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    for folder, order in (("old", "1,0"), ("new", "0,1")):
        (tmp_path / folder / "a.yaml").write_text(f"layouts:\n  x: f32[3,5]{{{order}}}\n")
    (tmp_path / "new" / "b.yaml").write_text("checks:\n  - injective: f32[8]{0}\n")
    (tmp_path / "empty.yaml").write_text("checks: []\n")
    (alone, beside, same, moved, empty), _ = commands(
        tmp_path,
        *(["check", "old"], ["check", "new", "--json"], ["gate", "old", "old"], ["gate", "old", "new"]),
        ["check", "empty.yaml"],
    )
    assert (alone.code, said.stretch("specs.file_without_checks") in alone.out) == (3, True)
    assert "stated and never asked, so nothing is proved of it: layout x (old/a.yaml:2)" in alone.out
    found = json.loads(beside.out)
    assert (beside.code, found["summary"]["proved"]) == (3, 1)
    assert (same.code, "no change" in same.out) == (0, True)
    assert (moved.code, "moved" in moved.out) == (1, True)
    assert empty.code == 2
