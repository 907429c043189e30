"""Which program runs: its ids, and what is said of a number.

JAX counts the axes of `program_id` and `num_programs` without the dimensions that `vmap` puts in front of the grid
(jax/_src/pallas/mosaic/lowering.py `user_grid_indices`, hlo_interpreter.py, 0.10.2 and 0.12.0.1): a batched kernel is
the same kernel.
"""

from __future__ import annotations

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import WARPS
from layoutproof.bodies.integers import condition_of
from layoutproof.bodies.passes import Pass, Rule
from layoutproof.bodies.values import Span, Value, dims_of, number
from layoutproof.core.dimensions import dimension
from layoutproof.core.folding import folded
from layoutproof.core.operations import INT32
from layoutproof.core.term import ZERO, Amount, Term, size_term
from layoutproof.ir.program import Dtype, Equation
from layoutproof.kernel.scalar_memory import axis_table


def _program_id(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    axis = int(equation.params["axis"])
    if axis >= len(on.counted):
        raise UnsupportedOp(problems.PROGRAM_ID())
    name, extent = on.names[on.counted[axis]], on.grid[on.counted[axis]]
    on.asks.add(name)
    return [number(Term("name", name), equation.outvars[0].aval.dtype, _below(extent))]


def _num_programs(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    axis = int(equation.params["axis"])
    if axis >= len(on.counted):
        raise UnsupportedOp(problems.NUM_PROGRAMS())
    extent = on.grid[on.counted[axis]]
    span = (extent, extent) if type(extent) is int else (0, INT32 - 1)
    return [number(size_term(extent), equation.outvars[0].aval.dtype, span)]


def _axis_index(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    axis = equation.params["axis_name"]
    if str(axis) in on.warps:
        return [number(on.warps[str(axis)], equation.outvars[0].aval.dtype, (0, WARPS - 1))]
    if axis in on.names:
        return [axis_of(on, axis, equation.outvars[0].aval.dtype)]
    on.asks.add(axis)
    if axis not in dict(on.kernel.axes):
        raise UnsupportedOp(problems.AXIS_INDEX(axis))
    return [number(Term("read", Term("name", axis_table(axis)), ZERO), equation.outvars[0].aval.dtype)]


def axis_of(on: Pass, axis: str, dtype: Dtype) -> Value:
    """Where the program is along an axis of the grid."""
    on.asks.add(axis)
    return number(Term("name", axis), dtype, _below(on.grid[on.names.index(axis)]))


def _dimension(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """A dimension whose size is a name (`jax.export.symbolic_shape`)."""
    extent = dimension(equation.params["dim"])
    span = (extent, extent) if type(extent) is int else (0, INT32 - 1)
    return [number(size_term(extent), equation.outvars[0].aval.dtype, span)]


def _below(extent: Amount) -> Span:
    """The ids of a dimension of the grid. A dynamic grid is counted in 32 bits."""
    return 0, (extent if type(extent) is int and extent > 0 else INT32 - 1) - 1


def _multiple(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    (operand,) = operands
    by = equation.params["values"]
    if operand.dims or len(by) != 1:
        return [operand]
    on.multiples.append((on.scalar(operand), int(by[0]), on.spot()))
    undefined = None if operand.defined else operand.undefined
    return [Value((), operand.dtype, lambda index: operand.number(), undefined, span=operand.span)]


def _check(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """`checkify.check`: its first operand says that it fails."""
    failing = operands[0] if operands else None
    if isinstance(failing, Value) and not failing.dims and failing.dtype.kind == "b":
        on.checks.append((folded(condition_of(on.scalar(failing))), on.spot()))
    return _nothing(on, equation, operands)


def _nothing(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    why = problems.RESULT_OF_OPERATION(equation.primitive.name)
    return [Value(dims_of(v.aval), v.aval.dtype, why) for v in equation.outvars]


def _unmodelled(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """An operation for which the front end found no primitive; it says why."""
    raise UnsupportedOp(str(equation.params["why"]))


NUMBERS = {
    "program_id": _program_id,
    "num_programs": _num_programs,
    "axis_index": _axis_index,
    "multiple_of": _multiple,
    "dim_as_value": _dimension,
}
"""Primitives that give a number of the running program."""

PRIMITIVES: dict[str, Rule] = {
    **NUMBERS,
    "unmodelled": _unmodelled,
    "check": _check,
    **dict.fromkeys(
        (
            "add_dependency", "debug_callback",
            "debug_print", "delay", "trace_start", "trace_stop", "trace_value", "prng_seed", "prng_random_bits",
        ),
        _nothing,
    ),
}  # fmt: skip
