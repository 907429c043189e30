"""No known bug of the installed JAX is met: of its interpreters, its kernels, and of XLA on the CPU.

Why it matters: a kernel is tried in an interpreter first. Where that is wrong, a right kernel fails there, or a wrong
one passes.
Refuted by: the operand, the bug in one sentence, the versions in which it was seen, and its thread. A warning; an info
where nobody looked at this version, or where the pattern is common in kernels that it does not hurt.
Example: a window `pl.Element(8, (8, 0))`, of which `InterpretParams` leaves out the padding.
Source: the table of known bugs, `layoutproof/known_bugs/bugs.py`: docs/known_bugs.md has all of them.
Fix: the way out of the table, or another version of JAX.
Incident: JAX's own matmul of K = 300 at block 256 adds up 256 of 300 products: BUGS-FOUND.md.
Limits: Bugs of the table alone, and the JAX that is installed here.
"""

from __future__ import annotations

from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, undecided
from layoutproof.known_bugs.ask import installed, of_kernel
from layoutproof.pallas.rules.known_bugs import obligation

TARGET = False
REPAIRED = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One for each bug that is met; none elsewhere: the table has bugs of kernels for TPUs."""
    if kernel.platform != "tpu":
        return ()
    return tuple(map(obligation, of_kernel(kernel, ("jax", "jaxlib"), installed())))


def unasked(kernel: Kernel) -> Settled:
    """Where the table has no such pattern for this version."""
    return undecided("the pattern of no bug that is known of the installed JAX is in the kernel")
