"""What JAX's Triton backend takes of a Pallas kernel. Source: jax/_src/pallas/triton/lowering.py, jax 0.10.2 (read, not
run: no GPU was at hand). The backend is deprecated since jax 0.11; Mosaic GPU kernels have no block mappings to check.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.kernel import Kernel, Memory, Operand

KERNEL_TARGETS = ("triton",)
COMPILER = "jax 0.10.2"


def kernel_target(name: str, compiler: str | None = None) -> TritonKernels:
    """The one target of this file. LayoutError for other names and versions.

    >>> kernel_target("triton").platform
    'triton'
    """
    if name.lower() != "triton":
        raise LayoutError(f"unknown target {shorten(name, 40)!r}; known: triton")
    if compiler not in (None, COMPILER, "0.10.2"):
        raise LayoutError(f"no rules for compiler {shorten(str(compiler), 40)!r}; read from: {COMPILER}")
    return TritonKernels()


@dataclass(frozen=True, slots=True)
class TritonKernels:
    """See `core.kernel.KernelTarget`."""

    name: str = "triton"
    compiler: str = COMPILER
    platform: str = "triton"

    def refuses_block(self, operand: Operand) -> str:
        """Blocks hold a power of two elements, because every load and store does (lowering.py:291-300)."""
        sizes = [b.size for b in operand.block]
        for d, block in enumerate(operand.block):
            if type(block.size) is not int:
                raise Undecided(f"whether {block.size} is a power of two depends on it")
            if block.low or block.high:
                return f"dimension {d}: Element padding is not supported on GPU (lowering.py:121-133)"
            if block.size < 1:
                return f"dimension {d}: a block of {block.size} elements"
        count = prod(int(size) for size in sizes)
        if operand.windowed and count & (count - 1):
            shape = ", ".join(map(str, sizes))
            return f"a block ({shape}) of {count} elements: loads and stores take powers of two (lowering.py:291-300)"
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

    def memory(self, kernel: Kernel) -> tuple[Memory, ...]:
        """Nothing is known: shared memory and registers are the compiler's choice."""
        return ()

    def refuses_kernel(self, kernel: Kernel) -> tuple[str, ...]:
        """Grid size and everything that only TPUs have (lowering.py:237, 310-321; pallas_call_registration.py:40)."""
        found = []
        if len(kernel.grid) > 3:
            found.append(f"a grid of {len(kernel.grid)} dimensions; 3 at most")
        for k, extent in enumerate(kernel.grid):
            if type(extent) is not int:
                found.append(f"grid dimension {k} is known at run time only; no dynamic grid on GPU")
            elif extent < 0 or (k > 0 and extent > 65535):
                found.append(f"grid dimension {k} has {extent} programs; y and z take 65535 at most")
        found += [f"table {t.name}: no scalar prefetch on GPU" for t in kernel.tables]
        found += [f"scratch {s.dtype}{list(s.dims)}: none on GPU" for s in kernel.scratch]
        found += [f"{o.name}: no pipeline_mode on GPU" for o in kernel.operands if o.buffers is not None]
        return tuple(found)
