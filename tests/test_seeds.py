"""The page of the documents' statements: every command on it prints what stands below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from layoutproof.cli import main as cli
from tests.console_pages import Said, consoles, failed

PAGE = Path(__file__).resolve().parents[1] / "docs" / "seeds.md"
STATEMENT = re.compile(r"^\*\*([A-Z]\d+)\.\*\*(.*?)(?=^\*\*[A-Z]\d+\.\*\*|^## |\Z)", re.MULTILINE | re.DOTALL)
STATEMENTS = dict(STATEMENT.findall(PAGE.read_text("utf-8")))


def lacking(said: Said, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that a command does not print, in the order in which they stand; an error of which nothing is said."""
    code = cli.run(shlex.split(said.command)[1:])
    captured = capsys.readouterr()
    printed = iter([line.rstrip() for line in (captured.out + captured.err).splitlines()])
    return [*[f"exit code {code}"] * failed(said, code), *(line for line in said.lines if line not in printed)]


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_shown(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a command, and each line below it is printed, on a terminal as wide as the page."""
    monkeypatch.setenv("COLUMNS", "150")
    shown = consoles(STATEMENTS[name])
    assert shown
    for said in shown:
        assert said.lines, said.command
        assert lacking(said, capsys) == [], said.command


def test_a_line_that_is_not_printed_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """One offset off, and lines in another order; and an error that the page does not call one."""
    (said,) = consoles(STATEMENTS["X1"])
    assert said.lines[-1].split() == ["offset", "17", "byte", "68"]
    assert lacking(said._replace(lines=[*said.lines[:-1], said.lines[-1].replace("17", "18")]), capsys) != []
    assert lacking(said._replace(lines=said.lines[::-1]), capsys) != []
    (broken,) = [said for said in consoles(STATEMENTS["D7"]) if said.error]
    assert lacking(broken._replace(error=None), capsys) == ["exit code 2"]


def test_all_four_documents_are_there() -> None:
    """The numbers of each go from 1 up, and every statement says something."""
    for letter, least in (("A", 18), ("X", 27), ("P", 22), ("D", 7)):
        own = [name for name in STATEMENTS if name[0] == letter]
        assert own == [f"{letter}{number}" for number in range(1, len(own) + 1)]
        assert len(own) >= least
