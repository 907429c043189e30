"""No operand has to be copied into another layout before or after the kernel.

Why it matters: kernels get row-major arrays. Where the compiler lays an array out in another order by default, each
call pays for reading and writing the whole array once more; nothing in the program says so.
Refuted by: the operand, its default layout, and the bytes. A warning: the kernel is right, and slow.
Example: f32[1000,5] on v5e, which is laid out with its 1000 rows as the minor dimension.
Fix: transpose the array in the kernel's interface, or pad its last dimension.
"""

from __future__ import annotations

from layoutproof.kernel.kernel import Kernel, KernelTarget, Operand
from layoutproof.kernel.obligation import Obligation, by_rule, for_each_operand

TARGET = True


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One per operand."""

    def of(operand: Operand) -> list[Obligation]:
        size, why = target.relayout(operand)
        shown = {"relayout_bytes": size} if size else {}
        return [Obligation(operand.name, by_rule(why), severity="warning", source=operand.source, figures=shown)]

    return for_each_operand(kernel.operands, of)
