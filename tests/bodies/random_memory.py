"""Random kernels with partial blocks and accumulators: what is said of them, and what JAX's interpreter finds.

`python -m tests.bodies.random_memory FIRST COUNT` prints how the verdicts and the runs go together.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.bodies.judged import worst
from tests.bodies.pitfalls import iota

Step = Callable[[Any, Any, Any, int, int], Any]
STEPS: dict[str, Step] = {
    "mask columns": lambda v, i, k, rows, columns: jnp.where(k * 128 + iota(v.shape, 1) < columns, v, 0),
    "mask one column too few": lambda v, i, k, rows, columns: jnp.where(k * 128 + iota(v.shape, 1) <= columns, v, 0),
    "mask columns of the block": lambda v, i, k, rows, columns: jnp.where(iota(v.shape, 1) < columns - 128, v, 0),
    "mask rows": lambda v, i, k, rows, columns: jnp.where(i * 8 + iota(v.shape, 0) < rows, v, 0),
    "sum over rows": lambda v, i, k, rows, columns: jnp.broadcast_to(v.sum(0, keepdims=True), v.shape),
    "sum over columns": lambda v, i, k, rows, columns: jnp.broadcast_to(v.sum(1, keepdims=True), v.shape),
    "less the maximum": lambda v, i, k, rows, columns: v - v.max(1, keepdims=True),
    "roll columns": lambda v, i, k, rows, columns: pltpu.roll(v, 3, 1),
    "roll rows": lambda v, i, k, rows, columns: pltpu.roll(v, 1, 0),
    "reverse": lambda v, i, k, rows, columns: lax.rev(v, (1,)),
    "running sum": lambda v, i, k, rows, columns: lax.cumsum(v, axis=1),
    "loop": lambda v, i, k, rows, columns: lax.fori_loop(
        0, 3, lambda t, a: a + jnp.where(iota(a.shape, 1) < 64, v, a), v
    ),
    "swap halves": lambda v, i, k, rows, columns: jnp.concatenate([v[:, 64:], v[:, :64]], 1),
}


def kernel(seed: int) -> tuple[Any, Any]:
    """A kernel and its argument."""
    choose = random.Random(seed)
    rows, columns = choose.choice([8, 12, 16]), choose.choice([128, 200, 256])
    grid = (-(-rows // 8), -(-columns // 128))
    steps = [choose.choice([*STEPS]) for _ in range(choose.randint(1, 4))]
    where = choose.choice(["nowhere", "scratch", "scratch", "window"])
    zeroed = choose.choice(["first k", "first k", "first i", "last k", "never"])
    every = choose.random() < 0.5
    semantics = (choose.choice(["parallel", "arbitrary"]), "arbitrary")

    def body(x: Any, o: Any, s: Any) -> None:
        i, k = pl.program_id(0), pl.program_id(1)
        v = x[...]
        for step in steps:
            v = STEPS[step](v, i, k, rows, columns)
        if where == "nowhere":
            o[...] = v
            return
        total = s if where == "scratch" else o
        if zeroed != "never":

            @pl.when({"first k": k == 0, "first i": i == 0, "last k": k == grid[1] - 1}[zeroed])
            def _() -> None:
                total[...] = jnp.zeros_like(total)

        total[...] += v
        if where == "scratch":

            @pl.when((k == grid[1] - 1) | every)
            def _() -> None:
                o[...] = total[...]

    def run(x: Any, interpret: Any = False) -> Any:
        return pl.pallas_call(
            body,
            grid=grid,
            in_specs=[pl.BlockSpec((8, 128), lambda i, k: (i, k))],
            out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((rows, 128), jnp.float32),
            scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
            interpret=interpret,
        )(x)

    return run, np.ones((rows, columns), np.float32)


def outcome(seed: int) -> tuple[Verdict, Verdict, bool]:
    """What the two properties say of a kernel, and whether it gives NaN where all new memory is NaN."""
    run, x = kernel(seed)
    (call,) = kernels_of(lambda a: run(a), (x,))
    assert isinstance(call, Kernel)
    padding, unwritten = (worst([*judge(call, names=[name])]) for name in ("undefined_values", "initialised"))
    result = run(x, interpret=pltpu.InterpretParams(uninitialized_memory="nan"))
    return padding, unwritten, bool(np.isnan(np.asarray(result)).any())


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for (padding, unwritten, spoilt), n in Counter(map(outcome, range(first, first + count))).items():
        print(f"{n:5}  undefined_values {padding.value}, initialised {unwritten.value}, NaN in the result: {spoilt}")
