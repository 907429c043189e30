"""Bodies of the kernels that are searched here: what runs in one program, for `layoutproof search --compile`.

Each takes the references of tables, inputs, outputs and scratch in the order of its search file, and by name the sizes
and tile variables that it wants.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def matmul(x: Any, y: Any, o: Any, acc: Any) -> None:
    """One block of x @ y, summed over the last grid dimension."""
    _summed(pl.program_id(2), x, y, acc)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _() -> None:
        o[...] = acc[...].astype(o.dtype)


def batched_matmul(x: Any, y: Any, o: Any, acc: Any) -> None:
    """The same for one matrix of a batch."""
    _summed(pl.program_id(3), x, y, acc)

    @pl.when(pl.program_id(3) == pl.num_programs(3) - 1)
    def _() -> None:
        o[...] = acc[...].astype(o.dtype)


def quantised_matmul(x: Any, y: Any, scale: Any, o: Any, acc: Any) -> None:
    """Sums in int32; a scale for each column makes them floats."""
    _summed(pl.program_id(2), x, y, acc)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _() -> None:
        o[...] = (acc[...].astype(jnp.float32) * scale[...]).astype(o.dtype)


def grouped_matmul(group: Any, row: Any, start: Any, x: Any, y: Any, o: Any, acc: Any, *, bm: int) -> None:
    """Rows of one group by that group's matrix; a tile that two groups share is visited once for each."""
    tile = pl.program_id(1)
    _summed(pl.program_id(2), x, y, acc)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _() -> None:
        rows = row[tile] * bm + jax.lax.broadcasted_iota(jnp.int32, acc.shape, 0)
        mine = (rows >= start[group[tile]]) & (rows < start[group[tile] + 1])
        o[...] = jnp.where(mine, acc[...], o[...].astype(jnp.float32)).astype(o.dtype)


def flash_attention(q: Any, k: Any, v: Any, o: Any, top: Any, total: Any, acc: Any) -> None:
    """Softmax of q @ k.T by blocks of keys, with the largest score and the sum so far in every lane."""
    _start(top, total, acc)
    _attend(_scores(q, k), v, top, total, acc)
    _finish(o, total, acc)


def causal_attention(q: Any, k: Any, v: Any, o: Any, top: Any, total: Any, acc: Any, *, bq: int, bk: int) -> None:
    """The same with no key after its query; blocks without any such key are passed over, and were not fetched."""
    first_query, first_key = pl.program_id(2) * bq, pl.program_id(3) * bk
    _start(top, total, acc)

    @pl.when(first_key < first_query + bq)
    def _() -> None:
        scores = _scores(q, k)
        queries = first_query + jax.lax.broadcasted_iota(jnp.int32, scores.shape, 0)
        keys = first_key + jax.lax.broadcasted_iota(jnp.int32, scores.shape, 1)
        _attend(jnp.where(keys <= queries, scores, -1e30), v, top, total, acc)

    _finish(o, total, acc)


def _start(top: Any, total: Any, acc: Any) -> None:
    @pl.when(pl.program_id(3) == 0)
    def _() -> None:
        top[...] = jnp.full_like(top, -jnp.inf)
        total[...] = jnp.zeros_like(total)
        acc[...] = jnp.zeros_like(acc)


def _scores(q: Any, k: Any) -> Any:
    return jax.lax.dot_general(q[...], k[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)


def _attend(scores: Any, v: Any, top: Any, total: Any, acc: Any) -> None:
    before = top[...]
    top[...] = jnp.maximum(before, jnp.max(scores, axis=1, keepdims=True))
    weights = jnp.exp(scores - top[:, :1])
    shrink = jnp.exp(before - top[...])
    total[...] = shrink * total[...] + jnp.sum(weights, axis=1, keepdims=True)
    new = jnp.dot(weights.astype(v.dtype), v[...], preferred_element_type=jnp.float32)
    acc[...] = shrink[:, :1] * acc[...] + new


def _finish(o: Any, total: Any, acc: Any) -> None:
    @pl.when(pl.program_id(3) == pl.num_programs(3) - 1)
    def _() -> None:
        o[...] = (acc[...] / total[:, :1]).astype(o.dtype)


def layer_norm(x: Any, gain: Any, bias: Any, o: Any) -> None:
    """Whole rows: mean and variance, then gain and bias."""
    rows = x[...].astype(jnp.float32)
    centred = rows - jnp.mean(rows, axis=1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=1, keepdims=True)
    o[...] = (centred * jax.lax.rsqrt(variance + 1e-6) * gain[...] + bias[...]).astype(o.dtype)


def softmax(x: Any, o: Any) -> None:
    """Whole rows."""
    weights = jnp.exp(x[...] - jnp.max(x[...], axis=1, keepdims=True))
    o[...] = weights / jnp.sum(weights, axis=1, keepdims=True)


def _summed(step: Any, x: Any, y: Any, acc: Any) -> None:
    @pl.when(step == 0)
    def _() -> None:
        acc[...] = jnp.zeros_like(acc)

    acc[...] += jnp.dot(x[...], y[...], preferred_element_type=acc.dtype)
