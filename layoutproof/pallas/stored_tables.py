"""Tables that a body stores to: index maps read other entries in each program.

The map of a program is evaluated on what the table holds then. So each program has an entry of its own, of which no
more is known than what every store keeps of what is assumed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from layoutproof.bodies.effects import Access, Body, StartedCopy, stored_names
from layoutproof.bodies.invariants import keeps_range
from layoutproof.bodies.runs import STEPS, ProgramWalk, fillings, in_order
from layoutproof.core.budget import budget, effort
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import constant, folded
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term, reads, rebuilt
from layoutproof.kernel.kernel import Kernel, Operand, Table
from layoutproof.kernel.obligation import Settled
from layoutproof.kernel.relations import tables_of
from layoutproof.pallas import problems
from layoutproof.pallas.points import READS

_NOW = "{} as programs change it"
"""The name of the table in index maps."""


def seen_by_maps(kernel: Kernel) -> Kernel:
    """The kernel whose index maps read, for a table that the body stores to, its contents in their program."""
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

    operands = tuple(operand.rewritten(change) for operand in kernel.operands)
    return replace(kernel, operands=operands, tables=(*kernel.tables, *changed.values()))


def _changing(kernel: Kernel, body: Body, table: Table) -> Table:
    """The contents of a table by program, one row of indices each: in its range, where every store keeps it."""
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


def before(kernel: Kernel, name: str) -> str:
    """The table that index maps see under a name as programs change it; "" where it is no such name."""
    return next((table.name for table in kernel.tables if _NOW.format(table.name) == name), "")


def is_changing(table: Table) -> bool:
    """Whether a table has the entries that programs stored, on which no assumption can be made."""
    return table.name.endswith(_NOW.format(""))


def in_a_run(kernel: Kernel, operand: Operand) -> Settled | None:
    """The first program, of those that are run on ints in their order, whose block is outside; None where none is.

    A block may be fetched while the program before runs: it is outside as the map is before that, and after.
    """
    names = {before(kernel, str(read.args[0].args[0])) for read in reads(operand.index)}
    read = [table for table in kernel.tables if table.name in names]
    with budget(STEPS, effort()):
        for fill in fillings():
            with suppress(Undecided, ArithmeticError):
                last: list[int | None] = []
                for run in in_order(kernel, kernel.body, fill):
                    ahead, seen = last, _blocks(kernel, operand, run, run.program)
                    after = _next(kernel, run.program)
                    last = [] if after is None else _blocks(kernel, operand, run, after)
                    for d, (value, early) in enumerate(zip(seen, ahead or seen, strict=True)):
                        entries = run.entries()
                        if _outside(operand, d, value) and _outside(operand, d, early) and entries is not None:
                            who = problems.BLOCK_INDEX(operand.name, d, run.program, value)
                            said = problems.STORED_OUTSIDE(who, operand.dims[d], operand.block[d].size)
                            for table in read:
                                said = problems.READS_STORED(said, table.name, _stored(kernel, table))
                            hint = "look at what the programs store to the table that the index map reads"
                            point = {"program": run.program, READS: entries}
                            return Settled(Verdict.REFUTED, said, hint, "run", point)
                    run.first(lambda *_: None)
    return None


def _blocks(kernel: Kernel, operand: Operand, run: ProgramWalk, program: tuple[int, ...]) -> list[int | None]:
    """The indices of the block of a program, by the current contents of the tables."""
    ids = dict(zip(kernel.grid_names, program, strict=True))

    def change(part: Term, made: Term) -> Term:
        if part.op == "name" and part.args[0] in ids:
            return Term("int", ids[part.args[0]])
        if part.op != "read":
            return folded(made)
        name = part.args[0].args[0]
        own = before(kernel, name)
        at = [constant(a) for a in made.args[1 + (len(program) if own else 0) :]]
        value = None if None in at else run.number(own or name, tuple(int(n) for n in at if n is not None))
        return made if value is None else Term("int", value)

    return [constant(folded(rebuilt(term, change))) for term in operand.index]


def _outside(operand: Operand, dimension: int, value: int | None) -> bool:
    block, extent = operand.block[dimension], operand.dims[dimension]
    if value is None or block.kind not in ("blocked", "squeezed") or type(extent) is not int:
        return False
    return value < 0 or block.start(value, INTS) >= extent


def _next(kernel: Kernel, program: tuple[int, ...]) -> tuple[int, ...] | None:
    """The program after one; None after the last."""
    found = list(program)
    for k in reversed(range(len(found))):
        found[k] += 1
        if found[k] < int(INTS.size(kernel.grid[k])):
            return tuple(found)
        found[k] = 0
    return None


def why(kernel: Kernel, names: tuple[str, ...]) -> str:
    """Why nothing is refuted by what some tables hold: one of them is stored to; "" where none is."""
    for table in kernel.tables:
        if _NOW.format(table.name) not in names:
            continue
        said = [text for text in table.assumptions() if " <= " in text]
        if any(t.name == _NOW.format(table.name) and t.low is not None for t in kernel.tables):
            return problems.STORED_TABLE(table.name, _stored(kernel, table))
        holds = problems.STORE_KEEPS(said[0]) if said else "nothing is assumed of it"
        return problems.STORED_TABLE_HOLDS(table.name, _stored(kernel, table), holds)
    return ""


def _stored(kernel: Kernel, table: Table) -> str:
    stores = [e for e in kernel.body.effects if isinstance(e, Access | StartedCopy) and table.name in stored_names([e])]
    line = next((e.spot.source for e in stores if e.spot.source), "")
    return problems.STORES_TO_IT(f" ({line.rpartition('/')[2]})" if line else "")
