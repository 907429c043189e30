"""Every valid element of every output is stored by some program of its visit: by stores, by copies, by both together.

Why it matters: an element that no program stores keeps its old contents. A window is written back even if nothing was
stored into it; a program that stores nothing writes back the block of the program before it, which looks like numbers.
Refuted by: the smallest `element` of the array, and the `program` whose window holds it, that no store can reach.
A visit is the programs that have one block. A store counts under its conditions, masks and loops. One that happens
only under a condition that no number of the program says, such as loaded data, does not count as sure: an answer that
depends on it is unknown, with the value and its line, unless an element is missing whatever happens. An output that the
body moves by manual DMA is stored by its copies; that they end is asked by `dma_order`. An output in HBM that shares
its buffer with an input keeps the input's values where nothing is stored, so a hole is a warning there, unless it was
never filled that (`jax.lax.empty`). Of an unused output it is info. So it is of one whose input a copy moves that
another kernel waits for, and where the kernel waits for a semaphore that it is given: a copy that another kernel
started may fill the rest. Of a window it is unknown there.
Example: `pl.when(pl.program_id(0) % 2 == 0)` around the only store: program 1 stores no element of its window.
Source: jax/_src/pallas/mosaic (jax 0.10.2): windows are copied out at the end of their visit, and never cleared.
Fix: store the whole window in one program of each visit, for example at `k == pl.num_programs(k_axis) - 1`.
Incident: an output that its body stored in part: https://github.com/jax-ml/jax/issues/20227; JAX's paged attention with
a sequence of length 0: BUGS-FOUND.md.
Limits: The primitives that are modelled: docs/primitives.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import (
    Access,
    Body,
    BodyReference,
    Committed,
    Freed,
    Signal,
    StartedCopy,
    TensorFence,
    Wait,
)
from layoutproof.bodies.memory_state import States
from layoutproof.bodies.stored import StoredRegion, Visit, stores_into, unstored, visit_of
from layoutproof.bodies.stored_segments import stored_by_segments
from layoutproof.bodies.terms import inlined
from layoutproof.core.budget import effort
from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided, listed
from layoutproof.core.folding import all_of, any_of
from layoutproof.core.message import Template
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.result import Point, Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.contents import containing, with_entries_written_out
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import Kernel, Operand, Table
from layoutproof.kernel.obligation import Due, Obligation, Settled, by_rule, for_each_operand
from layoutproof.kernel.read_consistency import range_of
from layoutproof.pallas.body_fixes import guarded
from layoutproof.pallas.body_memory import Deciding, none_left, program_ids
from layoutproof.pallas.every_table import blocks_outside, in_no_program_alike
from layoutproof.pallas.points import READS
from layoutproof.pallas.thread_problems import stored_by_threads, stored_elsewhere
from layoutproof.solvers.decide import decide

FIX_LAST_STEP = Template(
    "pallas.outputs_stored_fix_last_step",
    "the last step of a visit is {step}: let the store{at} happen then, and not where {said}",
)
FILLED = Template("pallas.outputs_stored_filled", "whether all of it is filled is not known: {elsewhere}")
DEPENDS = Template("pallas.outputs_stored_depends", "which elements of {operand} are stored depends on {doubts}")
WAITED_FOR = Template(
    "pallas.outputs_stored_waited_for", "the copy that is waited for{line} started in another kernel, and may fill it"
)
STARTED = Template(
    "pallas.outputs_stored_started", "the copy that is started{line} moves it until another kernel has waited for it"
)
KEPT = Template("pallas.outputs_stored_kept", ": it is {shared} where nothing is stored, and {elsewhere}")
NEVER = Template("pallas.outputs_stored_never", "the body never stores into {name}{beside}")
NO_COPY = Template("pallas.outputs_stored_no_copy", "no program copies to {what}{by}{beside}")
NO_STORE_OF = Template("pallas.outputs_stored_no_store_of", "no program stores {what}{by}{beside}")
NO_STORE = Template("pallas.outputs_stored_no_store", "no program of the visit of program {program} stores {what}{by}")
LOOK_AT_OUTPUT = Template(
    "pallas.outputs_stored_look_at_output",
    "look at what becomes of {operand}: every visit of a block has to store into it",
)
LOOK_AT_COPIES = Template(
    "pallas.outputs_stored_look_at_copies",
    "look at where the copies end: pl.cdiv(size, step) steps take all, with the rest at the end",
)
LOOK_AT_GUARD = Template("pallas.outputs_stored_look_at_guard", "look at the guard: {guards}")
LOOK_AT_ALL = Template(
    "pallas.outputs_stored_look_at_all",
    "look at the guards, slices and masks of the stores: together they have to leave nothing of a window out",
)


TARGET = False
BODY = True
SETTLED_BY = "store the whole window in some program of each visit, where program ids, loop counters and tables say"
PIPELINES = True
MOST_PROGRAMS = 1_000
"""Programs of a visit that are looked at one by one for what keeps a store from happening."""
MOST_ENTRIES = 64
"""Entries of a table that are all taken to be alike, and shown."""
MOST_GUARDS = 3
"""Guards that are named, each with the line of a store."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per output."""
    body: Body | None = kernel.body
    if body is None:
        return ()
    if not body.references:
        # a body of which nothing is read
        return tuple(not_modelled(kernel, body))
    # a semaphore is counted up, and holds nothing that is stored: `dma_order` asks about it
    held = [o for o in kernel.outputs if o.memory != "semaphore"]
    return for_each_operand(held, lambda operand: [_of(kernel, body, operand)])


def _of(kernel: Kernel, body: Body, operand: Operand) -> Obligation:
    position = kernel.outputs.index(operand)
    shared = [kernel.inputs[a] for a, out in kernel.aliases if out == position and a >= 0]
    reference = next(r for r in body.references if r.name == operand.name and r.role == "out")
    sent = stored_elsewhere(kernel, reference)
    if sent is not None:
        return replace(sent, severity="error" if operand.live and not shared else "info")
    visit = visit_of(kernel, operand, reference)
    names = [operand.name, *(o.name for o in shared if not operand.windowed and not o.windowed)]
    stores = stores_into(body, names, visit.index)
    all_of_it = _all_of_it(kernel, body, operand, reference, visit, stores)
    if all_of_it is not None:
        return all_of_it
    # uninitialised memory has no values to keep
    kept = any(not o.unfilled for o in shared) and not operand.windowed
    elsewhere = _elsewhere(kernel, body, {operand.name, *(o.name for o in shared)}) if shared else ""
    severity = "info" if not operand.live or (kept and elsewhere) else "warning" if kept else "error"
    source = next((s.source for s in reversed(stores) if s.source), kernel.source)
    beside = KEPT(shared[0].name, elsewhere) if kept and elsewhere else ""
    asked = _UnstoredOutput(kernel, body, operand, visit, stores, beside)
    sure = unstored(kernel, body, visit, stores, True, asked.explain, asked.shown)
    doubts = [*sure.lost, *(f"{what}, which is not modelled ({at})" for what, at in body.unmodelled)]
    found = Obligation(
        operand.name,
        replace(sure.claim, hint=asked.hint),
        reads=bool(sure.tables),
        severity=severity,
        source=source,
        tables=sure.tables,
        fixes=asked.fixes,
    )
    if elsewhere and operand.windowed:
        return replace(found, leaves_open={Verdict.REFUTED: FILLED(elsewhere)})
    if not doubts and visit.exact:
        return found
    why = DEPENDS(operand.name, " and ".join(doubts) or "tables")
    found = replace(found, leaves_open={Verdict.REFUTED: why, Verdict.UNKNOWN: why})
    if body.unmodelled:
        return found
    can = unstored(kernel, body, visit, stores, False, asked.explain, asked.shown)
    graver = Obligation(
        operand.name,
        replace(can.claim, hint=asked.hint),
        reads=bool(can.tables),
        severity=severity,
        source=source,
        tables=can.tables,
        fixes=asked.fixes,
    )
    by_tables = (partial(_of_some_tables, kernel, operand),) if kernel.tables else ()
    return replace(found, graver=(*_in_every_table(kernel, body, visit, found, stores), graver, *by_tables))


def _all_of_it(
    kernel: Kernel,
    body: Body,
    operand: Operand,
    reference: BodyReference,
    visit: Visit,
    stores: Sequence[StoredRegion],
) -> Obligation | None:
    """The answer where a run of all programs stores all of an output, or the segments of them are all of it."""
    by = _run(kernel, body, operand, reference, visit)
    if by:
        return Obligation(operand.name, by_rule("", by=by), source=kernel.source)
    table = "" if body.unmodelled else stored_by_segments(kernel, body, visit, stores)
    if not table:
        return None
    return Obligation(operand.name, by_rule("", by="isl"), source=kernel.source, tables=(table,))


def _in_every_table(
    kernel: Kernel, body: Body, visit: Visit, found: Obligation, stores: Sequence[StoredRegion]
) -> tuple[Due, ...]:
    """The question whether every table leaves something of an output out, where tables choose its blocks."""
    operand = next(o for o in kernel.outputs if o.name == found.subject)
    return () if visit.exact else (partial(_of_every_table, kernel, body, operand, found, stores),)


def _of_every_table(
    kernel: Kernel, body: Body, operand: Operand, found: Obligation, stores: Sequence[StoredRegion]
) -> Obligation:
    """The first program whose block none of those that have it stores into, in every table that is as assumed.

    It is proved where there is none.
    """
    held = replace(found, claim=by_rule(""), leaves_open={}, graver=())
    paths = [inlined(body.definitions, all_of(store.path)) for store in stores]
    outside = blocks_outside(operand)
    if outside is None:
        return held
    ids = in_no_program_alike(kernel, body, operand.index, paths, any_of(one for one, _ in outside.values()))
    if ids is None:
        return held
    program = tuple(ids.values())
    said = NO_STORE(program, f"an element of the window of {operand.name}", _stored_at(stores))
    told = Settled(Verdict.REFUTED, said, LOOK_AT_ALL(), "smt", {"program": program})
    return replace(held, claim=told, fixes=lambda at: ())


def _run(kernel: Kernel, body: Body, operand: Operand, reference: BodyReference, visit: Visit) -> str:
    """How the run of its programs shows that all of an output is stored: "walk", "smt"; "" where it does not."""
    if kernel.platform == "mosaic_gpu" and stored_by_threads(kernel, reference):
        return "walk"
    return "smt" if not visit.exact and _stored_by_its_end(kernel, body, operand, reference) else ""


def _stored_by_its_end(kernel: Kernel, body: Body, operand: Operand, reference: BodyReference) -> bool:
    """Whether each visit of a block that a table chooses has stored all of it when it ends, whatever others do.

    A sum over groups is stored so: where the group changes, by the last program of each.
    """
    copied = any(isinstance(e, StartedCopy) and e.target.reference is reference for e in body.effects)
    if copied or body.unmodelled or operand.unmodelled:
        return False
    smt = Deciding(("smt",))
    try:
        states = States(kernel, body, smt.proves, smt.proves, unwritten=True)
        return none_left(kernel, operand, reference, states)
    except (Undecided, RecursionError):
        return False


def _of_some_tables(kernel: Kernel, operand: Operand) -> Obligation:
    """The first element that no program stores where all entries of tables are alike: the least, or the greatest.

    All stores at places that the table chooses then meet in one place, and the rest of the output is left out. It is
    proved where no such element is found.
    """
    held = Obligation(operand.name, by_rule(""), source=operand.source)
    tables = [table for table in kernel.tables if table.contents is None]
    if not tables or kernel.relations or any(t.injective or t.onto or t.place or t.total is not None for t in tables):
        return held
    for end in (0, 1):
        full: dict[str, Table] = {}
        entries: dict[str, int] = {}
        for table in tables:
            dims = [n for n in table.dims if type(n) is int]
            value = range_of(table)[end]
            if type(value) is not int or len(dims) < len(table.dims) or prod(dims) > MOST_ENTRIES:
                return held
            full[table.name] = containing(table, [value - end] * prod(dims))
            entries |= {f"{table.name}[{', '.join(map(str, at))}]": value - end for at in product(*map(range, dims))}
        other = with_entries_written_out(kernel.changed(tables=tuple(full.get(t.name, t) for t in kernel.tables)))
        asked = _of(other, other.body, next(o for o in other.outputs if o.name == operand.name))
        claim = asked.claim
        if not isinstance(claim, Claim) or asked.leaves_open:
            continue
        point, by, *_ = decide(claim, effort=effort())
        if point is not None and "sizes" not in point:
            shown = {**claim.counterexample(point), READS: entries}
            told = Settled(Verdict.REFUTED, claim.explain(point, INTS), claim.hint(point, INTS), by, shown)
            return replace(asked, claim=told, reads=True, tables=tuple(full), graver=(), fixes=lambda at: ())
    return held


def _elsewhere(kernel: Kernel, body: Body, names: Collection[str]) -> str:
    """Copies into an output that end in another kernel than they start in, in words; "" where there are none.

    names: of the output, and of inputs that share its buffer.
    """
    given = {o.name: o.role for o in kernel.operands if o.memory == "semaphore"}
    for effect in body.effects:
        role = ""
        if not isinstance(effect, Access | Freed | Committed | TensorFence):
            role = given.get(effect.semaphore.reference.name, "")
        line = _at(effect.spot.source)
        if role == "in" and (isinstance(effect, Wait) or (isinstance(effect, Signal) and effect.wait)):
            return WAITED_FOR(line)
        ends = [effect.source, effect.target] if role and isinstance(effect, StartedCopy) else []
        if any(view.reference.name in names for view in ends):
            return STARTED(line)
    return ""


class _UnstoredOutput:
    """The words for one output. beside: a further fact about the missing elements."""

    def __init__(
        self, kernel: Kernel, body: Body, operand: Operand, visit: Visit, stores: tuple[StoredRegion, ...], beside: str
    ) -> None:
        self.kernel, self.body, self.operand, self.visit, self.stores = kernel, body, operand, visit, stores
        self.beside = beside

    def shown(self, at: Point, on: Numbers) -> Point:
        """The program, and the element in the array."""
        if not self.visit.programs:
            return {"element": tuple(at["element"])}
        return {"program": tuple(at["program"]), "element": self._element(at, on)}

    def _element(self, at: Point, on: Numbers) -> tuple[int, ...]:
        """The element of the array; the element of the window where tables choose that."""
        if not self.visit.programs or not self.visit.exact:
            return tuple(at["element"])
        names = dict(zip(self.kernel.grid_names, at["program"], strict=True))
        rest = iter(at["element"])
        found = []
        for term, block in zip(self.operand.index, self.operand.block, strict=True):
            offset = 0 if block.kind == "squeezed" else next(rest)
            found.append(int(block.start(term.evaluate(names, on), on)) + offset)
        return tuple(found)

    def explain(self, at: Point, on: Numbers) -> str:
        """No program stores it."""
        name, element = self.operand.name, list(self._element(at, on))
        if not self.stores:
            return NEVER(name, self.beside)
        what = f"element {element} of {name}" if self.visit.exact else f"element {element} of the window of {name}"
        by = _stored_at(self.stores)
        if not self.visit.programs:
            return (NO_STORE_OF if self.kernel.in_body else NO_COPY)(what, by, self.beside)
        return NO_STORE(tuple(at["program"]), what, by)

    def hint(self, at: Point, on: Numbers) -> str:
        """Where to look."""
        if self.beside:
            return ""
        if not self.stores:
            return LOOK_AT_OUTPUT(self.operand.name)
        if not self.visit.programs:
            return LOOK_AT_COPIES()
        guards = self._guards(at)
        if guards:
            return LOOK_AT_GUARD(guards)
        return LOOK_AT_ALL()

    def fixes(self, at: Mapping[str, int]) -> Iterator[KernelFix]:
        """A store that is meant for the last step of a visit, at a step that does not come."""
        free = [k for k, name in enumerate(self.kernel.grid_names) if name not in self.visit.agree]
        free = [k for k in free if type(self.kernel.grid[k]) is int and self.kernel.grid[k] != 1]
        if len(free) != 1 or "program" not in at or self.body.unmodelled:
            return
        (k,) = free
        name, last = self.kernel.grid_names[k], int(self.kernel.grid[k]) - 1
        programs = self._programs(at)
        for store in self.stores:
            guard = next((c for c in store.path if programs and all(_fails(c, ids) for ids in programs)), None)
            if guard is None or guard.op != "==":
                continue
            numbers = [e.spot.number for e in self.body.effects if any(c is guard for c in e.spot.path)]
            after = Term("==", Term("name", name), Term("int", last))
            step = program_ids(self.kernel, after)
            words = FIX_LAST_STEP(step, _at(store.source), program_ids(self.kernel, guard))
            doubt = "whether the last step is the one that is meant is not known"
            yield KernelFix(words, guarded(self.kernel, numbers, [guard], [after]), doubt)

    def _guards(self, at: Point) -> str:
        """The guards that skip all stores of a visit, with their lines; "" where there are none, or they are not
        known."""
        programs = self._programs(at)
        found: dict[str, str] = {}
        for store in self.stores:
            guard = next((c for c in store.path if programs and all(_fails(c, ids) for ids in programs)), None)
            if guard is None:
                return ""
            found.setdefault(program_ids(self.kernel, guard), _at(store.source))
        said = [f"the store{line} happens only where {guard}" for guard, line in found.items()]
        where = f"not in program {tuple(at['program'])}" if len(programs) == 1 else "in no program of this visit"
        return f"{listed(said[:MOST_GUARDS])}, {where}"

    def _programs(self, at: Mapping[str, Any]) -> list[dict[str, int]]:
        """The programs of the visit of one; [] where they are too many, or not known."""
        names, grid = self.kernel.grid_names, self.kernel.grid
        own = dict(zip(names, at["program"], strict=True))
        free = [k for k, name in enumerate(names) if name not in self.visit.agree]
        if not all(type(grid[k]) is int for k in free) or prod(int(grid[k]) for k in free) > MOST_PROGRAMS:
            return []
        found = []
        for chosen in product(*(range(int(grid[k])) for k in free)):
            ids = own | {names[k]: n for k, n in zip(free, chosen, strict=True)}
            if all(term.evaluate(ids, INTS) == term.evaluate(own, INTS) for term in self.visit.alike):
                found.append(ids)
        return found


def _stored_at(stores: Sequence[StoredRegion]) -> str:
    """The lines of some stores, as the end of a sentence; "" where they are not known."""
    lines = list(dict.fromkeys(store.source.rpartition(":")[2] for store in stores if store.source))
    return f"; it is stored into at line{'s' if len(lines) > 1 else ''} {', '.join(lines[:6])}" if lines else ""


def _at(source: str) -> str:
    return f" at line {source.rpartition(':')[2]}" if source else ""


def _fails(condition: Term, ids: Mapping[str, int]) -> bool:
    """Whether a condition on nothing but a program's ids is false."""
    try:
        return not condition.evaluate(ids, INTS)
    except (Undecided, ZeroDivisionError, KeyError):
        return False
