"""Attention whose heads are on other devices."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

EPSILON = 1e-6
H, D = 8, 32


def put(x, spec):
    return jax.lax.with_sharding_constraint(x, spec)


def finish(x):
    return x * (1 + EPSILON)


def heads(x, w):
    return (x @ w).reshape(x.shape[0], x.shape[1], H, D)


def attend(x, wq, wk, wv, wo):
    b, s, _ = x.shape
    q = heads(x, wq)
    q = put(q, P("data", None, "model", None))
    k = heads(x, wk)
    k = put(k, P("data", None, "model", None))
    v = heads(x, wv)
    v = put(v, P("data", None, "model", None))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / D**0.5
    p = jax.nn.softmax(s, axis=-1)
    o = jnp.einsum("bhqk,bkhd->bqhd", p, v)
    s = x.shape[1]
    o = o.reshape(b, s, H * D)
    return finish(put(o @ wo, P("data", None, None)))
