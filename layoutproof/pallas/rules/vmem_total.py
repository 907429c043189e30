"""All the VMEM that the compiled kernel takes, register spills included, is within its limit: the compiler's answer.

Why it matters: windows and scratch that fit (`memory_budget`) are no proof. Values that do not fit into registers spill
into VMEM: a matmul of 512x1024x2048, a softmax of 512x4096 and a w8a16 matmul of 256x1024 fit on v5e by their windows
and need 16.3 to 20 MiB of 16.
No formula knows that, so the answer is unknown, "not asked", until the compiler itself was asked: `kernels --compile`
and `search --compile` ask it. It is shown with the largest measured ratio of the total to windows and scratch, which
bounds nothing.
An info: it is counted as not asked, never as proved, and decides no exit code unless it is all that was asked.
Proved by: the compiler takes the kernel.
Refuted by: the compiler refuses it for its memory, in its own words.
Fix: smaller blocks, or a body that holds less at once (loop over parts of a block), or a larger vmem_limit_bytes.
Incident: a kernel needed 29.95 M of 16 M of VMEM, most of it spilled registers:
https://github.com/pytorch/xla/issues/7942
Limits: The one compiler version that was asked.
"""

from __future__ import annotations

from layoutproof.core.errors import Undecided, shorten
from layoutproof.core.finding import NOT_ASKED
from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas.memory_needed import refused_for

ONLY_COMPILER = Template(
    "pallas.vmem_total_only_compiler",
    "{not_asked}only the compiler knows what spills from registers; {kinds} = {used} of {limit} bytes, and the largest "
    "total that was measured is {ratio:g} times that ({source})",
)
NO_ANSWER = Template("pallas.vmem_total_no_answer", "{not_asked}the compiler gave no answer: {why}")


TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One for each memory that the compiler adds to; none of a pipeline, which is compiled with the call around it."""
    found = []
    answer = target.answered(kernel)
    try:
        memories = target.memory(kernel)
    except Undecided as reason:
        return (Obligation(kernel.name, undecided(f"{NOT_ASKED}{reason}"), severity="info"),)
    for memory in memories:
        ratio, source = memory.most
        if not ratio or kernel.pipeline == "emit_pipeline":
            continue
        if answer is not None and answer.unknown:
            why = NO_ANSWER(NOT_ASKED, answer.unknown)
            found.append(Obligation(memory.name, undecided(why), severity="info"))
        elif answer is not None and not answer.refused:
            said = f"the compiler takes the kernel{f': {answer.said}' if answer.said else ''}"
            figures: dict[str, object] = {"proved": said, "limit": memory.limit}
            figures |= {} if answer.total is None else {"bytes": answer.total}
            found.append(Obligation(memory.name, by_rule("", by=answer.by), figures=figures))
        elif answer is not None and refused_for(memory, answer):
            refusal = answer.said or f"{answer.by}: {shorten(answer.refused, 300)}"
            found.append(Obligation(memory.name, by_rule(refusal, by=answer.by)))
        else:
            why = ONLY_COMPILER(NOT_ASKED, memory.kinds, memory.used, memory.limit, ratio, source)
            found.append(Obligation(memory.name, undecided(why), severity="info"))
    return tuple(found)


def unasked(kernel: Kernel) -> Settled:
    """Where the target says nothing of memory."""
    return undecided("nothing is known of what the compiler adds, or the call around this pipeline is asked")
