"""Tables that a body stores to: what index maps read of them differs from program to program.

The map of a program is evaluated on what the table holds then. So each program has an entry of its own, of which no
more is known than what every store keeps of what is assumed.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.bodies.effects import Access, Body, Copy, stored_names
from layoutproof.bodies.invariants import keeps_range
from layoutproof.core.errors import Undecided
from layoutproof.core.term import Term, reads, rebuilt
from layoutproof.kernel.kernel import Kernel, Operand, Table
from layoutproof.kernel.relations import tables_of

_NOW = "{} as programs change it"
"""What the table is called in index maps."""


def seen_by_maps(kernel: Kernel) -> Kernel:
    """The kernel whose index maps read, of a table that the body stores to, what it holds in their program."""
    of_maps = {read.args[0].args[0] for operand in kernel.operands for read in reads(operand.terms())}
    body: Body | None = kernel.body if of_maps and kernel.body_reader is not None else None
    if body is None:
        return kernel
    changed = {t.name: _changing(kernel, body, t) for t in kernel.tables if t.name in stored_names(body.effects)}
    changed = {name: table for name, table in changed.items() if name in of_maps}
    if not changed:
        return kernel
    ids = [Term("name", name) for name in kernel.grid_names]

    def change(part: Term, made: Term) -> Term:
        if part.op != "read" or part.args[0].args[0] not in changed:
            return made
        return Term("read", Term("name", changed[part.args[0].args[0]].name), *ids, *made.args[1:])

    def told(operand: Operand) -> Operand:
        index = tuple(rebuilt(term, change) for term in operand.index)
        sizes = tuple(None if size is None else rebuilt(size, change) for size in operand.sizes)
        return replace(operand, index=index, sizes=sizes)

    operands = tuple(map(told, kernel.operands))
    return replace(kernel, operands=operands, tables=(*kernel.tables, *changed.values()))


def _changing(kernel: Kernel, body: Body, table: Table) -> Table:
    """What programs find in a table, one row of indices each: in its range, where every store puts a number of it."""
    other = any(table.name in tables_of(relation) for relation in kernel.relations)
    low, high = table.low, table.high
    kept = False
    if type(low) is int and type(high) is int and not other:
        try:
            kept = keeps_range(kernel, body, table.name, low, high)
        except Undecided:
            kept = False
    dims = (*kernel.grid, *table.dims)
    bounds = (low, high) if kept else (None, None)
    return Table(_NOW.format(table.name), dims, table.bits, *bounds, signed=table.signed, dtype=table.dtype)


def why(kernel: Kernel, names: tuple[str, ...]) -> str:
    """Why nothing is refuted by what some tables hold: one of them is stored to; "" where none is."""
    for table in kernel.tables:
        if _NOW.format(table.name) not in names:
            continue
        stores = [e for e in kernel.body.effects if isinstance(e, Access | Copy) and table.name in stored_names([e])]
        line = next((e.spot.source for e in stores if e.spot.source), "")
        at = f" ({line.rpartition('/')[2]})" if line else ""
        said = [text for text in table.assumptions() if " <= " in text]
        if any(t.name == _NOW.format(table.name) and t.low is not None for t in kernel.tables):
            return f"depends on what {table.name} holds in each program: the body stores to it{at}"
        holds = f"it is not shown that every store keeps '{said[0]}'" if said else "nothing is assumed of it"
        return f"depends on what {table.name} holds in each program: the body stores to it{at}, and {holds}"
    return ""
