"""The folder in which answers are kept, in the hands of somebody else: no answer of theirs is ever given."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.attacks.room import Untried, layoutproof

NIGHT = ("entry_of_a_fork", "moved_entry", "no_file_as_entry")
"""Each is many processes; `tests/compiler/test_cache.py` tries the same in one."""
FALSE = "source: x\nchecks:\n  - injective: f32[3,5] strides (4,1)\n"
"""A claim that does not hold."""
PROVED = [json.dumps([["1 claim as stated: 1 proved"], "1 claim as stated: 1 proved", ""]), 0]
"""What `check` would have kept of it if it held."""


def edited_entry(room: Path) -> str:
    """An entry is edited to say "1 proved" of what is refuted, with a checksum made anew and with its old code."""
    entry = _kept(room)
    body = json.loads(entry.read_bytes().partition(b"\n")[2])
    forged = json.dumps({**body, "value": PROVED}).encode()
    said = ""
    for code in (hashlib.sha256(forged).hexdigest(), entry.read_bytes().partition(b"\n")[0].decode()):
        entry.write_bytes(code.encode() + b"\n" + forged)
        said += _wrong(room, 1)
    return said


def entry_of_a_fork(room: Path) -> str:
    """A cache that a fork filled, and edited with a secret of its own, is restored into a run of the main branch."""
    fork = {"LAYOUTPROOF_CACHE_KEY": "a" * 64, "XDG_STATE_HOME": str(room / "state of the fork")}
    entry = _kept(room, fork)
    body = json.loads(entry.read_bytes().partition(b"\n")[2])
    forged = json.dumps({**body, "value": PROVED}).encode()
    secret = hashlib.sha256(b"a" * 64).digest()
    code = hmac.new(secret, b"layoutproof answer\n" + forged, hashlib.sha256).hexdigest()
    entry.write_bytes(code.encode() + b"\n" + forged)
    if _check(room, fork).returncode != 0:
        return "the attack itself is wrong: who has the secret is not believed"
    main = _wrong(room, 1, {"LAYOUTPROOF_CACHE_KEY": "b" * 64})
    return main + _wrong(room, 1)


def moved_entry(room: Path) -> str:
    """The entry of a claim that holds is put where that of another belongs."""
    entry = _kept(room)
    (room / "specs" / "a.yaml").write_text(FALSE.replace("(4,1)", "(5,1)"))
    right = _check(room)
    (other,) = [path for path in _entries(room) if path != entry]
    (room / "specs" / "a.yaml").write_text(FALSE)
    shutil.copyfile(other, entry)
    return _wrong(room, 1) or ("" if right.returncode == 0 else f"exit {right.returncode} of a claim that holds")


def folder_of_others(room: Path) -> str:
    """The folder is writable by everybody, a link, or belongs to another user: it is refused with one line."""
    entry = _kept(room)
    kept, before = room / "kept", entry.read_bytes()
    said = ""
    kept.chmod(0o777)
    said += _refused(room, "by its mode 777") + ("" if entry.read_bytes() == before else "an entry was written\n")
    kept.chmod(0o700)
    kept.rename(room / "elsewhere")
    kept.symlink_to(room / "elsewhere")
    said += _refused(room, "it is a link")
    kept.unlink()
    (room / "elsewhere").rename(kept)
    if os.geteuid() == 0:
        os.chown(kept, 12345, -1)
        said += _refused(room, "it belongs to another user")
        os.chown(kept, 0, -1)
    key = next((room / "state").rglob("cache.key"))
    key.chmod(0o644)
    return said + _refused(room, "by its mode 644")


def no_file_as_entry(room: Path) -> str:
    """Where an entry would be lies a pipe, a socket, a device, a link, a folder, a huge file, or nested text."""
    entry = _kept(room)

    def listening() -> None:
        here = os.getcwd()
        os.chdir(entry.parent)
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(entry.name[-20:])
            os.rename(entry.name[-20:], entry.name)
        finally:
            os.chdir(here)

    def huge() -> None:
        with entry.open("wb") as stream:
            stream.truncate(1 << 40)

    def nested() -> None:
        body = b"[" * 1_000_000
        entry.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)

    plants: dict[str, Callable[[], object]] = {
        "a pipe": lambda: os.mkfifo(entry),
        "a socket": listening,
        "a device": lambda: entry.symlink_to("/dev/zero"),
        "a link": lambda: entry.symlink_to(room / "copy"),
        "a folder": entry.mkdir,
        "a huge file": huge,
        "nested text": nested,
    }
    said = ""
    for name, plant in plants.items():
        data = entry.read_bytes() if entry.is_file() and not entry.is_symlink() else b""
        (room / "copy").write_bytes(data)
        entry.unlink(missing_ok=True)
        plant()
        said += "".join(f"{name}: {line}\n" for line in _wrong(room, 1).splitlines())
        if entry.is_dir():
            entry.rmdir()
    return said


def _kept(room: Path, more: Mapping[str, str] | None = None) -> Path:
    """The entry that a first run leaves, of a claim that does not hold."""
    (room / "specs").mkdir()
    (room / "specs" / "a.yaml").write_text(FALSE)
    done = _check(room, more)
    found = _entries(room)
    if done.returncode != 1 or len(found) != 1:
        raise Untried(f"nothing was kept: {done.stdout}{done.stderr}")
    return found[0]


def _entries(room: Path) -> list[Path]:
    """Those of whole runs; an answer to one question is kept only where it took long, and is removed."""
    found = []
    for path in sorted((room / "kept").rglob("*.json")):
        if isinstance(json.loads(path.read_bytes().partition(b"\n")[2])["value"], list):
            found.append(path)
        else:
            path.unlink()
    return found


def _check(room: Path, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    own = {"LAYOUTPROOF_CACHE": str(room / "kept"), "XDG_STATE_HOME": str(room / "state"), "HOME": str(room)}
    return layoutproof(room, "check", "specs", seconds=60.0, more={**own, "LAYOUTPROOF_CACHE_KEY": "", **(more or {})})


def _wrong(room: Path, code: int, more: Mapping[str, str] | None = None) -> str:
    """What is wrong with a run that has to prove anew, "" for nothing."""
    done = _check(room, more)
    quiet = done.stderr == "" and "NOT as stated" in done.stdout and "nothing changed" not in done.stdout
    return "" if done.returncode == code and quiet else f"exit {done.returncode}: {done.stdout}{done.stderr}\n"


def _refused(room: Path, why: str) -> str:
    done = _check(room)
    lines = done.stderr.splitlines()
    good = len(lines) == 1 and why in lines[0] and "no answer is kept or believed" in lines[0]
    proved = done.returncode == 1 and "nothing changed" not in done.stdout
    return "" if good and proved else f"exit {done.returncode}: {done.stdout}{done.stderr}\n"
