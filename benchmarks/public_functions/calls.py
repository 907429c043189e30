"""Calls of public kernels: repository, module, and how the function is called. None of their code stands here.

Shapes are small ones that their own tests or callers use. A call is made by `make(module)`: the function, and its
arguments as shapes or arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        name: For people.
        repository: owner/name.
        root: The folder of the checkout from which modules are imported.
        module: The module that has the function.
        make: Given the module, the function and its arguments.
        wrong: What is wrong in the kernel, by question; where one of them is refuted, it is no false alarm.
        bare: Packages whose `__init__` is not run either: what they have but modules is no part of the kernel.
    """

    name: str
    repository: str
    root: str
    module: str
    make: Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
    wrong: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()


def _f32(*shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, "float32")


def _bf16(*shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, "bfloat16")


def _s32(*shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, "int32")


def _mask(*shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, "bool")


def _of(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The function of a name, with these arguments; those that are functions are called for their values."""

    def make(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return partial(getattr(module, name), **kwargs), tuple(a() if callable(a) else a for a in args)

    return make


def _gradient(make: Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]], count: int) -> Any:
    """The same call's gradient of the sum of its result, in its first arguments."""

    def made(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import jax

        function, args = make(module)

        def loss(*given: Any) -> Any:
            return sum(leaf.astype("float32").sum() for leaf in jax.tree.leaves(function(*given)))

        return jax.grad(loss, tuple(range(count))), args

    return made


def _lru(length: int) -> Any:
    return _of("lru_pallas_scan", partial(_f32, 2, length, 256), partial(_f32, 2, length, 256), partial(_f32, 2, 256))


def _gmm(rows: int, tiles: tuple[int, int, int] = (128, 128, 128), name: str = "gmm", **kwargs: Any) -> Any:
    return _of(name, partial(_bf16, rows, 256), partial(_bf16, 8, 256, 256), partial(_s32, 8), tiling=tiles, **kwargs)


def _tgmm(rows: int, name: str = "tgmm", **kwargs: Any) -> Any:
    return _of(
        name, partial(_bf16, 256, rows), partial(_bf16, rows, 256), partial(_s32, 8), tiling=(128, 128, 128), **kwargs
    )


def _splash(length: int, heads: int = 2, mask: str = "causal", gradient: bool = False, batched: bool = False) -> Any:
    """Splash attention of a module that has `make_splash_mha`; its masks stand in the module beside it."""

    def make(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import importlib

        import jax

        masks = getattr(module, "mask_lib", None) or importlib.import_module(
            module.__name__.rsplit(".", 1)[0] + ".splash_attention_mask"
        )
        one = {
            "causal": lambda: masks.CausalMask((length, length)),
            "local": lambda: masks.LocalMask((length, length), (128, 0), 0),
            "full": lambda: masks.FullMask((length, length)),
        }[mask]()
        blocks = getattr(module, "BlockSizes", None)
        names = ("block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute",
                      "block_q_dq", "block_kv_dq")  # fmt: skip
        sizes = dict.fromkeys(names, 128)
        if blocks is not None:
            kernel = module.make_splash_mha(
                masks.MultiHeadMask([one] * heads), block_sizes=blocks(**sizes), head_shards=1, q_seq_shards=1
            )
        else:
            config = module.SplashConfig(**{k: v for k, v in sizes.items() if k not in ("block_q_dq", "block_kv_dq")})
            kernel = module.make_splash_mha_single_device(one, config=config)

        def call(q: Any, k: Any, v: Any) -> Any:
            return kernel(q, k, v)

        function = jax.vmap(call) if batched else call
        lead = (2,) if batched else ()
        args = tuple(_f32(*lead, heads, length, 128) for _ in range(3))
        if not gradient:
            return function, args
        return jax.grad(lambda *a: function(*a).sum(), (0, 1, 2)), args

    return make


def _gated_delta(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step of 8 sequences, 4 heads of keys and 2 of values for each."""
    heads, groups = _f32(8, 4, 128), _f32(8, 4, 2)
    args = (heads, heads, _f32(8, 4, 2, 128), groups, groups, _f32(8, 8, 128, 128))
    return module.GatedDeltaRuleOp.grouped_gdr_decode_pallas, args


def _custom_splash(length: int, blocks: int, heads_per_tile: int = 1, **kwargs: Any) -> Any:
    def make(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        sizes = module._BlockSizes(block_q=blocks, block_kv=blocks, block_kv_compute=blocks)
        kernel = module.make_splash_mha(
            block_sizes=sizes, orig_q_seq_len=length, orig_kv_seq_len=length, heads_per_tile=heads_per_tile, **kwargs
        )
        padded = -(-length // blocks) * blocks
        return kernel, tuple(_bf16(4, padded, 128) for _ in range(3))

    return make


def _ring(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """One device's step of a ring: what it has of the sums is returned with them."""
    sizes = module._BlockSizes(block_q=512, block_kv=512, block_kv_compute=512)
    function = partial(module._splash_attention_forward_ring, block_sizes=sizes, q_seq_len=2048, kv_seq_len=2048)
    return lambda q, k, v: function(q, k, v), tuple(_bf16(4, 2048, 128) for _ in range(3))


def _flash_ejkernel(length: int, causal: bool) -> Any:
    def make(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import importlib

        utils = importlib.import_module(module.__name__.rsplit(".", 1)[0] + "._utils")
        sizes = utils.BlockSizes(
            **dict.fromkeys(
                ("block_q", "block_k_major", "block_k", "block_q_major_dkv", "block_k_major_dkv", "block_k_dkv",
                 "block_q_dkv", "block_k_major_dq", "block_k_dq", "block_q_dq"), 128,
            ),
            block_b=1,
        )  # fmt: skip
        args = tuple(_f32(1, 2, length, 128) for _ in range(3))
        function = module._flash_attention_impl

        def call(q: Any, k: Any, v: Any) -> Any:
            return function(
                q, k, v, None, None, False, causal, 1.0, sizes.block_b, sizes.block_q, sizes.block_k_major,
                sizes.block_k,
            )  # fmt: skip

        return call, args

    return make


def _flash_backward(name: str, length: int = 512) -> Any:
    """One of the two kernels of flash attention's gradient, causal: what the forward pass kept is given."""

    def make(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        inner = {"block_q": 128} if name.endswith("dkv") else {}
        function = partial(
            getattr(module, name), **inner, block_q_major=128, block_k_major=128, block_k=128, softmax_scale=1.0,
            causal=True, mask_value=-1e30,
        )  # fmt: skip

        def call(q: Any, k: Any, v: Any, total: Any, most: Any, do: Any, di: Any) -> Any:
            return function(q, k, v, None, None, total, most, do, di)

        rows, row = _f32(1, 2, length, 128), _f32(1, 2, length)
        return call, (rows, rows, rows, row, row, rows, row)

    return make


def _paged(**kwargs: Any) -> Any:
    return _of(
        "paged_attention", partial(_f32, 4, 8, 128), partial(_f32, 2, 32, 16, 128), partial(_f32, 2, 32, 16, 128),
        partial(_s32, 4), partial(_s32, 4, 8), pages_per_compute_block=4, **kwargs,
    )  # fmt: skip


JETSTREAM = ("AI-Hypercomputer/JetStream", "experimental/jax")
MAXTEXT = ("AI-Hypercomputer/maxtext", "src")
MAXDIFFUSION = ("AI-Hypercomputer/maxdiffusion", "src")
EJKERNEL = ("erfanzar/ejkernel", ".")
EASYDEL = ("erfanzar/EasyDeL", ".")
TPU_INFERENCE = ("vllm-project/tpu-inference", ".")
SGLANG = ("sgl-project/sglang-jax", "python")
TOKAMAX = ("openxla/tokamax", ".")
GRIFFIN = ("google-deepmind/recurrentgemma", ".")
FLOAT8 = "float8_e4m3fn"
AXLEARN = ("apple/axlearn", ".")
DOCS = ("jax-ml/jax", "docs/pallas")

_DEEPSEEK = "tpu_inference.kernels.experimental.deepseek_v4."
_EJ = "ejkernel.kernels._pallas.tpu."
_SPLASH = "maxtext.kernels.attention.splash_attention_kernel"
_TOKAMAX_SPLASH = "tokamax._src.ops.experimental.tpu.splash_attention.splash_attention_kernel"
_LOSS = "tokamax._src.ops.linear_softmax_cross_entropy_loss.pallas_mosaic_tpu_kernel"
_RAGGED = "maxtext.kernels.attention.ragged_attention"
_MEGABLOX = "maxtext.kernels.megablox."
_JET = "inference.kernel.attention.tpu."
_INFER = "tpu_inference.kernels."
_SGL = "sgl_jax.srt.kernels."
_TOK = "tokamax._src.ops."
_MAX_RAGGED = "maxtext.kernels.ragged."


def _ragged(name: str, query: tuple[int, ...], keys: tuple[int, ...]) -> Any:
    return _of(name, partial(_bf16, *query), partial(_bf16, *keys), partial(_bf16, *keys), partial(_s32, query[0]))


def _gmm_v2(**kwargs: Any) -> Any:
    return _of("gmm_v2", partial(_bf16, 512, 512), partial(_bf16, 8, 512, 512), partial(_s32, 8), **kwargs)


def _blockwise(n: int, kind: str = "int8") -> Any:
    """1024 columns in blocks of 256; of the numbers to which both are rounded tpu-inference's tests use only floats."""

    def make(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import jax

        tuned = module.TunedValue(128, 512, 256)
        function = partial(module.quantized_matmul_kernel, block_size=256, x_q_dtype=kind, tuned_value=tuned)
        scale = jax.ShapeDtypeStruct((1024 // 256, 1, n), "float32")
        return function, (_bf16(256, 1024), jax.ShapeDtypeStruct((n, 1024), kind), scale)

    return make


def _mesh(axis: str, count: int = 4) -> Any:
    import jax

    return jax.sharding.AbstractMesh((count,), (axis,))


def _gather_matmul(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    function = partial(module.all_gather_matmul, mesh=_mesh("x"), axis_name="x", bn=256, bk=256)
    return function, (_bf16(1024, 512), _bf16(512, 1024))


def _mlp(inner: int, shards: int = 1) -> Any:
    """A gated MLP of 128 rows and 256 columns with this inner size, over devices of an axis `tensor`."""

    def make(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        mesh = _mesh("tensor", shards)

        def call(x: Any, both: Any, down: Any) -> Any:
            return module.apply_fused_mlp_with_padding(x, both, down, mesh)

        return call, (_bf16(128, 256), _bf16(256, 2 * inner), _bf16(inner, 256))

    return make


def _decoding(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """axlearn's decoding over a cache of 1024 keys, causal: what its layer hands to it."""
    import types

    from jax import numpy as jnp

    bias = module.MaskFnAttentionBias
    layer = types.SimpleNamespace(cfg=types.SimpleNamespace(tpu_block_size=256, softmax_scale=1.0, interpret=False))

    def call(q: Any, k: Any, v: Any, last: Any) -> Any:
        mask = bias(
            lambda query, key: query >= key, target_positions=last[:, None], source_positions=jnp.arange(1024)[None]
        )
        given = {"query": q, "key": k, "value": v, "bias": mask}
        return module.TPUDecoding.__call__.__wrapped__(layer, given)

    return call, (_bf16(4, 1, 8, 128), _bf16(4, 1024, 8, 128), _bf16(4, 1024, 8, 128), _s32(4))


def _transfer(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A cache of one layer, copied in chunks on one device."""
    from jax.sharding import PartitionSpec

    whole = PartitionSpec()

    def call(of: Any, to: Any, starts: Any, ends: Any, sizes: Any, many: Any) -> Any:
        return module.multi_layer_copy(
            src_array=[of], dest_array=[to], src_offsets=starts, dest_offsets=ends, chunk_sizes=sizes, num_chunks=many,
            mesh=_mesh("x", 1), src_sharding_spec=whole, dest_sharding_spec=whole, replicated_sharding_spec=whole,
        )  # fmt: skip

    return call, (_bf16(64, 16, 128), _bf16(512, 16, 128), _s32(8), _s32(8), _s32(8), _s32(1))


def _start(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The first half of the same: copies are started, and waited for elsewhere."""
    offsets = (_s32(8), _s32(8), _s32(8), _s32(1))
    return module._start_chunked_copy_kernel, (*offsets, *(_bf16(n, 16, 128) for n in (64, 64, 512)))


def _page_ids(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return partial(module.gather_page_ids, max_num_seqs=8), (_s32(8 * 256), _s32(60, 128), _s32(60))


def _sparse(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """2:4 sparse in the contracted dimension of the left matrix."""
    function = partial(
        module.structured_spmm, (2, 4), rhs_sparse=False, contract_sparse=True, stride=128, block_m=128, block_k=512,
        block_n=128,
    )  # fmt: skip
    return function, (_bf16(2, 256, 256), _s32(2, 16, 256), _bf16(1024, 256))


def _mla(**kwargs: Any) -> Any:
    """Multi-head latent attention over pages of 16 rows: 512 columns of values, 64 of positions."""
    return _of(
        "mla_ragged_paged_attention", partial(_bf16, 64, 8, 512), partial(_bf16, 64, 8, 64), partial(_bf16, 64, 512),
        partial(_bf16, 64, 64), partial(_bf16, 32, 8, 2, 640), partial(_s32, 4), partial(_s32, 4 * 8),
        partial(_s32, 5), partial(_s32, 3), num_kv_pages_per_block=4, num_queries_per_block=8, **kwargs,
    )  # fmt: skip


def _softmax_loss(rows: int, columns: int, words: int) -> Any:
    return _of(
        "linear_softmax_cross_entropy_loss_fwd_pallas_mosaic_tpu", partial(_f32, rows, columns), partial(_s32, rows),
        partial(_f32, columns, words), b_block_size=256, h_block_size=256, v_block_size=512,
    )  # fmt: skip


def _page(holds: tuple[str, ...], names: Mapping[str, Any] | None = None, **constants: Any) -> Any:
    """Of a page of documentation the blocks that hold one of these texts, as a function of the names given."""

    def make(page: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        wanted = partial(any_in, holds)
        given = {name: shape() for name, shape in (names or {}).items()}
        made = {k: v() if callable(v) else v for k, v in constants.items()}
        return page.function(wanted, tuple(given), made), tuple(given.values())

    return make


def any_in(texts: tuple[str, ...], block: str) -> bool:
    """Whether a block holds one of the texts, and is of TPUs."""
    return any(text in block for text in texts) and "# GPU version" not in block


def _gather_rows(name: str, rows: int = 512, places: int = 1024) -> Any:
    return _of(name, partial(_bf16, rows, 1024), partial(_s32, places), partial(_s32, 1), partial(_s32, 1))


def _gather_reduce(name: str) -> Any:
    rows = 32768
    return _of(
        name, partial(_bf16, rows, 1024), partial(_s32, rows), partial(_f32, rows), partial(_mask, rows),
        reduce_group_size=8,
    )  # fmt: skip


def _on_a_tpu(make: Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]) -> Any:
    """A call of a function that runs other code where `jax.devices()` is no TPU."""

    def made(module: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        own = module.jax
        names = {name: value for name, value in vars(own).items() if not name.startswith("__")}
        module.jax = SimpleNamespace(**{**names, "devices": lambda *given: [SimpleNamespace(platform="tpu")]})
        return make(module)

    return made


CALLS = (
    Call("lru", *GRIFFIN, "recurrentgemma.jax.pallas", _lru(512)),
    Call("lru 1000 rows", *GRIFFIN, "recurrentgemma.jax.pallas", _lru(1000)),
    Call("lru gradient", *GRIFFIN, "recurrentgemma.jax.pallas", _gradient(_lru(512), 2)),
    Call(
        "chunked prefill", *JETSTREAM, _JET + "chunked_prefill_attention",
        _of("chunked_prefill_attention", partial(_f32, 128, 8, 128), partial(_f32, 2, 32, 16, 128),
            partial(_f32, 2, 32, 16, 128), partial(_s32, 1), partial(_s32, 8)),
    ),
    Call("paged attention", *JETSTREAM, _JET + "paged_attention", _paged(), ("body_in_bounds",)),
    Call(
        "paged attention, programs for sequences", *JETSTREAM, _JET + "paged_attention", _paged(inline_seq_dim=False),
        ("body_in_bounds", "outputs_stored"),
    ),
    Call("ragged mqa", *MAXTEXT, _RAGGED, _ragged("ragged_mqa", (4, 8, 128), (4, 1024, 128))),
    Call("ragged gqa", *MAXTEXT, _RAGGED, _ragged("ragged_gqa", (4, 1, 8, 128), (4, 1024, 2, 128))),
    Call("ragged mha", *MAXTEXT, _RAGGED, _ragged("ragged_mha", (4, 1, 8, 128), (4, 1024, 8, 128))),
    Call("splash causal", *MAXTEXT, _SPLASH, _splash(512)),
    Call("splash local", *MAXTEXT, _SPLASH, _splash(512, mask="local")),
    Call("splash batched", *MAXTEXT, _SPLASH, _splash(512, batched=True)),
    Call("splash gradient", *MAXTEXT, _SPLASH, _splash(512, gradient=True)),
    Call("gmm 512", *MAXTEXT, _MEGABLOX + "backend", _gmm(512)),
    Call("gmm 2048", *MAXTEXT, _MEGABLOX + "backend", _gmm(2048)),
    Call("gmm, tiles that do not divide", *MAXTEXT, _MEGABLOX + "backend", _gmm(512, (128, 96, 128))),
    Call("tgmm", *MAXTEXT, _MEGABLOX + "backend", _tgmm(512)),
    Call("gmm v2", *MAXTEXT, _MEGABLOX + "pallas_mosaic_tpu_v2_gmm_kernel", _gmm_v2()),
    Call("splash 2048", *MAXDIFFUSION, "maxdiffusion.kernels.custom_splash_attention", _custom_splash(2048, 512)),
    Call("splash 2000", *MAXDIFFUSION, "maxdiffusion.kernels.custom_splash_attention", _custom_splash(2000, 512)),
    Call(
        "splash, two heads a tile", *MAXDIFFUSION, "maxdiffusion.kernels.custom_splash_attention",
        _custom_splash(2048, 512, 2),
    ),
    Call("splash causal", *TOKAMAX, _TOKAMAX_SPLASH, _splash(512)),
    Call("splash local", *TOKAMAX, _TOKAMAX_SPLASH, _splash(512, mask="local")),
    Call("splash gradient", *TOKAMAX, _TOKAMAX_SPLASH, _splash(512, gradient=True)),
    Call("flash", *EJKERNEL, _EJ + "flash_attention._pallas_impl_fwd", _flash_ejkernel(512, False)),
    Call("flash causal", *EJKERNEL, _EJ + "flash_attention._pallas_impl_fwd", _flash_ejkernel(1920, True)),
    Call(
        "ragged decode", *EJKERNEL, _EJ + "ragged_decode_attention._pallas_impl_fwd",
        _of("ragged_decode_mqa", partial(_bf16, 4, 8, 128), partial(_bf16, 4, 1024, 128), partial(_bf16, 4, 1024, 128),
            partial(_s32, 4), partial(_s32, 4)),
    ),
    Call("gmm", *EJKERNEL, _EJ + "grouped_matmul._pallas_impl", _gmm(512, name="grouped_matmul")),
    Call("tgmm", *EJKERNEL, _EJ + "grouped_matmul._pallas_impl", _tgmm(512, "transposed_grouped_matmul")),
    Call(
        "gmm, three buffers", *EJKERNEL, _EJ + "grouped_matmulv2._pallas_impl",
        _gmm(512, name="grouped_matmul", input_buffer_count=3, preferred_element_type="float32"),
    ),
    Call(
        "tgmm, two buffers", *EJKERNEL, _EJ + "grouped_matmulv2._pallas_impl",
        _tgmm(512, "transposed_grouped_matmul", preferred_element_type="float32"),
    ),
    Call(
        "triangular inverse", *EASYDEL, "easydel.operations.kernels.inference_gdn",
        _of("newton_schulz_inverse_pallas", partial(_f32, 8, 64, 64)),
    ),
    Call(
        "triangular inverse, blocks", *EASYDEL, "easydel.operations.kernels.inference_gdn",
        _of("decompose_triangular_matrix_inverse_pallas", partial(_f32, 8, 64, 64)),
    ),
    Call("blockwise quantised", *TPU_INFERENCE, _INFER + "quantized_matmul.blockwise_kernel",
         _blockwise(1024, FLOAT8)),
    Call("blockwise quantised, 1280", *TPU_INFERENCE, _INFER + "quantized_matmul.blockwise_kernel",
         _blockwise(1280, FLOAT8), ("block_shape",)),
    Call("gmm v2", *TPU_INFERENCE, _INFER + "megablox.gmm_v2", _gmm_v2()),
    Call(
        "ragged paged attention 2", *TPU_INFERENCE, _INFER + "ragged_paged_attention.v2.kernel",
        _of("ragged_paged_attention", partial(_bf16, 64, 8, 128), partial(_bf16, 32, 16, 4, 128), partial(_s32, 4),
            partial(_s32, 4, 8), partial(_s32, 5), partial(_s32, 1), num_kv_pages_per_block=4,
            num_queries_per_block=16, vmem_limit_bytes=32 * 2**20),
    ),
    Call(
        "cache update", *TPU_INFERENCE, _INFER + "ragged_paged_attention.v2.ragged_kv_cache_update",
        _of("kv_cache_update", partial(_bf16, 64, 4, 128), partial(_s32, 3, 16), partial(_bf16, 512, 4, 128),
            partial(_s32, 1), num_slices_per_block=8),
    ),
    Call("blockwise quantised", *SGLANG, _SGL + "quantized_matmul.quantized_matmul_kernels.blockwise_kernel",
         _blockwise(1024)),
    Call("gmm v2", *SGLANG, _SGL + "gmm.megablox_gmm_kernel.gmm_v2", _gmm_v2()),
    Call(
        "splash, ring", *MAXDIFFUSION, "maxdiffusion.kernels.custom_splash_attention",
        _ring,
    ),
    Call("gated delta rule, decode", *EASYDEL, "easydel.operations.kernels.gated_delta_rule", _gated_delta,
         bare=("easydel.caching", "easydel.layers", "easydel.layers.linear_attention", "easydel.utils")),
    Call(
        "gated delta net, decode", *EASYDEL, "easydel.operations.kernels.inference_gdn",
        _of("_pallas_gdn_decode_call", partial(_f32, 32, 32, 128), partial(_f32, 32, 32, 128),
            partial(_f32, 32, 32, 128), partial(_f32, 32, 32), partial(_f32, 32, 32), partial(_f32, 32, 32, 128, 128),
            partial(_s32, 32)),
        ("memory_budget",),
    ),
    Call("flash 1920", *EJKERNEL, _EJ + "flash_attention._pallas_impl_fwd", _flash_ejkernel(1920, False)),
    Call("flash dkv", *EJKERNEL, _EJ + "flash_attention._pallas_impl_bwd", _flash_backward("_flash_attention_bwd_dkv")),
    Call("flash dq", *EJKERNEL, _EJ + "flash_attention._pallas_impl_bwd", _flash_backward("_flash_attention_bwd_dq")),
    Call("decoding", *AXLEARN, "axlearn.common.flash_attention.tpu_decoding", _decoding),
    Call("all-gather matmul", *TPU_INFERENCE, _INFER + "collectives.all_gather_matmul", _gather_matmul),
    Call("2:4 sparse matmul", *TPU_INFERENCE, _INFER + "structured_sparse_matmul.v1.spmm", _sparse),
    Call("latent attention 1", *TPU_INFERENCE, _INFER + "mla.v1.kernel", _mla()),
    Call("cache transfer", *TPU_INFERENCE, "tpu_inference.distributed.kv_transfer", _transfer),
    Call("page gather", *TPU_INFERENCE, _DEEPSEEK + "core_attention.sparse_mla", _page_ids),
    Call("fused mlp", *SGLANG, _SGL + "fused_mlp", _mlp(512)),
    Call("fused mlp, 320", *SGLANG, _SGL + "fused_mlp", _mlp(320), ("inputs_read",)),
    Call("fused mlp, 18944 by 8", *SGLANG, _SGL + "fused_mlp", _mlp(18944, 8), ("inputs_read",)),
    Call("gmm v2", *TOKAMAX, "tokamax._src.ops.experimental.gmm_v2.gmm_v2", _gmm_v2()),
    Call("softmax loss", *TOKAMAX, _LOSS, _softmax_loss(1024, 512, 2048)),
    Call("softmax loss, 2000 words", *TOKAMAX, _LOSS, _softmax_loss(1000, 512, 2000)),
    Call(
        "sparse.md: sparse matmul", *DOCS, "tpu/sparse.md",
        _page(("import numpy", "def dsd_kernel"), {
            "indices_i": partial(_s32, 104), "indices_k": partial(_s32, 104),
            "X_blocks": partial(_bf16, 104, 512, 512), "Y": partial(_bf16, 16384, 16384),
            "zeros": partial(_bf16, 16384, 16384),
        }, X_dense=None, ref=None, diff=None),
        ("body_in_bounds",),
    ),
    Call(
        "sparse.md: masked matmul", *DOCS, "tpu/sparse.md",
        _page(("import numpy", "def sparse_mask_matmul("), {
            "block_mask": partial(_s32, 32, 32), "prefetch_mask": partial(_s32, 32, 32),
            "prefetch_i": partial(_s32, 32, 32), "prefetch_j": partial(_s32, 32, 32),
            "sparse_mask_data": partial(_s32, 2, 512, 512), "X": partial(_bf16, 16384, 16384),
            "Y": partial(_bf16, 16384, 16384),
        }, mask=None, ref=None, diff=None, M=16384, N=16384, K=16384, blk_M=512, blk_N=512, blk_K=512),
    ),
    Call(
        "sparse.md: block slice", *DOCS, "tpu/sparse.md",
        _page(("import numpy", "def block_dynamic_slice"), {"x": partial(_s32, 512, 512)}, ref=None, diff=None),
    ),
    Call(
        "pipelining.md", *DOCS, "tpu/pipelining.md",
        _page(("import jax", "def hbm_vmem_kernel", "def dynamic_block_example_kernel",
               "def add_matrices_pipelined_megacore")),
    ),
    Call(
        "distributed.md", *DOCS, "tpu/distributed.md",
        _page(("import functools", "def right_permute_kernel", "def all_gather_kernel", "def all_reduce_kernel",
               "def reduce_scatter_kernel"), num_devices=4, mesh=partial(_mesh, "x"), sharding=None),
        ("initialised",),
    ),
    Call("quickstart.md", *DOCS, "quickstart.md", _page(("",))),
    Call("ragged gather", *TOKAMAX, _TOK + "ragged_gather.pallas_mosaic_tpu_kernel",
         _gather_rows("ragged_gather_pallas")),
    Call("ragged gather 2", *TOKAMAX, _TOK + "ragged_gather.pallas_mosaic_v2_tpu_kernel",
         _gather_rows("ragged_gather_pallas")),
    Call("ragged scatter", *TOKAMAX, _TOK + "ragged_scatter.pallas_mosaic_tpu_kernel",
         _gather_rows("ragged_scatter_pallas")),
    Call("ragged gather", *MAXTEXT, _MAX_RAGGED + "ragged_gather", _on_a_tpu(_gather_rows("ragged_gather"))),
    Call("ragged gather and reduce", *MAXTEXT, _MAX_RAGGED + "ragged_gather_reduce",
         _on_a_tpu(_gather_reduce("ragged_gather_reduce"))),
    Call("ragged gather 2", *TPU_INFERENCE, _INFER + "sparse_core.ragged_gather_v2", _gather_rows("ragged_gather_v2")),
    Call("ragged scatter", *TPU_INFERENCE, _INFER + "sparse_core.ragged_scatter",
         _gather_rows("ragged_scatter", 32768, 32768)),
)  # fmt: skip
