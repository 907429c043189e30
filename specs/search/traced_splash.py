"""Splash attention with its block sizes as plain keyword arguments, which is all that a search needs."""

from __future__ import annotations

from typing import Any


def attention(q: Any, k: Any, v: Any, *, block_q: int, block_kv: int, block_kv_compute: int) -> Any:
    """The operation of the jax wheel, every query with every key, as many heads of keys as of queries."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as mask

    every = mask.MultiHeadMask([mask.FullMask((q.shape[1], k.shape[1])) for _ in range(q.shape[0])])
    sizes = kernel.BlockSizes(block_q=block_q, block_kv=block_kv, block_kv_compute=block_kv_compute)
    return kernel.make_splash_mha_single_device(every, block_sizes=sizes)(q, k, v)
