"""A condition on single sizes as a change of variables: it must take exactly the sizes that the condition allows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.expression import parse_condition
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import evaluate
from layoutproof.core.substitution import conjuncts, substitution

UP_TO = 120


def taken(size: Any) -> set[int]:
    """The values up to a bound that a substitution takes, its own symbol running over 1, 2, 3, .."""
    return {value for n in range(1, UP_TO + 1) if (value := evaluate(size, lambda _, n=n: n)) <= UP_TO}  # type: ignore[misc]


def allowed(text: str, name: str = "N") -> set[int]:
    """The values up to a bound that satisfy the condition."""
    condition = parse_condition(text)
    return {n for n in range(1, UP_TO + 1) if condition.evaluate({}, Numbers({name: n}))}


@st.composite
def simple(draw: Any) -> str:
    """At most one remainder, and any number of lower bounds, in any order and spelling."""
    step = draw(st.integers(1, 12))
    rest = draw(st.integers(0, step - 1))
    parts = [draw(st.sampled_from((f"N % {step} == {rest}", f"{rest} == N % {step}")))] if draw(st.booleans()) else []
    for low in draw(st.lists(st.integers(-3, 40), min_size=0 if parts else 1, max_size=2)):
        parts.append(draw(st.sampled_from((f"N >= {low}", f"{low} <= N", f"N > {low}", f"{low} < N"))))
    return " and ".join(draw(st.permutations(parts)))


@given(simple())
def test_takes_exactly_the_allowed_sizes(text: str) -> None:
    """A remainder and lower bounds: neither a size too many nor one missing."""
    found = substitution(parse_condition(text))
    assert set(found) == {"N"}
    assert taken(found["N"]) == allowed(text)


@pytest.mark.parametrize("value", [1, 7, 64])
def test_a_fixed_size_is_that_number(value: int) -> None:
    """An equation fixes the size, whichever side the name stands on."""
    assert substitution(parse_condition(f"N == {value}")) == {"N": value}
    assert substitution(parse_condition(f"{value} == N and M >= 2"))["N"] == value


@pytest.mark.parametrize(
    "text",
    [
        "N < 9",
        "N <= 9 and N >= 3",
        "N % 8 == 0 and N % 12 == 0",
        "N % 8 == 0 or N == 3",
        "not N == 3",
        "N != 4",
        "N * N >= 9",
        "N % 8 == 9",
        "N % 8 == 0 and N != 16",
        "2 * N == 6",
        "N >= 5 and N >= 9 and N >= 7",
    ],
)
def test_other_conditions_lose_no_size(text: str) -> None:
    """What has no such form is left out: then more sizes are covered, never fewer."""
    found = substitution(parse_condition(text))
    assert set(found) <= {"N"}
    assert allowed(text) <= (taken(found["N"]) if found else set(range(1, UP_TO + 1)))


def test_several_sizes_do_not_mix() -> None:
    """Each size has its own substitution, in its own symbol; a relation between two is left out."""
    found = substitution(parse_condition("N % 8 == 0 and M >= 3 and N < M and K == 5"))
    assert set(found) == {"N", "M", "K"}
    assert found["K"] == 5
    assert found["N"].symbols() == ("N",)
    assert found["M"].symbols() == ("M",)
    assert taken(found["N"]) == allowed("N % 8 == 0")
    assert taken(found["M"]) == set(range(3, UP_TO + 1))


def test_no_condition_is_no_substitution() -> None:
    """Nothing assumed, nothing substituted."""
    assert substitution(None) == {}


def test_conjuncts_in_order() -> None:
    """The parts of nested conjunctions, left to right; a disjunction is one part."""
    text = "N >= 1 and (M >= 2 and K >= 3) and (N == 4 or M == 4)"
    assert [str(part) for part in conjuncts(parse_condition(text))] == [
        "1 <= N",
        "2 <= M",
        "3 <= K",
        "N == 4 or M == 4",
    ]
