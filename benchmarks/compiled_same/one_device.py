"""Functions for one device, each with wrong twins: `FUNCTIONS`, with their arguments, and `WRONG`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
WRONG: dict[str, list[Callable[..., Any]]] = {}


def given(*args):
    """A function of `FUNCTIONS`, with its arguments."""

    def kept(function):
        FUNCTIONS[function.__name__] = function, args
        return function

    return kept


def wrong(of):
    """A function of the same arguments as another one, that computes something else."""

    def kept(function):
        WRONG.setdefault(of, []).append(function)
        return function

    return kept


@given("f32[64,32]", "f32[32,128]")
def matmul(a, b):
    return a @ b


@given("bf16[64,32]", "bf16[32,128]", "bf16[128]")
def dense_bf16(a, b, c):
    return jax.nn.relu(a @ b + c)


@given("f32[16,100]")
def softmax(x):
    return jax.nn.softmax(x)


@given("f32[16,100]")
def log_softmax(x):
    return jax.nn.log_softmax(x)


@given("f32[2,4,32,16]", "f32[2,4,32,16]", "f32[2,4,32,16]")
def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(16.0)
    m = jnp.tril(jnp.ones((32, 32), bool))
    s = jnp.where(m, s, -1e30)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)


@given("bf16[2,4,32,16]", "bf16[2,4,32,16]", "bf16[2,4,32,16]")
def attention_bf16(q, k, v):
    return attention(q, k, v)


@given("f32[16,256]", "f32[256]", "f32[256]")
def layer_norm(x, g, b):
    mu = x.mean(-1, keepdims=True)
    v = ((x - mu) ** 2).mean(-1, keepdims=True)
    return (x - mu) * lax.rsqrt(v + 1e-5) * g + b


@given("f32[16,256]", "f32[256]")
def rms_norm(x, g):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


@given("f32[16,128]")
def gelu_erf(x):
    return jax.nn.gelu(x, approximate=False)


@given("f32[16,128]")
def gelu_tanh(x):
    return jax.nn.gelu(x)


@given("f32[16,128]")
def silu(x):
    return jax.nn.silu(x)


@given("f32[16,128]")
def softplus(x):
    return jax.nn.softplus(x)


@given("f32[16,128]")
def log1p(x):
    return jnp.log1p(jnp.exp(x))


@given("f32[12,16]", "f32[16,16]")
def scan_rnn(xs, w):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h

    h, ys = lax.scan(step, jnp.zeros(16), xs)
    return ys, h


@given("f32[16]", "f32[16,16]")
def while_fixed(x, w):
    return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.tanh(c[1] @ w)), (0, x))[1]


@given("s32[]", "f32[16]")
def while_input(n, x):
    return lax.fori_loop(0, n, lambda i, c: c * 1.5 + x, x)


@given("s32[]", "f32[16]")
def cond_input(n, x):
    return lax.cond(n > 1, lambda y: y * 2, lambda y: jnp.sin(y), x)


@given("f32[50,16]", "s32[8]")
def gather(t, i):
    return t[i]


@given("f32[50,16]", "s32[8]", "f32[8,16]")
def scatter_add(t, i, u):
    return t.at[i].add(u)


@given("f32[50,16]", "f32[8,16]")
def scatter_const(t, u):
    return t.at[jnp.array([3, 1, 7, 9, 20, 49, 0, 5])].add(u)


@given("f32[16,64]")
def cumsum(x):
    return jnp.cumsum(x, 1)


@given("f32[2,16,16,8]", "f32[3,3,8,16]")
def conv(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@given("f32[64,32]", "f32[64,32]", "f32[64,32]", "f32[64,32]")
def adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / (1 - 0.9)) / (jnp.sqrt(v / (1 - 0.999)) + 1e-8), m, v


@given("f32[64,32]", "f32[64,32]", "f32[64,32]")
def sgd_momentum(p, g, m):
    m = 0.9 * m + g
    return p - 0.01 * m, m


@given("f32[8,100]", "s32[8]")
def cross_entropy(x, t):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), t[:, None], 1).mean()


@given("f32[8,32]", "f32[32,64]", "f32[64,10]")
def mlp_grad(x, w1, w2):
    def loss(w1, w2):
        return jnp.sum(jnp.square(jax.nn.relu(x @ w1) @ w2))

    return jax.grad(loss, (0, 1))(w1, w2)


@given("f32[4,16,16,3]")
def maxpool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@given("f32[8,16]", "f32[8,32]")
def concat(a, b):
    return jnp.concatenate([a, b], 1) * 2


@given("f32[3,5]", "f32[3,5]")
def pads(a, b):
    return jnp.pad(a, ((1, 2), (0, 3)))[1:, :5].T @ jnp.pad(b, ((1, 2), (0, 3)))[1:, :5]


@given("f32[16,64]")
def topk(x):
    return lax.top_k(x, 4)


@given("f32[16,64]")
def sort(x):
    return jnp.sort(x, 1)


@given("f32[16,64]")
def argmax(x):
    return jnp.argmax(x, 1)


@given("f32[2,8,16]")
def rope(x):
    pos = jnp.arange(8)[:, None]
    inv = 1.0 / (10000 ** (jnp.arange(0, 8) / 8.0))
    a = pos * inv
    c, s = jnp.cos(a), jnp.sin(a)
    x1, x2 = x[..., :8], x[..., 8:]
    return jnp.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], -1)


@given("f32[16,64]")
def flip_roll(x):
    return jnp.roll(x[::-1], 3, 1)


@given("f32[16,64]")
def logsumexp(x):
    return jax.nn.logsumexp(x, 1)


@given("f32[8,64]")
def expm1(x):
    return jnp.expm1(x) + jax.nn.elu(x)


@given("f32[8,64]")
def sigmoid(x):
    return jax.nn.sigmoid(x)


@given("f32[8,64]")
def powr(x):
    return x**3 + jnp.abs(x) ** 0.5 + x / 3.3 * 2.2


@given("f32[4,64,64]")
def bmm(x):
    return jnp.einsum("bij,bkj->bik", x, x)


@given("f32[4,8]", "f32[8,8]")
def unrolled(x, w):
    for _ in range(3):
        x = x * 0.9
        x = jax.nn.relu(x @ w)
    return x


@given("f32[8,32]")
def var_std(x):
    return jnp.std(x, 1), jnp.var(x, 0)


@given("f32[8,32]", "f32[8,32]")
def mse(x, y):
    return jnp.mean((x - y) ** 2)


@given("f32[8,32]")
def clip_norm(x):
    n = jnp.sqrt(jnp.sum(x * x))
    return x * jnp.minimum(1.0, 1.0 / (n + 1e-6))


@given("f32[3,8,32]")
def dynslice(x):
    def body(i, c):
        return c + lax.dynamic_index_in_dim(x, i, 0, False) * 2

    return lax.fori_loop(0, 3, body, jnp.zeros((8, 32)))


@given("f32[8,32]")
def onehot(x):
    return jax.nn.one_hot(jnp.arange(8) % 4, 32) * x


@given("s8[8,32]", "s8[32,16]")
def int8_dot(a, b):
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)


@given("f32[16,32]")
def erfinv(x):
    return lax.erf_inv(jnp.tanh(x))


@given("f32[4,16,16,8]", "f32[3,3,4,16]")
def groupconv(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
    )


@given("f32[4,16,16,8]")
def avgpool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9


@given("f32[4,8,8,6]", "f32[6]", "f32[6]")
def batchnorm(x, g, b):
    m = x.mean((0, 1, 2))
    v = x.var((0, 1, 2))
    return (x - m) / jnp.sqrt(v + 1e-3) * g + b


@given("f32[2,8,8,4]", "f32[3,3,4,8]")
def convgrad(x, w):
    return jax.grad(
        lambda x, w: jnp.sum(
            jnp.square(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        ),
        (0, 1),
    )(x, w)


@given("f32[8,32]", "f32[4,32,16]", "f32[32,4]")
def moe_dense(x, w, r):
    g = jax.nn.softmax(x @ r)
    return jnp.einsum("te,td,edf->tf", g, x, w)


@given("f32[16,64]")
def softmax_grad(x):
    return jax.grad(lambda x: jnp.sum(jax.nn.softmax(x) ** 2))(x)


@given("f32[8,100]", "s32[8]")
def ce_grad(x, t):
    return jax.grad(lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x), t[:, None], 1).mean())(x)


KEYS = "abkoqv"


def block(p, x):
    def ln(x):
        m = x.mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)

    y = ln(x)
    q, k, v = [(y @ p[n]).reshape(*x.shape[:2], 4, -1) for n in "qkv"]
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8**0.5
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(x.shape) @ p["o"]
    return x + jax.nn.gelu(ln(x) @ p["a"]) @ p["b"]


@given("f32[2,16,32]", "f32[32,64]", "f32[64,32]", "f32[32,32]", "f32[32,32]", "f32[32,32]", "f32[32,32]")
def layer(x, *p):
    return block(dict(zip(KEYS, p, strict=True)), x)


@given("f32[2,16,32]", "f32[4,32,64]", "f32[4,64,32]", "f32[4,32,32]", "f32[4,32,32]", "f32[4,32,32]", "f32[4,32,32]")
def layers4(x, *p):
    def step(x, p):
        return block(dict(zip(KEYS, p, strict=True)), x), None

    return lax.scan(step, x, p)[0]


@given("f32[2,16,32]", "f32[32,64]", "f32[64,32]", "f32[32,32]", "f32[32,32]", "f32[32,32]", "f32[32,32]")
def layer_grad(x, *p):
    return jax.grad(lambda p: jnp.mean(block(dict(zip(KEYS, p, strict=True)), x) ** 2))(tuple(p))


@given("f32[2,16,32]", "f32[4,32,64]", "f32[4,64,32]", "f32[4,32,32]", "f32[4,32,32]", "f32[4,32,32]", "f32[4,32,32]")
def step4(x, *p):
    def loss(p):
        def step(x, p):
            return block(dict(zip(KEYS, p, strict=True)), x), None

        return jnp.mean(lax.scan(step, x, p)[0] ** 2)

    value, g = jax.value_and_grad(loss)(tuple(p))
    return (value, *[a - 1e-2 * b for a, b in zip(p, g, strict=True)])


@given("u32[2]", "f32[8,64]")
def dropout(k, x):
    return jnp.where(jax.random.bernoulli(k, 0.9, x.shape), x / 0.9, 0)


@given("f32[16,64]")
def cumprod_max(x):
    return jnp.cumprod(x[:, :8], 1), lax.cummax(x, 1), lax.cumsum(x, 0, reverse=True)


@given("bf16[16,64]", "bf16[64,64]")
def bf16_norm(x, w):
    y = x.astype(jnp.float32)
    y = y * lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)
    return y.astype(jnp.bfloat16) @ w


@given("f32[32,16]", "f32[16]", "s32[32]")
def segsum(x, b, i):
    return jax.ops.segment_sum(x + b, i, 8)


@given("f32[8,8]", "f32[8,8]")
def kron(a, b):
    return jnp.kron(a, b)


@given("f32[64]", "f32[5]")
def conv1d(a, b):
    return jnp.convolve(a, b, mode="same")


@given("f32[4,32]", "f32[4,32]")
def cosine(a, b):
    return (a * b).sum(-1) / (jnp.linalg.norm(a, axis=-1) * jnp.linalg.norm(b, axis=-1))


@given("f32[64,32]", "f32[64,32]", "f32[64,32]")
def lion(p, g, m):
    u = jnp.sign(0.9 * m + 0.1 * g)
    return p - 1e-4 * (u + 0.01 * p), 0.99 * m + 0.01 * g


@given("f32[16,16]")
def tri(x):
    return jnp.tril(x) - jnp.triu(x, 1) + jnp.eye(16)


@given("f32[10]", "s32[]")
def dyn(x, i):
    return lax.dynamic_slice(x, (i,), (4,))


@given("f32[4]", "s32[]")
def switch(x, i):
    return lax.switch(i, [lambda x: x, lambda x: x * 2, lambda x: x * x], x)


@wrong("matmul")
def matmul_1(a, b):
    return a @ b + 1e-3


@wrong("matmul")
def matmul_2(a, b):
    return (a * 1.0001) @ b


@wrong("dense_bf16")
def dense_bf16_1(a, b, c):
    return jax.nn.relu(a @ b - c)


@wrong("dense_bf16")
def dense_bf16_2(a, b, c):
    return a @ b + c


@wrong("softmax")
def softmax_1(x):
    return jax.nn.softmax(x, 0)


@wrong("softmax")
def softmax_2(x):
    return jnp.exp(x) / (jnp.exp(x).sum(-1, keepdims=True) + 1e-3)


@wrong("log_softmax")
def log_softmax_1(x):
    return x - jnp.log(jnp.sum(jnp.exp(x), 0))


def attention_with(scale=4.0, k=0, tr=False):
    def f(q, kk, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, kk) / scale
        m = jnp.tril(jnp.ones((32, 32), bool), k)
        s = jnp.where(m, s, -1e30)
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -2 if tr else -1), v)

    return f


for of in ("attention", "attention_bf16"):
    wrong(of)(attention_with(1.0))
    wrong(of)(attention_with(4.0, -1))
    wrong(of)(attention_with(4.0, 1))
    wrong(of)(attention_with(tr=True))


# in bfloat16 it would be 4
wrong("attention")(attention_with(3.999))


@wrong("layer_norm")
def layer_norm_1(x, g, b):
    mu = x.mean(-1, keepdims=True)
    v = ((x - mu) ** 2).mean(-1, keepdims=True)
    return (x - mu) * lax.rsqrt(v + 1e-6) * g + b


@wrong("layer_norm")
def layer_norm_2(x, g, b):
    mu = x.mean(-1, keepdims=True)
    v = ((x) ** 2).mean(-1, keepdims=True)
    return (x - mu) * lax.rsqrt(v + 1e-5) * g + b


@wrong("layer_norm")
def layer_norm_3(x, g, b):
    mu = x.mean(-1, keepdims=True)
    v = ((x - mu) ** 2).sum(-1, keepdims=True) / 255
    return (x - mu) * lax.rsqrt(v + 1e-5) * g + b


@wrong("rms_norm")
def rms_norm_1(x, g):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g


@wrong("gelu_erf")
def gelu_erf_1(x):
    return jax.nn.gelu(x)


@wrong("gelu_tanh")
def gelu_tanh_1(x):
    return jax.nn.gelu(x, approximate=False)


@wrong("silu")
def silu_1(x):
    return x * jax.nn.sigmoid(1.702 * x)


@wrong("softplus")
def softplus_1(x):
    return jax.nn.relu(x)


@wrong("log1p")
def log1p_1(x):
    return jnp.log1p(jnp.exp(-x))


@wrong("scan_rnn")
def scan_rnn_1(xs, w):
    def step(h, x):
        h = jnp.tanh(h @ w.T + x)
        return h, h

    h, ys = lax.scan(step, jnp.zeros(16), xs)
    return ys, h


@wrong("scan_rnn")
def scan_rnn_2(xs, w):
    def step(h, x):
        h2 = jnp.tanh(h @ w + x)
        return h2, h

    h, ys = lax.scan(step, jnp.zeros(16), xs)
    return ys, h


@wrong("while_fixed")
def while_fixed_1(x, w):
    return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.tanh(c[1] @ w)), (0, x))[1]


@wrong("while_input")
def while_input_1(n, x):
    return lax.fori_loop(0, n + 1, lambda i, c: c * 1.5 + x, x)


@wrong("while_input")
def while_input_2(n, x):
    return lax.fori_loop(0, jnp.minimum(n, 5), lambda i, c: c * 1.5 + x, x)


@wrong("cond_input")
def cond_input_1(n, x):
    return lax.cond(n > 2, lambda y: y * 2, lambda y: jnp.sin(y), x)


@wrong("cond_input")
def cond_input_2(n, x):
    return lax.cond(n > 1, lambda y: y * 2, lambda y: jnp.cos(y), x)


@wrong("gather")
def gather_1(t, i):
    return t[i - 1]


@wrong("gather")
def gather_2(t, i):
    return t[jnp.minimum(i, 40)]


@wrong("scatter_add")
def scatter_add_1(t, i, u):
    return t.at[i].set(u)


@wrong("scatter_const")
def scatter_const_1(t, u):
    return t.at[jnp.array([3, 1, 7, 9, 20, 49, 5, 0])].add(u)


@wrong("cumsum")
def cumsum_1(x):
    return jnp.cumsum(x, 1) - x


@wrong("cumsum")
def cumsum_2(x):
    return lax.cumsum(x, 1, reverse=True)


@wrong("conv")
def conv_1(x, w):
    return lax.conv_general_dilated(x, w[::-1], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@wrong("conv")
def conv_2(x, w):
    return lax.conv_general_dilated(
        x, w.transpose(1, 0, 2, 3), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def adam_with(b1=0.9, b2=0.999, eps=1e-8, inside=False, sq=True, lr=1e-3, c=0.001):
    def f(p, g, m, v):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + c * g * (g if sq else 1)
        h = v / (1 - b2)
        return p - lr * (m / (1 - b1)) / (jnp.sqrt(h + eps) if inside else jnp.sqrt(h) + eps), m, v

    return f


for changed in ({"b2": 0.99}, {"eps": 1e-6}, {"inside": True}, {"sq": False}, {"lr": -1e-3}, {"b1": 0.91}):
    wrong("adam")(adam_with(**changed))


@wrong("sgd_momentum")
def sgd_momentum_1(p, g, m):
    n = 0.9 * m + g
    return p - 0.01 * m, n


@wrong("sgd_momentum")
def sgd_momentum_2(p, g, m):
    m = 0.9 * m + g
    return p + 0.01 * m, m


@wrong("cross_entropy")
def cross_entropy_1(x, t):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), t[:, None], 1).sum()


@wrong("mlp_grad")
def mlp_grad_1(x, w1, w2):
    def loss(w1, w2):
        return jnp.mean(jnp.square(jax.nn.relu(x @ w1) @ w2))

    return jax.grad(loss, (0, 1))(w1, w2)


@wrong("maxpool")
def maxpool_1(x):
    return lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@wrong("concat")
def concat_1(a, b):
    return jnp.concatenate([a * 2, b], 1)


@wrong("rope")
def rope_1(x):
    pos = jnp.arange(8)[:, None]
    inv = 1.0 / (10000 ** (jnp.arange(0, 8) / 8.0))
    a = pos * inv
    c, s = jnp.cos(a), jnp.sin(a)
    x1, x2 = x[..., :8], x[..., 8:]
    return jnp.concatenate([x1 * c - x2 * s, x2 * c - x1 * s], -1)


@wrong("flip_roll")
def flip_roll_1(x):
    return jnp.roll(x[::-1], -3, 1)


@wrong("logsumexp")
def logsumexp_1(x):
    return jax.nn.logsumexp(x[:, 1:], 1)


@wrong("expm1")
def expm1_1(x):
    return jnp.expm1(x) + jax.nn.relu(x)


@wrong("powr")
def powr_1(x):
    return x**3 + jnp.abs(x) ** 0.5 + x / 3.3 * 2.1


@wrong("bmm")
def bmm_1(x):
    return jnp.einsum("bij,bjk->bik", x, x)


@wrong("unrolled")
def unrolled_1(x, w):
    for _ in range(3):
        x = x * 0.89
        x = jax.nn.relu(x @ w)
    return x


@wrong("var_std")
def var_std_1(x):
    return jnp.std(x, 1, ddof=1), jnp.var(x, 0)


@wrong("mse")
def mse_1(x, y):
    return jnp.mean(jnp.abs(x - y) ** 1)


@wrong("clip_norm")
def clip_norm_1(x):
    n = jnp.sqrt(jnp.sum(x * x))
    return x * jnp.minimum(1.0, 1.0 / (n + 1e-3))


@wrong("dynslice")
def dynslice_1(x):
    def body(i, c):
        return c + lax.dynamic_index_in_dim(x, i, 0, False) * 2

    return lax.fori_loop(0, 2, body, jnp.zeros((8, 32)))


@wrong("onehot")
def onehot_1(x):
    return jax.nn.one_hot(jnp.arange(8) % 3, 32) * x


@wrong("int8_dot")
def int8_dot_1(a, b):
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32) + 1


@wrong("erfinv")
def erfinv_1(x):
    return lax.erf_inv(jnp.tanh(x) * 0.99)


@wrong("groupconv")
def groupconv_1(x, w):
    return groupconv(x, w[:, ::-1])


@wrong("avgpool")
def avgpool_1(x):
    return avgpool(x) * 0.9


@wrong("batchnorm")
def batchnorm_1(x, g, b):
    return batchnorm(x, g, -b)


@wrong("convgrad")
def convgrad_1(x, w):
    a, b = convgrad(x, w)
    return a, b[::-1]


@wrong("moe_dense")
def moe_dense_1(x, w, r):
    return moe_dense(x, w[::-1], r)


@wrong("softmax_grad")
def softmax_grad_1(x):
    return -softmax_grad(x)


@wrong("ce_grad")
def ce_grad_1(x, t):
    return ce_grad(x, t) * 8


@wrong("layer")
def layer_1(x, a, b, k, o, q, v):
    return layer(x, a, b, q, o, k, v)


@wrong("layers4")
def layers4_1(x, *p):
    return layers4(x, *(a[::-1] for a in p))


@wrong("layer_grad")
def layer_grad_1(x, a, b, k, o, q, v):
    return layer_grad(x, a, b, k, o, q, o)


@wrong("step4")
def step4_1(x, *p):
    loss, *new = step4(x, *p)
    return (loss, *(2 * a - b for a, b in zip(p, new, strict=True)))


@wrong("cumprod_max")
def cumprod_max_1(x):
    a, b, c = cumprod_max(x)
    return a, b[:, ::-1], c


@wrong("bf16_norm")
def bf16_norm_1(x, w):
    return bf16_norm(x, w.T)


@wrong("segsum")
def segsum_1(x, b, i):
    return segsum(x, -b, i)


@wrong("kron")
def kron_1(a, b):
    return jnp.kron(b, a)


@wrong("conv1d")
def conv1d_1(a, b):
    return conv1d(a, b[::-1])


@wrong("cosine")
def cosine_1(a, b):
    return (a * b).sum(-1) / jnp.linalg.norm(a, axis=-1)


@wrong("lion")
def lion_1(p, g, m):
    q, _ = lion(p, -g, m)
    return q, 0.99 * m + 0.01 * g


@wrong("tri")
def tri_1(x):
    return tri(x.T)


@wrong("dyn")
def dyn_1(x, i):
    return dyn(x, i + 1)


@wrong("switch")
def switch_1(x, i):
    return switch(x, i + 1)
