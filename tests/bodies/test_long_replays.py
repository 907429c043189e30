"""A violation behind a long way is refuted: of several ways in which something may be undefined one is enough."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="kernels are traced with JAX")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

import layoutproof as lp  # noqa: E402
from layoutproof.bodies import walk  # noqa: E402

pytestmark = pytest.mark.slow


def attention(q: Any, k: Any, v: Any, bq: int, bk: int, masked: bool) -> Any:
    """Online softmax over blocks of keys, the last of which is cut short: K is masked, V only where `masked` says."""
    (rows, width), keys = q.shape, k.shape[0]

    def body(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any, acc: Any, most: Any, total: Any) -> None:
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)
            most[...] = jnp.full_like(most, -jnp.inf)
            total[...] = jnp.zeros_like(total)

        s = jax.lax.dot_general(q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        s = jnp.where(j * bk + jax.lax.broadcasted_iota(jnp.int32, s.shape, 1) < keys, s, -1e30)
        new = jnp.maximum(most[...], jnp.max(s, axis=1, keepdims=True))
        scale, p, values = jnp.exp(most[...] - new), jnp.exp(s - new), v_ref[...]
        if masked:
            row = j * bk + jax.lax.broadcasted_iota(jnp.int32, values.shape, 0)
            values = jnp.where(row < keys, values, 0)
        total[...] = scale * total[...] + jnp.sum(p, axis=1, keepdims=True)
        acc[...] = scale * acc[...] + jnp.dot(p, values, preferred_element_type=jnp.float32)
        most[...] = new

        @pl.when(j == pl.num_programs(1) - 1)
        def _() -> None:
            o_ref[...] = acc[...] / total[...]

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(rows, bq), pl.cdiv(keys, bk)),
        in_specs=[
            pl.BlockSpec((bq, width), lambda i, j: (i, 0)),
            pl.BlockSpec((bk, width), lambda i, j: (j, 0)),
            pl.BlockSpec((bk, width), lambda i, j: (j, 0)),
        ],
        out_specs=pl.BlockSpec((bq, width), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, width), jnp.float32),
        scratch_shapes=[pltpu.VMEM(shape, jnp.float32) for shape in ((bq, width), (bq, 1), (bq, 1))],
    )(q, k, v)


def log_sum(x: Any, w: Any, bv: int, masked: bool) -> Any:
    """The logarithm of a sum of exponentials over columns in blocks; the mask is written into the input's window."""
    rows, columns = x.shape[0], w.shape[1]

    def body(x_ref: Any, w_ref: Any, o_ref: Any, most: Any, total: Any) -> None:
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _() -> None:
            most[...] = jnp.full_like(most, -jnp.inf)
            total[...] = jnp.zeros_like(total)

        if masked:
            column = j * bv + jax.lax.broadcasted_iota(jnp.int32, w_ref.shape, 1)
            w_ref[...] = jnp.where(column < columns, w_ref[...], 0)
        s = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)
        new = jnp.maximum(most[...], jnp.max(s, axis=1, keepdims=True))
        total[...] = jnp.exp(most[...] - new) * total[...] + jnp.sum(jnp.exp(s - new), axis=1, keepdims=True)
        most[...] = new

        @pl.when(j == pl.num_programs(1) - 1)
        def _() -> None:
            o_ref[...] = most[...] + jnp.log(total[...])

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(rows, 128), pl.cdiv(columns, bv)),
        in_specs=[
            pl.BlockSpec((128, x.shape[1]), lambda i, j: (i, 0)),
            pl.BlockSpec((x.shape[1], bv), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((128, 1), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, 1), jnp.float32),
        scratch_shapes=[pltpu.VMEM((128, 1), jnp.float32)] * 2,
    )(x, w)


def floats(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, jnp.float32)


@pytest.mark.parametrize(("bq", "bk"), [(128, 128), (256, 512)])
def test_attention_whose_values_are_not_masked(bq: int, bk: int) -> None:
    """Refuted at real block sizes, by the operand that is not masked; its twin is proved."""
    arrays = (floats(1000, 128), floats(1000, 128), floats(1000, 128))
    wrong = lp.kernels(attention, *arrays, bq=bq, bk=bk, masked=False, properties=["undefined_values"])
    (found,) = (f for f in wrong.findings if f.verdict is lp.Verdict.REFUTED)
    assert "padding of args[2]: dimension 0 ends at 1000" in found.reason
    right = lp.kernels(attention, *arrays, bq=bq, bk=bk, masked=True, properties=["undefined_values"])
    assert right.exit_code == 0


def test_a_sum_over_columns_that_are_not_masked() -> None:
    """Likewise where the mask is written into the window of an input."""
    arrays = (floats(256, 128), floats(128, 300))
    wrong = lp.kernels(log_sum, *arrays, bv=128, masked=False, properties=["undefined_values"])
    (found,) = (f for f in wrong.findings if f.verdict is lp.Verdict.REFUTED)
    assert "padding of args[1]: dimension 1 ends at 300" in found.reason
    assert lp.kernels(log_sum, *arrays, bv=128, masked=True, properties=["undefined_values"]).exit_code == 0


def test_effort_reaches_the_steps_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few steps are an unknown that says so; with more effort the same is refuted."""
    monkeypatch.setattr(walk, "MOST_STEPS", 300)
    arrays = (floats(256, 128), floats(128, 300))
    asked: dict[str, Any] = {"bv": 128, "masked": False, "properties": ["undefined_values"]}
    few = lp.kernels(log_sum, *arrays, **asked)
    assert few.exit_code == 3
    assert "a replay is too long: allow more steps (--effort 10)" in str(few)
    assert lp.kernels(log_sum, *arrays, **asked, effort=1000).exit_code == 1
