"""The same programs, rewritten: renamed, reordered, fused by hand, other loops, remat and jit."""

from functools import partial

import jax
import jax.numpy as jnp

B1, B2, EPS, LR = 0.9, 0.999, 1e-8, 1e-3


@jax.jit
def _step(value, by):
    return value - by


def sgd(params, grads):
    return _step(params, grads * LR)


def sgd_rate(p, g):
    return p + (-LR) * g


def _moments(g, m, v):
    return m + (1 - B1) * (g - m), v + (1 - B2) * (g**2 - v)


def adam(p, g, m, v):
    first, second = _moments(g, m, v)
    return p - LR * (first / (EPS + second**0.5)), first, second


def adam_second(p, g, m, v):
    m, v = jax.jit(_moments)(g, m, v)
    return p - (LR * m) / (EPS + jnp.sqrt(v)), m, v


def layer_norm(x, scale, bias):
    centred = x - x.sum(-1, keepdims=True) / x.shape[-1]
    inverse = jax.lax.rsqrt(jnp.mean(jnp.square(centred), -1, keepdims=True) + 1e-5)
    return bias + scale * (centred * inverse)


def exp_product(x, a, b):
    both = x @ jnp.concatenate([a, b], 1)
    y, z = jnp.split(both, 2, -1)
    return z * jnp.exp(y)


def residual(x, w1, w2):
    return jnp.einsum("bh,hd->bd", jnp.tanh(jnp.einsum("bd,dh->bh", x, w1)), w2) + x


def softmax(x):
    return jnp.exp(x - jax.nn.logsumexp(x, -1, keepdims=True))


def cross_entropy(logits, target):
    return -jnp.mean(jnp.einsum("bc,bc->b", target, jax.nn.log_softmax(logits)))


def gated(x, wg, wu, wd):
    gate = x @ wg
    return jnp.einsum("bh,hd->bd", gate * jax.nn.sigmoid(gate) * jnp.dot(x, wu), wd)


def momentum(p, g, m):
    return p - LR * g - (0.9 * LR) * m, g + 0.9 * m


def clip(g):
    return g * (1 / jnp.maximum(1.0, jnp.linalg.norm(g.ravel())))


def causal(q, k, v):
    i = jnp.arange(8)
    scores = jnp.einsum("qd,kd->qk", q * 0.25, k)
    scores = jnp.where(i[None, :] > i[:, None], -1e30, scores)
    e = jnp.exp(scores - scores.max(-1, keepdims=True))
    return (e @ v) / e.sum(-1, keepdims=True)


def adamw(p, g, m, v):
    m, v = _moments(g, m, v)
    return (1 - LR * 0.1) * p - LR * m / (jnp.sqrt(v) + EPS)


def lion(p, g, m):
    new = m - 0.01 * (m - g)
    return p - jnp.tanh((1 - B1) * g + m * B1) * LR, new


def rms_norm(x, scale):
    return scale * x / jnp.sqrt(jnp.square(x).sum(-1, keepdims=True) / x.shape[-1] + 1e-6)


def batch_norm(x, mean, var):
    scale = jax.lax.rsqrt(var + 1e-5)
    return x * scale - mean * scale, mean + 0.1 * (x.mean(0) - mean)


def heads(x, wq, wk, wv):
    out = []
    for h in range(4):
        q, k, v = (x @ w[:, 4 * h : 4 * h + 4] for w in (wq, wk, wv))
        out.append(jax.nn.softmax(q @ k.T * 0.5, -1) @ v)
    return jnp.concatenate(out, -1)


def grouped(q, k, v):
    q = q.reshape(2, 2, 8, 4)
    p = jax.nn.softmax(jnp.einsum("ghqd,gkd->ghqk", q, k), -1)
    return jnp.einsum("ghqk,gkd->ghqd", p, v).reshape(4, 8, 4)


def linear_attention(q, k, v):
    return (q @ k.T) @ v


def layers(x, ws):
    return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0]


def loss_and_grad(w, x, y):
    out = jnp.tanh(x @ w)
    error = out - y
    back = 2 * error / error.size * (1 - out * out)
    return jnp.mean(error**2), x.T @ back


def remat(w, x):
    @partial(jax.checkpoint, policy=jax.checkpoint_policies.nothing_saveable)
    def layer(h, w):
        return jnp.tanh(h @ w)

    def whole(w):
        h = x
        for k in range(3):
            h = layer(h, w[k])
        return h.sum()

    return jax.grad(whole)(w)


def huber(x, y):
    def one(d):
        return jnp.where(d <= 1.0, d * d / 2, d - 0.5)

    return jax.vmap(jax.vmap(one))(jnp.abs(x - y)).sum() / x.size


def contrastive(a, b):
    s = jnp.einsum("id,jd->ij", a, b)
    return -jnp.mean(jnp.diagonal(jax.nn.log_softmax(s, -1)))


def schedule(step):
    return 0.5 * LR * jnp.minimum(0.01 * step, 1.0) * (jnp.cos(0.001 * step) + 1)


def accumulate(w, xs):
    def loss(w):
        return sum(((x @ w) ** 2).sum() for x in xs) / len(xs)

    return jax.grad(loss)(w)


TABLE = (0, 2, 1, 3, 2, 0, 3, 1)


def moe(x, w):
    return jnp.stack([x[t] @ w[e] for t, e in enumerate(TABLE)])


def moe_gates(x, w, gates):
    every = jnp.einsum("td,edf->tef", x, w)
    return gates[:, None] * every[jnp.arange(8), jnp.array(TABLE)]


def rotary(x, cos, sin):
    half = x.shape[-1] // 2
    turned = jnp.concatenate([-x[..., half:], x[..., :half]], -1)
    return x * jnp.tile(cos, 2) + turned * jnp.tile(sin, 2)


def convolution(x, w):
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return sum(
        jnp.einsum("bhwi,io->bhwo", padded[:, i : i + 6, j : j + 6], w[i, j]) for i in range(3) for j in range(3)
    )


def averaged(p, ema):
    d = p - ema
    return {"distance": jnp.vdot(d, d), "ema": ema + 0.01 * d}


def mixed_loss(x, y, w):
    d = jnp.square(x - y)
    return {"plain": d.sum() / d.size, "total": jnp.average(d, weights=w)}
