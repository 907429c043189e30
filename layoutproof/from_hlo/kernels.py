"""Pallas kernels in a compiled text, by their own bodies: a Mosaic module as an equation `pallas_call`.

The module is read as `pallas.from_mosaic` reads it for the questions about places. What it leaves to element types of
its own is written in NumPy's here, as everything else that comes of HLO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.nested import leaves
from layoutproof.from_hlo import problems
from layoutproof.from_hlo.body import EquationList
from layoutproof.from_hlo.shapes import dtype_of, like, read_shape
from layoutproof.hlotext.module import Instruction
from layoutproof.ir.program import (
    Array,
    Dimension,
    ElementType,
    Equation,
    Grid,
    Literal,
    MemRefType,
    Number,
    Program,
    Variable,
    Window,
    programs_in,
)
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_mosaic.mosaic_bodies import programs_of
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET, MosaicCall, call_of

__all__ = ["TARGET", "UNREAD", "apart", "kernel", "with_those_of"]

UNREAD = f"a custom call of {TARGET}"
"""The equation of a kernel whose module is not read."""


def kernel(body: EquationList, at: Instruction, operands: list[Any]) -> Any:
    """The results of a kernel; None where its module is of a form that is not read, and why is kept beside it."""
    call = replace(call_of(at, body.reading.file), source="")
    try:
        if call.problem:
            raise LayoutError(call.problem)
        grid, program, aliases = _read(call)
    except LayoutError as error:
        body.reading.unread.append(f"{at.name}: {error.problem}")
        return None
    shape = read_shape(at.shape)
    made = body.emit(
        "pallas_call", operands, list(leaves(shape)), at, grid_mapping=grid, jaxpr=program,
        input_output_aliases=aliases, compiler_params=None,
    )  # fmt: skip
    body.reading.kernels += 1
    return like(shape, made)


@lru_cache(maxsize=64)
def _read(call: MosaicCall) -> tuple[Grid, Program, tuple[tuple[int, int], ...]]:
    of, program, maps = programs_of(call)
    program, maps = in_numpy(program), [in_numpy(each) for each in maps]
    tables, inputs = len(of.tables), sum(o.role == "in" for o in of.operands)
    windows = tuple(
        Window(
            tuple(Dimension(b.kind, int(b.size), int(b.low)) for b in operand.block), index,
            Array(tuple(map(int, operand.dims)), dtype_of(operand.dtype)), operand.memory,
        )
        for operand, index in zip(of.operands, maps, strict=True)
    )  # fmt: skip
    if any(type(n) is not int for n in of.grid):
        raise LayoutError(problems.GRID_AT_RUN_TIME())
    scratch = tuple(v.aval for v in program.invars[tables + len(windows) :])
    grid = Grid(tuple(of.grid), 0, tables, inputs, windows, scratch, tuple(range(len(of.grid))))
    return grid, program, _aliases(of, tables)


def _aliases(of: Kernel, tables: int) -> tuple[tuple[int, int], ...]:
    """(operand, result), operands counted from the first table."""
    return tuple((a + tables, b) for a, b in of.aliases)


def in_numpy(program: Program) -> Program:
    """A program whose element types are NumPy's."""
    known: dict[Any, Any] = {}

    def converted(value: Any) -> Any:
        match value:
            case ElementType(name, kind, _):
                return dtype_of(name) if kind in "biuf" else value
            case Variable(aval):
                if value not in known:
                    known[value] = Variable(converted(aval))
                return known[value]
            case Literal(Number(number, dtype, ()), aval):
                import numpy as np

                of = converted(dtype)
                whole = getattr(of, "kind", "") in "biu"
                return Literal(np.asarray(number, of if whole else np.float64), converted(aval))
            case Literal(Number(), _):
                raise LayoutError(problems.ARRAY_OF_CONSTANTS())
            case Array(shape, dtype):
                return Array(shape, converted(dtype))
            case MemRefType(shape, dtype, memory):
                return MemRefType(shape, converted(dtype), memory)
            case Equation():
                return Equation(
                    value.primitive, tuple(map(converted, value.invars)), tuple(map(converted, value.outvars)),
                    {name: converted(each) for name, each in value.params.items()}, value.source, value.scope,
                    value.effects,
                )  # fmt: skip
            case Program():
                return Program(
                    tuple(map(converted, value.invars)), tuple(map(converted, value.eqns)),
                    tuple(map(converted, value.outvars)), tuple(map(converted, value.constvars)), value.consts,
                )  # fmt: skip
            case tuple() if type(value) is tuple:
                return tuple(map(converted, value))
            case Mapping():
                return {name: converted(each) for name, each in value.items()}
        return _rebuilt(value, converted)

    found: Program = converted(program)
    return found


def with_those_of(program: Program, source: Program) -> Program | None:
    """The same with each kernel as the source has it; None where they are not as many, or of other arrays."""
    theirs, mine = list(_kernels(source)), list(_kernels(program))
    if len(theirs) != len(mine) or list(map(_arrays, theirs)) != list(map(_arrays, mine)):
        return None
    said = dict(zip(mine, theirs, strict=True))

    def rewritten(value: Any) -> Any:
        match value:
            case Equation() if value in said:
                of = said[value]
                return Equation(of.primitive, value.invars, value.outvars, of.params, of.source, of.scope, of.effects)
            case Equation():
                params = {name: rewritten(each) for name, each in value.params.items()}
                return replace(value, params=params)
            case Program():
                return replace(value, eqns=tuple(map(rewritten, value.eqns)))
            case tuple() if type(value) is tuple:
                return tuple(map(rewritten, value))
        return value

    found: Program = rewritten(program)
    return found


def apart(one: Program, other: Program) -> tuple[Program, Program] | None:
    """Two programs without their unread kernels: what these are given is a result, and what they give an argument.

    A kernel gives the same for the same arguments, whatever it computes. So where the two are the same in this form,
    they are the same; where they differ in it, they need not, as a kernel may not look at what differs.

    None where there is no such kernel, where not both have the same ones, and where one stands in a loop or a branch.
    """
    sides = [[e for e in _kernels(program) if e.primitive.name == UNREAD] for program in (one, other)]
    keys = [[(str(e.params["config"]), *_arrays(e)) for e in side] for side in sides]
    if not sides[0] or Counter(keys[0]) != Counter(keys[1]):
        return None
    plain = [sum(e.primitive.name == UNREAD for e in program.eqns) for program in (one, other)]
    if plain != list(map(len, sides)):
        return None
    # of several that are alike the first is the first
    ordered = [
        [e for _, e in sorted(zip(k, side, strict=True), key=lambda pair: pair[0])]
        for k, side in zip(keys, sides, strict=True)
    ]
    without, also = (
        replace(
            program,
            invars=(*program.invars, *(v for e in kernels for v in e.outvars)),
            eqns=tuple(e for e in program.eqns if e.primitive.name != UNREAD),
            outvars=(*program.outvars, *(v for e in kernels for v in e.invars)),
        )
        for program, kernels in zip((one, other), ordered, strict=True)
    )
    return without, also


def _kernels(program: Program) -> Iterator[Equation]:
    """The kernels of a program, in order, nested programs included."""
    for equation in program.eqns:
        if equation.primitive.name in ("pallas_call", UNREAD):
            yield equation
        else:
            for inner in programs_in(equation):
                yield from _kernels(inner)


def _arrays(of: Equation) -> list[tuple[tuple[int, ...], str]]:
    return [(tuple(v.aval.shape), str(v.aval.dtype)) for v in (*of.invars, *of.outvars)]


def _rebuilt(value: Any, converted: Callable[[Any], Any]) -> Any:
    """A view, or another object of parts, with these converted; anything else as it is."""
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{each.name: converted(getattr(value, each.name)) for each in fields(value)})
