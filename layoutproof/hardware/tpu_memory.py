"""A kernel's need of a TPU core's vector and scalar memory.

Window bytes are the compiler's own figures (libtpu 0.0.42.1: `vmem_limit_bytes=1` makes it name them; 90 random
windows of 8, 16 and 32 bits equal `tpu_tiles.vmem_bytes`). Register spills are not known before compiling;
of 18 kernels compiled for v5e 8 spill nothing, and `SPILLS` is the worst.

An array that XLA keeps in VMEM as a whole needs no window, so that windows bound nothing by themselves. Of a call that
is a program by itself it keeps those that it converts or copies first or after (truth values, a default layout that is
not row-major, an input that an output overwrites), inputs that it fetches while it does so with another input, and on
7x every input; each with the kernel's limit fits into all of VMEM. Of a call among other operations any array that fits
may be one, but for the results of a call after which there is none. Measured on libtpu 0.0.52, 2026-11-23: 110 calls on
v2 to 7x, arrays of 4 KiB to 128 MiB, and `benchmarks/vmem_bounds.py`, which asks about calls at random; the last one on
2026-11-29: `benchmarks/vmem_last.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.size import Size
from layoutproof.core.term import Amount, reads
from layoutproof.hardware.facts import AS_THE_RULE, Fact
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.hardware.tpu_layouts import relaid
from layoutproof.hardware.tpu_tiles import GRAIN, LANES, round_up, vmem_bytes
from layoutproof.kernel.kernel import Kernel, MemoryUse, Operand, Scratch

SPILLS = (2.18, "jax's flash attention with blocks of 1024 on v5e, libtpu 0.0.52")
"""The largest measured ratio of what a compiled kernel takes to its windows and scratch, and whose it is."""


FACTS = (
    Fact("spills", str(SPILLS[0]), "libtpu 0.0.52", SPILLS[1]),
    Fact("whole arrays", AS_THE_RULE, "libtpu 0.0.52", "110 calls; benchmarks/vmem_bounds.py"),
)
"""The memory of a body besides its windows."""


def memory(kernel: Kernel, target: str) -> tuple[MemoryUse, ...]:
    """VMEM and SMEM of one kernel on a generation, by its canonical name. Undecided where a size is not known."""
    if kernel.subcores:
        return _of_sparse_cores(kernel, target)
    windows = [
        (f"{o.name}, {_buffers(kernel, o)} buffer(s)", _window(kernel, o, target))
        for o in kernel.operands
        if _in(o, "vmem")
    ]
    kept, scoped = (
        [(f"{what} {_text(s)}", scratch_bytes(s.dims, s.dtype, target)) for s in own if s.memory == "vmem"]
        for what, own in (("scratch", kernel.scratch), ("in the body", kernel.scoped))
    )
    held = [*kept, *windows, *scoped]
    vmem = list(zip([name for name, _ in held], given([size for _, size in held], target), strict=True))
    vmem = vmem[len(kept) : len(kept) + len(windows)] + vmem[: len(kept)] + vmem[len(kept) + len(windows) :]
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
    spared = tuple(_spared(kernel, target, min(limit, chip.vmem)))
    return (
        MemoryUse("VMEM", tuple(vmem), limit, chip.vmem, said, most=SPILLS, spared=spared),
        MemoryUse("SMEM", tuple(smem), chip.smem, chip.smem, f"all that {target} has", "tables + windows + scratch"),
    )


def _of_sparse_cores(kernel: Kernel, target: str) -> tuple[MemoryUse, ...]:
    """The least memory of a SparseCore that a kernel takes: of one, as all do the same.

    The vector memory of each of its subcores, and what they share, are parts of one memory: a scratch of 65,536 numbers
    is refused on v6e, and one of 64,512 is taken (libtpu 0.0.52: "exceeds the legitimate user allocatable offset upper
    bound (1048575 words) in memory space spmem").
    """
    core = CHIPS[target].sparse
    if core is None:
        return ()
    vmem: list[tuple[str, int]] = []
    smem: list[tuple[str, int]] = []
    for what, own in (("scratch", kernel.scratch), ("in the body", kernel.scoped)):
        for part in own:
            sizes = [n for n in part.dims if type(n) is int]
            if len(sizes) < len(part.dims):
                raise Unsupported(f"the size of {_text(part)} is not known")
            size = -(-prod(sizes) * ELEMENT_BITS.get(part.dtype, 32) // 8)
            if part.memory == "vmem":
                vmem.append((f"{what} {_text(part)} of {core.subcores} subcores", core.subcores * size))
            elif part.memory == "vmem_shared":
                vmem.append((f"{what} {_text(part)}, shared", size))
            elif part.memory == "smem":
                smem.append((f"{what} {_text(part)}", 4 * prod(sizes)))
    said = f"all that a SparseCore of {target} has"
    found = (MemoryUse("VMEM", tuple(vmem), core.vmem, core.vmem, said, "scratch of all subcores"),)
    own_smem = MemoryUse("SMEM", tuple(smem), core.smem, core.smem, f"all that a subcore of {target} has", "scratch")
    return (*found, own_smem) if kernel.subcores == "vector" else found


def _spared(kernel: Kernel, target: str, limit: int) -> Iterable[tuple[str, int]]:
    """Of each operand whose windows the compiler may do without, or with one buffer, why and how many bytes."""
    room = CHIPS[target].vmem - limit
    for operand in kernel.operands:
        if not _in(operand, "vmem"):
            continue
        taken = _window(kernel, operand, target)
        why = _kept_whole(kernel, operand, target)
        known = all(type(n) is int for n in operand.dims)
        if why and (not known or scratch_bytes(operand.dims, operand.dtype, target) <= room):
            yield f"{operand.name} may be in VMEM as a whole ({why})", taken
            continue
        one = replace(operand, buffers=1)
        if _buffers(kernel, operand) > 1 and _stays(kernel, operand):
            yield f"{operand.name} may need one buffer, since its block may stay", taken - _window(kernel, one, target)


def _kept_whole(kernel: Kernel, operand: Operand, target: str) -> str:
    """Why XLA may keep an array in VMEM, "" = it does not, of a call that is a program by itself."""
    if not kernel.alone and not (kernel.last and operand.role == "out"):
        return "other operations make it or take it"
    if operand.role == "in" and CHIPS[target].fetches:
        return f"{target} fetches inputs"
    own = _converted(kernel, operand, target)
    if own or operand.role != "in":
        return own
    for other in kernel.inputs:
        if why := _converted(kernel, other, target):
            return f"it may be fetched while {other.name} is copied: {why}"
    return ""


def _converted(kernel: Kernel, operand: Operand, target: str) -> str:
    """Why XLA converts or copies an operand by itself before the kernel or after it, "" = it does not."""
    chip, bits = CHIPS[target], ELEMENT_BITS.get(operand.dtype, 32)
    of_role = kernel.inputs if operand.role == "in" else kernel.outputs
    position = next(k for k, o in enumerate(of_role) if o is operand)
    if operand.dtype == "pred" or chip.stored(bits) != bits:
        return "it is converted"
    if any((a if operand.role == "in" else b) == position for a, b in kernel.aliases):
        return "an output overwrites an input"
    dims = [n for n in operand.dims if type(n) is int]
    if len(dims) < len(operand.dims):
        return "its sizes are not known"
    return (
        "its default layout is not row-major" if len(dims) > 1 and 0 not in dims and relaid(dims, bits, target) else ""
    )


def _stays(kernel: Kernel, operand: Operand) -> bool:
    """Whether a block may be the same for all programs: it is for the first and for the last ones.

    What a table says the compiler does not know, so that such a block has all its buffers.
    """
    programs: list[dict[str, int]] = [{}, {}]
    unknown = set()
    for name, extent in zip(kernel.grid_names, kernel.grid, strict=True):
        if type(extent) is not int:
            unknown.add(name)
            continue
        for at, value in zip(programs, (0, extent - 1), strict=True):
            at[name] = value
    if reads(operand.index):
        return False
    known = [term for term in operand.index if not unknown.intersection(term.names())]
    try:
        first, last = ([term.evaluate(at, INTS) for term in known] for at in programs)
    except (Undecided, KeyError, ZeroDivisionError):
        return False
    return first == last


def _in(operand: Operand, memory: str) -> bool:
    return operand.memory == memory


def moves(operand: Operand, programs: Iterable[object], on: Numbers = INTS) -> Any:
    """Whether the block of an operand changes from one program to another, so that its window has all its buffers.

    It never does with one step, or with an index that uses no grid dimension of more than one program.
    programs: the extents of the grid dimensions that its index map uses, numbers of any kind, or sizes, which are never
    known to be 1.
    """
    if operand.buffers == 1:
        return False
    found: Any = False
    for term in operand.index:
        if term.op == "read":
            return True
    for extent in programs:
        found = on.logical_or(found, True if type(extent) is Size else on.less(1, extent))
    return found


def given(sizes: Sequence[Any], target: str) -> list[Any]:
    """Bytes of VMEM that are given to the scratches and then the windows of a kernel, on any kind of number.

    Each but the last ends where the next may begin. Source: the compiler's sums for 53 kernels with one to four windows
    of 512 bytes to 90 KiB and up to two scratches, on v2 and v5e (libtpu 0.0.52).

    >>> given([512, 2048, 1024], "v2"), given([512, 2048, 1024], "v5e")
    ([4096, 4096, 1024], [512, 2048, 1024])
    """
    begin = CHIPS[target].vmem_begin
    return [*(round_up(size, begin) for size in sizes[:-1]), *sizes[-1:]]


def window_bytes(
    operand: Operand, block: Sequence[Any], programs: Iterable[Any], target: str, on: Numbers = INTS
) -> Any:
    """Bytes of VMEM that the windows of one operand take, buffers included, on any kind of number.

    block: the sizes of the dimensions that are not squeezed.  programs: as for `moves`.
    """
    one = scratch_bytes(block, operand.dtype, target, on)
    return on.select(moves(operand, programs, on), round_up((operand.buffers or 2) * one, GRAIN), round_up(one, GRAIN))


def scratch_bytes(dims: Sequence[Any], dtype: str, target: str, on: Numbers = INTS) -> Any:
    """Bytes of VMEM that an array holds, padding included. Undecided for sizes that are not known yet."""
    return vmem_bytes(_known(dims) if on is INTS else dims, vmem_bits(dtype), on, CHIPS[target].packed_rows)


def vmem_bits(dtype: str) -> int:
    """Bits of one element in VMEM, where truth values take 32; 32 for an unknown type."""
    return 32 if dtype == "pred" else ELEMENT_BITS.get(dtype, 32)


def _programs(kernel: Kernel, operand: Operand) -> list[Any]:
    used = {name for term in operand.index for name in term.names()}
    return [extent for name, extent in zip(kernel.grid_names, kernel.grid, strict=True) if name in used]


def _buffers(kernel: Kernel, operand: Operand) -> int:
    return (operand.buffers or 2) if moves(operand, _programs(kernel, operand)) else 1


def _window(kernel: Kernel, operand: Operand, target: str) -> int:
    block = [b.size for b in operand.block if b.kind != "squeezed"]
    return int(window_bytes(operand, block, _programs(kernel, operand), target))


def _known(dims: Sequence[Amount]) -> Sequence[Any]:
    for extent in dims:
        if type(extent) is not int:
            raise Unsupported(f"the bytes of a block depend on the size {extent}")
    return dims


def _scalars(dims: Sequence[object], bits: int) -> int:
    """Scalar memory holds words of 32 bits; two or more dimensions have rows of 128 words."""
    total = 1
    for d, extent in enumerate(dims):
        if type(extent) is not int:
            raise Unsupported(f"the bytes of scalar memory depend on the size {extent}")
        total *= round_up(extent, LANES) if len(dims) > 1 and d == len(dims) - 1 else extent
    return total * max(4, bits // 8)


def _text(scratch: Scratch) -> str:
    return f"{scratch.dtype}[{','.join(map(str, scratch.dims))}]"
