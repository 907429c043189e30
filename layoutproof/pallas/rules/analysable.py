"""Every array is moved by the pipeline, so that the grid and the BlockSpecs say what each program reads and writes.

Why it matters: an operand in memory ANY or HBM has no blocks. The kernel copies parts of it by manual DMA, and which
parts is in its body: nothing that is proved of the other operands' blocks says anything of this one.
Asked where the body is not: with `--only grid` or `--property`, of compiled and of stated kernels, and where something
in the body is not modelled. Otherwise the questions about the body judge those copies.
Refuted by: nothing. Where there are such operands, the answer is unknown and names each.
An operand that `emit_pipeline` in the body moves as a whole does not count: a pipeline is judged as a call of its own.
Example: paged attention, whose pages of keys and values stay in HBM and are copied page by page.
Fix: ask of the body too (`layoutproof kernels` without `--only`), or move the operand by a BlockSpec or emit_pipeline.
Incident: regions in HBM that no copy of the body had written were read as numbers:
https://github.com/pytorch/helion/issues/2839
Proved:
    layoutproof ask analysable "f32[32,128] blockspec (8, 128) (i) -> (i, 0) grid (4,)"
Limits: It says where to look, and nothing about what is there.
"""

from __future__ import annotations

from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided

MANUAL_DMA = Template(
    "pallas.analysable_manual_dma", "{names} {be} moved by manual DMA (memory {memories}) in the body, {why}"
)
NOT_LOOKED_AT = Template(
    "pallas.analysable_not_looked_at",
    "which is not looked at: what it reads and writes is unknown; a pipeline in the body is seen only where the "
    "function is traced",
)
BODY_JUDGES = Template(
    "pallas.analysable_body_judges",
    "which BlockSpecs say nothing of: the questions about the body judge it, if all of it is modelled",
)


TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, about all operands that are moved by manual DMA; none where there are none."""
    held = kernel.manual_dma
    if not held or _read(kernel):
        return ()
    names = ", ".join(operand.name for operand in held)
    memories = ", ".join(dict.fromkeys(operand.memory for operand in held))
    unknown = NOT_LOOKED_AT() if kernel.body_reader is None else BODY_JUDGES()
    why = MANUAL_DMA(names, "is" if len(held) == 1 else "are", memories, unknown)
    return (Obligation(names, undecided(why), reads=False, source=kernel.source),)


def _read(kernel: Kernel) -> bool:
    """Whether all that moves is in a body that was read: on a GPU it loads and stores arrays as they are."""
    return kernel.platform == "mosaic_gpu" and kernel.body is not None and not kernel.body.unmodelled


def unasked(kernel: Kernel) -> Settled:
    """Where the body moves nothing by itself."""
    return by_rule("") if kernel.operands else undecided("the kernel has no operand")
