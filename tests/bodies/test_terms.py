"""Terms on plain ints: only what decides is computed."""

from __future__ import annotations

import pytest

from layoutproof.bodies.terms import Evaluation, written
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term

ZERO, ONE, AT = Term("int", 0), Term("int", 1), Term("name", "i")
BY_ZERO = Term("<", Term("//", ONE, ZERO), AT)


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (Term("and", Term("<", AT, ONE), BY_ZERO), False),
        (Term("or", Term("<", ZERO, AT), BY_ZERO), True),
        (Term("select", Term("<", AT, ONE), Term("//", ONE, ZERO), Term("+", AT, ONE)), 4),
    ],
)
def test_what_is_not_needed_is_not_computed(term: Term, value: object) -> None:
    assert Evaluation({"i": 3}, INTS).on_ints(term) == value
    with pytest.raises(ZeroDivisionError):
        Evaluation({"i": 3}, INTS)(term)


def _of(name: str, table: str, number: int) -> Term:
    at = Term("+", Term("name", name), Term("int", number))
    return Term("<", Term("read", Term("name", table), at), at)


def test_terms_are_written_alike_that_differ_in_names_only() -> None:
    """Which names are one is told, and what a name stands for."""
    rows = written([_of("i", "t", 1)], {})[0]
    assert written([_of("j", "u", 1)], {}) == (rows, {"u": 1, "j": 0})
    others = [
        written([_of("i", "i", 1)], {}),
        written([_of("i", "t", 2)], {}),
        written([_of("i", "t", 1), AT], {}),
        written([_of("i", "t", 1)], {"i": ONE}),
        written([_of("i", "t", 1)], {"i": Term("name", "k")}),
    ]
    assert all(other[0] != rows for other in others)
    assert written([AT], {"i": Term("name", "k")}) != written([AT], {"i": Term("+", Term("name", "k"), ONE)})
