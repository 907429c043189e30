"""What JAX's Mosaic GPU backend takes of a Pallas kernel. Source: jax/_src/pallas/mosaic_gpu/lowering.py, jax 0.10.2
(read, not run: no GPU was at hand). Kernels of `plgpu.kernel` have a grid and no block mappings: what is asked of them
is what their bodies load and store, by programs that all may run at once. Of a pallas_call what the lowering refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, shorten, unknown_name
from layoutproof.core.term import Amount
from layoutproof.kernel.kernel import CompilerAnswer, Kernel, MemoryUse, Operand

KERNEL_TARGETS = ("mosaic_gpu",)
OTHER_NAMES: dict[str, str] = {}
COMPILER = "jax 0.10.2"


def kernel_target(name: str, compiler: str | None = None) -> MosaicGpuKernels:
    """The one target of this file. LayoutError for other names and versions.

    >>> kernel_target("mosaic_gpu").platform
    'mosaic_gpu'
    """
    if name.lower() != "mosaic_gpu":
        raise unknown_name("target", name, KERNEL_TARGETS)
    if compiler not in (None, COMPILER, "0.10.2"):
        raise LayoutError(f"no rules for compiler {shorten(str(compiler), 40)!r}; read from: {COMPILER}")
    return MosaicGpuKernels()


def page(name: str) -> str:
    """What is known of it, as `explain` shows it."""
    first = f"Pallas kernels on a GPU through Mosaic GPU, by the rules of {COMPILER}."
    return f"{first}\n\nPrograms run in any order, at once."


@dataclass(frozen=True, slots=True)
class MosaicGpuKernels:
    """See `kernel.kernel.KernelTarget`."""

    name: str = "mosaic_gpu"
    compiler: str = COMPILER
    platform: str = "mosaic_gpu"

    def refuses_block(self, operand: Operand, grid: Sequence[Amount] = (), pipeline: str = "pallas_call") -> str:
        """No Element windows, and nothing but whole arrays in GMEM (lowering.py:684-716)."""
        if operand.windowed and any(block.kind == "element" for block in operand.block):
            return "Element windows are not supported by Mosaic GPU (lowering.py:684-716)"
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

    def told(self, answer: CompilerAnswer) -> MosaicGpuKernels:
        """The same: no compiler is asked."""
        return self

    def refuses_kernel(self, kernel: Kernel) -> tuple[str, ...]:
        """Dynamic grids, tables and pipeline modes (lowering.py:684-716, 771-778)."""
        found = [
            f"grid dimension {k} is known at run time only; no dynamic grid on GPU"
            if type(extent) is not int
            else f"grid dimension {k} has {extent} programs"
            for k, extent in enumerate(kernel.grid)
            if type(extent) is not int or extent < 0
        ]
        found += [f"table {t.name}: no scalar prefetch on GPU" for t in kernel.tables]
        found += [f"{o.name}: no pipeline_mode on GPU" for o in kernel.operands if o.buffers is not None]
        return tuple(found)
