"""Programs as they were: each name has a right rewrite in `right.py` and a wrong one in `wrong.py`."""

import jax
import jax.numpy as jnp

B1, B2, EPS, LR = 0.9, 0.999, 1e-8, 1e-3


# the thirteen kinds that compiled texts did not tell apart


def sgd(p, g):
    return p - LR * g


def sgd_rate(p, g):
    return p - LR * g


def adam(p, g, m, v):
    m = B1 * m + (1 - B1) * g
    v = B2 * v + (1 - B2) * g * g
    return p - LR * m / (jnp.sqrt(v) + EPS), m, v


def adam_second(p, g, m, v):
    m = B1 * m + (1 - B1) * g
    v = B2 * v + (1 - B2) * g * g
    return p - LR * m / (jnp.sqrt(v) + EPS), m, v


def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * scale + bias


def exp_product(x, a, b):
    y = x @ a
    z = x @ b
    return jnp.exp(y) * z


def residual(x, w1, w2):
    h = jnp.tanh(x @ w1)
    return x + h @ w2


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def cross_entropy(logits, target):
    logp = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    return -(target * logp).sum(-1).mean()


def gated(x, wg, wu, wd):
    return (jax.nn.silu(x @ wg) * (x @ wu)) @ wd


def momentum(p, g, m):
    m = 0.9 * m + g
    return p - LR * m, m


def clip(g):
    n = jnp.sqrt((g * g).sum())
    return g / jnp.maximum(n, 1.0)


def causal(q, k, v):
    s = q @ k.T / jnp.sqrt(16.0)
    mask = jnp.arange(8)[:, None] >= jnp.arange(8)[None, :]
    return jax.nn.softmax(jnp.where(mask, s, -1e30), -1) @ v


# twenty more


def adamw(p, g, m, v):
    m = B1 * m + (1 - B1) * g
    v = B2 * v + (1 - B2) * g * g
    return p - LR * (m / (jnp.sqrt(v) + EPS) + 0.1 * p)


def lion(p, g, m):
    u = jnp.tanh(B1 * m + (1 - B1) * g)
    return p - LR * u, 0.99 * m + 0.01 * g


def rms_norm(x, scale):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def batch_norm(x, mean, var):
    return (x - mean) / jnp.sqrt(var + 1e-5), 0.9 * mean + 0.1 * x.mean(0)


def heads(x, wq, wk, wv):
    q, k, v = ((x @ w).reshape(8, 4, 4).transpose(1, 0, 2) for w in (wq, wk, wv))
    p = jax.nn.softmax(jnp.einsum("hqd,hkd->hqk", q, k) / 2.0, -1)
    return jnp.einsum("hqk,hkd->hqd", p, v).transpose(1, 0, 2).reshape(8, 16)


def grouped(q, k, v):
    k, v = (jnp.repeat(x, 2, 0) for x in (k, v))
    return jax.nn.softmax(jnp.einsum("hqd,hkd->hqk", q, k), -1) @ v


def linear_attention(q, k, v):
    return q @ (k.T @ v)


def layers(x, ws):
    for w in ws:
        x = jnp.tanh(x @ w)
    return x


def loss_and_grad(w, x, y):
    def loss(w):
        return ((jnp.tanh(x @ w) - y) ** 2).mean()

    return jax.value_and_grad(loss)(w)


def remat(w, x):
    def layer(h, w):
        return jnp.tanh(h @ w), None

    return jax.grad(lambda w: jax.lax.scan(layer, x, w)[0].sum())(w)


def huber(x, y):
    d = jnp.abs(x - y)
    return jnp.where(d <= 1.0, 0.5 * d * d, d - 0.5).mean()


def contrastive(a, b):
    s = a @ b.T
    return (jax.nn.logsumexp(s, -1) - jnp.diagonal(s)).mean()


def schedule(step):
    warm = jnp.minimum(step / 100.0, 1.0)
    return LR * warm * 0.5 * (1 + jnp.cos(step / 1000.0))


def accumulate(w, xs):
    def loss(w, x):
        return ((x @ w) ** 2).sum()

    def body(total, x):
        return total + jax.grad(loss)(w, x), None

    return jax.lax.scan(body, jnp.zeros_like(w), xs)[0] / xs.shape[0]


TABLE = jnp.array([0, 2, 1, 3, 2, 0, 3, 1])


def moe(x, w):
    return jnp.einsum("td,tdf->tf", x, w[TABLE])


def moe_gates(x, w, gates):
    chosen = jax.nn.one_hot(TABLE, 4) * gates[:, None]
    return jnp.einsum("te,td,edf->tf", chosen, x, w)


def rotary(x, cos, sin):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def convolution(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def averaged(p, ema):
    return {"ema": 0.99 * ema + 0.01 * p, "distance": ((p - ema) ** 2).sum()}


def mixed_loss(x, y, w):
    return {"total": (w * (x - y) ** 2).sum() / w.sum(), "plain": ((x - y) ** 2).mean()}
