"""docs/kernels.md is so: its module gives what stands below its commands, its table has every question of bodies."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from layoutproof.pallas.judge import about_body, in_order
from tests.console_pages import wrong

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "kernels.md").read_text()
FIRST, CHANGES, _ = re.split(
    r"^## (?:When a kernel changes|Without JAX, and without the code)$", PAGE, flags=re.MULTILINE
)
QUESTIONS = [name for name in in_order(body=True) if about_body(name)]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", FIRST, re.DOTALL | re.MULTILINE)


def test_every_question_about_bodies_is_in_the_table() -> None:
    table = PAGE.partition("## What is asked of a body")[2].partition("## In CI")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == sorted(QUESTIONS)


def test_a_changed_kernel_is_gated_as_shown(tmp_path: Path) -> None:
    """Its module is traced twice, and the records are compared; other sections have no command with its output."""
    assert PAGE.count("```console") == FIRST.count("```console") + CHANGES.count("```console")
    pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")
    assert wrong(CHANGES, tmp_path) == []


@pytest.mark.parametrize("block", _blocks("console"))
def test_a_command_prints_what_stands_below_it(block: str, tmp_path: Path) -> None:
    """Each line below a command is a line of its output; in a process of its own, as a user runs it."""
    pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")
    (module,) = _blocks("python")
    (tmp_path / "mm.py").write_text(module)
    if "mm.mlir" in block:
        (dump,) = _blocks("py")
        subprocess.run([sys.executable, "-c", dump], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    command, *lines = block.splitlines()
    words = shlex.split(command.removeprefix("$ layoutproof "))
    done = subprocess.run(
        [sys.executable, "-m", "layoutproof", *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == (1 if lines[0].startswith("refuted") else 0), done.stderr
    printed = done.stdout.splitlines()
    assert [line for line in lines if line not in printed] == []
