"""The target's compiler takes the shape of every block.

Why it matters: the compiler refuses an illegal block late in each compilation, with a message about windows.
Refuted by: the operand, the rule, who refuses (JAX's lowering or Mosaic), and the nearest size that would do.
Example: s8[64,256] with block (8,128) on v5e: Mosaic of libtpu 0.0.42.1 wants rows in whole tiles of 32, later ones do
not. A block of no dimensions, f32[]: JAX takes it in SMEM only, and libtpu then without a grid only.
`emit_pipeline` copies its blocks itself, and takes others than a call does: (4,512) of f32[2048,512].
A rule speaks for the compiler version that it was measured on: the installed one, or the newest, or what `compiler`
names. For an unmeasured version the nearest older one's rules are asked, and the answer says so.
Fix: the nearest size that would do is in the reason.
Incident: tiling errors surface late, in the compiler, with a message about windows:
https://github.com/jax-ml/jax/issues/39058
Refuted:
    layoutproof ask block_shape "f32[64,256] blockspec (4, 128) (i, j) -> (i, j) grid (16, 2)" --target v5e
Proved:
    layoutproof ask block_shape "f32[64,256] blockspec (8, 128) (i, j) -> (i, j) grid (8, 2)" --target v5e
Limits: Shapes of blocks only; the body may use them in ways that the compiler refuses (`compiled`).
"""

from __future__ import annotations

from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel, KernelTarget, Operand
from layoutproof.kernel.obligation import Obligation, by_rule, for_each_operand

BATCHED = Template(
    "pallas.block_shape_batched", "look at vmap, which gave it the block: jax.lax.map batches outside of the call"
)
BATCHED_LAST = Template(
    "pallas.block_shape_batched_last", "look at vmap, which put its dimension at {place}: in_axes=0 puts it first"
)


TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One per operand."""

    def of(operand: Operand) -> list[Obligation]:
        refused = target.refuses_block(operand, kernel.grid, kernel.pipeline)
        return [Obligation(operand.name, by_rule(refused, _hint(kernel, operand)), source=operand.source)]

    return for_each_operand(kernel.operands, of)


def _hint(kernel: Kernel, operand: Operand) -> str:
    """Where to look where vmap has made the block what it is; "" where the author wrote it."""
    names = {kernel.grid_names[k] for k in kernel.vmapped}
    added = [d for d, term in enumerate(operand.index) if term.op == "name" and term.args[0] in names]
    if added and not operand.windowed:
        return BATCHED()
    if added and added[-1] >= len(operand.dims) - 2:
        return BATCHED_LAST(added[-1])
    return ""
