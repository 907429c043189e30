"""What JAX's Triton backend takes of a Pallas kernel. Source: jax/_src/pallas/triton/lowering.py, jax 0.10.2 (read, not
run: no GPU was at hand). The backend is deprecated since jax 0.11; Mosaic GPU kernels have no block mappings to check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, shorten, unknown_name
from layoutproof.core.term import Amount
from layoutproof.kernel.kernel import CompilerAnswer, Kernel, MemoryUse, Operand

KERNEL_TARGETS = ("triton",)
OTHER_NAMES: dict[str, str] = {}
COMPILER = "jax 0.10.2"


def kernel_target(name: str, compiler: str | None = None) -> TritonKernels:
    """The one target of this file. LayoutError for other names and versions.

    >>> kernel_target("triton").platform
    'triton'
    """
    if name.lower() != "triton":
        raise unknown_name("target", name, KERNEL_TARGETS)
    if compiler not in (None, COMPILER, "0.10.2"):
        raise LayoutError(f"no rules for compiler {shorten(str(compiler), 40)!r}; read from: {COMPILER}")
    return TritonKernels()


def page(name: str) -> str:
    """What is known of it, as `explain` shows it."""
    return f"Pallas kernels on a GPU through Triton, by the rules of {COMPILER}.\n\nPrograms run in any order, at once."


@dataclass(frozen=True, slots=True)
class TritonKernels:
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

    def refuses_index(self, operand: Operand) -> str:
        """Nothing: starts need not be aligned."""
        return ""

    def misaligned(self, operand: Operand) -> tuple[tuple[int, int], ...]:
        """Nothing: starts need not be aligned."""
        return ()

    def relayout(self, operand: Operand) -> tuple[int, str]:
        """Nothing: arrays on GPUs are row-major."""
        return 0, ""

    def memory(self, kernel: Kernel) -> tuple[MemoryUse, ...]:
        """Nothing is known: shared memory and registers are the compiler's choice."""
        return ()

    def answered(self, kernel: Kernel) -> CompilerAnswer | None:
        """Nobody asks a compiler for GPUs here."""
        return None

    def told(self, answer: CompilerAnswer) -> TritonKernels:
        """The same: no compiler is asked."""
        return self

    def refuses_kernel(self, kernel: Kernel) -> tuple[str, ...]:
        """Loads and stores of other sizes than powers of two, and what only TPUs have (lowering.py:291-321).

        Grids of any rank are collapsed into the three that CUDA has (lowering.py:225-250).
        """
        found = [
            f"a load or store of {size} elements at once; their number must be a power of two (lowering.py:291-300)"
            for size in kernel.accesses
            if size & (size - 1)
        ]
        found += [
            f"grid dimension {k} is known at run time only; no dynamic grid on GPU"
            if type(extent) is not int
            else f"grid dimension {k} has {extent} programs"
            for k, extent in enumerate(kernel.grid)
            if type(extent) is not int or extent < 0
        ]
        found += [f"table {t.name}: no scalar prefetch on GPU" for t in kernel.tables]
        found += [f"scratch {s.dtype}{list(s.dims)}: none on GPU" for s in kernel.scratch]
        found += [f"{o.name}: no pipeline_mode on GPU" for o in kernel.operands if o.buffers is not None]
        return tuple(found)
