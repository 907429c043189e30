"""A link that leads out of the repository is not followed with `--no-trace`: a report would quote what lies there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from layoutproof.cli import main as cli
from tests.said import stretch

SECRET = "sk_live_51Hq"
FINE = 'layouts: {a: "f32[3,5]{1,0}"}\nchecks: [{injective: a}]\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with claims, in which a stranger may put links; beside it a file of the machine."""
    folder = tmp_path / "work"
    for name in ("specs", "other", ".git"):
        (folder / name).mkdir(parents=True)
    (folder / "other" / "a.yaml").write_text(FINE)
    (folder / ".git" / "config").write_text(f"{SECRET}: token\n")
    (tmp_path / "secret.yaml").write_text(f"{SECRET}: of this machine\n")
    (tmp_path / "folder" / ".git").mkdir(parents=True)
    (tmp_path / "folder" / "a.yaml").write_text(f"{SECRET}: of this machine\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "off")
    return folder


COMMANDS = {
    "check": ("check", "specs"),
    "gate": ("gate", "other", "specs"),
    "search": ("search", "specs/a.yaml"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("to", ["../../secret.yaml", "../.git/config"])
def test_a_link_out(command: str, to: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused with --no-trace; without it the files are one's own, and are read."""
    (work / "specs" / "a.yaml").symlink_to(to)
    assert cli.run([*COMMANDS[command], "--no-trace"]) == 2
    said = "".join(capsys.readouterr())
    assert "a link out of the repository" in said
    assert SECRET not in said
    assert cli.run(COMMANDS[command]) == 2
    assert "a link out of the repository" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("elsewhere", [False, True], ids=["from within", "from elsewhere"])
@pytest.mark.parametrize("to", ["../folder", "between"])
def test_a_folder_that_is_a_link(
    to: str, elsewhere: bool, work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is a repository itself, and where the command stands somewhere else."""
    (work / "specs").rmdir()
    (work / "between").symlink_to("../folder", target_is_directory=True)
    (work / "specs").symlink_to(to, target_is_directory=True)
    if elsewhere:
        monkeypatch.chdir("/")
    assert cli.run(["check", str(work / "specs"), "--no-trace"]) == 2
    said = "".join(capsys.readouterr())
    assert "a link out of the repository" in said
    assert SECRET not in said


@pytest.mark.parametrize("marked", [True, False], ids=["of git", "of no git"])
def test_a_link_that_stays(marked: bool, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is followed, in a folder without git too, and where the repository itself is reached by a link."""
    if not marked:
        shutil.rmtree(work / ".git")
    (work / "specs" / "a.yaml").symlink_to("../other/a.yaml")
    assert cli.run(["check", "specs", "--no-trace"]) == 0
    (work.parent / "by a link").symlink_to(work, target_is_directory=True)
    monkeypatch.chdir(work.parent / "by a link")
    assert cli.run(["check", "specs", "--no-trace"]) == 0
    if marked:
        monkeypatch.chdir("/")
        assert cli.run(["check", str(work.parent / "by a link" / "specs"), "--no-trace"]) == 0


RECORD = {"dump": "HloModule {}, entry_computation_layout=\nENTRY e {{ {} }}\n", "record": '["{}"]\n'}
"""What a report says of a file that is none: its first words."""


@pytest.mark.parametrize("key", RECORD)
@pytest.mark.parametrize("to", ["absolute", "up", "by a link"])
def test_a_file_that_a_file_names(to: str, key: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`dump:` and `record:` of a spec file name what lies in the repository; without --no-trace they are one's own."""
    secret = work.parent / "secret.txt"
    secret.write_text(RECORD[key].format(SECRET, SECRET))
    (work / "link").symlink_to("..", target_is_directory=True)
    given = {"absolute": secret.as_posix(), "up": "../secret.txt", "by a link": "link/secret.txt"}[to]
    spec = f'programs: {{p: {{{key}: "{given}"}}}}\nchecks: [{{peak_memory: p, at_most: 1GiB}}]\n'
    (work / "specs" / "a.yaml").write_text(spec)
    assert cli.run(["check", "specs", "--no-trace"]) == 2
    said = "".join(capsys.readouterr())
    assert "outside of the repository" in said
    assert SECRET not in said
    assert cli.run(["check", "specs"]) == 2
    assert "outside of the repository" not in "".join(capsys.readouterr())


def test_a_file_of_the_repository_that_a_file_names(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is read; what git keeps is not."""
    spec = "programs: {p: {record: %s}}\nchecks: [{peak_memory: p, at_most: 1GiB}]\n"
    (work / "specs" / "a.yaml").write_text(spec % "specs/p.json")
    (work / "specs" / "p.json").write_text("[]")
    assert cli.run(["check", "specs", "--no-trace"]) == 2
    assert stretch("programs.no_record") in "".join(capsys.readouterr())
    (work / "specs" / "a.yaml").write_text(spec % ".git/config")
    assert cli.run(["check", "specs", "--no-trace"]) == 2
    assert "outside of the repository" in "".join(capsys.readouterr())
