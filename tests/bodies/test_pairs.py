"""More pairs of a wrong kernel and its right twin (`pairs`): no wrong one is proved, no right one refuted."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.bodies.pairs import CASES

pytestmark = pytest.mark.slow

OPEN = {
    ("copy_under_a_table", True): "it is wrong for some tables only",
    ("flag_of_the_program_before", True): "a walk that finds what nobody has written is no replay",
    ("dynamic_grid_sum", True): "no replay has a grid whose extent is not known",
    ("dynamic_grid_sum", False): "data choose the extent of the grid: its bounds are not computed",
}
"""(pair, wrong) that stay unknown, and why."""


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
    if (name, True) in OPEN:
        assert refuted == set()
        assert case.kind in {f.question for f in found if f.verdict is Verdict.UNKNOWN}
    else:
        assert case.kind in refuted
        assert all(f.file.endswith("pairs.py") and f.line > 0 for f in found if f.verdict is Verdict.REFUTED)


@pytest.mark.parametrize("name", CASES)
def test_the_right_one_is_proved(name: str) -> None:
    left = [(f.question, f.reason) for f in errors(name, False) if f.verdict is not Verdict.PROVED]
    if (name, False) in OPEN:
        assert left
        assert Verdict.REFUTED not in {f.verdict for f in errors(name, False)}
    else:
        assert left == []
