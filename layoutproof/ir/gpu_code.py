"""Statements of a GPU compiler's code in a kernel (`CodeStep`): named barriers, waits and fences of tensor memory.

Source: PTX ISA, bar (barrier), tcgen05.fence and tcgen05.wait; the operations of MLIR's dialect nvvm for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from layoutproof.ir.program import CodeStep

WARP = 32
"""Threads that arrive on a named barrier together."""
NAMED_BARRIERS = 16
"""Those that a program has."""
_NAMED_BARRIER = re.compile(r"bar(?:rier)?(?:\.cta)?\.(sync|arrive)(?:\.aligned)?\s+(\$?\d+)\s*,\s*(\d+)")
"""A named barrier in assembly: what is done, which one, for how many threads."""
_BARRIERS = {"nvvm.barrier": "bar.sync", "nvvm.barrier.arrive": "bar.arrive"}
"""Operations of MLIR that are one of a named barrier: their operands are which one, and for how many threads."""
LOADED = "nvvm.tcgen05.wait kind=#nvvm.tcgen05_wait<load>"
STORED = "nvvm.tcgen05.wait kind=#nvvm.tcgen05_wait<store>"
"""Waits of each warp for its own loads of tensor memory, and for its own stores."""
_TENSOR_FENCE = re.compile(r"(?:nvvm\.tcgen05\.fence kind=#nvvm\.tcgen05_fence<|tcgen05\.fence::)(before|after).*")
"""What orders tensor memory before or after other memory, as MLIR and as assembly."""


@dataclass(frozen=True, slots=True)
class NamedBarrier:
    """An arrival of each warp on a named barrier. number: which one, as an operand of `CodeStep`, None if unknown.

    threads: those that it is for.  waits: whether each also waits until all have come.
    """

    number: int | str | None
    threads: int
    waits: bool


def statements(step: CodeStep) -> list[str]:
    """What an operation does, each as a line of assembly, or as MLIR names it.

    Args:
        step: The operation.
    """
    if step.name == "llvm.inline_asm":
        return [part.strip() for part in step.text.split(";") if part.strip()]
    if step.name in _BARRIERS and len(step.operands) == 2 and isinstance(step.operands[1], int):
        return [f"{_BARRIERS[step.name]} $0, {step.operands[1]}"]
    told = ("nvvm.tcgen05.wait", "nvvm.tcgen05.fence")
    return [f"{step.name} {step.text}" if step.name in told else step.name]


def named_barrier(step: CodeStep, done: str) -> NamedBarrier | None:
    """A statement as one of a named barrier; None where it is none.

    Args:
        step: The operation.
        done: One of its statements.
    """
    found = _NAMED_BARRIER.fullmatch(done)
    if found is None:
        return None
    does, which, threads = found.groups()
    number: int | str | None = int(which) if which[0] != "$" else None
    if which[0] == "$" and int(which[1:]) < len(step.operands):
        number = step.operands[int(which[1:])]
    return NamedBarrier(number, int(threads), does == "sync")


def tensor_fence(done: str) -> str:
    """ "before" or "after" where a statement is a fence of tensor memory, else "".

    Args:
        done: The statement.
    """
    found = _TENSOR_FENCE.fullmatch(done)
    return "" if found is None else found[1]


def is_proxy_fence(done: str) -> bool:
    """Whether a statement orders what copies do and what threads do (fence.proxy).

    Args:
        done: The statement.
    """
    return done.startswith(("fence.proxy.", "nvvm.fence.proxy"))
