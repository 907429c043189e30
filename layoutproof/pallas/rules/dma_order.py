"""Every copy is waited for before what it moves is touched, every wait has its bytes, and semaphores end at 0.

Why it matters: a copy runs beside the program. A read of its target before the wait gets the old contents; a write to
its source before the wait is sent instead. A wait for bytes that are never sent never returns, and a semaphore that is
not 0 when the kernel ends crashes or spoils the next one. The interpreters copy at once, or when waited for: most of it
looks right there.
Refuted by: the first program and iteration at which it goes wrong, with the element, the slot and the bytes.
Asked of the programs in their order on one core. Bytes are counted, per slot of a semaphore: one wait may take those of
many copies, and its address counts for nothing. While any byte of a slot is not waited for, any copy on it may run.
A scope (`run_scoped`) ends with nothing in flight into its memory or out of it, and with its semaphores at 0.
Nor is a block of an output copied from an input that has its buffer while the pipeline writes that block back.
Where one kernel starts a copy and another one waits for it, all that the traced function does between them is looked
at, by what needs what: nothing else orders what XLA runs, or keeps memory from being another's.
Example: `copy.start(); o_ref[...] = buf[...]; copy.wait()` reads `buf` while the copy into it is in flight.
Of a kernel that reaches other devices it is asked of each device's own copies and accesses, on the mesh that it is
traced on; `device_races`, `device_waits`, `device_barrier` and `semaphores_drained` ask what devices do to each other.
Unknown: semaphores that come from outside of the traced function
or leave it, or go into a loop or branch of it; slots that data choose, and loops whose number of iterations data
choose, where an iteration leaves something in flight.
Source: docs/pallas/tpu/distributed.md of JAX (0.10.2); `dma_wait_p` takes the bytes of its source's shape.
Fix: wait before reading, wait once for each start's bytes, a slot and a semaphore for each copy in flight.
Incident: a buffer overwritten before its copy was waited for: https://github.com/sgl-project/sglang-jax/issues/1110
Limits: Copies and semaphores of one program and its iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from types import MappingProxyType

from layoutproof.bodies import problems as body_problems
from layoutproof.bodies.claims import Beside, BodyClaim, asked, beside, not_modelled
from layoutproof.bodies.devices import has_devices
from layoutproof.bodies.effects import Body, Signal, StartedCopy, StartedUse, Wait
from layoutproof.bodies.handed_on import handed_on
from layoutproof.bodies.in_flight import FlightProblem, FlightWalk, walked, walked_alike, walked_with_tables
from layoutproof.bodies.order import names, start_of
from layoutproof.bodies.touched import any_element
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import any_of, fold, linear
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, Verdict
from layoutproof.core.term import ONE, Term, reads
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas.copy_fixes import of_problem
from layoutproof.pallas.device_problems import of_devices
from layoutproof.pallas.points import READS
from layoutproof.pallas.rules.body_in_bounds import about
from layoutproof.pallas.thread_problems import of_threads

SHARES = Template("pallas.dma_order_shares", "shares its buffer with an operand that has windows: not modelled")
HANDED_ON = Template(
    "pallas.dma_order_handed_on",
    "a semaphore that the kernel hands on: what waits for it is in another kernel, which is not known",
)
GIVEN = Template("pallas.dma_order_given", "a semaphore that the kernel is given: what it counts at first is not known")
WRITTEN_BACK = Template(
    "pallas.dma_order_written_back", "whether what is copied from {operand} was written back depends on {lost}"
)
BLOCK_LEFT = Template(
    "pallas.dma_order_block_left", "{copied} that program {second} leaves: it may be written back at the same time"
)
READ_AFTER = Template(
    "pallas.dma_order_read_after", "{name} is read where a program before has written {output}: whether that is meant"
)
LOOK_AT_ALIAS = Template(
    "pallas.dma_order_look_at_alias",
    "look at the alias: a program may read the block that it writes, and those of later programs",
)
TOO_MANY = Template(
    "pallas.dma_order_too_many", "too many programs to walk, and what one leaves in flight the next goes on with"
)
OF_BODY = Template("pallas.dma_order_body", "the body {what}")


TARGET = False
BODY = True
SETTLED_BY = (
    "wait for as many bytes, under the condition that starts a copy, in its program or a kernel that needs its outputs"
)
SETTLED_BY_ON_GPU = (
    "wait for what is started (barrier_wait, wgmma_wait, wait_smem_to_gmem(0)) before its memory is used again, and "
    "before the kernel ends"
)


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One for the whole kernel, and one for each thing that is not modelled."""
    body: Body | None = kernel.body
    if body is None:
        return ()
    if kernel.by_events:
        # nothing reads what such a copy brings: it may hit memory that is another program's by then
        tail = [replace(one, severity="warning") for one in of_threads(kernel, "tail")]
        refuted = [one for one in tail if isinstance(one.claim, Settled) and one.claim.verdict is Verdict.REFUTED]
        return (*of_threads(kernel, "own", "never", "phase", "ends"), *refuted)
    moving = [e for e in body.effects if isinstance(e, StartedCopy | StartedUse | Wait | Signal)]
    found = not_modelled(kernel, body)
    found += list(_elsewhere(moving, kernel))
    if found:
        return tuple(found)
    if has_devices(kernel):
        return (*of_devices(kernel, "own"), *_written_back(kernel, body, moving))
    found += _written_back(kernel, body, moving)
    figures: dict[str, object] = {
        "copies": sum(isinstance(e, StartedCopy) for e in moving),
        "waits": sum(isinstance(e, Wait) for e in moving),
    }
    if not moving:
        return (Obligation(kernel.name, by_rule(""), source=kernel.source),)
    if kernel.around is not None:
        return (_handed_on(kernel, figures), *found)
    return (_walked(kernel, body, figures), *found)


def _elsewhere(moving: Sequence[StartedCopy | StartedUse | Wait | Signal], kernel: Kernel) -> Iterator[Obligation]:
    copies = [e for e in moving if isinstance(e, StartedCopy)]
    moved = {view.reference.name for e in copies for view in (e.source, e.target)}
    for a, b in kernel.aliases:
        pair = [kernel.inputs[a], kernel.outputs[b]] if a >= 0 else []
        if _read_by_hand(kernel, a, b) and not any(pair[0].name == e.target.reference.name for e in copies):
            # its reads there are a question about the order of programs
            continue
        if moved & {o.name for o in pair} and any(o.windowed for o in pair):
            reason = SHARES()
            yield Obligation(kernel.outputs[b].name, undecided(reason), source=kernel.source)
            return
    given = {o.name: o.role for o in kernel.operands if o.memory == "semaphore"}
    for effect in moving:
        name = effect.semaphore.reference.name
        if kernel.around is not None:
            # its other users are checked
            continue
        if given.get(name) == "out":
            reason = HANDED_ON()
        elif name in given or effect.semaphore.reference.role != "semaphore":
            reason = GIVEN()
        else:
            continue
        yield Obligation(name, undecided(reason), source=effect.spot.source)
        return


def _read_by_hand(kernel: Kernel, source: int, result: int) -> bool:
    """Whether an input that the body copies from shares its buffer with an output of plain windows, in order."""
    if source < 0 or kernel.inputs[source].windowed or not kernel.outputs[result].windowed:
        return False
    output = kernel.outputs[result]
    plain = all(b.kind in ("blocked", "squeezed") and type(b.size) is int for b in output.block)
    in_order = kernel.platform == "tpu" and not any(kernel.grid[k] != 1 for k in kernel.parallel())
    return plain and in_order and not reads(output.terms()) and all(type(n) is int for n in kernel.grid)


def _written_back(
    kernel: Kernel, body: Body, moving: Sequence[StartedCopy | StartedUse | Wait | Signal]
) -> list[Obligation]:
    """No copy from an input reads a block of an output in the same buffer that is being written back.

    The block of one visit goes out while the next one runs. Earlier blocks have arrived: that no copy reads them is
    proved, and where one does it is left open whether that is meant.
    """
    found = []
    pair = beside(kernel, body)
    for source, result in kernel.aliases:
        if not _read_by_hand(kernel, source, result):
            continue
        operand, output = kernel.inputs[source], kernel.outputs[result]
        for copy in (e for e in moving if isinstance(e, StartedCopy) and e.source.reference.name == operand.name):
            try:
                found.append(_against_blocks(kernel, pair, copy, output))
            except Undecided as lost:
                reason = WRITTEN_BACK(operand.name, lost)
                found.append(Obligation(operand.name, undecided(reason), source=copy.spot.source))
    return found


def _against_blocks(kernel: Kernel, pair: Beside, copy: StartedCopy, output: Operand) -> Obligation:
    name = copy.source.reference.name
    element = any_element(copy.source, "at")
    steps = [prod(int(n) for n in kernel.grid[k + 1 :]) for k in range(len(kernel.grid))]
    reader = linear([(by, term) for by, term in zip(steps, names(kernel), strict=True)])
    writer = pair.other(reader)
    other_block = any_of([fold("!=", term, pair.other(term)) for term in output.index])
    inside = []
    for k, (block, place) in enumerate(zip(output.block, element.place, strict=True)):
        start = pair.other(start_of(output, k))
        size = Term("int", 1 if block.kind == "squeezed" else int(block.size))
        inside += [fold("<=", start, place), fold("<", place, fold("+", start, size))]

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        where = [value(entry) for entry in element.place]
        who = f"program {at['first']} copies element {where} of {name}, of the block of {output.name}"
        return BLOCK_LEFT(who, at["second"])

    def of(order: Term) -> BodyClaim:
        condition = [*copy.spot.path, element.condition, order, other_block, *inside]
        loops, elements = copy.spot.loops, element.names
        return asked(
            kernel, pair.body, condition, loops, elements, explain, programs=pair.programs, place=element.place
        )

    before, at_once = of(fold("<", writer, reader)), of(fold("==", fold("+", writer, ONE), reader))
    open_ = {Verdict.REFUTED: READ_AFTER(name, output.name)}
    source = copy.spot.source
    hint = LOOK_AT_ALIAS()
    told = replace(at_once, claim=replace(at_once.claim, hint=lambda at, on: hint))
    race = about(name, told, source, f"whether a block of {output.name} is written back while it is read")
    return Obligation(
        name, before.claim, bool(before.tables), source=source, leaves_open=open_, tables=before.tables, graver=(race,)
    )


def _walked(kernel: Kernel, body: Body, figures: dict[str, object]) -> Obligation:
    proved = Obligation(kernel.name, by_rule("", by="walk"), figures=figures, source=kernel.source)
    alike, stands_for_all = walked_alike(kernel)
    if stands_for_all:
        return proved
    if any(type(extent) is not int for extent in kernel.grid):
        return _open(kernel, alike, "the number of programs is not known")
    try:
        walk, done = walked(kernel)
    except Undecided as lost:
        return Obligation(kernel.name, undecided(body_problems.IN_FLIGHT_DEPENDS(lost)), source=kernel.source)
    sure = next((p for p in walk.problems if p.sure), None)
    if sure is not None:
        return _refuted(kernel, sure)
    with suppress(Undecided, ArithmeticError):
        by_tables = walked_with_tables(kernel) if walk.problems else None
        if by_tables is not None:
            return _refuted(kernel, *by_tables)
    if walk.problems or not done:
        return _open(kernel, walk, TOO_MANY())
    return proved


def _handed_on(kernel: Kernel, figures: dict[str, object]) -> Obligation:
    """Of a kernel that starts copies which another one waits for, or waits for those of another."""
    problem = handed_on(kernel)
    if problem is None:
        return Obligation(kernel.name, by_rule("", by="walk"), figures=figures, source=kernel.source)
    if problem.sure:
        return _refuted(kernel, problem)
    return Obligation(problem.subject or kernel.name, undecided(problem.what), source=problem.spot.source)


def _open(kernel: Kernel, walk: FlightWalk, otherwise: str) -> Obligation:
    if not walk.problems:
        return Obligation(kernel.name, undecided(otherwise), source=kernel.source)
    problem = walk.problems[0]
    return Obligation(problem.subject or kernel.name, undecided(problem.what), source=problem.spot.source)


def _refuted(kernel: Kernel, problem: FlightProblem, entries: Mapping[str, int] = MappingProxyType({})) -> Obligation:
    """entries: of tables, which it needs."""
    point = {"program": problem.program, "iteration": problem.iteration, "element": problem.element, READS: entries}
    shown = {name: place for name, place in point.items() if place}
    what = problem.what if problem.what.startswith(problem.subject) else OF_BODY(problem.what)
    claim = Settled(Verdict.REFUTED, what, problem.hint, "walk", shown)
    tables = tuple(dict.fromkeys(entry.partition("[")[0] for entry in entries))
    source = problem.spot.source
    return Obligation(
        problem.subject, claim, source=source, fixes=lambda at: of_problem(kernel, problem), tables=tables
    )
