"""No measured rule of the target refuses the kernel's grid, semantics, buffers, element types or mix of block kinds.

Why it matters: the compiler refuses late, and `interpret=True` takes what it refuses.
Asked by name, it includes all that rules can prove of a target: `block_shape`, `element_alignment` and
`memory_budget` too. It does not include the kernel's body and register spills (`vmem_total`), which no rule knows.
So "proved" here means that no rule refuses the kernel; only the compiler can say that it takes it.
Refuted by: the rule, with the part of the kernel that breaks it and who enforces it.
Example: Buffered(3) in pallas_call; Element next to ordinary blocks; core_parallel with more programs than cores; a
table of f16, or without elements.
Fix: that of the rule which the reason names.
Incident: tiling errors surface late, in the compiler: https://github.com/jax-ml/jax/issues/39058
Refuted:
    layoutproof ask legal_for_target "f32[64,256] blockspec (4, 128) (i, j) -> (i, j) grid (16, 2)" --target v5e
Proved:
    layoutproof ask legal_for_target "f32[64,256] blockspec (8, 128) (i, j) -> (i, j) grid (8, 2)" --target v5e
Limits: No rule refuses it; only the compiler can say that it takes it (`compiled`).
"""

from __future__ import annotations

from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.kernel.obligation import Obligation, by_rule

NO_RULE = Template(
    "pallas.legal_for_target_no_rule", "no rule measured on {compiler} refuses it; body and spills not looked at"
)


TARGET = True

WITH = ("block_shape", "element_alignment", "memory_budget")
"""Asked along with it where it is asked by its name; where everything is asked, each speaks for itself."""


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One, or one per refusal."""
    refused = target.refuses_kernel(kernel)
    figures = {"proved": NO_RULE(target.compiler)}
    held = Obligation(kernel.name, by_rule(""), figures=figures)
    return tuple(Obligation(kernel.name, by_rule(why)) for why in refused) or (held,)
