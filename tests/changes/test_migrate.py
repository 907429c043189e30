"""`layoutproof migrate`, as a user runs it, of what earlier versions wrote: `tests/cases/old_repository`."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from layoutproof.changes.lock_head import NAME
from layoutproof.changes.policy import MOST_DAYS
from layoutproof.cli import main as cli
from tests.recorded import CASES

RECORDED = CASES / "old_repository"
LAST = datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=MOST_DAYS)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path.with_name(f"{tmp_path.name}_cache")))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """One command line: its exit code, stdout and stderr."""

    def run_one(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(list(arguments))
        return (code, *capsys.readouterr())

    return run_one


def repository(lock: str, drifted: bool = False) -> None:
    """The recorded repository with one of its lock files, as it was locked or after it changed."""
    for name in ("specs", "dumps"):
        shutil.copytree(RECORDED / name, name)
    for name in ("user.py", "pyproject.toml"):
        shutil.copy(RECORDED / name, name)
    shutil.copy(RECORDED / f"{lock}.lock", NAME)
    if drifted:
        shutil.copytree(RECORDED / "now", ".", dirs_exist_ok=True)


def texts() -> dict[str, bytes]:
    """Every file here."""
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file() and path.suffix != ".pyc"}


def findings(run: Any, code: int) -> list[list[str]]:
    """What the gate finds against the lock, as it is recorded."""
    exit_code, out, _ = run("gate", "--json")
    assert exit_code == code
    keys = ("severity", "question", "relpath", "subject", "fingerprint")
    return [[f[k] for k in keys] for f in json.loads(out)["findings"]]


def recorded(name: str) -> list[list[str]]:
    found: list[list[str]] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def test_version_1_is_told_and_not_read(run: Any) -> None:
    """The lock of now: an error that names the command, and exit code 2."""
    repository("first")
    code, _, err = run("gate")
    assert code == 2
    assert "layoutproof.lock:1: a lock file of version 1" in err
    assert "layoutproof migrate" in err


@pytest.mark.parametrize("lock", ["first", "second"])
def test_in_step(run: Any, lock: str) -> None:
    """Nothing changed since it was locked: after migration nothing is found, and the claims are as stated."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository(lock)
    assert run("migrate")[0] == (0 if lock == "first" else 3)  # approvals that version 2 never counted are left
    assert findings(run, 0) == []
    assert "sizes: {N: 16777217}" in Path("specs/layouts.yaml").read_text()
    assert Path("specs/layouts.yaml").read_text().startswith("# a comment that stays\n")
    before = texts()
    _, out, _ = run("migrate")
    assert out.endswith("nothing to migrate\n")
    assert texts() == before


def test_both_versions_become_one(run: Any) -> None:
    """What version 1 kept, with what was added, is what version 2 wrote of the same files."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first")
    run("migrate")
    first = Path(NAME).read_text()
    shutil.copy(RECORDED / "second.lock", NAME)
    run("migrate")
    assert Path(NAME).read_text() == first


def test_the_verdicts_stay(run: Any) -> None:
    """Every finding of the first version, with its severity, its approval and its fingerprint; and what is new."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first", drifted=True)
    assert run("migrate")[0] == 0
    now = findings(run, 1)
    before = recorded("first")
    assert [each for each in before if each not in now] == []
    # kernels are judged as such since, and a claim that was locked without its figures states some
    assert [each[:4] for each in now if each not in before] == [
        ["deny", "refuted", "specs/kernels.yaml", "layout add"],
        ["allow", "tightened", "specs/layouts.yaml", "claim padding scores"],
    ]


def test_fingerprints_of_version_2_stay(run: Any) -> None:
    """Approvals of the second version are worth what they were: only false alarms and unnamed sizes are gone."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("second", drifted=True)
    run("migrate")
    now = findings(run, 1)
    gone = [each for each in recorded("second") if each not in now]
    assert [each for each in now if each not in recorded("second")] == []
    assert [each[1:4:2] for each in gone] == [
        ["refuted", "claim fits_int32 wide"],
        ["added", "fact prints f32 [3,/*x*/5]"],
        ["added", "fact tpu_default f32[1000,5]"],
        ["removed", "fact tpu_default f32[1000,5]"],
        ["removed", "fact prints f32 [3,/*x*/5]"],
    ]


def test_approvals(run: Any) -> None:
    """Beside a lock of version 1 a day too far becomes the last one there is; none is lost, idle ones are told."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first", drifted=True)
    old = Path("pyproject.toml").read_text()
    _, out, _ = run("migrate")
    assert f"specs/layouts.yaml:23: the approval 45299670161894f9 (its twin is gone too) ends on {LAST}" in out
    assert (
        "note     the approval 0123456789abcdef is of nothing that is found: of a change that was merged; it stays"
        in out
    )
    assert "note     the approval 6471d832e1e2d2d4 expired on 2026-01-31: for a week" in out
    assert "note     no rule names memory_space, which is deny now and was warn: state what is meant" in out
    assert "no rule names removed" not in out
    assert Path("pyproject.toml").read_text() == old.replace("9999-12-31", str(LAST))
    approvals = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["layoutproof"]["gate"]["approvals"]
    assert [each["fingerprint"] for each in approvals] == ["e15bab4be78f975a", "6471d832e1e2d2d4", "0123456789abcdef"]


def test_an_approval_that_never_counted_is_no_pass(run: Any) -> None:
    """Without a lock of version 1 nobody shortens it: the denial stays, and what to write is told."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("second", drifted=True)
    code, out, _ = run("migrate")
    assert code == 3
    assert (
        "left     pyproject.toml:7: the approval e15bab4be78f975a (the consumer reads columns) ends on 9999-12-31 and"
        in out
    )
    assert ["deny", "moved", "specs/layouts.yaml", "layout scores", "e15bab4be78f975a"] in findings(run, 1)


def test_dry_run(run: Any) -> None:
    """The diff, and no file is touched; as JSON too."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first")
    before = texts()
    code, out, _ = run("migrate", "--dry-run")
    assert code == 0
    assert "-    counterexample: {sizes: [16777217], element: [16777216, 0]}  # one row too many" in out
    assert '+["dumps/step.txt", "donation", [0, []], "result {} (may-alias)"]' in out
    assert "3 files would change" in out
    document = json.loads(run("migrate", "--dry-run", "--json")[1])
    assert (document["version"], document["exit_code"], document["written"]) == (2, 0, [])
    assert [each["file"] for each in document["results"]] == ["specs/layouts.yaml", "pyproject.toml", NAME]
    assert texts() == before


def test_a_denial_stays_one(run: Any) -> None:
    """A claim that is refuted since, and a donation that is lost only after: migration settles neither."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first", drifted=True)
    run("migrate")
    dump = Path("dumps/step.txt")
    dump.write_text(dump.read_text().replace(" input_output_alias={ {}: (0, {}, may-alias) },", ""))
    kinds = {tuple(each[:2]) for each in findings(run, 1)}
    assert {("deny", "lost"), ("deny", "bitcast_refuted"), ("deny", "lost_donation")} <= kinds


def test_what_a_claim_expects_now_is_not_what_was_locked(run: Any) -> None:
    """A claim that was locked as proved and is expected to be refuted now is no line to be filled in."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first")
    spec = Path("specs/layouts.yaml")
    spec.write_text(spec.read_text().replace("- injective: scores", "- {injective: scores, expect: refuted}"))
    run("migrate")
    assert ["deny", "loosened", "specs/layouts.yaml", "claim injective scores"] in [f[:4] for f in findings(run, 1)]


def test_a_dump_that_is_gone(run: Any) -> None:
    """Its lines stay, and the gate says that it is gone."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first")
    Path("dumps/step.txt").unlink()
    _, out, _ = run("migrate")
    assert (
        "dumps/step.txt: version 1 kept nothing of donation, devices, collectives and calls, and it is not here" in out
    )
    assert [each[:3] for each in findings(run, 0)] == [["warn", "removed", "dumps/step.txt"]]


def test_a_newer_lock_is_refused_by_name(run: Any) -> None:
    """By the gate and by the migration, which writes nothing."""
    repository("second")
    text = Path(NAME).read_text().replace("lock 2:", "lock 3:")
    Path(NAME).write_text(text)
    for command in (["gate"], ["migrate"], ["migrate", "--dry-run"]):
        code, _, err = run(*command)
        assert code == 2
        assert "layoutproof.lock:1: a lock file of version 3, which is newer" in err
    assert Path(NAME).read_text() == text


BROKEN = {
    "the first line": (NAME, lambda text: "x" + text, r"layoutproof.lock:1: not a lock file"),
    "a line": (NAME, lambda text: text.replace('"bitcast"', '"cast"', 1), r"layoutproof.lock:2: not a line of a lock"),
    "a conflict": (NAME, lambda text: f"{text}<<<<<<< x\n", r"layoutproof.lock:\d+: a merge conflict"),
    "a spec": ("specs/kernels.yaml", lambda text: f"{text}  - [", r"specs/kernels.yaml:\d+:"),
    "a spec's bytes": ("specs/kernels.yaml", lambda text: f"{text}\udcff", r"specs/kernels.yaml:\d+: not UTF-8 text"),
    "the rules": ("pyproject.toml", lambda text: text.replace("removed = ", "removed "), r"pyproject.toml:2: "),
    "an approval": ("pyproject.toml", lambda text: text.replace('reason = "for a week"', 'reason = ""'),
                    r"pyproject.toml:12: the approval 6471d832e1e2d2d4 says no reason"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken_input(run: Any, what: str) -> None:
    """File and line, exit code 2, and nothing is written."""
    repository("first")
    name, edit, said = BROKEN[what]
    Path(name).write_text(edit(Path(name).read_text()), errors="surrogateescape")
    before = texts()
    code, out, err = run("migrate")
    assert code == 2
    assert [line for line in f"{out}\n{err}".splitlines() if re.search(said, line)]
    assert "done " not in out
    assert texts() == before


def test_sizes_that_nobody_can_name(run: Any) -> None:
    """A claim that is proved now has no counterexample that would name them; a list on several lines is left."""
    Path("specs").mkdir()
    Path("specs/a.yaml").write_text(
        "checks:\n"
        "  - {injective: 'f32[N,8]{1,0}', expect: refuted, counterexample: {sizes: [3], first: [0], second: [1]}}\n"
        "  - fits_int32: f32[N,128]{1,0:T(8,128)}\n"
        "    expect: refuted\n"
        "    counterexample:\n"
        "      sizes:\n"
        "        - 16777217\n"
        "      element: [16777216, 0]\n"
    )
    code, out, _ = run("migrate")
    assert code == 3
    assert (
        "left     specs/a.yaml:2:75: the sizes [3] have names now: no counterexample is found that would say them"
        in out
    )
    assert "left     specs/a.yaml:7:9: the sizes [16777217] have names now: write {N: 16777217}" in out
    assert "nothing to migrate" in out


def test_the_old_state_of_a_revision_may_be_version_1(run: Any) -> None:
    """Nobody can migrate the past: what its lock did not say of a dump is unknown, never passed over."""
    pytest.importorskip("jax", reason="JAX is not installed")
    repository("first")
    Path(".gitignore").write_text("dumps\n")
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *arguments], check=True)
    run("migrate")
    code, out, _ = run("gate", "--against", "HEAD", "specs", "dumps")
    assert code != 0
    assert "the lock file was written by an earlier version" in out
