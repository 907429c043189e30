"""The page of what is public lists what is there, no more and no less."""

from __future__ import annotations

import ast
import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import pytest

import layoutproof as lp
import layoutproof.cli.commands
from layoutproof import formats
from layoutproof.core.document import envelope
from layoutproof.core.finding import Answer, Finding, as_dict
from layoutproof.core.plugins import KINDS
from layoutproof.registry import catalogue, hardware, read

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "public.md").read_text("utf-8")


def section(title: str) -> str:
    """The part of the page under a heading."""
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def first_cells(text: str) -> list[str]:
    """What stands in backticks in the first cells of a section's tables."""
    rows = re.findall(r"^\| (`[^|]*|\d+ )\|", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`|(\d+)", row) for name in name if name]


def test_names() -> None:
    """The table names exactly what `lp.__all__` has; each is there, with a docstring."""
    assert sorted(first_cells(section("Names of `layoutproof`"))) == sorted(lp.__all__)
    for name in lp.__all__:
        assert name == "__version__" or getattr(lp, name).__doc__, name


def test_commands_and_exit_codes() -> None:
    """Every file of `cli.commands`, and every exit code."""
    text = section("Commands")
    commands = [m.name for m in pkgutil.iter_modules(layoutproof.cli.commands.__path__)]
    assert re.findall(r"`(\w+)`[,.]", text.partition("COMMAND`:")[2].partition("\n")[0]) == sorted(commands)
    assert first_cells(text) == ["0", "1", "2", "3", "130"]


def test_keys() -> None:
    """The keys that every finding has, and those that every document begins with."""
    keys = list(as_dict(Finding("injective", "f32[4]")))
    (said,) = re.findall(r"one key everywhere: (.*?)\.", section("JSON").replace("\n", " "))
    assert sorted(re.findall(r"`(\w+)`", said)) == sorted(keys)
    assert list(envelope(0)) == ["version", "exit_code"]
    (attributes,) = re.findall(r"^A `Finding` has (.*?)\.$", PAGE.replace("\n", " "), re.MULTILINE) or [
        PAGE.partition("A `Finding` has ")[2].partition(".")[0]
    ]
    named = re.findall(r"`(\w+)`", attributes.partition("## ")[0])
    assert set(named) >= set(keys)
    assert set(keys) <= {field.name for field in fields(Finding)}


def test_entry_points() -> None:
    """The groups, and what each one's modules need."""
    text = section("Entry points")
    assert first_cells(text) == [f"layoutproof.{kind}" for kind in KINDS]
    wanted = {*read.WANTED, *catalogue.WANTED, *hardware.WANTED, formats.WANTED}
    assert {name for names in wanted for name in names} <= set(re.findall(r"`(\w+)`", text))


def test_variables() -> None:
    """Every variable of the environment that the package reads under its own name."""
    sources = [path.read_text("utf-8") for path in Path(lp.__file__).parent.rglob("*.py")]
    used = {
        node.value
        for source in sources
        if "LAYOUTPROOF_" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch("LAYOUTPROOF_[A-Z_]+", node.value)
    }
    assert set(first_cells(section("Environment"))) == used


def test_answers_have_what_the_page_says() -> None:
    """Each attribute of answers that the page names is there."""
    (said,) = re.findall(r"^Every answer .*? has (.*?)the object", PAGE, re.DOTALL | re.MULTILINE)
    names = re.findall(r"`(\w+)(?:\(\))?`", said)
    assert names == ["findings", "exit_code", "as_dict", "to_json"]
    assert all(hasattr(Answer, name) for name in names)


def test_notebooks_use_only_what_is_public() -> None:
    """`layoutproof` and `layoutproof.algebra`, and names that they list."""
    for path in sorted((ROOT / "notebooks").glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                inner = [a.name for a in node.names if a.name.startswith("layoutproof.")]
                assert inner == [], f"{path.name}: {inner}"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("layoutproof"):
                assert re.fullmatch(r"layoutproof(\.algebra(\.\w+)?)?", node.module or ""), (
                    f"{path.name}: {node.module}"
                )
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lp":
                assert node.attr in lp.__all__, f"{path.name}: lp.{node.attr}"
