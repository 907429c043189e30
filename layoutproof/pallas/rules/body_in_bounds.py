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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from layoutproof.bodies.claims import Asked, asked
from layoutproof.bodies.effects import Access, Body, Copy, Effect, Signal, Slice, Spot, View, Wait
from layoutproof.bodies.values import FALSE, any_of, settled
from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, by_rule, undecided

TARGET = False
BODY = True
_ZERO = Term("int", 0)


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per slice of an access or copy that is not inside for all to see; one for all that are."""
    body: Body | None = kernel.body
    if body is None:
        return ()
    found: list[Obligation] = []
    plain = 0
    for effect in body.effects:
        for view, what in _views(effect):
            for place, (dims, slices) in enumerate((s.dims, s.slices) for s in view.steps if s.kind == "slices"):
                open_ = [k for k, piece in enumerate(slices) if _outside(piece, dims[k]) is not FALSE]
                plain += 1
                if open_:
                    found.append(_inside(kernel, body, effect.spot, view, what, place, open_))
    if plain or body.effects:
        found.append(Obligation(kernel.name, by_rule(""), figures={"accesses": plain}, source=kernel.source))
    found += [Obligation(kernel.name, undecided(f"{what}: not modelled"), source=at) for what, at in body.unmodelled]
    return tuple(found)


def _views(effect: Effect) -> Iterator[tuple[View, str]]:
    """What an effect addresses, and what it does there, in words."""
    match effect:
        case Access(kind, view):
            yield view, {"read": "reads", "write": "writes", "add": "adds to"}[kind]
        case Copy(source, target, semaphore, _, sent):
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


def _outside(piece: Slice, extent: int) -> Term:
    """The condition that a slice leaves 0 .. extent; FALSE where it never does. A slice of no elements is anywhere."""
    below = settled(Term("<", piece.start, _ZERO))
    last = piece.start
    if piece.size.op == "int":
        reach = (piece.size.args[0] - 1) * piece.stride
        if piece.size.args[0] == 0:
            return FALSE
        if last.op == "int":
            return any_of([below, settled(Term("<=", Term("int", extent), Term("int", last.args[0] + reach)))])
        return any_of([below, Term("<=", Term("int", extent - reach), last)])
    reach = Term("*", Term("-", piece.size, Term("int", 1)), Term("int", piece.stride))
    past = Term("<=", Term("int", extent), Term("+", last, reach))
    some = Term("<", _ZERO, piece.size)
    return Term("and", some, any_of([below, past]))


def _inside(kernel: Kernel, body: Body, spot: Spot, view: View, what: str, place: int, open_: list[int]) -> Obligation:
    step = [s for s in view.steps if s.kind == "slices"][place]
    outside = any_of([_outside(step.slices[k], step.dims[k]) for k in open_])
    name = view.reference.name

    def explain(at: Point, on: Numbers, value: Callable[[Term], Any]) -> str:
        for k in open_:
            piece = step.slices[k]
            start, size = value(piece.start), value(piece.size)
            last = start + (size - 1) * piece.stride
            if size > 0 and (start < 0 or last >= step.dims[k]):
                if piece.single:
                    which = f"element {start}"
                else:
                    which = f"elements {start}:{last + 1}" + (f":{piece.stride}" if piece.stride != 1 else "")
                return f"the body {what} {which} of dimension {k} of {name}, which has {step.dims[k]}"
        return f"the body {what} {name} outside"

    extra = [term for k in open_ for term in (step.slices[k].start, step.slices[k].size)]
    try:
        found = asked(kernel, body, [*spot.path, outside], spot.loops, explain=explain, extra=extra)
    except Undecided as lost:
        reason = f"where the body {what} {name} depends on {lost}"
        return Obligation(name, undecided(reason), source=spot.source)
    return about(name, found, spot.source, f"where the body {what} {name}")


def about(subject: str, found: Asked, source: str, what: str) -> Obligation:
    """An obligation for a claim about a body; where it rests on numbers that nobody knows, its refutation is none."""
    open_ = {Verdict.REFUTED: f"{what} depends on {' and '.join(found.lost)}"} if found.lost else {}
    return Obligation(
        subject, found.claim, reads=bool(found.tables), source=source, leaves_open=open_, tables=found.tables
    )
