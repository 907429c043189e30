"""The maker of mutants: each is one change that is Python, and the modules and tests that it names are there."""

from __future__ import annotations

import ast

from benchmarks.mutants import BODY_RULES, ROOT, TESTS, mutated, places, sample

SOURCE = """
def f(a: int = 0) -> bool:
    if a < 3 and not a == 1:
        return a * 2 + 1 > 5
    raise ValueError(f"{a + 1}")
"""


def test_each_place_is_changed_once() -> None:
    """Comparisons, operators, numbers, conditions; no default, no text of an error."""
    count = len(list(places(ast.parse(SOURCE))))
    made = [mutated(SOURCE, place) for place in range(count)]
    changes = {(was, now) for _, _, was, now in made}
    assert {("a < 3", "a <= 3"), ("a == 1", "a != 1"), ("a * 2", "a + 2"), ("2", "3"), ("5", "6")} <= changes
    assert any(" and " in was and " or " in now for was, now in changes)
    assert any(now.startswith("not not ") for _, now in changes)
    plain = ast.unparse(ast.parse(SOURCE))
    assert len({text for text, *_ in made}) == count
    assert all(
        text != plain and compile(text, "mutant", "exec") and "ValueError(f'{a + 1}')" in text for text, *_ in made
    )


def test_modules_and_tests_are_there() -> None:
    """A module that moves takes its entry along."""
    for start, tests in TESTS.items():
        assert (ROOT / start).exists(), start
        assert all((ROOT / test).exists() for test in tests), tests
    assert all((ROOT / "layoutproof/pallas/rules" / f"{name}.py").exists() for name in BODY_RULES)


def test_the_same_seed_makes_the_same_mutants() -> None:
    made = sample(1, 20, "layoutproof/solvers/bits")
    assert made == sample(1, 20, "layoutproof/solvers/bits")
    assert made != sample(2, 20, "layoutproof/solvers/bits")
    assert all(mutant.was != mutant.now for mutant in made)
