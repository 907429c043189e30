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
