"""Where two programs that differ part: the line, beside rewrites that are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="the extra jax is not installed")

import jax.numpy as jnp  # noqa: E402

from layoutproof.pallas.from_jax.programs import program_of  # noqa: E402
from layoutproof.values.pair import Input  # noqa: E402
from layoutproof.values.parting import parting  # noqa: E402

pytestmark = pytest.mark.slow

Function = Callable[..., Any]
X = jax.ShapeDtypeStruct((4, 4), "float32")


def parted(one: Function, other: Function, *shapes: Any) -> tuple[int, int]:
    """The lines where two functions part, counted from their own first lines."""
    programs = tuple(program_of(jax.make_jaxpr(f)(*shapes)) for f in (one, other))
    places = parting(programs, [Input(f"{k}", s.shape, s.dtype) for k, s in enumerate(shapes)], 0)  # type: ignore[arg-type]
    firsts = (f.__code__.co_firstlineno for f in (one, other))
    return tuple(  # type: ignore[return-value]
        int(place.rpartition(":")[2]) - first if place else -1 for place, first in zip(places, firsts, strict=True)
    )


def test_a_right_rewrite_before_and_one_beside_are_not_the_place() -> None:
    def old(x, w):  # type: ignore[no-untyped-def]
        h = x @ w
        h = jnp.tanh(h)
        y = h - h.mean(-1, keepdims=True)
        return y * 2 + x

    def new(x, w):  # type: ignore[no-untyped-def]
        h = jnp.einsum("ij,jk->ki", x, w).T
        h = jnp.tanh(h)
        mean = h.sum(-1, keepdims=True) / 4
        y = h - mean * mean
        return x + 2 * y

    assert parted(new, old, X, X) == (4, 3)
    assert parted(old, old, X, X) == (-1, -1)


def test_inside_of_a_loop_and_of_a_function_with_jit() -> None:
    @jax.jit
    def inner(h, w):  # type: ignore[no-untyped-def]
        return jnp.tanh(h @ w)

    def old(x, w):  # type: ignore[no-untyped-def]
        return jax.lax.scan(lambda h, _: (inner(h, w), h.sum()), x, None, length=3)[1]

    def new(x, w):  # type: ignore[no-untyped-def]
        def body(h, _):  # type: ignore[no-untyped-def]
            h = inner(h, w)
            return h, 2 * h.sum()

        return jax.lax.scan(body, x, None, length=3)[1]

    assert parted(new, old, X, X)[0] == 3


def test_what_is_not_modelled_has_no_place() -> None:
    assert parted(lambda x: jnp.sort(x), lambda x: jnp.sort(-x), X) == (-1, -1)
