"""Tuples, calls, branches and loops, and what is started here and waited for there."""

from __future__ import annotations

import re
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.nested import leaves
from layoutproof.from_hlo import kernels, problems
from layoutproof.from_hlo.body import NOTHING, EquationList, Rule, Value
from layoutproof.from_hlo.exchanges import ended, started
from layoutproof.from_hlo.shapes import Shape, like, read_shape
from layoutproof.hlotext.module import Instruction
from layoutproof.ir.program import Array, Atom, Literal, Opaque, Program, Variable

_OFFLOADED = re.compile(r"TODO\(b/\d+\)")
"""Targets of custom calls that do what a computation says, on a SparseCore (7x, libtpu 0.0.52)."""
_UNCHANGED = ("AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked")
"""Targets of custom calls that give what they are given (libtpu 0.0.52)."""


def _tuple(body: EquationList, at: Instruction, operands: list[Value]) -> Value:
    return tuple(operands)


def _element(body: EquationList, at: Instruction, operands: list[tuple[Value, ...]]) -> Value:
    part: Value = operands[0][at.index]
    return part


def _same(body: EquationList, at: Instruction, operands: list[Value]) -> Value | None:
    return operands[0] if len(operands) == 1 else None


def _nothing(body: EquationList, at: Instruction, operands: list[Value]) -> Value:
    return NOTHING


def _call(body: EquationList, at: Instruction, operands: list[Value]) -> Value:
    (name,) = (name for _, name in at.calls)
    return body.opened(body.reading.computation(name), operands)


def _copied(body: EquationList, at: Instruction, operands: list[Value]) -> Value:
    """A copy that is started: (the operand, the result, the context)."""
    return operands[0], operands[0], NOTHING


def _start(body: EquationList, at: Instruction, operands: list[Value]) -> Value:
    """What is started: (operands, results, contexts); the results are there as soon as all operands are.

    libtpu starts what a SparseCore does without operands, and gives them by an update (7x, libtpu 0.0.52).
    """
    (name,) = (name for _, name in at.calls)
    computation = body.reading.computation(name)
    ready = len(operands) == len(computation.parameters)
    return tuple(operands), body.opened(computation, operands) if ready else NOTHING, NOTHING


def _update(body: EquationList, at: Instruction, operands: list[Any]) -> Value:
    (given, results, _), *more = operands
    if not more:
        whole: Value = operands[0]
        return whole
    if results is not NOTHING:
        raise LayoutError(problems.OPERANDS_AGAIN(at.name), line=at.line)
    start = at
    while start.opcode == "async-update":
        start = body.instructions[start.operands[0]]
    return _start(body, start, [*given, *more])


def _done(body: EquationList, at: Instruction, operands: list[tuple[Value, ...]]) -> Value:
    result: Value = operands[0][1]
    if result is NOTHING:
        raise LayoutError(problems.OPERANDS_MISSING(at.name), line=at.line)
    return result


def _flat(value: Value) -> list[Atom]:
    return [each for each in leaves(value) if each is not NOTHING]


def _results(shape: Shape, made: tuple[Variable, ...]) -> Value:
    flat = iter(made)
    value: Value = like(shape, [next(flat) if isinstance(a, Array) else NOTHING for a in leaves(shape)])
    return value


def _arrays(program: Program) -> Program:
    """A program without tokens among what it takes and gives."""
    return Program(
        tuple(v for v in program.invars if not isinstance(v.aval, Opaque)), program.eqns,
        tuple(v for v in program.outvars if not isinstance(v.aval, Opaque)),
    )  # fmt: skip


def _while(body: EquationList, at: Instruction, operands: list[Value]) -> Value:
    called = dict(at.calls)
    condition, inner = (
        _arrays(body.reading.program(body.reading.computation(called[name]))) for name in ("condition", "body")
    )
    shape = read_shape(at.shape)
    made = body.emit(
        "while", _flat(operands[0]), [a for a in leaves(shape) if isinstance(a, Array)], at, cond_nconsts=0,
        body_nconsts=0, cond_jaxpr=condition, body_jaxpr=inner,
    )  # fmt: skip
    return _results(shape, made)


def _conditional(body: EquationList, at: Instruction, operands: list[Any]) -> Value:
    import numpy as np

    which, *given = operands
    called = at.calls
    by_name = dict(called)
    names = [name for _, name in called]
    if "true_computation" in by_name:
        names = [by_name["false_computation"], by_name["true_computation"]]
        given = given[::-1]
    elif which.aval.dtype.kind == "b":
        names, given = names[::-1], given[::-1]
    inner = [_arrays(body.reading.program(body.reading.computation(name))) for name in names]
    flat = [_flat(value) for value in given]
    branches = []
    for k, program in enumerate(inner):
        # each branch takes the operands of all
        invars = [program.invars if j == k else tuple(Variable(v.aval) for v in f) for j, f in enumerate(flat)]
        branches.append(Program(tuple(v for vs in invars for v in vs), program.eqns, program.outvars))
    if which.aval.dtype.kind != "b":
        # an index that is none takes the last branch
        zero, last = (Literal(np.asarray(n, which.aval.dtype), which.aval) for n in (0, len(names) - 1))
        below = body.one("lt", [which, zero], Array((), np.dtype(bool)), at)
        which = body.one("select_n", [below, which, last], which.aval, at)
    shape = read_shape(at.shape)
    made = body.emit(
        "cond", [which, *(v for f in flat for v in f)], [a for a in leaves(shape) if isinstance(a, Array)], at,
        branches=tuple(branches),
    )  # fmt: skip
    return _results(shape, made)


def _custom(body: EquationList, at: Instruction, operands: list[Any]) -> Value:
    if at.target == "AllocateBuffer":
        return body.one("undefined", [], read_shape(at.shape), at)
    if at.target in _UNCHANGED and len(operands) == 1:
        value: Value = operands[0]
        return value
    if _OFFLOADED.fullmatch(at.target) and len(at.calls) == 1:
        return _call(body, at, operands)
    if at.target == kernels.TARGET:
        found = kernels.kernel(body, at, operands)
        # two that are made of the same bytes are one function
        return body.unknown(at, operands, kernels.UNREAD, config=at.config) if found is None else found
    parted = {"AsyncCollectiveStart": started, "AsyncCollectiveDone": ended}.get(at.target)
    if parted is not None and (found := parted(body, at, operands)) is not None:
        return found
    return body.unknown(at, operands, f"a custom call of {at.target}")


RULES: dict[str, Rule] = {
    "tuple": _tuple,
    "get-tuple-element": _element,
    "fusion": _call,
    "call": _call,
    "while": _while,
    "conditional": _conditional,
    "custom-call": _custom,
    "copy-start": _copied,
    "copy-done": lambda body, at, operands: operands[0][0],
    "async-start": _start,
    "async-update": _update,
    "async-done": _done,
    "optimization-barrier": _same,
    "opt-barrier": _same,
    "after-all": _nothing,
    "add-dependency": lambda body, at, operands: operands[0],
}
