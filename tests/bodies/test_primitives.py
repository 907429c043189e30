"""Every primitive of a body is modelled, or named with the reason why not; new ones with the version of JAX."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.bodies import interpreter
from layoutproof.core.result import Verdict

X = jax.ShapeDtypeStruct((32, 128), jnp.float32)

REAL = """
abs add and argmax axis_index bitcast broadcast_in_dim broadcast_to clamp concatenate cond convert_element_type div
dma_start dma_wait dot_general eq exp exp2 ge get get_barrier_semaphore gt iota jit le log log2 logistic lt masked_load
masked_swap max min mul multiple_of ne not num_programs or pad program_id reduce_max reduce_sum rem reshape run_scoped
scan select_n semaphore_signal semaphore_wait shift_left shift_right_logical sign slice sqrt stop_gradient sub swap
threefry2x32 tile transpose while xor
"""
"""What 62 real bodies use: all operations of the jax wheel, and vLLM's kernels for the TPU."""


def sorting(x: Any, o: Any) -> None:
    order = jax.lax.sort(x[...].astype(jnp.int32), dimension=0)
    o[pl.ds(order[0, 0], 8), :] = x[pl.ds(0, 8), :]


def waiting(x: Any, o: Any) -> None:
    pl.semaphore_wait(pltpu.get_barrier_semaphore(), 1)
    o[...] = x[...]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (sorting, "the primitive sort (places that depend on data)"),
        (waiting, "not modelled: the primitive get_barrier_semaphore (what other devices do) at "),
    ],
)
def test_what_is_not_modelled_is_named_and_nothing_is_proved_of_it(body: Any, said: str) -> None:
    found = lp.kernels(pl.pallas_call(body, out_shape=X), X, properties=["body_in_bounds"])
    assert found.exit_code == 3
    assert min(f.verdict for f in found.findings) is Verdict.UNKNOWN
    assert any(said in f.reason for f in found.findings)


def test_a_primitive_that_nobody_knows_is_named_with_the_version_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {name: make for name, make in interpreter.PRIMITIVES.items() if name != "swap"}
    monkeypatch.setattr(interpreter, "PRIMITIVES", without)

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    found = lp.kernels(pl.pallas_call(body, out_shape=X), X, properties=["body_in_bounds"])
    assert found.exit_code == 3
    assert f"not modelled: the primitive swap of jax {jax.__version__} at test_primitives.py:" in str(found)


def test_what_real_bodies_use_is_modelled_or_refused_with_a_reason() -> None:
    missing = set(REAL.split()) - set(interpreter.PRIMITIVES) - set(interpreter.REFUSED)
    assert not missing
    assert not set(interpreter.PRIMITIVES) & set(interpreter.REFUSED)
