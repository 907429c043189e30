"""Terms on plain ints: only what decides is computed."""

from __future__ import annotations

import pytest

from layoutproof.bodies.terms import Evaluation
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
