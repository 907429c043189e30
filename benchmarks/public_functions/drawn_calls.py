"""Calls of the functions of `drawn.txt`, which were drawn before anybody read one of them. Nothing was tuned to them.

A call's name is the function's, and its repository and module are those of its line there. Shapes are small ones, as
in their tests where they have some; a function that only a module above it can call gets what that module hands to it.
`UNCALLED` has those that cannot be traced, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from calls import (
    EJKERNEL,
    FLOAT8,
    MAXTEXT,
    SGLANG,
    TPU_INFERENCE,
    Call,
    _bf16,
    _f32,
    _gmm,
    _mesh,
    _of,
    _s32,
)

Made = tuple[Callable[..., Any], tuple[Any, ...]]
DEEPSEEK = "tpu_inference.kernels.experimental.deepseek_v4."
STACKED = "tpu_inference.kernels.experimental.stacked_rpa."


def _typed(kind: str, *shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, kind)


def _beside(module: Any, name: str) -> Any:
    """Another module of the same package."""
    import importlib

    return importlib.import_module(name, module.__name__.rsplit(".", 1)[0])


def _mixing(module: Any) -> Made:
    """Four streams of 512 columns, 1024 rows."""
    import numpy

    common = _beside(module, ".common")
    streams, columns = 4, 512
    wide = streams * columns
    weights = common.MhcWeights(
        norm_scale=_f32(wide), pre_alpha=_f32(wide, streams), pre_bias=_f32(streams), pre_scale=_f32(1),
        post_alpha=_f32(wide, streams), post_bias=_f32(streams), post_scale=_f32(1), res_alpha=_f32(wide, 24),
        res_bias=_f32(24), res_scale=_f32(1),
    )  # fmt: skip
    orders = numpy.zeros((24, streams, streams), numpy.float32)
    return lambda x, given: module.pre(x, given, orders), (_bf16(1, 1024, streams, columns), weights)


def _splash_forward(make: Callable[[Any], Any], length: int = 512, forward: bool = True) -> Callable[[Any], Made]:
    """What a kernel of splash attention runs when it is differentiated, or as it stands."""

    def made(module: Any) -> Made:
        import jax

        kernel = make(module)

        def call(q: Any, k: Any, v: Any) -> Any:
            return jax.vjp(kernel, q, k, v)[0] if forward else kernel(q, k, v)

        return call, tuple(_f32(2, length, 128) for _ in range(3))

    return made


def _tokamax_kernel(module: Any) -> Any:
    names = ("block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute")
    config = module.SplashConfig(**dict.fromkeys(names, 128))
    return module.make_splash_mha_single_device(module.mask_lib.CausalMask((512, 512)), config=config)


def _block_sparse(module: Any) -> Any:
    masks = _beside(module, "._masks")
    names = ("block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute",
             "block_q_dq", "block_kv_dq")  # fmt: skip
    mask = masks.MultiHeadMask([masks.CausalMask((512, 512))] * 2)
    sizes = module.BlockSizes(**dict.fromkeys(names, 128))
    return module._make_splash_attention(mask, block_sizes=sizes, is_mqa=False, head_shards=1, q_seq_shards=1)


def _top_k(module: Any) -> Made:
    """Four sequences of up to 8 pages of 64 rows."""
    function = partial(
        module.streamindex_topk, k=128, compression_ratio=4, num_kv_pages_per_block=2, num_queries_per_block=8
    )
    pages = _typed("uint8", 32, 16, 4, 256)
    return function, (_bf16(64, 8, 128), _f32(64, 8), pages, _s32(4), _s32(32), _s32(5), _s32(3))


def _experts(module: Any) -> Made:
    sizes = {"bt": 32, "bf": 256, "bd1": 256, "bd2": 256, "btc": 32, "bfc": 256, "bd1c": 256, "bd2c": 256, "bse": 256}
    import jax

    mesh = jax.sharding.AbstractMesh((1, 2), ("data", "tensor"))
    function = partial(module.fused_ep_moe, mesh, top_k=2, block_config=module.FusedMoEBlockConfig(**sizes))
    weights = (_bf16(16, 256, 256), _bf16(16, 256, 256), _bf16(16, 256, 256))
    return lambda *given: function(*given), (_bf16(64, 256), *weights, _f32(64, 2), _s32(64, 2))


def _delta_net(module: Any) -> Made:
    """64 rows of four sequences, two heads of keys and eight of values, a convolution of four."""
    keys, values, width = 2, 8, 128
    wide = 2 * keys * width + values * width
    function = partial(module.fused_conv1d_gdn, n_kq=keys, n_v=values, d_k=width, d_v=width, kernel_size=4)
    args = (
        _bf16(64, wide), _bf16(64, values), _bf16(64, values), _bf16(5, 3, wide), _f32(5, values, width, width),
        _bf16(wide, 1, 4), None, _f32(values), _f32(values), _s32(5), _s32(4), _s32(3), _s32(4),
    )  # fmt: skip

    def call(qkv: Any, b: Any, a: Any, conv: Any, state: Any, weight: Any, *rest: Any) -> Any:
        return function(qkv, b, a, conv, state, weight, None, *rest)

    return call, tuple(a for a in args if a is not None)


def _chunked(module: Any) -> Made:
    def call(q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any, starts: Any) -> Any:
        return module.chunk_kda_fwd(q, k, v, g, beta, 1.0, state, True, starts)

    rows = _f32(1, 256, 4, 128)
    return call, (rows, rows, rows, rows, _f32(1, 256, 4), _f32(4, 4, 128, 128), _s32(5))


def _latent_2(sglang: bool) -> Callable[[Any], Made]:
    """The arguments of its tests: fp8 pages of 128 rows, eight heads."""

    def made(module: Any) -> Made:
        function = partial(
            module.mla_ragged_paged_attention, num_kv_pages_per_block=2, num_queries_per_block=8,
            vmem_limit_bytes=100 * 2**20,
        )  # fmt: skip
        kind = "bfloat16" if sglang else FLOAT8
        packing = 2 if sglang else 4
        q = _typed("bfloat16", 64, 8, 512) if sglang else _typed(kind, 8, 64, 512)
        lengths = (_s32(5), _s32(5)) if sglang else (_s32(5),)
        args = (
            q, _typed(kind, 64, 8, 64), _typed(kind, 64, 512), _typed(kind, 64, 64),
            _typed(kind, 64, 128 // packing, packing, 640), _s32(4), _s32(16), *lengths, _s32(3),
        )  # fmt: skip
        return function, args

    return made


def _packed(module: Any) -> Made:
    return module.varlen_attention, (*(_bf16(1024, 4, 128) for _ in range(3)), _s32(9), _s32(1))


def _sliding(module: Any) -> Made:
    """The sizes of its test: pages of 16 rows and four more, a window of 16."""
    function = partial(
        module.mla_sliding_window_ragged_paged_attention, sliding_window=16, num_queries_per_block=8,
        num_kv_pages_per_block=2, q_compute_block_size=2, logical_page_size=16,
    )  # fmt: skip
    pages = _typed("uint8", 40, 40, 4, 128)
    return function, (_bf16(64, 8, 512), _bf16(64, 512), pages, _s32(4), _s32(40), _s32(5), _s32(3), _f32(8))


def _mixes(module: Any) -> Made:
    return module.mhc_pre_mixes, (_bf16(200, 2048), _f32(24, 2048))


def _after(module: Any) -> Made:
    return module.mhc_post, (_bf16(200, 512), _bf16(200, 4, 512), _f32(200, 4, 1), _f32(200, 4, 4))


def _after_before(module: Any) -> Made:
    mixes = (_f32(200, 4, 1), _f32(200, 4, 4), _f32(24, 2048), _f32(3), _f32(24))

    def call(*given: Any) -> Any:
        return module.mhc_fused_post_pre(*given, 1e-6, 1e-6, 1e-6, 2.0, 20)

    return call, (_bf16(200, 512), _bf16(200, 4, 512), *mixes)


def _projection(module: Any) -> Made:
    function = partial(module.fused_reverse_rope_wo_a_projection, head_dim=512)
    weights = (_typed(FLOAT8, 4096, 4 * 256), _f32(4 * 256))
    return function, (_bf16(256, 32, 512), _s32(256), _f32(4096, 64), *weights)


def _rotated(module: Any) -> Made:
    return module.qnorm_rope, (_bf16(256, 8, 512), _s32(256), _f32(4096, 64))


def _scattered(module: Any) -> Made:
    """One device's part of two: 512 rows, eight groups."""
    import jax
    from jax.sharding import PartitionSpec

    function = partial(module.gmm_v2_scatter_ici_nodedup, ep_size=2, ep_axis_name="x", chunk_size=256)
    none = PartitionSpec()
    call = jax.shard_map(function, mesh=_mesh("x", 2), in_specs=none, out_specs=none, check_vma=False)
    return call, (_bf16(512, 512), _bf16(8, 512, 512), _s32(8), _s32(512), _s32(1))


def _reached(wrapper: str, name: str, which: int, **kwargs: Any) -> Callable[[Any], Made]:
    """The function as a module above it calls it: the arguments are those of the call of this number."""

    def made(module: Any) -> Made:
        import jax

        from layoutproof.pallas.from_jax.adapter import device_of

        outer = _beside(module, wrapper)
        seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        function = getattr(module, name)

        def noted(*args: Any, **static: Any) -> Any:
            seen.append((args, static))
            return function(*args, **static)

        setattr(module, name, noted)
        kind = kwargs.get("kind", "bfloat16")
        tokens = kwargs.get("tokens", 64)
        with device_of("v6e"):
            shape = outer.get_kv_cache_shape(**kwargs["cache"])
        given = (
            _bf16(tokens, 8, 128), _typed(kind, tokens, 1, 128), _typed(kind, tokens, 1, 128), _typed(kind, *shape),
            _s32(4), _s32(16), _s32(5), _s32(3),
        )  # fmt: skip
        with device_of("v6e"):
            jax.eval_shape(partial(outer.ragged_paged_attention, **kwargs.get("more", {})), *given)
        setattr(module, name, function)
        args, static = seen[which]
        leaves, tree = jax.tree.flatten(args)
        shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        return lambda *flat: function(*jax.tree.unflatten(tree, flat), **static), tuple(shapes)

    return made


def _stacked(which: int, **more: Any) -> Callable[[Any], Made]:
    cache = {"total_num_pages": 64, "page_size": 512, "actual_num_kv_heads": 1, "actual_head_dim": 128,
             "kv_dtype": FLOAT8}  # fmt: skip
    return _reached(STACKED + "wrapper", "rpa_kernel", which, cache=cache, kind=FLOAT8, more=more)


_BATCHED = "tpu_inference.kernels.experimental.batched_rpa.wrapper"
_PAGES = {"total_num_pages": 64, "page_size": 128, "actual_num_kv_heads": 1, "actual_head_dim": 128,
          "kv_dtype": "bfloat16"}  # fmt: skip
_SGL = "sgl_jax.srt."
_EJ = "ejkernel.kernels._pallas.tpu."
_INFER = "tpu_inference.kernels."

DRAWN: tuple[Call, ...] = (
    Call("pre", *MAXTEXT, "maxtext.kernels.mhc.mhc_kernels_fwd", _mixing),
    Call(
        "_splash_attention_fwd", *MAXTEXT, "maxtext.kernels.tokamax_splash_attention.splash_attention_kernel",
        _splash_forward(_tokamax_kernel),
    ),
    Call("_splash_attention", *EJKERNEL, _EJ + "blocksparse_attention._kernel",
         _splash_forward(_block_sparse, forward=False)),
    Call("_splash_attention_fwd", *EJKERNEL, _EJ + "blocksparse_attention._kernel", _splash_forward(_block_sparse)),
    Call("streamindex_topk", *SGLANG, _SGL + "kernels.dsa.streamindex_topk", _top_k),
    Call("fused_ep_moe", *SGLANG, _SGL + "kernels.fused_moe.v1.kernel", _experts),
    Call("fused_conv1d_gdn", *SGLANG, _SGL + "kernels.gdn.fused_chunk_parallel.wrapper", _delta_net),
    Call("gmm", *SGLANG, _SGL + "kernels.gmm.megablox_gmm_kernel.gmm", _gmm(512)),
    Call("chunk_kda_fwd", *SGLANG, _SGL + "kernels.kda.kda", _chunked),
    Call("mla_ragged_paged_attention", *SGLANG, _SGL + "kernels.mla.v2.kernel", _latent_2(True)),
    Call("varlen_attention", *SGLANG, _SGL + "multimodal.kernels.varlen_attention", _packed),
    Call(
        "rpa_kernel, batched", *TPU_INFERENCE, _INFER + "experimental.batched_rpa.kernel",
        _reached(_BATCHED, "rpa_kernel", 0, cache=_PAGES),
    ),
    Call("mla_sliding_window_ragged_paged_attention", *TPU_INFERENCE, DEEPSEEK + "core_attention.mla_swa", _sliding),
    Call("mhc_fused_post_pre", *TPU_INFERENCE, DEEPSEEK + "mhc.fused_post_pre_kernel", _after_before),
    Call("mhc_post", *TPU_INFERENCE, DEEPSEEK + "mhc.post_kernel", _after),
    Call("mhc_pre_mixes", *TPU_INFERENCE, DEEPSEEK + "mhc.pre_kernel", _mixes),
    Call("fused_reverse_rope_wo_a_projection", *TPU_INFERENCE, DEEPSEEK + "o_projection", _projection),
    Call("qnorm_rope", *TPU_INFERENCE, DEEPSEEK + "rope", _rotated),
    Call(
        "gmm_v2_scatter_ici_nodedup", *TPU_INFERENCE, _INFER + "experimental.fused_moe.gmm_fused.gmm_v2_ag_rs",
        _scattered,
    ),
    Call(
        "rpa_kernel, stacked, decoding in a window", *TPU_INFERENCE, STACKED + "decode.sliding_window.kernel",
        _stacked(0, sliding_window=256),
    ),
    Call(
        "rpa_kernel, stacked, prefill", *TPU_INFERENCE, STACKED + "prefill.non_sliding_window.kernel", _stacked(0)
    ),
    Call(
        "rpa_kernel, stacked, prefill in a window", *TPU_INFERENCE, STACKED + "prefill.sliding_window.kernel",
        _stacked(0, sliding_window=256),
    ),
    Call(
        "decompose_triangular_matrix_inverse_pallas", *TPU_INFERENCE, _INFER + "gdn.triangle_solver",
        _of("decompose_triangular_matrix_inverse_pallas", partial(_f32, 8, 64, 64)),
    ),
    Call("fused_conv1d_gdn", *TPU_INFERENCE, _INFER + "gdn.v3.wrapper", _delta_net),
    Call("mla_ragged_paged_attention", *TPU_INFERENCE, _INFER + "mla.v2.kernel", _latent_2(False)),
    Call(
        "pin_vmem_custom_call", *TPU_INFERENCE, _INFER + "mla.v2.transpose",
        _of("pin_vmem_custom_call", partial(_bf16, 512, 1024)),
    ),
    Call(
        "xpose_full", *TPU_INFERENCE, _INFER + "mla.v2.transpose",
        _of("xpose_full", partial(_bf16, 8, 64, 512), transpose_axes=(1, 0, 2)),
    ),
)  # fmt: skip
UNCALLED: dict[str, str] = {
    "erfanzar/ejkernel _ring_flash_attention_fwd_tpu": "its own kind of BlockSpec lacks an argument of JAX's since",
    "vllm-project/tpu-inference generate_rpa_metadata_shared": "no call was made of the settings that it needs",
    "sgl-project/sglang-jax _flash_attention_fwd": "it calls its own function with two arguments too few",
}
