"""Right kernels made of random parts: blocks, orders of the grid, loops instead of grid axes, forms of one function.

The reference is another form of the same function, without a kernel. Which parts are taken is drawn; float64 has the
last word on whether both are the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from benchmarks.wrong_kernels.made import call, shape


@dataclass(frozen=True)
class Made:
    """A kernel and its reference. arguments: of both.  words: what was drawn."""

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: tuple[Any, ...]
    words: str


def f32() -> Any:
    """Of memory: the widest float that JAX has now, so that float64 can be the truth."""
    return jnp.float64 if jax.config.jax_enable_x64 else jnp.float32


def iota(like: Any, dim: int) -> Any:
    """Indices along a dimension."""
    return lax.broadcasted_iota(jnp.int32, like.shape, dim)


def made(draw: random.Random) -> Made:
    """A random one."""
    return draw.choice((matmul, rows, attention, sums, recurrence))(draw)


POINTWISE: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "twice": (lambda x: 2 * x, lambda x: x + x, lambda x: 3 * x - x, lambda x: x / 0.5),
    "silu": (
        lambda x: x * jax.nn.sigmoid(x), lambda x: x / (1 + jnp.exp(-x)), lambda x: x * jnp.exp(x) / (1 + jnp.exp(x)),
        lambda x: x * (0.5 * jnp.tanh(0.5 * x) + 0.5), lambda x: x - x / (1 + jnp.exp(x)), jax.nn.silu,
    ),
    "gelu": (
        lambda x: 0.5 * x * (1 + jnp.tanh(0.7978845608028654 * (x + 0.044715 * x**3))),
        lambda x: 0.5 * x * (1 + jnp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x))),
        lambda x: x * jax.nn.sigmoid(1.5957691216057308 * (x + 0.044715 * x**3)),
    ),
    "relu": (
        jax.nn.relu, lambda x: jnp.maximum(x, 0), lambda x: jnp.where(x > 0, x, 0), lambda x: jnp.where(x <= 0, 0, x),
        lambda x: (x + jnp.abs(x)) / 2,
    ),
    "product": (
        lambda x: (x + 1) * (x - 1), lambda x: x * x - 1, lambda x: x**2 - 1.0, lambda x: (x - 1) * x + (x - 1),
    ),
    "tanh": (
        jnp.tanh, lambda x: 2 * jax.nn.sigmoid(2 * x) - 1, lambda x: 1 - 2 / (1 + jnp.exp(2 * x)),
        lambda x: -jnp.tanh(-x),
    ),
    "bump": (
        lambda x: jnp.exp(-x * x), lambda x: 1 / jnp.exp(x * x), lambda x: jnp.exp(-0.5 * x**2) ** 2,
        lambda x: jnp.exp2(-x * x * 1.4426950408889634),
    ),
    "capped": (lambda x: 5 * jnp.tanh(x / 5), lambda x: 5.0 * jnp.tanh(0.2 * x)),
    "clipped": (
        lambda x: jnp.clip(x, -1, 1), lambda x: jnp.minimum(jnp.maximum(x, -1), 1), lambda x: -jnp.clip(-x, -1, 1),
    ),
}  # fmt: skip
"""Forms of one function of each element."""


def _mean(x: Any) -> Any:
    return x.mean(-1, keepdims=True)


def _sum(x: Any) -> Any:
    return x.sum(-1, keepdims=True)


def _top(x: Any) -> Any:
    return x.max(-1, keepdims=True)


def _each(*forms: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], ...]:
    return forms


ROWWISE: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "softmax": _each(
        lambda x: jax.nn.softmax(x, -1), lambda x: jnp.exp(x - _top(x)) / _sum(jnp.exp(x - _top(x))),
        lambda x: jnp.exp(x) / _sum(jnp.exp(x)), lambda x: jnp.exp(x - jnp.log(_sum(jnp.exp(x)))),
        lambda x: jnp.exp(x - _top(x)) * (1 / _sum(jnp.exp(x - _top(x)))),
        lambda x: 1 / (_sum(jnp.exp(x - _top(x))) * jnp.exp(_top(x) - x)),
        lambda x: jnp.exp(x - _mean(x)) / _sum(jnp.exp(x - _mean(x))),
        lambda x: jnp.exp(jax.nn.log_softmax(x, -1)),
    ),
    "log softmax": _each(
        lambda x: jax.nn.log_softmax(x, -1), lambda x: x - _top(x) - jnp.log(_sum(jnp.exp(x - _top(x)))),
        lambda x: x - jnp.log(_sum(jnp.exp(x))), lambda x: x - jax.nn.logsumexp(x, axis=-1, keepdims=True),
    ),
    "layer norm": _each(
        lambda x: (x - _mean(x)) / jnp.sqrt(_mean((x - _mean(x)) ** 2) + 1e-5),
        lambda x: (x - _mean(x)) * lax.rsqrt(_mean(x * x) - _mean(x) ** 2 + 1e-5),
        lambda x: (x - _sum(x) / x.shape[-1]) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
        lambda x: (lambda r: x * r - _mean(x) * r)(lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)),
    ),
    "rms norm": _each(
        lambda x: x * lax.rsqrt(_mean(x * x) + 1e-6), lambda x: x / jnp.sqrt(_sum(x * x) / x.shape[-1] + 1e-6),
        lambda x: x / jnp.sqrt(_sum(x**2) * (1 / x.shape[-1]) + 1e-6),
        lambda x: x * (_mean(jnp.square(x)) + 1e-6) ** -0.5,
    ),
    "unit": _each(
        lambda x: x / jnp.sqrt(_sum(x * x)), lambda x: x * lax.rsqrt(_sum(x * x)),
        lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True),
    ),
    "variance": _each(
        lambda x: jnp.broadcast_to(x.var(-1, keepdims=True), x.shape),
        lambda x: _mean(x * x) - _mean(x) ** 2 + 0 * x, lambda x: _mean((x - _mean(x)) ** 2) + x - x,
    ),
    "top": _each(
        lambda x: x - _top(x), lambda x: x + (-x).min(-1, keepdims=True), lambda x: -(_top(x) - x),
        lambda x: x - jnp.maximum(_top(x[:, ::2]), _top(x[:, 1::2])),
    ),
    "entropy": _each(
        lambda x: x * 0 - _sum(jax.nn.softmax(x, -1) * jax.nn.log_softmax(x, -1)),
        lambda x: jnp.log(_sum(jnp.exp(x))) - _sum(jnp.exp(x) * x) / _sum(jnp.exp(x)) + 0 * x,
    ),
}  # fmt: skip
"""Forms of one function of each row."""


def _pair(draw: random.Random, forms: dict[str, tuple[Callable[[Any], Any], ...]]) -> tuple[str, Any, Any, str]:
    name = draw.choice(sorted(forms))
    ours, theirs = (draw.randrange(len(forms[name])) for _ in range(2))
    return name, forms[name][ours], forms[name][theirs], f"{name} {ours} for {theirs}"


def rows(draw: random.Random) -> Made:
    """A function of rows: some rows at a time, in any order, as grid axis or loop, with columns beyond the end."""
    name, ours, theirs, words = _pair(draw, ROWWISE if draw.random() < 0.6 else POINTWISE)
    many, columns = draw.choice((16, 24, 32)), draw.choice((32, 48, 128))
    block = draw.choice([b for b in (4, 8, 16) if many % b == 0])
    how = draw.choice(("grid", "grid backwards", "loop", "python loop", "rows alone", "ragged"))
    blocks = many // block

    def body(x: Any, o: Any) -> None:
        o[...] = ours(x[...])

    def loop(x: Any, o: Any) -> None:
        def step(k: Any, _: Any) -> Any:
            o[pl.ds(k * block, block)] = ours(x[pl.ds(k * block, block)])
            return 0

        if how == "loop":
            lax.fori_loop(0, blocks, step, 0)
            return
        for k in reversed(range(blocks)):
            step(k, 0)

    def alone(x: Any, o: Any) -> None:
        for k in range(block):
            o[k : k + 1] = ours(x[k : k + 1])

    def function(x: Any) -> Any:
        out = shape(many, columns, dtype=f32())
        if how in ("loop", "python loop"):
            return call(loop, out, x)
        at = (lambda i: (blocks - 1 - i, 0)) if how == "grid backwards" else (lambda i: (i, 0))
        size = block + 1 if how == "ragged" else block
        spec = ((size, columns), at)
        made = alone if how == "rows alone" else body
        return call(made, out, x, grid=(-(-many // size),), ins=[spec], outs=spec)

    return Made(f"rows: {name}", function, theirs, (f"f32[{many},{columns}]",), f"{words}, {how}, {many} by {block}")


def matmul(draw: random.Random) -> Made:
    """A product with an epilogue: any blocks, any order of the axes, k as a grid axis, a loop, or at once."""
    name, ours, theirs, words = _pair(draw, POINTWISE)
    m, n = draw.choice((16, 32)), draw.choice((16, 32))
    k = draw.choice((24, 32, 40))
    bm, bn, bk = draw.choice((8, 16)), draw.choice((8, 16)), draw.choice((8, 16, k))
    how = draw.choice(("scratch", "output", "loop", "once"))
    product = draw.choice(("dot", "einsum", "transposed", "outer", "at"))
    swapped = draw.random() < 0.5
    steps = -(-k // bk)
    ragged = k % bk != 0

    def dot(x: Any, y: Any) -> Any:
        if product == "einsum":
            return jnp.einsum("ik,kj->ij", x, y)
        if product == "transposed":
            return lax.dot_general(y, x, (((0,), (1,)), ((), ()))).T
        if product == "outer":
            return (x[:, :, None] * y[None]).sum(1)
        return x @ y if product == "at" else jnp.dot(x, y, preferred_element_type=f32())

    def masked(x: Any, y: Any, s: Any) -> tuple[Any, Any]:
        if not ragged:
            return x, y
        return jnp.where(iota(x, 1) < k - s * bk, x, 0), jnp.where(s * bk + iota(y, 0) < k, y, 0)

    def in_scratch(x: Any, y: Any, o: Any, acc: Any) -> None:
        s = pl.program_id(2)

        @pl.when(s == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += dot(*masked(x[...], y[...], s))

        @pl.when(s == steps - 1)
        def _() -> None:
            o[...] = ours(acc[...])

    def in_output(x: Any, y: Any, o: Any) -> None:
        s = pl.program_id(2)
        part = dot(*masked(x[...], y[...], s))
        o[...] = jnp.where(s == 0, part, o[...] + part)

        @pl.when(s == steps - 1)
        def _() -> None:
            o[...] = ours(o[...])

    def by_loop(x: Any, y: Any, o: Any) -> None:
        size = 8

        def step(s: Any, total: Any) -> Any:
            return total + dot(x[:, pl.ds(s * size, size)], y[pl.ds(s * size, size)])

        o[...] = ours(lax.fori_loop(0, k // size, step, jnp.zeros(o.shape, f32())))

    def at_once(x: Any, y: Any, o: Any) -> None:
        o[...] = ours(dot(x[...], y[...]))

    def function(x: Any, y: Any) -> Any:
        out, grid = shape(m, n, dtype=f32()), (m // bm, n // bn)
        if swapped:
            grid = grid[::-1]

        def at(place: Callable[..., Any]) -> Callable[..., Any]:
            return (lambda j, i, *s: place(i, j, *s)) if swapped else place

        if how in ("scratch", "output"):
            ins = [((bm, bk), at(lambda i, j, s: (i, s))), ((bk, bn), at(lambda i, j, s: (s, j)))]
            scratch = [pltpu.VMEM((bm, bn), f32())] if how == "scratch" else []
            body = in_scratch if how == "scratch" else in_output
            own = ((bm, bn), at(lambda i, j, s: (i, j)))
            return call(body, out, x, y, grid=(*grid, steps), ins=ins, outs=own, scratch=scratch)
        ins = [((bm, k), at(lambda i, j: (i, 0))), ((k, bn), at(lambda i, j: (0, j)))]
        body = by_loop if how == "loop" else at_once
        return call(body, out, x, y, grid=grid, ins=ins, outs=((bm, bn), at(lambda i, j: (i, j))))

    said = f"{words}, {how}, {product}, {m}x{k}x{n} by {bm}x{bk}x{bn}{', j first' if swapped else ''}"
    return Made(f"matmul: {name}", function, lambda x, y: theirs(x @ y), (f"f32[{m},{k}]", f"f32[{k},{n}]"), said)


def attention(draw: random.Random) -> Made:
    """Attention of one head: online over blocks or at once, with or without a causal mask, scaled anywhere."""
    t, d = draw.choice((32, 48)), 32
    bq, bk = draw.choice((8, 16)), draw.choice((8, 16))
    causal, skipped = draw.random() < 0.5, draw.random() < 0.5
    how = draw.choice(("grid", "loop", "once"))
    scaled = draw.choice(("scores", "queries", "keys", "exponent"))
    low = draw.choice((-np.inf, -1e30)) if not causal else -1e30
    late = draw.random() < 0.5
    form = draw.choice(("softmax", "plain", "log"))

    def scores(q: Any, k: Any, i: Any, j: Any) -> Any:
        by = d**-0.5
        q, k = (q * by if scaled == "queries" else q), (k * by if scaled == "keys" else k)
        s = jnp.dot(q, k.T)
        s = s / np.sqrt(d) if scaled == "scores" else s * by if scaled == "exponent" else s
        if not causal:
            return s
        return jnp.where(i * bq + iota(s, 0) >= j * bk + iota(s, 1), s, low)

    def step(q: Any, k: Any, v: Any, i: Any, j: Any, state: Any) -> Any:
        m, total, acc = state
        s = scores(q, k, i, j)
        new = jnp.maximum(m, s.max(1, keepdims=True))
        p, old = jnp.exp(s - new), jnp.exp(m - new)
        return new, old * total + p.sum(1, keepdims=True), old * acc + p @ v

    def start() -> Any:
        return jnp.full((bq, 1), low, f32()), jnp.zeros((bq, 1), f32()), jnp.zeros((bq, d), f32())

    def in_grid(q: Any, k: Any, v: Any, o: Any, m: Any, total: Any, acc: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)

        @pl.when(j == 0)
        def _() -> None:
            m[...], total[...], acc[...] = start()

        def go() -> None:
            m[...], total[...], acc[...] = step(q[...], k[...], v[...], i, j, (m[...], total[...], acc[...]))

        pl.when(j * bk < (i + 1) * bq)(go) if causal and skipped else go()

        @pl.when(j == t // bk - 1)
        def _() -> None:
            o[...] = acc[...] / total[...]

    def in_loop(q: Any, k: Any, v: Any, o: Any) -> None:
        i = pl.program_id(0)

        def go(j: Any, state: Any) -> Any:
            return step(q[...], k[pl.ds(j * bk, bk)], v[pl.ds(j * bk, bk)], i, j, state)

        blocks = pl.cdiv((i + 1) * bq, bk) if causal and skipped else t // bk
        _, total, acc = lax.fori_loop(0, blocks, go, start())
        o[...] = acc * (1 / total)

    def at_once(q: Any, k: Any, v: Any, o: Any) -> None:
        s = scores(q[...], k[...], pl.program_id(0), 0)
        p = jnp.exp(s - s.max(1, keepdims=True))
        o[...] = p @ v[...] / p.sum(1, keepdims=True) if late else (p / p.sum(1, keepdims=True)) @ v[...]

    def function(q: Any, k: Any, v: Any) -> Any:
        out = shape(t, d, dtype=f32())
        if how == "grid":
            keys, own = ((bk, d), lambda i, j: (j, 0)), ((bq, d), lambda i, j: (i, 0))
            scratch = [pltpu.VMEM((bq, n), f32()) for n in (1, 1, d)]
            grid = (t // bq, t // bk)
            return call(in_grid, out, q, k, v, grid=grid, ins=[own, keys, keys], outs=own, scratch=scratch)
        whole, own = ((t, d), lambda i: (0, 0)), ((bq, d), lambda i: (i, 0))
        body = in_loop if how == "loop" else at_once
        return call(body, out, q, k, v, grid=(t // bq,), ins=[own, whole, whole], outs=own)

    def reference(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("td,sd->ts", q, k) / np.sqrt(d)
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf) if causal else s
        if form == "softmax":
            return jax.nn.softmax(s, -1) @ v
        if form == "log":
            return jnp.exp(s - jax.nn.logsumexp(s, axis=-1, keepdims=True)) @ v
        return jnp.exp(s) @ v / jnp.exp(s).sum(-1, keepdims=True)

    shown = f"{'causal' if causal else 'whole'}, {'skipping' if skipped else 'all'}, {t} by {bq}x{bk}, {low}"
    words = f"{how}, {shown}, scale at {scaled}, {form}"
    return Made("attention", function, reference, (f"f32[{t},{d}]",) * 3, words)


def sums(draw: random.Random) -> Made:
    """A sum of three axes in any order, over grid axes in any order."""
    sizes, blocks = draw.sample((8, 16, 24), 3), draw.sample((4, 8, 8), 3)
    order = draw.choice(list(permutations(range(2))))
    kind = draw.choice(("sum", "mean", "max", "squares"))
    count = [s // b for s, b in zip(sizes, blocks, strict=True)]

    def body(x: Any, o: Any) -> None:
        first = (pl.program_id(1) == 0) & (pl.program_id(2) == 0)
        part = x[...].max((0, 1)) if kind == "max" else (x[...] ** 2 if kind == "squares" else x[...]).sum((0, 1))
        part = part / (sizes[0] * sizes[1]) if kind == "mean" else part

        @pl.when(first)
        def _() -> None:
            o[...] = part[None]

        @pl.when(jnp.logical_not(first))
        def _() -> None:
            o[...] = jnp.maximum(o[...], part) if kind == "max" else o[...] + part

    def function(x: Any) -> Any:
        def at(c: Any, *ab: Any) -> Any:
            return (ab[order.index(0)], ab[order.index(1)], c)

        grid = (count[2], *(count[k] for k in order))
        return call(
            body, shape(1, sizes[2], dtype=f32()), x, grid=grid, ins=[(tuple(blocks), at)],
            outs=((1, blocks[2]), lambda c, a, b: (0, c)),
        )[0]  # fmt: skip

    def reference(x: Any) -> Any:
        if kind == "max":
            return x.max(1).max(0)
        if kind == "mean":
            return x.reshape(-1, x.shape[-1]).mean(0)
        return jnp.einsum("abc,abc->c", x, x) if kind == "squares" else x.sum(0).sum(0)

    argument = f"f32[{','.join(map(str, sizes))}]"
    return Made(f"sums: {kind}", function, reference, (argument,), f"{sizes} by {blocks}, {order}")


def recurrence(draw: random.Random) -> Made:
    """h = a h + x down the rows: rows in a loop, blocks in the grid or all at once; a scan, or powers."""
    many, block = 16, draw.choice((2, 4, 8, 16))
    how, form = draw.choice(("unrolled", "loop")), draw.choice(("scan", "associative", "loop"))

    def body(a: Any, x: Any, o: Any, h: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            h[...] = jnp.zeros_like(h)

        def step(k: Any, state: Any) -> Any:
            state = a[pl.ds(k, 1)] * state + x[pl.ds(k, 1)]
            o[pl.ds(k, 1)] = state
            return state

        state = h[...]
        if how == "loop":
            state = lax.fori_loop(0, block, step, state)
        else:
            for k in range(block):
                state = step(k, state)
        h[...] = state

    def function(a: Any, x: Any) -> Any:
        spec = ((block, 128), lambda i: (i, 0))
        return call(
            body, shape(many, 128, dtype=f32()), a, x, grid=(many // block,), ins=[spec, spec], outs=spec,
            scratch=[pltpu.VMEM((1, 128), f32())],
        )  # fmt: skip

    def reference(a: Any, x: Any) -> Any:
        if form == "associative":
            return lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, x))[1]
        if form == "scan":
            return lax.scan(lambda h, both: (both[0] * h + both[1],) * 2, jnp.zeros_like(x[0]), (a, x))[1]
        h, found = jnp.zeros_like(x[0]), []
        for k in range(many):
            h = a[k] * h + x[k]
            found.append(h)
        return jnp.stack(found)

    return Made("recurrence", function, reference, (f"f32[{many},128]",) * 2, f"{how} of {block} for {form}")
