"""What the README says is so: its examples give what stands beside them, its tables name what there is."""

from __future__ import annotations

import ast
import enum
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from layoutproof.cli import main as cli
from tests.console_pages import files

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def block(language: str) -> str:
    """The last fenced block in a language."""
    *_, found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
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
def test_the_first_kernel_passes_its_test(tmp_path: Path) -> None:
    """On normally distributed inputs it is close to its reference, and a row of zeros gives NaN."""
    pytest.importorskip("jax", reason="the kernel runs in JAX's interpreter")
    (tmp_path / "rms_norm.py").write_text(files(README)["rms_norm.py"])
    script = """
import jax, jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu
from rms_norm import reference, rms_norm
x = jax.random.normal(jax.random.key(0), (64, 512))
with pltpu.force_tpu_interpret_mode():
    print(jnp.allclose(rms_norm(x), reference(x)), jnp.isnan(rms_norm(0 * x)).all(), jnp.isnan(reference(0 * x)).any())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False"]


def test_what_a_reader_needs_stands_before_it() -> None:
    """The installation before the first command, how JAX ran the kernel here, and that the suite is long."""
    assert README.index("pip install '.[jax,tpu]'") < README.index("`layoutproof same`") < README.index("$ layoutproof")
    told = re.search(r"`jnp\.allclose[^`]*` is true, (.*)", README)
    assert told is not None
    assert "force_tpu_interpret_mode()" in told[1]
    assert "it took six minutes on two cores" in README


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    """A screen or two, with a picture; each link is to a file of the repository."""
    assert len(README.splitlines()) <= 130
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", README)
    assert any(link.endswith((".svg", ".png")) for link in links)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_table_of_commands() -> None:
    """Every command stands in that of the first page, and no other."""
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    named = re.findall(r"^\| \[`(\w+)[^`]*`\]\(\S+\) \| ", index, re.MULTILINE)
    assert sorted(named) == cli.cli.list_commands(click.Context(cli.cli))
