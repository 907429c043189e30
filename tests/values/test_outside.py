"""Right places and wrong numbers: every kind is refuted, its right twin is not; and what cheats are told."""

from __future__ import annotations

from typing import Any

import pytest

import layoutproof as lp

pytest.importorskip("jax", reason="kernels are JAX's")
cases = pytest.importorskip("tests.values.outside_cases")


@pytest.mark.parametrize("case", cases.OUTSIDE, ids=[case.name for case in cases.OUTSIDE])
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_right_places_and_wrong_numbers(case: Any, wrong: bool) -> None:
    """The verdict of the values, of the right and of the wrong one."""
    found = lp.same(case.build(wrong), case.reference, *case.arguments)
    said = found.verdict.value
    # sums of products are compared as relations, too
    assert ("sampled" if said == "proved" else said) == case.says[wrong], found.reason


def test_a_sum_that_starts_at_1_is_told_apart_by_nothing() -> None:
    """Over the reals it is right, and stable; neither line complains."""
    case = next(c for c in cases.OUTSIDE if c.name.endswith("starts at 1"))
    assert "\n  stable " in str(lp.same(case.build(True), case.reference, *case.arguments))


@pytest.mark.parametrize(
    ("function", "shapes", "verdict"), [c[1:] for c in cases.CHEATS], ids=[c[0] for c in cases.CHEATS]
)
def test_what_cheats_are_told(function: Any, shapes: tuple[str, ...], verdict: str) -> None:
    """Zeros, copies, cached results, partial stores: refuted. What is right at these shapes is sampled at them."""
    found = lp.same(function, cases.layer, *shapes)
    assert found.verdict.value == verdict, found.reason


def test_a_lower_precision_path_is_no_secret() -> None:
    """bfloat16 is the same over the reals; beside it stands the type that sums are kept in."""
    kept = {name: lp.same(function, cases.layer, *shapes) for name, function, shapes, _ in cases.CHEATS[::10]}
    assert {s.dtype for s in kept["none"].comparison.sums} == {"float32"}
    assert {s.dtype for s in kept["in bfloat16"].comparison.sums} == {"bfloat16"}
    assert "sums kept in  bfloat16" in str(kept["in bfloat16"])
