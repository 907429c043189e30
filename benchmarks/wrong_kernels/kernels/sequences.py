"""Scans, stencils, reductions, and moves of whole blocks."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from benchmarks.wrong_kernels.made import Kernel, call, shape

F32, BF16 = jnp.float32, jnp.bfloat16


def transpose(x: Any) -> Any:
    """Block by block."""

    def body(x, o):
        o[...] = x[...].T

    return call(
        body, shape(256, 256, dtype=F32), x, grid=(2, 2),
        ins=[((128, 128), lambda i, j: (i, j))], outs=((128, 128), lambda i, j: (j, i)),
    )  # fmt: skip


def column_sums(x: Any) -> Any:
    """Over blocks of rows, of which the last is not full."""

    def body(x, o):
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        inside = i * 8 + lax.broadcasted_iota(jnp.int32, (8, 128), 0) < 20
        o[...] += jnp.where(inside, x[...], 0).sum(0, keepdims=True)

    return call(
        body, shape(1, 128, dtype=F32), x, grid=(3,), ins=[((8, 128), lambda i: (i, 0))],
        outs=((1, 128), lambda i: (0, 0)),
    )  # fmt: skip


def row_max(x: Any) -> Any:
    """Over blocks of columns."""

    def body(x, o):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o[...] = jnp.full_like(o, -jnp.inf)

        o[...] = jnp.maximum(o[...], x[...].max(1, keepdims=True))

    return call(
        body, shape(16, 1, dtype=F32), x, grid=(2, 3), ins=[((8, 128), lambda i, j: (i, j))],
        outs=((8, 1), lambda i, j: (i, 0)),
    )  # fmt: skip


def moments(x: Any) -> Any:
    """Mean and variance of columns, by sums of x and of x^2 over blocks of rows."""

    def body(x, mean, var, s, q):
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _():
            s[...] = jnp.zeros_like(s)
            q[...] = jnp.zeros_like(q)

        s[...] += x[...].sum(0, keepdims=True)
        q[...] += (x[...] * x[...]).sum(0, keepdims=True)

        @pl.when(i == 3)
        def _():
            m = s[...] / 32
            mean[...] = m
            var[...] = q[...] / 32 - m * m

    one = ((1, 128), lambda i: (0, 0))
    return call(
        body, [shape(1, 128, dtype=F32)] * 2, x, grid=(4,), ins=[((8, 128), lambda i: (i, 0))], outs=[one, one],
        scratch=[pltpu.VMEM((1, 128), F32)] * 2,
    )  # fmt: skip


def moments_reference(x: Any) -> Any:
    """The same in one line."""
    return [x.mean(0, keepdims=True), x.var(0, keepdims=True)]


def running_sum(x: Any) -> Any:
    """Down the rows, by blocks of 8."""

    def body(x, o, carried):
        @pl.when(pl.program_id(0) == 0)
        def _():
            carried[...] = jnp.zeros_like(carried)

        at = lax.broadcasted_iota(jnp.int32, (8, 8), 0) >= lax.broadcasted_iota(jnp.int32, (8, 8), 1)
        sums = jnp.dot(jnp.where(at, 1.0, 0.0).astype(F32), x[...], preferred_element_type=F32) + carried[...]
        o[...] = sums
        carried[...] = sums[7:]

    return call(
        body, shape(32, 128, dtype=F32), x, grid=(4,), ins=[((8, 128), lambda i: (i, 0))],
        outs=((8, 128), lambda i: (i, 0)), scratch=[pltpu.VMEM((1, 128), F32)],
    )  # fmt: skip


def recurrence(a: Any, x: Any) -> Any:
    """h = a h + x down the rows."""

    def body(a, x, o, h):
        @pl.when(pl.program_id(0) == 0)
        def _():
            h[...] = jnp.zeros_like(h)

        state = h[...]
        for k in range(8):
            state = a[k : k + 1] * state + x[k : k + 1]
            o[k : k + 1] = state
        h[...] = state

    rows = ((8, 128), lambda i: (i, 0))
    return call(
        body, shape(24, 128, dtype=F32), a, x, grid=(3,), ins=[rows, rows], outs=rows, scratch=[pltpu.VMEM((1, 128), F32)],
    )  # fmt: skip


def recurrence_reference(a: Any, x: Any) -> Any:
    """Row by row."""

    def step(h, both):
        h = both[0] * h + both[1]
        return h, h

    return lax.scan(step, jnp.zeros_like(x[0]), (a, x))[1]


def convolution(x: Any, w: Any) -> Any:
    """Causal, of four taps down the rows, the three rows before a block carried."""

    def body(x, w, o, before):
        @pl.when(pl.program_id(0) == 0)
        def _():
            before[...] = jnp.zeros_like(before)

        rows = jnp.concatenate([before[5:], x[...]], axis=0)
        o[...] = sum(w[k : k + 1] * rows[k : k + 8] for k in range(4))
        before[...] = x[...]

    return call(
        body, shape(32, 128, dtype=F32), x, w, grid=(4,),
        ins=[((8, 128), lambda i: (i, 0)), ((4, 128), lambda i: (0, 0))], outs=((8, 128), lambda i: (i, 0)),
        scratch=[pltpu.VMEM((8, 128), F32)],
    )  # fmt: skip


def convolution_reference(x: Any, w: Any) -> Any:
    """On a padded array."""
    padded = jnp.pad(x, ((3, 0), (0, 0)))
    return sum(w[k] * padded[k : k + 32] for k in range(4))


def stencil(x: Any) -> Any:
    """(above + 2 x + below) / 4, round the ends; the neighbours are blocks of their own."""

    def body(above, x, below, o):
        up = jnp.concatenate([above[7:], x[:7]], axis=0)
        down = jnp.concatenate([x[1:], below[:1]], axis=0)
        o[...] = (up + 2 * x[...] + down) / 4

    return call(
        body, shape(32, 128, dtype=F32), x, x, x, grid=(4,),
        ins=[((8, 128), lambda i: ((i + 3) % 4, 0)), ((8, 128), lambda i: (i, 0)), ((8, 128), lambda i: ((i + 1) % 4, 0))],
        outs=((8, 128), lambda i: (i, 0)),
    )  # fmt: skip


def stencil_reference(x: Any) -> Any:
    """By rolls."""
    return (jnp.roll(x, 1, 0) + 2 * x + jnp.roll(x, -1, 0)) / 4


def lanes_rolled(x: Any) -> Any:
    """x and x rolled by 3 along a row, added."""

    def body(x, o):
        o[...] = x[...] + pltpu.roll(x[...], 3, 1)

    rows = ((8, 128), lambda i: (i, 0))
    return call(body, shape(16, 128, dtype=F32), x, grid=(2,), ins=[rows], outs=rows)


def pooled(x: Any) -> Any:
    """The largest of each four rows."""

    def body(x, o):
        o[...] = x[...].reshape(8, 4, 128).max(1)

    return call(
        body, shape(16, 128, dtype=F32), x, grid=(2,), ins=[((32, 128), lambda i: (i, 0))], outs=((8, 128), lambda i: (i, 0)),
    )  # fmt: skip


def joined(x: Any, y: Any) -> Any:
    """x above y, block by block."""

    def body(x, y, o):
        i = pl.program_id(0)

        @pl.when(i < 2)
        def _():
            o[...] = x[...]

        @pl.when(i >= 2)
        def _():
            o[...] = y[...]

    return call(
        body, shape(32, 128, dtype=F32), x, y, grid=(4,),
        ins=[((8, 128), lambda i: (jnp.minimum(i, 1), 0)), ((8, 128), lambda i: (jnp.maximum(i - 2, 0), 0))],
        outs=((8, 128), lambda i: (i, 0)),
    )  # fmt: skip


def updated(x: Any, y: Any) -> Any:
    """x + y in the place of x."""

    def body(x, y, o):
        o[...] = x[...] + y[...]

    rows = ((8, 128), lambda i: (i, 0))
    return call(body, shape(32, 128, dtype=F32), x, y, grid=(4,), ins=[rows, rows], outs=rows, aliases={0: 0})


X = "f32[32,128]"
KERNELS = (
    Kernel(transpose, lambda x: x.T, ("f32[256,256]",), {
        "blocks not exchanged": ("lambda i, j: (j, i)", "lambda i, j: (i, j)"),
        "not within a block": ("x[...].T", "x[...]"),
        "both": ("x[...].T", "x[...].T.T"),
        "the first blocks": ("lambda i, j: (i, j)", "lambda i, j: (i, 0)"),
    }),
    Kernel(column_sums, lambda x: x.sum(0, keepdims=True), ("f32[20,128]",), {
        "padding in the sum": ("jnp.where(inside, x[...], 0)", "x[...]"),
        "one row too few": ("< 20", "< 19"),
        "the tail left out": ("grid=(3,)", "grid=(2,)"),
        "zeroed at the last": ("i == 0", "i == 2"),
        "rows of the block": ("i * 8 + lax", "lax"),
    }),
    Kernel(row_max, lambda x: x.max(1, keepdims=True), ("f32[16,384]",), {
        "starts at 0": ("-jnp.inf", "0.0"),
        "of magnitudes": ("x[...].max(1", "abs(x[...]).max(1"),
        "the last block alone": ("jnp.maximum(o[...], x[...].max(1, keepdims=True))", "x[...].max(1, keepdims=True)"),
        "a minimum of blocks": ("jnp.maximum(o[...]", "jnp.minimum(o[...]"),
        "starts at -100": ("-jnp.inf", "-100.0"),
    }),
    Kernel(moments, moments_reference, (X,), {
        "of 31": ("q[...] / 32", "q[...] / 31"),
        "the mean not squared": ("m * m", "m"),
        "squares not zeroed": ("q[...] = jnp.zeros_like(q)", "pass"),
        "the square of the sum": ("(x[...] * x[...]).sum(0, keepdims=True)", "x[...].sum(0, keepdims=True) ** 2"),
        "a block early": ("i == 3", "i == 2"),
    }),
    Kernel(running_sum, lambda x: jnp.cumsum(x, 0), (X,), {
        "its own row left out": ("0) >= lax", "0) > lax"),
        "nothing carried": (" + carried[...]", ""),
        "the first row carried": ("sums[7:]", "sums[:1]"),
        "from below": ("0) >= lax", "0) <= lax"),
        "the last row of x carried": ("sums[7:]", "x[7:]"),
    }),
    Kernel(recurrence, recurrence_reference, ("f32[24,128]", "f32[24,128]"), {
        "state not carried": ("h[...] = state", "h[...] = h[...]"),
        "a of the first row": ("a[k : k + 1]", "a[0:1]"),
        "stored before the step": ("state = a[k : k + 1] * state + x[k : k + 1]\n            o[k : k + 1] = state", "o[k : k + 1] = state\n            state = a[k : k + 1] * state + x[k : k + 1]"),
        "one step short": ("range(8)", "range(7)"),
        "a on both": ("a[k : k + 1] * state + x[k : k + 1]", "a[k : k + 1] * (state + x[k : k + 1])"),
    }),
    Kernel(convolution, convolution_reference, (X, "f32[4,128]"), {
        "taps turned round": ("w[k : k + 1] *", "w[3 - k : 4 - k] *"),
        "the rows before not carried": ("before[...] = x[...]", "before[...] = before[...]"),
        "the first rows carried": ("before[5:]", "before[:3]"),
        "three taps": ("range(4)", "range(3)"),
        "not causal": ("jnp.concatenate([before[5:], x[...]], axis=0)", "jnp.concatenate([x[...], before[5:]], axis=0)"),
    }),
    Kernel(stencil, stencil_reference, (X,), {
        "above by the first row": ("above[7:]", "above[:1]"),
        "below for above": ("(i + 3) % 4", "(i + 1) % 4"),
        "divided by 3": ("/ 4\n", "/ 3\n"),
        "not round the ends": ("(i + 3) % 4", "jnp.maximum(i - 1, 0)"),
        "x once": ("2 * x[...]", "x[...]"),
    }),
    Kernel(lanes_rolled, lambda x: x + jnp.roll(x, 3, 1), ("f32[16,128]",), {
        "the other way": ("x[...], 3, 1", "x[...], 125, 1"),
        "by 2": ("x[...], 3, 1", "x[...], 2, 1"),
        "the other axis": ("x[...], 3, 1", "x[...], 3, 0"),
    }),
    Kernel(pooled, lambda x: x.reshape(16, 4, 128).max(1), ("f32[64,128]",), {
        "strided": ("x[...].reshape(8, 4, 128).max(1)", "x[...].reshape(4, 8, 128).max(0)"),
        "a mean": (".max(1)", ".mean(1)"),
        "three of four": (".max(1)", "[:, :3].max(1)"),
        "not below 0": ("x[...].reshape(8, 4, 128).max(1)", "jnp.maximum(x[...].reshape(8, 4, 128).max(1), 0)"),
    }),
    Kernel(joined, lambda x, y: jnp.concatenate([x, y]), ("f32[16,128]", "f32[16,128]"), {
        "exchanged": ("i < 2", "i >= 9"),
        "y one block late": ("jnp.maximum(i - 2, 0)", "jnp.maximum(i - 3, 0)"),
        "x three blocks": ("i >= 2", "i >= 3"),
        "the last of x again": ("jnp.minimum(i, 1)", "1"),
    }),
    Kernel(updated, lambda x, y: x + y, (X, X), {
        "twice": ("o[...] = x[...] + y[...]", "o[...] = x[...] + y[...]\n        o[...] += y[...]"),
        "x read after the store": ("o[...] = x[...] + y[...]", "o[...] = y[...]\n        o[...] = o[...] + y[...]"),
        "a block left out": ("grid=(4,)", "grid=(3,)"),
        "a difference": ("x[...] + y[...]", "x[...] - y[...]"),
    }),
)  # fmt: skip
"""Of this file."""
