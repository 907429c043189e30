"""The gate as a user runs it: two folders, a git revision, the lock file; exit codes and forms."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from tests.gating.test_programs import SMALL
from tests.said import stretch, words

pytestmark = pytest.mark.slow

OLD = "source: here\nlayouts:\n  a: f32[3,5]{1,0}\n  b: f32[4,128]{1,0:T(4,128)}\nchecks:\n  - injective: a\n"
MOVED = OLD.replace("{1,0}\n", "{0,1}\n", 1)
GREW = OLD.replace("T(4,128)", "T(8,128)")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """One command line in an empty folder: its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    # beside the folder: whether an answer is slow enough to be kept must not show in the work tree
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path.with_name(f"{tmp_path.name}_cache")))

    def run_one(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["gate", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run_one


def write(name: str, text: str) -> None:
    """A file in the current folder."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def git(*arguments: str) -> str:
    """One git command in the current folder, without the user's own settings."""
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *settings, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(run: Any) -> Any:
    """A repository with one commit of specs/s.yaml."""
    git("init", "-q", "-b", "main")
    write("specs/s.yaml", OLD)
    git("add", ".")
    git("commit", "-qm", "first")
    return run


@pytest.mark.parametrize(
    ("new", "rules", "code", "last"),
    [
        (OLD, "", 0, "no change in 1 file"),
        (MOVED, "", 1, "1 finding in 1 file: 1 denied"),
        (MOVED, 'moved = "warn"', 0, "1 finding in 1 file: 0 denied, 1 warned"),
        (GREW, "", 0, "1 finding in 1 file: 0 denied, 1 warned"),
        (GREW, 'grew = "deny above 99%"', 1, "1 finding in 1 file: 1 denied"),
        (GREW, 'grew = "deny above 100%"', 0, "1 finding in 1 file: 0 denied, 1 allowed"),
        (OLD.replace("f32[3,5]{1,0}", "f32[3,5]{1,0:SC(1:2)}"), 'lost = "allow"', 3, "unknown"),
        (OLD.replace("injective", "injectve"), "", 1, "1 denied, 1 error"),
        (OLD, 'mooved = "warn"', 2, ""),
    ],
)
def test_exit_codes(new: str, rules: str, code: int, last: str, run: Any) -> None:
    """0 nothing denied, 1 denied, 2 bad input, 3 unknown."""
    write("old/s.yaml", OLD)
    write("new/s.yaml", new)
    write("pyproject.toml", f"[tool.layoutproof.gate]\n{rules}\n")
    found, out, err = run("old", "new")
    assert found == code, out + err
    assert last in (out.splitlines() or [""])[-1]


HLO = "HloModule a, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\n\nENTRY %m (x: f32[4]) -> f32[4] {\n"
HLO += "  ROOT %x = f32[4]{0} parameter(0)\n}\n"
UNREAD = {
    "a YAML error": ("s.yaml", OLD, OLD.replace("layouts:", "layouts: ["), "3:"),
    "a layout that does not parse": ("s.yaml", OLD, OLD.replace("{1,0:T(4,128)}", "{1,0:T(4"), "4:6"),
    "a claim that is none": ("s.yaml", OLD, OLD.replace("injective", "injectve"), "6:5"),
    "no text": ("a.txt", HLO, "\0\1\2 nothing that is known", "1"),
    "a broken line": ("a.txt", HLO, HLO.replace("f32[4]{0} p", "f32[4]{0 p"), "4"),
}


@pytest.mark.parametrize("case", UNREAD)
def test_an_old_state_that_cannot_be_read_is_an_error_as_a_new_one_is(case: str, run: Any) -> None:
    """With its place: what it stated is not known, so what of it is gone is not. The old state was green."""
    name, right, wrong, place = UNREAD[case]
    write(f"right/{name}", right)
    write(f"wrong/{name}", wrong)
    code, out, _ = run(f"wrong/{name}", f"right/{name}")
    assert code == 2, out
    assert re.search(rf"^error .*   wrong/{name}:{place}", out, re.MULTILINE), out
    assert re.search(rf"^error .*   wrong/{name}:{place}", run(f"right/{name}", f"wrong/{name}")[1], re.MULTILINE)
    if case != "a broken line":  # a dump that is the same, to the byte, is not read
        assert run(f"wrong/{name}", f"wrong/{name}")[0] == 2
    assert run(f"right/{name}", f"right/{name}")[0] == 0


def test_against_a_revision_without_touching_the_work_tree(repository: Any) -> None:
    """The change is seen, also one that is not committed; index and files stay as they are."""
    write("specs/s.yaml", MOVED)
    write("specs/new.yaml", OLD)
    before = (git("status", "--porcelain"), Path(".git/index").read_bytes(), Path("specs/s.yaml").stat().st_mtime_ns)
    code, out, err = repository("--against", "main")
    assert (code, err) == (1, "")
    assert "deny     moved  layout a   specs/s.yaml:3:6" in out
    assert "allow    added  layout b   specs/new.yaml:4:6" in out
    after = (git("status", "--porcelain"), Path(".git/index").read_bytes(), Path("specs/s.yaml").stat().st_mtime_ns)
    assert before == after


def test_against_from_a_folder_below(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are from where one is; a file that is gone is removed; a fingerprint is the same from anywhere."""
    write("specs/s.yaml", MOVED)
    above = json.loads(repository("--against", "HEAD", "specs", "--json")[1])["findings"]
    monkeypatch.chdir("specs")
    below = json.loads(repository("--against", "HEAD", ".", "--json")[1])["findings"]
    assert [f["fingerprint"] for f in above] == [f["fingerprint"] for f in below]
    assert [f["file"] for f in below] == ["s.yaml"]
    Path("s.yaml").unlink()
    code, out, _ = repository("--against", "HEAD", ".")
    assert code == 1
    assert out.count("deny     removed") == 3


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("nowhere", stretch("gating.unknown_revision", reference="nowhere")),
        ("--all", stretch("gating.no_revision_name")),
    ],
)
def test_a_revision_that_is_not_there(reference: str, problem: str, repository: Any) -> None:
    """In plain words, exit 2."""
    code, out, err = repository(f"--against={reference}")
    assert (code, out) == (2, "")
    assert problem in err


def test_outside_a_repository(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git's own words on one line, no traceback."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(Path.cwd().parent))
    code, _, err = run("--against", "main")
    assert code == 2
    assert "not a git repository" in err


def test_rules_that_change_along_with_what_they_judge(repository: Any) -> None:
    """A loosened rule is a finding beside what it would let through."""
    write("specs/s.yaml", MOVED)
    write("pyproject.toml", '[tool.layoutproof.gate]\nmoved = "allow"\n')
    code, out, _ = repository("--against", "main")
    assert code == 1
    assert "deny     policy  the gate's rules   pyproject.toml:1" in out
    assert "deny     moved  layout a" in out


@pytest.mark.parametrize("where", ["pyproject.toml", "specs/s.yaml"])
def test_new_rules_cannot_allow_themselves(where: str, repository: Any) -> None:
    """Whether the rules may change is for the rules of the old state to say."""
    strict, loose = '[tool.layoutproof.gate]\npolicy = "{}"\n', "gate: {policy: allow, moved: allow}\n"
    write("pyproject.toml", strict.format("deny"))
    git("add", ".")
    git("commit", "-qm", "strict")
    if where == "pyproject.toml":
        write(where, strict.format("allow"))
    else:
        write(where, MOVED + loose)
    code, out, _ = repository("--against", "main")
    assert code == 1
    assert "deny     policy  the gate's rules" in out


def test_rules_that_are_deleted_or_covered(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old state's rules are those that were nearest then: a nearer empty file does not do away with them unseen."""
    write("pyproject.toml", '[tool.layoutproof.gate]\npolicy = "deny"\ngrew = "deny"\n')
    git("add", ".")
    git("commit", "-qm", "strict")
    assert repository("--against", "main")[0] == 0
    write("specs/pyproject.toml", "")
    monkeypatch.chdir("specs")
    code, out, _ = repository("--against", "main", "s.yaml")
    assert code == 1
    assert "deny     policy  the gate's rules" in out
    monkeypatch.chdir("..")
    Path("pyproject.toml").unlink()
    code, out, _ = repository("--against", "main")
    assert code == 1
    assert "deny     policy  the gate's rules" in out


def test_links_are_read_on_both_sides(repository: Any) -> None:
    """A spec file that is a link is compared with what it led to; one that leads nowhere is none."""
    write("elsewhere/t.yaml", OLD)
    Path("specs/t.yaml").symlink_to("../elsewhere/t.yaml")
    Path("specs/none.yaml").symlink_to("../elsewhere/none.yaml")
    Path("specs/out.yaml").symlink_to("/nowhere/at all.yaml")
    git("add", ".")
    git("commit", "-qm", "links")
    assert repository("--against", "HEAD")[0] == 0
    write("elsewhere/t.yaml", MOVED)
    code, out, _ = repository("--against", "HEAD")
    assert code == 1
    assert "deny     moved  layout a   specs/t.yaml:3:6" in out


def test_a_text_beside_the_only_spec_file(repository: Any) -> None:
    """It is neither claims nor HLO, and no mistake."""
    write("specs/notes.txt", "to do")
    code, out, _ = repository("--against", "main")
    assert code == 0
    assert "not compared: specs/notes.txt" in out


def test_a_file_name_that_is_no_text(run: Any) -> None:
    """Bytes that are no UTF-8 in a name break no form, no lock and no fingerprint."""
    name = os.fsdecode(b"\xff\n.yaml")
    write(f"old/{name}", OLD)
    write(f"new/{name}", MOVED)
    for form in ("text", "json", "sarif", "junit", "github", "html"):
        code, out, err = run("old", "new", "--format", form)
        assert (code, err) == (1, "")
        assert out.encode()
    (found,) = json.loads(run("old", "new", "--json")[1])["findings"]
    stanza = run("old", "new", "--approve", found["fingerprint"])[1]
    assert len(tomllib.loads(stanza)["tool"]["layoutproof"]["gate"]["approvals"]) == 1
    assert run("--lock", "new")[0] == 0
    assert run()[0] == 0


def test_approving_one_finding(run: Any) -> None:
    """The printed stanza, with a reason, lets this finding pass and no other; --new-only leaves it out."""
    write("old/s.yaml", OLD)
    write("new/s.yaml", MOVED)
    (finding,) = json.loads(run("old", "new", "--json")[1])["findings"]
    code, stanza, _ = run("old", "new", "--approve", finding["fingerprint"])
    assert code == 0
    write("pyproject.toml", stanza.replace('reason = ""', 'reason = "measured"'))
    code, out, _ = run("old", "new")
    assert (code, "approved until" in out) == (0, True)
    code, out, _ = run("old", "new", "--new-only")
    assert (code, out) == (0, "new against old: no change in 1 file; 1 allowed or approved not shown\n")
    write("new/s.yaml", OLD.replace("f32[3,5]{1,0}", "f32[3,5]{0,1:T(2,2)}"))
    assert run("old", "new")[0] == 1
    assert run("old", "new", "--approve", "0" * 16)[0] == 2


def test_the_lock_file(run: Any) -> None:
    """Written, in step; drift is seen with its class; a respelling is no drift; conflicts are refused by line."""
    write("specs/s.yaml", OLD)
    assert run("--lock") == (0, "layoutproof.lock: 1 file\n", "")
    assert run()[0] == 0
    assert run() == (0, "what is here against layoutproof.lock: no change in 1 file\n", "")
    lines = Path("layoutproof.lock").read_text().splitlines()
    assert lines[1:] == sorted(lines[1:])
    write("specs/s.yaml", MOVED)
    code, out, _ = run()
    assert code == 1
    assert "deny     moved  layout a   specs/s.yaml:3:6" in out
    write("specs/s.yaml", OLD.replace("f32[3,5]{1,0}", "f32[3,5]"))
    assert run()[0] == 0
    write("layoutproof.lock", "\n".join([lines[0], "<<<<<<< ours", *lines[1:]]))
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("layoutproof.lock:2: a merge conflict")


def test_a_verdict_in_the_lock_that_is_no_longer_reached(run: Any) -> None:
    """Nothing in the specs changed, but what the lock says was proved is not: the tool's own drift."""
    write("specs/s.yaml", 'source: x\nchecks:\n  - injective: {strided: "f32[3,5] strides (4,1)"}\n')
    run("--lock")
    text = Path("layoutproof.lock").read_text()
    assert '"refuted"]' in text
    write("layoutproof.lock", text.replace('"refuted"]', '"proved"]'))
    code, out, _ = run()
    assert code == 1
    assert "injective was proved, now it is refuted: (0, 4) and (1, 0) are both stored at offset 4" in out


def test_a_claim_that_was_refuted_when_it_was_locked(run: Any) -> None:
    """It is refuted still, and nothing else is said: the claim is the same, so nobody made it tighter."""
    write("specs/s.yaml", 'source: x\nchecks:\n  - injective: {strided: "f32[3,5] strides (4,1)"}\n')
    run("--lock")
    code, out, _ = run()
    assert code == 1
    assert [line.split()[:2] for line in out.splitlines() if not line.startswith(" ")][:-1] == [["deny", "refuted"], []]
    assert out.endswith("1 finding in 1 file: 1 denied\n")
    write("specs/s.yaml", Path("specs/s.yaml").read_text() + "    expect: refuted\n")
    code, out, _ = run()
    assert (code, "loosened" in out, words("gating.expect_changed", old="proved", new="refuted") in out) == (
        1,
        True,
        True,
    )
    run("--lock")
    assert run()[0] == 0


def test_usage(run: Any) -> None:
    """What cannot be meant is usage, exit 2, and says what to give."""
    assert run()[0] == 2
    assert "layoutproof.lock" in run()[2]
    assert run("one")[0] == 2
    assert run("one", "two") == (2, "", "one: no such file or folder\n")
    code, _, said = run("--lock")
    assert code == 2
    assert "specs: no such file or folder; it is read where no path is given: name your files" in said
    assert run("a", "b", "--scheduler", "x")[0] == 2
    write("old/s.yaml", OLD)
    write("empty/readme.md", "")
    assert run("old", "old/s.yaml")[0] == 2
    assert "nothing to compare" in run("empty", "empty")[2]


def test_two_files_of_different_names(run: Any) -> None:
    """They are compared as one and the same."""
    write("before.yaml", OLD)
    write("after.yaml", MOVED)
    code, out, _ = run("before.yaml", "after.yaml")
    assert code == 1
    assert "moved  layout a   after.yaml:3:6" in out


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github", "html"])
def test_forms_are_written_to_a_file(form: str, run: Any) -> None:
    """--output writes the form and leaves the counting line on stdout."""
    write("old/s.yaml", OLD)
    write("new/s.yaml", MOVED)
    code, out, _ = run("old", "new", "--format", form, "--output", "report")
    assert (code, out) == (1, "new against old: 1 finding in 1 file: 1 denied\n")
    assert "moved" in Path("report").read_text()


def test_many_processes_give_the_same_report(run: Any) -> None:
    """Byte for byte, in the same order."""
    for k in range(12):
        write(f"old/{k}.yaml", OLD)
        write(f"new/{k}.yaml", (MOVED, GREW, OLD)[k % 3].replace("a:", f"a{k}:").replace(": a\n", f": a{k}\n"))
    one = run("old", "new", "--json")
    assert run("old", "new", "--json", "--jobs", "2") == one
    assert len(json.loads(one[1])["findings"]) > 12


def test_an_interrupt_leaves_a_usable_part(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found before is there, and it is said to be a part; exit 130."""
    from layoutproof.gating import compare

    for k in range(3):
        write(f"old/{k}.yaml", OLD)
        write(f"new/{k}.yaml", MOVED)
    real = compare.compare_pair

    def interrupted(pair: Any) -> Any:
        if pair.relpath == "2.yaml":
            raise KeyboardInterrupt
        return real(pair)

    monkeypatch.setattr(compare, "compare_pair", interrupted)
    code, out, _ = run("old", "new", "--json")
    report = json.loads(out)
    assert (code, report["partial"], report["notes"]) == (130, True, [words("gating.interrupted", done=2, changed=3)])
    assert [f["relpath"] for f in report["findings"]] == ["0.yaml", "1.yaml"]


@pytest.mark.parametrize("left", ["HloModule jit", "the first computation", "all but the last line", "half a line"])
@pytest.mark.parametrize("command", ["gate", "hlo"])
def test_a_dump_that_is_cut_short_is_wrong_also_where_nothing_changed(
    command: str, left: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two equal halves of a dump are no two equal programs: wrong input, with the place, for `gate` as for `hlo`."""
    whole = SMALL.replace("jit_f,", "jit_f, is_scheduled=true,").rstrip() + "\n"
    ends = {"HloModule jit": 13, "the first computation": whole.index("ENTRY"), "half a line": whole.rindex("fusion(")}
    file = tmp_path / "dump.txt"
    twice = [command, str(file), *([str(file)] if command == "gate" else [])]
    file.write_text(whole[: ends.get(left, whole.rindex("}"))])
    assert cli.run(twice) == 2
    out, err = capsys.readouterr()
    assert "dump.txt:" in out + err
    file.write_text(whole)
    assert cli.run(twice) == 0


def test_one_run_in_several_forms(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """--also writes the same report in other forms, that of check from its cache too; what is no form is said."""
    write("old/s.yaml", OLD)
    write("new/s.yaml", MOVED)
    shown = run("old", "new")
    assert run("old", "new", "--also", "json=report.json", "--also", "sarif=report.sarif") == shown
    assert json.loads(Path("report.json").read_text())["exit_code"] == 1
    assert Path("report.sarif").read_text() == run("old", "new", "--format", "sarif")[1].removesuffix("\n")
    for _ in range(2):
        assert cli.run(["check", "new", "--also", "markdown=page.md"]) == 0
        assert Path("page.md").read_text().startswith("### layoutproof: 1 claim as stated")
        Path("page.md").unlink()
    capsys.readouterr()
    for bad in ("html", "html=", "paper=a"):
        assert run("old", "new", "--also", bad)[0] == 2
