"""An accumulator only adds to values of its own block: scratch is written anew where the visit of a block begins.

Why it matters: scratch keeps what it holds from program to program. An accumulator that is zeroed once, and not for
each block of the output, sums all blocks before it, too. Nothing in it is unwritten, so `initialised` holds, no
interpreter shows NaN, and the first block is right.
Refuted by: the first `program` of a visit that adds to an `element` of scratch which only programs of other blocks have
written. A visit is the programs that have one block of each output, one after the other: along the last dimensions of
the grid, on which no block depends, and where a table says which block, until it says another one.
Asked only of kernels in which several programs share a block, of loads of scratch that go back into it with something
added (a sum, a maximum), and said only where it is found; of a grid whose size only the running program knows, with
sizes for which it is so. A value that is scaled before it goes back is a state over time, which is carried from block
to block on purpose. It is a warning: a plain sum that is carried on purpose is accepted at the call's line.
Example: grid (i, k), `acc += dot(x, y)`, acc zeroed under `(program_id(0) == 0) & (program_id(1) == 0)`: program (1, 0)
adds to the sum of block 0.
Source: scratch persists over the whole grid: JAX's page on TPU pipelining; the tiled matmul there zeroes it for each k.
Fix: zero it where each visit begins, under `pl.when(pl.program_id(k_axis) == 0)`.
Incident: none is known to us.
Limits: The primitives that are modelled: docs/primitives.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.bodies.effects import Access, Body, StartedCopy, places
from layoutproof.bodies.memory_state import States
from layoutproof.bodies.order import first_of_core, names, other_block
from layoutproof.bodies.values import Value
from layoutproof.bodies.walk import BodyWalk
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import fold, negation
from layoutproof.core.message import Template, restated
from layoutproof.core.result import Verdict
from layoutproof.core.term import ONE, ZERO, Term, every, reads
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled
from layoutproof.pallas.body_memory import Deciding, named, program_ids, tables_at
from layoutproof.pallas.points import READS

ADDS = Template(
    "pallas.stale_read_adds", "the body adds to {name}{element}, which only programs of other blocks have written"
)
LOOK = Template(
    "pallas.stale_read_look", "look at where {name} is stored first: it has to be where each block begins, {which}"
)


TARGET = False
BODY = True
SETTLED_BY = "store it where each visit of a block begins"
SUMS = {
    **dict.fromkeys(("add", "add_any", "max", "min", "concatenate"), 2),
    **dict.fromkeys(("sub", "convert_element_type", "reshape", "broadcast_in_dim", "squeeze", "slice", "transpose"), 1),
    "select_n": 3,
}
"""Operations that give what they are applied to, or something added to it, with how many of their operands are so."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One for each reference to which something is added that is not of its block; nothing is said elsewhere."""
    return tuple(_found(kernel).values())


def _found(kernel: Kernel) -> dict[str, Obligation]:
    """The obligations by their references."""
    body: Body | None = kernel.body
    begins = _begins(kernel)
    if body is None or not begins:
        return {}
    found: dict[str, Obligation] = {}
    for load, store in _accumulating(body):
        if load.view.reference.name in found:
            continue
        try:
            one = _of(kernel, body, load, store, begins)
        except (Undecided, RecursionError):
            continue
        if one is not None:
            found[one.subject] = one
    return found


def _begins(kernel: Kernel) -> list[Term]:
    """The condition that a program is the first with its block of each output, and not the first of all.

    [] where that is not known, and where no two programs share a block. Along the last dimensions of the grid no block
    changes; along the one before them each program has another one, or a table says so.
    """
    outputs = kernel.outputs
    if not outputs or any(not o.windowed or o.unmodelled for o in outputs):
        return []
    used = {name for o in outputs for term in o.terms() for name in term.names()}
    many = [k for k, extent in enumerate(kernel.grid) if extent != 1]
    begins: list[Term] = []
    while many and kernel.grid_names[many[-1]] not in used:
        begins.append(fold("==", Term("name", kernel.grid_names[many.pop()]), ZERO))
    if not many:
        return []
    k = many[-1]
    step = Term("name", kernel.grid_names[k])
    if all(any(str(term) == str(step) for term in o.index) for o in outputs):
        return [*begins, negation(first_of_core(kernel))] if begins else []
    if not all(reads(o.index) for o in outputs) or k in kernel.parallel():
        return []
    before = list(names(kernel))
    before[k] = fold("-", step, ONE)
    return [*begins, fold("<", ZERO, step), *(other_block(kernel, o, before) for o in outputs)]


def _accumulating(body: Body) -> Iterator[tuple[Access, Access]]:
    """Loads of scratch that something is added to, with the store that takes the sum there again."""
    copied = {e.target.reference.name for e in body.effects if isinstance(e, StartedCopy)}
    accesses = [e for e in body.effects if isinstance(e, Access)]
    for load in accesses:
        reference = load.view.reference
        plain = reference.role == "scratch" and reference.memory != "smem" and reference.name not in copied
        if not plain or load.kind == "write" or load.view.dims is None or load.mask is not None:
            continue
        if load.kind == "add":
            yield load, load
        stores = (s for s in accesses if s.kind == "write" and s.view.reference is reference and s.mask is None)
        yield from ((load, store) for store in stores if store.value is not None and _adds(store.value, load))


def _adds(value: Value, load: Access) -> bool:
    """Whether a value may be something of a load with more added to it.

    A scaled value is a state, which decays; in a softmax over blocks the running maximum is the accumulator.
    """
    todo, seen = [value], {id(value)}
    while todo:
        one = todo.pop()
        name, operands = one.made or ("", ())
        if not name and not one.defined:
            index = tuple(Term("name", f"at{k}") for k in range(len(one.dims)))
            if any(part.op == "leaf" and part.args[0] == load.name for part in every(one.undefined(index))):
                return True
        more = [o for o in operands[: SUMS.get(name, 0)] if id(o) not in seen]
        seen.update(map(id, more))
        todo += more
    return False


def _of(kernel: Kernel, body: Body, load: Access, store: Access, begins: Sequence[Term]) -> Obligation | None:
    """A load that reads what only programs of other blocks have written; None where it does not, or that is unknown."""
    dims = load.view.dims or ()
    index = tuple(Term("name", f"at{k}") for k in range(len(dims)))
    at = places(load.view, index)
    if at is None or _never_stored(kernel, body, load, store, begins):
        return None
    deciding = Deciding()
    states = States(kernel, body, deciding.proves, deciding.holds, unwritten=True, own=True)
    claim, proved = states.impossible(
        lambda: [*load.spot.path, *begins, states.unwritten_at(load, at)],
        {f"at{k}": n for k, n in enumerate(dims)},
    )
    name, source = load.view.reference.name, load.spot.source
    point = deciding.last.point if claim is not None and not claim.lost and deciding.last is not None else None
    if proved or claim is None or point is None:
        return None
    if "sizes" in point:
        return _of_sizes(kernel, name, claim.claim.numbers(point).sizes)
    where = named(claim, point)
    program = tuple(point["program"])
    element = tuple(where.get(f"at{k}", 0) for k in range(len(dims)))
    within = {loop.name: where.get(loop.name, 0) for loop in load.spot.loops}
    tables = tables_at(kernel, claim, point)
    own = BodyWalk(kernel, body, tables, unwritten=True, own=True)
    first = all(own.holds(condition, program) for condition in begins)
    here, _ = own.loads(load, program, within, element)
    before, _ = BodyWalk(kernel, body, tables, unwritten=True).loads(load, program, within, element)
    if not first or here is not True or before is not False:
        return None
    reason = ADDS(name, list(element))
    shown: dict[str, Any] = {"program": program, "element": element}
    shown |= {READS: tables.taken} if tables.taken else {}
    which = program_ids(kernel, begins[0]) if begins[0].op == "==" else "where the table changes"
    hint = LOOK(name, which)
    settled = Settled(Verdict.REFUTED, reason, hint, deciding.names(), shown)
    return Obligation(name, settled, severity="warning", source=source)


def _never_stored(kernel: Kernel, body: Body, load: Access, store: Access, begins: Sequence[Term]) -> bool:
    """Whether values of other programs are loaded and never stored: `where(first, 0, acc) + x`."""
    dims = store.view.dims
    if store is load or dims is None:
        return False
    index = tuple(Term("name", f"at{k}") for k in range(len(dims)))
    holds = Deciding().holds
    states = States(kernel, body, holds, holds, unwritten=True, own=True, only=load.spot.number)
    return states.impossible(
        lambda: [*store.spot.path, *begins, states.resolved(store.value.undefined(index))],
        {f"at{k}": n for k, n in enumerate(dims)},
    )[1]


def _of_sizes(kernel: Kernel, name: str, sizes: Mapping[str, int]) -> Obligation | None:
    """The same of a grid whose size only the running program knows, at sizes for which it is so."""
    one = _found(kernel.sized(sizes)).get(name)
    if one is None or not isinstance(one.claim, Settled):
        return None
    said = ", ".join(f"{size} = {number}" for size, number in sizes.items())
    shown = {"sizes": dict(sizes), **one.claim.counterexample}
    told = restated(f"with {said}: {one.claim.reason}", one.claim.reason, sizes=said)
    return replace(one, claim=replace(one.claim, reason=told, counterexample=shown))
