"""Copies between memories and devices, and semaphores."""

from __future__ import annotations

from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import BodyReference, Mask, Signal, StartedCopy, View, Wait
from layoutproof.bodies.memory import through, view_of
from layoutproof.bodies.other_devices import amount_of, device_of
from layoutproof.bodies.passes import BodyValue, Pass, Rule
from layoutproof.bodies.values import Value, number
from layoutproof.core.element_types import element_type
from layoutproof.core.folding import FALSE, TRUE
from layoutproof.core.term import ONE, ZERO
from layoutproof.ir.program import Equation, planted

BARRIER = "barrier"
"""The name of the semaphore that all kernels of one `collective_id` have in common (`get_barrier_semaphore`)."""


def _start(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    source, target, semaphore, sent, device = _parts(on, equation, operands)
    to, adds = device_of(on, equation.params.get("device_id_type", "LOGICAL"), device), bool(equation.params.get("add"))
    mask = _moved(source, target)
    if mask is not None:
        on.masks.append(Mask(mask, on.spot()))
    on.effects.append(StartedCopy(source, target, semaphore, on.spot(), sent, to, adds, mask))
    return []


def _moved(source: View, target: View) -> Value | None:
    """Which elements a copy moves whose lists of places have some that are ignored; None = all."""
    steps = [(view, step) for view in (source, target) for step in view.steps if step.held is not None]
    if not steps:
        return None
    if len(steps) > 1 or target.dims is None or steps[0][1] is not steps[0][0].steps[-1]:
        raise UnsupportedOp(problems.LIST_AND_MORE())
    ((_, step),) = steps
    doubt = None if step.held.defined else lambda index: step.held.undefined(index[:1])
    return Value(target.dims, step.held.dtype, lambda index: step.held.number(index[:1]), doubt)


def _wait(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    before = len(on.effects)
    source, _, semaphore, _, _ = _parts(on, equation, operands)
    # only the size of a wait's view counts, and nothing is read to know it
    del on.effects[before:]
    on.writes_to_here = min(on.writes_to_here, before)
    on.effects.append(Wait(source, semaphore, on.spot()))
    return []


def _parts(on: Pass, equation: Equation, operands: list[BodyValue]) -> tuple[View, View, View, View | None, Any]:
    """Source, target, semaphore, the sender's semaphore, device: in the order in which JAX stores them."""
    parts = planted(equation.params["tree"], operands)
    if len(parts) == 5:
        source, target, semaphore, sent, device = parts
    else:
        raise UnsupportedOp(problems.COPY_PARTS(len(parts)))
    return (
        view_of(on, source),
        view_of(on, target),
        view_of(on, semaphore),
        None if sent is None else view_of(on, sent),
        device,
    )


def _barrier(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    found = next((r for r in on.references if r.name == BARRIER), None)
    if found is None:
        found = BodyReference(BARRIER, "semaphore", (), element_type(equation.outvars[0].aval.dtype), "semaphore")
        on.references.append(found)
    return [View(found)]


def _signal(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    reference, transforms, amount, device, core = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    to = device_of(on, equation.params.get("device_id_type", "LOGICAL"), device, core)
    on.effects.append(Signal(view, amount_of(on, amount), on.spot(), device=to))
    return []


def _semaphore_wait(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    parts = planted(equation.params["args_tree"], operands)
    reference, transforms, amount = parts[:3]
    takes = [amount_of(on, said) for said in parts[3:]]
    keeps = any(one not in (TRUE, ONE) for one in takes)
    if keeps and not (on.kernel.remote and all(one in (TRUE, ONE, FALSE, ZERO) for one in takes)):
        raise UnsupportedOp(problems.WAIT_KEEPS())
    view = through(on, view_of(on, reference), transforms)
    on.effects.append(Signal(view, amount_of(on, amount), on.spot(), wait=True, keeps=keeps))
    return []


def _read(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    return [number(on.unknown(problems.SEMAPHORE_COUNT(), v.aval.dtype), v.aval.dtype) for v in equation.outvars]


PRIMITIVES: dict[str, Rule] = {
    "dma_start": _start,
    "dma_wait": _wait,
    "get_barrier_semaphore": _barrier,
    "semaphore_signal": _signal,
    "semaphore_wait": _semaphore_wait,
    "semaphore_read": _read,
}
