"""Functions over the devices of a mesh, their single-device references and wrong twins.

`cases()` gives (name, reference, arguments, {"right": function, name of a fault: function, ..}).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

P = PartitionSpec
AUTO = AxisType.Auto
LINE, PLANE = AbstractMesh((4,), ("d",), (AUTO,)), AbstractMesh((2, 4), ("x", "y"), (AUTO, AUTO))
KEY = 7
Case = tuple[str, Callable[..., Any], tuple[str, ...], dict[str, Callable[..., Any]]]


def over(function: Callable[..., Any], mesh: Any, ins: Any, outs: Any, checked: bool = False) -> Callable[..., Any]:
    """A function on each device of a mesh."""
    return jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=checked)


def _sums() -> Iterator[Case]:
    def product(f: Callable[..., Any]) -> Any:
        return over(f, PLANE, (P("x", "y"), P("y", None)), P("x", None))

    yield (
        "sharded matmul",
        lambda a, b: a @ b,
        ("f32[8,16]", "f32[16,8]"),
        {
            "right": product(lambda a, b: lax.psum(a @ b, "y")),
            "no sum": product(lambda a, b: a @ b),
            "over the wrong axis": product(lambda a, b: lax.psum(a @ b, "x")),
            "twice": product(lambda a, b: lax.psum(lax.psum(a @ b, "y"), "y")),
            "over both": product(lambda a, b: lax.psum(a @ b, ("x", "y"))),
        },
    )

    def rows(f: Callable[..., Any]) -> Any:
        return over(f, LINE, (P(None, "d"), P("d", None), P(None)), P())

    yield (
        "bias",
        lambda x, w, b: x @ w + b,
        ("f32[4,16]", "f32[16,8]", "f32[8]"),
        {
            "right": rows(lambda x, w, b: lax.psum(x @ w, "d") + b),
            "on each device": rows(lambda x, w, b: lax.psum(x @ w + b, "d")),
            "tanh before": rows(lambda x, w, b: lax.psum(jnp.tanh(x @ w), "d") + b),
        },
    )
    yield (
        "tanh",
        lambda x, w, b: jnp.tanh(x @ w) + b,
        ("f32[4,16]", "f32[16,8]", "f32[8]"),
        {
            "right": rows(lambda x, w, b: jnp.tanh(lax.psum(x @ w, "d")) + b),
            "before the sum": rows(lambda x, w, b: lax.psum(jnp.tanh(x @ w), "d") + b),
        },
    )

    def scattered(f: Callable[..., Any]) -> Any:
        return over(f, LINE, P("d", None), P("d"))

    yield (
        "reduce-scatter",
        lambda x: x.sum(0),
        ("f32[4,8]",),
        {
            "right": scattered(lambda x: lax.psum_scatter(x[0], "d", tiled=True)),
            "of the next": scattered(
                lambda x: lax.ppermute(
                    lax.psum_scatter(x[0], "d", tiled=True), "d", [(k, (k + 1) % 4) for k in range(4)]
                )
            ),
        },
    )

    def grouped(groups: list[list[int]]) -> Any:
        return over(lambda x: lax.psum(x, "d", axis_index_groups=groups), LINE, P("d", None), P("d", None))

    yield (
        "groups",
        lambda x: jnp.repeat(x.reshape(2, 2, 8).sum(1), 2, 0),
        ("f32[4,8]",),
        {"right": grouped([[0, 1], [2, 3]]), "crossed": grouped([[0, 2], [1, 3]])},
    )


def _means() -> Iterator[Case]:
    def loss(f: Callable[..., Any]) -> Any:
        return over(f, LINE, (P("d"), P("d")), P())

    yield (
        "mean over valid",
        lambda x, w: (x * w).sum() / w.sum(),
        ("f32[32]", "f32[32]"),
        {
            "right": loss(lambda x, w: lax.psum((x * w).sum(), "d") / lax.psum(w.sum(), "d")),
            "mean of means": loss(lambda x, w: lax.pmean((x * w).sum() / w.sum(), "d")),
            "wrong count": loss(lambda x, w: lax.psum((x * w).sum(), "d") / w.sum()),
            "not declared": loss(lambda x, w: (x * w).sum() / w.sum()),
        },
    )

    def normed(x: Any, count: int) -> Any:
        mean = lax.psum(x.sum(-1, keepdims=True), "d") / (4 * x.shape[-1])
        var = lax.psum(((x - mean) ** 2).sum(-1, keepdims=True), "d") / (count * x.shape[-1])
        return (x - mean) * lax.rsqrt(var + 1e-5)

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def columns(f: Callable[..., Any]) -> Any:
        return over(f, LINE, P(None, "d"), P(None, "d"))

    yield (
        "layer norm",
        norm,
        ("f32[4,32]",),
        {
            "right": columns(lambda x: normed(x, 4)),
            "local count": columns(lambda x: normed(x, 1)),
            "local": columns(norm),
        },
    )

    def softmax(x: Any, largest: Callable[[Any], Any]) -> Any:
        e = jnp.exp(x - largest(x.max(-1, keepdims=True)))
        return e / lax.psum(e.sum(-1, keepdims=True), "d")

    yield (
        "softmax",
        lambda x: jax.nn.softmax(x, -1),
        ("f32[4,32]",),
        {
            "right": columns(lambda x: softmax(x, lambda m: lax.pmax(m, "d"))),
            "own maximum": columns(lambda x: softmax(x, lambda m: m)),
        },
    )


def _moves() -> Iterator[Case]:
    def moved(f: Callable[..., Any], outs: Any = None) -> Any:
        return over(f, LINE, P("d", None), P("d", None) if outs is None else outs)

    yield (
        "roll",
        lambda x: jnp.roll(x, 2, 0),
        ("f32[8,3]",),
        {
            "right": moved(lambda x: lax.ppermute(x, "d", [(k, (k + 1) % 4) for k in range(4)])),
            "other direction": moved(lambda x: lax.ppermute(x, "d", [((k + 1) % 4, k) for k in range(4)])),
            "not around": moved(lambda x: lax.ppermute(x, "d", [(k, k + 1) for k in range(3)])),
        },
    )
    yield (
        "all-gather",
        lambda x: x,
        ("f32[8,3]",),
        {
            "right": moved(lambda x: lax.all_gather(x, "d", tiled=True), P()),
            "stacked": moved(lambda x: lax.all_gather(x, "d").reshape(-1, 3), P()),
            "wrong order": moved(lambda x: lax.all_gather(x, "d")[::-1].reshape(-1, 3), P()),
            "interleaved": moved(lambda x: lax.all_gather(x, "d", axis=1).reshape(-1, 3), P()),
        },
    )
    yield (
        "all-to-all",
        lambda x: x,
        ("f32[8,8]",),
        {
            "right": moved(lambda x: lax.all_to_all(x, "d", 1, 0, tiled=True), P(None, "d")),
            "backwards": moved(lambda x: lax.all_to_all(x[::-1], "d", 1, 0, tiled=True), P(None, "d")),
        },
    )

    def ring(sign: int) -> Any:
        def f(x: Any, w: Any) -> Any:
            here, k = lax.axis_index("d"), w.shape[0]

            def step(t: Any, carry: Any) -> Any:
                total, w = carry
                at = (here + sign * t) % 4
                total = total + lax.dynamic_slice_in_dim(x, at * k, k, 1) @ w
                return total, lax.ppermute(w, "d", [((s + 1) % 4, s) for s in range(4)])

            return lax.fori_loop(0, 4, step, (jnp.zeros((x.shape[0], w.shape[1])), w))[0]

        return over(f, LINE, (P("d", None), P("d", None)), P("d", None))

    yield "ring matmul", lambda x, w: x @ w, ("f32[8,16]", "f32[16,8]"), {"right": ring(1), "other slice": ring(-1)}

    def dropped(shared: bool) -> Any:
        def f(x: Any) -> Any:
            key = jax.random.key(KEY)
            return x * jax.random.bernoulli(
                key if shared else jax.random.fold_in(key, lax.axis_index("d")), 0.5, x.shape
            )

        return over(f, LINE, P("d", None), P("d", None))

    def dropout(x: Any) -> Any:
        keys = [jax.random.fold_in(jax.random.key(KEY), k) for k in range(4)]
        return x * jnp.concatenate([jax.random.bernoulli(key, 0.5, (2, 8)) for key in keys])

    yield "dropout", dropout, ("f32[8,8]",), {"right": dropped(False), "shared key": dropped(True)}

    def chosen(first: float) -> Any:
        def f(x: Any) -> Any:
            return lax.cond(lax.axis_index("d") == 0, lambda x: first * x, lambda x: x, x)

        return over(f, LINE, P("d", None), P("d", None))

    yield (
        "branch",
        lambda x: x * jnp.array([2.0, 1, 1, 1])[:, None],
        ("f32[4,8]",),
        {"right": chosen(2.0), "other factor": chosen(3.0)},
    )


def _gradients() -> Iterator[Case]:
    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    def reduced(by: Callable[[Any], Any]) -> Any:
        return over(lambda w, x: by(jax.grad(loss)(w, x)), LINE, (P(), P("d", None)), P())

    yield (
        "gradient of data in parts",
        jax.grad(loss),
        ("f32[8,4]", "f32[16,8]"),
        {
            "right": reduced(lambda g: lax.pmean(g, "d")),
            "not reduced": reduced(lambda g: g),
            "summed": reduced(lambda g: lax.psum(g, "d")),
            "reduced twice": reduced(lambda g: lax.psum(lax.pmean(g, "d"), "d")),
        },
    )

    def through(checked: bool, scale: float = 1.0) -> Any:
        def whole(x: Any, w: Any) -> Any:
            part = over(
                lambda x, w: scale * lax.pmean(((x @ w) ** 2).mean(), "d"), LINE, (P("d", None), P()), P(), checked
            )
            return part(x, w)

        return jax.grad(whole, argnums=(0, 1))

    yield (
        "gradient through",
        jax.grad(lambda x, w: ((x @ w) ** 2).mean(), argnums=(0, 1)),
        ("f32[8,16]", "f32[16,8]"),
        {"right": through(False), "checked": through(True), "scaled": through(True, 2.0)},
    )

    def layers(step: Callable[[Any, Any], Any]) -> Any:
        def f(x: Any, ws: Any) -> Any:
            return lax.scan(lambda x, w: (step(x, w), None), x, ws)[0]

        return f

    def split(last: Callable[[Any], Any]) -> Any:
        def step(x: Any, w: Any) -> Any:
            return jnp.tanh(last(x @ w))

        return over(layers(step), LINE, (P(), P(None, None, "d")), P())

    yield (
        "layers",
        layers(lambda x, w: jnp.tanh(x @ w)),
        ("f32[4,8]", "f32[3,8,8]"),
        {
            "right": split(lambda y: lax.all_gather(y, "d", axis=1, tiled=True)),
            "parts turned": split(lambda y: lax.all_gather(y, "d", axis=1)[:, ::-1].reshape(4, 8)),
        },
    )


def cases() -> list[Case]:
    """All of them."""
    return [*_sums(), *_means(), *_moves(), *_gradients()]


RIGHT = ("right", "checked", "stacked")
"""Names of functions that compute what the reference does."""
