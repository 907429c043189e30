"""No operand has to be copied into another layout before or after the kernel.

Why it matters: kernels get row-major arrays. Where the compiler lays an array out in another order by default, each
call pays for reading and writing the whole array once more; nothing in the program says so.
Refuted by: the operand, its default layout, and the bytes. A warning: the kernel is right, and slow.
Example: f32[1000,5] on v5e, which is laid out with its 1000 rows as the minor dimension.
Fix: transpose the array in the kernel's interface, or pad its last dimension.
Incident: a `swapaxes` at the boundary of a kernel copied the weights at each call, 2.08 times slower:
https://github.com/openxla/tokamax/issues/1220
Refuted:
    layoutproof ask relayout "f32[1000,5] blockspec (8, 5) (i) -> (i, 0) grid (125,)" --target v5e
Proved:
    layoutproof ask relayout "f32[1000,128] blockspec (8, 128) (i) -> (i, 0) grid (125,)" --target v5e
Limits: By the layout that the compiler picks by default; in a program it may pick another (`layoutproof compile`).
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
