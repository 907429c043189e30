"""Locks that earlier versions wrote, as a user meets them: fingerprints stay, and what is not read says what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from layoutproof.cli import main as cli
from layoutproof.gating.lock_head import NAME
from tests.recorded import CASES
from tests.said import stretch, words

RECORDED = CASES / "locked_repository"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path.with_name(f"{tmp_path.name}_cache")))
    return tmp_path


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Its exit code, and all that it prints."""
    code = cli.run(["gate", *arguments])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_fingerprints_stay(capsys: pytest.CaptureFixture[str]) -> None:
    """Approvals are worth what they were: only false alarms are gone, and what the lock does not keep is unknown."""
    pytest.importorskip("jax", reason="JAX is not installed")
    shutil.copytree(RECORDED, ".", dirs_exist_ok=True)
    shutil.copytree("now", ".", dirs_exist_ok=True)
    code, said = gate(capsys, "--json")
    assert code == 1
    keys = ("severity", "question", "relpath", "subject", "fingerprint")
    now = [[each[key] for key in keys] for each in json.loads(said)["findings"]]
    before = json.loads(Path("findings.json").read_text())
    assert [each[:4] for each in now if each not in before] == [
        ["deny", "unknown", "specs/traced.yaml", "kernel mm:body"]
    ]
    assert [each[1:4:2] for each in before if each not in now] == [
        ["added", "fact prints f32 [3,/*x*/5]"],
        ["added", "fact tpu_default f32[1000,5]"],
        ["removed", "fact tpu_default f32[1000,5]"],
        ["removed", "fact prints f32 [3,/*x*/5]"],
    ]


def of_version(version: int) -> None:
    """A small lock, in step with what is here, whose first line names a version."""
    Path("specs").mkdir()
    Path("more specs").mkdir()
    Path("specs/a.yaml").write_text("checks:\n  - injective: f32[3]{0}\n")
    Path("more specs/b.yaml").write_text("checks:\n  - injective: f32[5]{0}\n")
    assert cli.run(["gate", "--lock", "specs", "more specs"]) == 0
    Path(NAME).write_text(Path(NAME).read_text().replace("lock 2:", f"lock {version}:"))


OLDER = words("gating.lock_older", version=1, reads=2)
WRITE = words("gating.write_anew", problem=OLDER, command="layoutproof gate --lock specs 'more specs'")


def test_an_earlier_version_says_how_to_write_a_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Bad input, also where the lock is only checked; the command that it names ends it."""
    of_version(1)
    before = Path(NAME).read_text()
    for arguments in ((), ("--lock", "--check")):
        code, said = gate(capsys, *arguments)
        assert code == 2
        assert f"{NAME}:1: {WRITE}" in said
        assert Path(NAME).read_text() == before
    assert cli.run(["gate", "--lock", "specs", "more specs"]) == 0
    assert gate(capsys)[0] == 0


def test_the_base_has_an_earlier_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody writes the past anew: what its lock said is unknown, never passed over, and green once it is written."""
    of_version(1)
    git(Path())
    code, said = gate(capsys, "--against", "HEAD")
    assert code == 3
    assert stretch("gating.old_lock_unreadable", why=OLDER) in said
    assert cli.run(["gate", "--lock", "specs", "more specs"]) == 0
    git(Path())
    assert gate(capsys, "--against", "HEAD")[0] == 0


def test_a_newer_version_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """By the tool of before, which changes nothing."""
    of_version(3)
    before = Path(NAME).read_text()
    code, said = gate(capsys)
    assert code == 2
    assert f"{NAME}:1: " + words("gating.lock_newer", version=3, reads=2) in said
    assert Path(NAME).read_text() == before


def git(folder: Path) -> None:
    """All that is here, committed."""
    as_somebody = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], [*as_somebody, "commit", "-qm", "a"]):
        subprocess.run(["git", *arguments], check=True, cwd=folder)
