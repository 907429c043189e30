"""What float64 itself leaves where large numbers cancel is no difference of two functions that compute the same."""

from __future__ import annotations

import math
from typing import Any

import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax

PAIRS: dict[str, tuple[Any, Any, Any]] = {
    # e^-|x|; of large x both are the same number of float64, and nothing is left
    "hyperbolas": (
        lambda x: jnp.sqrt(1 + jnp.sinh(x) ** 2) - jnp.abs(jnp.sinh(x)), lambda x: jnp.exp(-jnp.abs(x)),
        lambda x: jnp.sqrt(1 + jnp.sinh(x) ** 2) + jnp.abs(jnp.sinh(x)),
    ),
    # its inverse says little where the error function is nearly 1
    "there and back": (lambda x: lax.erf_inv(lax.erf(x)), lambda x: x, lambda x: 2 * x),
    # x of the gamma function of x is that of x + 1
    "logarithms of gamma": (
        lambda x: lax.lgamma(1 + jnp.exp(x)) - lax.lgamma(jnp.exp(x)), lambda x: x,
        lambda x: lax.lgamma(2 + jnp.exp(x)) - lax.lgamma(jnp.exp(x)),
    ),
    "a variance about a large mean": (
        lambda x: ((x + 1e6) ** 2).mean(-1) - (x + 1e6).mean(-1) ** 2 + jnp.sin(2 * x[:, 0]),
        lambda x: x.var(-1) + 2 * jnp.sin(x[:, 0]) * jnp.cos(x[:, 0]),
        lambda x: (x**2).mean(-1) + jnp.sin(2 * x[:, 0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_left_of_large_numbers_refutes_nothing(name: str) -> None:
    """The field has no law for these functions, so that float64 alone speaks; a true difference it still shows."""
    ours, theirs, wrong = PAIRS[name]
    assert lp.same(ours, theirs, "f32[8,16]").verdict.value == "unknown"
    assert lp.same(wrong, theirs, "f32[8,16]").verdict.value == "refuted"


def by_powers_of_two(power: float, kept: float = 1.0) -> Any:
    """softmax(q @ k.T) @ v, half of the keys after the other, with 2 ** (x * power); `kept`: of the sum before."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.T) * power
        most, total, out = jnp.full((8, 1), -jnp.inf), jnp.zeros((8, 1)), jnp.zeros((8, 8))
        for first in (0, 4):
            own = scores[:, first : first + 4]
            now = jnp.maximum(most, own.max(1, keepdims=True))
            scale, weights = jnp.exp2(most - now), jnp.exp2(own - now)
            total = total * scale + weights.sum(1, keepdims=True)
            out = jnp.where(scale < 1, out * scale * kept, out) + weights @ v[first : first + 4]
            most = now
        return out / total

    return attention


def test_what_a_number_of_the_code_is_rounded_to_is_no_difference_where_numbers_cancel() -> None:
    """1 / log 2 is rounded, and the log 2 of exp2 is not: moved alike, they would hide what rounding makes."""

    def reference(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.T, axis=1) @ v

    given = ("f32[8,8]",) * 3
    assert lp.same(by_powers_of_two(math.log2(math.e)), reference, *given).verdict.value == "unknown"
    assert lp.same(by_powers_of_two(math.log2(math.e), 1.001), reference, *given).verdict.value == "refuted"
    assert lp.same(by_powers_of_two(1.4427), reference, *given).verdict.value == "refuted"
