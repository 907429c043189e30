"""The maker of mutants: each is one change that is Python, of a known function; tests notice it in a fork."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.mutants import BODY_RULES, PARTS, POOL, ROOT, again, files, mutated, places, sample

pytestmark = pytest.mark.slow

SOURCE = """
def f(a: int = 0) -> bool:
    if a < 3 and not a == 1:
        return a * 2 + 1 > 5
    raise ValueError(f"{a + 1}")
"""

NOTICED = "layoutproof/solvers/decide.py:92: _listed(answers.broken) if answers.broken else ''  ->  '' if answers.broken else _listed(answers.broken)"  # noqa: E501


def test_each_place_is_changed_once() -> None:
    """Comparisons, operators, numbers, conditions; no default, no text of an error."""
    count = len(list(places(ast.parse(SOURCE))))
    made = [mutated(SOURCE, place) for place in range(count)]
    changes = {(mutant.was, mutant.now) for _, mutant in made}
    assert {("a < 3", "a <= 3"), ("a == 1", "a != 1"), ("a * 2", "a + 2"), ("2", "3"), ("5", "6")} <= changes
    assert any(" and " in was and " or " in now for was, now in changes)
    assert any(now.startswith("not not ") for _, now in changes)
    assert {mutant.lines for _, mutant in made} == {(2, 5)}
    texts = [ast.unparse(tree) for tree, _ in made]
    assert len(set(texts)) == count
    plain = ast.unparse(ast.parse(SOURCE))
    assert all(text != plain and compile(text, "mutant", "exec") and "ValueError(f'{a + 1}')" in text for text in texts)


def test_parts_and_tests_are_there() -> None:
    """A module that moves takes its entry along; each part has files of its own."""
    assert all((ROOT / "layoutproof" / start).exists() for starts in PARTS.values() for start in starts)
    assert all((ROOT / test).exists() for test in POOL)
    assert set(files().values()) == set(PARTS)
    assert files()[f"layoutproof/pallas/rules/{BODY_RULES[0]}.py"] == "body rules"


def test_the_same_seed_makes_the_same_mutants() -> None:
    made = sample(1, 20, "layoutproof/solvers/bits")
    assert made == sample(1, 20, "layoutproof/solvers/bits")
    assert made != sample(2, 20, "layoutproof/solvers/bits")
    assert all(mutant.was != mutant.now for mutant in made)


def test_survivors_that_were_printed_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At their line, or the nearest one that reads so; what is gone is said."""
    made = sample(1, 5, "layoutproof/solvers/sizes.py")
    printed = tmp_path / "printed"
    printed.write_text("5 tests\n" + "".join(f"survives: {mutant}\n" for mutant in made))
    found = again(printed)
    assert {str(mutant) for mutant in made} == {str(mutant) for mutant in found}
    assert set(made) <= set(found)
    file, moved = made[0].file, str(made[0]).split(": ", 1)[1]
    printed.write_text(f"survives: {file}:9999: {moved}\nsurvives: {file}:1: nobody  ->  wrote\n")
    assert {mutant.now for mutant in again(printed)} == {made[0].now}
    assert capsys.readouterr().out == f"gone: {file}:1: nobody  ->  wrote\n"


@pytest.mark.commit
def test_parts_have_equal_shares() -> None:
    """Where one has too few places, the others have the rest."""
    met = Counter(files()[mutant.file] for mutant in sample(3, 90, "decide,digits,place"))
    assert met == {"decide": 30, "digits": 30, "place": 30}
    met = Counter(files()[mutant.file] for mutant in sample(3, 2000, "decide,digits,place"))
    assert met["decide"] < 200 < met["digits"]


@pytest.mark.commit
def test_a_mutant_is_noticed_in_a_fork(tmp_path: Path) -> None:
    """Tests are learnt and run as the command does it; what has no test survives, and is named.

    The mutant is named by its text: one that a seed draws is another, and may change nothing, once the file changes.
    """
    printed = tmp_path / "printed"
    printed.write_text(f"survives: {NOTICED}\n")

    def run(*options: str) -> list[str]:
        command = [sys.executable, "benchmarks/mutants.py", "--jobs", "1", *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    lines = run("--again", str(printed), "--tests", "tests/solvers/test_decide.py")
    assert "1 mutants, 1 noticed, score 100.0 %" in lines[-1]
    only = ["--only", "layoutproof/layouts/linear.py", "--tests", "tests/layouts/test_axe_swizzle.py"]
    lines = run("--seed", "4", "--mutants", "3", *only)
    assert sum(line.startswith("survives: layoutproof/layouts/linear.py:") for line in lines) == 3
