"""Functions that keep a state in a loop, for any number of blocks, with twins that do not.

As `block_cases`: `PAIRS[name] = (right, reference, arguments, twins)`, of which each twin is right at the sizes of the
arguments, of at most four blocks, and wrong from the fifth block on or later. `OTHERS` are right at every size, in ways
that nothing shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32 = jnp.float32
B = 8
Function = Callable[..., Any]


def _later(wrong: str, k: Any, value: Any) -> Any:
    """A value, other from the fifth block on or later."""
    if wrong == "sixth block":
        return jnp.where(k == 5, 0, value)
    if wrong == "every third":
        return jnp.where((k % 3 == 0) & (k > 3), 0, value)
    if wrong == "in a branch":
        return lax.cond(k > 6, lambda z: z * 0, lambda z: z, value)
    if wrong == "number of the step":
        return value * (1 + jnp.maximum(k - 9, 0).astype(F32))
    return value


def _start(wrong: str, k: Any) -> Any:
    if wrong == "index ends":
        return jnp.minimum(k, 5) * B
    if wrong == "index returns":
        return (k % 7) * B
    return k * B


def rows(kind: str, wrong: str = "", keeps: str = "carry") -> Function:
    """Of each row a sum, or the log of a sum of exponentials, in a loop inside of a program. keeps: where."""

    def run(x: Any) -> Any:
        m, size = x.shape
        steps = size // B
        if wrong == "fewer steps":
            steps = jax.core.min_dim(steps, 20)

        def begun() -> Any:
            if kind == "sum":
                return (jnp.zeros((8, 1), F32),)
            return jnp.full((8, 1), -jnp.inf), jnp.zeros((8, 1), F32)

        def body(x: Any, out: Any, *held: Any) -> None:
            def after(k: Any, state: Any) -> Any:
                v = _later(wrong, k, x[:, pl.ds(_start(wrong, k), B)])
                if kind == "sum":
                    return (state[0] + v.sum(1, keepdims=True),)
                top = jnp.maximum(state[0], v.max(1, keepdims=True))
                scale = jnp.exp(state[0] - top)
                if wrong == "no rescale later":
                    scale = jnp.where(k < 8, scale, 1.0)
                return top, state[1] * scale + jnp.exp(v - top).sum(1, keepdims=True)

            def in_memory(k: Any, count: Any) -> Any:
                for each, value in zip(held, after(k, [each[...] for each in held]), strict=True):
                    kept = jnp.where(count < 6, value, each[...]) if wrong == "counter ends" else value
                    each[...] = kept
                return count + 1

            if keeps == "carry":
                found = lax.fori_loop(0, steps, after, begun())
            else:
                for each, value in zip(held, begun(), strict=True):
                    each[...] = value
                lax.fori_loop(0, steps, in_memory, 0)
                found = [each[...] for each in held]
            out[...] = found[0] if kind == "sum" else found[0] + jnp.log(found[1])

        return pl.pallas_call(
            body,
            grid=(m // 8,),
            in_specs=[pl.BlockSpec((8, size), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 1), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((m, 1), F32),
            scratch_shapes=[pltpu.VMEM((8, 1), F32)] * (0 if keeps == "carry" else len(begun())),
        )(x)

    return run


def attention(wrong: str = "") -> Function:
    """Online softmax in a loop over blocks of keys."""

    def run(q: Any, k: Any, v: Any) -> Any:
        (n, d), size = q.shape, k.shape[0]

        def body(q: Any, k: Any, v: Any, out: Any) -> None:
            def step(j: Any, state: Any) -> Any:
                top, total, acc, *count = state
                s = _later(wrong, j, q[...] @ k[pl.ds(j * B, B), :].T)
                if wrong == "float counter ends":
                    s = jnp.where(count[0] < 7.0, s, 0.0)
                new = jnp.maximum(top, s.max(1, keepdims=True))
                scale, p = jnp.exp(top - new), jnp.exp(s - new)
                total = total * scale + p.sum(1, keepdims=True)
                if wrong == "acc is not rescaled later":
                    scale = jnp.where(j > 7, 1.0, scale)
                acc = acc * scale + p @ v[pl.ds(_start(wrong, j), B), :]
                return new, total, acc, *(c + 1.0 for c in count)

            begun = jnp.full((8, 1), -jnp.inf), jnp.zeros((8, 1)), jnp.zeros((8, d))
            if wrong == "float counter ends":
                begun += (jnp.zeros((8, 1)),)
            _, total, acc, *_ = lax.fori_loop(0, size // B, step, begun)
            out[...] = acc / total

        whole = pl.BlockSpec((size, d), lambda i: (0, 0))
        part = pl.BlockSpec((8, d), lambda i: (i, 0))
        return pl.pallas_call(
            body, grid=(n // 8,), in_specs=[part, whole, whole], out_specs=part,
            out_shape=jax.ShapeDtypeStruct((n, d), F32),
        )(q, k, v)  # fmt: skip

    return run


def of_attention(q: Any, k: Any, v: Any) -> Any:
    """Its reference."""
    return jax.nn.softmax(q @ k.T, -1) @ v


def matmul(wrong: str = "") -> Function:
    """A product, summed in a loop over blocks of what is contracted."""

    def run(x: Any, y: Any) -> Any:
        (m, size), n = x.shape, y.shape[1]

        def body(x: Any, y: Any, out: Any) -> None:
            def step(k: Any, acc: Any) -> Any:
                u = _later(wrong, k, x[:, pl.ds(k * B, B)])
                return acc + u @ y[pl.ds(_start(wrong, k), B), :]

            out[...] = lax.fori_loop(0, size // B, step, jnp.zeros((m, n), F32))

        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((m, n), F32))(x, y)

    return run


def mean(wrong: str = "") -> Function:
    """Means of columns in a loop of JAX, over blocks of rows."""

    def run(x: Any) -> Any:
        size = x.shape[0]

        def step(k: Any, total: Any) -> Any:
            at = jnp.minimum(k, 6) * B if wrong == "index ends" else k * B
            return total + _later(wrong, k, lax.dynamic_slice_in_dim(x, at, B)).sum(0)

        return lax.fori_loop(0, size // B, step, jnp.zeros(x.shape[1:], F32)) / size

    return run


def scanned(kind: str, wrong: str = "") -> Function:
    """A sum, or a maximum, of blocks that `scan` hands to each step."""

    def run(x: Any) -> Any:
        def step(state: Any, block: Any) -> Any:
            k, total = state
            block = _later(wrong, k, block)
            total = total + block.sum(0) if kind == "sum" else jnp.maximum(total, block.max(0))
            return (k + 1, total), None

        begun = jnp.full(x.shape[1:], 0.0 if kind == "sum" else -jnp.inf, F32)
        return lax.scan(step, (0, begun), x.reshape(-1, B, x.shape[1]))[0][1]

    return run


def running(wrong: str = "") -> Function:
    """Sums from the first row to each row: what each step gives is stacked."""

    def run(x: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            k, total = state
            kept = jnp.where(k == 11, 0.0, total) if wrong == "forgets" else total
            total = kept + row
            return (k + 1, total), total

        return lax.scan(step, (0, jnp.zeros(x.shape[1:], F32)), x)[1]

    return run


def recurrence(wrong: str = "") -> Function:
    """h = a h + x, row by row, in blocks of rows in a kernel."""

    def run(a: Any, x: Any) -> Any:
        size, n = x.shape

        def body(a: Any, x: Any, out: Any) -> None:
            def step(k: Any, h: Any) -> Any:
                u, v = a[pl.ds(k * B, B), :], x[pl.ds(k * B, B), :]
                for row in range(B):
                    h = u[row : row + 1] * h + v[row : row + 1]
                return jnp.where(k == 9, v[B - 1 :], h) if wrong == "restarts" else h

            out[...] = lax.fori_loop(0, size // B, step, jnp.zeros((1, n), F32))

        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((1, n), F32))(a, x)

    return run


def of_recurrence(a: Any, x: Any) -> Any:
    """Its reference, row by row."""
    return lax.scan(lambda h, row: (row[0] * h + row[1], None), jnp.zeros((1, x.shape[1])), (a[:, None], x[:, None]))[0]


def _with_branch(x: Any) -> Any:
    return rows("sum")(x) if x.shape[1] < 1000 else rows("sum")(2 * x)


def _total(x: Any) -> Any:
    return x.sum(1, keepdims=True)


def _logsumexp(x: Any) -> Any:
    return jax.nn.logsumexp(x, 1, keepdims=True)


def _back(x: Any) -> Any:
    return lax.scan(lambda t, block: (t + block.sum(0), None), jnp.zeros(4), x.reshape(-1, B, 4), reverse=True)[0]


def _two_loops(x: Any) -> Any:
    blocks = x.reshape(-1, B, 4)
    top = lax.scan(lambda t, block: (jnp.maximum(t, block.max(0)), None), jnp.full(4, -jnp.inf), blocks)[0]
    return top + jnp.log(lax.scan(lambda t, block: (t + jnp.exp(block - top).sum(0), None), jnp.zeros(4), blocks)[0])


def _peeled(x: Any) -> Any:
    first = x[:B].sum(0)
    return lax.fori_loop(1, x.shape[0] // B, lambda k, t: t + lax.dynamic_slice_in_dim(x, k * B, B).sum(0), first)


WIDE, ROWS = ("f32[16,32]",), ("f32[32,4]",)
LATER = ("sixth block", "every third", "in a branch", "number of the step")
PAIRS: dict[str, tuple[Function, Function, tuple[str, ...], dict[str, Function]]] = {
    "sum in a loop": (rows("sum"), _total, WIDE, {
        **{name: rows("sum", name) for name in (*LATER, "index ends", "index returns", "fewer steps")},
        "a branch of Python": _with_branch,
    }),
    "sum in a loop, in memory": (rows("sum", keeps="memory"), _total, WIDE, {
        name: rows("sum", name, "memory") for name in ("sixth block", "counter ends", "index ends")
    }),
    "logsumexp in a loop": (rows("logsumexp"), _logsumexp, WIDE, {
        name: rows("logsumexp", name) for name in ("no rescale later", "in a branch")
    }),
    "logsumexp in a loop, in memory": (rows("logsumexp", keeps="memory"), _logsumexp, WIDE, {
        name: rows("logsumexp", name, "memory") for name in ("no rescale later", "counter ends")
    }),
    "attention in a loop": (attention(), of_attention, ("f32[16,4]", "f32[32,4]", "f32[32,4]"), {
        name: attention(name) for name in (
            "sixth block", "index ends", "index returns", "acc is not rescaled later", "float counter ends",
        )
    }),
    "matmul in a loop": (matmul(), lambda x, y: x @ y, ("f32[8,32]", "f32[32,8]"), {
        name: matmul(name) for name in ("every third", "number of the step", "index returns")
    }),
    "mean in a loop of JAX": (mean(), lambda x: x.mean(0), ROWS, {
        name: mean(name) for name in ("in a branch", "index ends")
    }),
    "sum of a scan": (scanned("sum"), lambda x: x.sum(0), ROWS, {
        name: scanned("sum", name) for name in ("sixth block", "number of the step")
    }),
    "maximum of a scan": (scanned("max"), lambda x: x.max(0), ROWS, {
        "every third": scanned("max", "every third"),
    }),
    "running sums of a scan": (running(), lambda x: jnp.cumsum(x, 0), ("f32[8,4]",), {"forgets": running("forgets")}),
    "a loop after a loop": (_two_loops, lambda x: jax.nn.logsumexp(x, 0), ROWS, {}),
    "recurrence in a loop": (recurrence(), of_recurrence, ("f32[32,4]", "f32[32,4]"), {
        "restarts": recurrence("restarts"),
    }),
}  # fmt: skip

OTHERS: dict[str, tuple[Function, Function, tuple[str, ...]]] = {
    "from the last to the first": (_back, lambda x: x.sum(0), ROWS),
    "the first block before the loop": (_peeled, lambda x: x.sum(0), ROWS),
    "a reference that knows a size": (
        mean(), lambda x: x.sum(0) / jnp.where(x.shape[0] > 999, 1, x.shape[0]), ROWS,
    ),
}  # fmt: skip
