"""VMEM of larger candidates by compiled ones: a candidate with windows and scratch no smaller takes no less VMEM.

This is measured, and no law. 523 candidates of nine kernels (matmuls in bf16 and f32, softmax, gelu, a transposition,
flash attention; v5e, and three of them on v6e; libtpu 0.0.52) are 6,727 pairs of which one has no smaller window and no
smaller scratch than the other: none of these takes less VMEM, as long as the same grid dimensions have one program,
since the compiler leaves out what no other step needs. Registers that spill are no such bound by themselves: in 105 of
the pairs the larger candidate spills less. `benchmarks/search.py neighbours` measures it again.
So a candidate that holds as much as one that did not fit is not asked about, unless a pair of the same search
contradicts it. That is no proof, and counts as none: no candidate is skipped that costs less than the first accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from layoutproof.core.errors import Undecided
from layoutproof.hardware.tpu_memory import memory
from layoutproof.mosaic.ask import CompilerQuestion
from layoutproof.pallas.compiled import Compiled

NOT_ASKED = "not asked: "
"""Before why a candidate was not asked about, in the report that stands for an answer."""

Held = tuple[tuple[object, ...], tuple[int, ...]]
"""The properties that comparable candidates share, and the bytes of each window and scratch."""


@dataclass(slots=True)
class Neighbours:
    """The compiled candidates of one search.

    taken: whether the compiler took a candidate.  pairs: comparable kernels that were both compiled.  fell: of them,
    those in which the larger one took less.
    """

    taken: bool = False
    pairs: int = 0
    fell: int = 0
    _known: list[tuple[Held, int, int]] = field(default_factory=list)

    def learn(self, question: CompilerQuestion, report: Compiled) -> None:
        """Keeps what a kernel takes, where the compiler says it to the byte."""
        held = None if report.vmem is None else _held(question)
        if held is None or report.vmem is None:
            return
        total = report.vmem.total
        for other, taken, _ in self._known:
            if _within(other, held) or _within(held, other):
                self.pairs += 1
                self.fell += total < taken if _within(other, held) else taken < total
        self._known.append((held, total, report.vmem.limit))

    def too_large(self, question: CompilerQuestion) -> str:
        """Why a kernel would not fit, with NOT_ASKED before it, "" = it has to be asked."""
        held = None if self.fell or not self.taken else _held(question)
        if held is None:
            return ""
        over = next((total for other, total, limit in self._known if total > limit and _within(other, held)), 0)
        if not over:
            return ""
        return f"{NOT_ASKED}a candidate that holds no more of anything takes {over:,} bytes of VMEM, more than there is"


def _held(question: CompilerQuestion) -> Held | None:
    """The windows and scratch of a kernel, None where they are not known."""
    kernel = question.kernel
    try:
        vmem = next(use for use in memory(kernel, question.target) if use.name == "VMEM")
    except Undecided:
        return None
    operands = tuple((o.name, o.dtype, o.dims, o.memory) for o in kernel.operands)
    scratch = tuple((s.dtype, s.memory) for s in (*kernel.scratch, *kernel.scoped))
    once = tuple(type(extent) is int and extent == 1 for extent in kernel.grid)
    same = (question.target, question.call, kernel.name, kernel.vmem_limit, operands, scratch, once)
    return same, tuple(size for _, size in vmem.parts)


def _within(small: Held, large: Held) -> bool:
    return small[0] == large[0] and all(a <= b for a, b in zip(small[1], large[1], strict=True))
