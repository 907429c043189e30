"""Smaller sizes of programs, where a walk would take too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from layoutproof.core.errors import LayoutError  # noqa: E402
from layoutproof.ir.program import Program  # noqa: E402
from layoutproof.pallas.from_jax.programs import program_of  # noqa: E402
from layoutproof.questions import reduced  # noqa: E402

pytestmark = pytest.mark.slow


def halved(function: Callable[..., Any], *shapes: tuple[int, ...]) -> tuple[list[tuple[int, ...]], str]:
    """The smaller shapes of a function's arguments, and why there are none."""

    def traced(trial: list[tuple[int, ...]]) -> list[Program]:
        try:
            return [program_of(jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(s, "float32") for s in trial)))]
        except TypeError as error:
            raise LayoutError(str(error)) from None

    return reduced.halved(list(shapes), set(), traced)


def test_extents_are_halved_together_until_a_walk_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduced, "MOST_STEPS", 1 << 12)
    assert halved(jnp.matmul, (64, 32), (32, 16)) == ([(32, 16), (16, 8)], "")


def test_what_states_its_size_is_not_compared_at_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduced, "MOST_STEPS", 1 << 12)
    found, why = halved(lambda x: x.sum(-1) / 32.0 @ jnp.ones((64,)), (64, 32))
    assert (found, bool(why)) == ([(64, 32)], True)


def test_a_loop_counts_its_trips() -> None:
    def loop(x: Any) -> Any:
        return jax.lax.scan(lambda h, _: (h @ x, None), x, None, length=10)[0]

    work = reduced.work_of(program_of(jax.make_jaxpr(loop)(jax.ShapeDtypeStruct((8, 8), "float32"))))
    assert work == 10 * 8**3


def test_a_loop_over_rows_is_shorter_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduced, "MOST_STEPS", 1 << 17)

    def loop(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda h, row: (jnp.tanh(h @ row), None), x, w)[0]

    assert halved(loop, (64, 32), (12, 32, 32)) == ([(16, 8), (6, 8, 8)], "")


def test_a_kernel_keeps_a_first_a_middle_and_a_last_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight blocks four stay; two would have no middle one."""
    from jax.experimental import pallas as pl

    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.tanh(x[...])

    def call(x: Any) -> Any:
        block = pl.BlockSpec((128, x.shape[1]), lambda i: (i, 0))
        return pl.pallas_call(
            kernel, grid=(x.shape[0] // 128,), in_specs=[block], out_specs=block,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(x)  # fmt: skip

    work = reduced.work_of(program_of(jax.make_jaxpr(call)(jax.ShapeDtypeStruct((1024, 64), "float32"))))
    monkeypatch.setattr(reduced, "MOST_STEPS", work // 4)
    assert halved(call, (1024, 64)) == ([(512, 32)], "")
    monkeypatch.setattr(reduced, "MOST_STEPS", work // 256)
    assert halved(call, (1024, 64))[1]
