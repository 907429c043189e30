"""A link that leads out of the repository is not followed with `--no-trace`: a report would quote what lies there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from layoutproof.cli import main as cli

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
