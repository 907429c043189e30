"""The work of a function as its jaxpr states it, and that of each of its Pallas kernels; as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import element_type
from layoutproof.ir.program import Equation, Program, programs_in
from layoutproof.ir.work import ProgramCount, count_of
from layoutproof.mosaic.unseen import unseen

_LOADS = frozenset(("get", "masked_load", "load"))


def of_source(program: Program) -> JsonObject:
    """{"products": flops of products on all devices, "kernels": one of each kernel}, as `with_source` reads it.

    A kernel has the shapes of its operands and results, by which it is found in a compiled text; its work each time;
    and `unseen`, why a simulation of its cycles says nothing, empty where it does.
    """
    return {
        "products": asdict(count_of(program).product_flops),
        "kernels": [_kernel(each) for each in _calls(program)],
    }


def _calls(program: Program) -> Iterator[Equation]:
    for equation in program.eqns:
        if equation.primitive.name == "pallas_call":
            yield equation
            continue
        for inside in programs_in(equation):
            yield from _calls(inside)


def _kernel(call: Equation) -> JsonObject:
    count = count_of(Program((), (call,), ()))
    body, grid = call.params.get("jaxpr"), call.params.get("grid_mapping")
    why = unseen(body) if isinstance(body, Program) else ["its body is not read"]
    if grid is None:
        why.append("its grid is not read")
    elif any(type(n) is not int for n in grid.extents):
        why.append("the grid depends on the running program")
    elif any(e.primitive.name in _LOADS for w in grid.windows for e in w.index_map.eqns):
        why.append("its blocks depend on a table, which the simulation takes to hold 0")
    return {"shapes": shapes(call), "unseen": why, **as_data(count)}


def shapes(call: Equation) -> str:
    """Operands and results of a call, as `kernel_work.shapes_of` has them of a text."""
    sides = ([v.aval for v in call.invars], [v.aval for v in call.outvars])
    return " -> ".join(", ".join(_array(aval) for aval in side) for side in sides)


def _array(aval: object) -> str:
    dims, dtype = getattr(aval, "shape", ()), getattr(aval, "dtype", "")
    return f"{element_type(dtype)}[{','.join(map(str, dims))}]"


def as_data(count: ProgramCount) -> JsonObject:
    """Its fields as JSON has them."""
    return {
        "products": {kind: asdict(each) for kind, each in count.products.items()},
        "flops": asdict(count.flops),
        "transcendentals": asdict(count.transcendentals),
    }
