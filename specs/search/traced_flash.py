"""Flash attention with its block sizes as plain keyword arguments, which is all that a search needs."""

from __future__ import annotations

from typing import Any


def attention(q: Any, k: Any, v: Any, *, block_q: int, block_k_major: int) -> Any:
    """The operation of the jax wheel, causal; the inner block of keys is the whole outer one."""
    from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention

    sizes = BlockSizes(block_q=block_q, block_k_major=block_k_major, block_k=block_k_major, block_b=1)
    return flash_attention(q, k, v, causal=True, block_sizes=sizes)
