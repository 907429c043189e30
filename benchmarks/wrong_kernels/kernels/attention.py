"""Attention, of a query block at a time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from benchmarks.wrong_kernels.made import Kernel, call, shape

F32, BF16 = jnp.float32, jnp.bfloat16


def dot(x: Any, y: Any) -> Any:
    """Of two matrices, summed in float32."""
    return jnp.dot(x, y, preferred_element_type=F32)


def plain(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """The reference of all, of one head; mask: what is looked at."""
    s = dot(q, k.T) * q.shape[-1] ** -0.5
    return dot(jax.nn.softmax(s if mask is None else jnp.where(mask, s, -jnp.inf), axis=-1), v)


def flash(q: Any, k: Any, v: Any) -> Any:
    """Online over blocks of keys."""

    def body(q, k, v, o, m, total, acc):
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _():
            m[...] = jnp.full_like(m, -jnp.inf)
            total[...] = jnp.zeros_like(total)
            acc[...] = jnp.zeros_like(acc)

        s = dot(q[...], k[...].T) * 128**-0.5
        new = jnp.maximum(m[...], s.max(1, keepdims=True))
        p = jnp.exp(s - new)
        scale = jnp.exp(m[...] - new)
        total[...] = total[...] * scale + p.sum(1, keepdims=True)
        acc[...] = (acc[...] * scale + dot(p, v[...])).astype(acc.dtype)
        m[...] = new

        @pl.when(j == 1)
        def _():
            o[...] = acc[...] / total[...]

    return call(
        body, shape(64, 128, dtype=F32), q, k, v, grid=(2, 2),
        ins=[((32, 128), lambda i, j: (i, 0)), ((128, 128), lambda i, j: (j, 0)), ((128, 128), lambda i, j: (j, 0))],
        outs=((32, 128), lambda i, j: (i, 0)),
        scratch=[pltpu.VMEM((32, 1), F32), pltpu.VMEM((32, 1), F32), pltpu.VMEM((32, 128), F32)],
    )  # fmt: skip


def causal(q: Any, k: Any, v: Any) -> Any:
    """A query looks at keys up to its own; blocks after it are left out."""

    def body(q, k, v, o, m, total, acc):
        i, j = pl.program_id(0), pl.program_id(1)

        @pl.when(j == 0)
        def _():
            m[...] = jnp.full_like(m, -1e30)
            total[...] = jnp.zeros_like(total)
            acc[...] = jnp.zeros_like(acc)

        @pl.when(j <= i)
        def _():
            s = dot(q[...], k[...].T) * 128**-0.5
            row = i * 64 + lax.broadcasted_iota(jnp.int32, s.shape, 0)
            column = j * 64 + lax.broadcasted_iota(jnp.int32, s.shape, 1)
            s = jnp.where(row >= column, s, -1e30)
            new = jnp.maximum(m[...], s.max(1, keepdims=True))
            p = jnp.exp(s - new)
            total[...] = total[...] * jnp.exp(m[...] - new) + p.sum(1, keepdims=True)
            acc[...] = acc[...] * jnp.exp(m[...] - new) + dot(p, v[...])
            m[...] = new

        @pl.when(j == 2)
        def _():
            o[...] = acc[...] / total[...]

    keys = ((64, 128), lambda i, j: (j, 0))
    return call(
        body, shape(192, 128, dtype=F32), q, k, v, grid=(3, 3), ins=[((64, 128), lambda i, j: (i, 0)), keys, keys],
        outs=((64, 128), lambda i, j: (i, 0)),
        scratch=[pltpu.VMEM((64, 1), F32), pltpu.VMEM((64, 1), F32), pltpu.VMEM((64, 128), F32)],
    )  # fmt: skip


def causal_reference(q: Any, k: Any, v: Any) -> Any:
    """By a triangle."""
    return plain(q, k, v, jnp.tril(jnp.ones((q.shape[0], k.shape[0]), bool)))


def windowed(q: Any, k: Any, v: Any) -> Any:
    """A query looks at 32 keys, its own the last."""

    def body(q, k, v, o):
        i = pl.program_id(0)
        s = dot(q[...], k[...].T) * 128**-0.5
        row = i * 32 + lax.broadcasted_iota(jnp.int32, s.shape, 0)
        column = lax.broadcasted_iota(jnp.int32, s.shape, 1)
        s = jnp.where((column <= row) & (row - column < 32), s, -1e30)
        p = jnp.exp(s - s.max(1, keepdims=True))
        o[...] = dot(p, v[...]) / p.sum(1, keepdims=True)

    whole = ((128, 128), lambda i: (0, 0))
    return call(
        body, shape(128, 128, dtype=F32), q, k, v, grid=(4,), ins=[((32, 128), lambda i: (i, 0)), whole, whole],
        outs=((32, 128), lambda i: (i, 0)),
    )  # fmt: skip


def windowed_reference(q: Any, k: Any, v: Any) -> Any:
    """By two triangles."""
    every = jnp.ones((128, 128), bool)
    return plain(q, k, v, jnp.tril(every) & jnp.triu(every, -31))


def segmented(q: Any, k: Any, v: Any, segments: Any) -> Any:
    """A query looks at the keys of its segment."""

    def body(q, k, v, own, every, o):
        s = dot(q[...], k[...].T) * 128**-0.5
        s = jnp.where(own[...] == every[...], s, -1e30)
        p = jnp.exp(s - s.max(1, keepdims=True))
        o[...] = dot(p, v[...]) / p.sum(1, keepdims=True)

    whole = ((128, 128), lambda i: (0, 0))
    return call(
        body, shape(128, 128, dtype=F32), q, k, v, segments[:, None], segments[None], grid=(4,),
        ins=[
            ((32, 128), lambda i: (i, 0)), whole, whole, ((32, 1), lambda i: (i, 0)), ((1, 128), lambda i: (0, 0)),
        ],
        outs=((32, 128), lambda i: (i, 0)),
    )  # fmt: skip


def segmented_reference(q: Any, k: Any, v: Any, segments: Any) -> Any:
    """By all pairs."""
    return plain(q, k, v, segments[:, None] == segments[None, :])


def decoding(lengths: Any, q: Any, k: Any, v: Any) -> Any:
    """Eight query heads of each sequence look at as many keys as it has, block by block."""

    def body(lengths, q, k, v, o, m, total, acc):
        b, j = pl.program_id(0), pl.program_id(1)

        @pl.when(j == 0)
        def _():
            m[...] = jnp.full_like(m, -1e30)
            total[...] = jnp.zeros_like(total)
            acc[...] = jnp.zeros_like(acc)

        @pl.when(j * 64 < lengths[b])
        def _():
            s = dot(q[...], k[...].T) * 128**-0.5
            s = jnp.where(j * 64 + lax.broadcasted_iota(jnp.int32, s.shape, 1) < lengths[b], s, -1e30)
            new = jnp.maximum(m[...], s.max(1, keepdims=True))
            p = jnp.exp(s - new)
            total[...] = total[...] * jnp.exp(m[...] - new) + p.sum(1, keepdims=True)
            acc[...] = acc[...] * jnp.exp(m[...] - new) + dot(p, v[...])
            m[...] = new

        @pl.when(j == 2)
        def _():
            o[...] = acc[...] / total[...]

    keys = ((None, 64, 128), lambda b, j, lengths: (b, j, 0))
    rows = ((None, 8, 128), lambda b, j, lengths: (b, 0, 0))
    return call(
        body, shape(3, 8, 128, dtype=F32), lengths, q, k, v, grid=(3, 3), tables=1, ins=[rows, keys, keys], outs=rows,
        scratch=[pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, 128), F32)],
    )  # fmt: skip


def decoding_reference(lengths: Any, q: Any, k: Any, v: Any) -> Any:
    """Sequence by sequence."""
    at = jnp.arange(192, dtype=jnp.int32)
    return jnp.stack([plain(q[b], k[b], v[b], jnp.broadcast_to(at < lengths[b], (8, 192))) for b in range(3)])


def paged(pages: Any, q: Any, k: Any, v: Any) -> Any:
    """Keys and values lie in pages of 16, three for each of two sequences, that a table names."""

    def body(pages, q, k, v, o, m, total, acc):
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _():
            m[...] = jnp.full_like(m, -jnp.inf)
            total[...] = jnp.zeros_like(total)
            acc[...] = jnp.zeros_like(acc)

        s = dot(q[...], k[...].T) * 128**-0.5
        new = jnp.maximum(m[...], s.max(1, keepdims=True))
        p = jnp.exp(s - new)
        total[...] = total[...] * jnp.exp(m[...] - new) + p.sum(1, keepdims=True)
        acc[...] = acc[...] * jnp.exp(m[...] - new) + dot(p, v[...])
        m[...] = new

        @pl.when(j == 2)
        def _():
            o[...] = acc[...] / total[...]

    rows = ((None, 8, 128), lambda b, j, pages: (b, 0, 0))
    return call(
        body, shape(2, 8, 128, dtype=F32), pages, q, k, v, grid=(2, 3), tables=1,
        ins=[
            rows, ((None, 16, 128), lambda b, j, pages: (pages[3 * b + j], 0, 0)),
            ((None, 16, 128), lambda b, j, at: (at[3 * b + j], 0, 0)),
        ],
        outs=rows, scratch=[pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, 128), F32)],
    )  # fmt: skip


def paged_reference(pages: Any, q: Any, k: Any, v: Any) -> Any:
    """The pages laid out."""
    at = pages.reshape(2, 3)
    return jnp.stack([plain(q[b], k[at[b]].reshape(48, 128), v[at[b]].reshape(48, 128)) for b in range(2)])


def heads(q: Any, k: Any, v: Any) -> Any:
    """Four query heads share two heads of keys."""

    def body(q, k, v, o):
        s = dot(q[...], k[...].T) * 128**-0.5
        p = jnp.exp(s - s.max(1, keepdims=True))
        o[...] = dot(p / p.sum(1, keepdims=True), v[...])

    rows = ((None, 16, 128), lambda h: (h, 0, 0))
    return call(
        body, shape(4, 16, 128, dtype=F32), q, k, v, grid=(4,),
        ins=[rows, ((None, 16, 128), lambda h: (h // 2, 0, 0)), ((None, 16, 128), lambda g: (g // 2, 0, 0))], outs=rows,
    )  # fmt: skip


def heads_reference(q: Any, k: Any, v: Any) -> Any:
    """Each pair of heads with its own keys."""
    return jnp.stack([plain(q[h], k[h // 2], v[h // 2]) for h in range(4)])


def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
    """With a bias for each pair, and a cap of the scores."""

    def body(q, k, v, bias, o):
        s = dot(q[...], k[...].T) * 128**-0.5 + bias[...]
        s = 20 * jnp.tanh(s / 20)
        p = jnp.exp(s - s.max(1, keepdims=True))
        o[...] = dot(p, v[...]) / p.sum(1, keepdims=True)

    whole = ((128, 128), lambda i: (0, 0))
    return call(
        body, shape(32, 128, dtype=F32), q, k, v, bias, grid=(4,),
        ins=[((8, 128), lambda i: (i, 0)), whole, whole, ((8, 128), lambda r: (r, 0))], outs=((8, 128), lambda i: (i, 0)),
    )  # fmt: skip


def biased_reference(q: Any, k: Any, v: Any, bias: Any) -> Any:
    """The same in one line."""
    return dot(jax.nn.softmax(20 * jnp.tanh((dot(q, k.T) * 128**-0.5 + bias) / 20), axis=-1), v)


def linear_attention(q: Any, k: Any, v: Any) -> Any:
    """Causal, without softmax: the state is the sum of k.T v of the blocks before."""

    def body(q, k, v, o, state):
        @pl.when(pl.program_id(0) == 0)
        def _():
            state[...] = jnp.zeros_like(state)

        s = dot(q[...], k[...].T)
        held = lax.broadcasted_iota(jnp.int32, s.shape, 0) >= lax.broadcasted_iota(jnp.int32, s.shape, 1)
        o[...] = dot(jnp.where(held, s, 0), v[...]) + dot(q[...], state[...])
        state[...] += dot(k[...].T, v[...])

    rows = ((16, 128), lambda i: (i, 0))
    return call(
        body, shape(64, 128, dtype=F32), q, k, v, grid=(4,), ins=[rows, rows, rows], outs=rows,
        scratch=[pltpu.VMEM((128, 128), F32)],
    )  # fmt: skip


def linear_attention_reference(q: Any, k: Any, v: Any) -> Any:
    """By a triangle."""
    return dot(jnp.tril(dot(q, k.T)), v)


Q, KV = "f32[64,128]", "f32[256,128]"
ROWS = "f32[128,128]"
KERNELS = (
    Kernel(flash, plain, (Q, KV, KV), {
        "sum not rescaled": ("total[...] * scale", "total[...]"),
        "acc not rescaled": ("acc[...] * scale", "acc[...]"),
        "no scale": (" * 128**-0.5", ""),
        "scale squared": ("128**-0.5", "128**-1.0"),
        "v of the first block": ("(j, 0)), ((128, 128), lambda i, j: (j, 0))]", "(j, 0)), ((128, 128), lambda i, j: (0, 0))]"),
        "v of the query block": ("(j, 0)), ((128, 128), lambda i, j: (j, 0))]", "(j, 0)), ((128, 128), lambda i, j: (i, 0))]"),
        "not divided": ("acc[...] / total[...]", "acc[...]"),
        "divided at each block": ("dot(p, v[...])", "dot(p / p.sum(1, keepdims=True), v[...])"),
        "the new maximum not kept": ("m[...] = new", "m[...] = m[...]"),
        "maximum of the block": ("jnp.maximum(m[...], s.max(1, keepdims=True))", "s.max(1, keepdims=True)", "unstable"),
        "sums in bfloat16": ("pltpu.VMEM((32, 128), F32)", "pltpu.VMEM((32, 128), BF16)", "rounding"),
        "probabilities in bfloat16": ("dot(p, v[...])", "dot(p.astype(BF16), v[...].astype(BF16))", "rounding"),
    }),
    Kernel(causal, causal_reference, ("f32[192,128]",) * 3, {
        "mask off by one": ("row >= column", "row > column"),
        "mask one too wide": ("row >= column", "row + 1 >= column"),
        "mask of the block": ("column = j * 64 + ", "column = "),
        "mask the other way": ("row >= column", "row <= column"),
        "the diagonal left out": ("pl.when(j <= i)", "pl.when(j < i)"),
        "no mask": ("jnp.where(row >= column, s, -1e30)", "s"),
        "0 as the mask": ("s, -1e30)", "s, 0.0)"),
    }),
    Kernel(windowed, windowed_reference, (ROWS,) * 3, {
        "window one too wide": ("row - column < 32", "row - column <= 32"),
        "window one too narrow": ("row - column < 32", "row - column < 31"),
        "not causal": ("(column <= row) & ", ""),
        "no window": (" & (row - column < 32)", ""),
        "rows of the block": ("row = i * 32 + ", "row = "),
    }),
    Kernel(segmented, segmented_reference, (*(ROWS,) * 3, np.repeat(np.arange(4, dtype=np.int32), (20, 50, 30, 28))), {
        "not masked": ("jnp.where(own[...] == every[...], s, -1e30)", "s"),
        "segments before too": ("own[...] == every[...]", "own[...] >= every[...]"),
        "segments of the first block": ("((32, 1), lambda i: (i, 0))", "((32, 1), lambda i: (0, 0))"),
        "0 as the mask": ("s, -1e30", "s, 0.0"),
    }),
    Kernel(decoding, decoding_reference, (np.array([192, 70, 5], np.int32), "f32[3,8,128]", "f32[3,192,128]", "f32[3,192,128]"), {
        "length included": ("jnp.int32, s.shape, 1) < lengths[b]", "jnp.int32, s.shape, 1) <= lengths[b]"),
        "length of the last": ("pl.when(j * 64 < lengths[b])", "pl.when(j * 64 < lengths[2])"),
        "masked by the first": ("jnp.int32, s.shape, 1) < lengths[b]", "jnp.int32, s.shape, 1) < lengths[0]"),
        "the last block left out": ("pl.when(j * 64 < lengths[b])", "pl.when((j + 1) * 64 <= lengths[b])"),
        "block not added": ("jnp.where(j * 64 + ", "jnp.where("),
    }),
    Kernel(paged, paged_reference, (np.array([4, 1, 0, 5, 2, 3], np.int32), "f32[2,8,128]", "f32[6,16,128]", "f32[6,16,128]"), {
        "pages of the first": ("pages[3 * b + j]", "pages[j]"),
        "values not by the table": ("at[3 * b + j]", "3 * b + j"),
        "table by columns": ("pages[3 * b + j]", "pages[2 * j + b]"),
        "the first page again": ("at[3 * b + j]", "at[3 * b]"),
    }),
    Kernel(heads, heads_reference, ("f32[4,16,128]", "f32[2,16,128]", "f32[2,16,128]"), {
        "heads interleaved": ("(h // 2, 0, 0)", "(h % 2, 0, 0)"),
        "values of the first head": ("(g // 2, 0, 0)", "(0, 0, 0)"),
        "sum over queries": ("p.sum(1, keepdims=True)", "p.sum(0, keepdims=True)"),
        "scale of 16": ("128**-0.5", "16**-0.5"),
        "no maximum": (" - s.max(1, keepdims=True)", "", "unstable"),
    }),
    Kernel(biased, biased_reference, ("f32[32,128]", ROWS, ROWS, "f32[32,128]"), {
        "bias before the scale": ("dot(q[...], k[...].T) * 128**-0.5 + bias[...]", "(dot(q[...], k[...].T) + bias[...]) * 128**-0.5"),
        "bias of the first rows": ("lambda r: (r, 0)", "lambda r: (0, 0)"),
        "cap of 30": ("20 * jnp.tanh(s / 20)", "30 * jnp.tanh(s / 30)"),
        "bias after the cap": ("128**-0.5 + bias[...]\n        s = 20 * jnp.tanh(s / 20)", "128**-0.5\n        s = 20 * jnp.tanh(s / 20) + bias[...]"),
        "bias forgotten": (" + bias[...]", ""),
    }),
    Kernel(linear_attention, linear_attention_reference, (Q, Q, Q), {
        "state before the output": ("s = dot(q[...], k[...].T)\n", "s = dot(q[...], k[...].T)\n        state[...] += 0.5 * dot(k[...].T, v[...])\n"),
        "not causal within a block": ("jnp.where(held, s, 0)", "s"),
        "the block itself left out": (">= lax", "> lax"),
        "state of the last block": ("state[...] += ", "state[...] = "),
        "state transposed": ("dot(k[...].T, v[...])", "dot(v[...].T, k[...])"),
        "state zeroed each time": ("pl.program_id(0) == 0", "pl.program_id(0) >= 0"),
    }),
)  # fmt: skip
"""Of this file."""
