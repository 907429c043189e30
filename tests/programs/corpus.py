"""Programs that are compiled once and kept: plain JAX, MoE, scans, FFT, sorts, small types, collectives, Pallas, flax.

Each function of `PROGRAMS` has its arguments, and, where it runs on several devices, a mesh with shardings.
`benchmarks/programs.py` compiles them for `TARGETS`; what comes of it is `tests/cases/programs.jsonl.gz`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

TARGETS = {"v5e": "2x2", "v5p": "2x2x1", "v6e": "2x2", "7x": "2x1x1"}
"""Generation -> four devices."""
MESH = {"data": 2, "model": 2}


class Program(NamedTuple):
    """args: as `layoutproof compile` takes them.  ins: their shardings; () for one device.  trips: of its loops."""

    args: tuple[Any, ...]
    ins: tuple[str, ...] = ()
    donate: tuple[int, ...] = ()
    trips: tuple[int, ...] = ()


def mlp(params: Any, x: Any) -> Any:
    return jax.nn.gelu(x @ params["up"]) @ params["down"] + x


def attention(x: Any, w: Any) -> Any:
    b, t, d = x.shape
    q, k, v = jnp.split(x @ w, 3, -1)
    q, k, v = (a.reshape(b, t, 4, d // 4) for a in (q, k, v))
    p = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / 8.0, -1)
    return jnp.einsum("bhts,bshd->bthd", p, v).reshape(b, t, d)


def grads(params: Any, x: Any) -> Any:
    return jax.grad(lambda p: (mlp(p, x) ** 2).sum())(params)


def moe(x: Any, gate: Any, experts: Any) -> Any:
    chosen = jax.nn.one_hot(jnp.argmax(x @ gate, -1), gate.shape[1], dtype=x.dtype)
    y = jnp.einsum("te,td->etd", chosen, x)
    return jnp.einsum("etd,edf->tf", y, experts)


def scanned(x: Any, w: Any) -> Any:
    return lax.scan(lambda h, each: (jnp.tanh(h @ each), None), x, w)[0]


def nested(x: Any) -> Any:
    def outer(k: Any, y: Any) -> Any:
        return lax.fori_loop(0, 3, lambda j, z: jnp.sin(z @ z.T) @ z, y)

    return lax.fori_loop(2, 9, outer, x)


def stepped(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 40, lambda c: (c[0] + 7, jnp.cos(c[1] @ c[1])), (0, x))[1]


def until(x: Any) -> Any:
    return lax.while_loop(lambda y: y.sum() < 1e6, lambda y: y @ y + 1.0, x)


def branch(p: Any, x: Any) -> Any:
    return lax.cond(p, lambda y: y @ y.T, lambda y: (y * 2.0) @ y.T, x)


def fourier(x: Any) -> Any:
    return jnp.fft.irfft(jnp.fft.rfft(x) * 2.0)


def sorted_(x: Any) -> Any:
    return jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 5)


def gathered(table: Any, ids: Any) -> Any:
    return table[ids].sum(1)


def scattered(x: Any, ids: Any) -> Any:
    return jnp.zeros_like(x).at[ids].add(x)


def conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def int8(x: Any, w: Any) -> Any:
    return lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)


def int4(x: Any, w: Any) -> Any:
    return x @ w.astype(jnp.bfloat16)


def fp8(x: Any, w: Any) -> Any:
    return lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def turned(x: Any) -> Any:
    return x.T + 1.0, x.reshape(-1), x[:, ::2]


def cumulative(x: Any) -> Any:
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1)


def solved(a: Any) -> Any:
    return jnp.linalg.cholesky(a @ a.T + jnp.eye(a.shape[0]))


def sampled(key: Any) -> Any:
    return jax.random.normal(jax.random.wrap_key_data(key), (64, 256))


def pallas(x: Any, y: Any) -> Any:
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    return matmul(x, y, block_shape=(256, 256), block_k=256) * 2


def norm(x: Any, g: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def updated(cache: Any, new: Any, at: Any) -> Any:
    return lax.dynamic_update_slice(cache, new, (0, at, 0))


def _mapped(f: Any, ins: Any, outs: Any) -> Any:
    def call(*args: Any) -> Any:
        mesh = jax.sharding.get_abstract_mesh()
        return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)(*args)

    return call


X = P("data", "model")
all_gather = _mapped(lambda x: lax.all_gather(x, "model", axis=1, tiled=True), (X,), P("data", None))
all_gather_rows = _mapped(lambda x: lax.all_gather(x, "data", axis=0, tiled=True), (X,), P(None, "model"))
all_gather_both = _mapped(
    lambda x: lax.all_gather(x, ("data", "model"), axis=0, tiled=True), (P(("data", "model")),), P()
)
all_reduce = _mapped(lambda x: lax.psum(x, "model"), (X,), P("data", None))
all_reduce_data = _mapped(lambda x: lax.psum(x, "data"), (X,), P(None, "model"))
all_reduce_both = _mapped(lambda x: lax.psum(x, ("data", "model")), (X,), P())
all_reduce_max = _mapped(lambda x: lax.pmax(x, "model"), (X,), P("data", None))
reduce_scatter = _mapped(
    lambda x: lax.psum_scatter(x, "model", scatter_dimension=0, tiled=True), (X,), P(("data", "model"))
)
all_to_all = _mapped(
    lambda x: lax.all_to_all(x, "model", 1, 0, tiled=True), (P("data", None),), P(("data", "model"), None)
)
permuted = _mapped(lambda x: lax.ppermute(x, "model", [(0, 1), (1, 0)]), (X,), X)
permuted_data = _mapped(lambda x: lax.ppermute(x, "data", [(0, 1), (1, 0)]), (X,), X)


def sharded_scan(x: Any, w: Any) -> Any:
    def body(h: Any, each: Any) -> Any:
        return lax.with_sharding_constraint(jnp.tanh(h @ each), P("data", None)), None

    return lax.scan(body, x, w)[0]


def resharded(x: Any) -> Any:
    return lax.with_sharding_constraint(x, P("model", "data")) * 2.0


def gathered_weight(x: Any, w: Any) -> Any:
    return lax.with_sharding_constraint(x @ w, P("data", None))


def flax_mlp(params: Any, x: Any) -> Any:
    from flax import linen as nn

    return nn.Sequential([nn.LayerNorm(dtype=x.dtype), nn.Dense(512, dtype=x.dtype), nn.gelu, nn.Dense(256)]).apply(
        params, x
    )


def flax_attention(params: Any, x: Any) -> Any:
    from flax import linen as nn

    return x + nn.MultiHeadDotProductAttention(num_heads=4, dtype=x.dtype).apply(params, x)


def flax_conv(params: Any, x: Any) -> Any:
    from flax import linen as nn

    y = nn.Conv(32, (3, 3), dtype=x.dtype).apply(params, x)
    return nn.avg_pool(nn.relu(y), (2, 2), (2, 2))


BOTH = ("P('data', 'model')",)
DATA = ("P('data', None)",)
SIDE, OUT = {"kernel": "f32[256,4,64]", "bias": "f32[4,64]"}, {"kernel": "f32[4,64,256]", "bias": "f32[256]"}
PROGRAMS: dict[str, Program] = {
    "mlp": Program(({"up": "bf16[256,1024]", "down": "bf16[1024,256]"}, "bf16[128,256]"), donate=(1,)),
    "attention": Program(("bf16[2,128,256]", "bf16[256,768]")),
    "grads": Program(({"up": "f32[200,300]", "down": "f32[300,200]"}, "f32[50,200]")),
    "moe": Program(("bf16[256,128]", "bf16[128,8]", "bf16[8,128,64]")),
    "scanned": Program(("bf16[64,256]", "bf16[6,256,256]"), trips=(6,)),
    "nested": Program(("f32[64,128]",), trips=(7, 21)),
    "stepped": Program(("f32[128,128]",), trips=(6,)),
    "until": Program(("f32[128,128]",)),
    "branch": Program(("pred[]", "f32[128,200]")),
    "fourier": Program(("f32[8,256]",)),
    "sorted_": Program(("f32[64,200]",)),
    "gathered": Program(("f32[1000,64]", "s32[16,8]")),
    "scattered": Program(("f32[500,64]", "s32[500]")),
    "conv": Program(("bf16[4,32,32,16]", "bf16[3,3,16,32]")),
    "int8": Program(("s8[128,256]", "s8[256,512]")),
    "int4": Program(("bf16[128,256]", "s4[256,512]")),
    "fp8": Program(("f8e4m3fn[128,256]", "f8e4m3fn[256,512]")),
    "turned": Program(("f32[1000,5]",)),
    "cumulative": Program(("f32[100,300]",)),
    "solved": Program(("f32[64,64]",)),
    "sampled": Program(("u32[2]",)),
    "pallas": Program(("bf16[512,512]", "bf16[512,512]")),
    "norm": Program(("bf16[64,1000]", "bf16[1000]")),
    "updated": Program(("bf16[4,128,256]", "bf16[4,1,256]", "s32[]"), donate=(0,)),
    "flax_mlp": Program(({"params": {"layers_0": {"scale": "f32[256]", "bias": "f32[256]"},
                                     "layers_1": {"kernel": "f32[256,512]", "bias": "f32[512]"},
                                     "layers_3": {"kernel": "f32[512,256]", "bias": "f32[256]"}}}, "bf16[64,256]")),
    "flax_attention": Program(({"params": {"query": SIDE, "key": SIDE, "value": SIDE, "out": OUT}}, "bf16[2,128,256]")),
    "flax_conv": Program(({"params": {"kernel": "f32[3,3,16,32]", "bias": "f32[32]"}}, "bf16[4,32,32,16]")),
    "all_gather": Program(("bf16[256,512]",), BOTH),
    "all_gather_rows": Program(("bf16[256,512]",), BOTH),
    "all_gather_both": Program(("f32[256,512]",), ("P(('data', 'model'))",)),
    "all_reduce": Program(("f32[256,512]",), BOTH),
    "all_reduce_data": Program(("f32[256,512]",), BOTH),
    "all_reduce_both": Program(("f32[256,512]",), BOTH),
    "all_reduce_max": Program(("f32[256,512]",), BOTH),
    "reduce_scatter": Program(("f32[256,512]",), BOTH),
    "all_to_all": Program(("f32[256,512]",), DATA),
    "permuted": Program(("f32[256,512]",), BOTH),
    "permuted_data": Program(("bf16[256,512]",), BOTH),
    "sharded_scan": Program(("bf16[128,512]", "bf16[5,512,512]"), (*DATA, "P(None, None, 'model')"), (0,), (5,)),
    "resharded": Program(("f32[512,512]",), BOTH),
    "gathered_weight": Program(("bf16[128,512]", "bf16[512,1024]"), (*DATA, "P(None, 'model')")),
    "sharded_mlp": Program(({"up": "bf16[256,1024]", "down": "bf16[1024,256]"}, "bf16[128,256]"),
                           ("{'up': P(None, 'model'), 'down': P('model', None)}", "P('data', None)")),
    "sharded_grads": Program(({"up": "f32[256,512]", "down": "f32[512,256]"}, "f32[64,256]"),
                             ("{'up': P(None, 'model'), 'down': P('model', None)}", "P('data', None)")),
    "sharded_moe": Program(("bf16[256,128]", "bf16[128,8]", "bf16[8,128,64]"),
                           (*DATA, "P()", "P('model', None, None)")),
}  # fmt: skip
sharded_mlp, sharded_grads, sharded_moe = mlp, grads, moe
