"""Every kernel with an error in its body is refuted by the property that names the error, and its right twin proved."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from layoutproof.core.result import Verdict
from tests.bodies.judged import findings, worst
from tests.bodies.pitfalls import CASES

ASKED = ("body_in_bounds", "undefined_values")
"""The properties of bodies."""


@pytest.mark.parametrize(("name", "question"), [(n, c.kind) for n, c in CASES.items() if c.kind in ASKED])
def test_the_error_is_found_where_it_is(name: str, question: str) -> None:
    found = findings(name, True, question)
    assert worst(found) is Verdict.REFUTED
    refuted = next(f for f in found if f.verdict is Verdict.REFUTED)
    assert refuted.file.endswith("pitfalls.py")
    assert refuted.line > 0
    assert "program" in (refuted.counterexample or {})


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("name", CASES)
def test_the_right_twin_is_proved(name: str, question: str) -> None:
    assert worst(findings(name, False, question)) is Verdict.PROVED


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("name", [n for n, c in CASES.items()])
def test_an_error_of_another_kind_is_no_error_of_this_one(name: str, question: str) -> None:
    case = CASES[name]
    behind = question == "body_in_bounds" and name == "parallel_scatter_duplicate"
    if question == case.kind or question in case.also or behind:
        # the last one's assumption about its table allows a block behind the end
        assert worst(findings(name, True, question)) is Verdict.REFUTED or question in case.also
    else:
        assert worst(findings(name, True, question)) is Verdict.PROVED
