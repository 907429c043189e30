"""Loops that halve an interval by what data say: where they read stays inside of the table."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

pytestmark = pytest.mark.slow

ENTRIES = 64


def searched(last: bool) -> Any:
    """The first entry that is not below a key. last: whether it goes on where one entry is left, and reads past it."""

    def body(t: Any, x: Any, o: Any) -> None:
        key = x[0, 0].astype(jnp.int32)

        def step(ends: Any) -> Any:
            low, high = ends
            middle = (low + high) // 2
            below = t[middle] < key
            return jnp.where(below, middle + 1, low), jnp.where(below, high, middle)

        def goes_on(ends: Any) -> Any:
            return ends[0] <= ends[1] if last else ends[0] < ends[1]

        low, _ = jax.lax.while_loop(goes_on, step, (jnp.int32(0), jnp.int32(ENTRIES)))
        o[...] = jnp.full_like(o, low)

    block = pl.BlockSpec((8, 128), lambda i, t: (0, 0))
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,), in_specs=[block], out_specs=block)
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32))


@pytest.mark.parametrize(("last", "proved"), [(False, True), (True, False)])
def test_a_binary_search_is_proved_where_an_entry_is_left(last: bool, proved: bool) -> None:
    given = jax.ShapeDtypeStruct((ENTRIES,), jnp.int32), jax.ShapeDtypeStruct((8, 128), jnp.float32)
    (call,) = kernels_of(searched(last), given)
    assert isinstance(call, Kernel)
    found = [f.verdict for f in judge(call, names=["body_in_bounds"]) if f.severity == "error"]
    assert (min(found) is Verdict.PROVED) is proved


def halved(kind: str, end: int, clamped: bool, guarded: bool = True) -> Any:
    """The same by a number of turns, or as long as an entry is left, of a key that the program's id says.

    end: where the interval ends at first.  clamped: whether what is read is moved into the table.  guarded: whether
    turns after the last change nothing.
    """

    def body(t: Any, x: Any, o: Any) -> None:
        key = pl.program_id(0) * 8

        def step(_: Any, ends: Any) -> Any:
            low, high = ends
            middle = (low + high) // 2
            below = t[jnp.minimum(middle, ENTRIES - 1) if clamped else middle] <= key
            going = (low < high) if guarded else True
            return jnp.where(below & going, middle + 1, low), jnp.where(below | jnp.logical_not(going), high, middle)

        first = jnp.int32(0), jnp.int32(end)
        if kind == "for":
            low, _ = jax.lax.fori_loop(0, 7, step, first)
        else:
            low, _ = jax.lax.while_loop(lambda ends: ends[0] < ends[1], lambda ends: step(0, ends), first)
        o[...] = jnp.full_like(o, low)

    block = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[block], out_specs=block)
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.int32))


GIVEN = jax.ShapeDtypeStruct((ENTRIES,), jnp.int32), jax.ShapeDtypeStruct((32, 128), jnp.float32)


@pytest.mark.parametrize(
    ("search", "code"),
    [
        (halved("for", ENTRIES, clamped=True), 0),
        # where the interval is empty, the middle is the place behind the last
        (halved("for", ENTRIES, clamped=False), 1),
        (halved("while", ENTRIES, clamped=False), 0),
        (halved("while", ENTRIES + 1, clamped=False), 1),
    ],
    ids=["for", "for-too-far", "while", "while-too-far"],
)
def test_the_place_that_a_search_reads(search: Any, code: int) -> None:
    """A search that stays inside is proved; one that reads behind the table is refuted in the turn that does."""
    asked = {"assume": ["0 <= prefetch0 < 64"], "properties": ["body_in_bounds"]}
    found = lp.kernels(search, *GIVEN, **asked, strict_tables=True)
    assert found.exit_code == code
    if code:
        (one,) = (f for f in found.findings if f.verdict is Verdict.REFUTED)
        assert "reads element 64 of dimension 0 of prefetch0, which has 64" in one.reason
        assert one.counterexample is not None
        assert set(one.counterexample) == {"program", "iteration", "reads"}
        # what other tables do not show is no refutation of a call that has them
        (one,) = (f for f in lp.kernels(search, *GIVEN, **asked).findings if f.verdict is Verdict.UNKNOWN)
        assert one.reason.startswith("refuted if prefetch0 can be ")
