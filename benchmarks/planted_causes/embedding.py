"""A table over devices, looked up, and its logits."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

EPSILON = 1e-6


def put(x, spec):
    return jax.lax.with_sharding_constraint(x, spec)


def finish(x):
    return x + EPSILON


def look_up(table, tokens):
    table = put(table, P(None, None))
    e = table[tokens]
    e = put(e, P("data", None, None))
    return jax.nn.gelu(e)


def best_of(table, tokens):
    e = look_up(table, tokens)
    logits = jnp.einsum("btd,vd->btv", e, table)
    logits = put(logits, P("data", None, "model"))
    best = jnp.max(logits, axis=-1)
    return finish(best)
