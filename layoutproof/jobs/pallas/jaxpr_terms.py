"""Index maps as JAX traced them, rewritten as terms: piecewise quasi-affine arithmetic on integers.

Every operation is modelled or refused by name. Arithmetic is over the unbounded integers; that JAX computes it in 32
bits is the business of the property `index_int32`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layoutproof.core.numbers import INTS
from layoutproof.core.term import CONDITIONS, Term, reads
from layoutproof.jobs.pallas.adapter import is_jaxs_own, opened

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
_SAME = ("squeeze", "reshape", "broadcast_in_dim", "stop_gradient", "copy", "optimization_barrier")
ONE, ZERO = Term("int", 1), Term("int", 0)


class Unreadable(Exception):
    """An index map does something that no term says; the text says what."""


class Reference:
    """A scalar-prefetch operand (or another captured array) as an argument of an index map."""

    def __init__(self, table: str) -> None:
        self.table = table


def terms_of(
    jaxpr: Any, arguments: Sequence[Any], grid: Sequence[Any] = (), names: Sequence[str] = ()
) -> tuple[Term, ...]:
    """The results of an index map. `arguments`: a term, or a Reference, for each of its inputs.

    grid: the extents, for `num_programs`; names: the grid's, for `program_id`.
    Raises Unreadable, naming the operation, for what is no integer arithmetic.
    """
    inner, consts = opened(jaxpr)
    values: dict[Any, Any] = dict(zip(inner.invars, arguments, strict=True))
    for variable, value in zip(inner.constvars, consts, strict=False):
        values[variable] = _literal(value)
    context = (tuple(grid), tuple(names))
    _run(inner, values, context)
    return tuple(_number(_value(v, values)) for v in inner.outvars)


def _run(jaxpr: Any, values: dict[Any, Any], context: tuple[Any, Any]) -> None:
    for equation in jaxpr.eqns:
        results = _results(equation, values, context)
        for variable, result in zip(equation.outvars, results, strict=True):
            values[variable] = result


def _value(atom: Any, values: Mapping[Any, Any]) -> Any:
    return _literal(atom.val) if hasattr(atom, "val") else values[atom]


def _literal(value: Any) -> Any:
    if getattr(value, "shape", ()) != ():
        raise Unreadable(f"an array of shape {value.shape} captured by the index map")
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, bool) or kind == "b":
        return Term("==", ZERO, ZERO if bool(value) else ONE)
    if isinstance(value, float) or (kind in "fcV" and kind):
        raise Unreadable(f"the number {value}, which is no integer")
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
            raise Unreadable("program_id, which here is of the call around the pipeline")
        return [Term("name", context[1][params["axis"]])]
    if name == "num_programs":
        if not context[1]:
            raise Unreadable("num_programs, which here is of the call around the pipeline")
        extent = context[0][params["axis"]]
        return [Term("int", extent) if type(extent) is int else extent.evaluate(lambda n: Term("name", n))]
    if name in _SAME and all(getattr(v.aval, "shape", None) == () for v in equation.outvars):
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
    if name in ("and", "or", "not", "xor") and equation.invars[0].aval.dtype.kind != "b":
        return [_masked(name, operands)]
    if name == "shift_right_logical":
        return [_shifted_right_logical(operands[0], operands[1], 8 * equation.invars[0].aval.dtype.itemsize)]
    if name not in _OPERATIONS:
        raise Unreadable(f"the operation {name}")
    if any(isinstance(o, Reference) for o in operands):
        raise Unreadable(f"the operation {name} on a whole table")
    return [_OPERATIONS[name](*operands)]


def _inlined(params: Mapping[str, Any], operands: list[Any], context: tuple[Any, Any]) -> list[Any]:
    known = {"floor_divide": "//", "remainder": "%"}.get(str(params.get("name", "")))
    jaxs = "jaxpr" in params and is_jaxs_own(params["jaxpr"])
    if known and jaxs and len(operands) == 2 and _constant(operands[1]) is not None:
        by = _constant(operands[1])
        if by is not None and by > 0:
            # JAX writes them out with div, sign and select; the name says it better
            return [_folded(Term(known, operands[0], operands[1]))]
    jaxpr = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
    if jaxpr is None:
        raise Unreadable(f"a call of {params.get('name', 'a function')} without its body")
    inner, consts = opened(jaxpr)
    values: dict[Any, Any] = dict(zip(inner.invars, operands, strict=True))
    values.update({v: _literal(c) for v, c in zip(inner.constvars, consts, strict=False)})
    _run(inner, values, context)
    return [_value(v, values) for v in inner.outvars]


def _branches(params: Mapping[str, Any], operands: list[Any], context: tuple[Any, Any]) -> list[Any]:
    if len(params["branches"]) != 2:
        raise Unreadable(f"a switch of {len(params['branches'])} branches")
    chosen, *rest = operands
    second = chosen if chosen.op in CONDITIONS else Term("<", ZERO, chosen)
    sides = []
    for branch in params["branches"]:
        inner, consts = opened(branch)
        values: dict[Any, Any] = dict(zip(inner.invars, rest, strict=True))
        values.update({v: _literal(c) for v, c in zip(inner.constvars, consts, strict=False)})
        _run(inner, values, context)
        sides.append([_value(v, values) for v in inner.outvars])
    return [_select(second, a, b) for a, b in zip(sides[0], sides[1], strict=True)]


def _read(equation: Any, values: Mapping[Any, Any]) -> Term:
    from jax.tree_util import tree_unflatten

    table = _value(equation.invars[0], values)
    if not isinstance(table, Reference):
        raise Unreadable("a read of something that is no table")
    transforms = tree_unflatten(equation.params["tree"], equation.invars[1:])
    indices: list[Term] = []
    for transform in transforms if isinstance(transforms, tuple | list) else [transforms]:
        if not hasattr(transform, "indices"):
            raise Unreadable(f"a read of {table.table} through {type(transform).__name__}")
        for index in transform.indices:
            if hasattr(index, "start"):
                raise Unreadable(f"a read of a slice of {table.table}")
            indices.append(Term("int", index) if isinstance(index, int) else _number(_value(index, values)))
    return Term("read", Term("name", table.table), *indices)


def _converted(value: Any, old: Any, new: Any) -> Any:
    if new.kind == "b":
        return value if value.op in CONDITIONS else Term("!=", value, ZERO)
    if new.kind not in "iu":
        raise Unreadable(f"a conversion to {new}, which is no integer")
    if old.kind == "b":
        return _number(value)
    if old.kind not in "iu":
        raise Unreadable(f"a conversion from {old} to {new}")
    holds = new.itemsize > old.itemsize if new.kind == "i" and old.kind == "u" else new.itemsize >= old.itemsize
    constant = _constant(value)
    if constant is None and (not holds or (new.kind == "u" and old.kind == "i")):
        raise Unreadable(f"a conversion from {old} to {new}, which may wrap")
    return value


def _number(value: Any) -> Any:
    """A condition as 0 or 1, a number as it is."""
    if isinstance(value, Term) and value.op in CONDITIONS:
        return _folded(Term("select", value, ONE, ZERO))
    return value


def _masked(name: str, operands: list[Any]) -> Term:
    """Bits: x & (2**k - 1) is a remainder; xor of numbers that are not negative is left to the engines that know it."""
    if name == "and":
        for value, mask in (operands, operands[::-1]):
            bits = _constant(mask)
            if bits is not None and bits >= 0 and bits & (bits + 1) == 0:
                return _folded(Term("%", value, Term("int", bits + 1)))
    raise Unreadable(f"the bitwise operation {name}")


def _constant(term: Any) -> int | None:
    return term.args[0] if isinstance(term, Term) and term.op == "int" else None


def _folded(term: Term) -> Term:
    """The term, or its value where nothing in it varies."""
    if term.op in CONDITIONS or term.names() or reads((term,)):
        return term
    return Term("int", int(term.evaluate({}, INTS)))


def _binary(op: str) -> Callable[[Any, Any], Term]:
    def build(left: Any, right: Any) -> Term:
        left, right = _number(left), _number(right)
        if op in ("truncdiv", "truncrem"):
            by = _constant(right)
            if by is None or by <= 0:
                raise Unreadable(f"a division by {right}, which is no positive constant")
        if op == "*" and _constant(left) is None and _constant(right) is None:
            return Term(op, left, right)
        return _folded(Term(op, left, right))

    return build


def _compare(op: str, turned: bool = False) -> Callable[[Any, Any], Term]:
    def build(left: Any, right: Any) -> Term:
        left, right = _number(left), _number(right)
        return Term(op, right, left) if turned else Term(op, left, right)

    return build


def _select(condition: Any, if_false: Any, if_true: Any) -> Term:
    if condition.op not in CONDITIONS:
        condition = Term("!=", condition, ZERO)
    if if_true.op in CONDITIONS or if_false.op in CONDITIONS:
        yes = Term("and", condition, if_true)
        return Term("or", yes, Term("and", Term("not", condition), if_false))
    return _folded(Term("select", condition, if_true, if_false))


def _shifted_right(value: Any, by: Any) -> Term:
    bits = _constant(by)
    if bits is None or not 0 <= bits < 32:
        raise Unreadable(f"a shift by {by}, which is no constant from 0 to 31")
    return _folded(Term("//", value, Term("int", 1 << bits)))


def _shifted_right_logical(value: Any, by: Any, width: int) -> Term:
    """Zeros come in from the left: of a negative number as if it were unsigned."""
    if _constant(by) == 0:
        return value  # type: ignore[no-any-return]
    return _shifted_right(Term("%", value, Term("int", 1 << width)), by)


def _shifted_left(value: Any, by: Any) -> Term:
    bits = _constant(by)
    if bits is None or not 0 <= bits < 32:
        raise Unreadable(f"a shift by {by}, which is no constant from 0 to 31")
    return _folded(Term("*", value, Term("int", 1 << bits)))


def _sign(value: Any) -> Term:
    negative = Term("select", Term("<", value, ZERO), Term("int", -1), ZERO)
    return _folded(Term("select", Term("<", ZERO, value), ONE, negative))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _binary("+"),
    "sub": _binary("-"),
    "mul": _binary("*"),
    "div": _binary("truncdiv"),
    "rem": _binary("truncrem"),
    "max": _binary("max"),
    "min": _binary("min"),
    "neg": lambda a: _folded(Term("-", ZERO, _number(a))),
    "sign": _sign,
    "abs": lambda a: _folded(Term("max", a, Term("-", ZERO, a))),
    "clamp": lambda low, x, high: _folded(Term("min", Term("max", low, x), high)),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare("<", turned=True),
    "ge": _compare("<=", turned=True),
    "eq": _compare("=="),
    "ne": _compare("!="),
    "and": lambda a, b: Term("and", a, b),
    "or": lambda a, b: Term("or", a, b),
    "not": lambda a: Term("not", a),
    "xor": lambda a, b: Term("!=", _number(a), _number(b)),
    "select_n": lambda which, *cases: _select(which, *_two(cases)),
    "shift_left": _shifted_left,
    "shift_right_arithmetic": _shifted_right,
}


def _two(cases: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(cases) != 2:
        raise Unreadable(f"a select of {len(cases)} cases")
    return cases
