"""Index maps as JAX traced them, rewritten as terms: piecewise quasi-affine arithmetic on integers.

Every operation is modelled or refused by name. Arithmetic of int32 and int64 is over the unbounded integers; that JAX
computes it in 32 bits is the business of the property `index_int32`. Narrower and unsigned types wrap here as they do
there, and so does a conversion to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from layoutproof.bodies import problems as body_problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.integers import DIVISIONS, applied, chosen, converted, held, literal, number_of
from layoutproof.core.element_types import element_type
from layoutproof.core.folding import constant, fold
from layoutproof.core.term import ONE, ZERO, Term
from layoutproof.ir.program import Dtype
from layoutproof.kernel.kernel import Table
from layoutproof.pallas import problems as pallas_problems
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import is_jaxs_own, opened
from layoutproof.pallas.from_jax.of_jax import JaxAtom, JaxEquation, JaxJaxpr, Params

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr, Var
    from jax.typing import ArrayLike

_INLINED = (
    "pjit",
    "jit",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "remat",
    "remat2",
    "checkpoint",
)
_MOVED = ("squeeze", "reshape", "broadcast_in_dim", "stop_gradient", "copy", "optimization_barrier")
_SILENT = ("check", "debug_callback", "debug_print")
"""Primitives that print or check and compute nothing: a failing assertion stops the kernel."""
_OF_ONE = (*_MOVED, "reduce_or", "reduce_and", "reduce_sum", "reduce_max", "reduce_min")
"""Primitives that leave a single number as it is."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a jaxpr stands: the grid, its names, and the conditions of the branches around it."""

    grid: tuple[Any, ...]
    names: tuple[str, ...]
    taken: tuple[Term, ...] = ()


class TableReference:
    """A scalar-prefetch operand (or another captured array) as an argument of an index map."""

    def __init__(self, table: str) -> None:
        self.table = table


def table_of(name: str, array: ArrayLike) -> Table:
    """A table that an index map reads, of which only the type is known; a single number has one entry."""
    dims = tuple(int(n) for n in array.shape) or (1,)
    kind = array.dtype.kind if hasattr(array.dtype, "kind") else "i"
    bits = int(getattr(array.dtype, "itemsize", 4)) * 8
    if kind == "b":
        return Table(name, dims, bits, 0, 2, signed=False, dtype="pred")
    return Table(name, dims, bits, signed=kind != "u", dtype=element_type(array.dtype))


def terms_of(
    jaxpr: Any, arguments: Sequence[Any], grid: Sequence[Any] = (), names: Sequence[str] = ()
) -> tuple[Term, ...]:
    """The results of an index map. `arguments`: a term, or a Reference, for each of its inputs.

    grid: the extents, for `num_programs`; names: the grid's, for `program_id`.
    Raises UnsupportedOp, naming the operation, for what is no integer arithmetic.
    """
    inner, consts = opened(jaxpr)
    values: dict[Any, Any] = dict(zip(inner.invars, arguments, strict=True))
    values.update(_constants(inner, consts))
    context = Context(tuple(grid), tuple(names))
    _run(inner, values, context)
    return tuple(number_of(_value(v, values)) for v in inner.outvars)


def _constants(jaxpr: JaxJaxpr, consts: Sequence[object]) -> dict[object, Term]:
    if len(jaxpr.constvars) != len(consts):
        raise UnsupportedOp(problems.CAPTURED())
    return {variable: literal(value) for variable, value in zip(jaxpr.constvars, consts, strict=True)}


def _run(jaxpr: JaxJaxpr, values: dict[object, object], context: Context) -> None:
    for equation in jaxpr.eqns:
        if equation.primitive.name in _SILENT:
            continue
        try:
            results = _results(equation, values, context)
            results = [held(r, v.aval) for r, v in zip(results, equation.outvars, strict=True)]
        except UnsupportedOp as problem:
            if getattr(equation, "effects", None):
                raise
            # the operand of a check may be anything; where the map itself needs it, it is refused
            results = [problem] * len(equation.outvars)
        values.update(zip(equation.outvars, results, strict=True))


def _value(atom: JaxAtom, values: Mapping[Any, Any]) -> Any:
    found = literal(atom.val) if hasattr(atom, "val") else values[atom]
    if isinstance(found, UnsupportedOp):
        raise found
    return found


def _results(equation: JaxEquation, values: Mapping[Any, Any], context: Context) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    if name == "get":
        return [_read(equation, values, context)]
    operands = [_value(atom, values) for atom in equation.invars]
    if name in _INLINED:
        return _inlined(params, operands, context)
    if name == "cond":
        return _branches(params, operands, context)
    if name == "program_id":
        if params["axis"] >= len(context.names):
            raise UnsupportedOp(problems.PROGRAM_ID_AROUND())
        return [Term("name", context.names[params["axis"]])]
    if name == "num_programs":
        if not context.names:
            raise UnsupportedOp(problems.NUM_PROGRAMS_AROUND())
        extent = context.grid[params["axis"]]
        return [Term("int", extent) if type(extent) is int else extent.evaluate(lambda n: Term("name", n))]
    if name in _OF_ONE and all(getattr(v.aval, "shape", None) == () for v in (*equation.outvars, *equation.invars)):
        return operands[:1]
    if name == "convert_element_type":
        return [converted(operands[0], equation.invars[0].aval.dtype, params["new_dtype"])]
    if name == "multiple_of" and len(params["values"]) == 1:
        return [Term("multiple_of", number_of(operands[0]), Term("int", int(params["values"][0])))]
    if name == "integer_pow" and params["y"] >= 1:
        power = operands[0]
        for _ in range(params["y"] - 1):
            power = Term("*", power, operands[0])
        return [power]
    if any(isinstance(o, TableReference) for o in operands):
        raise UnsupportedOp(pallas_problems.OPERATION_ON_TABLE(name))
    # an operation that has no operands is none of these
    dtype = cast(Dtype, equation.invars[0].aval.dtype if equation.invars else None)
    return [applied(name, operands, dtype)]


def results_of(equation: JaxEquation, values: Mapping[Var, Term]) -> list[Term]:
    """The results of one equation of single numbers outside of any grid. values: of its variables, as terms."""
    return _results(equation, values, Context((), ()))


def called(equation: JaxEquation, operands: Sequence[Term]) -> ClosedJaxpr | None:
    """The jaxpr that an equation hands its operands to; None where it is an operation."""
    params = equation.params
    if equation.primitive.name not in _INLINED or _division(params, operands) is not None:
        return None
    return params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))


def _division(params: Params, operands: Sequence[Term]) -> Term | None:
    """The quotient or rest by a positive number: JAX writes it out with div, sign, select; the name says it better."""
    known = DIVISIONS.get(str(params.get("name", "")))
    jaxs = "jaxpr" in params and is_jaxs_own(params["jaxpr"])
    by = constant(operands[1]) if known and jaxs and len(operands) == 2 else None
    return fold(known, operands[0], operands[1]) if known and by is not None and by > 0 else None


def _inlined(params: Mapping[str, Any], operands: list[Any], context: Context) -> list[Any]:
    divided = _division(params, operands)
    if divided is not None:
        return [divided]
    jaxpr = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
    if jaxpr is None:
        raise UnsupportedOp(body_problems.CALL_WITHOUT_BODY(params.get("name", "a function")))
    inner, consts = opened(jaxpr)
    values: dict[Any, Any] = dict(zip(inner.invars, operands, strict=True))
    values.update(_constants(inner, consts))
    _run(inner, values, context)
    return [_value(v, values) for v in inner.outvars]


def _branches(params: Mapping[str, Any], operands: list[Any], context: Context) -> list[Any]:
    which, *rest = operands
    count = len(params["branches"])
    sides = []
    for k, branch in enumerate(params["branches"]):
        inner, consts = opened(branch)
        values: dict[Any, Any] = dict(zip(inner.invars, rest, strict=True))
        values.update(_constants(inner, consts))
        taken = chosen(which, [Term("==", ZERO, ZERO if j == k else ONE) for j in range(count)])
        _run(inner, values, replace(context, taken=(*context.taken, taken)))
        sides.append([_value(v, values) for v in inner.outvars])
    return [chosen(which, cases) for cases in zip(*sides, strict=True)]


def _read(equation: JaxEquation, values: Mapping[object, object], context: Context) -> Term:
    from jax.tree_util import tree_unflatten

    table = _value(equation.invars[0], values)
    if not isinstance(table, TableReference):
        raise UnsupportedOp(problems.READ_NO_TABLE())
    transforms = tree_unflatten(equation.params["tree"], equation.invars[1:])
    indices: list[Term] = []
    for transform in transforms if isinstance(transforms, tuple | list) else [transforms]:
        if not hasattr(transform, "indices"):
            raise UnsupportedOp(problems.READ_THROUGH(table.table, type(transform).__name__))
        for index in transform.indices:
            if hasattr(index, "start"):
                raise UnsupportedOp(problems.READ_SLICE(table.table))
            indices.append(Term("int", index) if isinstance(index, int) else number_of(_value(index, values)))
    for taken in context.taken:
        # a read in an untaken branch does not count: an entry that exists stands for it
        indices = [fold("select", taken, index, ZERO) for index in indices]
    return Term("read", Term("name", table.table), *(indices or [ZERO]))
