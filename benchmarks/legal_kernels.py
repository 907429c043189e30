"""Ten kernels with block sizes to choose, for `benchmarks/legal.py`: TPU kernels of the jax wheel, and four of ours.

Each is a function with block sizes as keyword arguments, as a tuner calls it: right and wrong sizes are among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import search_kernels


def jax_matmul(x: Any, y: Any, *, bm: int, bn: int, bk: int) -> Any:
    """JAX's matrix product."""
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    return matmul(x, y, block_shape=(bm, bn), block_k=bk)


def jax_flash(q: Any, k: Any, v: Any, *, bq: int, bk_major: int, bk: int, bb: int) -> Any:
    """JAX's flash attention."""
    from jax.experimental.pallas.ops.tpu import flash_attention as fa

    return fa.flash_attention(q, k, v, causal=True, block_sizes=fa.BlockSizes(bq, bk_major, bk, bb))


def jax_splash(q: Any, k: Any, v: Any, *, bq: int, bkv: int, bkv_compute: int) -> Any:
    """JAX's splash attention with a causal mask, which it cuts into blocks while it is traced."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as sk
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as sm

    heads, rows = q.shape[:2]
    masks = sm.MultiHeadMask([sm.CausalMask((rows, rows)) for _ in range(heads)])
    sizes = sk.BlockSizes(block_q=bq, block_kv=bkv, block_kv_compute=bkv_compute)
    return sk.make_splash_mha_single_device(masks, block_sizes=sizes)(q, k, v)


def jax_gmm(x: Any, y: Any, sizes: Any, *, tm: int, tk: int, tn: int) -> Any:
    """JAX's grouped matrix product."""
    import importlib

    made = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")
    return made.gmm(x, y, sizes, tiling=(tm, tk, tn))


def jax_paged(q: Any, k: Any, v: Any, lengths: Any, pages: Any, *, pages_per_block: int) -> Any:
    """JAX's paged attention, which copies pages by hand."""
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention_kernel as pk

    return pk.paged_attention(q, k, v, lengths, pages, pages_per_compute_block=pages_per_block)


def jax_ragged_paged(
    q: Any, kv: Any, lengths: Any, pages: Any, starts: Any, many: Any, *, pages_per_block: int, queries: int
) -> Any:
    """JAX's ragged paged attention, which copies pages by hand."""
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import kernel as rk

    return rk.ragged_paged_attention(
        q, kv, lengths, pages, starts, many, num_kv_pages_per_block=pages_per_block, num_queries_per_block=queries
    )


class Tuned(NamedTuple):
    """One kernel. args: as the command line takes them.  parameters: of each block size its values.  target: whose.

    assume: of its tables.  where: of sizes that are known at run time only.
    """

    function: Any
    args: tuple[str, ...]
    parameters: Mapping[str, Sequence[int]]
    target: str = "v5e"
    assume: tuple[str, ...] = ()
    where: tuple[str, ...] = ()


_EDGES = (8, 16, 32, 64, 96, 100, 128, 192, 256, 384, 512, 640, 768, 1000, 1024, 1536, 2048, 4096)

TUNED: Mapping[str, Tuned] = {
    "jax matmul": Tuned(
        jax_matmul,
        ("bf16[4096,4096]", "bf16[4096,4096]"),
        {
            "bm": (128, 256, 512, 1024, 2048, 4096),
            "bn": (128, 256, 512, 768, 1024, 2048),
            "bk": (128, 256, 500, 512, 1024, 2048),
        },
    ),
    "jax flash": Tuned(
        jax_flash,
        ("bf16[2,4,2048,128]",) * 3,
        {
            "bq": (64, 128, 256, 512, 1024, 2048),
            "bk_major": (128, 256, 512, 1024, 2048),
            "bk": (128, 256, 512, 1024, 2048),
            "bb": (1, 2),
        },
    ),
    "jax splash": Tuned(
        jax_splash,
        ("bf16[4,2048,128]",) * 3,
        {
            "bq": (128, 256, 384, 512, 1024, 2048),
            "bkv": (128, 256, 512, 1024, 2048),
            "bkv_compute": (128, 256, 512, 1024, 2048),
        },
    ),
    "jax gmm": Tuned(
        jax_gmm,
        ("bf16[2048,1024]", "bf16[8,1024,2048]", "s32[8]"),
        {
            "tm": (128, 256, 384, 512, 1024, 2048),
            "tk": (128, 256, 512, 640, 1024),
            "tn": (128, 256, 512, 768, 1024, 2048),
        },
        # of the groups and the tiles that `make_group_metadata` computes
        assume=(
            "0 <= prefetch1 < 8",
            "0 <= prefetch2 < 2048 // tm",
            "prefetch2 is monotone",
            "prefetch2[:grid1] is onto",
        ),
        where=("grid1 <= 2048 // tm + 7",),
    ),
    "jax paged": Tuned(
        jax_paged,
        ("bf16[32,32,128]", "bf16[8,2048,16,128]", "bf16[8,2048,16,128]", "s32[32]", "s32[32,128]"),
        {"pages_per_block": (1, 2, 3, 4, 8, 16, 32, 64, 128)},
    ),
    "jax ragged paged": Tuned(
        jax_ragged_paged,
        ("bf16[512,16,128]", "bf16[1024,32,8,128]", "s32[64]", "s32[64,64]", "s32[65]", "s32[1]"),
        {"pages_per_block": (1, 2, 4, 8, 16, 32, 64, 128), "queries": (8, 16, 32, 64, 128, 256, 512)},
        "v6e",
    ),
    "matmul": Tuned(
        search_kernels.matmul,
        ("bf16[2048,2048]", "bf16[2048,2048]"),
        {"bm": _EDGES[4:], "bn": _EDGES[4:], "bk": (128, 256, 512, 1000, 1024, 2048)},
    ),
    "flash": Tuned(search_kernels.flash, ("bf16[4,2000,128]",) * 3, {"bq": _EDGES, "bk": _EDGES}),
    "transpose": Tuned(search_kernels.transpose, ("f32[1003,3001]",), {"bm": _EDGES, "bn": _EDGES}),
    "conv": Tuned(search_kernels.conv, ("f32[4096,2048]", "f32[4,2048]"), {"br": _EDGES, "bc": _EDGES}),
}
"""By name."""
