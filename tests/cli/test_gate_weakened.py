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

from layoutproof.cli import main as cli

pytestmark = pytest.mark.slow

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
        capsys.readouterr()
        code = cli.run(
            ["gate", *(arguments if "--against" in arguments else ("--against", "main", *arguments)), "--json"]
        )
        out, err = capsys.readouterr()
        assert out, err
        return code, json.loads(out)["findings"]

    return run


def said(findings: list[dict[str, Any]]) -> set[str]:
    """`deny moved`, `allow added` and so on."""
    return {f"{_word(f)} {f['question']}" for f in findings}


def _word(finding: dict[str, Any]) -> str:
    if finding.get("bad_input"):
        return "error"
    return str(finding["verdict"] if finding["verdict"] == "unknown" else finding["severity"])


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
    assert code == (1 if any(s.startswith("deny") for s in expected) else 2 if "error error" in expected else 0)


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
    (added,) = [f for f in found if f["question"] == "approval_added"]
    assert added["reason"].startswith(
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
    assert found[0]["policy"] == f"approved until {until} by R. Viewer: measured"


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


def test_what_is_printed_to_approve_names_who(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    """The name that git signs with, whatever is in it; filled in with a reason it is taken as it stands."""
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": MOVED})
    git("config", "user.name", 'R. "V" Viewer')
    (moved,) = gate()[1]
    assert cli.run(["gate", "--against", "main", "--approve", moved["fingerprint"]]) == 0
    write({"pyproject.toml": capsys.readouterr().out.replace('reason = ""', 'reason = "measured"')})
    added = next(f for f in gate()[1] if f["question"] == "approval_added")
    assert added["reason"].startswith('R. "V" Viewer approves until ')
    assert gate("--accept-approvals")[0] == 0


def test_a_loosened_rule_can_be_approved(gate: Gate) -> None:
    """As every other finding: with --accept-approvals, and the old rules still judge the rest."""
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": MOVED, "pyproject.toml": GATE + 'moved = "warn"\n'})
    print_ = next(f for f in gate()[1] if f["question"] == "policy")["fingerprint"]
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


SYMBOLIC = """\
source: here
layouts:
  s: f32[N,M]{1,0:T(8,128)}
  bad: {strided: "f32[3,5] strides (4,1)"}
  lanes: "(i < 32) -> (i) in [64]"
checks:
  - padding: s
    at_most: 0%
    where: N % 8 == 0 and M % 128 == 0
  - injective: bad
    expect: refuted
    counterexample: {first: [0, 4], second: [1, 0]}
  - padding: scores
    at_most: 40%
    figures: {elements: 15, bytes: 96}
  - same_map: [scores, "f32[3,5]{1,0:T(2,2)(1,2)}"]
    confirm: true
  - sizes: scores
    is: {definition: 96}
  - injective: {strided: "f32[N,5] strides (4,1)"}
    expect: refuted
    counterexample: {sizes: {N: 2}, first: [0, 4], second: [1, 0]}
  - invalid: "f32[3"
    error: "]"
  - padding: "bf16[8,128]{1,0:T(8,128)(2,1)}"
    at_most: 1.5x
""".replace("layouts:\n", "layouts:\n  scores: f32[3,5]{1,0:T(2,2)}\n")
LOOSE = {"deny loosened"}
WRONG = {"deny loosened", "deny refuted"}
TIGHT = {"allow tightened"}


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        # bounds
        (SPEC, "at_most: 40%", "at_most: 99%", LOOSE),
        (SPEC, "at_most: 40%", "at_most: 40.000001%", LOOSE),
        (SPEC, "    at_most: 40%\n", "", LOOSE),
        (SPEC, "at_most: 40%", "at_most: 1.7x", LOOSE),
        (SPEC, "at_most: 40%", "at_most: 1.6x", TIGHT),
        (SPEC, "at_most: 40%", "at_most: 40.0%", set()),
        (SPEC, "at_most: 40%", "at_most: 39.9%", TIGHT),
        (SYMBOLIC, "at_most: 1.5x", "at_most: 34%", LOOSE),
        (SYMBOLIC, "at_most: 1.5x", "at_most: 33.333333%", TIGHT),
        (SPEC.replace("40%", "50%"), "at_most: 50%", "at_most: 2x", set()),
        (SPEC.replace("40%", "50%"), "at_most: 50%", "at_most: 100%", LOOSE),
        # sizes
        (SYMBOLIC, "where: N % 8 == 0 and", "where: N % 16 == 0 and", LOOSE),
        (SYMBOLIC, "where: N % 8 == 0 and", "where: N == 8 and", LOOSE),
        (SYMBOLIC, "M % 128 == 0", "M % 128 == 0 and N < 1000000", LOOSE),
        (SYMBOLIC, "N % 8 == 0 and M % 128 == 0", "M % 128 == 0 and (N % 16 == 0 or N % 16 == 8)", set()),
        (SYMBOLIC, "where: N % 8 == 0 and M % 128 == 0", "where: N % 8 == 0 and M % 128 < 1", set()),
        (SYMBOLIC, "where: N % 8 == 0 and", "where: (N % 8 == 0 or N % 24 == 0) and", set()),
        # expectations
        (SPEC, "- injective: scores\n", "- injective: scores\n    expect: refuted\n", WRONG),
        (SPEC, "- injective: scores\n", "- injective: scores\n    expect: unknown\n", WRONG),
        (SYMBOLIC, "expect: refuted\n    counterexample: {first: [0, 4], second: [1, 0]}", "expect: refuted", LOOSE),
        (SYMBOLIC, "counterexample: {first: [0, 4], second: [1, 0]}", "reason: offset 4", LOOSE),
        (SYMBOLIC, "    counterexample: {first", "    reason: offset 4\n    counterexample: {first", TIGHT),
        (SYMBOLIC, "second: [1, 0]", "second: [1, 1]", {"deny refuted"}),
        (SYMBOLIC, "figures: {elements: 15, bytes: 96}", "figures: {elements: 15}", LOOSE),
        (SYMBOLIC, "figures: {elements: 15, bytes: 96}", "figures: {bytes: 96, elements: 15}", set()),
        (SYMBOLIC, "bytes: 96", "bytes: 97", {"deny refuted"}),
        (SYMBOLIC, "    confirm: true\n", "", LOOSE),
        (SYMBOLIC, 'error: "]"', 'error: ""', LOOSE),
        # claims that come and go
        (SPEC, "  - injective: scores\n", "", {"deny removed"}),
        (SPEC, "  - injective: scores\n", "  - covers: wide\n", {"deny removed", "deny refuted"}),
        (SPEC, "  - injective: scores\n", "  - injective: wide\n", {"deny removed", "allow added"}),
        (SPEC, "index: [2, 3]\n    is: {offset: 17}", "index: [0, 0]\n    is: {offset: 0}", LOOSE),
        (SPEC, "is: {offset: 17}", "is: {offset: 18}", {"deny refuted"}),
        (SPEC, "checks:\n", "checks:\n  - covers: wide\n", {"deny refuted"}),
        (SPEC, "checks:\n", "checks:\n  - covers: wide\n    expect: refuted\n", {"allow added"}),
        (SPEC, "checks:\n", "checks:\n  - injective: f32[0,8]{1,0}\n", {"unknown unknown"}),
        (SPEC, "checks:\n", "checks:\n  - injective: wide\n", {"allow added"}),
        (SPEC, "- injective: scores\n", "- injective: wide\n  - injective: scores\n    name: x\n", {"allow added"}),
        (SYMBOLIC, '"bf16[8,128]{1,0:T(8,128)(2,1)}"', '"f32[1]{0}"', {"deny removed", "allow added"}),
        # layouts
        (SPEC, "wide: f32[16,200]{1,0", "broad: f32[16,200]{0,1", {"error error", "deny removed", "allow added"}),
        (SPEC.replace("wide", "broad"), "f32[16,200]{1,0:T(8,128)}", "f32[16,200]{1,0:T(4,128)}", {"deny moved"}),
        (SPEC, "  scores: f32[3,5]{1,0:T(2,2)}\n  wide: f32[16,200]{1,0:T(8,128)}\n",
         "  wide: f32[16,200]{1,0:T(8,128)}\n  scores: f32[3,5]{1,0:T(2,2)}\n", set()),
        (SPEC + "  - injective: wide\n", "  - injective: scores\n", "", {"deny removed"}),
        (SPEC + "  - injective: scores\n", "  - injective: scores\n  - padding", "  - padding", {"allow respelled"}),
    ],
)  # fmt: skip
def test_one_edit_of_a_spec_file(text: str, old: str, new: str, expected: set[str], gate: Gate) -> None:
    """What demands less is denied, what demands as much or more is not; decided, not read off the text."""
    assert text.count(old) >= 1
    commit({"specs/a.yaml": text})
    write({"specs/a.yaml": text.replace(old, new, 1)})
    code, found = gate()
    assert said(found) == expected, found
    codes = {"deny": 1, "error": 2, "unknown": 3}
    assert code == next((codes[word] for word in codes if any(s.startswith(word) for s in expected)), 0)


def test_renamed_and_relaid_in_one_edit(gate: Gate) -> None:
    """The old name and its claims are gone, whatever is new; a new name alone is no harm."""
    commit({"specs/a.yaml": SPEC})
    write({"specs/a.yaml": SPEC.replace("wide", "broad")})
    assert gate()[0] == 0
    assert said(gate()[1]) == {"allow respelled"}
    write({"specs/a.yaml": MOVED.replace("wide", "broad")})
    code, found = gate()
    assert code == 1
    assert [f["subject"] for f in found if f["question"] == "removed"] == ["layout wide", "claim padding wide"]
    write({"specs/a.yaml": MOVED.replace("wide", "WIDE")})
    assert gate()[0] == 1


def test_the_smallest_size_that_a_claim_no_longer_speaks_of(gate: Gate) -> None:
    """The proof of a narrowed `where` is a size."""
    commit({"specs/a.yaml": SYMBOLIC})
    write({"specs/a.yaml": SYMBOLIC.replace("N % 8 == 0", "N % 24 == 0")})
    (found,) = gate()[1]
    assert found["reason"].endswith("it says nothing any more of N = 8, M = 128")
    assert found["counterexample"] == {"sizes": {"N": 8, "M": 128}}


TWO = {"specs/a.yaml": SPEC, "specs/b.yaml": "source: here\nchecks:\n  - injective: f32[8]{0}\n"}
TAIL = SPEC[SPEC.index("  - padding") : SPEC.index("  - locate")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        # what is there no more
        ({"specs/a.yaml": None}, {"deny removed"}),
        ({"specs/a.yaml": None, "other/a.yaml": SPEC}, {"deny removed"}),
        ({"specs/a.yaml": None, "specs/a.yaml.bak": SPEC}, {"deny removed"}),
        ({"specs/a.yaml": None, "specs/a.txt": SPEC}, {"deny removed"}),
        ({"specs/a.yaml": None, "specs/a.txt": "HloModule x\n"}, {"deny removed", "allow added", "error error"}),
        ({"specs/a.yaml": "search: matmul\n" + SPEC}, {"error error"}),
        ({"specs/a.yaml": None, "specs/c.yaml": MOVED}, {"deny removed", "allow added", "allow respelled"}),
        ({"specs/a.yaml": ""}, {"error error"}),
        ({"specs/a.yaml": "checks: [\n"}, {"error error"}),
        ({"specs/a.yaml": SPEC.replace(TAIL, ""), "specs/b.yaml": TWO["specs/b.yaml"] + TAIL.replace(
            "wide", "f32[16,200]{1,0:T(4,128)}")}, {"deny removed", "allow added"}),
        # twins
        ({"specs/a.yaml": None, "specs/a.yml": SPEC}, set()),
        ({"specs/a.yaml": None, "specs/A.yaml": SPEC}, set()),
        ({"specs/a.yaml": None, "specs/deep/a.yaml": SPEC}, set()),
        ({"specs/a.yaml": None, "specs/c.yaml": "# moved\n" + SPEC}, {"allow respelled"}),
        ({"specs/a.yaml": None, "specs/c.yaml": SPEC.replace("40%", "30%")}, {"allow respelled"}),
        ({"specs/a.yaml": SPEC.replace(TAIL, ""), "specs/b.yaml": TWO["specs/b.yaml"] + TAIL.replace(
            "wide", "f32[16,200]{1,0:T(8,128)}")}, {"allow respelled"}),
    ],
)  # fmt: skip
def test_files_that_come_and_go(change: dict[str, str | None], expected: set[str], gate: Gate) -> None:
    """A claim may move between the files that are gated, and out of them it may not."""
    commit(dict(TWO))
    write(change)
    code, found = gate()
    assert said(found) == expected, found
    assert code == (1 if "deny removed" in expected else 2 if "error error" in expected else 0)


def test_a_folder_that_is_gone(gate: Gate) -> None:
    """All of it is removed."""
    commit(dict(TWO))
    shutil.rmtree("specs")
    code, found = gate()
    assert (code, said(found), len(found)) == (1, {"deny removed"}, 6)


def test_moved_to_a_file_with_looser_rules(gate: Gate) -> None:
    """Two files, two rules: what moves to the looser one is not watched as it was."""
    strict = SPEC + "gate: {grew: deny}\n"
    loose = TWO["specs/b.yaml"] + "gate: {grew: allow}\n"
    commit({"specs/a.yaml": strict, "specs/b.yaml": loose})
    claim = TAIL.replace("wide", "f32[16,200]{1,0:T(8,128)}")
    write({"specs/a.yaml": strict.replace(TAIL, ""), "specs/b.yaml": loose.replace("gate:", claim + "gate:")})
    assert said(gate()[1]) == {"deny removed", "allow added"}


def test_what_a_file_expects_is_locked_too(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    """An expected refutation is in step with its lock; one that is expected no more is not, nor a lost figure."""
    write({"specs/a.yaml": SYMBOLIC})
    assert cli.run(["gate", "--lock"]) == 0
    assert cli.run(["gate"]) == 0
    for old, new in (("figures: {elements: 15, bytes: 96}", "figures: {bytes: 96}"), ("M % 128 == 0", "M == 128")):
        write({"specs/a.yaml": SYMBOLIC.replace(old, new)})
        capsys.readouterr()
        assert cli.run(["gate", "--json"]) == 1
        assert said(json.loads(capsys.readouterr().out)["findings"]) == {"deny loosened"}


STATED = """\
source: here
layouts:
  k:
    kernel:
      grid: [4, 2]
      inputs: [{name: x, array: "f32[32,256]", block: [8, 128], index: "(i, j) -> (i, j)"}]
      outputs: [{name: o, array: "f32[32,256]", block: [8, 128], index: "(i, j) -> (i, j)"}]
checks:
  - injective: f32[8]{0}
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "code", "refuted"),
    [
        (STATED, "[4, 2]", "[3, 2]", 1, ["outputs_covered"]),
        (STATED, "[4, 2]", "[5, 2]", 1, ["blocks_in_bounds"]),
        (STATED, '(i, j)"}]\nchecks', '(i, 0)"}]\nchecks', 1, ["outputs_covered"]),
        # twins: as wrong before as now, another grid that is right, a kernel that nobody stated before
        (STATED.replace("[4, 2]", "[3, 2]"), "name: x, array", "name: y, array", 0, []),
        (STATED.replace("[8, 128]", "[16, 128]").replace("[4, 2]", "[2, 2]"), "source: here", "source: there", 0, []),
        (STATED, "checks:", "  k2: {kernel: {grid: [2], outputs: [{name: o, array: 'f32[16]', block: [8], "
         "index: '(i) -> (i)'}]}}\nchecks:", 0, []),
        (STATED, "checks:", "  k2: {kernel: {grid: [1], outputs: [{name: o, array: 'f32[16]', block: [8], "
         "index: '(i) -> (i)'}]}}\nchecks:", 1, ["outputs_covered"]),
        (STATED, "checks:", "  k2: {kernel: {grid: [1], outputs: [{name: o, array: 'f32[16]', block: [8], "
         "index: '(i) -> (i)'}]}}\nchecks:\n  - outputs_covered: k2\n    expect: refuted", 0, []),
    ],
)  # fmt: skip
def test_a_stated_kernel(text: str, old: str, new: str, code: int, refuted: list[str], gate: Gate) -> None:
    """Every rule is asked of it before and after, whether or not there is a claim: what it newly breaks is denied."""
    assert old in text
    commit({"specs/k.yaml": text})
    write({"specs/k.yaml": text.replace(old, new)})
    found_code, found = gate()
    wrong = [f["reason"].partition(" of ")[0] for f in found if f["question"] == "refuted"]
    assert sorted(set(wrong)) == refuted, found
    assert found_code == code, found


USER = """\
import jax
from jax.experimental import pallas as pl

def mm(x):
    def body(x, o):
        o[...] = x[...]
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
"""
TRACED = """\
source: x
kernels:
  mm: {trace: "user.py:mm", args: ["f32[32,128]"], target: v5e}
checks:
  - injective: f32[8]{0}
"""


def test_a_traced_kernel_against_the_lock_of_the_base(gate: Gate) -> None:
    """Only the code changed: what it did is in the base's lock, what it does is traced; no new lock can hide it."""
    pytest.importorskip("jax", reason="JAX is not installed")
    write({"specs/k.yaml": TRACED, "user.py": USER})
    assert cli.run(["gate", "--lock"]) == 0
    commit({})
    assert gate() == (0, [])
    for change in ("(3,)", "(5,)"):
        write({"user.py": USER.replace("(4,)", change)})
        code, found = gate()
        assert code == 1
        assert {f["subject"] for f in found if f["severity"] == "deny"} == {"layout mm:body"}
        assert "deny refuted" in said(found)
    assert cli.run(["gate", "--lock"]) == 0
    assert cli.run(["gate"]) == 0
    assert gate()[0] == 1
    write({"user.py": USER, "layoutproof.lock": None})
    assert said(gate()[1]) == {"deny removed"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (", target: v5e", "", {"deny loosened"}),
        (", target: v5e", ", target: v6e", {"deny loosened"}),
        ("target: v5e}", 'target: v5e, assume: ["0 <= t < 4"]}', {"deny loosened"}),
        ("target: v5e}", 'target: v5e, assume: ["t[i] <= u[i + 1] if i < 3"]}', {"deny loosened"}),
        ("target: v5e}", 'target: v5e, assume: ["t[:4] is onto"]}', {"deny loosened"}),
        ("target: v5e}", "target: v5e, call: 0}", {"deny loosened"}),
        ("f32[32,128]", "f32[64,128]", {"warn kernel"}),
        ("  mm: {", "  other: {", {"allow respelled"}),
        ('kernels:\n  mm: {trace: "user.py:mm", args: ["f32[32,128]"], target: v5e}\n', "", {"deny removed"}),
        ("target: v5e", "target: v5e, compiler: 0.0.51", {"allow tightened"}),
    ],
)
def test_an_entry_of_user_code(old: str, new: str, expected: set[str], gate: Gate) -> None:
    """Named, it is stated: dropped, narrowed, or of another target is denied. Its code is not there, an error."""
    assert old in TRACED
    commit({"specs/k.yaml": TRACED})
    write({"specs/k.yaml": TRACED.replace(old, new)})
    lost = set() if expected == {"deny removed"} else {"error error"}
    assert said(gate()[1]) == expected | lost


def test_less_is_assumed_of_a_table(gate: Gate) -> None:
    """A wider assumption proves more, a narrower one less."""
    old = TRACED.replace("v5e}", 'v5e, assume: ["0 <= t < 8"]}')
    commit({"specs/k.yaml": old})
    for text, expected in (("0 <= t < 16", "allow tightened"), ("0 <= t <= 7", ""), ("0 <= t < 1", "deny loosened")):
        write({"specs/k.yaml": old.replace("0 <= t < 8", text)})
        assert said(gate()[1]) <= {expected, "error error"}, text
    assert "deny loosened" in said(gate()[1])


TABLES = """\
source: here
layouts:
  k:
    kernel:
      grid: {g: 4}
      inputs: [{name: x, array: "f32[32,128]", block: [8, 128], index: "(g) -> (t[g], 0)"}]
      outputs: [{name: o, array: "f32[32,128]", block: [8, 128], index: "(g) -> (u[g], 0)"}]
      tables:
        t: {array: "s32[4]", assume: ["0 <= t < 4", "t[i] <= t[i + 1]", "t[i] <= u[i + 1] if i + 1 < 4"]}
        u: {array: "s32[4]", assume: ["0 <= u < 4", "u[:4] is onto"]}
checks:
  - kernel: k
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"u[:4] is onto"', '"u[:4] is onto", "u[0] == 0"', {"deny loosened"}),
        ("0 <= t < 4", "0 <= t < 2", {"deny loosened"}),
        ("t[i] <= t[i + 1]", "t[i] < t[i + 1] + 0", {"deny loosened"}),
        (" if i + 1 < 4", "", {"deny loosened"}),
        ("u[:4] is onto", "u[:3] is onto", {"deny loosened", "unknown unknown", "unknown lost"}),
        # twins
        ('"t[i] <= t[i + 1]", ', "", {"allow tightened"}),
        ("0 <= t < 4", "0 <= t < 5 - 1", {"allow respelled"}),
        ("t[i] <= t[i + 1]", "t[n] <= t[n + 1]", {"allow respelled"}),
        ("checks:", "# nothing\nchecks:", set()),
    ],
)
def test_what_a_stated_kernel_assumes(old: str, new: str, expected: set[str], gate: Gate) -> None:
    """What is assumed more, of one table or of entries of several together, is denied: the proof says less."""
    assert old in TABLES
    commit({"specs/k.yaml": TABLES})
    write({"specs/k.yaml": TABLES.replace(old, new)})
    found = gate()[1]
    assert said(found) == expected, found
    for each in found:
        assert "Relation(" not in each["reason"]


def test_an_approval_is_of_one_assumption(gate: Gate) -> None:
    """What is approved to be assumed is no approval of something else."""
    commit({"specs/k.yaml": TABLES})
    prints = set()
    for more in ("u[0] == 0", "u[1] == 0"):
        write({"specs/k.yaml": TABLES.replace('"u[:4] is onto"', f'"u[:4] is onto", "{more}"')})
        (found,) = [f for f in gate()[1] if f["question"] == "loosened"]
        prints.add(found["fingerprint"])
    assert len(prints) == 2


@pytest.fixture
def vendored(gate: Gate, tmp_path: Path) -> Gate:
    """A repository whose folder specs has a submodule with a spec file, checked out."""
    other = tmp_path / "other"
    other.mkdir()
    git("init", "-q", "-b", "main", cwd=other)
    (other / "v.yaml").write_text(SPEC)
    git("add", "-A", cwd=other)
    git("commit", "-qm", "first", cwd=other)
    commit({"specs/a.yaml": "source: x\nchecks:\n  - injective: f32[8]{0}\n"})
    git("submodule", "--quiet", "add", str(other), "specs/vendor")
    commit({})
    return gate


def advance(text: str = MOVED) -> None:
    """A new commit in the submodule, and the index of the whole names it."""
    Path("specs/vendor/v.yaml").write_text(text)
    git("commit", "-qam", "next", cwd="specs/vendor")
    git("add", "specs/vendor")


def test_a_submodule_that_is_here(vendored: Gate) -> None:
    """Its files are compared as all others are, at the commits that both states name."""
    assert vendored() == (0, [])
    advance()
    code, found = vendored()
    assert (code, said(found)) == (1, {"deny moved"})
    assert found[0]["relpath"] == "specs/vendor/v.yaml"
    assert vendored("specs/vendor")[0] == 1
    assert vendored("specs/vendor/v.yaml")[0] == 1
    assert vendored("specs/a.yaml") == (0, [])


def test_a_submodule_that_is_not_here(vendored: Gate) -> None:
    """Unchanged there is nothing to say; changed, gone or new it is unknown, by its name."""
    git("submodule", "--quiet", "deinit", "-f", "specs/vendor")
    assert vendored() == (0, [])
    git("update-index", "--cacheinfo", f"160000,{'1' * 40},specs/vendor")
    for _ in range(2):
        code, (found,) = vendored()
        assert (code, found["subject"], found["verdict"]) == (3, "specs/vendor", "unknown")
        git("update-index", "--force-remove", "specs/vendor")
    code, (found,) = vendored("specs/vendor/v.yaml")
    assert (code, found["subject"]) == (3, "specs/vendor")
    git("commit", "-qm", "without")
    assert vendored() == (0, [])
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},specs/vendor")
    assert vendored()[0] == 3


def test_a_submodule_without_its_old_commit(vendored: Gate) -> None:
    """It cannot be compared, which is unknown."""
    git("update-index", "--cacheinfo", f"160000,{'1' * 40},specs/vendor")
    git("commit", "-qm", "another")
    code, found = vendored()
    assert code == 3
    assert "unknown unknown" in said(found)


def test_links(gate: Gate, tmp_path: Path) -> None:
    """A file that becomes a link to the same text is no change; one that leads out of the repository is unknown."""
    commit({"specs/a.yaml": SPEC})
    Path("kept").mkdir()
    Path("specs/a.yaml").rename("kept/a.yaml")
    Path("specs/a.yaml").symlink_to("../kept/a.yaml")
    assert gate() == (0, [])
    write({"kept/a.yaml": MOVED})
    assert said(gate()[1]) == {"deny moved"}
    (tmp_path / "outside.yaml").write_text(SPEC)
    for target, code, expected in (
        ("outside.yaml", 1, {"deny removed", "unknown unknown"}),
        ("none", 1, {"deny removed"}),
    ):
        Path("specs/a.yaml").unlink()
        Path("specs/a.yaml").symlink_to(tmp_path / target)
        found_code, found = gate()
        assert (found_code, said(found)) == (code, expected)


NEVER = """\
source: here
layouts:
  asked: f32[8]{0}
  unused: f32[9]{0}
  k: {kernel: {grid: [2], outputs: [{name: o, array: "f32[16]", block: [8], index: "(i) -> (i)"}]}}
kernels:
  mm: {trace: "user.py:mm"}
  other: {trace: "user.py:mm"}
checks:
  - same_map: [asked, asked]
"""


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github", "html"])
def test_what_is_stated_and_never_asked(form: str, gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` names it in every form; what is asked, by whichever call of it, is not named."""
    write({"specs/a.yaml": NEVER})
    assert cli.run(["check", "--format", form]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert [each["subject"] for each in json.loads(out)["never_asked"]] == ["unused", "k", "mm", "other"]
    else:
        assert "stated and never asked" in out
        assert (
            "layout unused (specs/a.yaml:4), layout k (specs/a.yaml:5), kernel mm (specs/a.yaml:7), kernel other" in out
        )
    asked = "  - injective: unused\n  - kernel: k\n  - kernel: mm\n    expect: unknown\n  - kernel: other[0]\n"
    write({"specs/a.yaml": NEVER + asked})
    cli.run(["check", "--format", form])
    out = capsys.readouterr().out
    assert "stated and never asked" not in out
    assert form != "json" or json.loads(out)["never_asked"] == []


def test_a_lock_that_does_not_say_what_is_here(gate: Gate) -> None:
    """Who rewrites the lock decides what the next change is compared with: it has to be what `--lock` writes."""
    kernel = STATED.replace("layouts:\n", "layouts:\n  a: f32[3,5]{1,0}\n")
    write({"specs/k.yaml": kernel})
    assert cli.run(["gate", "--lock"]) == 0
    commit({})
    right = Path("layoutproof.lock").read_text()
    assert gate() == (0, [])
    write({"layoutproof.lock": right.replace("f32[3,5]{1,0}", "f32[3,5]{0,1}")})
    assert said(gate()[1]) == {"deny lock"}
    write({"specs/k.yaml": kernel.replace("checks:", "  b: f32[7]{0}\nchecks:")})
    assert cli.run(["gate", "--lock"]) == 0
    assert Path("layoutproof.lock").read_text() != right
    assert said(gate()[1]) == {"allow added"}


DUMP = (
    "HloModule f, entry_computation_layout={(f32[4,8]{1,0})->f32[4,8]{1,0}}\n\nENTRY %f (x: f32[4,8]) -> f32[4,8] {\n"
)
DUMP += "  %x = f32[4,8]{1,0} parameter(0)\n  ROOT %n = f32[4,8]{1,0} negate(f32[4,8]{1,0} %x)\n}\n"


def test_a_dump_that_no_revision_holds(gate: Gate) -> None:
    """Made anew for each run and never committed, it is compared with what the base's lock says of it."""
    write({"dumps/f.txt": DUMP, ".gitignore": "dumps\n"})
    assert cli.run(["gate", "--lock", "dumps"]) == 0
    commit({})
    assert gate("dumps") == (0, [])
    write({"dumps/f.txt": DUMP.replace("{1,0}", "{0,1}")})
    assert cli.run(["gate", "--lock", "dumps"]) == 0
    code, found = gate("dumps")
    assert (code, said(found)) == (1, {"deny abi"})


def test_two_folders_with_a_lock(gate: Gate) -> None:
    """The lock is the old folder's."""
    pytest.importorskip("jax", reason="JAX is not installed")
    write({"user.py": USER, "old/specs/k.yaml": TRACED})
    shutil.copytree("old/specs", "specs")
    assert cli.run(["gate", "--lock"]) == 0
    Path("layoutproof.lock").rename("old/layoutproof.lock")
    shutil.rmtree("specs")
    shutil.copytree("old", "new")
    assert cli.run(["gate", "old/specs", "new/specs"]) == 0
    write({"user.py": USER.replace("(4,)", "(3,)")})
    assert cli.run(["gate", "old/specs", "new/specs"]) == 1


def test_a_gated_folder_that_is_a_link(gate: Gate) -> None:
    """What it leads to is read on both sides, by whichever way it is named."""
    commit({"kept/a.yaml": SPEC})
    Path("specs").symlink_to("kept")
    commit({})
    assert gate() == (0, [])
    write({"kept/a.yaml": MOVED})
    for paths in ((), ("specs/a.yaml",), ("kept",)):
        assert said(gate(*paths)[1]) == {"deny moved"}
    Path("specs").unlink()
    Path("kept").rename("specs")
    assert said(gate()[1]) == {"deny moved"}


def test_a_lock_that_cannot_be_read(gate: Gate) -> None:
    """It hides nothing: what changed is said beside it, and the exit code is that of bad input, or of unknown."""
    commit({"specs/a.yaml": SPEC, "layoutproof.lock": "no lock\n"})
    write({"specs/a.yaml": MOVED})
    assert said(gate()[1]) == {"deny moved", "unknown unknown"}
    write({"layoutproof.lock": "no lock either\n"})
    code, found = gate()
    assert (code, said(found)) == (1, {"deny moved", "unknown unknown", "error error"})


def test_a_wrong_kernel_in_two_files_instead_of_one(gate: Gate) -> None:
    """What the base states is as wrong as it was, also when a file is split; what it does not state is new."""
    wrong = STATED.replace("[4, 2]", "[3, 2]")
    claim = "  - outputs_covered: k\n    expect: refuted\n"
    commit({"specs/k.yaml": wrong + claim})
    write(
        {
            "specs/k.yaml": None,
            "specs/one.yaml": wrong,
            "specs/two.yaml": wrong.partition("checks")[0] + "checks:\n" + claim,
        }
    )
    assert gate()[0] == 0
    write({"specs/one.yaml": wrong.replace("[3, 2]", "[2, 2]")})
    assert "deny refuted" in said(gate()[1])


def test_code_that_may_not_be_run_is_unknown(gate: Gate) -> None:
    """With --no-trace nobody knows what the code does now, however little changed; what is stated is still compared."""
    pytest.importorskip("jax", reason="JAX is not installed")
    write({"specs/k.yaml": TRACED, "user.py": USER})
    assert cli.run(["gate", "--lock"]) == 0
    commit({})
    code, (found,) = gate("--no-trace")
    assert (code, found["verdict"], found["subject"]) == (3, "unknown", "kernel mm")
    write({"specs/k.yaml": TRACED.replace(", target: v5e", "")})
    assert said(gate("--no-trace")[1]) == {"deny loosened", "unknown unknown"}


def test_two_files_become_one(gate: Gate) -> None:
    """What both said alike is said once, and nothing is lost; what only one of them said has to stay."""
    other = SPEC.replace("40%", "30%")
    commit({"specs/a.yaml": SPEC, "specs/b.yaml": other})
    write({"specs/a.yaml": None, "specs/b.yaml": None, "specs/c.yaml": other + TAIL})
    assert said(gate()[1]) == {"allow respelled"}
    write({"specs/c.yaml": SPEC})
    assert said(gate()[1]) == {"deny removed"}


def test_moved_and_tightened_until_it_is_false(gate: Gate) -> None:
    """It demands more than it did, which is no harm, and it does not hold, which is."""
    commit(dict(TWO))
    write({"specs/a.yaml": None, "specs/c.yaml": SPEC.replace("40%", "10%")})
    assert said(gate()[1]) == {"allow respelled", "deny refuted"}
