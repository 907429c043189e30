"""Pairs after what public fixes of training and serving stacks mend: sums, means, counts, gradients, orders, keys.

All are our own; `after` names a public thread of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.shardings.pairs import P, Pair, around, line, plane, whole

EPS = 1e-5
KEY = 3
_DATA, _ROWS, _COLUMNS = P("d", None), P("d", None), P(None, "d")


def pairs() -> Iterator[Pair]:
    """All of them."""
    yield from _sums()
    yield from _means()
    yield from _gradients()
    yield from _orders()
    yield from _keys()


def _sums() -> Iterator[Pair]:
    def shared_expert(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any, v: Any, u: Any) -> Any:
            routed = lax.psum(jnp.tanh(x @ w) @ v, "model")
            shared = x @ u @ u.T
            return routed + (shared if wrong else lax.psum(shared, "model"))

        return plane(f, (P("data"), P(None, "model"), P("model"), P(None, "model")), P("data"))

    yield Pair(
        "shared expert", "no sum of the part that a second branch gives",
        lambda x, w, v, u: jnp.tanh(x @ w) @ v + x @ u @ u.T,
        ("f32[4,8]", "f32[8,16]", "f32[16,8]", "f32[8,4]"), shared_expert, "vllm-project/tpu-inference#3435",
    )  # fmt: skip

    def routed_twice(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any, v: Any, u: Any) -> Any:
            routed = jnp.tanh(x @ w) @ v
            if wrong:
                return lax.psum(lax.psum(routed, "model") + x @ u @ u.T, "model")
            return lax.psum(routed + x @ u @ u.T, "model")

        return plane(f, (P("data"), P(None, "model"), P("model"), P(None, "model")), P("data"))

    yield Pair(
        "routed experts", "summed twice", lambda x, w, v, u: jnp.tanh(x @ w) @ v + x @ u @ u.T,
        ("f32[4,8]", "f32[8,16]", "f32[16,8]", "f32[8,4]"), routed_twice, "vllm-project/tpu-inference#3435",
    )  # fmt: skip

    def other_tokens(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            # each device has the weights of one expert
            here = lax.axis_index("d")
            if wrong:
                own = lax.dynamic_slice_in_dim(whole(x, "d"), 2 * here, 2)
                return jnp.tile(lax.psum(own @ w[0], "d"), (4, 1))
            mine = (jnp.arange(8) % 4 == here)[:, None]
            return lax.psum(jnp.where(mine, whole(x, "d") @ w[0], 0.0), "d")

        return line(f, (_DATA, P("d")), P())

    yield Pair(
        "experts by device", "rows of other tokens are summed",
        lambda x, w: jnp.einsum("tf,tfg->tg", x, jnp.tile(w, (2, 1, 1))),
        ("f32[8,4]", "f32[4,4,4]"), other_tokens, "vllm-project/tpu-inference#2248",
    )  # fmt: skip

    def axis(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any, v: Any) -> Any:
            h = jax.nn.silu(x @ whole(w, "data"))
            return lax.psum(h @ whole(v, "data", 1), "data" if wrong else "model")

        return plane(f, (P("data"), P("data", "model"), P("model", "data")), P("data"))

    yield Pair(
        "MLP of whole and split weights", "summed over the wrong axis", lambda x, w, v: jax.nn.silu(x @ w) @ v,
        ("f32[4,8]", "f32[8,16]", "f32[16,8]"), axis,
    )  # fmt: skip

    def gated(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any, v: Any) -> Any:
            gate, up = x @ w, x @ v
            if wrong:
                return lax.psum(jax.nn.silu(gate) * up, "d")
            return jax.nn.silu(lax.psum(gate, "d")) * lax.psum(up, "d")

        return line(f, (_COLUMNS, _ROWS, _ROWS), P())

    yield Pair(
        "gated unit", "the gate's function is taken of parts of the sum",
        lambda x, w, v: jax.nn.silu(x @ w) * (x @ v),
        ("f32[4,16]", "f32[16,8]", "f32[16,8]"), gated,
    )  # fmt: skip

    def biased(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any, b: Any) -> Any:
            first = lax.axis_index("model") == 0
            return lax.psum(x @ w + (b if wrong else jnp.where(first, b, 0.0)), "model")

        return plane(f, (P("data", "model"), P("model"), P()), P("data"))

    yield Pair(
        "bias in the sum", "added on each device", lambda x, w, b: x @ w + b,
        ("f32[4,16]", "f32[16,8]", "f32[8]"), biased,
    )  # fmt: skip

    def attention(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, q: Any, o: Any) -> Any:
            y = jax.nn.softmax((x @ q) @ (x @ q).T) @ (x @ q) @ o
            return lax.psum(x + y, "d") if wrong else x + lax.psum(y, "d")

        return line(f, (P(), _COLUMNS, _ROWS), P())

    def heads(x: Any, q: Any, o: Any) -> Any:
        h = (x @ q).reshape(8, 4, 2)
        weights = jax.nn.softmax(jnp.einsum("shd,thd->hst", h, h))
        return x + jnp.einsum("hst,thd->shd", weights, h).reshape(8, 8) @ o

    yield Pair(
        "heads in parts", "the residual is in the sum", heads, ("f32[8,6]", "f32[6,8]", "f32[8,6]"), attention,
    )  # fmt: skip


def _means() -> Iterator[Pair]:
    def per_token(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, valid: Any) -> Any:
            loss, count = (x * x * valid).sum(), valid.sum()
            return lax.pmean(loss / count, "d") if wrong else lax.psum(loss, "d") / lax.psum(count, "d")

        return line(f, (P(None, "d"), P(None, "d")), P())

    yield Pair(
        "loss of sequences in parts", "mean of means over unequal counts",
        lambda x, valid: (x * x * valid).sum() / valid.sum(), ("f32[2,16]", "f32[2,16]"), per_token,
        "NVIDIA/Megatron-LM#673",
    )  # fmt: skip

    def rms(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, g: Any) -> Any:
            square = (x * x).mean(-1, keepdims=True)
            return x * lax.rsqrt((square if wrong else lax.pmean(square, "d")) + EPS) * g

        return line(f, (_COLUMNS, P("d")), _COLUMNS)

    yield Pair(
        "norm of split features", "mean of the own part",
        lambda x, g: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + EPS) * g, ("f32[4,16]", "f32[16]"), rms,
        "sgl-project/sglang-jax#1294",
    )  # fmt: skip

    def by_heads(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            q = x @ w
            square = lax.psum((q * q).sum(-1, keepdims=True), "d") / (q.shape[-1] if wrong else 16)
            return q * lax.rsqrt(square + EPS)

        return line(f, (P(), _COLUMNS), _COLUMNS)

    def normed(x: Any, w: Any) -> Any:
        q = x @ w
        return q * lax.rsqrt((q * q).mean(-1, keepdims=True) + EPS)

    yield Pair(
        "norm of all heads", "divided by the own count", normed, ("f32[4,8]", "f32[8,16]"), by_heads,
        "ml-explore/mlx-lm#898",
    )  # fmt: skip

    def statistics(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            mean = lax.pmean(x.mean(0), "d")
            var = lax.pmean(x.var(0) if wrong else ((x - mean) ** 2).mean(0), "d")
            return (x - mean) * lax.rsqrt(var + EPS)

        return line(f, _DATA, _DATA)

    yield Pair(
        "batch norm", "variance about the own mean", lambda x: (x - x.mean(0)) * lax.rsqrt(x.var(0) + EPS),
        ("f32[8,4]",), statistics,
    )  # fmt: skip

    def balance(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            p = jax.nn.softmax(x @ w)
            share, chance = (p * p).mean(0), p.mean(0)
            if wrong:
                return lax.pmean((share * chance).sum(), "d")
            return (lax.pmean(share, "d") * lax.pmean(chance, "d")).sum()

        return line(f, (_DATA, P()), P())

    def balanced(x: Any, w: Any) -> Any:
        p = jax.nn.softmax(x @ w)
        return ((p * p).mean(0) * p.mean(0)).sum()

    yield Pair(
        "load of experts", "mean of products for product of means", balanced, ("f32[8,4]", "f32[4,3]"), balance,

    )  # fmt: skip

    def second_loss(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, y: Any, valid: Any) -> Any:
            total, count = lax.psum((x * valid).sum(), "d"), lax.psum(valid.sum(), "d")
            more = lax.psum((y * valid).sum(), "d") / count
            return (total + more * (1 if wrong else count)) / count

        return line(f, (P("d"),) * 3, P())

    yield Pair(
        "loss of a second head", "an average is added to a sum",
        lambda x, y, valid: ((x + y) * valid).sum() / valid.sum(), ("f32[16]",) * 3, second_loss,
        "AI-Hypercomputer/maxtext#3311",
    )  # fmt: skip

    def accumulated(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, valid: Any) -> Any:
            def step(carry: Any, part: Any) -> Any:
                x, valid = part
                if wrong:
                    return (carry[0] + (x * valid).sum() / valid.sum(), carry[1] + 1), None
                return (carry[0] + (x * valid).sum(), carry[1] + valid.sum()), None

            total, count = lax.scan(step, (jnp.zeros(()), jnp.zeros(())), (x, valid))[0]
            return lax.psum(total, "d") / lax.psum(count, "d")

        return line(f, (P(None, "d"), P(None, "d")), P())

    yield Pair(
        "accumulation", "scaled by the count of each part", lambda x, valid: (x * valid).sum() / valid.sum(),
        ("f32[3,8]", "f32[3,8]"), accumulated, "AI-Hypercomputer/maxtext#3040",
    )  # fmt: skip


def _gradients() -> Iterator[Pair]:
    def loss(w: Any, x: Any) -> Any:
        return (jnp.tanh(x @ w) ** 2).mean()

    def reduced(wrong: bool) -> Callable[..., Any]:
        def f(w: Any, x: Any) -> Any:
            value, gradient = jax.value_and_grad(loss)(w, x)
            return lax.pmean(value, "d"), gradient if wrong else lax.pmean(gradient, "d")

        return line(f, (P(), _DATA), (P(), P()))

    yield Pair(
        "step over data in parts", "the gradient is not reduced", jax.value_and_grad(loss),
        ("f32[8,4]", "f32[8,8]"), reduced,
    )  # fmt: skip

    def scaled(wrong: bool) -> Callable[..., Any]:
        def f(w: Any, x: Any) -> Any:
            gradient = lax.psum(jax.grad(loss)(w, x), ("data", "model"))
            return gradient / (2 if wrong else 4)

        return plane(f, (P(), P(("data", "model"))), P())

    yield Pair(
        "data over two axes", "scaled by the count of one", jax.grad(loss), ("f32[8,4]", "f32[8,8]"), scaled,

    )  # fmt: skip

    def norm_scale(wrong: bool) -> Callable[..., Any]:
        def f(g: Any, x: Any, w: Any) -> Any:
            def one(g: Any) -> Any:
                h = whole(x * lax.rsqrt((x * x).mean(-1, keepdims=True) + EPS) * g, "d")
                return (jnp.tanh(h @ w) ** 2).sum()

            gradient = jax.grad(one)(g)
            return gradient if wrong else lax.psum(gradient, "d")

        return line(f, (P(), _DATA, _COLUMNS), P())

    def norm_scaled(g: Any, x: Any, w: Any) -> Any:
        def one(g: Any) -> Any:
            h = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + EPS) * g
            return (jnp.tanh(h @ w) ** 2).sum()

        return jax.grad(one)(g)

    yield Pair(
        "scale of a norm over tokens in parts", "its gradient is of the own tokens", norm_scaled,
        ("f32[6]", "f32[8,6]", "f32[6,8]"), norm_scale,
    )  # fmt: skip

    def shared_key(wrong: bool) -> Callable[..., Any]:
        def f(k: Any, q: Any) -> Any:
            gradient = jax.grad(lambda k: (jnp.einsum("shd,td->hst", q, k) ** 2).sum())(k)
            return lax.pmean(gradient, "d") if wrong else lax.psum(gradient, "d")

        return line(f, (P(), P(None, "d")), P())

    yield Pair(
        "a key that heads share", "its gradient is averaged over heads",
        lambda k, q: jax.grad(lambda k: (jnp.einsum("shd,td->hst", q, k) ** 2).sum())(k),
        ("f32[6,3]", "f32[6,4,3]"), shared_key, "pytorch/torchtitan#1373",
    )  # fmt: skip

    def experts(wrong: bool) -> Callable[..., Any]:
        def f(w: Any, x: Any) -> Any:
            gradient = jax.grad(lambda w: ((x[0] @ w[0]) ** 2).sum())(w)
            # an expert is on one device: there is nothing to sum
            return 4 * gradient if wrong else gradient

        return line(f, (P("d"), P("d")), P("d"))

    yield Pair(
        "gradient of experts", "as often as there are devices",
        jax.grad(lambda w, x: (jnp.einsum("etf,efg->etg", x, w) ** 2).sum()),
        ("f32[4,3,5]", "f32[4,6,3]"), experts, "pytorch/pytorch#160285",
    )  # fmt: skip

    def chunked(wrong: bool) -> Callable[..., Any]:
        def f(h: Any, w: Any, u: Any) -> Any:
            def head(part: Any) -> Any:
                return jax.grad(lambda part: (jnp.tanh(part @ w) ** 2).sum())(part)

            given = jnp.concatenate([head(part) for part in jnp.split(h, 2)])
            return (given if wrong else lax.psum(given, "d")) @ u

        return line(f, (P(), _COLUMNS, P()), P())

    def unchunked(h: Any, w: Any, u: Any) -> Any:
        return jax.grad(lambda h: (jnp.tanh(h @ w) ** 2).sum())(h) @ u

    yield Pair(
        "loss in chunks", "partial gradients are taken as whole ones", unchunked,
        ("f32[4,6]", "f32[6,8]", "f32[6,3]"), chunked, "pytorch/torchtitan#3412",
    )  # fmt: skip

    def clipped(wrong: bool) -> Callable[..., Any]:
        def f(g: Any) -> Any:
            square = (g * g).sum()
            return g * lax.rsqrt((square if wrong else lax.psum(square, "d")) + 1e-6)

        return line(f, P("d"), P("d"))

    yield Pair(
        "gradients of unit norm", "norm of the own part", lambda g: g * lax.rsqrt((g * g).sum() + 1e-6),
        ("f32[16,3]",), clipped,
    )  # fmt: skip

    def counted(wrong: bool) -> Callable[..., Any]:
        def f(g: Any, b: Any) -> Any:
            # b is the same on all devices, so its square counts once
            if wrong:
                return lax.psum((g * g).sum() + (b * b).sum(), "d")
            return lax.psum((g * g).sum(), "d") + (b * b).sum()

        return line(f, (P("d"), P()), P())

    yield Pair(
        "norm of all gradients", "what all devices hold counts on each",
        lambda g, b: (g * g).sum() + (b * b).sum(), ("f32[16,3]", "f32[5]"), counted,
    )  # fmt: skip


def _orders() -> Iterator[Pair]:
    def halo(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            before = lax.ppermute(x[-1:], "d", around(4, -1 if wrong else 1)[: 4 if wrong else 3])
            rows = jnp.concatenate([before, x])
            return w[0] * rows[:-1] + w[1] * rows[1:]

        return line(f, (_DATA, P()), _DATA)

    def convolved(x: Any, w: Any) -> Any:
        return w[0] * jnp.concatenate([jnp.zeros((1, 3)), x[:-1]]) + w[1] * x

    yield Pair(
        "causal convolution", "rows come from the other neighbour", convolved, ("f32[8,3]", "f32[2]"), halo,
    )  # fmt: skip

    def gathered(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            parts = lax.all_gather(x @ w, "d")
            return parts.reshape(4, -1) if wrong else jnp.moveaxis(parts, 0, 1).reshape(4, -1)

        return line(f, (P(), _COLUMNS), P())

    yield Pair(
        "columns gathered", "in another order", lambda x, w: x @ w, ("f32[4,6]", "f32[6,8]"), gathered,
    )  # fmt: skip

    def fused(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            # gate and up of each device lie beside one another
            both = x @ w
            gate, up = (both[:, ::2], both[:, 1::2]) if wrong else jnp.split(both, 2, 1)
            return jax.nn.silu(gate) * up

        return line(f, (P(), _COLUMNS), _COLUMNS)

    def interleaved(x: Any, w: Any) -> Any:
        both = (x @ w).reshape(4, 4, 2, 2)
        return (jax.nn.silu(both[:, :, 0]) * both[:, :, 1]).reshape(4, 8)

    yield Pair(
        "gate and up in one product", "split in another order", interleaved, ("f32[4,6]", "f32[6,16]"), fused,

    )  # fmt: skip

    def shifted(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, t: Any) -> Any:
            first = lax.ppermute(t[:1], "d", around(4, -1))
            return lax.psum((x * jnp.concatenate([t[1:], t[:1] if wrong else first])).sum(), "d")

        return line(f, (P("d"), P("d")), P())

    yield Pair(
        "next tokens", "the first of the own part for that of the next", lambda x, t: (x * jnp.roll(t, -1)).sum(),
        ("f32[16]", "f32[16]"), shifted, "NousResearch/torchtitan#66",
    )  # fmt: skip

    def rotated(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            first = 0 if wrong else lax.axis_index("d") * x.shape[0]
            return _rotary(x, first + jnp.arange(x.shape[0]))

        return line(f, _DATA, _DATA)

    yield Pair(
        "positions of tokens in parts", "each part begins at 0", lambda x: _rotary(x, jnp.arange(8)),
        ("f32[8,4]",), rotated,
    )  # fmt: skip


def _rotary(x: Any, positions: Any) -> Any:
    angle = positions[:, None] * jnp.array([1.0, 0.25])
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)


def _keys() -> Iterator[Pair]:
    def dropped(x: Any, key: Any) -> Any:
        return x * jax.random.bernoulli(key, 0.5, x.shape)

    def columns(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            key = jax.random.key(KEY)
            return dropped(x, key if wrong else jax.random.fold_in(key, lax.axis_index("d")))

        return line(f, _COLUMNS, _COLUMNS)

    def by_columns(x: Any) -> Any:
        keys = [jax.random.fold_in(jax.random.key(KEY), k) for k in range(4)]
        return jnp.concatenate([dropped(part, key) for part, key in zip(jnp.split(x, 4, 1), keys, strict=True)], 1)

    yield Pair("dropout of parts", "the key is shared", by_columns, ("f32[4,16]",), columns)

    def replicated(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            key = jax.random.key(KEY)
            return dropped(lax.psum(x @ w, "d"), jax.random.fold_in(key, lax.axis_index("d")) if wrong else key)

        return line(f, (_COLUMNS, _ROWS), P())

    yield Pair(
        "dropout of what all hold", "the key is not shared", lambda x, w: dropped(x @ w, jax.random.key(KEY)),
        ("f32[8,16]", "f32[16,8]"), replicated,
    )  # fmt: skip
