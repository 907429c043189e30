"""Branches, loops, regions and calls: MLIR's scf and func dialects.

Meaning: https://mlir.llvm.org/docs/Dialects/SCFDialect. A loop has the form that JAX gives it, so that one rule
finds what its counter is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.ir.program import (
    Array,
    Atom,
    Equation,
    Program,
    Variable,
    element_type_named,
    primitive,
)
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_equations import (
    ALLOCATIONS,
    Found,
    Make,
    MosaicBlock,
    MosaicOperation,
    MosaicView,
    Writer,
    aval_of,
    literal,
    result,
    whole,
)

MOST_NESTED = 100
"""Regions and calls inside of each other."""

_BOOL = element_type_named("pred")


def _only(region: Sequence[MosaicBlock]) -> MosaicBlock:
    if len(region) != 1:
        raise UnsupportedOp(problems.REGION_BLOCKS())
    return region[0]


def _programs_of(
    *written: tuple[Writer, Sequence[Variable], Sequence[Atom]],
) -> tuple[list[Variable], list[Program]]:
    """The programs of branches or of a loop, with the same inputs: the values that any of them uses.

    written: (writer, further inputs, results).
    """
    outer = list(dict.fromkeys(v for below, _, _ in written for v in below.inputs))
    made = []
    for below, own, out in written:
        inputs = tuple(below.inputs.get(v) or Variable(v.aval) for v in outer)
        made.append(Program((*inputs, *own), tuple(below.equations), tuple(out)))
    return outer, made


def _numbers(found: Sequence[Atom | MosaicView]) -> list[Atom]:
    if any(isinstance(part, MosaicView) for part in found):
        raise UnsupportedOp(problems.HANDED_REFERENCE())
    return [part for part in found if not isinstance(part, MosaicView)]


def _if(on: Writer, operation: MosaicOperation) -> Found:
    which = on.value(operation.operands[0])
    yes, no = operation.regions[0], operation.regions[1]
    known = whole(which)
    if known is not None:
        region = yes if known else no
        return on.inline(_only(region), ()) if region else []
    written = []
    for region in (no, yes):
        if region:
            below, _, out = on.inner(_only(region), ())
            written.append((below, list[Variable](), _numbers(out)))
        else:
            written.append((on.below(), [], []))
    outer, branches = _programs_of(*written)
    return _several(on, operation, "cond", [which, *outer], branches=tuple(branches))


def _several(on: Writer, operation: MosaicOperation, name: str, operands: Sequence[Atom], **params: object) -> Found:
    made = [Variable(result(operation, k)) for k in range(len(operation.types))]
    on.equations.append(Equation(primitive(name), tuple(operands), tuple(made), params, on.place))
    return list(made)


def _switch(on: Writer, operation: MosaicOperation) -> Found:
    """The branch that a number picks; the first region is for every other number."""
    which = on.value(operation.operands[0])
    cases = operation.numbers("cases")
    other, *regions = map(_only, operation.regions)
    if cases != tuple(range(len(regions))):
        raise UnsupportedOp(problems.SWITCH())
    known = whole(which)
    if known is not None:
        return on.inline(regions[known] if 0 <= known < len(regions) else other, ())
    below = on.emit("lt", [which, literal(0, which.aval.dtype)], Array((), _BOOL))
    index = on.emit("select_n", [below, which, literal(len(regions), which.aval.dtype)], Array((), which.aval.dtype))
    written = []
    for block in (*regions, other):
        inner, _, out = on.inner(block, ())
        written.append((inner, list[Variable](), _numbers(out)))
    outer, branches = _programs_of(*written)
    return _several(on, operation, "cond", [index, *outer], branches=tuple(branches))


def _for(on: Writer, operation: MosaicOperation) -> Found:
    """A loop from a number to another one, as JAX has it: `scan` where both are known, `while` elsewhere."""
    first, last, step = (on.value(n) for n in operation.operands[:3])
    inits = _numbers([on.known(n) for n in operation.operands[3:]])
    block = _only(operation.regions[0])
    start, end, by = whole(first), whole(last), whole(step)
    if by is not None and by <= 0:
        raise UnsupportedOp(problems.LOOP_STEP())
    length = None if start is None or end is None or by is None else max(0, -(-(end - start) // by))
    if length == 0:
        return list(inits)
    counter, carried = Variable(first.aval), [Variable(i.aval) for i in inits]
    below, _, out = on.inner(block, [counter, *carried])
    assert isinstance(counter.aval, Array)
    following = below.emit("add", [counter, _given(below, step)], counter.aval)
    results = [following, *_numbers(out)]
    if length is not None:
        outer, (program,) = _programs_of((below, [counter, *carried], results))
        params: dict[str, Any] = {
            "jaxpr": program,
            "length": length,
            "num_consts": len(outer),
            "num_carry": 1 + len(inits),
        }
        return _looped(on, operation, "scan", [*outer, first, *inits], counter.aval, params)
    # the bound is carried, as JAX does
    bound, within, limit = Variable(last.aval), Variable(last.aval), Variable(first.aval)
    go_on = Variable(Array((), _BOOL))
    asked = Equation(primitive("lt"), (limit, within), (go_on,), {}, on.place)
    unused = [Variable(v.aval) for v in carried]
    condition = Program((limit, within, *unused), (asked,), (go_on,))
    outer, (program,) = _programs_of((below, [counter, bound, *carried], [following, bound, *results[1:]]))
    params = {"cond_jaxpr": condition, "cond_nconsts": 0, "body_jaxpr": program, "body_nconsts": len(outer)}
    return _looped(on, operation, "while", [*outer, first, last, *inits], counter.aval, params, last.aval)


def _given(below: Writer, outer: Atom) -> Atom:
    found = below.brought(outer)
    assert not isinstance(found, MosaicView)
    return found


def _looped(
    on: Writer,
    operation: MosaicOperation,
    name: str,
    operands: Sequence[Atom],
    counter: Array,
    params: Mapping[str, object],
    *more: object,
) -> Found:
    """A loop's equation; its results beyond those of the operation are unused."""
    made = [Variable(result(operation, k)) for k in range(len(operation.types))]
    hidden = [Variable(aval) for aval in (counter, *more)]
    on.equations.append(Equation(primitive(name), tuple(operands), (*hidden, *made), params, on.place))
    return list(made)


def _while(on: Writer, operation: MosaicOperation) -> Found:
    inits = _numbers([on.known(n) for n in operation.operands])
    before, after = (_only(region) for region in operation.regions)
    tested = [Variable(i.aval) for i in inits]
    asking, end, out = on.inner(before, tested)
    if end.name != "scf.condition" or [*out[1:]] != tested:
        raise UnsupportedOp(problems.LOOP_CONDITION())
    carried = [Variable(i.aval) for i in inits]
    doing, _, results = on.inner(after, carried)
    of_condition, (condition,) = _programs_of((asking, tested, _numbers(out[:1])))
    of_body, (program,) = _programs_of((doing, carried, _numbers(results)))
    return _several(
        on,
        operation,
        "while",
        [*of_condition, *of_body, *inits],
        cond_jaxpr=condition,
        cond_nconsts=len(of_condition),
        body_jaxpr=program,
        body_nconsts=len(of_body),
    )


def _region(on: Writer, operation: MosaicOperation) -> Found:
    """Memory allocated at its begin ends with it, as in `run_scoped`; without such memory it is inlined."""
    block = _only(operation.regions[0])
    fresh = [each for each in block.operations if each.name in ALLOCATIONS]
    if not fresh:
        return on.inline(block, ())
    below = on.below()
    memory = [Variable(aval_of(each.types[0])) for each in fresh]
    left = tuple(each for each in block.operations if each.name not in ALLOCATIONS)
    inner = MosaicBlock((*block.arguments, *(each.results[0] for each in fresh)), left)
    end = below.block(inner, [MosaicView(variable, variable.aval.shape) for variable in memory])
    out = _numbers([below.known(n) for n in end.operands])
    program = Program(tuple(memory), tuple(below.equations), tuple(out), tuple(below.inputs.values()))
    return _several(on, operation, "run_scoped", list(below.inputs), jaxpr=program)


def _called(on: Writer, operation: MosaicOperation) -> Found:
    name = str(operation.attributes.get("callee", "")).removeprefix("@")
    if name not in on.functions or on.depth > MOST_NESTED:
        raise UnsupportedOp(problems.CALLED_FUNCTION_MISSING(name[:60]))
    # the same function may be called again: its values are its own each time
    below = on.below()
    given = [below.brought(on.known(n)) for n in operation.operands]
    end = below.block(on.functions[name], given)
    outer = list(below.inputs)
    out = _numbers([below.known(n) for n in end.operands])
    program = Program(tuple(below.inputs.values()), tuple(below.equations), tuple(out))
    return _several(on, operation, "jit", outer, jaxpr=program)


OPERATIONS: Mapping[str, Make] = {
    "scf.if": _if,
    "scf.index_switch": _switch,
    "scf.for": _for,
    "scf.while": _while,
    **dict.fromkeys(("tpu.region", "tpu.trace"), _region),
    "func.call": _called,
}
