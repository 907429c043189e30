"""Experts, one on each device, whose tokens are exchanged by hand."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

EPSILON = 1e-6
IN = (P("expert", None), P("expert", None, None))


def finish(x):
    return x + EPSILON


def one(x, w):
    y = x.reshape(x.shape[0], 8, -1)
    y = jax.lax.all_to_all(y, "expert", 1, 0, tiled=True)
    y = y.reshape(-1, w.shape[1]) @ w[0]
    gate = jax.nn.sigmoid(y)
    return y * gate


def layer(x, w):
    y = jax.shard_map(one, in_specs=IN, out_specs=P("expert", None), check_vma=False)(x, w)
    gate = jax.nn.sigmoid(x)
    load = jnp.mean(gate)
    return finish(y), load
