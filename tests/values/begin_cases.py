"""Kernels that carry a state from program to program, with one error each, and the store at which it shows.

Each store has a mark, `# at NAME`. CASES[name] = (kernel, reference, shapes, marks that may be said).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32 = jnp.float32
BIG = -1e30
Call = Callable[..., Any]


def product(wrong: str = "", k: int = 24) -> Call:
    """x @ y of [16, k] and [k, 16] in blocks of 8, summed in scratch memory."""
    steps = pl.cdiv(k, 8)

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        i, j, step = (pl.program_id(axis) for axis in range(3))
        first = (i + j + step if wrong == "zeroed once" else step) == (1 if wrong == "zeroed late" else 0)

        @pl.when(first)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        left = k - step * 8 + (wrong == "one too many") - (wrong == "one too few")
        u = jnp.where(lax.broadcasted_iota(jnp.int32, (8, 8), 1) < left, x[...], 0)
        v = jnp.where(lax.broadcasted_iota(jnp.int32, (8, 8), 0) < left, y[...], 0)
        if wrong == "unmasked":
            u, v = x[...], y[...]
        if wrong == "only the last":
            acc[...] = jnp.dot(u, v)  # at sum
        else:
            acc[...] += jnp.dot(u, v if wrong != "turned" else v.T)  # at sum

        @pl.when((step == steps - 1) & (wrong == "twice"))
        def _() -> None:
            acc[...] += jnp.dot(u, v)  # at again

        @pl.when(step == steps - (2 if wrong == "early" else 1))
        def _() -> None:
            o[...] = acc[...]  # at store

    def of_x(i: Any, j: Any, step: Any) -> Any:
        return i, jnp.where(step == 1, 0, step) if wrong == "block skipped" else step

    def of_y(i: Any, j: Any, step: Any) -> Any:
        return step, i if wrong == "other block" else j

    def call(x: Any, y: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(2, 2, steps),
            in_specs=[pl.BlockSpec((8, 8), of_x), pl.BlockSpec((8, 8), of_y)],
            out_specs=pl.BlockSpec((8, 8), lambda i, j, step: (i, j)),
            out_shape=jax.ShapeDtypeStruct((16, 16), F32),
            scratch_shapes=[pltpu.VMEM((8, 8), F32)],
        )(x, y)

    return call


def attention(wrong: str = "", rows: int = 24, size: int = 4) -> Call:
    """Causal attention in blocks of 8 rows and 8 columns, with a running maximum."""
    blocks = rows // 8

    def body(q: Any, k: Any, v: Any, o: Any, m: Any, total: Any, acc: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)

        @pl.when(j == 0)
        def _() -> None:
            m[...] = jnp.full_like(m, BIG)
            total[...] = jnp.zeros_like(total)
            if wrong != "sum not zeroed":
                acc[...] = jnp.zeros_like(acc)

        def step() -> None:
            s = jnp.dot(q[...], k[...].T) / np.sqrt(size)
            row, column = (lax.broadcasted_iota(jnp.int32, (8, 8), axis) for axis in range(2))
            if wrong != "local mask":
                row, column = row + 8 * i, column + 8 * j
            s = jnp.where(row > column if wrong == "strict mask" else row >= column, s, BIG)
            new = jnp.maximum(m[...], s.max(1, keepdims=True))
            p, a = jnp.exp(s - new), jnp.exp(m[...] - new)
            total[...] = total[...] * (1 if wrong == "total not scaled" else a) + p.sum(1, keepdims=True)  # at total
            acc[...] = acc[...] * (1 if wrong == "sum not scaled" else a) + jnp.dot(p, v[...])  # at sum
            if wrong != "maximum not kept":
                m[...] = new if wrong != "old maximum" else jnp.minimum(m[...], new)  # at maximum

        pl.when(j < i if wrong == "block skipped" else j <= i)(step)

        @pl.when(j == blocks - 1)
        def _() -> None:
            o[...] = acc[...] / total[...]  # at store

    def call(q: Any, k: Any, v: Any) -> Any:
        of_rows = pl.BlockSpec((8, size), lambda i, j: (i, 0))
        of_columns = pl.BlockSpec((8, size), lambda i, j: (j, 0))
        return pl.pallas_call(
            body,
            grid=(blocks, blocks),
            in_specs=[of_rows, of_columns, of_columns],
            out_specs=of_rows,
            out_shape=jax.ShapeDtypeStruct((rows, size), F32),
            scratch_shapes=[pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, size), F32)],
        )(q, k, v)

    return call


def attended(q: Any, k: Any, v: Any) -> Any:
    """Causal attention."""
    s = jnp.dot(q, k.T) / np.sqrt(q.shape[-1])
    s = jnp.where(np.tril(np.ones(s.shape, bool)), s, -jnp.inf)
    return jnp.dot(jax.nn.softmax(s, -1), v)


def moments(wrong: str = "", columns: int = 20) -> Call:
    """The mean and the mean square of rows, by blocks of 8 columns of which the last is not full."""
    steps = pl.cdiv(columns, 8)

    def body(x: Any, o: Any, s: Any, t: Any) -> None:
        step = pl.program_id(1)

        @pl.when(step == 0)
        def _() -> None:
            s[...] = jnp.zeros_like(s)
            t[...] = jnp.zeros_like(t)

        inside = lax.broadcasted_iota(jnp.int32, (8, 8), 1) + 8 * step < columns
        v = x[...] if wrong == "unmasked" else jnp.where(inside, x[...], 0)
        s[...] += v.sum(1, keepdims=True)  # at sum
        if wrong == "only the last":
            t[...] = (v * v).sum(1, keepdims=True)  # at squares
        else:
            t[...] += (v * v).sum(1, keepdims=True)  # at squares

        @pl.when(step == steps - 1)
        def _() -> None:
            n = 8 * steps if wrong == "padded mean" else columns
            o[...] = t[...] / n - (s[...] / n) ** 2  # at store

    def call(x: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(2, steps),
            in_specs=[pl.BlockSpec((8, 8), lambda i, step: (i, step))],
            out_specs=pl.BlockSpec((8, 1), lambda i, step: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((16, 1), F32),
            scratch_shapes=[pltpu.VMEM((8, 1), F32)] * 2,
        )(x)

    return call


def biased(wrong: str = "") -> Call:
    """relu(x @ y + b), the bias by blocks of columns."""

    def body(x: Any, y: Any, b: Any, o: Any, acc: Any) -> None:
        step = pl.program_id(1)

        @pl.when(step == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x[...], y[...])  # at sum

        @pl.when(step == 2)
        def _() -> None:
            o[...] = jax.nn.relu(acc[...] + b[...])  # at store

    def call(x: Any, y: Any, b: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(2, 3),
            in_specs=[
                pl.BlockSpec((8, 8), lambda j, step: (0, step)),
                pl.BlockSpec((8, 8), lambda j, step: (step, j)),
                pl.BlockSpec((1, 8), lambda j, step: (0, 0 if wrong else j)),
            ],
            out_specs=pl.BlockSpec((8, 8), lambda j, step: (0, j)),
            out_shape=jax.ShapeDtypeStruct((8, 16), F32),
            scratch_shapes=[pltpu.VMEM((8, 8), F32)],
        )(x, y, b)

    return call


def largest(wrong: str = "") -> Call:
    """The maximum of rows, kept in the block of the output."""

    def body(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            o[...] = jnp.full_like(o, 0.0 if wrong == "starts at 0" else -jnp.inf)

        here = x[...].max(1, keepdims=True)
        o[...] = here if wrong == "only the last" else jnp.maximum(o[...], here)  # at store

    def call(x: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(2, 3),
            in_specs=[pl.BlockSpec((8, 8), lambda i, step: (i, step))],
            out_specs=pl.BlockSpec((8, 1), lambda i, step: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((16, 1), F32),
        )(x)

    return call


PRODUCT = (lambda x, y: jnp.dot(x, y), ("f32[16,24]", "f32[24,16]"))
RAGGED = (lambda x, y: jnp.dot(x, y), ("f32[16,20]", "f32[20,16]"))
ATTENTION = (attended, ("f32[24,4]",) * 3)
MOMENTS = (lambda x: jnp.var(x, axis=-1, keepdims=True), ("f32[16,20]",))
BIASED = (lambda x, y, b: jax.nn.relu(x @ y + b), ("f32[8,24]", "f32[24,16]", "f32[1,16]"))
LARGEST = (lambda x: x.max(-1, keepdims=True), ("f32[16,24]",))

CASES: dict[str, tuple[Call, Call, tuple[str, ...], str]] = {
    **{
        f"product, {wrong}": (product(wrong), *PRODUCT, mark)
        for wrong, mark in (
            ("zeroed once", "sum"), ("zeroed late", "sum"), ("only the last", "sum"), ("turned", "sum"),
            ("twice", "again"), ("early", "store"), ("block skipped", "sum"), ("other block", "sum"),
        )
    },
    **{
        f"ragged product, {wrong}": (product(wrong, 20), *RAGGED, "sum")
        for wrong in ("one too many", "one too few", "unmasked")
    },
    **{
        f"attention, {wrong}": (attention(wrong), *ATTENTION, mark)
        for wrong, mark in (
            ("sum not zeroed", "sum"), ("local mask", "total"), ("strict mask", "total"), ("total not scaled", "total"),
            ("sum not scaled", "sum"), ("maximum not kept", "total"), ("old maximum", "total"),
            ("block skipped", "store"),
        )
    },
    "moments, only the last": (moments("only the last"), *MOMENTS, "squares"),
    "moments, unmasked": (moments("unmasked"), *MOMENTS, "sum"),
    "moments, padded mean": (moments("padded mean"), *MOMENTS, ""),
    "biased, first bias": (biased("first bias"), *BIASED, ""),
    "largest, only the last": (largest("only the last"), *LARGEST, "store"),
    "largest, starts at 0": (largest("starts at 0"), *LARGEST, "store"),
}  # fmt: skip
"""The mark of the first store after which the state is no prefix of the reference; "" where that cannot be said."""

RIGHT = {
    "product": (product(), *PRODUCT), "ragged product": (product("", 20), *RAGGED),
    "attention": (attention(), *ATTENTION), "moments": (moments(), *MOMENTS), "biased": (biased(), *BIASED),
    "largest": (largest(), *LARGEST),
}  # fmt: skip
