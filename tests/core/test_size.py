"""Symbolic sizes: their arithmetic is that of the integers they stand for."""

from __future__ import annotations

import itertools
import operator
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.errors import Undecided
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Size, as_size, ceil_div, divide, evaluate, product, surely_less, symbol, symbols_of
from layoutproof.kernel.kernel import Block
from layoutproof.kernel.windows import block_count

pytestmark = pytest.mark.slow

NAMES = ("N", "M")
VALUES = (1, 2, 3, 5, 8, 13, 127)

Built = tuple[Any, Callable[[dict[str, int]], int]]
"""A size (or int) and a Python function that says what it must be for given symbols."""

LEAVES: st.SearchStrategy[Built] = st.one_of(
    st.integers(-9, 40).map(lambda n: (n, lambda _: n)),
    st.sampled_from(NAMES).map(lambda name: (symbol(name), lambda sizes: sizes[name])),
)


def combine(parts: st.SearchStrategy[Built]) -> st.SearchStrategy[Built]:
    def both(how: tuple[Callable[[Any, Any], Any], Built, Built]) -> Built:
        op, (left, at_left), (right, at_right) = how
        return op(left, right), lambda sizes: op(at_left(sizes), at_right(sizes))

    def by_number(how: tuple[Callable[[Any, Any], Any], Built, int]) -> Built:
        op, (left, at_left), number = how
        return op(left, number), lambda sizes: op(at_left(sizes), number)

    return st.one_of(
        st.tuples(st.sampled_from((operator.add, operator.sub, operator.mul)), parts, parts).map(both),
        st.tuples(st.sampled_from((operator.floordiv, operator.mod, ceil_div)), parts, st.integers(1, 12)).map(
            by_number
        ),
    )


BUILT = st.recursive(LEAVES, combine, max_leaves=6)


def choices() -> list[dict[str, int]]:
    return [dict(zip(NAMES, row, strict=True)) for row in itertools.product(VALUES, repeat=len(NAMES))]


def value(size: Any, sizes: dict[str, int]) -> int:
    return int(evaluate(size, sizes.__getitem__))


@given(BUILT)
def test_arithmetic_is_that_of_integers(built: Built) -> None:
    """Any nesting of + - * // % and ceil_div, with numbers put in afterwards or before: the same."""
    size, expected = built
    for sizes in choices():
        assert value(size, sizes) == expected(sizes)


@given(BUILT, BUILT)
def test_equal_sizes_are_equal_numbers(left: Built, right: Built) -> None:
    """Two sizes that compare equal have equal hashes and the same value for all symbols; a difference of 0 is 0."""
    difference = left[0] - right[0]
    assert (left[0] == right[0]) == (type(difference) is int and difference == 0)
    if left[0] == right[0]:
        assert hash(left[0]) == hash(right[0])
        assert [left[1](sizes) for sizes in choices()] == [right[1](sizes) for sizes in choices()]


@given(BUILT, BUILT)
def test_surely_less_holds_for_all(left: Built, right: Built) -> None:
    """When one is called surely less, it is less for all sizes tried; both ways it is never said."""
    if surely_less(left[0], right[0]):
        assert all(left[1](sizes) < right[1](sizes) for sizes in choices())
        assert not surely_less(right[0], left[0])
        assert not surely_less(right[0], left[0] + 1)


def test_surely_less_says_what_tiling_needs() -> None:
    """The comparisons that tilings ask for are settled, and the untrue ones next to them are not."""
    n, m = symbol("N"), symbol("M")
    assert surely_less(n - 1, n)
    assert surely_less(0, n)
    assert surely_less(0, (n + 7) // 8)
    assert surely_less(n * m - 1, n * m + n)
    assert surely_less(128 * (m - 1) + 127, 128 * m)
    assert not surely_less(1, n)
    assert not surely_less(n, m)
    assert not surely_less(n, 2**40)
    assert not surely_less((n + 7) // 8, n)


@given(BUILT, st.one_of(st.integers(1, 20), st.sampled_from((symbol("N"), 3 * symbol("M"), symbol("N") * symbol("M")))))
def test_divide_keeps_the_value(built: Built, by: Any) -> None:
    """value == quotient * by + rest always; for a number, every coefficient of the rest lies in [0, by)."""
    size, expected = built
    quotient, rest = divide(size, by)
    for sizes in choices():
        assert value(quotient, sizes) * value(by, sizes) + value(rest, sizes) == expected(sizes)
    if type(by) is int:
        assert all(0 <= coefficient < by for _, coefficient in as_size(rest).terms)


def test_division_by_a_size() -> None:
    """It is exact where it can be, else a floor of its own; a size that may be 0 or negative divides nothing."""
    n, m = symbol("N"), symbol("M")
    assert (n * m) // n == m
    assert (6 * n * m) // (3 * m) == 2 * n
    assert (n * m) % m == 0
    assert n // n == 1
    assert [str(left // right) for left, right in ((n, m), (n * m + 1, m), (n + m - 1, m), (7, n))] == [
        "floor(N/M)",
        "N + ceil(2/M) - 1",
        "ceil(N/M)",
        "ceil(8/N) - 1",
    ]
    for left, right in ((n, m - 1), (7, n - m)):
        with pytest.raises(Undecided, match="only by sizes that are positive for all values of their symbols"):
            left // right
    for number in (0, -3):
        with pytest.raises(Undecided, match="only positive divisors"):
            n // number


@pytest.mark.parametrize(
    ("size", "text"),
    [
        ((symbol("N") + 7) // 8, "ceil(N/8)"),
        (symbol("N") // 8, "floor(N/8)"),
        ((8 * symbol("N") + 7) // 8, "N"),
        ((symbol("N") + symbol("M") + 1) // 2, "ceil((M + N)/2)"),
        (2 * symbol("N") * symbol("N") - symbol("M") + 3, "2*N*N - M + 3"),
        (-symbol("N"), "-N"),
        (((symbol("N") + 7) // 8 + 3) // 4 * 1024, "1024*ceil(ceil(N/8)/4)"),
    ],
)
def test_text_of_a_size(size: Size, text: str) -> None:
    """Sizes print as formulas people write."""
    assert str(size) == text
    assert repr(size) == f"Size({text})"


def test_a_size_has_no_truth_value() -> None:
    """`if size:` would decide before run time, so it raises."""
    with pytest.raises(TypeError, match="the size N has no truth value before run time"):
        bool(symbol("N"))


def test_a_size_survives_pickling() -> None:
    """Sizes travel to other processes and stay equal."""
    size = (symbol("N") * 3 + 7) // 8 * symbol("M")
    again = pickle.loads(pickle.dumps(size))
    assert again == size
    assert hash(again) == hash(size)


def test_symbols_and_divisors() -> None:
    """The symbols of sizes, also within a ceil, in order of first appearance; and everything they are divided by."""
    n, m, k = symbol("N"), symbol("M"), symbol("K")
    assert symbols_of([3, (k + 7) // 8, n * m]) == ("K", "M", "N")
    assert symbols_of([4, 5]) == ()
    assert ((n + 7) // 8 * m).divisions() == ((n + 7, 8),)
    assert ((n + m - 1) // m).divisions() == ((n + m - 1, m),)
    assert symbols_of([(n + m - 1) // m]) == ("M", "N")
    assert product([n, 3, m]) == 3 * n * m
    assert product([]) == 1


def test_sizes_divided_by_sizes_are_numbers_divided_by_numbers() -> None:
    """Random expressions with `//` and `%` by sizes: the value is Python's, and what is surely less is less."""
    rng = random.Random(11)
    names = {"N": symbol("N"), "a": symbol("a"), "b": symbol("b")}
    choices = [dict(zip(names, values, strict=True)) for values in itertools.product((1, 2, 3, 5, 6), repeat=3)]

    def expression(depth: int) -> tuple[Any, Callable[[dict[str, int]], int]]:
        if depth == 4 or rng.random() < 0.3:
            name = rng.choice([*names, ""])
            number = rng.randint(-3, 5)
            return (names[name], lambda at: at[name]) if name else (number, lambda at: number)
        (left, f), (right, g) = expression(depth + 1), expression(depth + 1)
        operation = rng.choice((operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod))
        try:
            return operation(left, right), lambda at: operation(f(at), g(at))
        except (Undecided, ZeroDivisionError):
            return left, f

    told = 0
    for _ in range(1500):
        (left, f), (right, g) = expression(0), expression(0)
        for at in rng.sample(choices, 6):
            assert evaluate(left, at.__getitem__) == f(at), (left, at)
        if surely_less(left, right):
            told += 1
            assert all(f(at) < g(at) for at in choices), (left, right)
    assert told > 150


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("N - 1", "a*cdiv(N, a)"),
        ("a*cdiv(N, a) - a", "N"),
        ("N*M - 1", "a*b*cdiv(N, a)*cdiv(M, b)"),
        ("0", "cdiv(N, a)"),
    ],
)
def test_rounding_to_a_tile_of_any_size(less: str, more: str) -> None:
    """Tiles of any size hold the array and waste less than a tile; the other way round is not claimed."""
    assert surely_less(parse_size(less), parse_size(more))
    assert not surely_less(parse_size(more), parse_size(less))


def test_blocks_of_a_run_time_size_that_divides_are_counted() -> None:
    n, m = symbol("N"), symbol("M")
    assert block_count(n * m, Block("blocked", n)) == m
    assert block_count(n, Block("bounded", 8)) == n + 1
