"""What protects is never loosened by the change that it judges: each false green in a git repository, and its twin."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layoutproof.doors import cli

SPEC = """\
source: here
layouts:
  scores: f32[3,5]{1,0:T(2,2)}
  wide: f32[16,200]{1,0:T(8,128)}
checks:
  - injective: scores
  - padding: wide
    at_most: 40%
  - locate: scores
    index: [2, 3]
    is: {offset: 17}
"""
MOVED = SPEC.replace("wide: f32[16,200]{1,0:T(8,128)}", "wide: f32[16,200]{1,0:T(4,128)}")
LONG = """\
source: here
layouts:
  k:
    kernel:
      grid: [%d]
      inputs: [{name: x, array: "f32[8]", block: [8], index: "(i) -> (0)"}]
      outputs: [{name: o, array: "f32[40000]", block: [8], index: "(i) -> (i)"}]
checks:
  - kernel: k
"""
GATE = "[tool.layoutproof.gate]\n"
Gate = Callable[..., tuple[int, list[dict[str, Any]]]]


def git(*arguments: str, **options: Any) -> str:
    """One git command in the current folder, without the user's own settings."""
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    settings += ("-c", "protocol.file.allow=always")
    return subprocess.run(["git", *settings, *arguments], capture_output=True, text=True, check=True, **options).stdout


def write(files: dict[str, str | None]) -> None:
    """Files in the current folder; None deletes one."""
    for name, text in files.items():
        if text is None:
            Path(name).unlink()
            continue
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def commit(files: dict[str, str | None]) -> None:
    """The files, and a commit of everything that is here."""
    write(files)
    git("add", "-A")
    git("commit", "-qm", "next")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository without a commit, to be copied."""
    folder = tmp_path_factory.mktemp("empty")
    git("init", "-q", "-b", "main", cwd=folder)
    return folder


@pytest.fixture
def gate(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gate:
    """In a new repository: `layoutproof gate --against main` with more arguments; its exit code and its findings."""
    shutil.copytree(empty, tmp_path / "repository")
    monkeypatch.chdir(tmp_path / "repository")
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))

    def run(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
        code = cli.run(
            ["gate", *(arguments if "--against" in arguments else ("--against", "main", *arguments)), "--json"]
        )
        out, err = capsys.readouterr()
        assert out, err
        return code, json.loads(out)["findings"]

    return run


def said(findings: list[dict[str, Any]]) -> set[str]:
    """`deny moved`, `allow added` and so on."""
    return {
        f"{'error' if f['error'] else 'unknown' if f['undecided'] else f['severity']} {f['kind']}" for f in findings
    }


def approval(fingerprint: str, days: int = 30, by: str = "") -> str:
    """An approval as a person writes it in pyproject.toml."""
    until = datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=days)
    named = f'by = "{by}"\n' if by else ""
    stanza = f'[[tool.layoutproof.gate.approvals]]\nfingerprint = "{fingerprint}"\nreason = "measured"\n'
    return f"{stanza}{named}until = {until}\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", 'moved = "allow"', {"deny policy", "deny moved"}),
        ('grew = "warn, deny above 2%"', 'grew = "warn, deny above 3%"', {"deny policy", "deny moved"}),
        ('grew = "deny above 4 MiB"', 'grew = "deny above 4097 KiB"', {"deny policy", "deny moved"}),
        ('policy = "warn"', 'policy = "allow"\nmoved = "allow"', {"warn policy", "deny moved"}),
        ('grew = "deny"', None, {"deny policy", "deny moved"}),
        (None, 'moved = "warn"', {"deny policy", "deny moved"}),
        # twins
        ('moved = "warn"', 'moved = "deny"', {"allow tightened", "warn moved"}),
        ('moved = "warn"\ngrew = "deny above 4 MiB"', 'grew = "deny above 4096 KiB"\nmoved = "warn"', {"warn moved"}),
        ('moved = "warn"', 'moved = "warn"\nmoved_ = 3', {"error error", "warn moved"}),
        ('moved = "warn"', "]", {"error error", "warn moved"}),
    ],
)
def test_rules_of_the_base_judge(before: str | None, after: str | None, expected: set[str], gate: Gate) -> None:
    """A loosened rule is denied and lets nothing through; a tightened or reworded one is no harm."""
    commit({"specs/a.yaml": SPEC} | ({} if before is None else {"pyproject.toml": GATE + before}))
    write({"specs/a.yaml": MOVED, "pyproject.toml": None if after is None else GATE + after})
    code, found = gate()
    assert said(found) == expected
    assert code == (2 if "error error" in expected else 1 if any(s.startswith("deny") for s in expected) else 0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "gate: {moved: allow}\n", {"deny policy", "deny moved"}),
        ("gate: {grew: deny, moved: warn}\n", "gate: {moved: warn}\n", {"deny policy", "warn moved"}),
        ("gate: {moved: warn}\n", "gate: {moved: deny}\n", {"allow tightened", "warn moved"}),
        ("gate: {moved: warn}\n", "gate: {mooved: deny}\n", {"error error", "warn moved"}),
    ],
)
def test_rules_in_the_file_that_they_judge(before: str, after: str, expected: set[str], gate: Gate) -> None:
    """The same of a `gate:` block."""
    commit({"specs/a.yaml": SPEC + before})
    write({"specs/a.yaml": MOVED + after})
    assert said(gate()[1]) == expected


@pytest.mark.parametrize("where", ["pyproject.toml", "specs/a.yaml"])
def test_an_approval_that_the_change_adds(where: str, gate: Gate) -> None:
    """It is found with who, what and until; it counts with --accept-approvals, or once it is on the base."""
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": MOVED})
    (moved,) = gate()[1]
    stanza = approval(moved["fingerprint"], by="R. Viewer")
    until = stanza.rpartition(" ")[2].strip()
    if where == "specs/a.yaml":
        entry = f"{{fingerprint: '{moved['fingerprint']}', reason: measured, by: R. Viewer, until: '{until}'}}"
        write({where: f"{MOVED}gate: {{approvals: [{entry}]}}\n"})
    else:
        write({where: stanza})
    code, found = gate()
    assert (code, said(found)) == (1, {"deny moved", "deny approval_added"})
    (added,) = [f for f in found if f["kind"] == "approval_added"]
    assert added["because"].startswith(
        f"R. Viewer approves until {until} ({moved['fingerprint']}: moved layout wide in "
    )
    assert added["file"] == where
    code, found = gate("--accept-approvals")
    assert (code, said(found)) == (0, {"allow moved", "allow approval_added"})
    git("checkout", "-q", "-b", "topic")
    changed = Path("specs/a.yaml").read_text()
    write({"specs/a.yaml": changed.replace("T(4,128)", "T(8,128)")})
    git("add", "-A")
    git("commit", "-qm", "the approval alone")
    write({"specs/a.yaml": changed})
    code, found = gate("--against", "topic")
    assert (code, said(found)) == (0, {"allow moved"})
    assert found[0]["said"] == f"approved by R. Viewer until {until}: measured"


@pytest.mark.parametrize(("days", "accepted"), [(180, True), (181, False), (350000, False)])
def test_an_approval_for_longer_than_180_days(days: int, accepted: bool, gate: Gate) -> None:
    """It counts neither on the base nor with --accept-approvals."""
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": MOVED})
    (moved,) = gate()[1]
    write({"pyproject.toml": approval(moved["fingerprint"], days)})
    code, found = gate("--accept-approvals")
    assert (code == 0) is accepted
    assert "allow moved" in said(found) if accepted else said(found) == {"deny moved", "deny approval_added"}
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": MOVED})
    assert (gate()[0] == 0) is accepted


def test_a_longer_approval_is_a_new_one(gate: Gate) -> None:
    """A day later is an addition; a shorter one, another reason, or none any more is not."""
    commit({"specs/a.yaml": SPEC, "pyproject.toml": approval("0" * 16, 30)})
    write({"pyproject.toml": approval("0" * 16, 31)})
    assert said(gate()[1]) == {"deny approval_added"}
    for text in (approval("0" * 16, 29), approval("0" * 16, 30).replace("measured", "timed"), ""):
        write({"pyproject.toml": text})
        assert gate() == (0, [])


def test_a_loosened_rule_can_be_approved(gate: Gate) -> None:
    """As every other finding: with --accept-approvals, and the old rules still judge the rest."""
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": MOVED, "pyproject.toml": GATE + 'moved = "warn"\n'})
    print_ = next(f for f in gate()[1] if f["kind"] == "policy")["fingerprint"]
    write({"pyproject.toml": GATE + 'moved = "warn"\n' + approval(print_)})
    assert said(gate("--accept-approvals")[1]) == {"allow policy", "allow approval_added", "deny moved"}


def test_two_folders_are_judged_by_the_old_ones_rules(gate: Gate, tmp_path: Path) -> None:
    """Each state's nearest pyproject.toml; where both have the same it is nobody's change."""
    for side, text, rules in (("old", SPEC, 'moved = "deny"'), ("new", MOVED, 'moved = "allow"')):
        write({f"{side}/specs/a.yaml": text, f"{side}/pyproject.toml": GATE + rules})
    both = (1, {"deny policy", "deny moved"})
    code = cli.run(["gate", "old/specs", "new/specs", "--output", "report", "--format", "json"])
    found = json.loads(Path("report").read_text())["findings"]
    assert (code, said(found)) == both
    write({"old/pyproject.toml": None, "new/pyproject.toml": None, "pyproject.toml": GATE + 'moved = "warn"\n'})
    code = cli.run(["gate", "old/specs", "new/specs", "--output", "report", "--format", "json"])
    found = json.loads(Path("report").read_text())["findings"]
    assert (code, said(found)) == (0, {"warn moved"})


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github", "html"])
def test_no_form_shows_python(form: str, gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    """A fingerprint is called fingerprint, a day and a tuple are written as people write them."""
    commit({"specs/k.yaml": LONG % 5000, "pyproject.toml": GATE})
    write({"specs/k.yaml": LONG % 4999, "pyproject.toml": GATE + 'moved = "warn"\n' + approval("0" * 16)})
    assert cli.run(["gate", "--against", "main", "--format", form]) == 1
    out = capsys.readouterr().out
    assert "ingerprint" in out
    assert "datetime.date" not in out
    assert ",)" not in out
    assert "  print " not in out


def test_a_process_of_its_own(gate: Gate) -> None:
    """The installed command, from start to exit code, with and without the flag that a protected workflow sets."""
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": MOVED})
    (moved,) = gate()[1]
    write({"pyproject.toml": approval(moved["fingerprint"])})
    command = [sys.executable, "-m", "layoutproof", "gate", "--against", "main"]
    for more, code in (([], 1), (["--accept-approvals"], 0)):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert "approval_added" in done.stdout
