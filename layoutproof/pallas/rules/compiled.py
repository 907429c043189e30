"""The TPU compiler takes the whole kernel, body included: its own answer, ahead of time, for the version it names.

Why it matters: rules know blocks, grids and windows; only the compiler knows what it does with the body, and it says so
late. `layoutproof kernels --compile` asks it, per kernel and target; otherwise this question is not asked.
Proved by: the compiler takes the kernel. It is no proof that the kernel computes what it should.
Refuted by: the compiler's own words, their meaning, and the multiple or the size that would do.
Unknown where it gave no answer: it is not installed, its time is up, it aborted, or the call needs the code around it.
Fix: as the explanation says: the multiple for a block or an index, smaller blocks, more VMEM.
Figures: bytes of VMEM, exact: windows, scratch and register spills.
Incident: 32 MB of windows became 121 MB in the compiler: https://github.com/pytorch/xla/issues/9346
Limits: The one compiler version that was asked; no time was measured.
"""

from __future__ import annotations

from layoutproof.core.errors import shorten
from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided

REFUSED = Template("pallas.compiled_refused", "it is refused: {refused}{means}")
LOOK = Template("pallas.compiled_look", "look at this: {fix}")


TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One where the compiler was asked, none where it was not asked."""
    answer = target.answered(kernel)
    if answer is None:
        return ()
    subject = f"{kernel.name} on {target.name}"
    figures: dict[str, object] = {} if answer.total is None else {"bytes": answer.total}
    if answer.unknown:
        return (Obligation(subject, undecided(answer.unknown)),)
    if answer.refused:
        means = f"; {answer.means}" if answer.means else ""
        why = REFUSED(shorten(answer.refused, 300), means)
        return (Obligation(subject, by_rule(why, answer.fix and LOOK(answer.fix), answer.by), figures=figures),)
    figures["proved"] = f"{answer.by} takes it" + (f"; VMEM {answer.said}" if answer.said else "")
    return (Obligation(subject, by_rule("", by=answer.by), figures=figures),)


def unasked(kernel: Kernel) -> Settled:
    """The answer where the compiler was not asked."""
    return undecided("the compiler was not asked; layoutproof kernels --compile asks it")
