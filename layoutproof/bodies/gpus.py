"""Primitives of Mosaic GPU that speak to other GPUs: semaphores in global memory, and the memory of all devices.

Read from jax/_src/pallas/mosaic_gpu/primitives.py and lowering.py (jax 0.10.2). A semaphore of a scope is one for each
program of the grid, that of `get_global` one for each device; both are filled with zeros before each launch
(`pallas_call_registration.py`). A signal is sent when all that its warpgroup did before is done. `multimem_store`
writes to all devices, and `multimem_load_reduce` reads of all of them.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.copies import PRIMITIVES as COPIES
from layoutproof.bodies.effects import Access, Signal, View
from layoutproof.bodies.memory import allocated, load, through, view_of
from layoutproof.bodies.other_devices import all_along, amount_of, on_devices
from layoutproof.bodies.passes import BodyValue, Pass, Rule, as_array
from layoutproof.core.message import restated
from layoutproof.ir.program import Equation, planted


def _store_on_all(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`multimem_store`."""
    value, own, *rest = operands
    view = through(on, view_of(on, own), planted(equation.params["transforms_tree"] or (), rest))
    every = on_devices(on, view, all_along(on, equation.params["collective_axes"]))
    on.effects.append(Access("write", every, on.spot(), as_array(value)))
    return []


def _reduce_of_all(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`multimem_load_reduce`, whose sum, or maximum, no term says."""
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"] or (), operands[1:]))
    every = on_devices(on, view, all_along(on, equation.params["collective_axes"]))
    return [load(on, every, equation.outvars[0])]


def _signal_all(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`semaphore_signal_multicast`."""
    reference, transforms, amount = planted(equation.params["args_tree"], operands)
    every = all_along(on, equation.params["collective_axes"])
    view = through(on, view_of(on, reference), transforms)
    on.effects.append(Signal(view, amount_of(on, amount), on.spot(), device=every))
    return []


def _global(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`get_global`: semaphores that are there as long as the kernel runs, whatever loop asks for them."""
    if not on.kernel.remote or equation.outvars[0].aval.memory != "semaphore":
        said, why = problems.PRIMITIVE("get_global"), problems.UNMODELLED_GLOBAL_MEMORY()
        raise UnsupportedOp(restated(f"{said} ({why})", said, why=why))
    made = allocated(on, equation.outvars[0].aval).reference
    found = replace(made, of_device=True, fresh_in=())
    on.references[on.references.index(made)] = found
    return [View(found)]


def _of_scope(name: str) -> Rule:
    """A primitive of Mosaic GPU that is `name` of Pallas, with a scope; one of this GPU alone hears no other one."""

    def rule(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
        if equation.params.get("memory_scope", "sys") != "sys" and any(extent != 1 for _, extent in on.kernel.axes):
            raise UnsupportedOp(problems.SCOPE_OF_GPU())
        return list(COPIES[name](on, equation, operands))

    return rule


PRIMITIVES: dict[str, Rule] = {
    "multimem_store": _store_on_all,
    "multimem_load_reduce": _reduce_of_all,
    "semaphore_signal_multicast": _signal_all,
    "get_global": _global,
    "mgpu_semaphore_signal": _of_scope("semaphore_signal"),
    "mgpu_semaphore_wait": _of_scope("semaphore_wait"),
}
