"""Rules of JAX's Mosaic GPU backend for Pallas kernels. Source: jax/_src/pallas/mosaic_gpu/lowering.py, jax 0.10.2
(read, not run: no GPU was at hand). Kernels of `plgpu.kernel` have a grid and no block mappings: the questions are
about the loads and stores of their bodies, by programs that all may run at once. For a pallas_call they are about the
refusals of the lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.term import Amount
from layoutproof.hardware.facts import AS_THE_RULE, Fact
from layoutproof.hardware.gpu_kernels import COMPILER, GpuKernels, only_target, page_of
from layoutproof.kernel.kernel import Operand

KERNEL_TARGETS = ("mosaic_gpu",)
OTHER_NAMES: dict[str, str] = {}
FACTS = (Fact("blocks of calls", AS_THE_RULE, COMPILER, "jax/_src/pallas/mosaic_gpu/lowering.py, read", "mosaic_gpu"),)
"""The facts behind the rules."""


def kernel_target(name: str, compiler: str | None = None) -> MosaicGpuKernels:
    """The one target of this file. LayoutError for other names and versions.

    >>> kernel_target("mosaic_gpu").platform
    'mosaic_gpu'
    """
    only_target(name, compiler, "mosaic_gpu")
    return MosaicGpuKernels()


def page(name: str) -> str:
    """Its page, as `explain` shows it."""
    return page_of("Mosaic GPU")


@dataclass(frozen=True, slots=True)
class MosaicGpuKernels(GpuKernels):
    """See `kernel.kernel.KernelTarget`."""

    name: str = "mosaic_gpu"
    compiler: str = COMPILER
    platform: str = "mosaic_gpu"

    def refuses_block(self, operand: Operand, grid: Sequence[Amount] = (), pipeline: str = "pallas_call") -> str:
        """No Element windows, and nothing but whole arrays in GMEM (lowering.py:684-716)."""
        if operand.windowed and any(block.kind == "element" for block in operand.block):
            return "Element windows are not supported by Mosaic GPU (lowering.py:684-716)"
        return ""
