"""Each instruction of a GPU's kernel is one that the named GPU has.

Why it matters: JAX lowers the kernel for any GPU, and only the assembler of the GPU refuses it.
Refuted by: the first line of each kind of instructions that the GPU lacks. Products of a warpgroup (`wgmma`) are of
Hopper alone. Tensor memory and its products (`tcgen05`), work that a GPU gives out (`try_cluster_cancel`), and copies
of which the first program of two sees the end (`leader_tracked`) are of Blackwell.
Asked of every line, whether or not a program comes to it, with `--target h100`, `h200` or `b200`. A kernel for
`mosaic_gpu` is for the GPU that it needs.
Example: `plgpu.wgmma(acc, a, b)` with `--target b200`.
Source: PTX ISA, target notes of `wgmma` (sm_90a), `tcgen05`, `clusterlaunchcontrol` and `.cta_group` (sm_100 and
later). Code for sm_90a runs on no later GPU.
Fix: for Blackwell `plgpu.tcgen05_mma`, with its sum in `plgpu.TMEM`; for Hopper `plgpu.wgmma`, with its sum in
`plgpu.ACC`.
Incident: none is known to us.
Limits: Kernels whose body is read. Element types that one generation alone converts are not asked about.
"""

from __future__ import annotations

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import Body, GpuInstruction
from layoutproof.core.message import Template
from layoutproof.hardware.mosaic_gpu import HOPPER, NOT_EVERYWHERE
from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided

TARGET = True
BODY = True
SETTLED_BY = "name the GPU that the kernel is for"

LACKS = Template("pallas.gpu_instructions_lacks", "{chip} has no {instructions}: only {others} ({source})")
FOR_BLACKWELL = "look at plgpu.tcgen05_mma, with its sum in plgpu.TMEM"
FOR_HOPPER = "look at plgpu.wgmma, with its sum in plgpu.ACC; or name another target, b200"


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One per kind of instructions, at its first line; none where no GPU is named."""
    body: Body | None = kernel.body
    chip = str(getattr(target, "chip", ""))
    if body is None or not chip or kernel.platform != "mosaic_gpu":
        return ()
    first: dict[str, GpuInstruction] = {}
    for one in body.instructions:
        if one.name in NOT_EVERYWHERE:
            first.setdefault(NOT_EVERYWHERE[one.name][0], one)
    if not first:
        return ()
    found = [Obligation(name, _settled(chip, one), source=one.spot.source) for name, one in first.items()]
    return (*found, *not_modelled(kernel, body))


def unasked(kernel: Kernel) -> Settled:
    """Where every GPU has all instructions, or none is named."""
    return undecided("no instruction that only some GPUs have, or no GPU is named")


def _settled(chip: str, one: GpuInstruction) -> Settled:
    instructions, having, source = NOT_EVERYWHERE[one.name]
    if chip in having:
        return by_rule("")
    said = LACKS(chip.upper(), instructions, " and ".join(map(str.upper, having)), source)
    return by_rule(said, FOR_BLACKWELL if having == HOPPER else FOR_HOPPER)
