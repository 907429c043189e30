"""What float64 itself leaves where large numbers cancel is no difference of two functions that compute the same."""

from __future__ import annotations

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
