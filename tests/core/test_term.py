"""Terms: what a traced index may do, what it refuses, and that evaluating a term is evaluating its text."""

from __future__ import annotations

import copy
import gc
import itertools
import operator
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core import term as term_module
from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_expression
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.size import symbol
from layoutproof.core.term import Term, Traced, size_term, trace

pytestmark = pytest.mark.slow

NO_VALUE = "an index map may not ask for the {} of i: it has no value yet; use {}"
CHOOSE = "layoutproof.minimum, layoutproof.maximum or layoutproof.select"
SELECT = "layoutproof.select(condition, x, y)"
EQUAL = "layoutproof.select(layoutproof.equal(a, b), x, y)"
PARAMETERS = "an index map takes one named parameter per dimension, no *args and no keyword-only ones"

REFUSED: tuple[tuple[Callable[..., Any], str], ...] = (
    (lambda i: i == 3, NO_VALUE.format("truth of == 3", EQUAL)),
    (lambda i: i != 3, NO_VALUE.format("truth of != 3", EQUAL)),
    (lambda i: i in (1, 2), NO_VALUE.format("truth of == 1", EQUAL)),
    (lambda i: 0 if i in {1, 2} else i, NO_VALUE.format("hash", EQUAL)),
    (lambda i: {0: 5}.get(i, 7), NO_VALUE.format("hash", EQUAL)),
    (lambda i: hash(i), NO_VALUE.format("hash", EQUAL)),
    (lambda i: i < 3, NO_VALUE.format("truth of < 3", CHOOSE)),
    (lambda i: max(i, 3), NO_VALUE.format("truth of < 3", CHOOSE)),
    (lambda i: sorted((i, i)), NO_VALUE.format("truth of < i", CHOOSE)),
    (lambda i: i if i else 0, NO_VALUE.format("truth value", SELECT)),
    (lambda i: not i, NO_VALUE.format("truth value", SELECT)),
    (lambda i: i and 3, NO_VALUE.format("truth value", SELECT)),
    (lambda i: int(i), NO_VALUE.format("int()", "plain + - * // %")),
    (lambda i: float(i), NO_VALUE.format("int()", "plain + - * // %")),
    (lambda i: range(i), NO_VALUE.format("int()", "plain + - * // %")),
    (lambda i: (1, 2, 3)[i], NO_VALUE.format("int()", "plain + - * // %")),
    (lambda i: sum(i), NO_VALUE.format("entries", "one name per index")),
    (lambda i: [*i], NO_VALUE.format("entries", "one name per index")),
    (lambda i: i / 2, "i / 2 is not an integer operation; write //"),
    (lambda i: i & 6, "i & 6: only a mask 2**k - 1 is a quasi-affine operation; write it with % and //"),
    (lambda i: i << 64, "a shift must be by a constant from 0 to 63, not 64"),
    (lambda i: i >> -1, "a shift must be by a constant from 0 to 63, not -1"),
    (lambda i: i << i, "a shift must be by a constant from 0 to 63, not i"),
    (lambda i: i // 0, "i // 0: a divisor must be a positive integer"),
    (lambda i: i % -8, "i % -8: a divisor must be a positive integer"),
    (lambda i: i + 1.5, "an index map works on integers; got 1.5, a float"),
    (lambda i: i + True, "an index map works on integers; got True, a bool"),
    (lambda i: (i, "a"), "an index map works on integers; got 'a', a str"),
    (lambda _: None, "an index map works on integers; got None, a NoneType"),
    (lambda _: [][1], "the index map raised IndexError when traced: list index out of range"),
    (lambda i: abs(i), "the index map raised TypeError when traced: bad operand type for abs(): 'Traced'"),
    (lambda *i: i, PARAMETERS),
    (lambda **i: 3, PARAMETERS),
    (lambda i, *, j: i, PARAMETERS),
)


@pytest.mark.parametrize(("function", "message"), REFUSED)
def test_what_a_traced_index_refuses(function: Callable[..., Any], message: str) -> None:
    """Whatever would need the index's value is refused with what to write instead; no branch is taken silently."""
    with pytest.raises(LayoutError) as caught:
        trace(function)
    assert str(caught.value) == message


@pytest.mark.parametrize("comparison", ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"])
def test_every_comparison_is_refused(comparison: str) -> None:
    """All six comparisons raise, with terms and with ints."""
    for other in (3, Term("name", "j")):
        with pytest.raises(LayoutError, match="it has no value yet"):
            getattr(Traced("name", "i"), comparison)(other)


@pytest.mark.parametrize("function", [max, 3, lambda i: lp.select(True, 1, i)], ids=["max", "3", "select(True)"])
def test_what_is_no_index_map_is_bad_input(function: Any) -> None:
    """A callable without a signature, no callable, a condition that is a plain bool: bad input, not a Python error."""
    with pytest.raises(LayoutError):
        lp.index_map(function, shape=[4])


ACCEPTED: tuple[Callable[[int, int], Any], ...] = (
    lambda i, j: (i // 8, j // 128, i % 8, j % 128),
    lambda i, j: -i + 3 * j - (7 - i),
    lambda i, j: (i >> 2, i << 3, j & 7, 5 // (i + 1), 9 % (j + 2)),
    lambda i, j: (i ^ 3, 3 ^ j, i ^ j),
    lambda i, j: 3,
    lambda i, j: [i, j],
)


@pytest.mark.parametrize("function", ACCEPTED)
def test_a_traced_map_is_the_function(function: Callable[..., Any]) -> None:
    """On plain ints the terms give what the Python function gives."""
    names, terms = trace(function)
    for index in itertools.product(range(10), repeat=2):
        result = function(*index)
        expected = tuple(result) if isinstance(result, tuple | list) else (result,)
        values = dict(zip(names, index, strict=True))
        assert tuple(term.evaluate(values, INTS) for term in terms) == expected


def test_choices_by_name() -> None:
    """minimum, maximum and select with less and equal do what Python's would on values."""
    _, terms = trace(
        lambda i, j: (
            lp.minimum(i, j),
            lp.maximum(i, 3),
            lp.select(lp.less(i, j), i + j, i - j),
            lp.select(lp.equal(i, j), 1, 0),
        )
    )
    for i, j in itertools.product(range(6), repeat=2):
        values = [term.evaluate({"i": i, "j": j}, INTS) for term in terms]
        assert values == [min(i, j), max(i, 3), i + j if i < j else i - j, int(i == j)]


def numbers(conditions: bool) -> st.SearchStrategy[Term]:
    """Terms over i, j, N; with choices by a condition or without."""
    leaves = st.one_of(
        st.integers(-9, 40).map(lambda n: Term("int", n)), st.sampled_from("ijN").map(lambda n: Term("name", n))
    )

    def extend(parts: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        pairs = st.builds(Term, st.sampled_from(("+", "-", "*", "min", "max")), parts, parts)
        divisions = st.builds(
            Term, st.sampled_from(("//", "%")), parts, st.integers(1, 9).map(lambda n: Term("int", n))
        )
        if not conditions:
            return pairs | divisions
        compared = st.builds(Term, st.sampled_from(("<", "<=", "==", "!=")), parts, parts)
        joined = st.builds(Term, st.sampled_from(("and", "or")), compared, compared)
        negated = st.builds(lambda part: Term("not", part), compared | joined)
        return pairs | divisions | st.builds(lambda *a: Term("select", *a), compared | joined | negated, parts, parts)

    return st.recursive(leaves, extend, max_leaves=6)


@given(numbers(conditions=True))
def test_text_reads_back(term: Term) -> None:
    """The text of a term, read again, has the same text and the same values."""
    again = parse_expression(str(term))
    assert str(parse_expression(str(again))) == str(again)
    for i, j, n in ((0, 0, 1), (3, 5, 8), (17, 2, 5)):
        on = Numbers({"N": n})
        assert again.evaluate({"i": i, "j": j}, on) == term.evaluate({"i": i, "j": j}, on)


def test_names_and_sizes() -> None:
    """Names come in order of first appearance; a size as a term has the size's value."""
    assert parse_expression("j + N * i - j").names() == ("j", "N", "i")
    size = (symbol("N") * 3 + 7) // 8 * symbol("M")
    term = size_term(size)
    for n, m in itertools.product((1, 5, 16), (1, 4)):
        assert term.evaluate({}, Numbers({"N": n, "M": m})) == (n * 3 + 7) // 8 * m
    assert size_term(5).evaluate({}, INTS) == 5


@pytest.mark.parametrize(("value", "by", "expected"), [(7, 2, 3), (-7, 2, -3), (6, 2, 3), (0, 2, 0), (-6, 2, -3)])
def test_a_division_towards_zero(value: int, by: int, expected: int) -> None:
    """As C and lax.div divide, of either sign."""
    assert Term("truncdiv", Term("name", "x"), Term("int", by)).evaluate({"x": value}, INTS) == expected


def test_equal_terms_are_one_object() -> None:
    """`==`, hash and sets go by structure, whichever way a term was made, and ends are not remembered."""
    i, j = Term("name", "i"), Term("name", "j")
    assert i + j is parse_expression("i + j") is trace(lambda i, j: i + j)[1][0]
    assert (i + j == i + j, i + j == j + i) == (True, False)
    assert {i + j, i + j, Term("read", Term("name", "t"), i)} == {Term("read", Term("name", "t"), i), i + j}
    assert copy.copy(i + j) is copy.deepcopy(i + j) is i + j
    # what other tests left is not collected in between
    gc.collect()
    before = len(term_module._TERMS)
    # numbers that nobody else keeps
    many = [i + k for k in range(10**12, 10**12 + 1_000)]
    assert len(term_module._TERMS) == before + 2_000
    del many
    assert len(term_module._TERMS) == before


@pytest.mark.parametrize("steps", [3, 4_000])
def test_a_pickled_term_is_the_same_term(steps: int) -> None:
    """A long one too, which Python's stack would not hold."""
    v = Term("name", "i")
    for k in range(steps):
        v = v * 3 + v % (k + 2)
    assert pickle.loads(pickle.dumps([v, v + 1])) == [v, v + 1]
    assert pickle.loads(pickle.dumps(v)) is v


def test_a_term_cannot_be_changed() -> None:
    """Whoever holds it holds what all others hold."""
    with pytest.raises(AttributeError, match="immutable"):
        Term("name", "i").op = "int"
    with pytest.raises(AttributeError, match="immutable"):
        del Term("name", "i").args


def test_threads_that_make_the_same_terms_get_the_same_objects() -> None:
    """Terms end in one thread while another one makes them."""

    def work(seed: int) -> list[Term]:
        made = []
        for k in range(3_000):
            v = (Term("name", f"n{k % 7}") + k % 11) * 3
            assert v is (Term("name", f"n{k % 7}") + k % 11) * 3
            made.append(v)
        return made

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    assert all(all(map(operator.is_, found[0], other)) for other in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
# JAX, once imported by another test of this process, warns at every fork
@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_forked_child_makes_terms_while_another_thread_holds_the_lock() -> None:
    """What nobody is left to release does not stop the child."""
    with term_module._LOCK, ThreadPoolExecutor(1) as pool:
        status = pool.submit(_terms_in_a_child).result()
    assert status == 0


def _terms_in_a_child() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0 if Term("name", "only in the child") + 1 is Term("name", "only in the child") + 1 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
