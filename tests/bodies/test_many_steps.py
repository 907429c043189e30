"""What a body computes in a thousand steps is judged as what it computes in ten."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402

import layoutproof as lp  # noqa: E402

pytestmark = pytest.mark.slow

STEPS = 600
"""More of them than Python calls fit into each other, with a few for each."""


def hashed(x: Any, by: int) -> Any:
    """A row that is chosen by many steps of arithmetic, of 8; or `by` behind it."""

    def body(x_ref: Any, o_ref: Any) -> None:
        v = pl.program_id(0)
        for _ in range(STEPS):
            v = (v * 3 + (v & 7)) & 255
        o_ref[...] = jnp.zeros_like(o_ref)
        o_ref[pl.ds(v % 8, 1), :] = x_ref[pl.ds(v % 8 + by, 1), :]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=shape)(x)


def summed(x: Any, masked: bool) -> Any:
    """Many steps on every element before a sum over a block that is cut short."""

    def body(x_ref: Any, o_ref: Any) -> None:
        v = x_ref[...]
        if masked:
            v = jnp.where(jax.lax.broadcasted_iota(jnp.int32, v.shape, 1) < 200, v, 0)
        for _ in range(STEPS):
            v = v * 3.0 + jnp.abs(v)
        v = v + v.sum(axis=1, keepdims=True)
        o_ref[...] = jnp.broadcast_to(v.sum(axis=1, keepdims=True), o_ref.shape)

    block = pl.BlockSpec((8, 256), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 256), x.dtype)
    return pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=shape)(x)


def floats(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def test_a_place_that_many_steps_compute() -> None:
    """In bounds, and stored; eight rows further is refuted at the first program, whose hash is 0."""
    assert lp.kernels(hashed, floats(32, 128), by=0).exit_code == 0
    wrong = lp.kernels(hashed, floats(32, 128), by=8, properties=["body_in_bounds"])
    (found,) = (f for f in wrong.findings if f.verdict is lp.Verdict.REFUTED)
    assert "elements 8:9 of dimension 0 of args[0], which has 8" in found.reason
    assert found.counterexample is not None
    assert found.counterexample["program"] == (0,)


@pytest.mark.parametrize("masked", [True, False])
def test_padding_that_many_steps_hand_on(masked: bool) -> None:
    """Proved where it is masked before, refuted where it is not: no step on the way is too many."""
    found = lp.kernels(summed, floats(32, 200), masked=masked, properties=["undefined_values"])
    assert found.exit_code == (0 if masked else 1)


def repeated_sums(x: Any, masked: bool, steps: int) -> Any:
    """Sums along one dimension and then the other, each added to what it sums, of rows that are cut short."""

    def body(x_ref: Any, o_ref: Any) -> None:
        v = x_ref[...]
        if masked:
            v = jnp.where(jax.lax.broadcasted_iota(jnp.int32, v.shape, 1) < 100, v, 0)
        for step in range(steps):
            v = v + v.sum(axis=step % 2, keepdims=True)
        o_ref[...] = v

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 128), x.dtype)
    return pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=shape)(x)


@pytest.mark.parametrize(("masked", "steps", "exit_code"), [(True, 24, 0), (False, 4, 1)])
def test_sums_of_sums(masked: bool, steps: int, exit_code: int) -> None:
    """Each sum asks about the one before it at two places; of 24 sums that is not asked 2^24 times."""
    found = lp.kernels(repeated_sums, floats(32, 100), masked=masked, steps=steps, properties=["undefined_values"])
    assert found.exit_code == exit_code
