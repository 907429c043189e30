"""Index maps as JAX traced them, rewritten as terms: piecewise quasi-affine arithmetic on integers.

Every operation is modelled or refused by name. Arithmetic of int32 and int64 is over the unbounded integers; that JAX
computes it in 32 bits is the business of the property `index_int32`. What is narrower or unsigned wraps here as it does
there, and so does a conversion to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layoutproof.core.element_types import element_type
from layoutproof.core.term import CONDITIONS, Term
from layoutproof.kernel.kernel import Table
from layoutproof.pallas.bit_terms import UnsupportedOp, bitwise, constant, folded, shifted, wrapped
from layoutproof.pallas.from_jax.adapter import is_jaxs_own, opened

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
_OF_ONE = (*_MOVED, "reduce_or", "reduce_and", "reduce_sum", "reduce_max", "reduce_min")
"""What leaves a single number as it is."""
ONE, ZERO = Term("int", 1), Term("int", 0)


class Reference:
    """A scalar-prefetch operand (or another captured array) as an argument of an index map."""

    def __init__(self, table: str) -> None:
        self.table = table


def table_of(name: str, array: Any) -> Table:
    """What an index map reads, of which nothing but its type is known; a single number has one entry."""
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
    context = (tuple(grid), tuple(names))
    _run(inner, values, context)
    return tuple(_number(_value(v, values)) for v in inner.outvars)


def _constants(jaxpr: Any, consts: Sequence[Any]) -> dict[Any, Any]:
    if len(jaxpr.constvars) != len(consts):
        raise UnsupportedOp("a captured value that is not known when tracing")
    return {variable: literal(value) for variable, value in zip(jaxpr.constvars, consts, strict=True)}


def _run(jaxpr: Any, values: dict[Any, Any], context: tuple[Any, Any]) -> None:
    for equation in jaxpr.eqns:
        results = [_held(r, v.aval) for r, v in zip(_results(equation, values, context), equation.outvars, strict=True)]
        for variable, result in zip(equation.outvars, results, strict=True):
            values[variable] = result


def _held(value: Any, aval: Any) -> Any:
    """A result as its type holds it: truth values as conditions, numbers that may wrap as what is left of them."""
    kind = getattr(getattr(aval, "dtype", None), "kind", "")
    if not isinstance(value, Term):
        return value
    if kind == "b":
        return _condition(value)
    if kind not in "iu" or value.op in ("name", "read", "select", "min", "max"):
        return value
    bits = 8 * aval.dtype.itemsize
    if constant(value) is None and kind == "i" and bits >= 32:
        return value
    return wrapped(value, bits, kind == "i")


def _value(atom: Any, values: Mapping[Any, Any]) -> Any:
    return literal(atom.val) if hasattr(atom, "val") else values[atom]


def literal(value: Any) -> Any:
    """A number or truth value that is known when tracing, as a term. UnsupportedOp for arrays and floats."""
    if getattr(value, "shape", ()) != ():
        raise UnsupportedOp(f"an array of shape {value.shape} captured by the index map")
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, bool) or kind == "b":
        return Term("==", ZERO, ZERO if bool(value) else ONE)
    if isinstance(value, float) or (kind in "fcV" and kind):
        raise UnsupportedOp(f"the number {value}, which is no integer")
    return Term("int", int(value))


def _results(equation: Any, values: Mapping[Any, Any], context: tuple[Any, Any]) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    if name == "get":
        return [_read(equation, values)]
    operands = [_value(atom, values) for atom in equation.invars]
    if name in _INLINED:
        return _inlined(params, operands, context)
    if name == "cond":
        return _branches(params, operands, context)
    if name == "program_id":
        if params["axis"] >= len(context[1]):
            raise UnsupportedOp("program_id, which here is of the call around the pipeline")
        return [Term("name", context[1][params["axis"]])]
    if name == "num_programs":
        if not context[1]:
            raise UnsupportedOp("num_programs, which here is of the call around the pipeline")
        extent = context[0][params["axis"]]
        return [Term("int", extent) if type(extent) is int else extent.evaluate(lambda n: Term("name", n))]
    if name in _OF_ONE and all(getattr(v.aval, "shape", None) == () for v in (*equation.outvars, *equation.invars)):
        return operands[:1]
    if name == "convert_element_type":
        return [_converted(operands[0], equation.invars[0].aval.dtype, params["new_dtype"])]
    if name == "multiple_of" and len(params["values"]) == 1:
        return [Term("multiple_of", _number(operands[0]), Term("int", int(params["values"][0])))]
    if name == "integer_pow" and params["y"] >= 1:
        power = operands[0]
        for _ in range(params["y"] - 1):
            power = Term("*", power, operands[0])
        return [power]
    if any(isinstance(o, Reference) for o in operands):
        raise UnsupportedOp(f"the operation {name} on a whole table")
    if name in ("and", "or", "not", "xor") and equation.invars[0].aval.dtype.kind != "b":
        return [bitwise(name, operands)]
    if name in _SHIFTS:
        dtype = equation.invars[0].aval.dtype
        if name == "shift_right_arithmetic" and dtype.kind == "u":
            raise UnsupportedOp(f"an arithmetic shift of {dtype}")
        return [shifted(operands[0], operands[1], 8 * dtype.itemsize, _SHIFTS[name])]
    if name not in _OPERATIONS:
        raise UnsupportedOp(f"the operation {name}")
    return [_OPERATIONS[name](*operands)]


def _inlined(params: Mapping[str, Any], operands: list[Any], context: tuple[Any, Any]) -> list[Any]:
    known = {"floor_divide": "//", "remainder": "%"}.get(str(params.get("name", "")))
    jaxs = "jaxpr" in params and is_jaxs_own(params["jaxpr"])
    if known and jaxs and len(operands) == 2:
        by = constant(operands[1])
        if by is not None and by > 0:
            # JAX writes them out with div, sign and select; the name says it better
            return [folded(Term(known, operands[0], operands[1]))]
    jaxpr = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
    if jaxpr is None:
        raise UnsupportedOp(f"a call of {params.get('name', 'a function')} without its body")
    inner, consts = opened(jaxpr)
    values: dict[Any, Any] = dict(zip(inner.invars, operands, strict=True))
    values.update(_constants(inner, consts))
    _run(inner, values, context)
    return [_value(v, values) for v in inner.outvars]


def _branches(params: Mapping[str, Any], operands: list[Any], context: tuple[Any, Any]) -> list[Any]:
    chosen, *rest = operands
    sides = []
    for branch in params["branches"]:
        inner, consts = opened(branch)
        values: dict[Any, Any] = dict(zip(inner.invars, rest, strict=True))
        values.update(_constants(inner, consts))
        _run(inner, values, context)
        sides.append([_value(v, values) for v in inner.outvars])
    return [_chosen(chosen, cases) for cases in zip(*sides, strict=True)]


def _chosen(which: Any, cases: Sequence[Any]) -> Any:
    """The case that `which` numbers: the first for numbers below, the last for those above."""
    if len(cases) == 2 and which.op in CONDITIONS:
        return _select(which, *cases)
    result = cases[-1]
    for k, case in reversed(list(enumerate(cases[:-1]))):
        result = _select(Term("<", Term("int", k), _number(which)), case, result)
    return result


def _read(equation: Any, values: Mapping[Any, Any]) -> Term:
    from jax.tree_util import tree_unflatten

    table = _value(equation.invars[0], values)
    if not isinstance(table, Reference):
        raise UnsupportedOp("a read of something that is no table")
    transforms = tree_unflatten(equation.params["tree"], equation.invars[1:])
    indices: list[Term] = []
    for transform in transforms if isinstance(transforms, tuple | list) else [transforms]:
        if not hasattr(transform, "indices"):
            raise UnsupportedOp(f"a read of {table.table} through {type(transform).__name__}")
        for index in transform.indices:
            if hasattr(index, "start"):
                raise UnsupportedOp(f"a read of a slice of {table.table}")
            indices.append(Term("int", index) if isinstance(index, int) else _number(_value(index, values)))
    return Term("read", Term("name", table.table), *(indices or [ZERO]))


def _converted(value: Any, old: Any, new: Any) -> Any:
    if new.kind == "b":
        return _condition(value)
    if new.kind not in "iu":
        raise UnsupportedOp(f"a conversion to {new}, which is no integer")
    if old.kind == "b":
        return _number(value)
    if old.kind not in "iu":
        raise UnsupportedOp(f"a conversion from {old} to {new}")
    holds = new.itemsize > old.itemsize if new.kind == "i" and old.kind == "u" else new.itemsize >= old.itemsize
    if holds and not (new.kind == "u" and old.kind == "i"):
        return value
    return wrapped(value, 8 * new.itemsize, new.kind == "i")


def _condition(value: Any) -> Any:
    """A truth value as a condition, also one that is read from a table or was counted with."""
    return value if value.op in CONDITIONS else Term("!=", value, ZERO)


def _number(value: Any) -> Any:
    """A condition as 0 or 1, a number as it is."""
    if isinstance(value, Term) and value.op in CONDITIONS:
        return folded(Term("select", value, ONE, ZERO))
    return value


def _binary(op: str) -> Callable[[Any, Any], Term]:
    def build(left: Any, right: Any) -> Term:
        left, right = _number(left), _number(right)
        if op in ("truncdiv", "truncrem"):
            by = constant(right)
            if by is None or by <= 0:
                raise UnsupportedOp(f"a division by {right}, which is no positive constant")
        if op == "*" and constant(left) is None and constant(right) is None:
            return Term(op, left, right)
        return folded(Term(op, left, right))

    return build


def _compare(op: str, turned: bool = False) -> Callable[[Any, Any], Term]:
    def build(left: Any, right: Any) -> Term:
        left, right = _number(left), _number(right)
        return Term(op, right, left) if turned else Term(op, left, right)

    return build


def _select(condition: Any, if_false: Any, if_true: Any) -> Term:
    condition = _condition(condition)
    if if_true.op in CONDITIONS or if_false.op in CONDITIONS:
        yes = Term("and", condition, _condition(if_true))
        return Term("or", yes, Term("and", Term("not", condition), _condition(if_false)))
    return folded(Term("select", condition, if_true, if_false))


def _sign(value: Any) -> Term:
    negative = Term("select", Term("<", value, ZERO), Term("int", -1), ZERO)
    return folded(Term("select", Term("<", ZERO, value), ONE, negative))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _binary("+"),
    "sub": _binary("-"),
    "mul": _binary("*"),
    "div": _binary("truncdiv"),
    "rem": _binary("truncrem"),
    "max": _binary("max"),
    "min": _binary("min"),
    "neg": lambda a: folded(Term("-", ZERO, _number(a))),
    "sign": _sign,
    "abs": lambda a: folded(Term("max", a, Term("-", ZERO, a))),
    "clamp": lambda low, x, high: folded(Term("min", Term("max", low, x), high)),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare("<", turned=True),
    "ge": _compare("<=", turned=True),
    "eq": _compare("=="),
    "ne": _compare("!="),
    "square": lambda a: folded(Term("*", a, a)),
    "and": lambda a, b: Term("and", _condition(a), _condition(b)),
    "or": lambda a, b: Term("or", _condition(a), _condition(b)),
    "not": lambda a: Term("not", _condition(a)),
    "xor": lambda a, b: Term("!=", _number(a), _number(b)),
    "select_n": lambda which, *cases: _chosen(which, cases),
}

_SHIFTS = {"shift_left": "left", "shift_right_arithmetic": "right", "shift_right_logical": "logical"}
