"""What programs of Triton share: operations on memory that no other program's comes between, and barriers of threads.

Source: jax/_src/pallas/triton/primitives.py, jax 0.10.2.
"""

from __future__ import annotations

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import Access, View
from layoutproof.bodies.memory import through, truths, view_of
from layoutproof.bodies.passes import BodyValue, Pass, Rule, as_array
from layoutproof.bodies.values import Value, dims_of
from layoutproof.ir.program import Equation, planted

OF_FLOATS = ("add", "max", "min")
"""Operations that JAX 0.10.2 lowers as those of floats for every array (`_atomic_lowering_rule`); for single numbers it
looks at their type."""


def _rmw(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    reference, transforms, value, mask = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    operation, given = str(equation.params["atomic_type"]), as_array(value)
    if given.dims and getattr(given.dtype, "kind", "") in "iu" and operation in OF_FLOATS:
        raise UnsupportedOp(problems.INTEGERS_AS_FLOATS(operation))
    return _done(on, equation, view, given, truths(mask), operation)


def _cas(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    reference, _, value = operands
    view = view_of(on, reference)
    if view.steps:
        # JAX lowers it to an operation on the first element of the array, whatever the block is
        raise UnsupportedOp(problems.CAS_OF_BLOCK())
    return _done(on, equation, view, as_array(value), None, "cas")


def _done(
    on: Pass, equation: Equation, view: View, value: Value, mask: Value | None, operation: str
) -> list[BodyValue]:
    told = on.is_used(equation.outvars[0])
    # an exchange needs nothing of what was there, and what it puts there replaces it
    kind = "write" if operation == "xchg" and not told else "add"
    on.effects.append(Access(kind, view, on.spot(), value, mask, atomic=operation, told=told))
    found = equation.outvars[0].aval
    return [Value(dims_of(found), found.dtype, problems.ATOMIC_FOUND())]


def _barrier(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """All threads of a program meet; programs do not."""
    on.barriers.append(on.spot())
    return []


PRIMITIVES: dict[str, Rule] = {"atomic_rmw": _rmw, "atomic_cas": _cas, "debug_barrier_p": _barrier}
