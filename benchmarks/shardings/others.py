"""Pairs of further kinds: experts, rings, pipelines, optimisers in parts, split vocabularies, groups, custom gradients.

Also what is around a `shard_map`: vmap, scan, cond, other meshes, shardings of jit, axes that are part of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding

from benchmarks.shardings.pairs import P, Pair, around, line, mesh, over, plane, whole

_ROWS, _COLUMNS = P("d", None), P(None, "d")
GROUPS = [[0, 1], [2, 3]]


def pairs() -> Iterator[Pair]:
    """All of them."""
    yield from _experts()
    yield from _rings()
    yield from _pipelines()
    yield from _optimisers()
    yield from _vocabularies()
    yield from _groups()
    yield from _rules()
    yield from _around()


def _experts() -> Iterator[Pair]:
    def exchanged(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            # rows in blocks by expert; each device has one expert
            sent = lax.all_to_all(x, "d", 0, 0, tiled=True)
            done = jnp.tanh(sent @ w[0])
            return done if wrong else lax.all_to_all(done, "d", 0, 0, tiled=True)

        return line(f, (_ROWS, P("d")), _ROWS)

    def by_expert(x: Any, w: Any) -> Any:
        return jnp.tanh(jnp.einsum("sekf,efg->sekg", x.reshape(4, 4, 2, 3), w)).reshape(32, 5)

    yield Pair(
        "experts by all-to-all", "what is computed is not sent back", by_expert, ("f32[32,3]", "f32[4,3,5]"), exchanged,
    )  # fmt: skip

    def gates(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, g: Any, w: Any) -> Any:
            sent = lax.all_to_all(x, "d", 0, 0, tiled=True)
            back = lax.all_to_all(sent @ w[0], "d", 0, 0, tiled=True).reshape(4, 2, 5)
            weights = jax.nn.softmax(g, 0 if wrong else 1).reshape(2, 4).T
            return (back * weights[..., None]).sum(0)

        return line(f, (_ROWS, _ROWS, P("d")), _ROWS)

    def gated(x: Any, g: Any, w: Any) -> Any:
        done = jnp.einsum("sekf,efg->skeg", x.reshape(4, 4, 2, 3), w).reshape(8, 4, 5)
        return (done * jax.nn.softmax(g)[..., None]).sum(1)

    yield Pair(
        "experts and their gates", "weights are normed over tokens", gated,
        ("f32[32,3]", "f32[8,4]", "f32[4,3,5]"), gates,
    )  # fmt: skip

    def heads_for_tokens(wrong: bool) -> Callable[..., Any]:
        def f(q: Any, k: Any) -> Any:
            # tokens in parts become heads in parts, and back
            q, k = (lax.all_to_all(a, "d", 1, 0, tiled=True) for a in (q, k))
            y = jnp.einsum("hst,thd->shd", jax.nn.softmax(jnp.einsum("shd,thd->hst", q, k)), k)
            return lax.all_to_all(y, "d", 0, 1, tiled=not wrong) if not wrong else _stacked(y)

        def _stacked(y: Any) -> Any:
            parts = lax.all_to_all(y.reshape(4, 2, 1, 3), "d", 0, 0)
            return parts[::-1].transpose(1, 0, 2, 3).reshape(2, 4, 3)

        return line(f, (_ROWS, _ROWS), _ROWS)

    def attention(q: Any, k: Any) -> Any:
        return jnp.einsum("hst,thd->shd", jax.nn.softmax(jnp.einsum("shd,thd->hst", q, k)), k)

    yield Pair(
        "heads for tokens", "heads come back in another order", attention, ("f32[8,4,3]", "f32[8,4,3]"),
        heads_for_tokens,
    )  # fmt: skip


def _rings() -> Iterator[Pair]:
    def ring(rescaled: bool, causal: bool = False, source: int = -1) -> Callable[..., Any]:
        def f(q: Any, k: Any, v: Any) -> Any:
            here, rows = lax.axis_index("d"), q.shape[0]

            def step(t: Any, carry: Any) -> Any:
                k, v, m, total, acc = carry
                s = q @ k.T
                if causal:
                    at = (here + source * t) % 4
                    later = here * rows + jnp.arange(rows)[:, None] < at * rows + jnp.arange(rows)[None]
                    s = jnp.where(later, -1e30, s)
                new = jnp.maximum(m, s.max(-1))
                old, p = jnp.exp(m - new), jnp.exp(s - new[:, None])
                total = total * old + p.sum(-1)
                acc = (acc * old[:, None] if rescaled else acc) + p @ v
                k, v = (lax.ppermute(a, "d", around(4)) for a in (k, v))
                return k, v, new, total, acc

            start = (k, v, jnp.full(rows, -1e30), jnp.zeros(rows), jnp.zeros((rows, v.shape[1])))
            _, _, _, total, acc = lax.fori_loop(0, 4, step, start)
            return acc / total[:, None]

        return line(f, (_ROWS,) * 3, _ROWS)

    def attention(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        s = q @ k.T
        s = jnp.where(jnp.arange(8)[:, None] < jnp.arange(8)[None], -1e30, s) if causal else s
        return jax.nn.softmax(s) @ v

    shapes = ("f32[8,4]", "f32[8,4]", "f32[8,3]")
    yield Pair("ring attention", "the sum is not rescaled", attention, shapes, lambda wrong: ring(not wrong))
    yield Pair(
        "causal ring attention", "the mask is of another part",
        lambda q, k, v: attention(q, k, v, True), shapes, lambda wrong: ring(True, True, 1 if wrong else -1),
    )  # fmt: skip

    def decoded(wrong: bool) -> Callable[..., Any]:
        def f(q: Any, k: Any, v: Any) -> Any:
            s = k @ q
            m = s.max()
            p = jnp.exp(s - m)
            scale = 1.0 if wrong else jnp.exp(m - lax.pmax(m, "d"))
            return lax.psum(scale * (p @ v), "d") / lax.psum(scale * p.sum(), "d")

        return line(f, (P(), _ROWS, _ROWS), P())

    yield Pair(
        "decoding over a cache in parts", "parts are not rescaled", lambda q, k, v: jax.nn.softmax(k @ q) @ v,
        ("f32[4]", "f32[8,4]", "f32[8,3]"), decoded,
    )  # fmt: skip

    def cannon(wrong: bool) -> Callable[..., Any]:
        def f(a: Any, b: Any) -> Any:
            row, column = lax.axis_index("data"), lax.axis_index("model")
            # each row is turned by its number, and each column
            turned = lax.ppermute(a, "model", around(2))
            a = jnp.where((column if wrong else row) == 1, turned, a)
            b = jnp.where(column == 1, lax.ppermute(b, "data", around(2)), b)
            total = a @ b
            return total + lax.ppermute(a, "model", around(2)) @ lax.ppermute(b, "data", around(2))

        spec = P("data", "model")
        return plane(f, (spec, spec), spec)

    yield Pair(
        "product in squares", "rows are turned by the column's number", lambda a, b: a @ b,
        ("f32[4,6]", "f32[6,8]"), cannon,
    )  # fmt: skip

    def summa(wrong: bool) -> Callable[..., Any]:
        def f(a: Any, b: Any) -> Any:
            rows, columns = lax.all_gather(a, "model"), lax.all_gather(b, "data")
            return sum(rows[k] @ columns[1 - k if wrong else k] for k in range(2))

        spec = P("data", "model")
        return plane(f, (spec, spec), spec)

    yield Pair(
        "product of gathered blocks", "blocks of another step", lambda a, b: a @ b, ("f32[4,6]", "f32[6,8]"), summa,
    )  # fmt: skip


def _pipelines() -> Iterator[Pair]:
    def pipeline(steps: int) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            here = lax.axis_index("d")

            def step(carry: Any, t: Any) -> Any:
                given = jnp.where(here == 0, x[jnp.minimum(t, 2)], carry)
                done = jnp.tanh(given @ w[0])
                return lax.ppermute(done, "d", [(0, 1), (1, 2), (2, 3)]), done

            outs = lax.scan(step, jnp.zeros((2, 4)), jnp.arange(6))[1]
            # the last stage has the first result after as many steps as there are stages
            return lax.psum(jnp.where(here == 3, outs[steps : steps + 3], 0.0), "d")

        return line(f, (P(), P("d")), P())

    def staged(x: Any, w: Any) -> Any:
        for k in range(4):
            x = jnp.tanh(x @ w[k])
        return x

    shapes = ("f32[3,2,4]", "f32[4,4,4]")
    yield Pair("pipeline", "results one step early", staged, shapes, lambda wrong: pipeline(2 if wrong else 3))

    def trained(wrong: bool) -> Callable[..., Any]:
        def f(w: Any, x: Any) -> Any:
            def loss(w: Any) -> Any:
                here, total, carry = lax.axis_index("d"), 0.0, jnp.zeros((2, 4))
                for t in range(7 if wrong else 6):
                    done = jnp.tanh(jnp.where(here == 0, x[min(t, 2)], carry) @ w[0])
                    total += jnp.where(here == 3, (done**2).sum(), 0.0)
                    carry = lax.ppermute(done, "d", [(0, 1), (1, 2), (2, 3)])
                return total

            return jax.grad(loss)(w)

        return line(f, (P("d"), P()), P("d"))

    yield Pair(
        "gradient of a pipeline", "the last part counts twice",
        lambda w, x: jax.grad(lambda w: (staged(x, w) ** 2).sum())(w),
        ("f32[4,4,4]", "f32[3,2,4]"), trained,
    )  # fmt: skip

    def prefix(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            totals = lax.all_gather(x.sum(0), "d")
            before = jnp.arange(4) <= lax.axis_index("d") if wrong else jnp.arange(4) < lax.axis_index("d")
            return jnp.cumsum(x, 0) + jnp.where(before[:, None], totals, 0.0).sum(0)

        return line(f, _ROWS, _ROWS)

    yield Pair(
        "prefix sums", "the own total counts twice", lambda x: jnp.cumsum(x, 0), ("f32[8,3]",), prefix,
    )  # fmt: skip

    def recurrent(wrong: bool) -> Callable[..., Any]:
        def f(a: Any, b: Any) -> Any:
            def both(one: Any, other: Any) -> Any:
                return one[0] * other[0], other[0] * one[1] + other[1]

            products, sums = lax.associative_scan(both, (a, b))
            ends = lax.all_gather(products[-1], "d"), lax.all_gather(sums[-1], "d")
            state, states = jnp.zeros(3), []
            for k in range(4):
                states.append(state)
                state = (1.0 if wrong else ends[0][k]) * state + ends[1][k]
            return sums + products * jnp.stack(states)[lax.axis_index("d")]

        return line(f, (_ROWS, _ROWS), _ROWS)

    def recurrence(a: Any, b: Any) -> Any:
        return lax.scan(lambda h, x: (x[0] * h + x[1],) * 2, jnp.zeros(3), (a, b))[1]

    yield Pair(
        "linear recurrence", "a state is handed on without its decay", recurrence, ("f32[8,3]", "f32[8,3]"), recurrent,
    )  # fmt: skip


def _optimisers() -> Iterator[Pair]:
    def loss(w: Any, x: Any) -> Any:
        return (jnp.tanh(x @ w) ** 2).mean()

    def adam(g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return m / (jnp.sqrt(v) + 1e-8), m, v

    def in_parts(wrong: bool) -> Callable[..., Any]:
        def f(w: Any, m: Any, v: Any, x: Any) -> Any:
            g = lax.psum_scatter(jax.grad(loss)(w, x), "d", tiled=True) / (1 if wrong else 4)
            k = w.shape[0] // 4
            own = lax.dynamic_slice_in_dim(w, lax.axis_index("d") * k, k)
            step, m, v = adam(g, m, v * v)
            return whole(own - 0.1 * step, "d"), m, v

        return line(f, (P(), _ROWS, _ROWS, _ROWS), (P(), _ROWS, _ROWS))

    def optimised(w: Any, m: Any, v: Any, x: Any) -> Any:
        step, m, v = adam(jax.grad(loss)(w, x), m, v * v)
        return w - 0.1 * step, m, v

    yield Pair(
        "optimiser in parts", "the scattered sum is not divided", optimised,
        ("f32[8,3]", "f32[8,3]", "f32[8,3]", "f32[4,8]"), in_parts,
    )  # fmt: skip

    def momentum(wrong: bool) -> Callable[..., Any]:
        def f(w: Any, m: Any, x: Any) -> Any:
            g = lax.psum_scatter(jax.grad(loss)(whole(w, "d"), x), "d", tiled=True) / 4
            new = 0.9 * m + g
            return w - 0.1 * (m if wrong else new), new

        return line(f, (_ROWS, _ROWS, _ROWS), (_ROWS, _ROWS))

    def stepped(w: Any, m: Any, x: Any) -> Any:
        new = 0.9 * m + jax.grad(loss)(w, x)
        return w - 0.1 * new, new

    yield Pair(
        "weights in parts", "the step is of the old moment", stepped, ("f32[8,3]", "f32[8,3]", "f32[4,8]"), momentum,
    )  # fmt: skip

    def averaged(wrong: bool) -> Callable[..., Any]:
        def f(w: Any, x: Any) -> Any:
            # each device goes two steps by its own data, then all take the mean
            own = w
            for part in jnp.split(x, 2):
                own = own - 0.1 * jax.grad(loss)(own, part)
            return w - lax.pmean(w - own, "d") if not wrong else lax.pmean(w, "d") - (w - own)

        return line(f, (P(), _ROWS), P())

    def local_steps(w: Any, x: Any) -> Any:
        found = []
        for parts in x.reshape(4, 2, 2, 8):
            own = w
            for part in parts:
                own = own - 0.1 * jax.grad(loss)(own, part)
            found.append(own)
        return sum(found) / 4

    yield Pair("local steps", "the mean is of what it was", local_steps, ("f32[8,3]", "f32[16,8]"), averaged)


def _vocabularies() -> Iterator[Pair]:
    labels = np.array([0, 5, 7, 2, 6, 1], np.int32)

    def cross_entropy(wrong: bool) -> Callable[..., Any]:
        def f(h: Any, w: Any) -> Any:
            logits = h @ w
            m = lax.pmax(lax.stop_gradient(logits).max(-1), "d")
            total = lax.psum(jnp.exp(logits - m[:, None]).sum(-1), "d")
            here = labels - (0 if wrong else lax.axis_index("d") * 2)
            inside = (here >= 0) & (here < 2)
            own = jnp.take_along_axis(logits, jnp.clip(here, 0, 1)[:, None], 1)[:, 0]
            return (m + jnp.log(total) - lax.psum(jnp.where(inside, own, 0.0), "d")).mean()

        return line(f, (P(), _COLUMNS), P())

    def reference(h: Any, w: Any) -> Any:
        logits = h @ w
        return (jax.nn.logsumexp(logits, -1) - logits[np.arange(6), labels]).mean()

    shapes = ("f32[6,4]", "f32[4,8]")
    yield Pair("split vocabulary", "labels without the offset of the part", reference, shapes, cross_entropy)

    def backward(wrong: bool) -> Callable[..., Any]:
        def f(h: Any, w: Any) -> Any:
            logits = h @ w
            e = jnp.exp(logits - lax.pmax(logits.max(-1), "d")[:, None])
            p = e / (e.sum(-1) if wrong else lax.psum(e.sum(-1), "d"))[:, None]
            hot = (labels[:, None] - lax.axis_index("d") * 2) == jnp.arange(2)[None]
            g = (p - hot) / 6
            return lax.psum(g @ w.T, "d"), h.T @ g

        return line(f, (P(), _COLUMNS), (P(), _COLUMNS))

    yield Pair(
        "gradient of a split vocabulary", "probabilities of the own part",
        jax.grad(reference, argnums=(0, 1)), shapes, backward,
    )  # fmt: skip

    def embedded(wrong: bool) -> Callable[..., Any]:
        def f(w: Any) -> Any:
            here = labels - lax.axis_index("d") * 2
            inside = (here >= 0) & (here < 2)
            rows = w[jnp.clip(here, 0, 1)]
            return lax.psum(rows if wrong else jnp.where(inside[:, None], rows, 0.0), "d")

        return line(f, _ROWS, P())

    yield Pair(
        "split embedding", "rows of other parts are not masked", lambda w: w[labels], ("f32[8,3]",), embedded,
    )  # fmt: skip


def _groups() -> Iterator[Pair]:
    def hierarchical(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            part = lax.psum_scatter(x[0], "model", tiled=True)
            part = part if wrong else lax.psum(part, "data")
            return whole(part, "model")

        return over(f, mesh(data=2, model=4), P(("data", "model")), P())

    yield Pair(
        "sum in two levels", "not over the outer level", lambda x: x.sum(0), ("f32[8,8]",), hierarchical,
    )  # fmt: skip

    def grouped(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            mean = lax.psum(x, "d", axis_index_groups=[[0, 2], [1, 3]] if wrong else GROUPS) / 2
            return x - mean

        return line(f, _ROWS, _ROWS)

    yield Pair(
        "norm in groups of devices", "other groups",
        lambda x: x - jnp.repeat(x.reshape(2, 2, 6).mean(1), 2, 0), ("f32[4,6]",), grouped,
    )  # fmt: skip

    def gathered(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            groups = [[1, 0], [3, 2]] if wrong else GROUPS
            return lax.all_gather(x, "d", axis_index_groups=groups, tiled=True)

        return line(f, _ROWS, _ROWS)

    yield Pair(
        "gathered in groups", "members in another order",
        lambda x: jnp.repeat(x.reshape(2, 2, 6), 2, 0).reshape(8, 6), ("f32[4,6]",), gathered,
    )  # fmt: skip

    def doubling(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            for step in (1,) if wrong else (1, 2, 4):
                x = x + lax.ppermute(x, "d", [(k, k ^ step) for k in range(8)])
            return x

        return over(f, mesh(d=8), P("d"), P())

    yield Pair("sum by doubling", "two steps are missing", lambda x: x.sum(0, keepdims=True), ("f32[8,3]",), doubling)

    def scaled(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            largest = jnp.abs(x).max()
            return x / (lax.pmin if wrong else lax.pmax)(largest, "d")

        return line(f, _ROWS, _ROWS)

    yield Pair("one scale for all", "the least of the largest", lambda x: x / jnp.abs(x).max(), ("f32[8,3]",), scaled)


def _rules() -> Iterator[Pair]:
    def column(wrong: bool) -> Callable[..., Any]:
        @jax.custom_vjp
        def enter(x: Any) -> Any:
            return x

        enter.defvjp(lambda x: (x, None), lambda _, g: (g if wrong else lax.psum(g, "d"),))

        def f(x: Any, w: Any) -> Any:
            return jax.grad(lambda x: (jnp.tanh(enter(x) @ w) ** 2).sum())(x)

        return line(f, (P(), _COLUMNS), P())

    yield Pair(
        "rule at the entry of split columns", "its gradient is not summed",
        lambda x, w: jax.grad(lambda x: (jnp.tanh(x @ w) ** 2).sum())(x), ("f32[4,6]", "f32[6,8]"), column,
    )  # fmt: skip

    def row(wrong: bool) -> Callable[..., Any]:
        @jax.custom_vjp
        def leave(y: Any) -> Any:
            return lax.psum(y, "d")

        leave.defvjp(lambda y: (leave(y), None), lambda _, g: (lax.psum(g, "d") if wrong else g,))

        def f(x: Any, w: Any) -> Any:
            return jax.grad(lambda w: (jnp.tanh(leave(x @ w)) ** 2).sum())(w)

        return line(f, (_COLUMNS, _ROWS), _ROWS)

    yield Pair(
        "rule at the end of split rows", "its gradient is summed, too",
        lambda x, w: jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w), ("f32[4,8]", "f32[8,6]"), row,
    )  # fmt: skip

    def recomputed(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, ws: Any) -> Any:
            @jax.checkpoint
            def layer(x: Any, w: Any) -> Any:
                return x + lax.psum(jnp.tanh(x @ w) @ w.T, "d")

            y = lax.scan(lambda x, w: (layer(x, w), None), x, ws)[0]
            return 2 * y if wrong else y

        return line(f, (P(), P(None, None, "d")), P(), check_vma=True)

    def layered(x: Any, ws: Any) -> Any:
        return lax.scan(lambda x, w: (x + jnp.tanh(x @ w) @ w.T, None), x, ws)[0]

    yield Pair(
        "layers computed again", "twice the result", layered, ("f32[4,6]", "f32[3,6,8]"), recomputed, gradient=True,
    )  # fmt: skip

    def typed(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            y = jnp.tanh(x @ w)
            return lax.pmean(y, "d") if wrong else lax.psum(y, "d") / 2

        return line(f, (_COLUMNS, _ROWS), P(), check_vma=True)

    def in_blocks(x: Any, w: Any) -> Any:
        return jnp.tanh(jnp.einsum("idk,dkj->dij", x.reshape(4, 4, 2), w.reshape(4, 2, 6))).sum(0) / 2

    yield Pair(
        "gradient of what is checked", "a mean for half of a sum", in_blocks, ("f32[4,8]", "f32[8,6]"), typed,
        gradient=True,
    )  # fmt: skip


def _around() -> Iterator[Pair]:
    def product(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            return x @ w if wrong else lax.psum(x @ w, "d")

        return line(f, (_COLUMNS, _ROWS), P())

    def mapped(wrong: bool) -> Callable[..., Any]:
        return jax.vmap(product(wrong), in_axes=(0, None))

    yield Pair("under vmap", "no sum", lambda x, w: x @ w, ("f32[3,4,8]", "f32[8,6]"), mapped)

    def scanned(wrong: bool) -> Callable[..., Any]:
        def inner(x: Any, w: Any) -> Any:
            y = lax.psum(x @ w, "d")
            return y if wrong else jnp.tanh(y)

        call = line(inner, (_COLUMNS, _ROWS), P())
        return lambda x, ws: lax.scan(lambda x, w: (call(x, w), None), x, ws)[0]

    yield Pair(
        "under scan", "a function is left out", lambda x, ws: lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0],
        ("f32[4,8]", "f32[3,8,8]"), scanned,
    )  # fmt: skip

    def branched(wrong: bool) -> Callable[..., Any]:
        call = line(lambda x: whole(x, "d") * 2, _ROWS, P())

        def f(x: Any) -> Any:
            return jnp.stack([lax.cond(k % 2 == wrong, call, lambda x: x, x) for k in range(3)])

        return f

    yield Pair(
        "under cond", "the other branch", lambda x: jnp.stack([2 * x, x, 2 * x]), ("f32[8,3]",), branched,
    )  # fmt: skip

    def partly(wrong: bool) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            return lax.psum(x @ w, "model") * (2 if wrong else 1)

        on = mesh(data=2, model=2)
        return jax.jit(
            jax.shard_map(f, mesh=on, in_specs=(P(None, "model"), P("model")), out_specs=P(), axis_names={"model"})
        )

    yield Pair("one axis by hand", "twice as much", lambda x, w: x @ w, ("f32[4,8]", "f32[8,6]"), partly)

    def inside(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            def inner(x: Any) -> Any:
                return lax.psum(x, "data" if wrong else "model")

            y = jax.shard_map(inner, in_specs=P(None, "model"), out_specs=P(), axis_names={"model"}, check_vma=False)(x)
            return lax.psum(y, "data")

        on = mesh(data=2, model=2)
        return jax.jit(
            jax.shard_map(f, mesh=on, in_specs=P("data"), out_specs=P(), axis_names={"data"}, check_vma=False)
        )

    yield Pair(
        "meshes inside meshes", "the inner sum is over the outer axis",
        lambda x: x.reshape(2, 2, 2, 3).sum((0, 2)), ("f32[4,6]",), inside,
    )  # fmt: skip

    def placed(wrong: bool) -> Callable[..., Any]:
        on = mesh(data=2, model=2)

        def f(x: Any, w: Any) -> Any:
            h = lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(on, P("data", "model")))
            return h.sum(1 if wrong else 0)

        shardings = (NamedSharding(on, P("data")), NamedSharding(on, P(None, "model")))
        return jax.jit(f, in_shardings=shardings, out_shardings=NamedSharding(on, P()))

    yield Pair(
        "shardings of jit", "a sum over the other dimension", lambda x, w: jnp.tanh(x @ w).sum(0),
        ("f32[8,6]", "f32[6,8]"), placed,
    )  # fmt: skip

    def explicit(wrong: bool) -> Callable[..., Any]:
        on = mesh(AxisType.Explicit, d=4)

        def f(x: Any, w: Any) -> Any:
            def inner(x: Any, w: Any) -> Any:
                y = jnp.tanh(x @ w)
                return y * (lax.axis_index("d") + 1.0) if wrong else y

            x = jax.sharding.reshard(x, NamedSharding(on, P("d", None)))
            w = jax.sharding.reshard(w, NamedSharding(on, P(None, None)))
            return jax.shard_map(inner, mesh=on, in_specs=(_ROWS, P()), out_specs=_ROWS)(x, w)

        return f

    yield Pair(
        "axes that are part of the type", "scaled by the device", lambda x, w: jnp.tanh(x @ w),
        ("f32[8,6]", "f32[6,3]"), explicit,
    )  # fmt: skip

    def counted(wrong: bool) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            def more(carry: Any) -> Any:
                return carry[0] < (lax.axis_index("d") if wrong else 3)

            return lax.while_loop(
                more, lambda c: (c[0] + 1, lax.ppermute(c[1], "d", around(4)) if not wrong else c[1]), (0, x)
            )[1]

        return line(f, _ROWS, _ROWS)

    yield Pair("sent in a loop", "devices stay where they are", lambda x: jnp.roll(x, 6, 0), ("f32[8,3]",), counted)
