"""Windows, buffers, tables and scratch fit into the target's vector and scalar memory.

Why it matters: over the limit the compiler refuses, after all the work of compiling.
Refuted by: the memory, what is needed, the limit and who set it, and the largest parts.
What the kernel's body needs besides (temporaries, spills) is known to the compiler alone: leave it some room.
Figures: bytes of every part, the sum and the limit.
Mend: smaller blocks, Buffered(1) for blocks that rarely change, or vmem_limit_bytes up to what the target has.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutproof.core.kernel import Kernel, KernelTarget, Memory
from layoutproof.core.numbers import Numbers
from layoutproof.core.obligation import Obligation
from layoutproof.core.result import Point

TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One per memory."""
    found = []
    for memory in target.memory(kernel):
        parts = sorted(memory.parts, key=lambda part: -part[1])
        figures: dict[str, object] = {"bytes": memory.used, "limit": memory.limit, **dict(parts)}
        why = ""
        if memory.used > memory.limit:
            largest = ", ".join(f"{what}: {size}" for what, size in parts[:4])
            why = f"{memory.name}: {memory.used} bytes needed, {memory.limit} allowed ({memory.limit_from}); {largest}"
        mend = _mend(memory)
        found.append(Obligation(memory.name, broken=why, figures=figures, mend=_saying(mend)))
    return tuple(found)


def _saying(text: str) -> Callable[[Point, Numbers], str]:
    return lambda point, on: text


def _mend(memory: Memory) -> str:
    if memory.limit < memory.used <= memory.capacity:
        return f"smaller blocks, or vmem_limit_bytes={memory.used} and more (up to {memory.capacity})"
    return "smaller blocks"
