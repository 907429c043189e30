"""Functions of rows: norms, softmax, activations, losses, steps of optimisers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from benchmarks.wrong_kernels.made import Kernel, call, shape

F32, BF16 = jnp.float32, jnp.bfloat16


def by_rows(body: Callable[..., None], *arrays: Any, outputs: int = 1) -> Any:
    """A call over blocks of eight rows of 128; arrays of one row are whole."""
    ins = [((8, 128), lambda i: (i, 0)) if a.shape[0] > 1 else ((1, 128), lambda i: (0, 0)) for a in arrays]
    rows = arrays[0].shape[0]
    out = [shape(rows, 128, dtype=F32)] * outputs
    made = call(body, out, *arrays, grid=(rows // 8,), ins=ins, outs=[((8, 128), lambda i: (i, 0))] * outputs)
    return made[0] if outputs == 1 else made


def softmax(x: Any) -> Any:
    """Of each row."""

    def body(x, o):
        e = jnp.exp(x[...] - x[...].max(1, keepdims=True))
        o[...] = e / e.sum(1, keepdims=True)

    return by_rows(body, x)


def log_softmax(x: Any) -> Any:
    """Of each row."""

    def body(x, o):
        m = x[...].max(1, keepdims=True)
        o[...] = x[...] - m - jnp.log(jnp.exp(x[...] - m).sum(1, keepdims=True))

    return by_rows(body, x)


def masked_softmax(x: Any) -> Any:
    """Of the first 100 of each row, 0 after them."""

    def body(x, o):
        held = lax.broadcasted_iota(jnp.int32, (8, 128), 1) < 100
        s = jnp.where(held, x[...], -1e30)
        e = jnp.exp(s - s.max(1, keepdims=True))
        o[...] = e / e.sum(1, keepdims=True)

    return by_rows(body, x)


def masked_softmax_reference(x: Any) -> Any:
    """The same in one line."""
    return jnp.pad(jax.nn.softmax(x[:, :100], axis=-1), ((0, 0), (0, 28)))


def online_sums(x: Any) -> Any:
    """The logarithm of the sum of exponentials of each row, online over blocks of columns."""

    def body(x, o, m, total):
        @pl.when(pl.program_id(1) == 0)
        def _():
            m[...] = jnp.full_like(m, -jnp.inf)
            total[...] = jnp.zeros_like(total)

        new = jnp.maximum(m[...], x[...].max(1, keepdims=True))
        total[...] = total[...] * jnp.exp(m[...] - new) + jnp.exp(x[...] - new).sum(1, keepdims=True)
        m[...] = new

        @pl.when(pl.program_id(1) == 2)
        def _():
            o[...] = m[...] + jnp.log(total[...])

    return call(
        body, shape(16, 1, dtype=F32), x, grid=(2, 3), ins=[((8, 128), lambda i, j: (i, j))],
        outs=((8, 1), lambda i, j: (i, 0)), scratch=[pltpu.VMEM((8, 1), F32)] * 2,
    )  # fmt: skip


def rms_norm(x: Any, w: Any) -> Any:
    """x / sqrt(mean(x^2) + eps) * w."""

    def body(x, w, o):
        o[...] = x[...] * lax.rsqrt((x[...] * x[...]).mean(1, keepdims=True) + 1e-6) * w[...]

    return by_rows(body, x, w)


def rms_norm_reference(x: Any, w: Any) -> Any:
    """The same in one line."""
    return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6) * w


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    """(x - mean) / sqrt(var + eps) * w + b."""

    def body(x, w, b, o):
        mean = x[...].mean(1, keepdims=True)
        var = ((x[...] - mean) * (x[...] - mean)).mean(1, keepdims=True)
        o[...] = (x[...] - mean) * lax.rsqrt(var + 1e-5) * w[...] + b[...]

    return by_rows(body, x, w, b)


def layer_norm_reference(x: Any, w: Any, b: Any) -> Any:
    """The same in one line."""
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * w + b


def layer_norm_gradient(x: Any, g: Any) -> Any:
    """What comes back through (x - mean) / sqrt(var + 1e-5)."""

    def body(x, g, o):
        mean = x[...].mean(1, keepdims=True)
        centred = x[...] - mean
        r = lax.rsqrt((centred * centred).mean(1, keepdims=True) + 1e-5)
        h = centred * r
        o[...] = r * (g[...] - g[...].mean(1, keepdims=True) - h * (g[...] * h).mean(1, keepdims=True))

    return by_rows(body, x, g)


def layer_norm_gradient_reference(x: Any, g: Any) -> Any:
    """By JAX's own derivative."""

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5)

    return jax.vjp(norm, x)[1](g)[0]


def padded_mean(x: Any) -> Any:
    """x less the mean of the first 100 of each row, 0 after them."""

    def body(x, o):
        held = lax.broadcasted_iota(jnp.int32, (8, 128), 1) < 100
        mean = jnp.where(held, x[...], 0).sum(1, keepdims=True) / 100
        o[...] = jnp.where(held, x[...] - mean, 0)

    return by_rows(body, x)


def padded_mean_reference(x: Any) -> Any:
    """The same in one line."""
    return jnp.pad(x[:, :100] - x[:, :100].mean(1, keepdims=True), ((0, 0), (0, 28)))


def swiglu(x: Any, y: Any) -> Any:
    """silu(x) * y."""

    def body(x, y, o):
        o[...] = x[...] / (1 + jnp.exp(-x[...])) * y[...]

    return by_rows(body, x, y)


def gelu(x: Any) -> Any:
    """By tanh."""

    def body(x, o):
        v = x[...]
        o[...] = 0.5 * v * (1 + jnp.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))

    return by_rows(body, x)


def rope(x: Any, cos: Any, sin: Any) -> Any:
    """Each half of a row turned with the other."""

    def body(x, cos, sin, o):
        a, b = x[:, :64], x[:, 64:]
        turned = jnp.concatenate([-b, a], axis=1)
        o[...] = x[...] * cos[...] + turned * sin[...]

    return by_rows(body, x, cos, sin)


def rope_reference(x: Any, cos: Any, sin: Any) -> Any:
    """Half by half."""
    a, b = jnp.split(x, 2, -1)
    ca, cb = jnp.split(cos, 2, -1)
    sa, sb = jnp.split(sin, 2, -1)
    return jnp.concatenate([a * ca - b * sa, b * cb + a * sb], -1)


def cross_entropy(x: Any, t: Any) -> Any:
    """-sum(t * log_softmax(x)) of each row, online over blocks of 128 of 300 classes."""

    def body(x, t, o, m, total, held):
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _():
            m[...] = jnp.full_like(m, -jnp.inf)
            total[...] = jnp.zeros_like(total)
            held[...] = jnp.zeros_like(held)

        inside = lax.broadcasted_iota(jnp.int32, (8, 128), 1) + j * 128 < 300
        v = jnp.where(inside, x[...], -1e30)
        new = jnp.maximum(m[...], v.max(1, keepdims=True))
        total[...] = total[...] * jnp.exp(m[...] - new) + jnp.exp(v - new).sum(1, keepdims=True)
        m[...] = new
        held[...] += jnp.where(inside, x[...] * t[...], 0).sum(1, keepdims=True)

        @pl.when(j == 2)
        def _():
            o[...] = m[...] + jnp.log(total[...]) - held[...]

    block = ((8, 128), lambda i, j: (i, j))
    return call(
        body, shape(16, 1, dtype=F32), x, t, grid=(2, 3), ins=[block, block],
        outs=((8, 1), lambda i, j: (i, 0)), scratch=[pltpu.VMEM((8, 1), F32)] * 3,
    )  # fmt: skip


def cross_entropy_reference(x: Any, t: Any) -> Any:
    """The same in one line."""
    return jax.nn.logsumexp(x, -1, keepdims=True) - (t * x).sum(-1, keepdims=True)


def softmax_gradient(p: Any, g: Any) -> Any:
    """p * (g - sum(p * g))."""

    def body(p, g, o):
        o[...] = p[...] * (g[...] - (p[...] * g[...]).sum(1, keepdims=True))

    return by_rows(body, p, g)


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    """One step: the new weights and both moments."""

    def body(w, g, m, v, o, om, ov):
        first = 0.9 * m[...] + 0.1 * g[...]
        second = 0.999 * v[...] * v[...] + 0.001 * g[...] * g[...]
        o[...] = w[...] - 0.01 * first / (jnp.sqrt(second) + 1e-6)
        om[...] = first
        ov[...] = second

    return by_rows(body, w, g, m, v, outputs=3)


def adam_reference(w: Any, g: Any, m: Any, v: Any) -> Any:
    """The same line by line; v holds roots, which keeps them from being negative."""
    first = 0.9 * m + 0.1 * g
    second = 0.999 * v**2 + 0.001 * g**2
    return [w - 0.01 * first / (jnp.sqrt(second) + 1e-6), first, second]


def unit(x: Any) -> Any:
    """Rows of length 1."""

    def body(x, o):
        o[...] = x[...] * lax.rsqrt((x[...] * x[...]).sum(1, keepdims=True) + 1e-12)

    return by_rows(body, x)


def soft_cap(x: Any) -> Any:
    """30 tanh(x / 30)."""

    def body(x, o):
        o[...] = 30 * jnp.tanh(x[...] / 30)

    return by_rows(body, x)


def residual(x: Any, y: Any, w: Any) -> Any:
    """x + y, and its RMS norm."""

    def body(x, y, w, s, o):
        z = x[...] + y[...]
        s[...] = z
        o[...] = z * lax.rsqrt((z * z).mean(1, keepdims=True) + 1e-6) * w[...]

    return by_rows(body, x, y, w, outputs=2)


def residual_reference(x: Any, y: Any, w: Any) -> Any:
    """The same in two lines."""
    z = x + y
    return [z, z / jnp.sqrt(jnp.mean(z**2, -1, keepdims=True) + 1e-6) * w]


def entropy(x: Any) -> Any:
    """Of the softmax of each row, in every element of it."""

    def body(x, o):
        s = x[...] - x[...].max(1, keepdims=True)
        e = jnp.exp(s)
        total = e.sum(1, keepdims=True)
        o[...] = jnp.broadcast_to(jnp.log(total) - (e * s).sum(1, keepdims=True) / total, o.shape)

    return by_rows(body, x)


def entropy_reference(x: Any) -> Any:
    """By logarithms of probabilities."""
    logs = jax.nn.log_softmax(x, axis=-1)
    return jnp.broadcast_to(-(jnp.exp(logs) * logs).sum(-1, keepdims=True), x.shape)


X = "f32[16,128]"
W = "f32[1,128]"
KERNELS = (
    Kernel(softmax, lambda x: jax.nn.softmax(x, axis=-1), (X,), {
        "sum of the other axis": ("e.sum(1, keepdims=True)", "e.sum(0, keepdims=True)"),
        "not divided": ("e / e.sum(1, keepdims=True)", "e"),
        "base 2": ("jnp.exp(x[...] - x[...].max(1, keepdims=True))", "jnp.exp2(x[...] - x[...].max(1, keepdims=True))"),
        "no maximum": (" - x[...].max(1, keepdims=True)", "", "unstable"),
        "maximum added": ("x[...] - x[...].max", "x[...] + x[...].max", "unstable"),
        "minimum for maximum": ("x[...].max(1", "x[...].min(1", "unstable"),
        "sum in bfloat16": ("e.sum(1, keepdims=True)", "e.astype(BF16).sum(1, keepdims=True)", "rounding"),
    }),
    Kernel(log_softmax, lambda x: jax.nn.log_softmax(x, axis=-1), (X,), {
        "maximum not taken from x": ("x[...] - m - jnp.log", "x[...] - jnp.log"),
        "logarithm added": ("m - jnp.log", "m + jnp.log"),
        "mean for sum": (".sum(1, keepdims=True))", ".mean(1, keepdims=True))"),
        "logarithm of base 2": ("jnp.log(", "jnp.log2("),
        "no maximum": ("x[...].max(1, keepdims=True)", "jnp.zeros((8, 1), F32)", "unstable"),
    }),
    Kernel(masked_softmax, masked_softmax_reference, (X,), {
        "0 as the mask": ("-1e30", "0.0"),
        "one too many": ("< 100", "<= 100"),
        "one too few": ("< 100", "< 99"),
        "not masked": ("jnp.where(held, x[...], -1e30)", "x[...]"),
        "mask of rows": ("(8, 128), 1) < 100", "(8, 128), 0) < 4"),
        "-5 as the mask": ("-1e30", "-5.0"),
    }),
    Kernel(online_sums, lambda x: jax.nn.logsumexp(x, -1, keepdims=True), ("f32[16,384]",), {
        "sum not rescaled": ("total[...] * jnp.exp(m[...] - new)", "total[...]"),
        "rescaled the other way": ("jnp.exp(m[...] - new)", "jnp.exp(new - m[...])"),
        "maximum of the block": ("jnp.maximum(m[...], x[...].max(1, keepdims=True))", "x[...].max(1, keepdims=True)", "unstable"),
        "sum of the last block": ("total[...] * jnp.exp(m[...] - new) + ", ""),
        "maximum not kept": ("m[...] = new", "m[...] = m[...]"),
        "not zeroed": ("total[...] = jnp.zeros_like(total)", "pass"),
        "maximum starts at 0": ("-jnp.inf", "0.0", "unstable"),
        "stored a block early": ("pl.program_id(1) == 2", "pl.program_id(1) == 1"),
    }),
    Kernel(rms_norm, rms_norm_reference, (X, W), {
        "eps of 1e-5": ("+ 1e-6", "+ 1e-5"),
        "eps outside": (" + 1e-6)", ") + 1e-6"),
        "sum for mean": ("mean(1", "sum(1"),
        "sqrt for rsqrt": ("lax.rsqrt", "jnp.sqrt"),
        "1 + w": ("* w[...]", "* (1 + w[...])"),
        "mean of rows": ("mean(1", "mean(0"),
        "squares in bfloat16": ("(x[...] * x[...])", "(x[...] * x[...]).astype(BF16)", "rounding"),
    }),
    Kernel(layer_norm, layer_norm_reference, (X, W, W), {
        "variance of 127": ("var + 1e-5", "var * 128 / 127 + 1e-5"),
        "mean not taken away": ("o[...] = (x[...] - mean)", "o[...] = x[...]"),
        "bias before the scale": ("* w[...] + b[...]", "* (w[...] + b[...])"),
        "variance about 0": ("((x[...] - mean) * (x[...] - mean))", "(x[...] * x[...])"),
        "eps of 1e-6": ("1e-5", "1e-6"),
        "scale and bias exchanged": ("* w[...] + b[...]", "* b[...] + w[...]"),
        "variance as a difference": ("((x[...] - mean) * (x[...] - mean)).mean(1, keepdims=True)", "((x[...] + 1000) * (x[...] + 1000)).mean(1, keepdims=True) - (mean + 1000) * (mean + 1000)", "rounding"),
    }),
    Kernel(layer_norm_gradient, layer_norm_gradient_reference, (X, X), {
        "no mean of g": (" - g[...].mean(1, keepdims=True)", ""),
        "no term of h": (" - h * (g[...] * h).mean(1, keepdims=True)", ""),
        "x for h": ("(g[...] * h)", "(g[...] * x[...])"),
        "sum for mean": ("(g[...] * h).mean", "(g[...] * h).sum"),
        "r squared": ("o[...] = r *", "o[...] = r * r *"),
    }),
    Kernel(padded_mean, padded_mean_reference, (X,), {
        "mean of the padded size": ("/ 100", "/ 128"),
        "padding in the sum": ("jnp.where(held, x[...], 0).sum", "x[...].sum"),
        "padding not cleared": ("jnp.where(held, x[...] - mean, 0)", "x[...] - mean"),
        "one too few": ("< 100", "< 99"),
    }),
    Kernel(swiglu, lambda x, y: jax.nn.silu(x) * y, (X, X), {
        "sigmoid the other way": ("jnp.exp(-x[...])", "jnp.exp(x[...])"),
        "sigmoid alone": ("x[...] / (1 +", "1 / (1 +"),
        "y through silu": ("x[...] / (1 + jnp.exp(-x[...])) * y[...]", "y[...] / (1 + jnp.exp(-y[...])) * x[...]"),
        "added": ("* y[...]", "+ y[...]"),
    }),
    Kernel(gelu, jax.nn.gelu, (X,), {
        "a square for a cube": ("v * v * v", "v * v"),
        "constant of another": ("0.044715", "0.0044715"),
        "no half": ("0.5 * v", "v"),
        "2 / pi for its root": ("0.7978845608", "0.6366197724"),
        "a digit exchanged": ("0.044715", "0.044751"),
    }),
    Kernel(rope, rope_reference, (X, X, X), {
        "sign": ("[-b, a]", "[b, -a]"),
        "halves not exchanged": ("[-b, a]", "[-a, b]"),
        "sine and cosine exchanged": ("x[...] * cos[...] + turned * sin[...]", "x[...] * sin[...] + turned * cos[...]"),
        "no sign": ("[-b, a]", "[b, a]"),
        "rolled by one": ("jnp.concatenate([-b, a], axis=1)", "jnp.roll(jnp.concatenate([-b, a], axis=1), 1, 1)"),
    }),
    Kernel(cross_entropy, cross_entropy_reference, ("f32[16,300]", "f32[16,300]"), {
        "padding in the sum": ("jnp.where(inside, x[...], -1e30)", "x[...]"),
        "padding in the target": ("jnp.where(inside, x[...] * t[...], 0)", "(x[...] * t[...])"),
        "0 as the mask": ("-1e30", "0.0"),
        "mask of the first block": ("+ j * 128 < 300", "< 300"),
        "target of the last block": ("held[...] += jnp", "held[...] = jnp"),
        "sum not rescaled": ("total[...] * jnp.exp(m[...] - new)", "total[...]"),
        "maximum forgotten": ("m[...] + jnp.log(total[...])", "jnp.log(total[...])"),
    }),
    Kernel(softmax_gradient, lambda p, g: p * g - p * jnp.sum(p * g, -1, keepdims=True), (X, X), {
        "sum of g": ("(p[...] * g[...]).sum", "g[...].sum"),
        "p outside alone": ("p[...] * (g[...] - (p[...] * g[...]).sum(1, keepdims=True))", "p[...] * g[...] - (p[...] * g[...]).sum(1, keepdims=True)"),
        "mean for sum": (".sum(", ".mean("),
        "sign": ("(g[...] - (", "(g[...] + ("),
    }),
    Kernel(adam, adam_reference, (X, X, X, X), {
        "eps under the root": ("(jnp.sqrt(second) + 1e-6)", "jnp.sqrt(second + 1e-6)"),
        "the old moment": ("om[...] = first", "om[...] = m[...]"),
        "sign": ("w[...] - 0.01", "w[...] + 0.01"),
        "g for g squared": ("0.001 * g[...] * g[...]", "0.001 * g[...]"),
        "0.99 for 0.999": ("0.999", "0.99"),
        "no root": ("jnp.sqrt(second)", "second"),
        "eps of 1e-8": ("1e-6", "1e-8"),
    }),
    Kernel(unit, lambda x: x / jnp.sqrt(jnp.sum(x * x, -1, keepdims=True) + 1e-12), (X,), {
        "mean for sum": (".sum(", ".mean("),
        "no root": ("lax.rsqrt((x[...] * x[...]).sum(1, keepdims=True) + 1e-12)", "1 / ((x[...] * x[...]).sum(1, keepdims=True) + 1e-12)"),
        "eps of 1e-6": ("1e-12", "1e-6"),
        "length of columns": ("sum(1", "sum(0"),
    }),
    Kernel(soft_cap, lambda x: 30 * jnp.tanh(x / 30), (X,), {
        "not divided": ("x[...] / 30", "x[...]"),
        "cap of 50": ("30 * jnp", "50 * jnp"),
        "left out": ("30 * jnp.tanh(x[...] / 30)", "x[...]"),
    }),
    Kernel(residual, residual_reference, (X, X, W), {
        "norm of x alone": ("(z * z)", "(x[...] * x[...])"),
        "stored after the norm": ("s[...] = z\n", "s[...] = z * lax.rsqrt((z * z).mean(1, keepdims=True) + 1e-6)\n"),
        "x scaled": ("o[...] = z *", "o[...] = x[...] *"),
        "stored x": ("s[...] = z\n", "s[...] = x[...]\n"),
    }),
    Kernel(entropy, entropy_reference, (X,), {
        "not divided": (" / total", ""),
        "x for the shifted": ("(e * s)", "(e * x[...])"),
        "sign": ("jnp.log(total) - (e", "jnp.log(total) + (e"),
        "no maximum": (" - x[...].max(1, keepdims=True)", "", "unstable"),
    }),
)  # fmt: skip
"""Of this file."""
