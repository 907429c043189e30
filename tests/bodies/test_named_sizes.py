"""Kernels whose dimensions are names (`jax.export.symbolic_shape`): bodies are judged for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import export, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

ROWS, FIRST = ((8, 128), lambda i: (i, 0)), ((8, 128), lambda i: (0, 0))


def call(body: Callable[..., None], x: Any, rows: bool, scratch: Any = ()) -> Any:
    """Blocks of 8 rows of x; the output is of its shape, or one block."""
    shape = x.shape if rows else (8, 128)
    return pl.pallas_call(
        body,
        grid=(pl.cdiv(x.shape[0], 8),),
        in_specs=[pl.BlockSpec(*ROWS)],
        out_specs=pl.BlockSpec(*(ROWS if rows else FIRST)),
        out_shape=jax.ShapeDtypeStruct(shape, x.dtype),
        scratch_shapes=scratch,
    )(x)


def accumulated(x: Any, wrong: bool) -> Any:
    """The sum of whole blocks; wrong: zeroed in the second program."""

    def body(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(0) == int(wrong))
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return call(body, x, rows=False)


def tail(x: Any, wrong: bool) -> Any:
    """The sum of all rows; wrong: with those behind the end."""
    rows = x.shape[0]

    def body(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

        row = i * 8 + lax.broadcasted_iota(jnp.int32, (8, 128), 0)
        held = x_ref[...] if wrong else jnp.where(row < rows, x_ref[...], 0)
        o_ref[...] += jnp.broadcast_to(held.sum(0, keepdims=True), (8, 128))

    return call(body, x, rows=False)


def last(x: Any, wrong: bool) -> Any:
    """Every block is stored; wrong: but the last one."""

    def body(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(0) < pl.num_programs(0) - int(wrong))
        def _() -> None:
            o_ref[...] = x_ref[...]

    return call(body, x, rows=True)


def half(x: Any, wrong: bool) -> Any:
    """Every row of a block is stored; wrong: the first four."""

    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[0:4, :] = x_ref[0:4, :]
        if not wrong:
            o_ref[4:8, :] = x_ref[4:8, :]

    return call(body, x, rows=True)


def running(x: Any, wrong: bool) -> Any:
    """Sums so far, in scratch; wrong: zeroed in the second program."""

    def body(x_ref: Any, o_ref: Any, sums: Any) -> None:
        @pl.when(pl.program_id(0) == int(wrong))
        def _() -> None:
            sums[...] = jnp.zeros_like(sums)

        sums[...] += x_ref[...]
        o_ref[...] = sums[...]

    return call(body, x, rows=True, scratch=[pltpu.VMEM((8, 128), jnp.float32)])


CASES = {
    "accumulated": (accumulated, "8*M", "initialised"),
    "tail": (tail, "M", "undefined_values"),
    "last": (last, "M", "outputs_stored"),
    "half": (half, "8*M", "outputs_stored"),
    "running": (running, "M", "initialised"),
}


def errors(function: Callable[..., Any], rows: str) -> list[Finding]:
    x = jax.ShapeDtypeStruct(export.symbolic_shape(f"{rows}, 128"), jnp.float32)
    return [f for f in lp.kernels(function, x).findings if f.severity == "error" and f.verdict is not Verdict.PROVED]


@pytest.mark.parametrize("name", CASES)
def test_a_right_body_is_proved_for_all_sizes(name: str) -> None:
    function, rows, _ = CASES[name]
    assert [(f.question, f.reason) for f in errors(partial(function, wrong=False), rows)] == []


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_body_is_refuted_at_the_smallest_size(name: str) -> None:
    function, rows, question = CASES[name]
    found = errors(partial(function, wrong=True), rows)
    assert {(f.question, f.verdict) for f in found} == {(question, Verdict.REFUTED)}
    assert all(f.reason.startswith("with M = 1: ") for f in found)
    assert all((f.counterexample or {})["sizes"] == {"M": 1} for f in found)


def test_a_grid_that_data_choose_stays_open() -> None:
    """Of a number that only the running program knows nothing is meant for all values."""

    def function(n: Any, x: Any) -> Any:
        spec = pl.BlockSpec(*ROWS)
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)

        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...]

        return pl.pallas_call(body, grid=(n[0],), in_specs=[spec], out_specs=spec, out_shape=out)(x)

    x = jax.ShapeDtypeStruct(export.symbolic_shape("M, 128"), jnp.float32)
    found = lp.kernels(function, jax.ShapeDtypeStruct((1,), jnp.int32), x).findings
    assert {f.verdict for f in found if f.question == "blocks_in_bounds"} == {Verdict.UNKNOWN}
