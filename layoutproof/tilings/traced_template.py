"""A traced kernel as a template without holes, which is what the cost model reads."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Unsupported
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.tilings.template import Template, Window, vmem_bits


def template_of(kernel: Kernel) -> Template:
    """A traced kernel as a template without holes, for the cost model.

    Raises Undecided for windows whose cost nobody has modelled (Element, BoundedSlice) and grids of run-time sizes.
    """
    if not all(type(n) is int for n in kernel.grid):
        raise Unsupported(f"{kernel.name}: its grid is known at run time only")
    windows = tuple(_window(kernel, operand) for operand in kernel.operands)
    scratch = tuple(
        (vmem_bits(s.dtype) if s.dtype in ELEMENT_BITS else 32, _terms(s.dims), s.memory)
        for s in (*kernel.scratch, *kernel.scoped)
    )
    return Template({}, _terms(kernel.grid), windows, scratch)


def _window(kernel: Kernel, operand: Operand) -> Window:
    if operand.unmodelled:
        raise Unsupported(f"{operand.name}: {operand.unmodelled}")
    if operand.windowed and any(block.kind in ("element", "bounded") for block in operand.block):
        raise Unsupported(f"{operand.name}: what Element and BoundedSlice windows move is not priced")
    if operand.windowed and operand.dtype not in ELEMENT_BITS:
        raise Unsupported(f"{operand.name}: nobody here knows how wide {operand.dtype} is")
    place = {name: k for k, name in enumerate(kernel.grid_names)}
    index = operand.index
    uses = tuple(frozenset(place[name] for name in term.names() if name in place) for term in index)
    chosen = [k for used in uses for k in used]
    flat = ("int", "name")
    plain = all(t.op in flat or (t.op == "read" and all(a.op in flat for a in t.args)) for t in index)
    return Window(
        name=operand.name,
        role=operand.role,
        dtype=operand.dtype,
        bits=ELEMENT_BITS.get(operand.dtype, 32),
        dims=_terms(operand.dims),
        block=tuple(None if b.kind == "squeezed" else _terms((b.size,))[0] for b in operand.block),
        names=kernel.grid_names,
        index=index,
        uses=uses,
        straight=plain and len(chosen) == len(set(chosen)),
        looked_up=frozenset(d for d, term in enumerate(index) if term.op == "read"),
        buffers=operand.buffers,
        memory=operand.memory,
    )


def _terms(extents: Sequence[object]) -> tuple[Term, ...]:
    for extent in extents:
        if type(extent) is not int:
            raise Unsupported(f"the size {extent} is known at run time only")
    return tuple(Term("int", extent) for extent in extents)
