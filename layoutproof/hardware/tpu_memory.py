"""What a kernel needs of a TPU core's vector and scalar memory.

Window bytes are the compiler's own figures (libtpu 0.0.42.1: `vmem_limit_bytes=1` makes it name them; 90 random
windows of 8, 16 and 32 bits equal `tpu_tiles.vmem_bytes`). What spills from registers nobody knows before compiling;
of 18 kernels compiled for v5e 8 spill nothing, and `SPILLS` is the worst. Small operands that XLA already keeps in VMEM
cost nothing, which is not counted on.
"""

from __future__ import annotations

from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Unsupported
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.hardware.tpu_tiles import LANES, round_up, vmem_bytes
from layoutproof.kernel.kernel import Kernel, MemoryUse, Operand, Scratch

SPILLS = (2.18, "jax's flash attention with blocks of 1024 on v5e, libtpu 0.0.52")
"""The largest measured ratio of what a compiled kernel takes to its windows and scratch, and whose it is."""


def memory(kernel: Kernel, target: str) -> tuple[MemoryUse, ...]:
    """VMEM and SMEM of one kernel on a generation, by its canonical name. Undecided where a size is not known."""
    vmem = [
        (f"{o.name}, {_buffers(kernel, o)} buffer(s)", _window(kernel, o)) for o in kernel.operands if _in(o, "vmem")
    ]
    vmem += [(f"scratch {_text(s)}", _bytes(s.dims, s.dtype)) for s in kernel.scratch if s.memory == "vmem"]
    vmem += [(f"in the body {_text(s)}", _bytes(s.dims, s.dtype)) for s in kernel.scoped if s.memory == "vmem"]
    smem = [(f"table {t.name}", _scalars(t.dims, t.bits)) for t in kernel.tables]
    smem += [(o.name, _scalars([b.size for b in o.block], 32)) for o in kernel.operands if _in(o, "smem")]
    smem += [(f"scratch {_text(s)}", _scalars(s.dims, 32)) for s in kernel.scratch if s.memory == "smem"]
    smem += [(f"in the body {_text(s)}", _scalars(s.dims, 32)) for s in kernel.scoped if s.memory == "smem"]
    chip = CHIPS[target]
    asked = kernel.vmem_limit
    limit = chip.vmem_scoped if asked is None else min(asked, chip.vmem)
    said = f"what {target} gives a kernel that asks for none" if asked is None else "vmem_limit_bytes"
    if asked is not None and asked > chip.vmem:
        said = f"all that {target} has; vmem_limit_bytes asks for {asked}"
    return (
        MemoryUse("VMEM", tuple(vmem), limit, chip.vmem, said, most=SPILLS),
        MemoryUse("SMEM", tuple(smem), chip.smem, chip.smem, f"all that {target} has", "tables + windows + scratch"),
    )


def _in(operand: Operand, memory: str) -> bool:
    return operand.memory == memory


def _buffers(kernel: Kernel, operand: Operand) -> int:
    """1 where the block never changes: one step, or an index that uses no grid dimension of more than one program."""
    if operand.buffers == 1:
        return 1
    moving = {name for name, extent in zip(kernel.grid_names, kernel.grid, strict=True) if extent != 1}
    if not any(moving.intersection(term.names()) or term.op == "read" for term in operand.index):
        return 1
    return operand.buffers or 2


def _window(kernel: Kernel, operand: Operand) -> int:
    return _buffers(kernel, operand) * _bytes([b.size for b in operand.block if b.kind != "squeezed"], operand.dtype)


def _bytes(dims: Any, dtype: str) -> int:
    for extent in dims:
        if type(extent) is not int:
            raise Unsupported(f"the bytes of a block depend on the size {extent}")
    bits = 32 if dtype == "pred" else ELEMENT_BITS.get(dtype, 32)
    return int(vmem_bytes(list(dims), bits))


def _scalars(dims: Any, bits: int) -> int:
    """Scalar memory holds words of 32 bits; two or more dimensions have rows of 128 words."""
    total = 1
    for d, extent in enumerate(dims):
        if type(extent) is not int:
            raise Unsupported(f"the bytes of scalar memory depend on the size {extent}")
        total *= round_up(extent, LANES) if len(dims) > 1 and d == len(dims) - 1 else extent
    return total * max(4, bits // 8)


def _text(scratch: Scratch) -> str:
    return f"{scratch.dtype}[{','.join(map(str, scratch.dims))}]"
