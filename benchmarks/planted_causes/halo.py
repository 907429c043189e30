"""A stencil by hand: each device fetches the edge rows of its neighbours."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

EPSILON = 1e-6
N = 8
DOWN = [(k, (k + 1) % N) for k in range(N)]
UP = [(k, (k - 1) % N) for k in range(N)]


def finish(x):
    return x * (1 - EPSILON)


def smooth(x):
    return 0.5 * x[1:-1] + 0.25 * (x[:-2] + x[2:])


def one(x):
    above = lax.ppermute(x[-1:], "rows", DOWN)
    below = lax.ppermute(x[:1], "rows", UP)
    wide = jnp.concatenate([above, x, below])
    y = smooth(wide)
    change = jnp.abs(y - x).max()
    return y, change


def sweep(x):
    y, change = one(x)
    y = y - y.mean(axis=1, keepdims=True)
    return finish(y), change[None]


def solve(x):
    f = jax.shard_map(sweep, in_specs=P("rows", None), out_specs=(P("rows", None), P("rows")))
    y, change = f(x)
    return y, change
