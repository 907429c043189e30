"""The target takes the kernel's grid, semantics, buffers and mix of block kinds.

Why it matters: what is refused is refused late, and what `interpret=True` takes is no guide.
Refuted by: what is refused, and by whom.
Example: Buffered(3) in pallas_call; Element next to ordinary blocks; core_parallel with more programs than cores.
"""

from __future__ import annotations

from layoutproof.core.kernel import Kernel, KernelTarget
from layoutproof.core.obligation import Obligation

TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One, or one per refusal."""
    refused = target.refuses_kernel(kernel)
    return tuple(Obligation(kernel.name, broken=why) for why in refused) or (Obligation(kernel.name),)
