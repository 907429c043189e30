"""Kernels that keep a state along an axis of their grid, for any number of blocks, with twins that do not.

`PAIRS[name] = (right, reference, arguments, twins)`: all are functions of arrays whose extents they read. Each twin is
right at the sizes of the arguments, and wrong from the fourth block on or later. `OTHERS` are right at every size, in
ways that nothing shows.
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
B = 128
Function = Callable[..., Any]


def _iota(shape: tuple[int, ...], dimension: int) -> Any:
    return lax.broadcasted_iota(jnp.int32, shape, dimension)


def matmul(wrong: str = "", block: int = B) -> Function:
    """A product of matrices, summed in scratch memory."""

    def run(x: Any, y: Any) -> Any:
        (m, size), n = x.shape, y.shape[1]
        steps = pl.cdiv(size, block)

        def body(x: Any, y: Any, out: Any, acc: Any, *more: Any) -> None:
            k = pl.program_id(1)

            @pl.when(k == 0)
            def _() -> None:
                acc[...] = jnp.zeros_like(acc)
                if wrong == "counter ends":
                    more[0][0] = 0
                if "float counter" in wrong:
                    more[0][...] = jnp.zeros_like(more[0])

            u, v = x[...], y[...]
            if not isinstance(size, int) or size % block:
                left = size - k * block
                if wrong == "mask of a constant":
                    left = 300 - k * block
                u = jnp.where(_iota(u.shape, 1) < left, u, 0)
                v = jnp.where(_iota(v.shape, 0) < left, v, 0)
            if wrong == "fifth block":
                u = jnp.where(k == 5, 0, u)
            if wrong == "fourth in a branch":
                u = lax.cond(k > 3, lambda z: z * 0, lambda z: z, u)
            if wrong == "every hundredth":
                u = jnp.where(k % 100 == 99, 0, u)
            if wrong == "number of the step":
                u = u * (1 + jnp.maximum(k - 4, 0).astype(F32))
            if wrong == "polynomial of the step":
                f = k.astype(F32)
                u = u * (1 + f * (f - 1) * (f - 2) * (f - 3) * (f - 4) * (f - 5) * (f - 6))
            if wrong == "counter ends":
                u = jnp.where(more[0][0] < 4, u, 0)
                more[0][0] = jnp.minimum(more[0][0] + 1, 4)
            if wrong == "float counter ends":
                u = jnp.where(more[0][0, 0] < 8.0, u, 0)
                more[0][...] = jnp.minimum(more[0][...] + 1.0, 8.0)
            if wrong == "polynomial of a float counter":
                c = more[0][:1, :1]
                u = u * (1 + c * (c - 1) * (c - 2) * (c - 3) * (c - 4) * (c - 5) * (c - 6))
                more[0][...] = more[0][...] + 1.0
            acc[...] += jnp.dot(u, v, preferred_element_type=F32)

            last = steps - 1
            if wrong == "stored at the third":
                last = 2

            @pl.when(k == last)
            def _() -> None:
                out[...] = acc[...]

        index: Callable[..., Any] = lambda i, k: (i, k)  # noqa: E731
        if wrong == "index ends":
            index = lambda i, k: (i, jnp.minimum(k, 4))  # noqa: E731
        if wrong == "index returns":
            index = lambda i, k: (i, k % 8)  # noqa: E731
        scratch = [pltpu.VMEM((32, n), F32)]
        if wrong == "counter ends":
            scratch.append(pltpu.SMEM((1,), jnp.int32))
        if "float counter" in wrong:
            scratch.append(pltpu.VMEM((8, 128), F32))
        return pl.pallas_call(
            body,
            grid=(pl.cdiv(m, 32), steps),
            in_specs=[pl.BlockSpec((32, block), index), pl.BlockSpec((block, n), lambda i, k: (k, 0))],
            out_specs=pl.BlockSpec((32, n), lambda i, k: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((m, n), F32),
            scratch_shapes=scratch,
        )(x, y)

    return run


def rows(kind: str, wrong: str = "") -> Function:
    """Of each row its sum, mean, maximum, variance, sum of squares or the log of its sum of exponentials."""

    def run(x: Any) -> Any:
        m, size = x.shape
        steps = pl.cdiv(size, B)

        def body(x: Any, out: Any, *held: Any) -> None:
            k = pl.program_id(0)
            v = x[...]

            @pl.when(k == 0)
            def _() -> None:
                for each in held:
                    each[...] = jnp.zeros_like(each)
                if kind in ("max", "logsumexp"):
                    held[0][...] = jnp.full_like(held[0], -jnp.inf)

            if wrong == "every third":
                v = jnp.where((k % 3 == 0) & (k > 3), 0, v)
            if kind in ("sum", "mean"):
                held[0][...] += v.sum(1, keepdims=True)
            if kind == "squares":
                held[0][...] += (v * v).sum(1, keepdims=True)
            if kind == "max":
                held[0][...] = jnp.maximum(held[0][...], v.max(1, keepdims=True))
            if kind == "variance":
                held[0][...] += v.sum(1, keepdims=True)
                held[1][...] += (v * v).sum(1, keepdims=True)
            if kind == "logsumexp":
                top = jnp.maximum(held[0][...], v.max(1, keepdims=True))
                scale = jnp.exp(held[0][...] - top)
                if wrong == "no rescale later":
                    scale = jnp.where(k < 6, scale, 1.0)
                held[1][...] = held[1][...] * scale + jnp.exp(v - top).sum(1, keepdims=True)
                held[0][...] = top

            @pl.when(k == steps - 1)
            def _() -> None:
                found = held[0][...]
                if kind == "mean":
                    count = size
                    if wrong == "counts to forty":
                        count = jnp.minimum(steps, 40) * B
                    if wrong == "a polynomial of blocks":
                        odd = found
                        for root in range(1, 9):
                            odd = odd * (jnp.asarray(steps).astype(F32) - root)
                        found = found + odd
                    found = found / count
                if kind == "variance":
                    found = held[1][...] / size - (found / size) ** 2
                if kind == "logsumexp":
                    found = found + jnp.log(held[1][...])
                out[...] = found

        return pl.pallas_call(
            body,
            grid=(steps,),
            in_specs=[pl.BlockSpec((m, B), lambda k: (0, k))],
            out_specs=pl.BlockSpec((m, 1), lambda k: (0, 0)),
            out_shape=jax.ShapeDtypeStruct((m, 1), F32),
            scratch_shapes=[pltpu.VMEM((m, 1), F32)] * (2 if kind in ("variance", "logsumexp") else 1),
        )(x)

    return run


def welford(wrong: str = "") -> Function:
    """Means and variances of rows, block after block (Welford 1962; Chan, Golub and LeVeque 1979)."""

    def run(x: Any) -> Any:
        m, size = x.shape
        steps = size // B

        def body(x: Any, out: Any, mean: Any, squares: Any) -> None:
            k = pl.program_id(0)

            @pl.when(k == 0)
            def _() -> None:
                mean[...] = jnp.zeros_like(mean)
                squares[...] = jnp.zeros_like(squares)

            before = (k * B).astype(F32)
            if wrong == "counts to thirty":
                before = (jnp.minimum(k, 30) * B).astype(F32)
            if wrong == "counts in floats":
                before = jnp.minimum(before, 3000.0)
            after = before + B
            v = x[...]
            here = v.mean(1, keepdims=True)
            apart = here - mean[...]
            mean[...] += apart * B / after
            squares[...] += ((v - here) ** 2).sum(1, keepdims=True) + apart * apart * (before * B / after)

            @pl.when(k == steps - 1)
            def _() -> None:
                out[...] = squares[...] / size

        return pl.pallas_call(
            body,
            grid=(steps,),
            in_specs=[pl.BlockSpec((m, B), lambda k: (0, k))],
            out_specs=pl.BlockSpec((m, 1), lambda k: (0, 0)),
            out_shape=jax.ShapeDtypeStruct((m, 1), F32),
            scratch_shapes=[pltpu.VMEM((m, 1), F32)] * 2,
        )(x)

    return run


def kept_in_output(wrong: str = "") -> Function:
    """A sum of blocks of rows, kept in the block of the output."""

    def run(x: Any) -> Any:
        size, n = x.shape

        def body(x: Any, out: Any) -> None:
            k = pl.program_id(0)

            @pl.when(k == 0)
            def _() -> None:
                out[...] = jnp.zeros_like(out)

            if wrong == "zeroed again":

                @pl.when(k == 16)
                def _() -> None:
                    out[...] = jnp.zeros_like(out)

            out[...] += x[...]

        return pl.pallas_call(
            body,
            grid=(size // 8,),
            in_specs=[pl.BlockSpec((8, n), lambda k: (k, 0))],
            out_specs=pl.BlockSpec((8, n), lambda k: (0, 0)),
            out_shape=jax.ShapeDtypeStruct((8, n), F32),
        )(x)

    return run


def attention(wrong: str = "") -> Function:
    """Online softmax over blocks of keys."""

    def run(q: Any, k: Any, v: Any) -> Any:
        (n, d), size = q.shape, k.shape[0]
        steps = size // B

        def body(q: Any, k: Any, v: Any, out: Any, top: Any, total: Any, acc: Any, *parts: Any) -> None:
            j = pl.program_id(1)

            @pl.when(j == 0)
            def _() -> None:
                top[...] = jnp.full_like(top, -jnp.inf)
                total[...] = jnp.zeros_like(total)
                acc[...] = jnp.zeros_like(acc)

            s = q[...] @ k[...].T
            if wrong == "block 9 of V":
                s = jnp.where(j == 9, -1e30, s)
            new = jnp.maximum(top[...], s.max(1, keepdims=True))
            scale, p = jnp.exp(top[...] - new), jnp.exp(s - new)
            total[...] = total[...] * scale + p.sum(1, keepdims=True)
            if wrong == "acc is not rescaled later":
                scale = jnp.where(j > 7, 1.0, scale)
            if wrong == "scratch of four blocks":
                parts[0][j % 4] = p
                p = parts[0][j % 4]
            if wrong == "scratch of eight blocks":
                parts[0][jnp.minimum(j, 7)] = s
                p = jnp.exp(parts[0][jnp.minimum(j, 7)] - new)
            acc[...] = acc[...] * scale + p @ v[...]
            top[...] = new

            @pl.when(j == pl.num_programs(1) - 1)
            def _() -> None:
                out[...] = acc[...] / total[...]

        index: Callable[..., Any] = lambda i, j: (j, 0)  # noqa: E731
        if wrong == "V stays":
            index = lambda i, j: (jnp.where(j < 5, j, 5), 0)  # noqa: E731
        scratch = [pltpu.VMEM((32, 1), F32), pltpu.VMEM((32, 1), F32), pltpu.VMEM((32, d), F32)]
        if "scratch" in wrong:
            scratch.append(pltpu.VMEM((8 if "eight" in wrong else 4, 32, B), F32))
        return pl.pallas_call(
            body,
            grid=(n // 32, steps),
            in_specs=[
                pl.BlockSpec((32, d), lambda i, j: (i, 0)),
                pl.BlockSpec((B, d), lambda i, j: (j, 0)),
                pl.BlockSpec((B, d), index),
            ],
            out_specs=pl.BlockSpec((32, d), lambda i, j: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((n, d), F32),
            scratch_shapes=scratch,
        )(q, k, v)

    return run


def of_attention(q: Any, k: Any, v: Any) -> Any:
    """Its reference."""
    return jax.nn.softmax(q @ k.T, -1) @ v


def running(kind: str, wrong: str = "") -> Function:
    """Sums or maxima from the first row to each row."""

    def run(x: Any) -> Any:
        size, n = x.shape

        def body(x: Any, out: Any, held: Any) -> None:
            k = pl.program_id(0)

            @pl.when(k == 0)
            def _() -> None:
                held[...] = jnp.full_like(held, 0.0 if kind == "sum" else -jnp.inf)

            before = held[...]
            if wrong == "forgets":
                before = jnp.where(k == 11, jnp.zeros_like(before), before)
            here = before + jnp.cumsum(x[...], 0) if kind == "sum" else jnp.maximum(before, lax.cummax(x[...], axis=0))
            out[...] = here
            held[...] = here[7:8]

        return pl.pallas_call(
            body,
            grid=(size // 8,),
            in_specs=[pl.BlockSpec((8, n), lambda k: (k, 0))],
            out_specs=pl.BlockSpec((8, n), lambda k: (k, 0)),
            out_shape=jax.ShapeDtypeStruct((size, n), F32),
            scratch_shapes=[pltpu.VMEM((1, n), F32)],
        )(x)

    return run


def _dot(x: Any, y: Any) -> Any:
    return jnp.dot(x, y, preferred_element_type=F32)


def _by_hand(x: Any) -> Any:
    """A reference that knows how many blocks there are."""
    return jnp.where(_iota(x.shape, 1) < 1024, x, 0).sum(1, keepdims=True)


def _with_branch(x: Any) -> Any:
    return rows("sum")(x) if x.shape[1] < 1000 else rows("squares")(x)


PRODUCT, WIDE = ("f32[64,384]", "f32[384,64]"), ("f32[16,512]",)
PAIRS: dict[str, tuple[Function, Function, tuple[str, ...], dict[str, Function]]] = {
    "matmul": (matmul(), _dot, PRODUCT, {
        name: matmul(name) for name in (
            "fifth block", "fourth in a branch", "every hundredth", "number of the step", "polynomial of the step",
            "counter ends", "float counter ends", "polynomial of a float counter",
            "stored at the third", "index ends", "index returns",
        )
    }),
    "matmul, ragged": (matmul(), _dot, ("f32[64,300]", "f32[300,64]"), {
        name: matmul(name) for name in ("fifth block", "mask of a constant", "stored at the third", "index ends")
    }),
    "sum": (rows("sum"), lambda x: x.sum(1, keepdims=True), WIDE, {
        "every third": rows("sum", "every third"), "a branch of Python": _with_branch,
    }),
    "mean": (rows("mean"), lambda x: x.mean(1, keepdims=True), WIDE, {
        name: rows("mean", name) for name in ("counts to forty", "a polynomial of blocks")
    }),
    "squares": (rows("squares"), lambda x: (x * x).sum(1, keepdims=True), WIDE, {
        "every third": rows("squares", "every third"),
    }),
    "max": (rows("max"), lambda x: x.max(1, keepdims=True), WIDE, {"every third": rows("max", "every third")}),
    "variance": (rows("variance"), lambda x: (x * x).mean(1, keepdims=True) - x.mean(1, keepdims=True) ** 2, WIDE, {
        "every third": rows("variance", "every third"),
    }),
    "welford": (welford(), lambda x: jnp.var(x, 1, keepdims=True), ("f32[8,512]",), {
        name: welford(name) for name in ("counts to thirty", "counts in floats")
    }),
    "logsumexp": (rows("logsumexp"), lambda x: jax.nn.logsumexp(x, 1, keepdims=True), WIDE, {
        "no rescale later": rows("logsumexp", "no rescale later"),
    }),
    "kept in the output": (kept_in_output(), lambda x: x.reshape(-1, 8, 128).sum(0), ("f32[64,128]",), {
        "zeroed again": kept_in_output("zeroed again"),
    }),
    "attention": (attention(), of_attention, ("f32[64,64]", "f32[512,64]", "f32[512,64]"), {
        name: attention(name) for name in (
            "block 9 of V", "acc is not rescaled later", "scratch of eight blocks", "V stays",
        )
    }),
    "running sum": (running("sum"), lambda x: jnp.cumsum(x, 0), ("f32[40,128]",), {
        "forgets": running("sum", "forgets"),
    }),
    "running maximum": (running("max"), lambda x: lax.cummax(x, axis=0), ("f32[40,128]",), {
        "forgets": running("max", "forgets"),
    }),
}  # fmt: skip
OTHERS = {
    "a reference of at most eight blocks": (rows("sum"), _by_hand, WIDE),
    "a scratch that goes around": (attention("scratch of four blocks"), of_attention, PAIRS["attention"][2]),
}
