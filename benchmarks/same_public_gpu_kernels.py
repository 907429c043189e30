"""`python benchmarks/same_public_gpu_kernels.py CHECKOUTS [--only TEXT]`: what kernels of openxla/tokamax compute.

CHECKOUTS is a folder as of `public_gpu_kernels.py`, which says what it needs. Each row is `lp.same` of a kernel at a
small size beside a few lines of jax.numpy, and beside the same lines with one error. Where a row says something else
than is expected it exits 1. Seconds are of a processor, for the right reference, tracing included.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.public_gpu_kernels import REPOSITORY, array, module, of_chip, prepare

Reference = Callable[[bool], Callable[..., Any]]
"""By whether it is the wrong one."""
SCALE = 0.125
BLOCK = 128
BLOCKS = {"block_q": 64, "block_kv": BLOCK, "num_stages": 2}
TILES = {"tile_m": 128, "tile_n": 64, "tile_k": 64}


@dataclass(frozen=True)
class Row:
    """One kernel. make: the function and its arguments.  error: of the wrong reference.  says: what is expected."""

    name: str
    chip: str
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    reference: Reference
    error: str
    says: str = "sampled"


def attention(
    generation: str, rows: int, causal: bool = False, stable: bool = True, heads: int = 1, **config: Any
) -> Any:
    def make() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        own = module(f"attention.pallas_mosaic_gpu_kernel_{generation}")
        options = {
            "is_causal": causal, "logits_soft_cap": None, "logits_scale": SCALE, "out_dtype": array(()).dtype,
            "normalize_output": True, "return_residuals": False, "use_stable_softmax": stable,
            "rescale_threshold": 1.0, "config": own.Config(**config),
        }  # fmt: skip
        nothing = (None,) * 4
        one = array((rows, heads, 64))
        return lambda *qkv: own.flash_attention_kernel(*qkv, *nothing, **options)[0], (one, one, one)

    return make


def attended(causal: bool = False, stable: bool = True) -> Reference:
    """In powers of two, in blocks of keys, and with the small number that the kernel adds to each sum.

    The wrong one has a mask off by one where it is causal, else twice the scale.
    """

    def made(wrong: bool) -> Callable[..., Any]:
        import jax.numpy as jnp

        def reference(q: Any, k: Any, v: Any) -> Any:
            q, k, v = (x.astype(jnp.float32) for x in (q, k, v))
            s = jnp.einsum("qhd,khd->hqk", q, k)
            scale = SCALE * (2 if wrong and not causal else 1) * 1.4426950408889634
            if causal:
                s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool), -1 if wrong else 0), s, -jnp.inf)
            # the greatest of each block is scaled before the blocks are compared
            most = (s.reshape(*s.shape[:2], -1, BLOCK).max(-1) * scale).max(-1, keepdims=True)
            p = jnp.exp2(s * scale - (most if stable else 0.0))
            total = p.sum(-1) + jnp.finfo(jnp.float32).tiny
            return (jnp.einsum("hqk,khd->qhd", p, v) / total.T[:, :, None]).astype(jnp.bfloat16)

        return reference

    return made


def gated(generation: str, shape: tuple[int, int, int], **config: Any) -> Any:
    def make() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import jax

        own = module(f"gated_linear_unit.pallas_mosaic_gpu_kernel_{generation}")
        options = {
            "activation": jax.nn.silu,
            "config": module("gated_linear_unit.pallas_mosaic_gpu_common").Config(**config),
        }
        m, k, n = shape
        return lambda x, w: own.gated_linear_unit(x, w, **options), (array((m, k)), array((k, 2, n)))

    return make


def gate(wrong: bool) -> Callable[..., Any]:
    """With the other factor as the gate where it is wrong."""
    import jax
    import jax.numpy as jnp

    def reference(x: Any, w: Any) -> Any:
        one, other = (x.astype(jnp.float32) @ w[:, k].astype(jnp.float32) for k in ((1, 0) if wrong else (0, 1)))
        return (jax.nn.silu(one) * other).astype(jnp.bfloat16)

    return reference


DOUBLED, LATE, SWAPPED = "twice the scale", "the mask off by one", "the other factor as the gate"
ROWS = (
    Row(
        "attention sm90", "h100", attention("sm90", 256, **BLOCKS), attended(), DOUBLED, says="unknown"
    ),
    Row(
        "attention sm90, no maximum", "h100", attention("sm90", 256, stable=False, **BLOCKS), attended(stable=False),
        DOUBLED,
    ),
    Row(
        "attention sm90, no maximum, causal", "h100", attention("sm90", 256, True, False, **BLOCKS),
        attended(True, False), LATE,
    ),
    Row(
        "attention sm90, no maximum, persistent", "h100",
        attention("sm90", 256, stable=False, heads=2, persistent=True, **BLOCKS), attended(stable=False), DOUBLED,
    ),
    Row(
        "attention sm100", "b200", attention("sm100", 512, block_q=256, block_kv=BLOCK, num_stages=2), attended(),
        DOUBLED,
    ),
    Row(
        "gated linear unit sm80", "a100",
        gated("sm80", (128, 128, 128), tile_m=64, tile_n=64, tile_k=32, num_stages=2), gate, SWAPPED,
    ),
    Row("gated linear unit sm90", "h100", gated("sm90", (256, 128, 128), **TILES), gate, SWAPPED),
    Row(
        "gated linear unit sm90 cluster", "h100", gated("sm90", (512, 128, 128), cluster_size_m=2, **TILES), gate,
        SWAPPED,
    ),
    Row("gated linear unit sm100", "b200", gated("sm100", (256, 128, 256), **TILES), gate, SWAPPED, says="unknown"),
)  # fmt: skip
"""The files of tokamax with attention and gated linear units."""


def answered(row: Row, wrong: bool) -> tuple[str, str, float]:
    """(The verdict, the reason, seconds of a processor.)"""
    import layoutproof as lp

    start = time.process_time()
    with of_chip(row.chip):
        function, arguments = row.make()
        found = lp.same(function, row.reference(wrong), *arguments)
    return found.verdict.value, found.reason, time.process_time() - start


def main() -> int:
    """Asks each, prints the table."""
    import jax

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has it")
    options = parser.parse_args()
    prepare((options.checkouts / REPOSITORY.replace("/", "+")).absolute())
    print(f"{datetime.date.today()}, jax {jax.__version__}\n")
    print("| kernel | verdict | seconds | because | beside a wrong reference |\n|---|---|---|---|---|")
    otherwise = []
    for row in ROWS:
        if options.only not in row.name:
            continue
        verdict, reason, seconds = answered(row, False)
        beside, _, _ = answered(row, True)
        why = "" if verdict == "sampled" else reason.partition(";")[0][:300]
        print(f"| {row.name} | {verdict} | {seconds:.0f} | {why} | {row.error}: {beside} |", flush=True)
        if (verdict, beside) != (row.says, "refuted"):
            otherwise.append(row.name)
    print(f"\notherwise than expected: {', '.join(otherwise) or 'none'}")
    return 1 if otherwise else 0


if __name__ == "__main__":
    sys.exit(main())
