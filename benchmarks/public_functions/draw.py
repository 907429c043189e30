"""`python benchmarks/public_functions/draw.py CHECKOUTS`: 30 functions of public kernels, drawn by chance; prints them.

CHECKOUTS is the folder of `__main__.py`; Python 3.12 reads all of it. Drawn from are the functions that hold or reach
a `pallas_call` and that no other such function of their file calls, in files that import Pallas for TPUs, are no tests
and held no call when the list was drawn (`HELD`). Nothing is opened but by the syntax: what was drawn is `drawn.txt`,
which was kept before anybody read one of them, and `drawn_calls.py` calls them.
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SEED, COUNT = 33, 30
REPOSITORIES = ("AI-Hypercomputer/JetStream", "AI-Hypercomputer/maxdiffusion", "AI-Hypercomputer/maxtext",
                "apple/axlearn", "erfanzar/EasyDeL", "erfanzar/ejkernel", "google-deepmind/recurrentgemma",
                "openxla/tokamax", "sgl-project/sglang-jax", "vllm-project/tpu-inference")  # fmt: skip
HELD = frozenset(
    {
        "AI-Hypercomputer/JetStream/experimental/jax/inference/kernel/attention/tpu/chunked_prefill_attention.py",
        "AI-Hypercomputer/JetStream/experimental/jax/inference/kernel/attention/tpu/paged_attention.py",
        "AI-Hypercomputer/maxdiffusion/src/maxdiffusion/kernels/custom_splash_attention.py",
        "AI-Hypercomputer/maxdiffusion/src/maxdiffusion/kernels/splash_attention/splash_attention_kernel.py",
        "AI-Hypercomputer/maxtext/src/maxtext/kernels/attention/ragged_attention.py",
        "AI-Hypercomputer/maxtext/src/maxtext/kernels/attention/splash_attention_kernel.py",
        "AI-Hypercomputer/maxtext/src/maxtext/kernels/megablox/backend.py",
        "AI-Hypercomputer/maxtext/src/maxtext/kernels/megablox/pallas_mosaic_tpu_v2_gmm_kernel.py",
        "apple/axlearn/axlearn/common/flash_attention/tpu_decoding.py",
        "erfanzar/EasyDeL/easydel/operations/kernels/gated_delta_rule.py",
        "erfanzar/EasyDeL/easydel/operations/kernels/inference_gdn.py",
        "erfanzar/ejkernel/ejkernel/kernels/_pallas/tpu/flash_attention/_pallas_impl_bwd.py",
        "erfanzar/ejkernel/ejkernel/kernels/_pallas/tpu/flash_attention/_pallas_impl_fwd.py",
        "erfanzar/ejkernel/ejkernel/kernels/_pallas/tpu/grouped_matmul/_pallas_impl.py",
        "erfanzar/ejkernel/ejkernel/kernels/_pallas/tpu/grouped_matmulv2/_pallas_impl.py",
        "erfanzar/ejkernel/ejkernel/kernels/_pallas/tpu/ragged_decode_attention/_pallas_impl_fwd.py",
        "google-deepmind/recurrentgemma/recurrentgemma/jax/pallas.py",
        "openxla/tokamax/tokamax/_src/ops/experimental/gmm_v2/gmm_v2.py",
        "openxla/tokamax/tokamax/_src/ops/experimental/tpu/splash_attention/splash_attention_kernel.py",
        "openxla/tokamax/tokamax/_src/ops/linear_softmax_cross_entropy_loss/pallas_mosaic_tpu_kernel.py",
        "sgl-project/sglang-jax/python/sgl_jax/srt/kernels/fused_mlp.py",
        "sgl-project/sglang-jax/python/sgl_jax/srt/kernels/gmm/megablox_gmm_kernel/gmm_v2.py",
        "sgl-project/sglang-jax/python/sgl_jax/srt/kernels/quantized_matmul/quantized_matmul_kernels/blockwise_kernel.py",
        "vllm-project/tpu-inference/tpu_inference/distributed/kv_transfer.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/collectives/all_gather_matmul.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/experimental/deepseek_v4/core_attention/csa_gather.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/experimental/deepseek_v4/core_attention/sparse_mla.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/megablox/gmm_v2.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/mla/v1/kernel.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/quantized_matmul/blockwise_kernel.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/ragged_paged_attention/v2/kernel.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/ragged_paged_attention/v2/ragged_kv_cache_update.py",
        "vllm-project/tpu-inference/tpu_inference/kernels/structured_sparse_matmul/v1/spmm.py",
    }
)


def named(tree: ast.AST) -> set[str]:
    """Every name that a piece of code says, also as an attribute."""
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)
    }


def entries(text: str) -> Iterator[str]:
    """Functions of a module that hold or reach a `pallas_call`, and that no other of them calls."""
    says = {n.name: named(n) - {n.name} for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    reaching: set[str] = set()
    while more := {f for f, names in says.items() if names & (reaching | {"pallas_call"})} - reaching:
        reaching |= more
    yield from (f for f in reaching if not any(f in says[other] for other in reaching))


def drawn_from(checkouts: Path) -> Iterator[str]:
    """Every function that may be drawn, as `owner/name/path:function`."""
    for repository in REPOSITORIES:
        root = checkouts / repository.replace("/", "+")
        for path in root.rglob("*.py"):
            inside = path.relative_to(root)
            if any("test" in part or "bench" in part for part in inside.parts) or f"{repository}/{inside}" in HELD:
                continue
            text = path.read_text(errors="replace")
            if "pallas_call" not in text or not ("pallas.tpu" in text or "pltpu" in text):
                continue
            yield from (f"{repository}/{inside}:{function}" for function in entries(text))


if __name__ == "__main__":
    everything = sorted(drawn_from(Path(sys.argv[1])))
    print(f"{COUNT} of {len(everything)}, seed {SEED}", file=sys.stderr)
    print("\n".join(sorted(random.Random(SEED).sample(everything, COUNT))))
