"""What decides how often a loop runs, or which branch is taken, was written before and is no padding.

Each kernel has a right twin that differs in nothing but that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

ROWS = jax.ShapeDtypeStruct((32, 128), jnp.float32)
PADDED = jax.ShapeDtypeStruct((8, 200), jnp.float32)


def verdict(function: Callable[..., Any], argument: Any, question: str) -> Verdict:
    """What a user is told of one question: refuted over unknown over proved."""
    (call,) = lp.kernels(function, argument).calls
    return min(f.verdict for f in call.findings if f.question == question)


def counting(body: Callable[..., Any], first: bool) -> Callable[..., Any]:
    """A call with one number in SMEM, which its body stores before all else or not at all."""

    def run(x_ref: Any, out: Any, number: Any) -> None:
        if first:
            number[0] = 3
        body(x_ref, out, number)

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        run,
        grid=(4,),
        in_specs=[block],
        out_specs=block,
        out_shape=ROWS,
        scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
    )


def _fori(x: Any, out: Any, n: Any) -> None:
    out[...] = lax.fori_loop(0, n[0], lambda j, a: a + 1.0, x[...])


def _while(x: Any, out: Any, n: Any) -> None:
    out[...] = lax.while_loop(lambda s: s[0] < n[0], lambda s: (s[0] + 1, s[1] * 2), (jnp.int32(0), x[...]))[1]


def _switch(x: Any, out: Any, n: Any) -> None:
    out[...] = lax.switch(n[0], [lambda: x[...], lambda: x[...] * 2, lambda: x[...] * 3])


def _cond(x: Any, out: Any, n: Any) -> None:
    out[...] = lax.cond(n[0] > 1, lambda: x[...], lambda: x[...] * 2)


def _when(x: Any, out: Any, n: Any) -> None:
    out[...] = x[...]

    @pl.when(n[0] > 1)
    def _() -> None:
        out[...] = x[...] * 2


def _when_carried(x: Any, out: Any, n: Any) -> None:
    out[...] = x[...]
    runs = lax.while_loop(lambda s: s < n[0], lambda s: s + 1, 0)

    @pl.when(runs > 2)
    def _() -> None:
        out[...] = x[...] * 2


@pytest.mark.parametrize("body", [_fori, _while, _switch, _cond, _when])
def test_a_number_that_nobody_wrote_decides_nothing(body: Callable[..., Any]) -> None:
    assert verdict(counting(body, True), ROWS, "initialised") is Verdict.PROVED
    assert verdict(counting(body, False), ROWS, "initialised") is Verdict.REFUTED


def test_neither_does_one_that_a_loop_counted_up_to_it() -> None:
    assert verdict(counting(_when_carried, True), ROWS, "initialised") is Verdict.PROVED
    assert verdict(counting(_when_carried, False), ROWS, "initialised") is Verdict.REFUTED


def over_padding(body: Callable[[Any, Any], None], masked: bool, out: tuple[int, int] = (8, 128)) -> Callable[..., Any]:
    """A call on 200 columns in a block of 256. body: (what is loaded, with 0 for padding or as it is; the output)."""

    def run(x_ref: Any, out_ref: Any) -> None:
        x = x_ref[...]
        if masked:
            x = jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, 1) < 200, x, 1.0)
        body(x, out_ref)

    return pl.pallas_call(
        run,
        grid=(1,),
        in_specs=[pl.BlockSpec((8, 256), lambda i: (0, 0))],
        out_specs=pl.BlockSpec(out, lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, min(out[1], 200)), jnp.float32),
    )


def _trips(x: Any, out: Any) -> None:
    n = jnp.minimum(jnp.max(x).astype(jnp.int32), 5)
    out[...] = lax.fori_loop(0, n, lambda i, a: a + 1.0, jnp.zeros((8, 128), jnp.float32))


def _converges(x: Any, out: Any) -> None:
    def again(c: Any) -> Any:
        return (c[0] < 50) & (jnp.max(jnp.abs(c[1] * c[1] - x)) > 1e-3)

    out[...] = lax.while_loop(again, lambda c: (c[0] + 1, 0.5 * (c[1] + x / c[1])), (0, jnp.ones_like(x)))[1]


def _guarded(x: Any, out: Any) -> None:
    out[...] = jnp.zeros((8, 128), jnp.float32)

    @pl.when(jnp.max(x) > 3)
    def _() -> None:
        out[...] = jnp.ones((8, 128), jnp.float32)


def _guarded_by_a_count(x: Any, out: Any) -> None:
    runs = lax.while_loop(lambda s: s[1] > 1.0, lambda s: (s[0] + 1, s[1] * 0.5), (0, jnp.max(x)))[0]
    out[...] = jnp.zeros((8, 128), jnp.float32)

    @pl.when(runs > 2)
    def _() -> None:
        out[...] = jnp.ones((8, 128), jnp.float32)


@pytest.mark.parametrize("body", [_trips, _converges, _guarded, _guarded_by_a_count])
def test_padding_decides_nothing(body: Callable[[Any, Any], None]) -> None:
    out = (8, 256) if body is _converges else (8, 128)
    assert verdict(over_padding(body, True, out), PADDED, "undefined_values") is Verdict.PROVED
    assert verdict(over_padding(body, False, out), PADDED, "undefined_values") is Verdict.REFUTED


def test_what_no_iteration_changes_rests_on_no_number_of_runs() -> None:
    def body(x: Any, out: Any, n: Any) -> None:
        kept, _ = lax.while_loop(lambda s: s[1] < n[0], lambda s: (s[0], s[1] + 1), (x[...], 0))
        out[...] = kept

    assert verdict(counting(body, False), ROWS, "initialised") is Verdict.PROVED


def _adds(n: Any, out: Any) -> None:
    def add(i: Any, _: Any) -> int:
        out[...] = out[...] + 1.0
        return 0

    lax.fori_loop(0, n, add, 0)


def _adds_while(n: Any, out: Any) -> None:
    def add(i: Any) -> Any:
        out[...] = out[...] + 1.0
        return i + 1

    lax.while_loop(lambda i: i < n, add, 0)


def _adds_within(n: Any, out: Any) -> None:
    lax.fori_loop(0, 3, lambda j, _: _adds(n, out), None)


def _fills(n: Any, out: Any) -> None:
    def fill(i: Any, _: Any) -> int:
        out[...] = jnp.ones_like(out)
        return 0

    lax.fori_loop(0, n, fill, 0)


def _fills_a_row(n: Any, out: Any) -> None:
    def fill(i: Any, _: Any) -> int:
        out[pl.ds(i, 1), :] = jnp.ones((1, 128), jnp.float32)
        return 0

    lax.fori_loop(0, jnp.clip(n, 0, 8), fill, 0)


STORING = [_adds, _adds_while, _adds_within, _fills, _fills_a_row]
"""Loops that store to an output as often as a number says."""


@pytest.mark.parametrize("loop", STORING)
def test_what_a_loop_stores_rests_on_how_often_it_runs(loop: Callable[[Any, Any], None]) -> None:
    def padded(x: Any, out: Any) -> None:
        out[...] = jnp.zeros((8, 128), jnp.float32)
        loop(jnp.max(x).astype(jnp.int32), out)

    assert verdict(over_padding(padded, True), PADDED, "undefined_values") is Verdict.PROVED
    assert verdict(over_padding(padded, False), PADDED, "undefined_values") is Verdict.REFUTED

    def counted(x: Any, out: Any, number: Any) -> None:
        out[...] = x[...]
        loop(number[0], out)

    assert verdict(counting(counted, True), ROWS, "initialised") is Verdict.PROVED
    assert verdict(counting(counted, False), ROWS, "initialised") is Verdict.REFUTED


def test_a_loop_that_runs_at_least_once_stores_the_same_number_however_often() -> None:
    def body(x: Any, out: Any, number: Any) -> None:
        _fills(jnp.clip(number[0], 1, 5), out)

    assert verdict(counting(body, False), ROWS, "initialised") is not Verdict.REFUTED


@pytest.mark.parametrize("way", ["fori", "while"])
@pytest.mark.parametrize(("times", "said"), [(0, 0), (1, 0), (2, 1)])
def test_what_a_loop_of_no_iterations_would_do_is_not_asked(way: str, times: int, said: int) -> None:
    """It was unknown, "there is no program, or no element"; blocks that are all that is left have such loops."""

    def body(x_ref: Any, out: Any) -> None:
        def step(j: Any, total: Any) -> Any:
            return total + x_ref[pl.ds(j * 8, 8), :]

        start = jnp.zeros((8, 128), jnp.float32)
        if way == "fori":
            out[...] = lax.fori_loop(0, times, step, start)
        else:
            moved = lax.while_loop(lambda s: s[0] < times, lambda s: (s[0] + 1, step(s[0], s[1])), (0, start))
            out[...] = moved[1]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=ROWS)
    told = lp.kernels(call, ROWS)
    assert told.exit_code == said, str(told)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_through_its_rows_in_order(reverse: bool) -> None:
    """From the last one where it is reversed: the k-th step then has row 3 - k, so that one place is stored to."""

    def body(x: Any, out: Any, off: int) -> None:
        def step(k: Any, row: Any) -> Any:
            out[pl.ds(k + row - 3 if reverse else k - row, 1), :] = x[pl.ds(row, 1), :]
            return k + 1, None

        lax.scan(step, off, lax.iota(jnp.int32, 4), reverse=reverse)

    def run(off: int) -> Callable[..., Any]:
        shape = jax.ShapeDtypeStruct((1, 128), jnp.float32)
        return pl.pallas_call(lambda x, out: body(x, out, off), out_shape=shape)

    argument = jax.ShapeDtypeStruct((4, 128), jnp.float32)
    assert [verdict(run(off), argument, "body_in_bounds").value for off in (0, 1, -1)] == ["proved", *["refuted"] * 2]
