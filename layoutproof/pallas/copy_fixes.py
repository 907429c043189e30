"""Possible fixes of copies: an earlier wait, a missing wait added, a copy that starts in more programs.

Each is a text and the kernel with exactly that change to its effects; `pallas.repairs` asks all questions of it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from layoutproof.bodies.effects import Body, Effect, Loop, Spot, StartedCopy, Wait
from layoutproof.bodies.in_flight import FlightProblem
from layoutproof.core.folding import conjuncts
from layoutproof.core.term import Term
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas import problems
from layoutproof.pallas.body_fixes import edited, guarded, line_of
from layoutproof.pallas.body_memory import program_ids

OTHERWISE = "whether it is wanted in these programs is not known"
"""The doubt about numbers where an effect happens in other programs than was written."""


def of_problem(kernel: Kernel, problem: FlightProblem) -> Iterator[KernelFix]:
    """Of one thing that goes wrong with copies."""
    body: Body = kernel.body
    waits = [e for e in body.effects if isinstance(e, Wait) and e.semaphore.reference.name == problem.semaphore]
    starts = [e for e in body.effects if isinstance(e, StartedCopy) and e.semaphore.reference.name == problem.semaphore]
    match problem.kind:
        case "in flight":
            yield from _earlier(kernel, body, problem.spot, waits)
            yield from _written(kernel, body, starts, problem.spot, waits)
        case "left":
            yield from _written(kernel, body, starts, None, waits)
        case "never":
            yield from _more_programs(kernel, body, starts)


def _earlier(kernel: Kernel, body: Body, spot: Spot, waits: Sequence[Wait]) -> Iterator[KernelFix]:
    """A wait that comes too late, before what has to wait."""
    for wait in waits:
        depth = len(wait.spot.loops)
        if wait.spot.number <= spot.number or not _same(wait.spot.loops, spot.loops[:depth]):
            continue
        before = _outermost(body, spot, wait.spot)
        under = " with its condition" if wait.spot.path else ""
        words = problems.FIX_WAIT(line_of(wait.spot), under, line_of(spot))

        def edit(body: Body, wait: Wait = wait, before: int = before) -> Body:
            kept = [e for e in body.effects if e.spot.number != wait.spot.number]
            return _with(body, kept, [wait], before)

        yield KernelFix(words, edited(kernel, edit))


def _written(
    kernel: Kernel, body: Body, starts: Sequence[StartedCopy], spot: Spot | None, waits: Sequence[Wait]
) -> Iterator[KernelFix]:
    """A wait for a copy that has none: before the effect that has to wait, else as soon as the copy is started."""
    if waits or not starts:
        return
    found = []
    for start in starts:
        if spot is not None and not (start.spot.number < spot.number and _same(start.spot.loops, spot.loops)):
            return
        number = start.spot.number + 1 if spot is None else _outermost(body, spot, start.spot)
        at = replace(start.spot, number=number)
        found.append(Wait(start.target, start.semaphore, at))
    lines = ", ".join(dict.fromkeys(line_of(start.spot) for start in starts))
    when = "after it is started" if spot is None else f"before line {line_of(spot)}"
    words = problems.FIX_NO_WAIT(lines, when, starts[0].semaphore.reference.name)

    def edit(body: Body) -> Body:
        for wait in found:
            body = _with(body, body.effects, [wait], wait.spot.number)
        return body

    yield KernelFix(words, edited(kernel, edit))


def _more_programs(kernel: Kernel, body: Body, starts: Sequence[StartedCopy]) -> Iterator[KernelFix]:
    """A copy that starts in fewer programs than wait for it."""
    tried: set[Term] = set()
    for start in starts:
        for guard in start.spot.path:
            if guard in tried:
                continue
            tried.add(guard)
            parts = conjuncts(guard)
            numbers = [e.spot.number for e in body.effects if isinstance(e, StartedCopy) and guard in e.spot.path]
            lines = ", ".join(dict.fromkeys(line_of(e.spot) for e in body.effects if e.spot.number in numbers))
            for part in parts if len(parts) > 1 else ():
                kept = [one for one in parts if one is not part]
                words = problems.FIX_STARTED(lines, _said(kernel, kept), _said(kernel, parts))
                yield KernelFix(words, guarded(kernel, numbers, [guard], kept), OTHERWISE)


def _said(kernel: Kernel, conditions: Sequence[Term]) -> str:
    said = [program_ids(kernel, one) for one in conditions]
    return " & ".join(f"({one})" if len(said) > 1 else one for one in said)


def _same(one: Sequence[Loop], other: Sequence[Loop]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _outermost(body: Body, spot: Spot, beside: Spot) -> int:
    """The number of the effect before which something that happens as `beside` does is put, to be before `spot`.

    Before the loops and conditions around `spot` that are not around the other.
    """
    loops = spot.loops[len(beside.loops) :]
    more = [c for c in spot.path if c not in beside.path]
    number = spot.number
    for effect in reversed(body.effects[: _index(body, spot)]):
        if not ((loops and loops[0] in effect.spot.loops) or (more and more[0] in effect.spot.path)):
            break
        number = effect.spot.number
    return number


def _index(body: Body, spot: Spot) -> int:
    return next(k for k, e in enumerate(body.effects) if e.spot is spot)


def _with(body: Body, effects: Sequence[Effect], more: Sequence[Effect], before: int) -> Body:
    """A body of some effects with waits before the one of a number. They take its number: only their order counts."""
    k = next((k for k, e in enumerate(effects) if e.spot.number >= before), len(effects))
    placed = [replace(wait, spot=replace(wait.spot, number=before)) for wait in more]
    return replace(body, effects=(*effects[:k], *placed, *effects[k:]))
