"""Windows and scratch fit into the target's vector and scalar memory; the compiler's additions are not counted.

Why it matters: the compiler refuses a kernel over the limit at the end of compilation.
Proved: windows + scratch = X of Y bytes; spills not counted. It is no proof that the compiler takes the kernel:
registers that spill take VMEM too, and only the compiler knows how much (`vmem_total`). Where it was asked
(`kernels --compile`), its exact figure stands beside the sum, and its answer decides what the sum leaves open.
Refuted by: the memory, the need, the limit and its source, and the largest parts. A refuted kernel does not fit
for any choice of the compiler: an array that it may keep in VMEM as a whole needs no window, and scratch in which the
body keeps nothing is dropped. Where the sum is above the limit and what it cannot do without is not, the answer is
unknown.
What the body allocates for itself (pl.run_scoped, the buffers of a pipeline inside of the call) counts as scratch, at
the moment when most of it is alive. A pipeline is not asked by itself, the call around it is, with that call's limit.
Figures: bytes of every part, the sum, the least that is needed, and the limit.
Fix: smaller blocks, Buffered(1) for blocks that rarely change, or vmem_limit_bytes up to what the target has.
Incident: double buffering by default put a kernel over its VMEM after an upgrade:
https://github.com/keras-team/keras-io/issues/2284
Refuted:
    layoutproof ask memory_budget "f32[8192,8192] blockspec (4096, 4096) (i, j) -> (i, j) grid (2, 2)" --target v5e
Proved:
    layoutproof ask memory_budget "f32[8192,8192] blockspec (512, 512) (i, j) -> (i, j) grid (16, 16)" --target v5e
Limits: A lower bound: register spills are in `vmem_total`. Which arrays are kept whole was measured of calls
that are a program by themselves; among other operations any that fits may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from layoutproof.core.finding import NOT_ASKED
from layoutproof.core.message import Template
from layoutproof.core.result import Counterexample
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import CompilerAnswer, Kernel, KernelTarget, MemoryUse
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas.memory_needed import memory_needed, refused_for

AROUND = Template(
    "pallas.memory_budget_around", "{not_asked}the call around it counts its buffers, in its own memory_budget"
)
EXACTLY = Template("pallas.memory_budget_exactly", "{memory}; exactly {said}, by {by}")
OVER = Template("pallas.memory_budget_over", "{memory}: {used}; the limit is {source}; {largest}")
REFUSED = Template("pallas.memory_budget_refused", "{said}; {by} refuses the kernel for its {memory}")
LESS_MAY_DO = Template(
    "pallas.memory_budget_less_may_do",
    "{said}; but {why}: {least} bytes may do, and only the compiler can say (kernels --compile)",
)
PLATFORM = Template("pallas.memory_budget_platform", "of the memory of {platform} nothing is known")


TARGET = True
HINT = "look at the largest of them: smaller blocks need less"


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One per memory."""
    memories = memory_needed(kernel, target)
    if kernel.pipeline == "emit_pipeline" and all(m.used <= m.capacity for m in memories):
        # its limit is that of the call around it, and so is all else that lies there
        why = AROUND(NOT_ASKED)
        return (Obligation(kernel.name, undecided(why), severity="info"),) if memories else ()
    found = []
    for memory in memories:
        figures: dict[str, object] = {"bytes": memory.used, "limit": memory.limit, **dict(memory.parts)}
        figures |= {"least": memory.least} if memory.least < memory.used else {}
        # the compiler's answer on the whole kernel is about its VMEM
        answer = target.answered(kernel) if memory.name == "VMEM" else None
        if memory.used <= memory.limit:
            exact = answer is not None and answer.said
            figures["proved"] = EXACTLY(memory, answer.said, answer.by) if answer and exact else str(memory)
        elif answer is not None and not answer.refused and not answer.unknown:
            figures["proved"] = f"the compiler takes the kernel{f': {answer.said}' if answer.said else ''}"
        decided = _decided(memory, answer)
        found.append(Obligation(memory.name, decided, figures=figures, fixes=_fixes(kernel, memory)))
    return tuple(found)


def _decided(memory: MemoryUse, answer: CompilerAnswer | None) -> Settled:
    if memory.used <= memory.limit:
        return by_rule("")
    if answer is not None and not answer.refused and not answer.unknown:
        return by_rule("", by=answer.by)
    largest = ", ".join(f"{what}: {size}" for what, size in sorted(memory.parts, key=lambda part: -part[1])[:4])
    said = OVER(memory.name, memory, memory.limit_from, largest)
    if memory.least > memory.limit:
        least = f"; at the least {memory.least}" if memory.spared else ""
        return by_rule(said + least, HINT)
    if answer is not None and refused_for(memory, answer):
        return by_rule(REFUSED(said, answer.by, memory.name), HINT, by=answer.by)
    why = "; ".join(dict.fromkeys(each for each, _ in memory.spared))
    return undecided(LESS_MAY_DO(said, why, memory.least))


def unasked(kernel: Kernel) -> Settled:
    """Where the target says nothing of memory."""
    return undecided(PLATFORM(kernel.platform))


def _fixes(kernel: Kernel, memory: MemoryUse) -> Callable[[Counterexample], Iterator[KernelFix]]:
    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        if memory.limit < memory.used <= memory.capacity:
            words = f"let vmem_limit_bytes be {memory.used} or more, up to {memory.capacity}"
            yield KernelFix(words, kernel.changed(vmem_limit=memory.used))

    return fixes
