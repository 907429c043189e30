"""Expressions whose parts are used more than once: each part costs once, whoever looks at it."""

from __future__ import annotations

from typing import Any

import layoutproof as lp
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term, bind, check_kind, every, reads, rebuilt, substitute, trace

STEPS = 40


def mixed(v: Any) -> Any:
    """Forty steps, each of which uses what it is given twice: 2**40 parts when they are walked as a tree."""
    for _ in range(STEPS):
        v = (v * 3 + (v & 7)) & 255
    return v


def plain(v: int) -> int:
    return int(mixed(v))


def test_a_map_of_forty_steps_is_made_printed_and_asked_about() -> None:
    m = lp.index_map(lambda i: mixed(i), shape=[8])
    assert len(str(m)) < 4_000
    assert lp.ask("injective", m).verdict is Verdict.PROVED
    assert [list(lp.locate(m, (i,))[0].values()) for i in range(8)] == [[plain(i)] for i in range(8)]


def test_every_walk_of_an_expression_visits_a_shared_part_once() -> None:
    _, (term,) = trace(lambda i: mixed(i))
    # a name, three numbers, and four operations a step
    assert len(every(term)) == 4 + 4 * STEPS
    assert term.weight > 2**STEPS
    assert term.names() == ("i",)
    assert {str(d) for d in term.divisors()} == {"8", "256"}
    assert term.evaluate({"i": 5}, INTS) == plain(5)
    assert check_kind(term, condition=False) is term
    assert reads((term,)) == ()
    assert substitute(term, {}) is term
    assert bind(term, {"i": 5}).evaluate({}, INTS) == plain(5)
    assert rebuilt(term, lambda part, made: made) is term


def test_what_a_text_says_more_than_once_is_said_once() -> None:
    i = Term("name", "i")
    v = i
    for _ in range(12):
        v = Term("+", v, v)
    assert str(v).startswith("v11 + v11 where v1 = i + i, v2 = v1 + v1,")
    other = rebuilt(v, lambda part, made: Term("name", "v1") if part.op == "name" else made)
    # a name of the expression is not taken for a part of it
    assert str(other).startswith("v12 + v12 where v2 = v1 + v1, v3 = v2 + v2,")


def test_a_read_inside_of_what_is_shared_is_found_once() -> None:
    t = Term("name", "t")
    v = Term("read", t, Term("name", "i"))
    for _ in range(STEPS):
        v = Term("%", Term("+", v, v), Term("int", 7))
    whole = Term("read", t, v)
    found = reads((whole,))
    assert [read.weight for read in found] == [3, whole.weight]
    assert substitute(v, {Term("read", t, Term("name", "i")): Term("int", 3)}).evaluate({}, INTS) == 3 * 2**STEPS % 7
