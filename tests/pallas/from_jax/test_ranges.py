"""What an integer may be that a program computes of data: held against what JAX computes of many data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

import layoutproof as lp
from layoutproof.pallas.from_jax.ranges import range_of

pytestmark = pytest.mark.slow

DATA = jax.ShapeDtypeStruct((6,), jnp.int32)

COMPUTED: dict[str, tuple[Callable[[Any], Any], tuple[int, int] | None]] = {
    "clip": (lambda n: jnp.clip(n[0], 1, 4), (1, 4)),
    "minimum": (lambda n: jnp.minimum(n[0], 4), (-(1 << 31), 4)),
    "cdiv": (lambda n: pl.cdiv(jnp.clip(n[2], 0, 100), 8), (0, 13)),
    "sum of truth values": (lambda n: (n > 3).sum(), (0, 6)),
    "running sum": (lambda n: jnp.cumsum(jnp.clip(n, -1, 2))[4], (-6, 12)),
    "remainder": (lambda n: jax.lax.rem(n[1], jnp.int32(5)), (-4, 4)),
    "remainder of Python": (lambda n: jnp.abs(n[1]) % 5, None),
    "argmax": (lambda n: jnp.argmax(n) + 1, (1, 6)),
    "where": (lambda n: jnp.where(n[0] > 0, 3, jnp.clip(n[1], 5, 7)), (3, 7)),
    "difference": (lambda n: jnp.clip(n[0], 0, 9) - jnp.clip(n[1], 0, 9), (-9, 9)),
    "product": (lambda n: jnp.clip(n[0], -2, 3) * jnp.clip(n[1], -5, 4), (-15, 12)),
    "sums that wrap": (lambda n: jnp.maximum(n[0], 1) + jnp.maximum(n[1], 1), None),
    "a narrow type": (lambda n: jnp.clip(n[0], 0, 100).astype(jnp.int8) * jnp.int8(2), None),
    "the greatest of nothing": (lambda n: jnp.max(jnp.clip(n, 0, 3), initial=0, where=n > 0), (0, 3)),
    "data": (lambda n: n[0], None),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_the_range_is_known_and_holds_of_what_jax_computes(name: str) -> None:
    function, expected = COMPUTED[name]
    made = jax.make_jaxpr(function)(DATA).jaxpr
    found = range_of(made.outvars[0], made.eqns)
    if expected is not None or found is None:
        assert found == expected
    random = np.random.default_rng(1)
    low, high = (-(1 << 31), (1 << 31) - 1) if found is None else found
    for least, most in ((-10, 10), (-200, 200), (-(1 << 31), 1 << 31)):
        for _ in range(20):
            data = random.integers(least, most, 6).astype(np.int32)
            assert low <= int(function(jnp.asarray(data))) <= high


X = jax.ShapeDtypeStruct((32, 128), jnp.float32)


@pytest.mark.parametrize(("most", "code"), [(4, 0), (5, 3)])
def test_what_the_program_computes_bounds_a_grid_that_data_choose(most: int, code: int) -> None:
    """Four blocks of rows: of a fifth program nobody knows whether there is one."""

    def summed(n: jax.Array, x: jax.Array) -> jax.Array:
        def body(x_ref: Any, o_ref: Any) -> None:
            @pl.when(pl.program_id(0) == 0)
            def _() -> None:
                o_ref[...] = jnp.zeros_like(o_ref)

            o_ref[...] += x_ref[...]

        return pl.pallas_call(
            body,
            grid=(jnp.clip(n[0], 1, most),),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
            out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        )(x)

    assert lp.kernels(summed, DATA, X).exit_code == code
