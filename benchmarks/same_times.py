"""`python benchmarks/same_times.py [--svg FILE] [--only NAME]`: what `layoutproof same` costs, and how that grows.

Cases: the matmul of the jax wheel, 1024^3 and 2048^3; its flash attention over 2048 rows of 128 in blocks of 256; one
matmul of 512^3 in ever smaller blocks (growth with programs); one with 64 programs and ever larger blocks (growth with
elements). Measured is CPU time of one process on one core, from the call of `lp.same` to its answer, tracing and
premises included, imports not; three points, as by default. A machine under load is slower, so beside it stands the
ratio to NumPy's product of two float64 matrices of 1024 x 1024, measured just before and just after.

`--svg FILE` draws both growths; `docs/same_times.svg` is made so.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

# one core, before NumPy is imported
os.environ.update({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# what is asked twice is to cost the same
os.environ["LAYOUTPROOF_CACHE"] = "off"

PROGRAMS = (512, 256, 128, 64, 32)
"""Blocks of the matmul of 512^3: 1 to 4,096 programs."""
ELEMENTS = (32, 64, 128, 256, 512)
"""Blocks of the matmul with 4 x 4 x 4 programs: 16,384 to 4,194,304 elements of each array."""
Case = tuple[str, Callable[..., Any], Callable[..., Any], tuple[str, ...]]


def matmul(name: str, n: int, block: int) -> Case:
    """The wheel's matmul of n x n x n in cubes."""
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.tpu.matmul import matmul as of_wheel

    function = functools.partial(of_wheel, block_shape=(block, block), block_k=block)
    return name, function, lambda x, y: jnp.dot(x, y), (f"f32[{n},{n}]",) * 2


def flash(name: str, rows: int) -> Case:
    """The wheel's flash attention, one head of 128, blocks of 256 rows."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.tpu import flash_attention as of_wheel

    sizes = of_wheel.BlockSizes(block_q=256, block_k_major=256, block_k=256, block_b=1)

    def attention(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k), -1)
        return jnp.einsum("bhqk,bhkd->bhqd", weights, v)

    function = functools.partial(of_wheel.flash_attention, block_sizes=sizes)
    return name, function, attention, (f"f32[1,1,{rows},128]",) * 3


def cases() -> Iterator[tuple[str, int, Case]]:
    """(series, its measure, the case)."""
    yield "sizes", 1024, matmul("matmul 1024^3, blocks of 256", 1024, 256)
    yield "sizes", 2048, matmul("matmul 2048^3, blocks of 512", 2048, 512)
    yield "sizes", 2048, flash("flash attention 2048 x 128", 2048)
    for block in PROGRAMS:
        programs = (512 // block) ** 3
        yield "programs", programs, matmul(f"matmul 512^3, {programs:,} programs", 512, block)
    for block in ELEMENTS:
        elements = (4 * block) ** 2
        yield "elements", elements, matmul(f"64 programs, {elements:,} elements", 4 * block, block)


def unit() -> float:
    """CPU seconds of one product of float64 matrices of 1024 x 1024."""
    import numpy as np

    a = np.random.default_rng(0).standard_normal((1024, 1024))
    start = time.process_time()
    _ = a @ a
    return time.process_time() - start


def measured(case: Case) -> tuple[str, float, float]:
    """(verdict, CPU seconds, the same in units)."""
    import layoutproof as lp

    _, function, reference, arguments = case
    before = unit()
    start = time.process_time()
    answer = lp.same(function, reference, *arguments)
    seconds = time.process_time() - start
    return answer.verdict.value, seconds, seconds / ((before + unit()) / 2)


def draw(path: str, series: dict[str, list[tuple[int, float]]]) -> None:
    """Both growths, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "layoutproof"
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    named = {"programs": "programs of a matmul of 512^3", "elements": "elements of each array, 64 programs"}
    for axis, (name, label) in zip(axes, named.items(), strict=True):
        axis.loglog(*zip(*series[name], strict=True), marker="o", color="#1f6feb")
        axis.set_xlabel(label)
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("CPU seconds")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--svg", metavar="FILE", help="draw how the time grows")
    parser.add_argument("--only", default="", metavar="NAME", help="cases whose name has this")
    given = parser.parse_args()
    measured(matmul("imports", 128, 128))
    series: dict[str, list[tuple[int, float]]] = {"programs": [], "elements": [], "sizes": []}
    print(f"{'case':<40} {'verdict':<8} {'CPU s':>7} {'units':>8}")
    for name, measure, case in cases():
        if given.only in case[0]:
            verdict, seconds, units = measured(case)
            series[name].append((measure, seconds))
            print(f"{case[0]:<40} {verdict:<8} {seconds:7.2f} {units:8.1f}", flush=True)
    if given.svg:
        draw(given.svg, series)


if __name__ == "__main__":
    main()
