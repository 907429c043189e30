"""A transformer layer on one device, and over a mesh: parameters (FSDP), heads and columns, and tokens in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

P = PartitionSpec
MESH = AbstractMesh((2, 2, 2), ("data", "model", "seq"), (AxisType.Auto,) * 3)
HEADS = 4


def _norm(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def _attention(q: Any, k: Any, v: Any, heads: int, first: Any) -> Any:
    """Causal. first: the position of the first query among the keys."""
    batch, tokens, _ = q.shape

    def split(a: Any) -> Any:
        return a.reshape(batch, a.shape[1], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = split(q), split(k), split(v)
    weights = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(1.0 * q.shape[-1])
    later = first + jnp.arange(tokens)[:, None] < jnp.arange(k.shape[2])[None]
    weights = jax.nn.softmax(jnp.where(later, -1e30, weights), -1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v).transpose(0, 2, 1, 3).reshape(batch, tokens, -1)


def layer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    """The reference."""
    h = _norm(x)
    x = x + _attention(h @ wq, h @ wk, h @ wv, HEADS, 0) @ wo
    return x + jax.nn.gelu(_norm(x) @ w1) @ w2


def layers(remat: Any = None) -> Callable[..., Any]:
    """Of weights that are stacked, one layer after the other. remat: a checkpoint's policy."""
    return _scanned(layer, remat)


def _scanned(step: Callable[..., Any], remat: Any) -> Callable[..., Any]:
    one = step if remat is None else jax.checkpoint(step, policy=remat)

    def f(x: Any, *weights: Any) -> Any:
        return lax.scan(lambda x, w: (one(x, *w), None), x, weights)[0]

    return f


def sharded(fault: str = "", scanned: bool = False, remat: Any = None) -> Callable[..., Any]:
    """The same over the mesh; `fault` names what is wrong in it. scanned, remat: as of `layers`."""

    def f(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
        def whole(w: Any, axis: int) -> Any:
            return lax.all_gather(w, "seq" if fault == "gathered over another axis" else "data", axis=axis, tiled=True)

        h = _norm(x)
        q, k, v = h @ whole(wq, 0), h @ whole(wk, 0), h @ whole(wv, 0)
        k, v = (lax.all_gather(a, "seq", axis=1, tiled=True) for a in (k, v))
        first = 0 if fault == "every part begins at 0" else lax.axis_index("seq") * x.shape[1]
        x = x + lax.psum(_attention(q, k, v, HEADS // 2, first) @ whole(wo, 1), "model")
        y = jax.nn.gelu(_norm(x) @ whole(w1, 0)) @ whole(w2, 1)
        return lax.psum(x + y, "model") if fault == "residual in the sum" else x + lax.psum(y, "model")

    first = (None,) if scanned else ()
    rows, columns = P(*first, "data", "model"), P(*first, "model", "data")
    ins = (P("data", "seq"), rows, rows, rows, columns, rows, columns)
    whole = _scanned(f, remat) if scanned else f
    # the gradient needs to know what is the same on all devices
    return jax.shard_map(whole, mesh=MESH, in_specs=ins, out_specs=P("data", "seq"), check_vma=not fault)


def arguments(batch: int, tokens: int, width: int, hidden: int, layers: int = 0) -> tuple[str, ...]:
    """Shapes as texts. layers: how many weights are stacked, 0 for those of one layer."""
    many = f"{layers}," if layers else ""
    square = f"f32[{many}{width},{width}]"
    wide, narrow = f"f32[{many}{width},{hidden}]", f"f32[{many}{hidden},{width}]"
    return (f"f32[{batch},{tokens},{width}]", *(square,) * 4, wide, narrow)
