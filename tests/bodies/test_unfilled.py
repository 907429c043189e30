"""Arrays that nobody has filled, `jax.lax.empty`: what is read of them is undefined, what is stored first is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

SHAPE = (32, 128)
X = jax.ShapeDtypeStruct(SHAPE, jnp.float32)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
ANY = pl.BlockSpec(memory_space=pl.ANY)


def updated(x: jax.Array, cache: jax.Array, kept: int = 4) -> jax.Array:
    """The first rows of each block are new, the others those of the cache, in place."""

    def body(x_ref: Any, c_ref: Any, o_ref: Any) -> None:
        new = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) < kept
        o_ref[...] = jnp.where(new, x_ref[...], c_ref[...])

    return pl.pallas_call(
        body, grid=(4,), in_specs=[ROWS, ROWS], out_specs=ROWS, out_shape=X, input_output_aliases={1: 0}
    )(x, cache)


def copied(x: jax.Array, cache: jax.Array, blocks: int = 4) -> jax.Array:
    """So many blocks are copied out by hand, into the buffer of the cache."""

    def body(x_ref: Any, c_ref: Any, o_ref: Any, sem: Any) -> None:
        i = pl.program_id(0)

        @pl.when(i < blocks)
        def _() -> None:
            copy = pltpu.make_async_copy(x_ref, o_ref.at[pl.ds(i * 8, 8)], sem)
            copy.start()
            copy.wait()

    return pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[ROWS, ANY],
        out_specs=ANY,
        out_shape=X,
        scratch_shapes=[pltpu.SemaphoreType.DMA(())],
        input_output_aliases={1: 0},
    )(x, cache)


def fetched(cache: jax.Array) -> jax.Array:
    """Each block is copied in by hand."""

    def body(c_ref: Any, o_ref: Any, buffer: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(c_ref.at[pl.ds(pl.program_id(0) * 8, 8)], buffer, sem)
        copy.start()
        copy.wait()
        o_ref[...] = buffer[...]

    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA(())]
    return pl.pallas_call(body, grid=(4,), in_specs=[ANY], out_specs=ROWS, out_shape=X, scratch_shapes=scratch)(cache)


def empty() -> jax.Array:
    return jax.lax.empty(SHAPE, jnp.float32)


def errors(function: Callable[[jax.Array], jax.Array]) -> list[Finding]:
    found = lp.kernels(function, X).findings
    return [f for f in found if f.severity == "error" and f.verdict is not Verdict.PROVED]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: updated(x, empty()),
        lambda x: jax.jit(updated)(x, jax.lax.empty((128, 32), jnp.bfloat16).astype(jnp.float32).T),
        lambda x: fetched(empty()),
    ],
    ids=["in place", "through a function", "by hand"],
)
def test_what_nobody_has_filled_is_refuted_where_it_reaches_an_output(function: Any) -> None:
    (found,) = errors(function)
    assert (found.question, found.verdict) == ("undefined_values", Verdict.REFUTED)
    assert "which nobody has filled (jax.lax.empty at " in found.reason
    assert "test_unfilled.py:" in found.reason
    assert found.file.endswith("test_unfilled.py")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: updated(x, jnp.zeros(SHAPE)),
        # all of it is stored first, and nothing of it is taken
        lambda x: updated(x, empty(), kept=8),
        lambda x: fetched(x),
        lambda x: copied(x, empty()),
    ],
    ids=["zeros", "nothing kept", "given", "all copied"],
)
def test_what_is_filled_or_not_taken_is_proved(function: Any) -> None:
    assert errors(function) == []


def test_a_hole_in_an_output_keeps_what_its_input_has_unless_nobody_has_filled_that() -> None:
    (found,) = errors(lambda x: copied(x, empty(), blocks=3))
    assert (found.question, found.verdict) == ("outputs_stored", Verdict.REFUTED)
    assert errors(lambda x: copied(x, jnp.zeros(SHAPE), blocks=3)) == []


def test_what_the_installed_jax_fills_with_zeros_is_filled() -> None:
    filled = "empty[" not in str(jax.make_jaxpr(lambda: jnp.empty(SHAPE))())
    found = errors(lambda x: updated(x, jnp.empty(SHAPE)))
    assert [f.question for f in found] == ([] if filled else ["undefined_values"])
