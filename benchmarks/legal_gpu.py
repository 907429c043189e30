"""`lp.legal` on configurations of JAX's kernels of Mosaic GPU: milliseconds of each, and what `lp.kernels` says.

    python benchmarks/legal_gpu.py [--only hopper_matmul] [--each 40]   CPU milliseconds of each configuration
    python benchmarks/legal_gpu.py --check                              every verdict beside that of `lp.kernels`

Each is traced on a CPU, which is told that it is a GPU (`tests.pallas.mosaic_gpu_ops.pretended`). `--check` asks
`lp.kernels` about each with all its questions, of which the same ones count; and counts those called legal that it
refutes by another one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from legal import configurations, quantile

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.pallas.from_jax.user import argument
from layoutproof.searching.configurations import BODIES
from tests.pallas.mosaic_gpu_ops import pretended


def hopper(a: Any, b: Any, *, tile_m: int, tile_n: int, tile_k: int, steps: int, epilogue_n: int) -> Any:
    """JAX's matrix product for Hopper."""
    from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as own

    return own.matmul(a, b, None, own.TuningConfig(tile_m, tile_n, tile_k, steps, epi_tile_n=epilogue_n))


def blackwell(a: Any, b: Any, *, tile_m: int, tile_n: int, tile_k: int, steps: int, collective: int) -> Any:
    """JAX's matrix product for Blackwell."""
    from jax.experimental.pallas.ops.gpu import blackwell_matmul_mgpu as own

    return own.matmul_kernel(a, b, own.TuningConfig(tile_m, tile_n, tile_k, steps, bool(collective)))


def attention(q: Any, k: Any, v: Any, *, block_q: int, block_kv: int, steps: int, causal: int) -> Any:
    """JAX's attention for Hopper."""
    from jax.experimental.pallas.ops.gpu import attention_mgpu as own

    return own.attention(q, k, v, own.TuningConfig(block_q, block_kv, steps, causal=bool(causal)))


def ragged(a: Any, b: Any, sizes: Any, **options: int) -> Any:
    """JAX's ragged product for Hopper."""
    from jax.experimental.pallas.ops.gpu import ragged_dot_mgpu as own

    return own.ragged_dot(a, b, group_sizes=sizes, **options)


def transposed_ragged(a: Any, b: Any, sizes: Any, **options: int) -> Any:
    """The same, summed over the groups' rows."""
    from jax.experimental.pallas.ops.gpu import transposed_ragged_dot_mgpu as own

    return own.transposed_ragged_dot(a, b, group_sizes=sizes, **options)


class TunedForGpu(NamedTuple):
    """A kernel, the chip it is for, its arguments, and what may be chosen."""

    function: Callable[..., Any]
    chip: str
    args: Sequence[str]
    parameters: Mapping[str, Sequence[int]]


TILES = {"tile_m": [64, 100, 128], "tile_n": [64, 128, 200, 256], "tile_k": [32, 64, 128], "steps": [1, 2, 4, 6]}
BLOCKS = {
    "block_m": [64, 100, 128], "block_n": [64, 128, 256], "block_k": [64, 96, 128],
    "max_concurrent_steps": [2, 4, 6], "grid_block_n": [1, 2],
}  # fmt: skip
PAIR = ("f16[1024,512]", "f16[512,1024]")
GPU = {
    "hopper_matmul": TunedForGpu(hopper, "h100", PAIR, TILES | {"epilogue_n": [32, 64]}),
    "blackwell_matmul": TunedForGpu(blackwell, "b200", PAIR, TILES | {"collective": [0, 1]}),
    "attention": TunedForGpu(
        attention, "h100", ("f16[1,1024,2,64]",) * 3,
        {"block_q": [64, 100, 128, 256], "block_kv": [64, 96, 128, 256], "steps": [1, 2, 4, 6], "causal": [0, 1]},
    ),
    "ragged_dot": TunedForGpu(ragged, "h100", ("f16[512,256]", "f16[4,256,512]", "s32[4]"), BLOCKS),
    "transposed_ragged_dot": TunedForGpu(
        transposed_ragged, "h100", ("f16[512,256]", "f16[512,256]", "s32[4]"), BLOCKS
    ),
}  # fmt: skip


def slowly(of: TunedForGpu, values: Mapping[str, int]) -> tuple[Verdict, list[str]]:
    """The verdict of `lp.kernels` on the same questions, and which others it refutes."""
    try:
        args = [argument(text) for text in of.args]
        found = lp.kernels(partial(of.function, **values), *args, target="mosaic_gpu")
    except LayoutError:
        return Verdict.REFUTED, []
    errors = [f for f in found.findings if f.severity == "error"]
    same = [f.verdict for f in errors if f.question in BODIES]
    others = [f.question for f in errors if f.question not in BODIES and f.verdict is Verdict.REFUTED]
    unread = any(getattr(call.call, "unread", "") or hasattr(call.call, "reason") for call in found.calls)
    return min([*same, Verdict.UNKNOWN] if unread else same), others


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="a kernel; repeatable")
    parser.add_argument("--each", type=int, default=40, help="configurations of a kernel at most")
    parser.add_argument("--check", action="store_true", help="compare every verdict")
    given = parser.parse_args()
    print("kernel                 configurations  legal refused unknown  median ms    90 %  kernels ms")
    rules: Counter[str] = Counter()
    for name in given.only or GPU:
        of = GPU[name]
        values = configurations(of, given.each)
        spent, slow, differ, others, many = [], [], [], [], Counter[Verdict]()
        with pretended(of.chip):
            legal = lp.legal(of.function, *of.args, target="mosaic_gpu", parameters=of.parameters)
            for each in values:
                before = time.process_time()
                answer = legal(**each)
                spent.append(1e3 * (time.process_time() - before))
                many[answer.verdict] += 1
                if answer.verdict is Verdict.REFUTED:
                    rules[answer.question or "the function"] += 1
                if given.check:
                    before = time.process_time()
                    verdict, more = slowly(of, each)
                    slow.append(1e3 * (time.process_time() - before))
                    if verdict is not answer.rules:
                        differ.append(f"{each} {answer}, slowly {verdict.value}")
                    others += [f"{each} {q}" for q in more if answer.verdict is Verdict.PROVED]
        numbers = "".join(f"{many[v]:>8}" for v in (Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN))
        median = f"{statistics.median(slow):>12.0f}" if slow else ""
        print(
            f"{name:22}{len(values):>15}{numbers}{statistics.median(spent):>10.0f}{quantile(spent, 0.9):>8.0f}{median}"
        )
        print(*(f"  differs: {line}" for line in differ), *(f"  legal, refuted by {line}" for line in others), sep="\n")
        sys.stdout.flush()
    print(", ".join(f"{rule} {n}" for rule, n in rules.most_common()))


if __name__ == "__main__":
    main()
