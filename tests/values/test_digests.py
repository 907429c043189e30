"""Values that are kept: forms of one function have the same, others have not, and what no point decides has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax

from layoutproof.pallas.from_jax.programs import program_of
from layoutproof.values.digests import Values, values_of
from layoutproof.values.pair import Input
from layoutproof.values.refusals import NotModelled

pytestmark = pytest.mark.slow

EPS = 1e-6
SQUARE = ((6, 6),)
Function = Callable[..., Any]


def kept(function: Function, shapes: tuple[tuple[int, ...], ...], dtype: str = "float32") -> Values:
    """The values of a function of arrays of these shapes."""
    structs = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    program = program_of(jax.make_jaxpr(function)(*structs))
    return values_of(program, [Input(f"args[{k}]", s.shape, s.dtype) for k, s in enumerate(structs)])


def attention(x: Any) -> Any:
    return jax.nn.softmax(x @ x.T) @ x


SAME: dict[str, tuple[Function, Function]] = {
    "a scan for a loop": (
        lambda x: jnp.tanh(jnp.tanh(x @ x) @ x),
        lambda x: lax.scan(lambda c, _: (jnp.tanh(c @ x), None), x, None, 2)[0],
    ),
    "a root for an inverse root": (
        lambda x: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + EPS),
        lambda x: x * lax.rsqrt(jnp.square(x).sum(-1, keepdims=True) / 6 + EPS),
    ),
    "a softmax by its logarithm": (attention, lambda x: jnp.exp(jax.nn.log_softmax(x @ x.T)) @ x),
    "nested": (
        lambda x: attention(attention(x)),
        lambda x: attention(jnp.einsum("ij,jk->ik", jax.nn.softmax(x @ x.T), x)),
    ),
    "a mask": (lambda x: jnp.where(x > 0, x, 0), lambda x: jnp.where(x > 0, 2 * x, 0) / 2),
}  # fmt: skip
OTHER: dict[str, tuple[Function, Function]] = {
    "another number": (
        SAME["a root for an inverse root"][0],
        lambda x: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5),
    ),
    "elements in another order": (lambda x: x @ x, lambda x: (x @ x)[::-1]),
    "transposed": (lambda x: x @ x, lambda x: (x @ x).T),
    "the other branch": (SAME["a mask"][0], lambda x: jnp.where(x > 0, 0, x)),
    "not divided": (attention, lambda x: jnp.exp(x @ x.T) @ x),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_one_function(name: str) -> None:
    one, other = (kept(f, SQUARE) for f in SAME[name])
    assert one.same_as(other)
    assert other.same_as(one)


@pytest.mark.parametrize("name", OTHER)
def test_another_function(name: str) -> None:
    one, other = (kept(f, SQUARE) for f in OTHER[name])
    assert not one.same_as(other)


def test_integers_that_decide_are_drawn() -> None:
    one, other, third = (
        kept(f, ((4,),), "int32")
        for f in (lambda i: jnp.arange(8.0)[i], lambda i: 1.0 * i, lambda i: jnp.arange(1.0, 9.0)[i])
    )
    assert not one.same_as(third)
    assert one.digest != other.digest


def test_float64_has_its_say() -> None:
    """The fields alone do not decide."""
    one = kept(attention, SQUARE)
    moved = Values(one.digest, one.points, tuple((None if a is None else a + 0.01, b) for a, b in one.floats))
    assert one.floats
    assert not one.same_as(moved)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: jnp.sort(x), "an order of data"),
        (lambda x: jnp.where(x == x.T, x, 0), "equal"),
    ],
)
def test_what_no_point_decides_has_none(function: Function, why: str) -> None:
    with pytest.raises(NotModelled, match=why):
        kept(function, SQUARE)
