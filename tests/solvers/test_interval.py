"""Interval arithmetic against each number: all intervals of seven numbers, all pairs of them, with ends at infinity."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import pytest

from layoutproof.core.errors import Unsupported
from layoutproof.solvers.interval import Interval, IntervalNumbers

NUMBERS = IntervalNumbers()
INTERVALS = [Interval(low, high) for low, high in combinations_with_replacement(range(-3, 4), 2)]
EXACT: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "plus": (operator.add, operator.add),
    "minus": (operator.sub, operator.sub),
    "times": (operator.mul, operator.mul),
    "minimum": (NUMBERS.minimum, min),
    "maximum": (NUMBERS.maximum, max),
}
"""Operations whose interval ends at results: on intervals, and on numbers."""


def held(one: Any) -> range:
    """The numbers of an interval, or the one number."""
    return range(one.low, one.high + 1) if isinstance(one, Interval) else range(one, one + 1)


def hull(found: list[int]) -> tuple[int, int]:
    return min(found), max(found)


@pytest.mark.parametrize("name", EXACT)
def test_the_interval_of_an_operation_ends_at_its_least_and_greatest_result(name: str) -> None:
    of_intervals, of_numbers = EXACT[name]
    for left in [*INTERVALS, *range(-3, 4)]:
        for right in INTERVALS if isinstance(left, int) else [*INTERVALS, *range(-3, 4)]:
            found = of_intervals(left, right)
            assert (found.low, found.high) == hull([of_numbers(a, b) for a in held(left) for b in held(right)])


def test_a_quotient_ends_at_its_results_and_a_rest_holds_them() -> None:
    for left in INTERVALS:
        assert (-left).low == -left.high
        assert (-left).high == -left.low
        for right in [*(one for one in INTERVALS if one.low > 0), *range(1, 8)]:
            quotient, rest = left // right, left % right
            assert (quotient.low, quotient.high) == hull([a // b for a in held(left) for b in held(right)])
            assert {a % b for a in held(left) for b in held(right)} <= set(held(rest))
            # no rest is thought possible that no number of this size has
            assert rest.low >= 0
            assert rest.high < max(held(right))
        for number in (-3, -1):
            quotient = left // number
            assert (quotient.low, quotient.high) == hull([a // number for a in held(left)])


def test_a_rest_of_numbers_with_one_quotient_is_exact() -> None:
    for low, high, by in ((8, 11, 4), (9, 10, 4), (-4, -1, 4), (0, 3, 7), (5, 5, 3)):
        rest = Interval(low, high) % by
        assert (rest.low, rest.high) == hull([n % by for n in range(low, high + 1)])


@pytest.mark.parametrize("by", [Interval(0, 2), Interval(-2, 2), Interval(-3, -1)])
def test_a_divisor_that_may_be_0_or_negative_is_refused(by: Interval) -> None:
    with pytest.raises(Unsupported, match=f"from {by.low} to {by.high}"):
        Interval(1, 4) // by
    with pytest.raises(Unsupported, match=f"from {by.low} to {by.high}"):
        Interval(1, 4) % by


def test_a_comparison_is_known_where_all_pairs_agree() -> None:
    for left in INTERVALS:
        for right in INTERVALS:
            pairs = [(a, b) for a in held(left) for b in held(right)]
            for of_intervals, of_numbers in ((NUMBERS.less, operator.lt), (NUMBERS.equal, operator.eq)):
                said = {of_numbers(a, b) for a, b in pairs}
                assert of_intervals(left, right) is (said.pop() if len(said) == 1 else None)
            union = [*held(left), *held(right)]
            either = NUMBERS.either(left, right)
            assert (either.low, either.high) == hull(union)
            assert {a ^ b for a, b in pairs} <= set(held(NUMBERS.xor(left, right)))


def test_truth_values_that_are_not_known() -> None:
    known = {True: {True}, False: {False}, None: {True, False}}
    for left, lefts in known.items():
        for right, rights in known.items():
            for of_unknown, of_known in (
                (NUMBERS.logical_and, lambda a, b: a and b), (NUMBERS.logical_or, lambda a, b: a or b),
            ):  # fmt: skip
                said = {of_known(a, b) for a in lefts for b in rights}
                assert of_unknown(left, right) is (said.pop() if len(said) == 1 else None)
        assert NUMBERS.logical_not(left) is (None if left is None else not left)


def test_ends_at_infinity() -> None:
    """An int that no float holds beside one: a sum has the end at infinity, 0 times it is 0."""
    large, open_ = 1 << 2000, Interval(0, math.inf)
    assert repr(open_ + large) == f"Interval({large}, inf)"
    assert repr(Interval(large, large) + open_) == f"Interval({large}, inf)"
    assert repr(open_ - large) == f"Interval({-large}, inf)"
    assert repr(large - open_) == f"Interval(-inf, {large})"
    assert repr(open_ * 0) == "Interval(0, 0)"
    assert repr(open_ * -3) == "Interval(-inf, 0)"
    assert repr(Interval(-math.inf, math.inf) * 2) == "Interval(-inf, inf)"
    assert repr(open_ // 4) == "Interval(0, inf)"
    assert repr(Interval(5, 9) // Interval(1, math.inf)) == "Interval(0, 9)"
    assert repr(Interval(-5, 9) // Interval(1, math.inf)) == "Interval(-5, 9)"
    with pytest.raises(Unsupported, match="xor"):
        NUMBERS.xor(open_, 3)
