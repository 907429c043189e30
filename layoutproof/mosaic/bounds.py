"""Lower bounds on a kernel's cycles by the hardware, as a guard against estimates that leave work out.

Nothing that the compiler writes names a clock: it is the quotient of the published peak and of the flops of a cycle
(v5e 1.50 GHz, v5p 1.75, v6e 1.75, 7x 2.20); `Chip.multiplies` says where those come from. All bounds are of one core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import INTS
from layoutproof.core.term import reads
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.kernel.kernel import Kernel, Operand

MOST_PROGRAMS = 1 << 14
"""Programs of a grid whose blocks are gone through one by one."""


def flops_a_cycle(target: str) -> int:
    """The flops of the matrix units of one core in a cycle, in bf16; 0 where it is unknown."""
    return 2 * CHIPS[target].multiplies if target in CHIPS else 0


def share(kernel: Kernel, target: str) -> Fraction:
    """The part of a grid's programs that the busiest core runs, which is what the compiler's cycles are of.

    Where cores are one device (v5p) the compiler splits one parallel dimension among them, the one that splits most
    evenly: of grids of 8 x 8, 1 x 8, 3 x 1 and 3 x 5, all dimensions parallel, the cycles are those of 1/2, 1/2, 2/3
    and 3/5 of the programs; a dimension that vmap added is split like a parallel one (libtpu 0.0.52, 2026-11-23).
    """
    cores = CHIPS[target].cores
    known = [n for k in kernel.parallel() if type(n := kernel.grid[k]) is int and n > 0]
    if len(known) < len(kernel.parallel()):
        return Fraction(1, cores)
    return min((Fraction(-(-n // cores), n) for n in known), default=Fraction(1))


def product_cycles(kernel: Kernel, target: str, flops: int) -> int:
    """Cycles that the busiest core takes at the least for its share of a kernel's products, 0 where it is unknown.

    flops: of all programs, in those of bf16.
    """
    per = flops_a_cycle(target)
    return int(flops * share(kernel, target) / per) if per else 0


def traffic_cycles(kernel: Kernel, target: str) -> int:
    """Cycles in which a core can move what its windows take in and give out, 0 where it is unknown.

    Of several cores each moves its share of the blocks with its share of the bandwidth, and perhaps some that the other
    moves too.
    """
    per = flops_a_cycle(target)
    moved = traffic(kernel)
    if not per or not moved:
        return 0
    chip = CHIPS[target]
    return int(moved * share(kernel, target) * chip.bf16 / (per * chip.bandwidth))


def pipeline_cycles(kernel: Kernel, target: str, flops: int) -> int:
    """Cycles that the steps of a grid take at the least, one after the other, 0 where it is unknown.

    Nothing is said of chips with several cores for a kernel, which share the bandwidth.

    Every program does its part of the products, and waits for its blocks before. Those of the first step are fetched
    while nothing is computed, those of any other while the step before computes, and the last blocks are written when
    all is computed; all copies share the bandwidth. Of an operand with more than two buffers, whose blocks may come
    earlier, only the first counts.

    flops: of all programs, in those of bf16; each does the same at the least.

    Source: docs/pallas/pipelining.md of JAX, "double buffering". The simulation does not see that copies share the
    bandwidth: a step that fetches one block of 4 MiB takes 6,475 cycles on v6e and 10,202 on v5e, one that fetches two
    6,489 and 10,211, where HBM needs 9,010 and 15,435 (libtpu 0.0.52, 2026-11-26).
    """
    per = flops_a_cycle(target)
    if not per or CHIPS[target].cores > 1:
        return 0
    moved = _steps(kernel)
    if not moved:
        return 0
    chip = CHIPS[target]
    cycles = Fraction(chip.bf16, per * chip.bandwidth)
    products = Fraction(flops, per * len(moved))
    (first, _), *others = moved
    between = sum(max(products, fetched * cycles) for fetched, _ in others)
    return int(first * cycles + between + products + moved[-1][1] * cycles)


def traffic(kernel: Kernel) -> int:
    """Bytes that windows move between HBM and VMEM, those of whole steps without a change left out; 0 = not known."""
    return sum(map(sum, _steps(kernel, ahead=True)))


def _steps(kernel: Kernel, ahead: bool = False) -> list[tuple[int, int]]:
    """Bytes that windows take in before each step and give out after it; empty = not known.

    ahead: also those of operands with more than two buffers, but for the first.
    """
    if any(type(n) is not int for n in kernel.grid) or prod(map(int, kernel.grid)) > MOST_PROGRAMS:
        return []
    steps = [dict(zip(kernel.grid_names, at, strict=True)) for at in product(*(range(int(n)) for n in kernel.grid))]
    moved = [[0, 0] for _ in steps]
    try:
        for operand in kernel.operands:
            many = _copied(operand, steps) if operand.memory == "vmem" and _known(operand) else []
            early = not ahead and (operand.lookahead or (operand.buffers or 2) > 2)
            held = 0
            for k, size in enumerate(many):
                if operand.role == "in":
                    moved[k][0] += 0 if early and k else size
                elif size:
                    # the block before is written back once its last step is done
                    moved[k - 1][1] += held
                    held = size
            moved[-1][1] += held
    except (Undecided, TypeError, ValueError, ZeroDivisionError):
        return []
    return [(fetched, written) for fetched, written in moved]


def _known(operand: Operand) -> bool:
    return not operand.unmodelled and not any(reads(operand.terms())) and operand.dtype in ELEMENT_BITS


def _copied(operand: Operand, steps: Sequence[Mapping[str, int]]) -> list[int]:
    """Bytes of the block of each step that is not the block of the step before, else 0."""
    dims = [int(n) for n in operand.dims]
    sizes = [min(int(b.size), n) for b, n in zip(operand.block, dims, strict=True)]
    found, before = [], None
    for values in steps:
        block = tuple(term.evaluate(values, INTS) for term in operand.index)
        starts = [b.start(i) for b, i in zip(operand.block, block, strict=True)]
        inside = prod(max(0, min(n - s, size)) for n, s, size in zip(dims, starts, sizes, strict=True))
        found.append(0 if block == before else inside * ELEMENT_BITS[operand.dtype] // 8)
        before = block
    return found
