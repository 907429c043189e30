"""The work of a function as its jaxpr states it, and that of each of its Pallas kernels; as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    return {
        "shapes": shapes(_arrays(v.aval for v in call.invars), _arrays(v.aval for v in call.outvars)),
        "unseen": why,
        **as_data(count),
    }


def shapes(operands: Iterable[tuple[str, Sequence[int]]], results: Iterable[tuple[str, Sequence[int]]]) -> str:
    """Operands and results of a call, each as its type and sizes: by them a kernel of a text is found in the source.

    >>> shapes([("bf16", (8, 128))], [("s32", (8,))])
    'bf16[8,128] -> s32[8]'
    """
    sides = ([f"{dtype}[{','.join(map(str, dims))}]" for dtype, dims in side] for side in (operands, results))
    return " -> ".join(map(", ".join, sides))


def _arrays(avals: Iterable[object]) -> list[tuple[str, Sequence[int]]]:
    return [(element_type(getattr(each, "dtype", "")), getattr(each, "shape", ())) for each in avals]


def as_data(count: ProgramCount) -> JsonObject:
    """Its fields as JSON has them."""
    return {
        "products": {kind: asdict(each) for kind, each in count.products.items()},
        "flops": asdict(count.flops),
        "transcendentals": asdict(count.transcendentals),
    }
