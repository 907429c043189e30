"""More pairs of a wrong kernel and its right twin (`pairs`): no wrong one is proved, no right one refuted."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.bodies.pairs import CASES

pytestmark = pytest.mark.slow


def errors(name: str, wrong: bool) -> list[Finding]:
    case = CASES[name]
    built = case.build(wrong)
    found: list[Finding] = []
    for call in kernels_of(built.fn, built.args, assume=case.assume):
        assert isinstance(call, Kernel)
        found += [f for f in judge(call, strict_tables=True) if f.severity == "error" and f.asked]
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_wrong_one_is_refuted_by_the_question_that_names_the_error(name: str) -> None:
    case, found = CASES[name], errors(name, True)
    refuted = {f.question for f in found if f.verdict is Verdict.REFUTED}
    assert case.kind in refuted
    assert all(f.file.endswith("pairs.py") and f.line > 0 for f in found if f.verdict is Verdict.REFUTED)


@pytest.mark.parametrize("name", CASES)
def test_the_right_one_is_proved(name: str) -> None:
    assert [(f.question, f.reason) for f in errors(name, False) if f.verdict is not Verdict.PROVED] == []


@pytest.mark.parametrize(
    ("name", "why"),
    [("copy_under_a_table", "refuted if prefetch0 can be 0, 1"), ("dynamic_grid_sum", "refuted if grid0 can be 2")],
)
def test_what_only_some_tables_or_sizes_refute_is_unknown_until_somebody_says_them(name: str, why: str) -> None:
    case = CASES[name]
    built = case.build(True)
    found = lp.kernels(built.fn, *built.args, assume=case.assume)
    assert found.exit_code == 3
    assert [f.reason.startswith(why) for f in found.findings if f.question == case.kind] == [True]


def test_a_size_that_is_said_refutes_or_proves_what_a_grid_that_data_choose_leaves_open() -> None:
    built = CASES["dynamic_grid_sum"].build(True)
    assert lp.kernels(built.fn, *built.args, where=["grid0 == 3"]).exit_code == 1
    # the first program is the last one
    assert lp.kernels(built.fn, *built.args, where=["grid0 == 1"]).exit_code == 0
