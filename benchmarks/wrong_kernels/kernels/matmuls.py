"""Matrix products."""

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


def matmul(x: Any, y: Any) -> Any:
    """x @ y, summed over blocks in scratch."""

    def body(x, y, o, acc):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += dot(x[...], y[...]).astype(acc.dtype)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...].astype(o.dtype)

    return call(
        body, shape(256, 256, dtype=F32), x, y, grid=(2, 2, 3),
        ins=[((128, 128), lambda i, j, k: (i, k)), ((128, 128), lambda i, j, k: (k, j))],
        outs=((128, 128), lambda i, j, k: (i, j)), scratch=[pltpu.VMEM((128, 128), F32)],
    )  # fmt: skip


def square(x: Any, y: Any) -> Any:
    """x @ y of square matrices, summed in the output."""

    def body(x, y, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += dot(x[...], y[...])

    return call(
        body, shape(256, 256, dtype=F32), x, y, grid=(2, 2, 2),
        ins=[((128, 128), lambda i, j, k: (i, k)), ((128, 128), lambda i, j, k: (k, j))],
        outs=((128, 128), lambda i, j, k: (i, j)),
    )  # fmt: skip


def ragged(x: Any, y: Any) -> Any:
    """x @ y, where the last block of k is not full."""

    def body(x, y, o, acc):
        k = pl.program_id(2)

        @pl.when(k == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        left = 200 - k * 128
        u = jnp.where(lax.broadcasted_iota(jnp.int32, (64, 128), 1) < left, x[...], 0)
        v = jnp.where(lax.broadcasted_iota(jnp.int32, (128, 128), 0) < left, y[...], 0)
        acc[...] += dot(u, v)

        @pl.when(k == 1)
        def _():
            o[...] = acc[...]

    return call(
        body, shape(128, 128, dtype=F32), x, y, grid=(2, 1, 2),
        ins=[((64, 128), lambda i, j, k: (i, k)), ((128, 128), lambda i, j, k: (k, j))],
        outs=((64, 128), lambda i, j, k: (i, j)), scratch=[pltpu.VMEM((64, 128), F32)],
    )  # fmt: skip


def linear(x: Any, w: Any, b: Any) -> Any:
    """relu(x @ w + b), the bias added once."""

    def body(x, w, b, o, acc):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc[...] = jnp.broadcast_to(b[...], acc.shape)

        acc[...] += dot(x[...], w[...])

        @pl.when(pl.program_id(2) == 1)
        def _():
            o[...] = jnp.maximum(acc[...], 0)

    return call(
        body, shape(64, 256, dtype=F32), x, w, b, grid=(2, 2, 2),
        ins=[((32, 128), lambda i, j, k: (i, k)), ((128, 128), lambda i, j, k: (k, j)), ((1, 128), lambda i, j, k: (0, j))],
        outs=((32, 128), lambda i, j, k: (i, j)), scratch=[pltpu.VMEM((32, 128), F32)],
    )  # fmt: skip


def linear_reference(x: Any, w: Any, b: Any) -> Any:
    """The same in one line."""
    return jax.nn.relu(dot(x, w) + b)


def transposed(x: Any, y: Any) -> Any:
    """x @ y.T, y held by rows."""

    def body(x, y, o):
        o[...] = lax.dot_general(x[...], y[...], (((1,), (1,)), ((), ())), preferred_element_type=F32)

    return call(
        body, shape(128, 256, dtype=F32), x, y, grid=(2, 2),
        ins=[((64, 128), lambda i, j: (i, 0)), ((128, 128), lambda i, j: (j, 0))],
        outs=((64, 128), lambda i, j: (i, j)),
    )  # fmt: skip


def batched(x: Any, y: Any) -> Any:
    """x @ y for each of a batch."""

    def body(x, y, o):
        o[...] = dot(x[...], y[...])

    return call(
        body, shape(4, 16, 128, dtype=F32), x, y, grid=(4, 2),
        ins=[((None, 8, 128), lambda b, i: (b, i, 0)), ((None, 128, 128), lambda b, i: (b, 0, 0))],
        outs=((None, 8, 128), lambda b, i: (b, i, 0)),
    )  # fmt: skip


def batched_reference(x: Any, y: Any) -> Any:
    """The same in one line."""
    return jnp.einsum("bij,bjk->bik", x, y, preferred_element_type=F32)


def weight_gradient(x: Any, g: Any) -> Any:
    """x.T @ g, summed over blocks of rows."""

    def body(x, g, o):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += dot(x[...].T, g[...])

    return call(
        body, shape(128, 128, dtype=F32), x, g, grid=(4,),
        ins=[((8, 128), lambda i: (i, 0)), ((8, 128), lambda i: (i, 0))], outs=((128, 128), lambda i: (0, 0)),
    )  # fmt: skip


def low_rank(x: Any, w: Any, a: Any, b: Any) -> Any:
    """x @ w + (x @ a) @ b / 4, as adapters of low rank are applied."""

    def body(x, w, a, b, o, acc, low):
        k = pl.program_id(1)

        @pl.when(k == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)
            low[...] = jnp.zeros_like(low)

        acc[...] += dot(x[...], w[...])
        low[...] += dot(x[...], a[...])

        @pl.when(k == 1)
        def _():
            o[...] = acc[...] + dot(low[...], b[...]) * 0.25

    return call(
        body, shape(32, 128, dtype=F32), x, w, a, b, grid=(2, 2),
        ins=[
            ((16, 128), lambda i, k: (i, k)), ((128, 128), lambda i, k: (k, 0)),
            ((128, 128), lambda i, k: (k, 0)), ((128, 128), lambda i, k: (0, 0)),
        ],
        outs=((16, 128), lambda i, k: (i, 0)), scratch=[pltpu.VMEM((16, 128), F32), pltpu.VMEM((16, 128), F32)],
    )  # fmt: skip


def low_rank_reference(x: Any, w: Any, a: Any, b: Any) -> Any:
    """The same in one line."""
    return dot(x, w) + dot(dot(x, a), b) / 4


def gated(x: Any, w: Any, v: Any) -> Any:
    """silu(x @ w) * (x @ v)."""

    def body(x, w, v, o, gate, up):
        k = pl.program_id(2)

        @pl.when(k == 0)
        def _():
            gate[...] = jnp.zeros_like(gate)
            up[...] = jnp.zeros_like(up)

        gate[...] += dot(x[...], w[...])
        up[...] += dot(x[...], v[...])

        @pl.when(k == pl.num_programs(2) - 1)
        def _():
            o[...] = gate[...] * jax.nn.sigmoid(gate[...]) * up[...]

    weight = ((128, 128), lambda i, j, k: (k, j))
    return call(
        body, shape(16, 256, dtype=F32), x, w, v, grid=(2, 2, 2),
        ins=[((8, 128), lambda i, j, k: (i, k)), weight, weight],
        outs=((8, 128), lambda i, j, k: (i, j)), scratch=[pltpu.VMEM((8, 128), F32), pltpu.VMEM((8, 128), F32)],
    )  # fmt: skip


def gated_reference(x: Any, w: Any, v: Any) -> Any:
    """The same in one line."""
    return jax.nn.silu(dot(x, w)) * dot(x, v)


def quantised(x: Any, y: Any, scale: Any) -> Any:
    """A product of int8 matrices, summed in int32, times a scale for each column."""

    def body(x, y, scale, o, acc):
        @pl.when(pl.program_id(1) == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.int32)

        @pl.when(pl.program_id(1) == 1)
        def _():
            o[...] = acc[...].astype(F32) * scale[...]

    return call(
        body, shape(64, 128, dtype=F32), x, y, scale, grid=(2, 2),
        ins=[((32, 128), lambda i, k: (i, k)), ((128, 128), lambda i, k: (k, 0)), ((1, 128), lambda i, k: (0, 0))],
        outs=((32, 128), lambda i, k: (i, 0)), scratch=[pltpu.VMEM((32, 128), jnp.int32)],
    )  # fmt: skip


def quantised_reference(x: Any, y: Any, scale: Any) -> Any:
    """The same in one line."""
    return jnp.dot(x, y, preferred_element_type=jnp.int32).astype(F32) * scale


def dequantised(x: Any, y: Any, scale: Any) -> Any:
    """x @ (y * scale), a scale for each 128 rows of an int8 matrix."""

    def body(x, y, scale, o):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += dot(x[...], y[...].astype(F32) * scale[...])

    return call(
        body, shape(16, 128, dtype=F32), x, y, scale, grid=(2, 3),
        ins=[((8, 128), lambda i, k: (i, k)), ((128, 128), lambda i, k: (k, 0)), ((None, 1, 128), lambda i, k: (k, 0, 0))],
        outs=((8, 128), lambda i, k: (i, 0)),
    )  # fmt: skip


def dequantised_reference(x: Any, y: Any, scale: Any) -> Any:
    """The same in one line."""
    return dot(x, y.astype(F32) * jnp.repeat(scale[:, 0], 128, axis=0))


def grouped(group: Any, x: Any, y: Any) -> Any:
    """Each block of rows times the matrix of its group."""

    def body(group, x, y, o):
        o[...] = dot(x[...], y[...])

    return call(
        body, shape(48, 128, dtype=F32), group, x, y, grid=(6,), tables=1,
        ins=[((8, 128), lambda i, group: (i, 0)), ((None, 128, 128), lambda i, group: (group[i], 0, 0))],
        outs=((8, 128), lambda i, group: (i, 0)),
    )  # fmt: skip


def grouped_reference(group: Any, x: Any, y: Any) -> Any:
    """The same in one line."""
    return jnp.einsum("gij,gjk->gik", x.reshape(6, 8, 128), y[group], preferred_element_type=F32).reshape(48, 128)


def block_sparse(column: Any, x: Any, blocks: Any) -> Any:
    """x times a matrix of which two blocks of each column of blocks are held, at rows that a table says."""

    def body(column, x, blocks, o, acc):
        @pl.when(pl.program_id(1) == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += dot(x[...], blocks[...])

        @pl.when(pl.program_id(1) == 1)
        def _():
            o[...] = acc[...]

    return call(
        body, shape(16, 256, dtype=F32), column, x, blocks, grid=(2, 2), tables=1,
        ins=[
            ((16, 128), lambda j, s, column: (0, column[2 * j + s])),
            ((None, 128, 128), lambda j, s, column: (2 * j + s, 0, 0)),
        ],
        outs=((16, 128), lambda j, s, column: (0, j)), scratch=[pltpu.VMEM((16, 128), F32)],
    )  # fmt: skip


def block_sparse_reference(column: Any, x: Any, blocks: Any) -> Any:
    """By the dense matrix."""
    dense = jnp.zeros((4, 2, 128, 128), x.dtype)
    for at in range(4):
        dense = dense.at[column[at], at // 2].add(blocks[at])
    return dot(x, dense.transpose(0, 2, 1, 3).reshape(512, 256))


KERNELS = (
    Kernel(matmul, dot, ("f32[256,384]", "f32[384,256]"), {
        "zeroed once": ("pl.when(pl.program_id(2) == 0)", "pl.when((pl.program_id(2) == 0) & (pl.program_id(0) == 0))"),
        "zeroed once a row": ("pl.when(pl.program_id(2) == 0)", "pl.when((pl.program_id(2) == 0) & (pl.program_id(1) == 0))"),
        "set for added": ("acc[...] += dot", "acc[...] = dot"),
        "stored before the last step": ("pl.num_programs(2) - 1", "pl.num_programs(2) - 2"),
        "the first block of x again": ("lambda i, j, k: (i, k)", "lambda i, j, k: (i, 0)"),
        "summed in bfloat16": ("pltpu.VMEM((128, 128), F32)", "pltpu.VMEM((128, 128), BF16)", "rounding"),
        "rounded to bfloat16 at the end": ("acc[...].astype(o.dtype)", "acc[...].astype(BF16).astype(o.dtype)", "rounding"),
    }),
    Kernel(square, dot, ("f32[256,256]", "f32[256,256]"), {
        "y by (j, k)": ("lambda i, j, k: (k, j)", "lambda i, j, k: (j, k)"),
        "x by (k, i)": ("lambda i, j, k: (i, k)", "lambda i, j, k: (k, i)"),
        "stored by (j, i)": ("lambda i, j, k: (i, j)", "lambda i, j, k: (j, i)"),
        "never zeroed": ("jnp.zeros_like(o)", "o[...]"),
        "block transposed": ("x[...], y[...]", "x[...], y[...].T"),
        "arguments exchanged": ("x[...], y[...]", "y[...], x[...]"),
    }),
    Kernel(ragged, dot, ("f32[128,200]", "f32[200,128]"), {
        "y not masked": ("jnp.where(lax.broadcasted_iota(jnp.int32, (128, 128), 0) < left, y[...], 0)", "y[...]"),
        "x not masked": ("jnp.where(lax.broadcasted_iota(jnp.int32, (64, 128), 1) < left, x[...], 0)", "x[...]"),
        "mask one too long": ("left = 200", "left = 201"),
        "mask one too short": ("left = 200", "left = 199"),
        "mask of the first block": ("200 - k * 128", "200"),
        "mask of the other axis": ("(64, 128), 1)", "(64, 128), 0)"),
    }),
    Kernel(linear, linear_reference, ("f32[64,256]", "f32[256,256]", "f32[1,256]"), {
        "bias at every step": ("acc[...] += dot(x[...], w[...])", "acc[...] += dot(x[...], w[...]) + b[...]"),
        "bias of the first block": ("lambda i, j, k: (0, j)", "lambda i, j, k: (0, 0)"),
        "relu of every partial sum": ("acc[...] += dot(x[...], w[...])", "acc[...] = jnp.maximum(acc[...] + dot(x[...], w[...]), 0)"),
        "no bias": ("jnp.broadcast_to(b[...], acc.shape)", "jnp.zeros_like(acc)"),
        "relu the other way": ("jnp.maximum(acc[...], 0)", "jnp.minimum(acc[...], 0)"),
    }),
    Kernel(transposed, lambda x, y: dot(x, y.T), ("f32[128,128]", "f32[256,128]"), {
        "not transposed": ("(((1,), (1,)), ((), ()))", "(((1,), (0,)), ((), ()))"),
        "x transposed in its block": ("lax.dot_general(x[...],", "lax.dot_general(x[...][::-1],"),
        "the first block of y": ("lambda i, j: (j, 0)", "lambda i, j: (0, 0)"),
        "the block of i": ("lambda i, j: (j, 0)", "lambda i, j: (i, 0)"),
    }),
    Kernel(batched, batched_reference, ("f32[4,16,128]", "f32[4,128,128]"), {
        "y of the first of the batch": ("lambda b, i: (b, 0, 0)", "lambda b, i: (0, 0, 0)"),
        "y of the row block": ("lambda b, i: (b, 0, 0)", "lambda b, i: (i, 0, 0)"),
        "stored at i, b": ("outs=((None, 8, 128), lambda b, i: (b, i, 0))", "outs=((None, 8, 128), lambda b, i: (b, 1 - i, 0))"),
        "x of the next of the batch": ("ins=[((None, 8, 128), lambda b, i: (b, i, 0))", "ins=[((None, 8, 128), lambda b, i: ((b + 1) % 4, i, 0))"),
    }),
    Kernel(weight_gradient, lambda x, g: dot(x.T, g), ("f32[32,128]", "f32[32,128]"), {
        "transposed": ("dot(x[...].T, g[...])", "dot(g[...].T, x[...])"),
        "the last block alone": ("o[...] += dot", "o[...] = dot"),
        "zeroed at the second block": ("pl.program_id(0) == 0", "pl.program_id(0) <= 1"),
        "a block left out": ("grid=(4,)", "grid=(3,)"),
        "a mean for a sum": ("dot(x[...].T, g[...])", "dot(x[...].T, g[...]) / 4"),
    }),
    Kernel(low_rank, low_rank_reference, ("f32[32,256]", "f32[256,128]", "f32[256,128]", "f32[128,128]"), {
        "low part not zeroed": ("low[...] = jnp.zeros_like(low)", "pass"),
        "low part of the last block": ("low[...] += dot", "low[...] = dot"),
        "scale forgotten": (" * 0.25", ""),
        "scale on both": ("acc[...] + dot(low[...], b[...]) * 0.25", "(acc[...] + dot(low[...], b[...])) * 0.25"),
    }),
    Kernel(gated, gated_reference, ("f32[16,256]", "f32[256,256]", "f32[256,256]"), {
        "gate and up exchanged": ("gate[...] * jax.nn.sigmoid(gate[...]) * up[...]", "up[...] * jax.nn.sigmoid(up[...]) * gate[...]"),
        "sigmoid for silu": ("gate[...] * jax.nn.sigmoid(gate[...]) * up[...]", "jax.nn.sigmoid(gate[...]) * up[...]"),
        "both from w": ("up[...] += dot(x[...], v[...])", "up[...] += dot(x[...], w[...])"),
        "up not zeroed": ("up[...] = jnp.zeros_like(up)", "pass"),
        "gelu's constant": ("jax.nn.sigmoid(gate[...])", "jax.nn.sigmoid(1.702 * gate[...])"),
    }),
    Kernel(quantised, quantised_reference, ("s8[64,256]", "s8[256,128]", "f32[1,128]"), {
        "summed in int8": ("jnp.dot(x[...], y[...], preferred_element_type=jnp.int32)", "jnp.dot(x[...], y[...]).astype(jnp.int32)"),
        "product in int16": ("preferred_element_type=jnp.int32)", "preferred_element_type=jnp.int16).astype(jnp.int32)"),
        "scale forgotten": (" * scale[...]", ""),
        "scale of the first column": ("scale[...]\n", "scale[:, :1]\n"),
        "scale on both sides": (" * scale[...]", " * scale[...] * scale[...]"),
    }),
    Kernel(dequantised, dequantised_reference, ("f32[16,384]", "s8[384,128]", "f32[3,1,128]"), {
        "scale of the first group": ("lambda i, k: (k, 0, 0)", "lambda i, k: (0, 0, 0)"),
        "scale after the sum": ("dot(x[...], y[...].astype(F32) * scale[...])", "dot(x[...], y[...].astype(F32))\n        o[...] *= scale[...]"),
        "scale of the row block": ("lambda i, k: (k, 0, 0)", "lambda i, k: (i, 0, 0)"),
        "divided by the scale": ("y[...].astype(F32) * scale[...]", "y[...].astype(F32) / scale[...]"),
    }),
    Kernel(grouped, grouped_reference, (np.array([0, 0, 1, 3, 3, 3], np.int32), "f32[48,128]", "f32[4,128,128]"), {
        "the next group": ("group[i], 0, 0", "jnp.minimum(group[i] + 1, 3), 0, 0"),
        "the block's own number": ("group[i], 0, 0", "i % 4, 0, 0"),
        "the group of the last block": ("group[i], 0, 0", "group[jnp.maximum(i - 1, 0)], 0, 0"),
        "transposed": ("dot(x[...], y[...])", "dot(x[...], y[...].T)"),
    }),
    Kernel(block_sparse, block_sparse_reference, (np.array([0, 3, 2, 1], np.int32), "f32[16,512]", "f32[4,128,128]"), {
        "the table read by s": ("column[2 * j + s]", "column[s]"),
        "the table read by j": ("column[2 * j + s]", "column[j + s]"),
        "x by its own position": ("column[2 * j + s])", "2 * j + s)"),
        "blocks exchanged": ("(2 * j + s, 0, 0)", "(2 * j + 1 - s, 0, 0)"),
    }),
)  # fmt: skip
"""Of this file."""
