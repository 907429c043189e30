"""Copies between memories, and semaphores."""

from __future__ import annotations

from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import Copy, Signal, View, Wait
from layoutproof.bodies.memory import through, view_of
from layoutproof.bodies.values import Value, number
from layoutproof.core.term import Term
from layoutproof.ir.program import planted


def _start(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    source, target, semaphore, sent, device = _parts(on, equation, operands)
    on.effects.append(Copy(source, target, semaphore, on.spot(), sent, device))
    return []


def _wait(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    source, _, semaphore, _, device = _parts(on, equation, operands)
    on.effects.append(Wait(source, semaphore, on.spot(), device))
    return []


def _parts(on: Any, equation: Any, operands: list[Any]) -> tuple[View, View, View, View | None, str]:
    """Source, target, semaphore, the sender's semaphore, device: in the order in which JAX stores them."""
    parts = planted(equation.params["tree"], operands)
    if len(parts) == 5:
        source, target, semaphore, sent, device = parts
    else:
        raise UnsupportedOp(f"a copy of {len(parts)} parts, in a form that this version of JAX has and nobody read")
    remote = "another device" if device is not None and not _alone(on) else ""
    return (
        view_of(on, source),
        view_of(on, target),
        view_of(on, semaphore),
        None if sent is None else view_of(on, sent),
        remote,
    )


def _alone(on: Any) -> bool:
    """Whether the mesh around the kernel has one device, to which it then copies: its own."""
    return bool(on.kernel.axes) and all(extent == 1 for _, extent in on.kernel.axes)


def _signal(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    reference, transforms, amount, device, core = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    elsewhere = (
        "another device" if device is not None and not _alone(on) else "another core" if core is not None else ""
    )
    on.effects.append(Signal(view, _amount(on, amount), on.spot(), device=elsewhere))
    return []


def _semaphore_wait(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    parts = planted(equation.params["args_tree"], operands)
    reference, transforms, amount = parts[:3]
    on.effects.append(
        Signal(through(on, view_of(on, reference), transforms), _amount(on, amount), on.spot(), wait=True)
    )
    return []


def _amount(on: Any, value: Any) -> Term:
    return on.scalar(value) if isinstance(value, Value) else Term("int", int(value))


def _read(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    return [number(on.unknown("what a semaphore counts", v.aval.dtype), v.aval.dtype) for v in equation.outvars]


PRIMITIVES = {
    "dma_start": _start,
    "dma_wait": _wait,
    "semaphore_signal": _signal,
    "semaphore_wait": _semaphore_wait,
    "semaphore_read": _read,
}
