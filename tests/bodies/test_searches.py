"""Loops that halve an interval by what data say: where they read stays inside of the table."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

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
