"""Every copy is waited for before what it moves is touched, every wait has its bytes, and semaphores end at 0.

Why it matters: a copy runs beside the program. What is read of its target before it is waited for is what was there
before; what is written to its source goes out in its place. A wait for bytes that nobody sends never returns, and what
is left on a semaphore when the kernel ends crashes or spoils the next one. The interpreters copy at once, or when
waited for: most of it looks right there.
Refuted by: the first program and iteration at which it goes wrong, with the element, the slot and the bytes.
Asked of the programs in their order on one core. Bytes are counted, per slot of a semaphore: one wait may take those of
many copies, and its address counts for nothing. While any byte of a slot is not waited for, any copy on it may run.
A scope (`run_scoped`) ends with nothing in flight into its memory or out of it, and with its semaphores at 0.
Example: `copy.start(); o_ref[...] = buf[...]; copy.wait()` reads `buf` while the copy into it is in flight.
Unknown: copies to and signals from other devices, barriers, semaphores handed from one kernel to another, slots that
data choose, and loops whose number of iterations data choose, where an iteration leaves something in flight.
Source: docs/pallas/tpu/distributed.md of JAX (0.10.2); `dma_wait_p` takes the bytes of its source's shape.
Fix: wait before reading, wait once for each start's bytes, a slot and a semaphore for each copy in flight.
Incident: a buffer overwritten before its copy was waited for: https://github.com/sgl-project/sglang-jax/issues/1110
Limits: Copies and semaphores of one program and its iterations; remote copies are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import Body, Copy, Signal, Wait
from layoutproof.bodies.in_flight import Problem, Walk, walked
from layoutproof.core.errors import Undecided
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas.copy_fixes import of_problem

TARGET = False
BODY = True
SETTLED_BY = "wait in the program, and under the condition, that starts a copy, for as many bytes"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One for the whole kernel, and one for each thing that is not modelled."""
    body: Body | None = kernel.body
    if body is None:
        return ()
    moving = [e for e in body.effects if isinstance(e, Copy | Wait | Signal)]
    found = not_modelled(kernel, body)
    found += list(_elsewhere(moving, kernel))
    if found:
        return tuple(found)
    figures: dict[str, object] = {
        "copies": sum(isinstance(e, Copy) for e in moving),
        "waits": sum(isinstance(e, Wait) for e in moving),
    }
    if not moving:
        return (Obligation(kernel.name, by_rule(""), source=kernel.source),)
    return (_walked(kernel, body, figures),)


def _elsewhere(moving: list[Any], kernel: Kernel) -> Iterator[Obligation]:
    moved = {e.target.reference.name for e in moving if isinstance(e, Copy)}
    moved |= {e.source.reference.name for e in moving if isinstance(e, Copy)}
    for a, b in kernel.aliases:
        pair = [kernel.inputs[a], kernel.outputs[b]] if a >= 0 else []
        if moved & {o.name for o in pair} and any(o.windowed for o in pair):
            reason = "shares its buffer with an operand that has windows: not modelled"
            yield Obligation(kernel.outputs[b].name, undecided(reason), source=kernel.source)
            return
    given = {o.name: o.role for o in kernel.operands if o.memory == "semaphore"}
    for effect in moving:
        name = effect.semaphore.reference.name
        if effect.device:
            reason = f"a semaphore that {effect.device} signals or a copy to it: not modelled"
        elif given.get(name) == "out":
            reason = "a semaphore that the kernel hands on: what waits for it is in another kernel, and not looked at"
        elif name in given or effect.semaphore.reference.role != "semaphore":
            reason = "a semaphore that the kernel is given: what it counts at first is not known"
        else:
            continue
        yield Obligation(name, undecided(reason), source=effect.spot.source)
        return


def _walked(kernel: Kernel, body: Body, figures: dict[str, object]) -> Obligation:
    proved = Obligation(kernel.name, by_rule("", by="walk"), figures=figures, source=kernel.source)
    alike = Walk(kernel, body)
    if alike.all_alike():
        return proved
    if any(type(extent) is not int for extent in kernel.grid):
        return _open(kernel, alike, "the number of programs is not known")
    try:
        walk, done = walked(kernel)
    except Undecided as lost:
        return Obligation(kernel.name, undecided(f"what is in flight depends on {lost}"), source=kernel.source)
    sure = next((p for p in walk.problems if p.sure), None)
    if sure is not None:
        return _refuted(kernel, sure)
    if walk.problems or not done:
        return _open(kernel, walk, "too many programs to walk, and what one leaves in flight the next goes on with")
    return proved


def _open(kernel: Kernel, walk: Walk, otherwise: str) -> Obligation:
    if not walk.problems:
        return Obligation(kernel.name, undecided(otherwise), source=kernel.source)
    problem = walk.problems[0]
    return Obligation(problem.subject or kernel.name, undecided(problem.what), source=problem.spot.source)


def _refuted(kernel: Kernel, problem: Problem) -> Obligation:
    point = {"program": problem.program, "iteration": problem.iteration, "element": problem.element}
    shown = {name: place for name, place in point.items() if place}
    what = problem.what if problem.what.startswith(problem.subject) else f"the body {problem.what}"
    claim = Settled(Verdict.REFUTED, what, problem.hint, "walk", shown)
    return Obligation(problem.subject, claim, source=problem.spot.source, fixes=lambda at: of_problem(kernel, problem))
