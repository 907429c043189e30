"""One token of decoding with a cache, on one v5e."""

import jax
import jax.numpy as jnp

EPSILON = 1e-6


def finish(x):
    return x * (1 + EPSILON)


def step(q, old, new, at):
    k = jax.lax.dynamic_update_slice(old, new, (0, at, 0, 0))
    s = jnp.einsum("bhd,bshd->bhs", q, k)
    p = jax.nn.softmax(s, axis=-1)
    o = finish(jnp.einsum("bhs,bshd->bhd", p, k))
    return o, k
