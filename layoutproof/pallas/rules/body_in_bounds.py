"""Every access and copy of the body lies inside what it addresses: memory, semaphores, the devices of the mesh.

Why it matters: nothing checks it on the chip. A load past a window reads another buffer, a store destroys one;
interpret mode clamps both, and wraps negative starts, so that the numbers look right. A device that the mesh does not
have is one of another slice, or none.
Refuted by: the smallest `program` and `iteration` whose access leaves its reference, with what it reads of tables.
Asked for every program, every iteration of every loop, and every content of tables within their assumptions; of masked
accesses too, because a mask of the TPU does not excuse the slice. Slices are asked one view after the other, each
inside the shape that it cuts. Of a copy to another device, and of a signal, the place along each axis of the mesh is
asked likewise.
Of a kernel for Triton each element is asked that a mask lets be touched, in its block and in its array: nothing is
filled up at the array's end, and nothing is dropped there.
Example: window 8 x 128, `x_ref[pl.ds(i * 8, 8)]` at program 1 reads rows 8 to 15 of 8; on device 0 is
`lax.rem(me - 1, n)` -1.
Source: jax/_src/pallas/mosaic (jax 0.10.2): no bounds check by default; `interpret_pallas_call.py` for what is hidden.
Fix: index from the start of the window (or the reference), stop at `pl.cdiv`, guard the access with `pl.when`.
Incident: `pl.ds` past the end of its block in an inner loop: https://github.com/pytorch/helion/issues/2104
Limits: The primitives that are modelled, and those that are refused by name: docs/primitives.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import takewhile
from math import prod
from typing import Any

from layoutproof.bodies.cells import kept_by
from layoutproof.bodies.claims import BodyClaim, asked, not_modelled
from layoutproof.bodies.effects import (
    Access,
    Body,
    Device,
    Effect,
    Signal,
    Slice,
    Spot,
    StartedCopy,
    StartedUse,
    View,
    ViewStep,
    Wait,
    loads_of,
)
from layoutproof.bodies.runs import STEPS, Look, ProgramWalk, fillings, in_order, programs
from layoutproof.bodies.symbolic import Number, Symbolic
from layoutproof.bodies.terms import inlined
from layoutproof.bodies.values import Lost, maybe
from layoutproof.core.budget import budget, effort, spent
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import FALSE, any_of, fold
from layoutproof.core.message import Message, Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.core.term import ONE, ZERO, Amount, Term, reads
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.body_fixes import inside
from layoutproof.pallas.triton_elements import elements_inside

OUTSIDE = Template(
    "pallas.body_in_bounds_outside", "the body {what} {elements} of dimension {dim} of {name}, which has {extent}"
)
LOOK_AT_ENDS = Template(
    "pallas.body_in_bounds_look_at_ends",
    "look at where the loop or the grid ends, and at what the access needs: {within}",
)
LOOK_AT_DEVICES = Template(
    "pallas.body_in_bounds_look_at_devices",
    "{mesh} has {extent} devices, counted from 0; lax.rem of a number below 0 is not above 0: add the extent first, or "
    "guard it with pl.when",
)
DEPENDS = Template("pallas.body_in_bounds_depends", "where the body {what} {name} depends on {lost}")
WHERE = Template("pallas.body_in_bounds_where", "where the body {what} {name}")
LOOP_GOES_PAST = Template("pallas.body_in_bounds_loop_goes_past", "look at what the loop hands on: it goes past an end")
STORED_GOES_PAST = Template(
    "pallas.body_in_bounds_stored_goes_past",
    "look at what the programs store to scalar memory: what is loaded of it goes past an end",
)
DEVICE_OUTSIDE = Template(
    "pallas.body_in_bounds_device_outside", "the body {what} {name} of device {place} of {mesh}, which has {extent}"
)
OUTSIDE_AT = Template("pallas.body_in_bounds_outside_at", "the body {what} {elements} of {where}, which has {extent}")


TARGET = False
BODY = True
SETTLED_BY = "clamp the index, or guard the access by what program ids, loop counters and tables say"
LONGER = 2
"""How many times the budget of one question the runs may take that are looked at for all questions."""
DEVICE = -1
"""Where slices of a view are numbered: the place of a device."""
MOST_PIECES = 8
"""Slices of one line that are asked about at once, each in one dimension."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedCut:
    """What an effect addresses in one dimension: `cut` of `dim`, which has `extent`.

    what: it does there, in words.  listed: whether a list says where.  mesh: where `cut` is the place of a device,
    along what, in words.
    """

    spot: Spot
    view: View
    what: str
    dim: int
    cut: Slice
    extent: int
    listed: bool
    mesh: str = ""

    def outside(self, start: int, elements: str) -> Message:
        """What leaves it, in words."""
        name = self.view.reference.name
        if self.mesh:
            return DEVICE_OUTSIDE(self.what, name, start, self.mesh, self.extent)
        return OUTSIDE(self.what, elements, self.dim, name, self.extent)


def obligations(kernel: Kernel) -> tuple[Due, ...]:
    """One per line and reference with slices that are not trivially inside; one for all that are.

    The copies of an unrolled loop are one question: a violation is one of any copy. Copies that go on in one dimension
    are alike in the others, and equal slices are asked once.
    """
    body: Body | None = kernel.body
    if body is None:
        return ()
    if kernel.platform == "triton":
        found, accesses = elements_inside(kernel, body)
        return (*found, *_trivial(kernel, accesses), *not_modelled(kernel, body))
    groups, accesses = _groups(body, _meshes(kernel))
    found = [
        partial(_inside, kernel, body, many[k : k + MOST_PIECES])
        for many in groups
        for k in range(0, len(many), MOST_PIECES)
    ]
    if accesses or body.effects:
        found += _trivial(kernel, accesses)
    found += not_modelled(kernel, body)
    return tuple(found)


def _trivial(kernel: Kernel, accesses: int) -> list[Due]:
    """What holds of all accesses that are not asked about, with the number of them all."""
    return [Obligation(kernel.name, by_rule(""), figures={"accesses": accesses}, source=kernel.source)]


def unasked(kernel: Kernel) -> Settled:
    """Where there is no body to look at."""
    return undecided("the body is not known" if kernel.body is None else "the body reads and writes nothing")


_Axes = tuple[tuple[str, Amount], ...]
"""Axes of a mesh, each with its extent."""


def _meshes(kernel: Kernel) -> tuple[_Axes, _Axes]:
    """The axes along which cores are, and those of devices."""
    return tuple(zip(kernel.grid_names, kernel.grid, strict=True)), kernel.axes


@lru_cache(maxsize=4)
def _groups(body: Body, meshes: tuple[_Axes, _Axes]) -> tuple[list[list[tuple[Term, AskedCut]]], int]:
    """The slices that are one question each, and how many accesses there are: the same whatever tables hold."""
    groups: dict[tuple[Any, ...], dict[Term, AskedCut]] = {}
    accesses = 0
    for effect in body.effects:
        for place, cuts in _cuts(meshes, effect):
            accesses += 1
            for outside, one in cuts:
                path = tuple(map(id, one.spot.path))
                key = (one.spot.source, one.view.reference.name, one.what, place, path, one.spot.loops)
                groups.setdefault(key, {}).setdefault(outside, one)
    return [[*pieces.items()] for pieces in groups.values()], accesses


def _cuts(meshes: tuple[_Axes, _Axes], effect: Effect) -> Iterator[tuple[int, list[tuple[Term, AskedCut]]]]:
    """The slices of an effect, of each the number in its view and where it may leave what it cuts."""
    for view, what in _views(effect):
        for place, step in enumerate((*_cut(effect, view), *_picked(view))):
            found = []
            clipped = (
                place == 0 and isinstance(effect, StartedCopy) and effect.clips and view.reference.memory == "gmem"
            )
            for k, (piece, extent) in enumerate(zip(step.slices, step.dims, strict=True)):
                outside = _outside(replace(piece, size=ONE) if clipped else piece, extent)
                if outside is not FALSE:
                    listed = step.part is not None
                    spot = _where_masked(effect, view) if listed else effect.spot
                    found.append((outside, AskedCut(spot, view, what, k, piece, extent, listed)))
            yield place, found
    if isinstance(effect, StartedCopy | Signal) and effect.device is not None:
        view, what = (effect.semaphore, "signals") if isinstance(effect, Signal) else (effect.target, "copies into")
        cuts = [
            AskedCut(effect.spot, view, what, k, Slice(at, ONE, single=True), extent, False, mesh)
            for k, (mesh, at, extent) in enumerate(_places(meshes, effect.device))
        ]
        asked_of = [(_outside(one.cut, one.extent), one) for one in cuts]
        yield DEVICE, [(outside, one) for outside, one in asked_of if outside is not FALSE]


def _places(meshes: tuple[_Axes, _Axes], device: Device) -> Iterator[tuple[str, Term, int]]:
    """Where a device is, as the body says it: along what, in words, the place, and how many there are."""
    cores, devices = meshes
    extents = {axis: extent for axis, extent in (cores if device.core else devices) if type(extent) is int}
    for axis, at in device.places:
        if axis in extents:
            yield f"axis {axis}", at, extents[axis]
    if device.logical is not None and extents:
        yield "the mesh", device.logical, prod(extents.values())


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
        case StartedUse(_, semaphore):
            # what it reads is asked of the loads beside it
            yield semaphore, "signals"
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
    first = [*takewhile(lambda step: step.kind == "slices", view.steps)]
    if view.reference.memory == "gmem" and len(first) > 1:
        # a GPU computes one address: a part of an array may end outside of it where what is touched of it does not
        slices = [reduce(_joined, first), *slices[len(first) - 1 :]]
    yield from slices[:-1] if effect.spot.scope == "pipeline" else slices


def _joined(outer: ViewStep, inner: ViewStep) -> ViewStep:
    """A slice of a slice as one of the array."""
    within = iter(inner.slices)
    joined = []
    for piece in outer.slices:
        part = Slice(ZERO, ONE, single=True) if piece.single else next(within)
        start = fold("+", piece.start, fold("*", Term("int", piece.stride), part.start))
        joined.append(replace(part, start=start, stride=piece.stride * part.stride))
    return replace(inner, dims=outer.dims, slices=tuple(joined))


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
    part, held = next((step.part, step.held) for step in view.steps if step.kind == "gather")
    mask = effect.mask if isinstance(effect, Access) else held
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


def _inside(kernel: Kernel, body: Body, asked_of: list[tuple[Term, AskedCut]]) -> Obligation:
    outside = any_of([condition for condition, _ in asked_of])
    pieces = [piece for _, piece in asked_of]
    spot, view, what = pieces[0].spot, pieces[0].view, pieces[0].what
    name = view.reference.name

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        for piece in pieces:
            cut = piece.cut
            start, size = value(cut.start), value(cut.size)
            last = start + (size - 1) * cut.stride
            if size > 0 and (start < 0 or last >= piece.extent):
                if cut.single:
                    which = f"element {start}"
                else:
                    which = f"elements {start}:{last + 1}" + (f":{cut.stride}" if cut.stride != 1 else "")
                return piece.outside(start, which)
        return f"the body {what} {name} outside"

    def hint(at: Point, on: Numbers) -> str:
        for piece in pieces:
            cut = piece.cut
            start, reach = (found.value(term, at, on) for term in (cut.start, cut.size))
            last = piece.extent - 1 - (reach - 1) * cut.stride
            if piece.mesh and not 0 <= start <= last:
                return LOOK_AT_DEVICES(piece.mesh, piece.extent)
            if reach > 0 and not 0 <= start <= last:
                may_be = f"the {'index' if cut.single else 'start'} in dimension {piece.dim} may be 0 to {last}"
                within = may_be if last >= 0 else f"{piece.extent} are there"
                return LOOK_AT_ENDS(within)
        return ""

    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        for piece in () if pieces[0].listed or pieces[0].mesh else pieces:
            yield from inside(kernel, body, spot, view, piece.dim, piece.extent, piece.cut)

    extra = [term for piece in pieces for term in (piece.cut.start, piece.cut.size)]
    try:
        found = asked(kernel, body, [*spot.path, outside], spot.loops, explain=explain, extra=extra)
    except Undecided as lost:
        reason = DEPENDS(what, name, lost)
        return Obligation(name, undecided(reason), source=spot.source)
    told = replace(found, claim=replace(found.claim, hint=hint))
    one = about(name, told, spot.source, WHERE(what, name), fixes)
    kept = kept_by(body)
    after_another = any(loads_of(body)[name].view.reference.name in kept for name in _loads_in(body, pieces))
    if not after_another and not _rests_on_handed(body, found):
        return one
    return replace(one, graver=(partial(_in_a_run, kernel, body, pieces, after_another),))


def _loads_in(body: Body, pieces: list[AskedCut]) -> list[str]:
    """The loads whose numbers say whether or where something is addressed."""
    terms = [term for piece in pieces for term in (*piece.spot.path, piece.cut.start)]
    terms = [inlined(body.definitions, term) for term in terms]
    names = [str(read.args[0].args[0]) for read in reads(terms)]
    return [name for name in dict.fromkeys(names) if name in body.loads]


def _rests_on_handed(body: Body, found: BodyClaim) -> bool:
    """Whether a claim speaks of numbers that loops hand on and that no term says."""
    values = found.claim.points.get("values")
    return values is not None and any(name in values.names for h in body.handed for name in (h.name, h.after))


def _in_a_run(kernel: Kernel, body: Body, pieces: list[AskedCut], after_another: bool) -> Obligation:
    """The first program, of some, that leaves the reference when it is run on ints; that holds where none does.

    after_another: whether all run in order, so that the next one loads the scalars that one stores.
    """
    name = pieces[0].view.reference.name
    held = Obligation(name, by_rule(""), source=pieces[0].spot.source)
    of_effect: dict[int, list[AskedCut]] = {}
    for piece in pieces:
        of_effect.setdefault(piece.spot.number, []).append(piece)
    leaving = _leaving_in_runs(kernel, body, after_another)
    if leaving is not None and leaving.isdisjoint(of_effect):
        return held

    def left(run: ProgramWalk, effect: Effect, on: Symbolic, turns: tuple[Number, ...]) -> Obligation | None:
        shown = _left(on, of_effect.get(effect.spot.number, ()))
        entries = run.entries() if shown else None
        if entries is None:
            return None
        point: dict[str, Any] = {"program": run.program}
        point |= {"iteration": turns} if turns else {}
        point |= {"reads": entries} if entries else {}
        hint = LOOP_GOES_PAST()
        if run.in_order:
            hint = STORED_GOES_PAST()
        settled = Settled(Verdict.REFUTED, shown, hint, "run", point)
        tables = tuple(dict.fromkeys(name for name, _ in run.read))
        return Obligation(name, settled, source=effect.spot.source, tables=tables)

    with budget(STEPS, effort()):
        return next(_found_in_runs(kernel, body, after_another, left), held)


def _found_in_runs(kernel: Kernel, body: Body, after_another: bool, look: Look) -> Iterator[Obligation]:
    """What is found in some programs, the first of each that is run."""
    for fill in fillings():
        alone = (ProgramWalk(kernel, body, program, fill) for program in programs(kernel))
        for run in in_order(kernel, body, fill) if after_another else alone:
            try:
                found = run.first(look)
            except (Undecided, ArithmeticError):
                if after_another:
                    break
                continue
            if found is not None:
                yield found


@lru_cache(maxsize=4)
def _leaving_in_runs(kernel: Kernel, body: Body, after_another: bool) -> frozenset[int] | None:
    """The numbers of effects that may leave what they address in some run; None where the runs are too long together.

    All questions about a body look at the same runs, and most of them find nothing.
    """
    meshes = _meshes(kernel)
    asked_of = {
        effect.spot.number: [one for _, cuts in _cuts(meshes, effect) for _, one in cuts] for effect in body.effects
    }
    leaving: set[int] = set()

    def look(run: ProgramWalk, effect: Effect, on: Symbolic, turns: tuple[Number, ...]) -> None:
        number = effect.spot.number
        if number not in leaving:
            try:
                shown = _left(on, asked_of[number])
            except (Undecided, ArithmeticError):
                shown = "perhaps"
            if shown:
                leaving.add(number)

    with budget(LONGER * STEPS, effort()):
        for _ in _found_in_runs(kernel, body, after_another, look):
            pass
        return None if spent() else frozenset(leaving)


def _left(on: Symbolic, pieces: Iterable[AskedCut]) -> str:
    """Where a slice leaves what it cuts, in words; "" where none does, or not for sure."""
    for piece in pieces:
        start = on(piece.cut.start)
        if type(start) is int and on(_outside(piece.cut, piece.extent)) is True:
            if piece.mesh:
                return piece.outside(start, "")
            which = f"element {start}" if piece.cut.single else f"elements from {start} on"
            where = f"dimension {piece.dim} of {piece.view.reference.name}"
            return OUTSIDE_AT(piece.what, which, where, piece.extent)
    return ""


def about(
    subject: str,
    found: BodyClaim,
    source: str,
    what: str,
    fixes: Callable[[Counterexample], Iterable[KernelFix]] = lambda at: (),
) -> Obligation:
    """An obligation for a claim about a body; where it rests on unknown numbers, its refutation is none."""
    open_ = {Verdict.REFUTED: problems.DEPENDS_ON(what, " and ".join(found.lost))} if found.lost else {}
    return Obligation(
        subject,
        found.claim,
        reads=bool(found.tables),
        source=source,
        leaves_open=open_,
        tables=found.tables,
        fixes=fixes,
    )
