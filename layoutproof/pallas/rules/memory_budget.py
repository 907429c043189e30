"""Windows and scratch fit into the target's vector and scalar memory; what the compiler adds is not counted.

Why it matters: the compiler refuses a kernel over the limit at the end of compilation.
Proved and refuted in the same words: windows + scratch = X of Y bytes, a lower bound; spills not counted. It is no
proof that the compiler takes the kernel: registers that spill take VMEM too, and only the compiler knows how much
(`vmem_total`). Where it was asked (`kernels --compile`), its exact figure stands beside the bound.
What the body allocates for itself (pl.run_scoped, the buffers of a pipeline inside of the call) counts as scratch, at
the moment when most of it is alive. A pipeline is not asked by itself, the call around it is, with that call's limit.
Refuted by: the memory, what is needed, the limit and who set it, and the largest parts.
Figures: bytes of every part, the sum and the limit.
Fix: smaller blocks, Buffered(1) for blocks that rarely change, or vmem_limit_bytes up to what the target has.
Incident: double buffering by default put a kernel over its VMEM after an upgrade:
https://github.com/keras-team/keras-io/issues/2284
Refuted:
    layoutproof ask memory_budget "f32[8192,8192] blockspec (4096, 4096) (i, j) -> (i, j) grid (2, 2)" --target v5e
Proved:
    layoutproof ask memory_budget "f32[8192,8192] blockspec (512, 512) (i, j) -> (i, j) grid (16, 16)" --target v5e
Limits: A lower bound: what spills from registers is `vmem_total`.
"""

from __future__ import annotations

from layoutproof.core.finding import NOT_ASKED
from layoutproof.kernel.kernel import Kernel, KernelTarget, MemoryUse
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided

TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One per memory."""
    memories, answer = target.memory(kernel), target.answered(kernel)
    if kernel.pipeline == "emit_pipeline" and all(m.used <= m.capacity for m in memories):
        # its limit is that of the call around it, and so is all else that lies there
        why = f"{NOT_ASKED}the call around it counts its buffers, in its own memory_budget"
        return (Obligation(kernel.name, undecided(why), severity="info"),) if memories else ()
    found = []
    for memory in memories:
        parts = sorted(memory.parts, key=lambda part: -part[1])
        figures: dict[str, object] = {"bytes": memory.used, "limit": memory.limit, **dict(parts)}
        why = ""
        if memory.used > memory.limit:
            largest = ", ".join(f"{what}: {size}" for what, size in parts[:4])
            why = f"{memory.name}: {memory}; the limit is {memory.limit_from}; {largest}"
        else:
            exact = answer is not None and answer.said and memory.name == "VMEM"
            figures["proved"] = f"{memory}; exactly {answer.said}, by {answer.by}" if answer and exact else str(memory)
        found.append(Obligation(memory.name, by_rule(why, _fix(memory)), figures=figures))
    return tuple(found)


def unasked(kernel: Kernel) -> Settled:
    """Where the target says nothing of memory."""
    return undecided(f"of the memory of {kernel.platform} nothing is known")


def _fix(memory: MemoryUse) -> str:
    if memory.limit < memory.used <= memory.capacity:
        return f"smaller blocks, or vmem_limit_bytes={memory.used} and more (up to {memory.capacity})"
    return "smaller blocks"
