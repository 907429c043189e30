"""Maxima that meet exponentials: taken at the levels of a chain of fields at which somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.values.points import Points

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

Function = Callable[[Any], Any]


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, -1)


def plain(x: Any) -> Any:
    return jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)


def top(x: Any) -> Any:
    return x.max(-1, keepdims=True)


SAME: dict[str, tuple[Function, Function]] = {
    "softmax": (softmax, plain),
    "a maximum times a softmax": (lambda x: top(x) * softmax(x), lambda x: top(x) * plain(x)),
    "a softmax of a softmax": (lambda x: softmax(softmax(x)), lambda x: plain(plain(x))),
    "a maximum times both": (lambda x: top(x) * softmax(softmax(x)), lambda x: top(x) * plain(plain(x))),
    "the log of a sum": (lambda x: jax.nn.logsumexp(x, -1), lambda x: jnp.log(jnp.exp(x).sum(-1))),
    "a maximum of both": (lambda x: jnp.maximum(top(x), softmax(x)), lambda x: jnp.maximum(softmax(x), top(x))),
}


@pytest.mark.parametrize("name", SAME)
def test_maxima_beside_exponentials(name: str) -> None:
    ours, theirs = SAME[name]
    assert lp.same(ours, theirs, "f32[4,16]").verdict.value == "sampled"


@pytest.mark.parametrize("name", [n for n in SAME if "maximum" in n])
def test_another_maximum_is_refuted(name: str) -> None:
    ours, theirs = SAME[name]
    wrong = lp.same(ours, lambda x: theirs(x) + 1e-2 * (top(x) - top(x[:, 1:])), "f32[4,16]")
    assert wrong.verdict.value == "refuted"


def test_a_maximum_is_left_out_at_the_highest_of_several_levels_alone() -> None:
    for levels, known in ((1, [True]), (2, [True, False]), (3, [True, True, False])):
        numbers = Points(1, levels, lean=True)
        found = numbers.largest(numbers.draw((4, 8)))
        assert [r is not None for r in found.residues] == known
        assert numbers.left == (levels > 1)


def but_the_last(x: Any) -> Any:
    return x[:, :-1].max(-1, keepdims=True)


def but_one(x: Any) -> Any:
    return jnp.maximum(x[:, :201].max(-1, keepdims=True), x[:, 202:].max(-1, keepdims=True))


def in_halves(x: Any) -> Any:
    return jnp.maximum(x[:, :128].max(-1, keepdims=True), x[:, 128:].max(-1, keepdims=True))


OF_MAXIMA: dict[str, Callable[[Function], Function]] = {
    "itself": lambda most: most,
    "of magnitudes": lambda most: lambda x: most(jnp.abs(x)),
    "a scale": lambda most: lambda x: jnp.round(x / most(jnp.abs(x)) * 127),
    "a root": lambda most: lambda x: jnp.sqrt(most(x * x)),
    "which it is": lambda most: lambda x: jnp.where(x == most(x), x, 0).sum(-1),
    "all but that": lambda most: lambda x: jnp.where(x == most(x), -1e30, x).max(-1),
    "its gradient": lambda most: jax.grad(lambda x: most(x).sum()),
}


@pytest.mark.parametrize("name", OF_MAXIMA)
@pytest.mark.parametrize("most", [but_the_last, but_one])
def test_one_row_whose_maximum_leaves_one_column_out_is_refuted(name: str, most: Function) -> None:
    """Of 256 columns: neither a few draws nor a few points have it as the largest one."""
    of = OF_MAXIMA[name]
    found = lp.same(of(most), of(top), "f32[1,256]")
    assert found.verdict.value == "refuted", found.reason
    if name != "its gradient":
        # which is told of each half, and then of both
        assert lp.same(of(in_halves), of(top), "f32[1,256]").verdict.value == "sampled"


def larger(a: Any, b: Any) -> Any:
    return jnp.maximum(a, b)


def smaller(a: Any, b: Any) -> Any:
    return jnp.minimum(a, b)


# of the larger of two: (one way, another way, another function)
OF_TWO: dict[str, tuple[Callable[[Any, Any], Any], ...]] = {
    "both together": (lambda a, b: larger(a, b) + smaller(a, b), lambda a, b: a + b, lambda a, b: a + a),
    "their distance": (
        lambda a, b: larger(a, b) - smaller(a, b), lambda a, b: abs(a - b), lambda a, b: abs(a + b),
    ),
    "chosen": (larger, lambda a, b: jnp.where(a < b, b, a), lambda a, b: jnp.where(a < b, a, b)),
    "the log of two": (
        jnp.logaddexp, lambda a, b: jnp.log(jnp.exp(a) + jnp.exp(b)), lambda a, b: larger(a, b) + jnp.log(2.0),
    ),
    "a sum of products": (
        lambda a, b: (larger(a, b) * smaller(a, b)).sum(), lambda a, b: (a * b).sum(),
        lambda a, b: (larger(a, b) * a).sum(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TWO)
def test_the_larger_of_two_is_the_one_that_a_comparison_chooses(name: str) -> None:
    ours, theirs, other = OF_TWO[name]
    args = "f32[4,8]", "f32[4,8]"
    assert lp.same(ours, theirs, *args).verdict.value == "sampled"
    assert lp.same(theirs, ours, *args).verdict.value == "sampled"
    assert lp.same(ours, other, *args).verdict.value == "refuted"


def test_what_happens_where_two_are_equal_is_not_the_same_by_that() -> None:
    found = lp.same(
        larger, lambda a, b: jnp.where(a < b, b, jnp.where(a > b, a, 0.0)), "f32[4,8]", "f32[4,8]"
    )  # fmt: skip
    assert found.verdict.value == "unknown"
    assert "whole numbers" in str(found)
