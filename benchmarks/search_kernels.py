"""Twelve kernels with block sizes to choose, for `benchmarks/search_legal.py`: what users write, whole and ragged.

Each is a function as a user has it: traced by the search, and compiled by libtpu as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

f32 = jnp.float32


def matmul(x: Any, y: Any, *, bm: int, bn: int, bk: int) -> Any:
    """A matrix product, summed in a scratch of f32."""
    (m, k), n = x.shape, y.shape[1]

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x[...], y[...], preferred_element_type=f32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            o[...] = acc[...].astype(o.dtype)

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(m, bm), pl.cdiv(n, bn), k // bk),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), f32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


def rows(body: Any, x: Any, more: Sequence[Any], br: int) -> Any:
    """A call over blocks of whole rows; `more` are arrays of one row."""
    whole = [pl.BlockSpec(each.shape, lambda i: (0, 0)) for each in more]
    block = pl.BlockSpec((br, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        body,
        grid=(pl.cdiv(x.shape[0], br),),
        in_specs=[block, *whole],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x, *more)


def rms(x: Any, w: Any, *, br: int) -> Any:
    """Each row by the root of the mean of its squares, times weights."""

    def body(x: Any, w: Any, o: Any) -> None:
        v = x[...].astype(f32)
        scale = jax.lax.rsqrt(jnp.mean(v * v, axis=-1, keepdims=True) + 1e-6)
        o[...] = (v * scale * w[...].astype(f32)).astype(o.dtype)

    return rows(body, x, [w], br)


def softmax(x: Any, *, br: int) -> Any:
    """Of each row."""

    def body(x: Any, o: Any) -> None:
        v = x[...].astype(f32)
        e = jnp.exp(v - jnp.max(v, axis=-1, keepdims=True))
        o[...] = (e / jnp.sum(e, axis=-1, keepdims=True)).astype(o.dtype)

    return rows(body, x, [], br)


def transpose(x: Any, *, bm: int, bn: int) -> Any:
    """Of a matrix, block by block."""
    m, n = x.shape

    def body(x: Any, o: Any) -> None:
        o[...] = x[...].T

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(m, bm), pl.cdiv(n, bn)),
        in_specs=[pl.BlockSpec((bm, bn), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((bn, bm), lambda i, j: (j, i)),
        out_shape=jax.ShapeDtypeStruct((n, m), x.dtype),
    )(x)


def bias(x: Any, b: Any, *, bm: int, bn: int) -> Any:
    """A row added to every row, and what is below 0 cut off."""
    m, n = x.shape

    def body(x: Any, b: Any, o: Any) -> None:
        o[...] = jnp.maximum(x[...] + b[...], 0)

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(m, bm), pl.cdiv(n, bn)),
        in_specs=[pl.BlockSpec((bm, bn), lambda i, j: (i, j)), pl.BlockSpec((1, bn), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
    )(x, b)


def flash(q: Any, k: Any, v: Any, *, bq: int, bk: int) -> Any:
    """Attention of each head with a running maximum; keys beyond the end are masked."""
    heads, queries, d = q.shape
    keys = k.shape[1]
    ragged = keys % bk != 0

    def body(q: Any, k: Any, v: Any, o: Any, top: Any, total: Any, acc: Any) -> None:
        step = pl.program_id(2)

        @pl.when(step == 0)
        def _() -> None:
            top[...] = jnp.full_like(top, -1e30)
            total[...] = jnp.zeros_like(total)
            acc[...] = jnp.zeros_like(acc)

        scores = jax.lax.dot_general(q[0], k[0], (((1,), (1,)), ((), ())), preferred_element_type=f32)
        values = v[0]
        if ragged:
            inside = step * bk + jax.lax.broadcasted_iota(jnp.int32, scores.shape, 1) < keys
            scores = jnp.where(inside, scores, -1e30)
            held = step * bk + jax.lax.broadcasted_iota(jnp.int32, values.shape, 0) < keys
            values = jnp.where(held, values, jnp.zeros_like(values))
        before = top[...]
        now = jnp.maximum(before, jnp.max(scores, axis=-1, keepdims=True))
        p = jnp.exp(scores - now)
        shrink = jnp.exp(before - now)
        total[...] = total[...] * shrink + jnp.sum(p, axis=-1, keepdims=True)
        acc[...] = acc[...] * shrink + jnp.dot(p.astype(values.dtype), values, preferred_element_type=f32)
        top[...] = now

        @pl.when(step == pl.num_programs(2) - 1)
        def _() -> None:
            o[0] = (acc[...] / total[...]).astype(o.dtype)

    return pl.pallas_call(
        body,
        grid=(heads, pl.cdiv(queries, bq), pl.cdiv(keys, bk)),
        in_specs=[
            pl.BlockSpec((1, bq, d), lambda h, i, j: (h, i, 0)),
            pl.BlockSpec((1, bk, d), lambda h, i, j: (h, j, 0)),
            pl.BlockSpec((1, bk, d), lambda h, i, j: (h, j, 0)),
        ],
        out_specs=pl.BlockSpec((1, bq, d), lambda h, i, j: (h, i, 0)),
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        scratch_shapes=[pltpu.VMEM((bq, 1), f32), pltpu.VMEM((bq, 1), f32), pltpu.VMEM((bq, d), f32)],
    )(q, k, v)


def conv(x: Any, w: Any, *, br: int, bc: int) -> Any:
    """A depthwise convolution along rows with a halo of 8 rows: the sum of w[t] * x[row + t]."""
    n, c = x.shape
    last = n // 8 - 1
    taps = w.shape[0]

    def body(x: Any, halo: Any, w: Any, o: Any) -> None:
        both = jnp.concatenate([x[...], halo[...]], axis=0)
        o[...] = sum((both[t : t + br] * w[t : t + 1] for t in range(taps)), jnp.zeros(o.shape, o.dtype))

    return pl.pallas_call(
        body,
        grid=(n // br, c // bc),
        in_specs=[
            pl.BlockSpec((br, bc), lambda i, j: (i, j)),
            pl.BlockSpec((8, bc), lambda i, j: (jnp.minimum((i + 1) * (br // 8), last), j)),
            pl.BlockSpec((taps, bc), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((br, bc), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((n, c), x.dtype),
    )(x, x, w)


class Searched(NamedTuple):
    """One search. function: in this file.  args: as the command line takes them.  tune: of each variable its values."""

    function: str
    args: tuple[str, ...]
    tune: Mapping[str, Sequence[int]]


_MATMUL = {"bm": (256, 512, 1024, 2048), "bn": (256, 512, 1024, 2048), "bk": (512, 1024, 2048)}
_ROWS = {"br": (8, 16, 32, 64, 128, 256, 512, 1024, 2048)}
_BLOCKS = {"bm": (128, 256, 512, 1024, 2048), "bn": (128, 256, 512, 1024, 2048)}
_FLASH = {"bq": (128, 256, 512, 1024, 2048), "bk": (128, 256, 512, 1024, 2048)}

SEARCHED: Mapping[str, Searched] = {
    "matmul": Searched("matmul", ("bf16[2048,2048]", "bf16[2048,2048]"), _MATMUL),
    "matmul ragged": Searched(
        "matmul", ("bf16[1000,1024]", "bf16[1024,3000]"), {**_MATMUL, "bk": (256, 512, 1024), "bm": (256, 512, 1000)}
    ),
    "rms": Searched("rms", ("f32[8192,2048]", "f32[1,2048]"), _ROWS),
    "rms ragged": Searched("rms", ("f32[1001,10000]", "f32[1,10000]"), {"br": (8, 16, 32, 40, 64, 96, 128, 256, 512)}),
    "softmax": Searched("softmax", ("f32[4096,4096]",), _ROWS),
    "transpose": Searched("transpose", ("f32[4096,4096]",), _BLOCKS),
    "transpose ragged": Searched("transpose", ("f32[1003,3001]",), _BLOCKS),
    "bias": Searched(
        "bias", ("f32[1003,5120]", "f32[1,5120]"), {"bm": (8, 32, 128, 256, 512), "bn": (128, 512, 1024, 2560, 5120)}
    ),
    "bias ragged": Searched(
        "bias", ("f32[1003,5000]", "f32[1,5000]"), {"bm": (8, 32, 128, 256, 512), "bn": (128, 512, 1024, 2560, 5000)}
    ),
    "flash": Searched("flash", ("bf16[4,2048,128]",) * 3, _FLASH),
    "flash ragged": Searched("flash", ("bf16[4,2000,128]",) * 3, _FLASH),
    "conv": Searched(
        "conv",
        ("f32[4096,2048]", "f32[4,2048]"),
        {"br": (64, 128, 256, 512, 1024, 2048), "bc": (128, 256, 512, 1024, 2048)},
    ),
}
"""By name."""
