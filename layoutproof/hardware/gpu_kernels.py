"""Shared parts of the backends of JAX's Pallas for GPUs; `mosaic_gpu` and `triton` have their own rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from layoutproof.core.errors import LayoutError, shorten, unknown_name
from layoutproof.hardware import problems
from layoutproof.kernel.kernel import CompilerAnswer, Kernel, MemoryUse, Operand

COMPILER = "jax 0.10.2"
"""The version whose lowering the rules were read from (not run: no GPU was at hand)."""


def only_target(name: str, compiler: str | None, own: str) -> None:
    """LayoutError for another name than a file's own, and for versions without rules here."""
    if name.lower() != own:
        raise unknown_name("target", name, (own,))
    if compiler not in (None, COMPILER, COMPILER.removeprefix("jax ")):
        raise LayoutError(problems.GPU_COMPILER(shorten(str(compiler), 40), COMPILER))


def page_of(backend: str) -> str:
    """The page of a backend, as `explain` shows it."""
    first = f"Pallas kernels on a GPU through {backend}, by the rules of {COMPILER}."
    return f"{first}\n\nPrograms run in any order, at once."


@dataclass(frozen=True, slots=True)
class GpuKernels:
    """Rules that no GPU backend has, and the refusals of each. See `kernel.kernel.KernelTarget`."""

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
        """None: no GPU compiler is asked."""
        return None

    def told(self, answer: CompilerAnswer) -> Self:
        """The same: no compiler is asked."""
        return self

    def refuses_kernel(self, kernel: Kernel) -> tuple[str, ...]:
        """Dynamic grids, tables, pipeline modes of calls (mosaic_gpu/lowering.py:684-716, 771-778).

        A pipeline in a body is a loop of the body, which numbers of the body may say.
        """
        if kernel.pipeline == "emit_pipeline":
            return ()
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
