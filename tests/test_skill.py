"""The skill for agents names questions, commands and options that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layoutproof.cli.main import cli
from layoutproof.registry.catalogue import kernel_properties

TEXT = (Path(__file__).resolve().parents[1] / "skills" / "layoutproof" / "SKILL.md").read_text("utf-8")


def test_the_front_matter_has_what_readers_of_skills_ask_for() -> None:
    """A name as the folder's, and a description that says when to use it, of at most 1,024 characters."""
    found = re.fullmatch(r"(?s)---\nname: layoutproof\ndescription: ([^\n]+)\n---\n.*", TEXT)
    assert found is not None
    assert found[1].startswith("Use when")
    assert len(found[1]) <= 1024


def test_questions() -> None:
    """Every question of the table is one."""
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 15
    assert set(names) <= set(kernel_properties())


@pytest.mark.slow
def test_commands_and_options() -> None:
    """Every command that is shown takes the options that stand beside it."""
    shown = re.findall(r"`layoutproof (\w+)([^`]*)`", TEXT)
    assert {name for name, _ in shown} >= {"same", "kernels", "compile", "gate", "explain"}
    for name, rest in shown:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None, name
        known = {option for param in command.params for option in param.opts}
        assert set(re.findall(r"(?<!\w)--[a-z-]+", rest)) <= known, (name, rest)
