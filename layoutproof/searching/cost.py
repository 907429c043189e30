"""The cost of a tiling, on any kind of number: ints give the figure, intervals bound it over many candidates at once.

The model, printed with every answer
    HBM bytes   a block is fetched (or written back) only when its index changes from one program to the next in grid
                order; blocks at the edge move what lies inside the array, rounded up to 128 columns and to rows that
                share 32 bits. Entries of a table count as if no two were equal.
    time        steps x overhead + the larger of bytes / bandwidth and flops / peak + carried / stores, + exposed bytes
                / bandwidth, in picoseconds. A roofline: it is not measured, and of the kernel's body it knows only the
                flops that the problem states.
    carried     scratch that is filled where a sum begins: once for each sum over grid dimensions that choose no block
                of an output, where such a sum takes more than one step. Where it takes one the compiler leaves the
                scratch out of the way of the products. By its simulation a matmul of 2048^3 on v5e takes 141,863
                cycles in one step of K and 149,743 and more in two or four, whatever the blocks; of 1,737 published
                sizes the median rank is the same or better with it for every kernel.
    exposed     one block of each operand that moves: no step hides the first fetch, nor the last write. With it 83 %
                of 132 published sizes of quantised matmuls cost at most 5 % more than the least, without it 51 %, and
                60 % where it is taken off the bytes that other steps hide. Scratch moves nowhere and counts nothing.
    VMEM        every window rounded up to tiles, times its buffers, and the scratch.
Sources: skipped copies and lexicographic order, JAX's pages on TPU pipelining (docs/pallas/tpu/details.rst); window
bytes measured on libtpu 0.0.42.1 (`hardware/tpu_kernels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutproof.core.numbers import Numbers, Numeral
from layoutproof.core.size import product
from layoutproof.core.term import ONE, Amount, Term, value_of
from layoutproof.hardware.tpu_memory import given, scratch_bytes, window_bytes
from layoutproof.kernel.kernel import Kernel
from layoutproof.searching.traffic import Traffic, traffic
from layoutproof.searching.walk import walked
from layoutproof.solvers.interval import ends

FIGURES = ("time", "bytes", "flops", "carried", "steps", "vmem", "padding")
"""Names that a user's own cost or constraint may use besides sizes and tile variables."""

Figures = Mapping[str, int]
"""FIGURES of one candidate at one shape, as numbers."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The figures of a chip for the roofline: bytes per second, flops per second, and picoseconds per grid step.

    stores: bytes a second that a core stores into VMEM, 0 = unknown.
    """

    name: str
    bandwidth: int
    peak: int
    overhead: int
    stores: int = 0


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost of one kernel, whose amounts may be terms over parameters.

    flops: of the whole kernel, None = not counted.  summed: grid dimensions that scratch carries sums over.
    The constructor raises Undecided for windows that the model does not price.
    """

    kernel: Kernel
    flops: Term | None
    machine: Machine
    traffic: tuple[Traffic, ...] = field(init=False)
    grid: tuple[Amount, ...] = field(init=False)
    summed: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "summed", _summed(self.kernel))
        object.__setattr__(self, "grid", tuple(map(tightly, self.kernel.grid)))
        object.__setattr__(self, "traffic", traffic(self.kernel))

    def figures(self, names: Mapping[str, Any], on: Numbers, most: int | None = None, moves: bool = True) -> Any:
        """FIGURES by name. names: the parameters, on the kind of number `on`.

        most: where more bytes of VMEM than this are needed for sure, only `vmem` and `steps` are given.
        moves: False = always only these: traffic takes far longer to bound than memory.
        """
        kernel = self.kernel
        grid = [value_of(extent, names, on) for extent in self.grid]
        steps = product(grid)
        windows: list[Any] = []
        blocks: list[list[Any]] = []
        for one in self.traffic:
            operand = one.operand
            blocks.append([value_of(b.size, names, on) for b in operand.block] if one.moved else [])
            if operand.memory == "vmem":
                block = blocks[-1]
                seen = [block[d] for d in one.kept]
                windows.append(window_bytes(operand, seen, [grid[k] for k in one.chosen], self.machine.name, on))
        kept, scoped = (
            [
                scratch_bytes([value_of(n, names, on) for n in s.dims], s.dtype, self.machine.name, on)
                for s in own
                if s.memory == "vmem"
            ]
            for own in (kernel.scratch, kernel.scoped)
        )
        vmem: Any = sum(given([*kept, *windows, *scoped], self.machine.name))
        if not moves or (most is not None and ends(vmem)[0] > most):
            return {"steps": steps, "vmem": vmem}
        moved: Any = 0
        padding: Any = 0
        exposed: Any = 0
        for one, block in zip(self.traffic, blocks, strict=True):
            if not one.moved:
                continue
            array = [value_of(n, names, on) for n in one.operand.dims]
            exposed = exposed + product([on.minimum(*pair) for pair in zip(block, array, strict=True)]) * one.bits
            if one.straight:
                rounded, over = _moved(one, grid, array, block, on)
            else:
                whole, rounded = walked(one, dict(zip(kernel.grid_names, grid, strict=True)), array, block, names, on)
                over = rounded - whole
            moved, padding = moved + rounded, padding + over
        work: Any = 0 if self.flops is None else self.flops.evaluate({**names, "steps": steps}, on)
        summed = product([extent for k, extent in enumerate(grid) if k in self.summed])
        sums = product([extent for k, extent in enumerate(grid) if k not in self.summed])
        carried: Any = on.select(on.less(1, summed), sums * sum(kept), 0) if self.summed else 0
        bandwidth, peak, stores = self.machine.bandwidth, self.machine.peak, self.machine.stores
        busy = _ceil(work * 10**12, peak) + (_ceil(carried * 10**12, stores) if stores else 0)
        time = steps * self.machine.overhead + on.maximum(_ceil(moved * 10**12, bandwidth), busy)
        time = time + _ceil(exposed * 10**12, 8 * bandwidth)
        return {
            "time": time, "bytes": moved, "flops": work, "carried": carried, "steps": steps, "vmem": vmem,
            "padding": padding,
        }  # fmt: skip


def limit_of(row: Figures, machine: Machine) -> str:
    """The bottleneck of one candidate: its steps, its traffic with HBM, or its operations."""
    moved, work = row["bytes"] / machine.bandwidth, row["flops"] / machine.peak
    work += row["carried"] / machine.stores if machine.stores else 0
    overhead = row["steps"] * machine.overhead / 1e12
    return "steps" if overhead > max(moved, work) else "HBM" if moved >= work else "compute"


def _summed(kernel: Kernel) -> frozenset[int]:
    """The grid dimensions over which scratch carries sums from one program to the next: those that choose no block of
    an output. Empty where there is no such scratch, or where manual DMA may move data into it.
    """
    by_hand = any(operand.memory not in ("vmem", "smem") for operand in kernel.operands)
    if by_hand or not any(scratch.memory == "vmem" for scratch in kernel.scratch):
        return frozenset()
    written = {name for operand in kernel.outputs for term in operand.index for name in term.names()}
    return frozenset(k for k, name in enumerate(kernel.grid_names) if name not in written)


def tightly(amount: Amount) -> Amount:
    """The same amount with `(a + b - 1) // b` written as `(a - 1) // b + 1`, whose bounds do not count b twice.

    >>> from layoutproof.core.expression import parse_expression
    >>> str(tightly(parse_expression("cdiv(M, bm)")))
    '(M - 1) // bm + 1'
    """
    if not isinstance(amount, Term) or amount.op != "//":
        return amount
    above, by = amount.args
    if above.op == "-" and above.args[1] is ONE and above.args[0].op == "+":
        whole, more = above.args[0].args
        if more == by:
            return Term("+", Term("//", Term("-", whole, ONE), by), ONE)
    return amount


def _moved(
    one: Traffic, grid: Sequence[Numeral], array: Sequence[Numeral], block: Sequence[Numeral], on: Numbers
) -> tuple[Numeral, Numeral]:
    """(bytes, those of them that are the tiles' padding) that one operand moves between HBM and VMEM."""
    repeats: Any = 1
    started: Any = False
    # innermost first: dimensions inside of the last one that chooses a block leave the block where it is
    for k in reversed(range(len(grid))):
        if k in one.chosen:
            started = on.logical_or(started, on.less(1, grid[k]))
        else:
            repeats = on.select(started, repeats * grid[k], repeats)
    whole: Any = 1
    rounded: Any = 1
    for d, (extent, size, used) in enumerate(zip(array, block, one.uses, strict=True)):
        if d in one.covered and d not in one.looked_up:
            here = extent
        elif d in one.looked_up:
            here = size
            for k in used:
                here = here * grid[k]
        else:
            count: Any = 1
            for k in used:
                count = count * grid[k]
            here = on.minimum(extent, size * count)
        whole = whole * here
        rounded = rounded * _in_tiles(here, size, one.units[d], on)
    # one difference, then times the rest: as two products it would have no bounds worth the name; whole tiles are whole
    # bytes, so what elements of less than a byte leave over is padding
    return repeats * rounded * one.bits // 8, _ceil(repeats * (rounded - whole) * one.bits, 8)


def _in_tiles(length: Any, block: Any, unit: int, on: Numbers) -> Any:
    """The total size of consecutive blocks over `length` elements, each rounded up to `unit`."""
    if unit == 1:
        return length
    full = length // block
    last = length - full * block
    # at least all of them in one block: says nothing new of ints, and much of intervals
    return on.maximum(_ceil(length, unit) * unit, full * (_ceil(block, unit) * unit) + _ceil(last, unit) * unit)


def _ceil(value: Numeral, by: Numeral) -> Numeral:
    return (value + (by - 1)) // by
