"""The page of the documents' statements: every command on it prints what stands below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from layoutproof.cli import main as cli

PAGE = Path(__file__).resolve().parents[1] / "docs" / "seeds.md"
STATEMENT = re.compile(r"^\*\*([A-Z]\d+)\.\*\*(.*?)(?=^\*\*[A-Z]\d+\.\*\*|^## |\Z)", re.MULTILINE | re.DOTALL)
STATEMENTS = dict(STATEMENT.findall(PAGE.read_text("utf-8")))


def commands(statement: str) -> list[tuple[str, list[str]]]:
    """Each command of a statement, and the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", statement, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ layoutproof "):
                found.append((line.removeprefix("$ layoutproof "), []))
            else:
                found[-1][1].append(line)
    return found


def lacking(command: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that a command does not print, in the order in which they stand."""
    assert cli.run(shlex.split(command)) in (0, 1, 2, 3)
    captured = capsys.readouterr()
    printed = iter([line.rstrip() for line in (captured.out + captured.err).splitlines()])
    return [line for line in lines if line not in printed]


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_shown(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a command, and each line below it is printed, on a terminal as wide as the page."""
    monkeypatch.setenv("COLUMNS", "150")
    shown = commands(STATEMENTS[name])
    assert shown
    for command, lines in shown:
        assert lines, command
        assert lacking(command, lines, capsys) == [], command


def test_a_line_that_is_not_printed_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """One offset off, and lines in another order."""
    ((command, lines),) = commands(STATEMENTS["X1"])
    assert lines[-1].split() == ["offset", "17", "byte", "68"]
    assert lacking(command, [*lines[:-1], lines[-1].replace("17", "18")], capsys) != []
    assert lacking(command, lines[::-1], capsys) != []


def test_all_four_documents_are_there() -> None:
    """The numbers of each go from 1 up, and every statement says something."""
    for letter, least in (("A", 18), ("X", 27), ("P", 22), ("D", 7)):
        own = [name for name in STATEMENTS if name[0] == letter]
        assert own == [f"{letter}{number}" for number in range(1, len(own) + 1)]
        assert len(own) >= least
