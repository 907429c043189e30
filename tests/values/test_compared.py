"""Comparisons of one value with several numbers of the code come out in the order of these numbers, at every point."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.values.points import Points

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

Function = Callable[[Any], Any]


def clip(x: Any) -> Any:
    return jnp.clip(x, -1, 1)


def chosen(low: float, high: float, below: float = -1.0, above: float = 1.0) -> Function:
    """A clip by two choices."""
    return lambda x: jnp.where(x < low, below, jnp.where(x > high, above, x))


def huber(delta: float) -> Function:
    def of(x: Any) -> Any:
        size = jnp.abs(x)
        return jnp.where(size <= delta, 0.5 * x * x, delta * (size - 0.5 * delta))

    return of


def by_sides(delta: float, turned: float = 1.0) -> Function:
    """The same loss by three cases. turned: -1 where the outer two are exchanged."""

    def of(x: Any) -> Any:
        left, right = -delta * x - 0.5 * delta * delta, delta * x - 0.5 * delta * delta
        return jnp.where(turned * x < -delta, left, jnp.where(turned * x > delta, right, 0.5 * x * x))

    return of


def six(high: float) -> Function:
    return lambda x: jnp.where(x > high, 6.0, jnp.where(x > 0, x, 0.0))


def sigmoid(x: Any) -> Any:
    return jax.nn.relu6(x + 3) / 6


def by_thirds(high: float) -> Function:
    return lambda x: jnp.where(x < -3, 0.0, jnp.where(x > high, 1.0, x / 6 + 0.5))


def shrunk(x: Any) -> Any:
    return jnp.sign(x) * jnp.maximum(jnp.abs(x) - 0.5, 0)


def by_signs(by: float) -> Function:
    return lambda x: jnp.where(x > 0.5, x - by, jnp.where(x < -0.5, x + by, 0.0))


def hinge(x: Any) -> Any:
    return jnp.maximum(0.0, 1 - x)


def below(of: Function, number: float) -> Function:
    """A choice by what is compared with a number."""
    return lambda x: jnp.where(of(x) < number, x, 2 * x)


def above_in_one_place(number: float) -> Function:
    return lambda x: jnp.where(x[0, 0] > number, x, 0.0)


PAIRS: dict[str, tuple[Function, Function, Function]] = {
    "clip": (clip, chosen(-1, 1), chosen(-1, 1.5)),
    "clip at another number": (clip, chosen(-1, 1), chosen(-1, 1.5, above=1.5)),
    "clip, exchanged": (clip, chosen(-1, 1), chosen(-1, 1, 1.0, -1.0)),
    "clip, in the other order": (clip, lambda x: jnp.maximum(jnp.minimum(x, 1), -1), lambda x: jnp.minimum(x, 1)),
    "hard tanh": (jax.nn.hard_tanh, chosen(-1, 1), chosen(-1.5, 1)),
    "relu6": (jax.nn.relu6, six(6), six(5)),
    "huber": (huber(1.0), by_sides(1.0), by_sides(1.2)),
    "huber of 0.7": (huber(0.7), by_sides(0.7), by_sides(0.7, -1.0)),
    "hard sigmoid": (sigmoid, by_thirds(3), by_thirds(2)),
    "soft shrink": (shrunk, by_signs(0.5), by_signs(0.4)),
    "hinge": (hinge, lambda x: jnp.where(x < 1, 1 - x, 0.0), lambda x: jnp.where(x < 0, 1 - x, 0.0)),
    "a difference below 0": (below(lambda x: x - 1, 0), below(lambda x: x, 1), below(lambda x: x, 0.99)),
    "a difference above 0": (below(lambda x: -x, -1), lambda x: jnp.where(1 - x < 0, x, 2 * x), below(lambda x: x, 1)),
    "a sum of differences": (
        below(lambda x: (x - 1).sum(-1, keepdims=True), 0), below(lambda x: x.sum(-1, keepdims=True), 16),
        below(lambda x: x.sum(-1, keepdims=True), 15),
    ),
    "differences in a part": (
        below(lambda x: x.at[:, :4].add(-1), 0), lambda x: jnp.where(x < (jnp.arange(16) < 4) * 1.0, x, 2 * x),
        below(lambda x: x, 1),
    ),
    "near one another": (below(lambda x: x, 0.999), below(lambda x: x - 0.999, 0), below(lambda x: x, 1.0)),
    "one number": (
        above_in_one_place(0.999), lambda x: jnp.where(x[0, 0] - 0.999 > 0, x, 0.0), above_in_one_place(1.0),
    ),
    "both": (
        lambda x: jnp.where((x > -1) & (x < 1), x, 0.0), lambda x: jnp.where(jnp.abs(x) < 1, x, 0.0),
        lambda x: jnp.where((x > -1) | (x < 1), x, 0.0),
    ),
    "computed numbers": (below(lambda x: x, 0.3), below(lambda x: x - 0.1, 0.2), below(lambda x: x - 0.1, 0.3)),
}  # fmt: skip
"""Name -> (a function, a right rewrite, a wrong one)."""


@pytest.mark.parametrize("name", PAIRS)
def test_a_rewrite_that_compares_otherwise(name: str) -> None:
    function, right, wrong = PAIRS[name]
    assert lp.same(function, right, "f32[8,16]").verdict.value == "sampled"
    assert lp.same(function, wrong, "f32[8,16]").verdict.value == "refuted"


def test_what_holds_of_no_number_and_of_some() -> None:
    """A branch that nothing takes is none; one between two numbers is taken."""
    never = lp.same(lambda x: jnp.where((x < -1) & (x > 1), 5.0, x), lambda x: x, "f32[8,16]")
    some = lp.same(lambda x: jnp.where((x < 1) & (x > 0.999), 5.0, x), lambda x: x, "f32[8,16]")
    assert (never.verdict.value, some.verdict.value) == ("sampled", "refuted")


def test_where_a_difference_shows_is_said() -> None:
    text = str(lp.same(below(lambda x: x, 0.999), below(lambda x: x, 1.0), "f32[8,16]"))
    assert "between -1, -0.999, 0, 0.999, 1, and beyond" in text


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_comparisons_are_those_of_one_number(seed: int) -> None:
    """Of each value all agree with one place in the order; every place occurs; and the opposite lies opposite."""
    numbers = Points(seed, compared=(0.5, 2.0))
    value = numbers.draw((4000,))
    ends = numbers.compared.tolist()
    assert ends == [-2, -0.5, 0, 0.5, 2]
    less = np.stack([numbers.less(value, numbers.constant(np.full((), e))) for e in ends])
    assert (less[1:] >= less[:-1]).all()
    assert len(set(map(tuple, less.T.tolist()))) == len(ends) + 1
    above = np.stack([numbers.less(numbers.constant(np.full((), -e)), numbers.neg(value)) for e in ends])
    assert np.array_equal(above, less)
    shifted = numbers.add(value, numbers.constant(np.full((4000,), 1.5)))
    assert np.array_equal(numbers.less(shifted, numbers.constant(np.full((), 2.0))), less[3])
    assert not numbers.met
    for one, other in product(ends, ends):
        a, b = (numbers.constant(np.full((), x)) for x in (one, other))
        assert bool(numbers.less(a, b)) == (one < other)


def test_numbers_that_nobody_told_of_are_met() -> None:
    numbers = Points(1)
    value = numbers.draw((10,))
    numbers.less(value, numbers.constant(np.full((), 0.25)))
    numbers.less(numbers.constant(np.full((), -3.0)), value)
    assert numbers.met == {0.25, 3.0}
