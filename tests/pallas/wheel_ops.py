"""Every Pallas operation shipped in the jax wheel, as functions of shapes that can be traced without a device.

The parameters are those of the recorded corpus (facts: `pallas_corpus.jsonl`). An operation that needs several devices
is named in NOT_TRACED with the reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

NOT_TRACED = {
    "tpu.all_gather": "a collective over a mesh of devices; its arrays stay in place and are copied by manual DMA",
    "gpu.*_mgpu (matmul, ragged_dot, attention)": "Mosaic GPU kernels ask the GPU or its CUDA while they are traced, "
    "and have no block mappings: they have a [page of their own](mosaic_gpu.md)",
    "gpu.collective_matmul_mgpu, gpu.all_gather_mgpu, gpu.reduce_scatter_mgpu": "collectives over several GPUs",
}


@dataclass(frozen=True)
class Op:
    """One operation with parameters. build: makes (function, arguments). target: whose rules it is judged by."""

    name: str
    build: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    target: str
    assume: tuple[str, ...] = field(default=())


def array(shape: tuple[int, ...], dtype: str = "bfloat16") -> Any:
    import jax
    import jax.numpy as jnp

    return jax.ShapeDtypeStruct(shape, getattr(jnp, dtype))


def ops() -> Iterator[Op]:
    yield from _matmuls()
    yield from _flash()
    yield from _splash()
    yield from _paged()
    yield from _grouped()
    yield from _small_tpu()
    yield from _gpu()


def _matmuls() -> Iterator[Op]:
    cases = [
        (4096, 4096, 4096, "bfloat16", (512, 1024), 1024),
        (4096, 4096, 4096, "float32", (256, 256), 256),
        (4096, 14336, 4096, "bfloat16", (512, 512), 2048),
        (8192, 8192, 8192, "int8", (512, 512), 512),
        (1000, 1000, 1000, "float32", (256, 256), 256),
    ]
    for m, k, n, dtype, block, bk in cases:

        def build(m: int = m, k: int = k, n: int = n, dtype: str = dtype, block: Any = block, bk: int = bk) -> Any:
            from jax.experimental.pallas.ops.tpu.matmul import matmul

            return lambda a, b: matmul(a, b, block_shape=block, block_k=bk), (
                array((m, k), dtype),
                array((k, n), dtype),
            )

        yield Op(f"tpu.matmul {m}x{k}x{n} {dtype} {block[0]},{block[1]},{bk}", build, "v5e")


def _flash() -> Iterator[Op]:
    for b, h, q, kv, d, causal, blocks, grad in [
        (2, 8, 1024, 2048, 256, False, None, False),
        (2, 8, 1024, 2048, 256, True, (512, 1024, 512), False),
        (4, 16, 2048, 2048, 128, True, (512, 1024, 512), False),
        (4, 16, 2048, 2048, 128, False, (512, 1024, 512), False),
        (1, 32, 8192, 8192, 128, True, None, False),
        (2, 8, 1024, 1024, 128, False, None, True),
        (2, 8, 1024, 1024, 128, True, None, True),
    ]:

        def build(case: Any = (b, h, q, kv, d, causal, blocks, grad)) -> Any:
            import jax
            from jax.experimental.pallas.ops.tpu import flash_attention as fa

            b, h, q, kv, d, causal, blocks, grad = case
            sizes = None if blocks is None else fa.BlockSizes(blocks[0], blocks[1], blocks[2], 1)
            call = lambda x, y, z: fa.flash_attention(x, y, z, causal=causal, block_sizes=sizes)  # noqa: E731
            both = jax.grad(lambda x, y, z: call(x, y, z).astype("float32").sum(), argnums=(0, 1, 2))
            return (both if grad else call), (array((b, h, q, d)), array((b, h, kv, d)), array((b, h, kv, d)))

        said = "default" if blocks is None else "/".join(map(str, blocks))
        name = f"tpu.flash_attention{'.grad' if grad else ''} b{b} h{h} q{q} kv{kv} d{d}"
        yield Op(f"{name} {'causal ' if causal else ''}{said}", build, "v5e")

    def with_bias() -> Any:
        from jax.experimental.pallas.ops.tpu import flash_attention as fa

        def call(x: Any, y: Any, z: Any, ab: Any, ids: Any) -> Any:
            return fa.flash_attention(x, y, z, ab, fa.SegmentIds(ids, ids), causal=False)

        qkv = (array((1, 4, 1024, 128)),) * 3
        return call, (*qkv, array((1, 4, 1024, 1024)), array((1, 1024), "int32"))

    yield Op("tpu.flash_attention bias and segment ids", with_bias, "v5e")


def _splash() -> Iterator[Op]:
    for heads, kv_heads, q, mqa, mask, bwd, block in [
        (4, 4, 2048, False, "causal", False, 512),
        (16, 16, 2048, False, "full", False, 512),
        (8, 8, 4096, False, "local", False, 512),
        (16, 1, 2048, True, "causal", True, 128),
        (32, 8, 4096, False, "causal", True, 512),
    ]:

        def build(case: Any = (heads, kv_heads, q, mqa, mask, bwd, block)) -> Any:
            import jax
            from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as sk
            from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as sm

            heads, kv_heads, q, mqa, mask, bwd, block = case
            one = {
                "causal": lambda: sm.CausalMask((q, q)), "full": lambda: sm.FullMask((q, q)),
                "local": lambda: sm.LocalMask((q, q), (256, 0), 0),
            }[mask]  # fmt: skip
            masks = sm.MultiHeadMask([one() for _ in range(heads)])
            back = dict.fromkeys(
                ("block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute", "block_q_dq", "block_kv_dq"), block
            )
            sizes = sk.BlockSizes(block_q=block, block_kv=block, block_kv_compute=block, **(back if bwd else {}))
            make = sk.make_splash_mqa_single_device if mqa else sk.make_splash_mha_single_device
            kernel = make(masks, block_sizes=sizes)
            shape = (kv_heads, q, 128) if not mqa else (q, 128)
            args = (array((heads, q, 128)), array(shape), array(shape))
            if not bwd:
                return kernel, args
            return jax.grad(lambda a, b, c: kernel(a, b, c).astype("float32").sum(), argnums=(0, 1, 2)), args

        name = f"tpu.splash_attention{'.grad' if bwd else ''} {'mqa' if mqa else 'mha'} h{heads}/{kv_heads} q{q} {mask}"
        yield Op(name, build, "v5e")


def _paged() -> Iterator[Op]:
    for heads, mode, inline in [(32, None, True), (32, "kv_head", True), (32, "batch", False), (64, None, False)]:

        def build(heads: int = heads, mode: Any = mode, inline: bool = inline) -> Any:
            from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention_kernel as pk

            def call(q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
                return pk.paged_attention(
                    q, k, v, lengths, pages, pages_per_compute_block=8, megacore_mode=mode, inline_seq_dim=inline
                )

            kv = array((8, 2048, 16, 128))
            return call, (array((32, heads, 128)), kv, kv, array((32,), "int32"), array((32, 128), "int32"))

        yield Op(f"tpu.paged_attention h{heads} megacore {mode} inline {inline}", build, "v5e")

    def ragged() -> Any:
        from jax.experimental.pallas.ops.tpu.ragged_paged_attention import kernel as rk

        args = (array((512, 16, 128)), array((1024, 32, 8, 128)), array((64,), "int32"), array((64, 64), "int32"))
        return rk.ragged_paged_attention, (*args, array((65,), "int32"), array((1,), "int32"))

    yield Op("tpu.ragged_paged_attention", ragged, "v6e")


def _grouped() -> Iterator[Op]:
    def gmm(m: int, k: int, n: int, existing: bool = False, transpose: bool = False) -> Any:
        mg = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")

        def call(a: Any, b: Any, sizes: Any, *out: Any) -> Any:
            return mg.gmm(a, b, sizes, existing_out=out[0] if out else None, transpose_rhs=transpose)

        args = (array((m, k)), array((4, n, k) if transpose else (4, k, n)), array((4,), "int32"))
        return call, (*args, array((m, n), "float32")) if existing else args

    yield Op("tpu.megablox.gmm 512x1000x1000", lambda: gmm(512, 1000, 1000), "v5e")
    yield Op("tpu.megablox.gmm transposed", lambda: gmm(1024, 512, 512, transpose=True), "v5e")
    yield Op("tpu.megablox.gmm existing_out", lambda: gmm(1024, 512, 512, existing=True), "v5e")

    def tgmm() -> Any:
        mg = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")
        return (lambda a, b, s: mg.tgmm(a, b, s)), (array((512, 1024)), array((1024, 512)), array((4,), "int32"))

    yield Op("tpu.megablox.tgmm", tgmm, "v5e")


def _small_tpu() -> Iterator[Op]:
    def double() -> Any:
        from jax.experimental.pallas.ops.tpu.example_kernel import double

        return double, (array((256, 256), "float32"),)

    yield Op("tpu.example_kernel.double", double, "v5e")

    def threefry() -> Any:
        from jax.experimental.pallas.ops.tpu.random.threefry import plthreefry_random_bits

        return (lambda key: plthreefry_random_bits(key, 32, (4, 300, 500))), (array((2,), "uint32"),)

    yield Op("tpu.random.threefry", threefry, "v5e")

    def philox() -> Any:
        from jax.experimental.pallas.ops.tpu.random.philox import philox_random_bits

        return (lambda key: philox_random_bits(key, 32, (1024, 1024))), (array((2,), "uint32"),)

    yield Op("tpu.random.philox", philox, "v5e")


def _gpu() -> Iterator[Op]:
    def attention(causal: bool) -> Any:
        import jax
        from jax.experimental.pallas.ops.gpu.attention import mha

        call = lambda q, k, v: mha(q, k, v, None, causal=causal).astype("float32").sum()  # noqa: E731
        return jax.grad(call, argnums=(0, 1, 2)), (array((4, 2048, 16, 64), "float16"),) * 3

    yield Op("gpu.attention.mha.grad", lambda: attention(False), "triton")
    yield Op("gpu.attention.mha.grad causal", lambda: attention(True), "triton")

    def decode(name: str) -> Any:
        from jax.experimental.pallas.ops.gpu import decode_attention as da

        kv = array((8, 4096, 128), "float16") if name == "mqa" else array((8, 4096, 8, 128), "float16")
        return getattr(da, name), (array((8, 32, 128), "float16"), kv, kv)

    yield Op("gpu.decode_attention.mqa", lambda: decode("mqa"), "triton")
    yield Op("gpu.decode_attention.gqa", lambda: decode("gqa"), "triton")

    def norm(name: str) -> Any:
        import jax

        op = getattr(importlib.import_module(f"jax.experimental.pallas.ops.gpu.{name}"), name)
        call = lambda x, w, b: op(x, w, b).sum()  # noqa: E731
        args = (array((4, 512, 1024), "float32"), array((1024,), "float32"), array((1024,), "float32"))
        return jax.grad(call, argnums=(0, 1, 2)), args

    yield Op("gpu.layer_norm.grad", lambda: norm("layer_norm"), "triton")
    yield Op("gpu.rms_norm.grad", lambda: norm("rms_norm"), "triton")

    def softmax() -> Any:
        from jax.experimental.pallas.ops.gpu.softmax import softmax

        return softmax, (array((8, 128, 1000), "float32"),)

    yield Op("gpu.softmax", softmax, "triton")

    def paged() -> Any:
        from jax.experimental.pallas.ops.gpu.paged_attention import paged_attention

        kv = array((8, 512, 16, 64), "float16")
        return paged_attention, (array((8, 32, 64), "float16"), kv, kv, array((8, 64), "int32"), array((8,), "int32"))

    yield Op("gpu.paged_attention", paged, "triton")
