"""Rules of JAX's Mosaic GPU backend for Pallas kernels. Source: jax/_src/pallas/mosaic_gpu/lowering.py, jax 0.10.2
(read, not run: no GPU was at hand). Kernels of `plgpu.kernel` have a grid and no block mappings: the questions are
about the loads, stores and copies of their bodies, by programs that all may run at once, and about the shared memory
that these allocate. For a pallas_call they are about the refusals of the lowering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.term import Amount
from layoutproof.hardware.facts import AS_THE_RULE, Fact
from layoutproof.hardware.gpu_kernels import COMPILER, GpuKernels, only_target, page_of
from layoutproof.kernel.kernel import Kernel, MemoryUse, Operand, Scratch

KERNEL_TARGETS = ("mosaic_gpu",)
OTHER_NAMES = dict.fromkeys(("h100", "h200", "b200"), "mosaic_gpu")
"""GPUs; by such a name the rules are those of one of them."""
NO_TENSOR_MEMORY = ("h100", "h200")
NO_TENSOR_FROM = "none on H100 and H200, of compute capability 9.0 (PTX ISA, tcgen05: sm_100 and later)"
SHARED = 227 * 1024 - 1
"""Bytes of shared memory that a body can have on an H100, H200 or B200 (compute capabilities 9.0 and 10.x).

The code that JAX makes declares one byte itself, `__dynamic_shmem__0` of its PTX. With jax 0.11.2 an H200 ran a body of
232,440 bytes and refused to launch one of 232,448, of which JAX says nothing.
"""
SHARED_FROM = (
    "227 KiB for a block of threads on H100, H200 and B200, and one byte of them is JAX's own (CUDA C++ Programming "
    "Guide, compute capabilities 9.0 and 10.x; jax/experimental/mosaic/gpu/core.py:645-657; seen on an H200)"
)
BARRIER_BYTES = 8
"""Of each barrier (`MBARRIER_BYTES` of jax/experimental/mosaic/gpu/utils.py), behind all other shared memory."""
TENSOR_COLUMNS = 512
"""Columns of the tensor memory of a multiprocessor (compute capability 10.x), each of 128 lanes of 4 bytes."""
TENSOR_ROWS = 128
TENSOR_FROM = (
    "512 columns of 128 lanes on B200 (PTX ISA, tensor memory; TMEM_MAX_COLS in jax/experimental/mosaic/gpu/tcgen05.py)"
)
WARPGROUP, THREADS, CLUSTER = 128, 1024, 16
"""Threads of a warpgroup, and of a block at most; blocks of a cluster at most."""
THREADS_FROM = "1024 threads of a block (CUDA C++ Programming Guide, compute capabilities)"
CLUSTER_FROM = "16 blocks of a cluster, more than 8 where JAX asks for it (CUDA C++ Programming Guide, clusters)"
REGISTERS, OF_THREAD = 64 * 1024, 255
"""Registers of 4 bytes of a block, which are those of a multiprocessor; and of a thread."""
REGISTERS_FROM = "65536 registers of a block, 255 of a thread (CUDA C++ Programming Guide, compute capabilities)"
LEAST_REGISTERS, MOST_REGISTERS, REGISTERS_STEP = 24, 256, 8
"""What `setmaxnreg` takes: from, to, and in steps of."""
SETMAXNREG_FROM = "24 to 256 registers, a multiple of 8 (PTX ISA, setmaxnreg)"
SHARED_ALIGNMENT = 1024
"""Every allocation begins at a multiple of so many bytes (`SMEM_ALIGNMENT` of jax/_src/pallas/mosaic_gpu/core.py)."""
COPIES_IN = "wait_gmem_to_smem"
"""The primitive that waits for copies without a barrier."""
AMPERE = ("a100",)
CP_ASYNC_FROM = "jax 0.12.0.1, jax/_src/pallas/mosaic_gpu/primitives.py: only before Hopper"
SHARED_OF_AMPERE = 163 * 1024
AMPERE_FROM = "163 KiB for a block of threads on A100 (CUDA C++ Programming Guide, compute capability 8.0)"
HOPPER, BLACKWELL = ("h100", "h200"), ("b200",)
WGMMA_FROM = "PTX ISA, target notes of wgmma: sm_90a alone, whose code runs on no later GPU"
TENSOR_CORE_FROM = "PTX ISA, target notes: sm_100 and later"
NOT_EVERYWHERE = {
    **dict.fromkeys(("wgmma_ref", "wgmma_wait"), ("wgmma", HOPPER, WGMMA_FROM)),
    **dict.fromkeys(("wgmma_accumulator_deref_p", "wgmma_accumulator_store_p"), ("wgmma", HOPPER, WGMMA_FROM)),
    **dict.fromkeys(("tcgen05_mma", "tcgen05_commit_arrive"), ("tcgen05", BLACKWELL, TENSOR_CORE_FROM)),
    **dict.fromkeys(("async_load", "wait_load_tmem"), ("tcgen05", BLACKWELL, TENSOR_CORE_FROM)),
    **dict.fromkeys(("async_store_tmem", "commit_tmem"), ("tcgen05", BLACKWELL, TENSOR_CORE_FROM)),
    "async_copy_smem_to_tmem": ("tcgen05", BLACKWELL, TENSOR_CORE_FROM),
    "async_copy_scales_to_tmem": ("tcgen05", BLACKWELL, TENSOR_CORE_FROM),
    "async_copy_sparse_metadata_to_tmem": ("tcgen05", BLACKWELL, TENSOR_CORE_FROM),
    "try_cluster_cancel": ("clusterlaunchcontrol", BLACKWELL, TENSOR_CORE_FROM),
    "query_cluster_cancel": ("clusterlaunchcontrol", BLACKWELL, TENSOR_CORE_FROM),
    COPIES_IN: ("copies without a barrier (cp.async)", AMPERE, CP_ASYNC_FROM),
    "copy_gmem_to_smem": ("copies with .cta_group::2", BLACKWELL, TENSOR_CORE_FROM),
}
"""Of primitives that not every GPU has: their instructions of PTX, the GPUs that have them, and who says so.

A copy is one of them where the first program of two sees its end (`leader_tracked`).
"""
FACTS = (
    Fact("blocks of calls", AS_THE_RULE, COMPILER, "jax/_src/pallas/mosaic_gpu/lowering.py, read", "mosaic_gpu"),
    Fact("shared memory", str(SHARED), COMPILER, SHARED_FROM, "mosaic_gpu"),
    Fact("tensor memory", f"{TENSOR_COLUMNS} columns", COMPILER, TENSOR_FROM, "mosaic_gpu"),
    Fact("threads of a block", str(THREADS), COMPILER, THREADS_FROM, "mosaic_gpu"),
    Fact("blocks of a cluster", str(CLUSTER), COMPILER, CLUSTER_FROM, "mosaic_gpu"),
    Fact("registers", str(REGISTERS), COMPILER, REGISTERS_FROM, "mosaic_gpu"),
    Fact("setmaxnreg", f"{LEAST_REGISTERS} to {MOST_REGISTERS}", COMPILER, SETMAXNREG_FROM, "mosaic_gpu"),
    Fact("instructions of Hopper", "wgmma", COMPILER, WGMMA_FROM, "mosaic_gpu"),
    Fact("instructions of Blackwell", "tcgen05, clusterlaunchcontrol", COMPILER, TENSOR_CORE_FROM, "mosaic_gpu"),
)
"""The facts behind the rules."""


def kernel_target(name: str, compiler: str | None = None) -> MosaicGpuKernels:
    """The one target of this file, of one GPU where that is named. LayoutError for other names and versions.

    >>> kernel_target("mosaic_gpu").platform, kernel_target("H100").chip
    ('mosaic_gpu', 'h100')
    """
    chip = name.lower() if name.lower() in OTHER_NAMES else ""
    only_target(OTHER_NAMES.get(chip, name), compiler, "mosaic_gpu")
    return MosaicGpuKernels(chip=chip)


def page(name: str) -> str:
    """The page of one GPU, or of all for "mosaic_gpu", as `explain` shows it.

    >>> page("h100").splitlines()[-1]
    'H100, H200: products of warpgroups (wgmma), no tensor memory.'
    """
    hopper = f"{', '.join(HOPPER).upper()}: products of warpgroups (wgmma), no tensor memory."
    memory = f"tensor memory of {TENSOR_COLUMNS} columns and its products (tcgen05)"
    blackwell = f"{', '.join(BLACKWELL).upper()}: {memory}, no wgmma."
    chip = name.lower()
    lines = [hopper] * (chip not in BLACKWELL) + [blackwell] * (chip not in HOPPER)
    return "\n".join(
        [
            page_of("Mosaic GPU"),
            f"A block has {SHARED} bytes of shared memory, {REGISTERS} registers and at most {THREADS} threads;",
            f"a cluster has at most {CLUSTER} blocks.",
            f"A thread has at most {OF_THREAD} registers; setmaxnreg takes {LEAST_REGISTERS} to {MOST_REGISTERS}.",
            *lines,
        ]
    )


def shared_bytes(parts: Iterable[Scratch]) -> int:
    """The bytes of shared memory that some allocations take side by side, each of whole KiB; a barrier takes 8 bytes.

    >>> shared_bytes([Scratch((64, 128), "f32", "shared"), Scratch((10,), "f32", "shared")])
    33792
    >>> shared_bytes([Scratch((64, 128), "f32", "shared"), Scratch((2,), "barrier", "semaphore")])
    32784
    """
    return sum(map(_shared_bytes, parts))


def _shared_bytes(one: Scratch) -> int:
    count = prod(int(n) for n in one.dims)
    if one.memory == "semaphore":
        return count * BARRIER_BYTES
    return -(-count * ELEMENT_BITS[one.dtype] // (8 * SHARED_ALIGNMENT)) * SHARED_ALIGNMENT


def tensor_columns(parts: Iterable[Scratch]) -> int:
    """The columns of tensor memory that some allocations take side by side.

    >>> tensor_columns([Scratch((128, 256), "u32", "tmem"), Scratch((128, 64), "u32", "tmem")])
    320
    """
    return sum(int(one.dims[-1]) for one in parts)


@dataclass(frozen=True, slots=True)
class MosaicGpuKernels(GpuKernels):
    """See `kernel.kernel.KernelTarget`. chip: one of OTHER_NAMES, "" = a kernel is for the one that it needs."""

    name: str = "mosaic_gpu"
    compiler: str = COMPILER
    platform: str = "mosaic_gpu"
    chip: str = ""

    def memory(self, kernel: Kernel) -> tuple[MemoryUse, ...]:
        """The shared and the tensor memory that a body allocates."""
        return (*self._shared(kernel), *self._tensor(kernel))

    def _tensor(self, kernel: Kernel) -> tuple[MemoryUse, ...]:
        """In bytes, of which a column has 512."""
        column = 4 * TENSOR_ROWS
        own = [one for one in kernel.scoped if one.memory == "tmem"]
        parts = tuple((f"{one.dims[-1]} columns", column * int(one.dims[-1])) for one in own)
        none = self.chip in NO_TENSOR_MEMORY
        limit, source = (0, NO_TENSOR_FROM) if none else (column * TENSOR_COLUMNS, TENSOR_FROM)
        return (MemoryUse("tensor memory", parts, limit, limit, source, "allocations of the body"),) if own else ()

    def _shared(self, kernel: Kernel) -> tuple[MemoryUse, ...]:
        own = [one for one in kernel.scoped if one.memory in ("shared", "semaphore")]
        parts = tuple((f"{one.dtype}[{','.join(map(str, one.dims))}]", _shared_bytes(one)) for one in own)
        instructions = () if kernel.body is None else kernel.body.instructions
        of_ampere = any(one.name == COPIES_IN for one in instructions)
        limit, source = (SHARED_OF_AMPERE, AMPERE_FROM) if of_ampere else (SHARED, SHARED_FROM)
        use = MemoryUse("shared memory", parts, limit, limit, source, "allocations of the body")
        return (use,) if own else ()

    def refuses_block(self, operand: Operand, grid: Sequence[Amount] = (), pipeline: str = "pallas_call") -> str:
        """No Element windows of a `pallas_call` (lowering.py:684-716); a pipeline copies them (pipeline.py:114)."""
        if pipeline == "pallas_call" and operand.windowed and any(block.kind == "element" for block in operand.block):
            return "Element windows are not supported by Mosaic GPU (lowering.py:684-716)"
        return ""
