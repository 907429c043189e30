"""Functions over a mesh, as `compile` partitions them; each is compared with what it says on one device.

`WRONG` has functions of the same arguments and results that compute something else: the compiled text of the right one
differs from each of them.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

EIGHT = {"data": 2, "model": 4}
FOUR = {"data": 2, "model": 2}
LINE = {"x": 4}


def mlp(x, w1, w2):
    return jax.nn.gelu(x @ w1) @ w2


def fsdp_step(x, w1, w2, rate=0.1):
    """Parameters are cut over the data axis, gathered before use, and their gradients scattered."""
    loss, grads = jax.value_and_grad(lambda w: (mlp(x, *w) ** 2).mean())((w1, w2))
    return loss, w1 - rate * grads[0], w2 - rate * grads[1]


def tensor_parallel(x, w1, w2):
    return mlp(x, w1, w2)


def tensor_parallel_gradient(x, w1, w2):
    return jax.grad(lambda x, a, b: jnp.sin(mlp(x, a, b)).sum(), (0, 1, 2))(x, w1, w2)


def layer_norm(x, eps=1e-5):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + eps)


def sharded_norm(x, g, eps=1e-5):
    """The dimension that is normalised is cut."""
    return layer_norm(x, eps) * g


def attention(x, wq, wk, wv, wo, shift=0):
    """Heads are cut over the model axis."""
    q, k, v = (jnp.einsum("btd,dhe->bhte", x, w) for w in (wq, wk, wv))
    scores = jnp.einsum("bhte,bhse->bhts", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool), shift), scores, -1e30)
    return jnp.einsum("bhts,bhse,hed->btd", jax.nn.softmax(scores), v, wo)


def sequence_parallel(x, w1, w2, eps=1e-5):
    """Norms are cut over tokens, products over columns: gathered before, scattered after."""
    x = lax.with_sharding_constraint(x, P("data", "model", None))
    h = lax.with_sharding_constraint(layer_norm(x, eps), P("data", None, None))
    y = lax.with_sharding_constraint(mlp(h, w1, w2), P("data", "model", None))
    return x + y


def moe(x, w, back=True):
    """Tokens go to the devices of their experts and back: one expert for each block of rows."""

    def one(x, w):
        sent = lax.all_to_all(x.reshape(4, -1, x.shape[-1]), "x", 0, 0)
        made = jax.nn.relu(jnp.einsum("gbd,df->gbf", sent, w[0]))
        made = lax.all_to_all(made, "x", 0, 0) if back else made
        return made.reshape(-1, made.shape[-1])

    return jax.shard_map(one, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, w)


def moe_gradient(x, w, back=True):
    order = jnp.arange(x.shape[0])[:, None] / 8
    return jax.grad(lambda x, w: (moe(x, w, back) * order).sum(), (0, 1))(x, w)


def heads_to_tokens(q, k, v, shift=0):
    """Tokens are cut outside of the attention and heads inside (Ulysses)."""

    def one(q, k, v):
        q, k, v = (lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        scores = jnp.einsum("qhd,khd->hqk", q, k)
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool), shift), scores, -1e30)
        out = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v)
        return lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(one, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


def ring_attention(q, k, v, step=1):
    """Keys and values go round; a running maximum and sum are kept."""

    def one(q, k, v):
        m, total, acc = jnp.full(q.shape[:1], -jnp.inf), jnp.zeros(q.shape[:1]), jnp.zeros(q.shape)
        for _ in range(4):
            s = q @ k.T
            new = jnp.maximum(m, s.max(-1))
            p, scale = jnp.exp(s - new[:, None]), jnp.exp(m - new)
            m, total, acc = new, total * scale + p.sum(-1), acc * scale[:, None] + p @ v
            k, v = (lax.ppermute(a, "x", [(i, (i + step) % 4) for i in range(4)]) for a in (k, v))
        return acc / total[:, None]

    return jax.shard_map(one, in_specs=(P("x"),) * 3, out_specs=P("x"), check_vma=False)(q, k, v)


def halo(x, w, side=1):
    """A convolution along what is cut: the last rows of one device are the first ones of the next."""

    def one(x, w):
        many = w.shape[0] - 1
        last = lax.ppermute(x[-many:], "x", [(i, i + side) for i in range(4) if 0 <= i + side < 4])
        padded = jnp.concatenate([last, x])
        return sum(padded[k : k + x.shape[0]] * w[k] for k in range(w.shape[0]))

    return jax.shard_map(one, in_specs=(P("x"), P()), out_specs=P("x"))(x, w)


def reduce_scatter(x, w, sign=1):
    def one(x, w):
        return lax.psum_scatter(x @ w, "x", scatter_dimension=0, tiled=True) * sign

    return jax.shard_map(one, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))(x, w)


def zero_adam(p, g, m, v, rate=1e-3):
    """Moments and parameters are cut, gradients come as one of each device's rows."""
    g = g.mean(0)
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - rate * (m / (1 - 0.9)) / (jnp.sqrt(v / (1 - 0.999)) + 1e-8), m, v


def clipped(w, g, most=1.0):
    """The norm of all gradients together."""
    norm = jnp.sqrt(sum((x * x).sum() for x in g.values()))
    return {k: w[k] - 0.1 * g[k] * jnp.minimum(1.0, most / (norm + 1e-6)) for k in w}


def vocabulary_loss(x, w, t, least=0):
    """The vocabulary is cut."""
    return -jnp.take_along_axis(jax.nn.log_softmax(x @ w), jnp.maximum(t, least)[:, None], 1).mean()


def vocabulary_gradient(x, w, t, least=0):
    return jax.grad(vocabulary_loss, (0, 1))(x, w, t, least)


def embedding(table, ids, scale=1.0):
    return table[ids] * scale


def batch_norm(x, g, eps=1e-3):
    """Mean and variance of the whole batch, which is cut."""
    m, v = x.mean(0), x.var(0)
    return (x - m) / jnp.sqrt(v + eps) * g


def decode(q, k, v, length, extra=0):
    """The cache is cut along its positions."""
    s = jnp.einsum("bhd,bshd->bhs", q, k)
    seen = jnp.arange(k.shape[1])[None, None] < length[:, None, None] + extra
    return jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(jnp.where(seen, s, -1e30)), v)


def transposed(x, sign=1):
    return x.T * sign


def pipeline(x, w, stages=4):
    """Each device has one layer; what it made goes to the next."""

    def one(x, w):
        stage = lax.axis_index("x")
        held, out = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
        for k in range(x.shape[0] + 3):
            given = jnp.where(stage == 0, x[min(k, x.shape[0] - 1)], held)
            made = jnp.tanh(given @ w[0])
            if k >= 3:
                out = out.at[k - 3].set(jnp.where(stage == stages - 1, made, 0))
            held = lax.ppermute(made, "x", [(i, (i + 1) % 4) for i in range(4)])
        return lax.psum(out, "x")

    return jax.shard_map(one, in_specs=(P(), P("x")), out_specs=P(), check_vma=False)(x, w)


def block(x, p, eps=1e-5):
    h = layer_norm(x, eps)
    x = x + attention(h, p["q"], p["k"], p["v"], p["o"])
    return x + mlp(layer_norm(x), p["a"], p["b"])


def transformer_step(x, p, eps=1e-5, rate=1e-2):
    """Four layers in a loop, FSDP x TP: loss, gradient and SGD."""

    def loss(p):
        return (lax.scan(lambda x, p: (block(x, p, eps), None), x, p)[0] ** 2).mean()

    value, grads = jax.value_and_grad(loss)(p)
    return value, jax.tree.map(lambda a, g: a - rate * g, p, grads)


_LAYERS = {
    **dict.fromkeys("qkv", "f32[4,32,4,8]"), "o": "f32[4,4,8,32]", "a": "f32[4,32,64]", "b": "f32[4,64,32]",
}  # fmt: skip
_CUT = (
    "{'q': P(None, 'data', 'model'), 'k': P(None, 'data', 'model'), 'v': P(None, 'data', 'model'), "
    "'o': P(None, 'model', None, 'data'), 'a': P(None, 'data', 'model'), 'b': P(None, 'model', 'data')}"
)
_TOKENS = ("f32[32,8,16]",) * 3
_MLP = ("f32[32,64]", "f32[64,128]", "f32[128,64]")
_MLP_SPECS = ("P('data')", "P(None, 'model')", "P('model')")
_TREE = {"w": "f32[16,64]", "b": "f32[64]"}
_TREE_SPECS = "{'w': P('data', 'model'), 'b': P('model')}"
_HEADS = ("f32[4,16,32]", *("f32[32,4,8]",) * 3, "f32[4,8,32]")
_HEAD_SPECS = ("P('data')", *("P(None, 'model')",) * 3, "P('model')")
_VOCABULARY = (("f32[16,32]", "f32[32,128]", "s32[16]"), FOUR, ("P('data')", "P(None, 'model')", "P('data')"), ())

PROGRAMS: dict[str, tuple[tuple[Any, ...], dict[str, int], tuple[str, ...], tuple[str, ...]]] = {
    "fsdp_step": (_MLP, LINE, ("P('x')",) * 3, ("P()", "P('x')", "P('x')")),
    "tensor_parallel": (_MLP, FOUR, _MLP_SPECS, ("P('data')",)),
    "tensor_parallel_gradient": (_MLP, EIGHT, _MLP_SPECS, _MLP_SPECS),
    "sharded_norm": (("f32[16,256]", "f32[256]"), LINE, ("P(None, 'x')", "P('x')"), ("P(None, 'x')",)),
    "attention": (_HEADS, FOUR, _HEAD_SPECS, ("P('data')",)),
    "sequence_parallel": (
        ("f32[4,16,32]", "f32[32,64]", "f32[64,32]"), FOUR, ("P('data', 'model')", "P(None, 'model')", "P('model')"),
        ("P('data', 'model')",),
    ),
    "moe": (("f32[64,32]", "f32[4,32,64]"), LINE, ("P('x')",) * 2, ("P('x')",)),
    "moe_gradient": (("f32[64,32]", "f32[4,32,64]"), LINE, ("P('x')",) * 2, ("P('x')",) * 2),
    "heads_to_tokens": (_TOKENS, LINE, ("P('x')",) * 3, ("P('x')",)),
    "ring_attention": (("f32[64,32]",) * 3, LINE, ("P('x')",) * 3, ("P('x')",)),
    "halo": (("f32[64,128]", "f32[3]"), LINE, ("P('x')", "P()"), ("P('x')",)),
    "reduce_scatter": (("f32[64,32]", "f32[32,64]"), LINE, ("P(None, 'x')", "P('x')"), ("P('x')",)),
    "zero_adam": (
        ("f32[64,32]", "f32[4,64,32]", "f32[64,32]", "f32[64,32]"), LINE, ("P('x')",) * 4, ("P('x')",) * 3,
    ),
    "clipped": ((_TREE, _TREE), FOUR, (_TREE_SPECS,) * 2, (_TREE_SPECS,)),
    "vocabulary_loss": _VOCABULARY,
    "vocabulary_gradient": _VOCABULARY,
    "embedding": (("f32[128,32]", "s32[16]"), FOUR, ("P('model')", "P('data')"), ("P('data')",)),
    "batch_norm": (("f32[64,32]", "f32[32]"), LINE, ("P('x')",), ("P('x')",)),
    "decode": (
        ("f32[4,4,16]", "f32[4,32,4,16]", "f32[4,32,4,16]", "s32[4]"), LINE,
        ("P()", "P(None, 'x')", "P(None, 'x')", "P()"), ("P()",),
    ),
    "transposed": (("f32[32,64]",), LINE, ("P('x')",), ("P('x')",)),
    "pipeline": (("f32[6,8,128]", "f32[4,128,128]"), LINE, ("P()", "P('x')"), ("P()",)),
    "transformer_step": (("f32[4,16,32]", _LAYERS), FOUR, ("P('data')", _CUT), ("P()", _CUT)),
}  # fmt: skip
"""Each with its arguments, mesh, and the shardings of arguments and results."""

WRONG: dict[str, dict[str, Any]] = {
    "fsdp_step": {"rate": 0.2},
    "sharded_norm": {"eps": 1e-2},
    "attention": {"shift": -1},
    "sequence_parallel": {"eps": 1e-2},
    "moe": {"back": False},
    "moe_gradient": {"back": False},
    "heads_to_tokens": {"shift": 1},
    "halo": {"side": -1},
    "reduce_scatter": {"sign": -1},
    "zero_adam": {"rate": -1e-3},
    "clipped": {"most": 0.5},
    "vocabulary_loss": {"least": 2},
    "vocabulary_gradient": {"least": 2},
    "embedding": {"scale": 1.01},
    "batch_norm": {"eps": 1e-5},
    "decode": {"extra": 1},
    "transposed": {"sign": -1},
    "pipeline": {"stages": 3},
    "transformer_step": {"rate": 2e-2},
}
"""Arguments by name with which a function computes something else."""
