"""Every kernel with an error in its body is refuted by the property that names the error, and its right twin proved."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.bodies.judged import findings, worst
from tests.bodies.pitfalls import ASKED, CASES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "question"),
    [(n, c.kind) for n, c in CASES.items() if c.kind in ASKED and n != "parallel_scatter_duplicate"],
)
def test_the_error_is_found_where_it_is(name: str, question: str) -> None:
    found = findings(name, True, question)
    assert worst(found) is Verdict.REFUTED
    refuted = next(f for f in found if f.verdict is Verdict.REFUTED)
    assert refuted.file.endswith("pitfalls.py")
    assert refuted.line > 0
    # what nobody could try is no fix
    assert refuted.fix or refuted.hint.startswith("look at ")
    # of an output that is moved by hand no program is the one that left an element out
    assert {"program", "first", "element"} & set(refuted.counterexample or {})


def test_a_table_with_a_double_entry_is_open_until_none_is_assumed() -> None:
    case = CASES["parallel_scatter_duplicate"]
    built = case.build(True)
    (call,) = kernels_of(built.fn, built.args, assume=case.assume[:1])
    assert isinstance(call, Kernel)
    (found,) = (f for f in judge(call, names=["body_races"]) if f.verdict is not Verdict.PROVED)
    assert found.verdict is Verdict.UNKNOWN
    assert found.needs == ("prefetch0 is injective",)


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("name", CASES)
def test_the_right_twin_is_proved(name: str, question: str) -> None:
    assert worst(findings(name, False, question)) is Verdict.PROVED


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("name", [n for n, c in CASES.items()])
def test_an_error_of_another_kind_is_no_error_of_this_one(name: str, question: str) -> None:
    case = CASES[name]
    found = worst(findings(name, True, question))
    if name == "parallel_scatter_duplicate":
        # its table is not what is assumed of it: there is no race, and a block may lie behind the end
        assert found is (Verdict.REFUTED if question == "body_in_bounds" else Verdict.PROVED)
    elif question in case.also:
        assert found is not Verdict.UNKNOWN
    else:
        assert found is (Verdict.REFUTED if question == case.kind else Verdict.PROVED)
