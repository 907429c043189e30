"""A stack of layers, recomputed on the way back."""

import jax
import jax.numpy as jnp

EPSILON = 1e-6


def finish(x):
    return jnp.mean(x.astype(jnp.float32) ** 2) + EPSILON


def stack(ws, x):
    x = x.astype(jnp.bfloat16)

    @jax.checkpoint
    def layer(x, w):
        a = jnp.einsum("bd,de->be", x, w)
        b = jnp.sin(a)
        c = jnp.exp(-b) * jnp.cos(a)
        x = jnp.tanh(c).astype(x.dtype)
        return x, None

    x, states = jax.lax.scan(layer, x, ws.astype(x.dtype))
    more = 0 if states is None else jnp.sum(jnp.max(states, axis=(0, 1)).astype(jnp.float32))
    return finish(x) + more


def step(ws, x):
    return jax.value_and_grad(stack)(ws, x)
