"""What JAX's Triton backend takes of a Pallas kernel. Source: jax/_src/pallas/triton/lowering.py, jax 0.10.2 (read, not
run: no GPU was at hand). The backend is deprecated since jax 0.11; Mosaic GPU kernels have no block mappings to check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.term import Amount
from layoutproof.hardware.facts import AS_THE_RULE, Fact
from layoutproof.hardware.gpu_kernels import COMPILER, GpuKernels, only_target, page_of
from layoutproof.kernel.kernel import Kernel, Operand

KERNEL_TARGETS = ("triton",)
OTHER_NAMES: dict[str, str] = {}
FACTS = (Fact("blocks of calls", AS_THE_RULE, COMPILER, "jax/_src/pallas/triton/lowering.py, read", "triton"),)
"""The facts behind the rules."""


def kernel_target(name: str, compiler: str | None = None) -> TritonKernels:
    """The one target of this file. LayoutError for other names and versions.

    >>> kernel_target("triton").platform
    'triton'
    """
    only_target(name, compiler, "triton")
    return TritonKernels()


def page(name: str) -> str:
    """Its page, as `explain` shows it."""
    return page_of("Triton")


@dataclass(frozen=True, slots=True)
class TritonKernels(GpuKernels):
    """See `kernel.kernel.KernelTarget`."""

    name: str = "triton"
    compiler: str = COMPILER
    platform: str = "triton"

    def refuses_block(self, operand: Operand, grid: Sequence[Amount] = (), pipeline: str = "pallas_call") -> str:
        """Blocks may have any size (what the body loads and stores at once may not: see refuses_kernel)."""
        for d, block in enumerate(operand.block):
            if block.low or block.high:
                return f"dimension {d}: Element padding is not supported on GPU (lowering.py:121-133)"
            if type(block.size) is int and block.size < 1:
                return f"dimension {d}: a block of {block.size} elements"
        return ""

    def refuses_kernel(self, kernel: Kernel) -> tuple[str, ...]:
        """Loads and stores of other sizes than powers of two, and what only TPUs have (lowering.py:291-321).

        Grids of any rank are collapsed into the three that CUDA has (lowering.py:225-250).
        """
        found = [
            f"a load or store of {size} elements at once; their number must be a power of two (lowering.py:291-300)"
            for size in kernel.accesses
            if size & (size - 1)
        ]
        found += [f"scratch {s.dtype}{list(s.dims)}: none on GPU" for s in kernel.scratch]
        return (*found, *GpuKernels.refuses_kernel(self, kernel))
