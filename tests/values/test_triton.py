"""Operations of the wheel for Triton beside references, and what of such kernels is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu
from jax.experimental.pallas.ops.gpu import attention, layer_norm, rms_norm, softmax

import layoutproof as lp
from layoutproof.core.result import Verdict
from tests.pallas.triton_pairs import N, array, call

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="read from jax 0.10.2"),
]


def normed(x: Any, weight: Any, bias: Any, centred: bool = True, epsilon: float = 1e-5) -> Any:
    off = x - jnp.mean(x, -1, keepdims=True) if centred else x
    return off / jnp.sqrt(jnp.mean(off * off, -1, keepdims=True) + epsilon) * weight + bias


def grad(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.grad(lambda *args: jnp.sum(function(*args) ** 2), (0, 1, 2))


def mha(causal: bool = False) -> tuple[Callable[..., Any], Callable[..., Any]]:
    options: dict[str, Any] = {"segment_ids": None, "sm_scale": 0.25, "causal": causal}
    return partial(_mha, options), partial(_reference, options)


def _mha(options: dict[str, Any], q: Any, k: Any, v: Any) -> Any:
    return attention.mha(q, k, v, **options)


def _reference(options: dict[str, Any], q: Any, k: Any, v: Any) -> Any:
    return attention.mha_reference(q, k, v, **options)


ROWS, HEADS = (array(2, 4, 64), array(64), array(64)), (array(1, 128, 2, 16),) * 3
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (softmax.softmax, jax.nn.softmax, lambda x: jax.nn.softmax(2 * x), (array(8, 100),)),
    "layer_norm": (layer_norm.layer_norm, normed, partial(normed, epsilon=1e-4), ROWS),
    "layer_norm.grad": (grad(layer_norm.layer_norm), grad(normed), grad(partial(normed, epsilon=1e-4)), ROWS),
    "rms_norm": (rms_norm.rms_norm, partial(normed, centred=False), normed, ROWS),
    "rms_norm.grad": (grad(rms_norm.rms_norm), grad(partial(normed, centred=False)), grad(normed), ROWS),
    "mha": (*mha(), mha(causal=True)[1], HEADS),
    "mha causal": (*mha(causal=True), mha()[1], HEADS),
    "mha.grad": (*map(grad, (*mha(), mha(causal=True)[1])), HEADS),
}
"""By name: the operation, a reference, a wrong one, and arguments."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_of_the_wheel(name: str) -> None:
    function, right, wrong, given = OPERATIONS[name]
    assert lp.same(function, right, *given).verdict is Verdict.SAMPLED
    assert lp.same(function, wrong, *given).verdict is Verdict.REFUTED


@pytest.mark.parametrize("operation", ["xchg", "and", "or", "xor"])
def test_other_atomic_operations_are_refused_by_name(operation: str) -> None:
    def body(x: Any, o: Any) -> None:
        getattr(plgpu, f"atomic_{operation}")(o, (pl.program_id(0),), x[pl.program_id(0)])

    function = call(body, array(4, dtype=N), (4,))
    said = lp.same(function, lambda x: x, array(4, dtype=N))
    assert (said.verdict, f"atomic_{operation}" in said.reason) == (Verdict.UNKNOWN, True)


def test_what_an_atomic_operation_has_found_is_refused_by_name() -> None:
    def body(x: Any, o: Any, n: Any) -> None:
        o[pl.program_id(0)] = plgpu.atomic_add(n, (pl.program_id(0) * 0,), x[pl.program_id(0)])

    function = call(body, (array(4), array(1)), (4,))
    said = lp.same(lambda x: function(x)[0], lambda x: x, array(4))
    assert said.verdict is not Verdict.SAMPLED


def test_arrays_that_share_a_buffer_are_one() -> None:
    """A program loads what it stored to the other reference of the array, through blocks."""
    spec = pl.BlockSpec((16,), lambda i: (i,))

    def body(x: Any, o: Any) -> None:
        o[...] = x[...] + 1
        plgpu.debug_barrier()
        o[...] = x[...] * 2

    function = call(body, array(64), (4,), in_specs=[spec], out_specs=spec, input_output_aliases={0: 0})
    assert lp.same(function, lambda x: (x + 1) * 2, array(64)).verdict is Verdict.SAMPLED
    assert lp.same(function, lambda x: x * 2, array(64)).verdict is Verdict.REFUTED


def test_places_that_are_named_twice_are_added_twice() -> None:
    def body(x: Any, start: Any, o: Any) -> None:
        del start
        plgpu.atomic_add(o, (jnp.arange(64) // 2,), x[...])

    made = call(body, array(32), (1,), input_output_aliases={1: 0})
    function = lambda x: made(x, jnp.zeros((32,), jnp.float32))  # noqa: E731
    assert lp.same(function, lambda x: x.reshape(32, 2).sum(1), array(64)).verdict is Verdict.SAMPLED
    assert lp.same(function, lambda x: x[:32], array(64)).verdict is Verdict.REFUTED
