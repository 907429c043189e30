"""Every access and copy of the body lies inside what it addresses: windows, scratch, semaphores, whole arrays in HBM.

Why it matters: nothing checks it on the chip. A load past a window reads another buffer, a store destroys one;
interpret mode clamps both, and wraps negative starts, so that the numbers look right.
Refuted by: the smallest `program` and `iteration` whose access leaves its reference, with what it reads of tables.
Asked for every program, every iteration of every loop, and every content of tables within their assumptions; of masked
accesses too, because a mask of the TPU does not excuse the slice. Slices are asked one view after the other, each
inside the shape that it cuts.
Example: window 8 x 128, `x_ref[pl.ds(i * 8, 8)]` at program 1 reads rows 8 to 15 of 8.
Source: jax/_src/pallas/mosaic (jax 0.10.2): no bounds check by default; `interpret_pallas_call.py` for what is hidden.
Fix: index from the start of the window (or the reference), stop at `pl.cdiv`, guard the access with `pl.when`.
Incident: `pl.ds` past the end of its block in an inner loop: https://github.com/pytorch/helion/issues/2104
Limits: The primitives that are modelled, and those that are refused by name: docs/primitives.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from layoutproof.bodies.cells import kept_by
from layoutproof.bodies.claims import BodyClaim, asked, not_modelled
from layoutproof.bodies.effects import (
    Access,
    Body,
    Effect,
    Signal,
    Slice,
    Spot,
    StartedCopy,
    View,
    ViewStep,
    Wait,
    loads_of,
)
from layoutproof.bodies.runs import STEPS, ProgramWalk, fillings, in_order, programs
from layoutproof.bodies.symbolic import Number, Symbolic
from layoutproof.bodies.terms import inlined
from layoutproof.bodies.values import Lost, maybe
from layoutproof.core.budget import budget, effort
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import FALSE, any_of, fold
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.core.term import ONE, ZERO, Term, reads
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, Settled, by_rule, undecided
from layoutproof.pallas.body_fixes import inside

TARGET = False
BODY = True
SETTLED_BY = "clamp the index, or guard the access by what program ids, loop counters and tables say"
MOST_COPIES = 8
"""Slices of one line that are asked about at once."""


def obligations(kernel: Kernel) -> tuple[Due, ...]:
    """One per line and reference with slices that are not trivially inside; one for all that are.

    The copies of an unrolled loop are one question: a violation is one of any copy.
    """
    body: Body | None = kernel.body
    if body is None:
        return ()
    groups: dict[tuple[Any, ...], list[tuple[Spot, View, str, ViewStep]]] = {}
    accesses = 0
    for effect in body.effects:
        for view, what in _views(effect):
            for place, step in enumerate((*_cut(effect, view), *_picked(view))):
                accesses += 1
                if any(
                    _outside(piece, extent) is not FALSE for piece, extent in zip(step.slices, step.dims, strict=True)
                ):
                    spot = _where_masked(effect, view) if step.part is not None else effect.spot
                    path = tuple(map(id, spot.path))
                    key = (spot.source, view.reference.name, what, place, path, spot.loops)
                    groups.setdefault(key, []).append((spot, view, what, step))
    found: list[Due] = [
        partial(_inside, kernel, body, members[k : k + MOST_COPIES])
        for members in groups.values()
        for k in range(0, len(members), MOST_COPIES)
    ]
    if accesses or body.effects:
        found.append(Obligation(kernel.name, by_rule(""), figures={"accesses": accesses}, source=kernel.source))
    found += not_modelled(kernel, body)
    return tuple(found)


def unasked(kernel: Kernel) -> Settled:
    """Where there is no body to look at."""
    return undecided("the body is not known" if kernel.body is None else "the body reads and writes nothing")


def _views(effect: Effect) -> Iterator[tuple[View, str]]:
    """The views of an effect, each with its access in words."""
    match effect:
        case Access(kind, view):
            yield view, {"read": "reads", "write": "writes", "add": "adds to"}[kind]
        case StartedCopy(source, target, semaphore, _, sent):
            yield source, "copies from"
            yield target, "copies into"
            yield semaphore, "signals"
            if sent is not None:
                yield sent, "signals"
        case Wait(_, semaphore):
            # the address of what is waited for does not count: only its shape does
            yield semaphore, "waits for"
        case Signal(semaphore, _, _, wait):
            yield semaphore, "waits for" if wait else "signals"


def _cut(effect: Effect, view: View) -> Iterator[ViewStep]:
    """The slices of a view. Those that a pipeline makes itself are its blocks, which `blocks_in_bounds` asks about.

    They are not asked here: it copies a last block up to the end of the array's last tile (`_create_blocked_slice` in
    jax/_src/pallas/mosaic/pipeline.py), and that much is there.
    """
    slices = [step for step in view.steps if step.kind == "slices"]
    yield from slices[:-1] if effect.spot.scope == "pipeline" else slices


def _picked(view: View) -> Iterator[ViewStep]:
    """Of parts that a list places, the place of some one as a slice."""
    for step in view.steps:
        if step.kind == "gather":
            pieces = zip(step.picked, step.dims, strict=True)
            slices = tuple(
                Slice(ZERO, Term("int", n)) if at is None else Slice(at, ONE, single=True) for at, n in pieces
            )
            yield ViewStep("slices", step.dims, None, slices, part=step.part)


def _where_masked(effect: Effect, view: View) -> Spot:
    """Where an effect happens to a part that a list places: a mask excuses the others."""
    part = next(step.part for step in view.steps if step.kind == "gather")
    mask = effect.mask if isinstance(effect, Access) else None
    if mask is None or part is None:
        return effect.spot
    with suppress(Lost):
        return replace(effect.spot, path=(*effect.spot.path, mask.number((part,))))
    return replace(effect.spot, path=(*effect.spot.path, maybe("which elements a mask holds for")))


def _outside(piece: Slice, extent: int) -> Term:
    """The condition that a slice leaves 0 .. extent; FALSE where it never does. A slice of no elements is anywhere."""
    below = fold("<", piece.start, ZERO)
    last = piece.start
    if piece.size.op == "int":
        reach = (piece.size.args[0] - 1) * piece.stride
        if piece.size.args[0] == 0:
            return FALSE
        if last.op == "int":
            return any_of([below, fold("<=", Term("int", extent), Term("int", last.args[0] + reach))])
        return any_of([below, Term("<=", Term("int", extent - reach), last)])
    reach = Term("*", Term("-", piece.size, Term("int", 1)), Term("int", piece.stride))
    past = Term("<=", Term("int", extent), Term("+", last, reach))
    some = Term("<", ZERO, piece.size)
    return Term("and", some, any_of([below, past]))


def _inside(kernel: Kernel, body: Body, members: list[tuple[Spot, View, str, ViewStep]]) -> Obligation:
    spot, view, what, _ = members[0]
    pieces = [
        (k, piece, step.dims[k])
        for _, _, _, step in members
        for k, piece in enumerate(step.slices)
        if _outside(piece, step.dims[k]) is not FALSE
    ]
    # copies of an unrolled loop often slice one dimension alike
    outside = any_of(list(dict.fromkeys(_outside(p, n) for _, p, n in pieces)))
    name = view.reference.name

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        for k, piece, extent in pieces:
            start, size = value(piece.start), value(piece.size)
            last = start + (size - 1) * piece.stride
            if size > 0 and (start < 0 or last >= extent):
                if piece.single:
                    which = f"element {start}"
                else:
                    which = f"elements {start}:{last + 1}" + (f":{piece.stride}" if piece.stride != 1 else "")
                return f"the body {what} {which} of dimension {k} of {name}, which has {extent}"
        return f"the body {what} {name} outside"

    def hint(at: Point, on: Numbers) -> str:
        for k, piece, extent in pieces:
            start, reach = (found.value(term, at, on) for term in (piece.start, piece.size))
            last = extent - 1 - (reach - 1) * piece.stride
            if reach > 0 and not 0 <= start <= last:
                which = "index" if piece.single else "start"
                within = f"the {which} in dimension {k} may be 0 to {last}" if last >= 0 else f"{extent} are there"
                return f"look at where the loop or the grid ends, and at what the access needs: {within}"
        return ""

    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        for k, piece, extent in pieces[:MOST_COPIES] if members[0][3].part is None else ():
            yield from inside(kernel, body, spot, view, k, extent, piece)

    extra = [term for _, piece, _ in pieces for term in (piece.start, piece.size)]
    try:
        found = asked(kernel, body, [*spot.path, outside], spot.loops, explain=explain, extra=extra)
    except Undecided as lost:
        reason = f"where the body {what} {name} depends on {lost}"
        return Obligation(name, undecided(reason), source=spot.source)
    told = replace(found, claim=replace(found.claim, hint=hint))
    one = about(name, told, spot.source, f"where the body {what} {name}", fixes)
    kept = kept_by(body)
    after_another = any(loads_of(body)[name].view.reference.name in kept for name in _loads_in(body, members))
    if not after_another and not _rests_on_handed(body, found):
        return one
    return replace(one, graver=(partial(_in_a_run, kernel, body, members, what, after_another),))


def _loads_in(body: Body, members: list[tuple[Spot, View, str, ViewStep]]) -> list[str]:
    """The loads whose numbers say whether or where something is addressed."""
    terms = [term for spot, _, _, step in members for term in (*spot.path, *(p.start for p in step.slices))]
    terms = [inlined(body.definitions, term) for term in terms]
    names = [str(read.args[0].args[0]) for read in reads(terms)]
    return [name for name in dict.fromkeys(names) if name in body.loads]


def _rests_on_handed(body: Body, found: BodyClaim) -> bool:
    """Whether a claim speaks of numbers that loops hand on and that no term says."""
    values = found.claim.points.get("values")
    return values is not None and any(name in values.names for h in body.handed for name in (h.name, h.after))


def _in_a_run(
    kernel: Kernel, body: Body, members: list[tuple[Spot, View, str, ViewStep]], what: str, after_another: bool
) -> Obligation:
    """The first program, of some, that leaves the reference when it is run on ints; that holds where none does.

    after_another: whether all run in order, so that the next one loads the scalars that one stores.
    """
    steps = {spot.number: (view, step) for spot, view, _, step in members}
    held = Obligation(members[0][1].reference.name, by_rule(""), source=members[0][0].source)

    def left(run: ProgramWalk, effect: Effect, on: Symbolic, turns: tuple[Number, ...]) -> Obligation | None:
        view, step = steps.get(effect.spot.number, (None, None))
        shown = None if view is None or step is None else _left(on, view, step, what)
        entries = run.entries() if shown else None
        if view is None or not shown or entries is None:
            return None
        point: dict[str, Any] = {"program": run.program}
        point |= {"iteration": turns} if turns else {}
        point |= {"reads": entries} if entries else {}
        hint = "look at what the loop hands on: it goes past an end"
        if run.in_order:
            hint = "look at what the programs store to scalar memory: what is loaded of it goes past an end"
        settled = Settled(Verdict.REFUTED, shown, hint, "run", point)
        tables = tuple(dict.fromkeys(name for name, _ in run.read))
        return Obligation(view.reference.name, settled, source=effect.spot.source, tables=tables)

    with budget(STEPS, effort()):
        for fill in fillings():
            alone = (ProgramWalk(kernel, body, program, fill) for program in programs(kernel))
            for run in in_order(kernel, body, fill) if after_another else alone:
                try:
                    found: Obligation | None = run.first(left)
                except (Undecided, ArithmeticError):
                    if after_another:
                        break
                    continue
                if found is not None:
                    return found
    return held


def _left(on: Symbolic, view: View, step: ViewStep, what: str) -> str:
    """Where a slice leaves what it cuts, in words; "" where it does not, or not for sure."""
    for k, (piece, extent) in enumerate(zip(step.slices, step.dims, strict=True)):
        start = on(piece.start)
        if type(start) is int and on(_outside(piece, extent)) is True:
            which = f"element {start}" if piece.single else f"elements from {start} on"
            return f"the body {what} {which} of dimension {k} of {view.reference.name}, which has {extent}"
    return ""


def about(
    subject: str,
    found: BodyClaim,
    source: str,
    what: str,
    fixes: Callable[[Counterexample], Iterable[KernelFix]] = lambda at: (),
) -> Obligation:
    """An obligation for a claim about a body; where it rests on unknown numbers, its refutation is none."""
    open_ = {Verdict.REFUTED: f"{what} depends on {' and '.join(found.lost)}"} if found.lost else {}
    return Obligation(
        subject,
        found.claim,
        reads=bool(found.tables),
        source=source,
        leaves_open=open_,
        tables=found.tables,
        fixes=fixes,
    )
