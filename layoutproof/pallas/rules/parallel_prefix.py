"""Parallel grid dimensions come before sequential ones.

Why it matters: cores share out the parallel dimensions, and run the others in order. `pltpu.InterpretParams` refuses
another order; the compiler (libtpu 0.0.42.1) takes it and does not say what it then runs in which order.
Refuted by: the first parallel dimension that follows a sequential one. Dimensions that vmap added count as parallel.
Not asked of `emit_pipeline`: its grid is a loop of one core, which runs all of it in order; with `core_axis` it shares
out the parallel dimension, wherever that stands.
Example: dimension_semantics ("arbitrary", "parallel").
Fix: reorder the grid: parallel dimensions first, reductions last.
Incident: none is known to us. JAX's interpreter refuses it, the compiler (libtpu 0.0.42.1) takes it: kernels that ran
in one become errors in the other.
Refuted:
    layoutproof ask parallel_prefix '{kernel: {grid: [2, 2], semantics: [arbitrary, parallel],
        outputs: [{name: o, array: "f32[16,256]", block: [8, 128], index: "(i, j) -> (i, j)"}]}}'
Proved:
    layoutproof ask parallel_prefix '{kernel: {grid: [2, 2], semantics: [parallel, arbitrary],
        outputs: [{name: o, array: "f32[16,256]", block: [8, 128], index: "(i, j) -> (i, j)"}]}}'
Limits: The order of dimensions only; whether programs collide is `parallel_writes`.
"""

from __future__ import annotations

from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided

AFTER_SEQUENTIAL = Template(
    "pallas.parallel_prefix_after_sequential", "{dimension} is parallel and comes after the sequential {before}"
)


TARGET = False
HINT = "look at the order of the grid: parallel dimensions come first"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, about the semantics; none on GPUs, where all is parallel, and of pipelines: each core runs its part."""
    if kernel.platform != "tpu" or kernel.pipeline != "pallas_call":
        return ()
    parallel = kernel.parallel()
    # one program alone is in every order
    sequential = [k for k in range(len(kernel.grid)) if k not in parallel and kernel.grid[k] != 1]
    late = [k for k in parallel if sequential and k > sequential[0] and kernel.grid[k] != 1]
    late_parallel = ""
    if late:
        before = kernel.dimension(sequential[0]).removeprefix("grid ")
        late_parallel = AFTER_SEQUENTIAL(kernel.dimension(late[0]), before)
    return (Obligation("grid", by_rule(late_parallel, HINT)),)


def unasked(kernel: Kernel) -> Settled:
    """On a GPU."""
    return undecided("on a GPU all programs run at once, whatever the order of the grid")
