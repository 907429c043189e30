"""A block of a vision transformer on one v5e."""

import jax
import jax.numpy as jnp

EPSILON = 1e-6
HEADS = 8


def finish(x):
    return x * (1 + EPSILON)


def norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale


def attention(x, wqkv, wo):
    b, n, d = x.shape
    qkv = (x @ wqkv).reshape(b, n, 3, HEADS, d // HEADS)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    s = s / (d // HEADS) ** 0.5
    p = jax.nn.softmax(s)
    o = jnp.einsum("bhqk,bkhd->bqhd", p, v)
    return o.reshape(b, n, d) @ wo


def mlp(x, w1, w2):
    return jax.nn.gelu(x @ w1) @ w2


def block(x, scale, wqkv, wo, w1, w2):
    x = x + attention(norm(x, scale), wqkv, wo)
    x = x + mlp(norm(x, scale), w1, w2)
    return finish(x)


def step(old, scale, wqkv, wo, w1, w2):
    new = block(old, scale, wqkv, wo, w1, w2)
    return new, new.astype(jnp.float32).mean()
