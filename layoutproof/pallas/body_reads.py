"""A body's reads of its inputs beside the windows: arrays in manual DMA, and parts of windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Access, Body, BodyReference, StartedCopy, View, ViewStep
from layoutproof.bodies.stored import StoredRegion, Visit, loads_from, unstored
from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.space import Space
from layoutproof.core.term import Term, every
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation
from layoutproof.pallas import problems

FEWEST = 3
"""Parts of a dimension from which on the last one alone is missed; of two a kernel may well want the first."""


def is_read_elsewhere(kernel: Kernel, operand: Operand) -> bool:
    """Whether other devices read of an input, too."""
    references = () if kernel.body is None else kernel.body.references
    return any(r.elsewhere is not None and r.elsewhere[0] == operand.name for r in references)


def read_by_body(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    """The questions about one input beside its windows: none where tables or data choose the reads."""
    if operand.part or operand.memory == "semaphore" or not all(type(n) is int for n in operand.dims):
        return
    if operand.windowed and not _never_moves(operand):
        return
    body: Body | None = kernel.body
    if body is None or body.unmodelled:
        return
    reference = next((r for r in body.references if r.name == operand.name and r.role == "in"), None)
    if reference is None or (operand.windowed and reference.dims != operand.dims):
        return
    views = [view for view in _read_views(body) if view.reference is reference]
    if any(map(_of_a_part, views)):
        # who cut the part out for a pipeline wants no more of the array
        return
    cuts = _remainders(reference, views)
    if operand.windowed and not cuts:
        return
    dims = reference.dims
    names = tuple(f"element{d}" for d in range(len(dims)))
    visit = Visit(Space(names, dims))
    loads = loads_from(body, (operand.name,), visit.index)
    if any(load.lost or _by_values(body, load.condition) for load in loads):
        return
    if operand.same_as or any(o.same_as == operand.name for o in kernel.inputs):
        # the other one may read it
        return

    def explain(at: Point, on: Numbers) -> str:
        return problems.UNREAD_ELEMENT(operand.name, list(at["element"]))

    try:
        found = unstored(kernel, body, visit, loads, False, explain)
        tails = [_tail(kernel, body, operand, visit, loads, *cut) for cut in cuts]
    except Undecided:
        # conditions that no claim can say: nothing is asked, as of tables
        return
    shared = kernel.inputs.index(operand) in [a for a, _ in kernel.aliases]
    source = next((load.source for load in loads if load.source), kernel.source)
    severity = "warning" if shared else "error"
    # a whole part that is left out at the end may not be needed
    severities = [severity if reference.dims[d] % step else "warning" for d, _, step in cuts]
    graver = tuple(replace(t, severity=s, source=source) for t, s in zip(tails, severities, strict=True))
    yield Obligation(operand.name, found.claim, reads=False, severity="info", source=source, graver=graver)


def _never_moves(operand: Operand) -> bool:
    """Whether every program sees the first block: where that is the whole array, its elements are the array's."""
    return all(
        block.kind == "blocked" and term.op == "int" and term.args[0] == 0
        for block, term in zip(operand.block, operand.index, strict=True)
    )


def _of_a_part(view: View) -> bool:
    """Whether a view cuts something out of a part of its reference."""
    cut = [step for step in view.steps if step.kind == "slices"]
    return len(cut) > 1 and cut[0].dims != _sizes(cut[0])


def _sizes(step: ViewStep) -> tuple[int, ...]:
    return tuple(int(p.size.args[0]) if p.size.op == "int" and not p.single else -1 for p in step.slices)


def _read_views(body: Body) -> Iterator[View]:
    for effect in body.effects:
        if isinstance(effect, Access) and effect.kind != "write":
            yield effect.view
        elif isinstance(effect, StartedCopy):
            yield effect.source


def _remainders(reference: BodyReference, views: list[View]) -> list[tuple[int, int, int]]:
    """(dimension, first element, step) of the last part of a dimension that slices read one after the other.

    It is what is left where they do not divide the dimension; else it is asked where it is one of several.
    """
    found: dict[tuple[int, int, int], None] = {}
    for view in views:
        if not view.steps or view.steps[0].kind != "slices":
            continue
        for d, piece in enumerate(view.steps[0].slices):
            size = piece.size.args[0] if piece.size.op == "int" else 0
            extent = reference.dims[d]
            # a slice with a constant start was chosen by the author, and is no part of a row of slices
            moves = piece.start.op != "int"
            if moves and 1 < size < extent and piece.stride == 1:
                first = (extent - 1) // size * size
                if extent % size or first // size >= FEWEST - 1:
                    found[d, first, size] = None
    # the last dimension first: the smallest element is in its remainder
    return sorted(found, reverse=True)


def _by_values(body: Body, condition: Term) -> bool:
    """Whether a read depends on entries of tables, or on unknowns."""
    terms = [condition]
    while terms:
        for part in every(terms.pop()):
            if part.op in ("read", "leaf", "maybe") or (part.op == "name" and part.args[0] in body.unknowns):
                return True
            if part.op == "name" and part.args[0] in body.definitions:
                terms.append(body.definitions[part.args[0]])
    return False


def _tail(
    kernel: Kernel,
    body: Body,
    operand: Operand,
    visit: Visit,
    loads: tuple[StoredRegion, ...],
    d: int,
    first: int,
    step: int,
) -> Obligation:
    """The last part of a dimension is read by no program, and all that is before it is."""
    extent = visit.element.extents[d]
    entry, start = visit.index[d], Term("int", first)
    behind, before = Term("<=", start, entry), Term("<", entry, start)

    def explain(at: Point, on: Numbers) -> str:
        tail = f"elements {first}:{extent} of dimension {d} of {operand.name}"
        return problems.UNREAD_TAIL(tail, first // step, step)

    def hint(at: Point, on: Numbers) -> str:
        last = f", the last one of {extent % step}" if extent % step else ""
        parts = f"pl.cdiv({extent}, {step}) = {-(-extent // step)} parts of dimension {d}{last}"
        return problems.LOOK_AT_PARTS(parts)

    unread = unstored(kernel, body, replace(visit, valid=behind), loads, False, explain)
    others = unstored(kernel, body, replace(visit, valid=before), loads, True, explain)
    extents = dict(zip(visit.element.names, visit.element.extents, strict=True))
    box = {name: int(n) for name, n in extents.items() if type(n) is int}
    reached = [asked(kernel, body, [load.condition, behind], load.loops, box).claim for load in loads]
    beside: tuple[Claim, ...] = (others.claim, *reached)
    return Obligation(operand.name, replace(unread.claim, hint=hint, provided=beside), reads=False)
