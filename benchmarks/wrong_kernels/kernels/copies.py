"""Copies that the kernel makes itself, tables of rows, and what one program leaves to the next."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from benchmarks.wrong_kernels.made import Kernel, call, shape

F32, BF16 = jnp.float32, jnp.bfloat16


def streamed(x: Any) -> Any:
    """2 x, by copies into two slots, one ahead."""

    def body(x, o, slots, arrived):
        def get(i):
            return pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], slots.at[i % 2], arrived.at[i % 2])

        get(0).start()
        for i in range(4):
            if i < 3:
                get(i + 1).start()
            get(i).wait()
            o[pl.ds(i * 8, 8)] = slots[i % 2] * 2

    return call(
        body, shape(32, 128, dtype=F32), x, ins=[None], scratch=[pltpu.VMEM((2, 8, 128), F32), pltpu.SemaphoreType.DMA((2,))],
    )  # fmt: skip


def short_tail(x: Any) -> Any:
    """The sum over rows, 8 at a time, of 20 rows: the last copy is short."""

    def body(x, o, slot, arrived):
        o[...] = jnp.zeros_like(o)
        for i in range(3):
            many = min(8, 20 - 8 * i)
            get = pltpu.make_async_copy(x.at[pl.ds(8 * i, many)], slot.at[pl.ds(0, many)], arrived)
            get.start()
            get.wait()
            held = lax.broadcasted_iota(jnp.int32, (8, 128), 0) < many
            o[...] += jnp.where(held, slot[...], 0).sum(0, keepdims=True)

    return call(
        body, shape(1, 128, dtype=F32), x, ins=[None], scratch=[pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA],
    )  # fmt: skip


def written(x: Any) -> Any:
    """x + 1 of each block, copied back to HBM by the kernel."""

    def body(x, o, slot, done):
        i = pl.program_id(0)
        slot[...] = x[...] + 1
        put = pltpu.make_async_copy(slot, o.at[pl.ds(i * 8, 8)], done)
        put.start()
        put.wait()

    return call(
        body, [shape(32, 128, dtype=F32)], x, grid=(4,), ins=[((8, 128), lambda i: (i, 0))], outs=[None],
        scratch=[pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA],
    )  # fmt: skip


def two_sources(x: Any, y: Any) -> Any:
    """x + y, each copied in with a semaphore of its own."""

    def body(x, y, o, a, b, first, second):
        one, two = pltpu.make_async_copy(x, a, first), pltpu.make_async_copy(y, b, second)
        one.start()
        two.start()
        one.wait()
        two.wait()
        o[...] = a[...] + b[...]

    return call(
        body, shape(16, 128, dtype=F32), x, y, ins=[None, None],
        scratch=[*[pltpu.VMEM((16, 128), F32)] * 2, *[pltpu.SemaphoreType.DMA] * 2],
    )  # fmt: skip


def gathered(at: Any, x: Any) -> Any:
    """Blocks of rows that a table names."""

    def body(at, x, o):
        o[...] = x[...]

    return call(
        body, shape(40, 128, dtype=F32), at, x, grid=(5,), tables=1,
        ins=[((8, 128), lambda i, at: (at[i], 0))], outs=((8, 128), lambda i, at: (i, 0)),
    )  # fmt: skip


def gathered_reference(at: Any, x: Any) -> Any:
    """The same in one line."""
    return x.reshape(6, 8, 128)[at].reshape(40, 128)


def scattered(at: Any, x: Any) -> Any:
    """Blocks of rows to where a table says, a permutation."""

    def body(at, x, o):
        o[...] = x[...]

    return call(
        body, shape(32, 128, dtype=F32), at, x, grid=(4,), tables=1,
        ins=[((8, 128), lambda i, at: (i, 0))], outs=((8, 128), lambda i, at: (at[i], 0)),
    )  # fmt: skip


def scattered_reference(at: Any, x: Any) -> Any:
    """The same in one line."""
    return jnp.zeros((4, 8, 128), x.dtype).at[at].set(x.reshape(4, 8, 128)).reshape(32, 128)


def rows_copied(at: Any, x: Any) -> Any:
    """Rows that a table names, one copy each, all started before any is waited for."""

    def body(at, x, o, arrived):
        for i in range(6):
            pltpu.make_async_copy(x.at[at[i]], o.at[i], arrived).start()
        for i in range(6):
            pltpu.make_async_copy(x.at[at[i]], o.at[i], arrived).wait()

    return pl.pallas_call(
        body, in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=shape(6, 1, 128, dtype=F32), scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(at, x)  # fmt: skip


def segment_sums(owner: Any, x: Any) -> Any:
    """Blocks of rows summed into the row of their owner; owners are sorted."""

    def body(owner, x, o):
        i = pl.program_id(0)

        @pl.when((i == 0) | (owner[i] != owner[jnp.maximum(i - 1, 0)]))
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += x[...].sum(0, keepdims=True)

    return call(
        body, shape(3, 1, 128, dtype=F32), owner, x, grid=(6,), tables=1,
        ins=[((8, 128), lambda i, owner: (i, 0))], outs=((None, 1, 128), lambda i, owner: (owner[i], 0, 0)),
    )  # fmt: skip


def segment_sums_reference(owner: Any, x: Any) -> Any:
    """The same in one line."""
    return jnp.zeros((3, 1, 128), x.dtype).at[owner].add(x.reshape(6, 8, 128).sum(1, keepdims=True))


def combined(at: Any, weight: Any, x: Any) -> Any:
    """A mixture of experts put together: two blocks for each, by a table, times their weights."""

    def body(at, weight, x, o):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += weight[...] * x[...]

    return call(
        body, shape(32, 128, dtype=F32), at, weight, x, grid=(4, 2), tables=1,
        ins=[((None, 8, 1), lambda i, s, at: (2 * i + s, 0, 0)), ((8, 128), lambda i, s, at: (at[2 * i + s], 0))],
        outs=((8, 128), lambda i, s, at: (i, 0)),
    )  # fmt: skip


def combined_reference(at: Any, weight: Any, x: Any) -> Any:
    """The same in one line."""
    return (weight * x.reshape(8, 8, 128)[at]).reshape(4, 2, 8, 128).sum(1).reshape(32, 128)


X = "f32[32,128]"
KERNELS = (
    Kernel(streamed, lambda x: 2 * x, (X,), {
        "not waited for": ("get(i).wait()", "pass", "order"),
        "waited for after the load": ("get(i).wait()\n            o[pl.ds(i * 8, 8)] = slots[i % 2] * 2", "o[pl.ds(i * 8, 8)] = slots[i % 2] * 2\n            get(i).wait()", "order"),
        "one slot": ("slots.at[i % 2]", "slots.at[0]"),
        "block i again": ("get(i + 1).start()", "pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], slots.at[(i + 1) % 2], arrived.at[(i + 1) % 2]).start()"),
        "the other slot": ("slots[i % 2] * 2", "slots[(i + 1) % 2] * 2"),
        "stored over the first": ("o[pl.ds(i * 8, 8)]", "o[pl.ds(i // 2 * 8, 8)]"),
    }),
    Kernel(short_tail, lambda x: x.sum(0, keepdims=True), ("f32[20,128]",), {
        "stale rows": ("jnp.where(held, slot[...], 0)", "slot[...]"),
        "mask one too short": ("< many", "< many - 1"),
        "the tail left out": ("range(3)", "range(2)"),
        "set for added": ("o[...] += ", "o[...] = "),
        "waited for at the end": ("get.wait()\n            held = lax.broadcasted_iota(jnp.int32, (8, 128), 0) < many\n            o[...] += jnp.where(held, slot[...], 0).sum(0, keepdims=True)", "held = lax.broadcasted_iota(jnp.int32, (8, 128), 0) < many\n            o[...] += jnp.where(held, slot[...], 0).sum(0, keepdims=True)\n            get.wait()", "order"),
    }),
    Kernel(written, lambda x: x + 1, (X,), {
        "rows exchanged": ("o.at[pl.ds(i * 8, 8)]", "o.at[pl.ds((3 - i) * 8, 8)]"),
        "always the first": ("o.at[pl.ds(i * 8, 8)]", "o.at[pl.ds(0, 8)]"),
        "copied before it is computed": ("slot[...] = x[...] + 1\n        put = pltpu.make_async_copy(slot, o.at[pl.ds(i * 8, 8)], done)\n        put.start()\n        put.wait()", "put = pltpu.make_async_copy(slot, o.at[pl.ds(i * 8, 8)], done)\n        put.start()\n        put.wait()\n        slot[...] = x[...] + 1"),
        "changed while it is copied": ("put.wait()", "slot[...] = x[...]\n        put.wait()", "order"),
    }),
    Kernel(two_sources, lambda x, y: x + y, ("f32[16,128]", "f32[16,128]"), {
        "the second not waited for": ("two.wait()", "pass", "order"),
        "x twice": ("a[...] + b[...]", "a[...] + a[...]"),
        "both into one": ("make_async_copy(y, b, second)", "make_async_copy(y, a, second)"),
        "from one": ("make_async_copy(y, b, second)", "make_async_copy(x, b, second)"),
    }),
    Kernel(gathered, gathered_reference, (np.array([5, 0, 3, 3, 1], np.int32), "f32[48,128]"), {
        "the next of the table": ("at[i], 0))]", "at[(i + 1) % 5], 0))]"),
        "not by the table": ("(at[i], 0))]", "(i, 0))]"),
        "one further": ("(at[i], 0))]", "(jnp.minimum(at[i] + 1, 5), 0))]"),
        "rows of a block turned round": ("o[...] = x[...]", "o[...] = x[...][::-1]"),
    }),
    Kernel(scattered, scattered_reference, (np.array([2, 0, 3, 1], np.int32), X), {
        "the inverse": ("ins=[((8, 128), lambda i, at: (i, 0))], outs=((8, 128), lambda i, at: (at[i], 0))", "ins=[((8, 128), lambda i, at: (at[i], 0))], outs=((8, 128), lambda i, at: (i, 0))"),
        "not by the table": ("(at[i], 0))", "(i, 0))"),
        "two to one place": ("(at[i], 0))", "(at[i // 2 * 2], 0))"),
        "by its own last": ("(at[i], 0))", "(at[3 - i], 0))"),
    }),
    Kernel(rows_copied, lambda at, x: x[at], (np.array([7, 2, 2, 0, 5, 6], np.int32), "f32[8,1,128]"), {
        "to the place that the table says": ("o.at[i], arrived).start()", "o.at[at[i] % 6], arrived).start()"),
        "row i": ("x.at[at[i]], o.at[i], arrived).start()", "x.at[i], o.at[i], arrived).start()"),
        "the last not started": ("for i in range(6):\n            pltpu.make_async_copy(x.at[at[i]], o.at[i], arrived).start()", "for i in range(5):\n            pltpu.make_async_copy(x.at[at[i]], o.at[i], arrived).start()", "order"),
        "none waited for": ("pltpu.make_async_copy(x.at[at[i]], o.at[i], arrived).wait()", "pass", "order"),
    }),
    Kernel(segment_sums, segment_sums_reference, (np.array([0, 0, 1, 2, 2, 2], np.int32), "f32[48,128]"), {
        "zeroed once": ("(i == 0) | (owner[i] != owner[jnp.maximum(i - 1, 0)])", "i == 0"),
        "zeroed each time": ("(i == 0) | (owner[i] != owner[jnp.maximum(i - 1, 0)])", "i >= 0"),
        "a mean": ("x[...].sum", "x[...].mean"),
        "the next owner": ("owner[jnp.maximum(i - 1, 0)]", "owner[jnp.minimum(i + 1, 5)]"),
    }),
    Kernel(combined, combined_reference, (np.array([3, 1, 0, 7, 6, 6, 2, 5], np.int32), "f32[8,8,1]", "f32[64,128]"), {
        "weight of the first": ("(2 * i + s, 0, 0)", "(2 * i, 0, 0)"),
        "weight by the table": ("(2 * i + s, 0, 0)", "(at[2 * i + s], 0, 0)"),
        "the second alone": ("o[...] += weight", "o[...] = weight"),
        "table by columns": ("at[2 * i + s], 0)", "at[4 * s + i], 0)"),
    }),
)  # fmt: skip
"""Of this file."""
