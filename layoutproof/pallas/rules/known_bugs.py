"""No known bug of the TPU compiler is met: of the version that the target names, in the pattern of its thread.

Why it matters: the kernel is right, every proof of it holds, and the compiler of some versions makes something else of
it, or ends. Nobody looks for that in the kernel.
Refuted by: the operand, the bug in one sentence, the versions in which it was seen, and its thread. A warning; an info
where nobody looked at this version, or where the pattern is common in kernels that it does not hurt.
Example: an operand in HBM that the body never reads, beside a copy of a part of another one, under libtpu 0.0.44.
Source: the table of known bugs, `layoutproof/known_bugs/bugs.py`: docs/known_bugs.md has all of them.
Fix: the way out of the thread, or another version of libtpu.
Incident: a copy out of HBM gives zeros: https://github.com/jax-ml/jax/issues/39744
Limits: Bugs of the table alone. That none is met says nothing of the compiler.
"""

from __future__ import annotations

from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.known_bugs.ask import of_kernel, versions_in
from layoutproof.known_bugs.bug import BugSeen

TARGET = True
REPAIRED = False


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One for each bug that is met; none elsewhere."""
    return tuple(map(obligation, of_kernel(kernel, ("libtpu",), versions_in(target.compiler))))


def unasked(kernel: Kernel) -> Settled:
    """Where the table has no such pattern for this version."""
    return undecided("the pattern of no bug that is known of this version is in the kernel")


def obligation(bug: BugSeen) -> Obligation:
    """A bug that is met, as an obligation that decides no verdict."""
    settled = by_rule(bug.reason, bug.bug.way_out)
    return Obligation(
        bug.subject, settled, reads=False, severity=bug.severity, source=bug.source, figures={"bug": bug.bug.name}
    )
