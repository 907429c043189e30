"""What the README says is so: its examples give what stands beside them, its tables name what there is."""

from __future__ import annotations

import ast
import enum
import re
import shlex
from pathlib import Path

import click
import pytest

from layoutproof.cli import main as cli
from layoutproof.specs.check import run
from layoutproof.specs.spec import loads
from tests.cli.in_one_process import commands

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def block(language: str) -> str:
    """The only fenced block in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return str(found)


def wrong_examples(source: str) -> list[str]:
    """Lines whose comment does not start with the value of their expression; every line runs."""
    names: dict[str, object] = {}
    wrong, compared = [], 0
    for line in source.splitlines():
        try:
            code = compile(line, "README.md", "eval")
        except SyntaxError:
            exec(line, names)
            continue
        value = eval(code, names)
        parts = value if isinstance(ast.parse(line, mode="eval").body, ast.Tuple) else (value,)
        shown = ", ".join(str(part) if isinstance(part, enum.Enum) else repr(part) for part in parts)  # type: ignore[union-attr]
        compared += 1
        if not line.partition("  # ")[2].strip().startswith(shown):
            wrong.append(f"{line} is {shown}")
    return wrong if compared else ["nothing to compare"]


def test_python_examples() -> None:
    """Each line runs, and each comment begins with the value."""
    assert wrong_examples(block("python")) == []


def test_a_wrong_example_is_found() -> None:
    """The check above can fail: on another value, on none, and where nothing is compared."""
    assert wrong_examples("1 + 1  # 3") == ["1 + 1  # 3 is 2"]
    assert wrong_examples("1 + 1") == ["1 + 1 is 2"]
    assert wrong_examples("a = 1") == ["nothing to compare"]


@pytest.mark.slow
def test_the_kernel_job(tmp_path: Path) -> None:
    """Each line below the command is printed by it, from `..` on anything; the page says that it needs JAX."""
    before, shown = re.findall(r"(.*)\n\n```text\n\$ layoutproof (.*?)^```$", README, re.DOTALL | re.MULTILINE)[0]
    assert "[jax]" in before.split("\n\n")[-1]
    pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")
    command, *lines = shown.replace("\\\n", " ").splitlines()
    (answer,), _ = commands(tmp_path, shlex.split(command), seconds=300)
    assert answer.code == 1
    printed = iter([re.sub(r" \S*/(?=jax/)", " ", line) for line in answer.out.splitlines()])
    for line in lines:
        assert any(
            said.split()[: len(wanted)] == wanted for wanted in [line.removesuffix("..").split()] for said in printed
        ), line


def test_the_spec_file() -> None:
    """It is read without a mistake, and every check in it comes out as it says."""
    checks, errors = loads(block("yaml"))
    assert errors == []
    assert len(checks) == 3
    assert [outcome for outcome in map(run, checks) if outcome.status != "as expected"] == []


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    """A screen or two, with a picture; each link is to a file of the repository."""
    assert len(README.splitlines()) <= 110
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", README)
    assert any(link.endswith((".svg", ".png")) for link in links)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_table_of_commands() -> None:
    """Every command stands in it, and no other."""
    named = re.findall(r"^\| \[`(\w+)[^`]*`\]\(docs/\S+\) \| ", README, re.MULTILINE)
    assert sorted(named) == cli.cli.list_commands(click.Context(cli.cli))
