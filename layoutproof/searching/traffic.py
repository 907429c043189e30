"""How the grid chooses the blocks of an operand: the cost model's facts about a kernel before numbers are put in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Unsupported
from layoutproof.core.term import Amount, Term
from layoutproof.hardware.tpu_tiles import grain
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.searching import problems


@dataclass(frozen=True, slots=True)
class Traffic:
    """One operand that the pipeline moves, or that the body moves itself.

    bits: of an element.  units: the multiple to which each dimension of a copy is rounded up.
    kept: dimensions that are not squeezed.  uses: for each dimension, the grid dimensions that choose its block.
    chosen: those of all dimensions.
    straight: every coordinate is a constant, one grid index, or one entry of a table, and no grid index chooses two;
    then fetches and bytes have a closed form.  looked_up: dimensions whose coordinate is an entry of a table.
    covered: dimensions of which all is moved, by the way the grid's extents are written.
    """

    operand: Operand
    bits: int
    units: tuple[int, ...]
    kept: tuple[int, ...]
    uses: tuple[frozenset[int], ...]
    chosen: tuple[int, ...]
    straight: bool
    looked_up: frozenset[int]
    covered: frozenset[int]

    @property
    def moved(self) -> bool:
        """Whether the pipeline moves its blocks, so that they are counted."""
        return self.operand.memory in ("vmem", "smem")


def traffic(kernel: Kernel) -> tuple[Traffic, ...]:
    """Of each operand, in order. Raises Undecided for windows that the model does not price."""
    return tuple(_traffic(kernel, operand) for operand in kernel.operands)


def _traffic(kernel: Kernel, operand: Operand) -> Traffic:
    if operand.unmodelled:
        raise Unsupported(f"{operand.name}: {operand.unmodelled}")
    if operand.windowed and any(block.kind in ("element", "bounded") for block in operand.block):
        raise Unsupported(problems.WINDOWS_NOT_PRICED(operand.name))
    if operand.windowed and operand.dtype not in ELEMENT_BITS:
        raise Unsupported(problems.WIDTH_UNKNOWN(operand.name, operand.dtype))
    place = {name: k for k, name in enumerate(kernel.grid_names)}
    uses = tuple(frozenset(place[name] for name in term.names() if name in place) for term in operand.index)
    chosen = [k for used in uses for k in used]
    flat = ("int", "name")
    plain = all(t.op in flat or (t.op == "read" and all(a.op in flat for a in t.args)) for t in operand.index)
    bits = ELEMENT_BITS.get(operand.dtype, 32)
    return Traffic(
        operand,
        bits,
        grain(len(operand.dims), bits),
        tuple(d for d, block in enumerate(operand.block) if block.kind != "squeezed"),
        uses,
        tuple(sorted(set(chosen))),
        plain and len(chosen) == len(set(chosen)),
        frozenset(d for d, term in enumerate(operand.index) if term.op == "read"),
        _covered(kernel.grid, operand, uses),
    )


def _covered(grid: Sequence[Amount], operand: Operand, uses: Sequence[frozenset[int]]) -> frozenset[int]:
    """Where one grid extent is the dimension over its block, rounded up."""
    found = set()
    for d, (dim, block, used) in enumerate(zip(operand.dims, operand.block, uses, strict=True)):
        if len(used) != 1:
            continue
        (k,) = used
        blocks = str(dim) if block.kind == "squeezed" else str(_rounded_up(dim, block.size))
        if str(grid[k]) == blocks:
            found.add(d)
    return frozenset(found)


def _rounded_up(dim: Amount, size: Amount) -> Term:
    """The quotient as `cdiv` is read; built by hand, because nothing is asked of the numbers in it."""
    one, whole, by = (Term("int", n) if type(n) is int else n for n in (1, dim, size))
    return Term("//", Term("-", Term("+", whole, by), one), by)
