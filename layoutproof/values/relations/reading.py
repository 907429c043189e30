"""One pass over a jaxpr: floats become sums of products, integers and truth values terms as in bodies of kernels.

Memory is what it holds at this point of the program; a load takes that, a store is a choice between what is stored and
what was there. An operation that is no sum of products refuses whoever asks for an element of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np

from layoutproof.bodies import choosing, shapes
from layoutproof.bodies.arithmetic import PRIMITIVES as ARITHMETIC
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import BodyReference, View, places
from layoutproof.bodies.integers import condition_of
from layoutproof.bodies.interpreter import Interpreter
from layoutproof.bodies.memory import through, view_of
from layoutproof.bodies.passes import BodyValue, as_array
from layoutproof.bodies.row_major import reshaped
from layoutproof.bodies.shapes import shape_of
from layoutproof.bodies.values import Index, Value, aligned, dims_of, extent_term, span_of_type, takes
from layoutproof.core.dimensions import dimension
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.folding import FALSE, all_of, constant, fold, linear, negation
from layoutproof.core.products import LexicographicCall, Monomial, Sum, added
from layoutproof.core.term import ZERO, Amount, Term, size_term
from layoutproof.ir.program import (
    Array,
    Aval,
    Dtype,
    Equation,
    Literal,
    MemRefType,
    Transform,
    Transformed,
    Variable,
    planted,
)
from layoutproof.solvers.interval import Interval, IntervalNumbers, ends
from layoutproof.values.elementwise import kind_of, narrowed
from layoutproof.values.literals import literals
from layoutproof.values.relations.arrays import FloatArray, are_floats, as_floats, chosen, number, refused, tag, times

LARGE = 1e9
"""A literal of at least this magnitude is a mask value, and no number."""
LARGEST = 2**30
"""Sizes that are names are at most this: what JAX computes of them fits 32 bits."""
NARROWEST = 16
"""Bits of a float type between which and wider ones a conversion changes nothing, over the reals."""

ReadingRule = Callable[..., Sequence[BodyValue]]
"""(reading, equation, operands) -> results, of a reading or of one that knows more."""


class Reading(Interpreter):
    """The state of one pass. calls: the kernels that were met.  conversions: of floats, as (from, to).

    looped: how many loops it is in whose steps have a name.
    """

    def __init__(self, more: Mapping[str, ReadingRule] = MappingProxyType({})) -> None:
        """more: rules beside `RULES`."""
        nothing: Any = SimpleNamespace(grid=(), grid_names=(), counted=(), axes=(), tables=())
        super().__init__(nothing, induction=False)
        self.rules = {**RULES, **more}
        self.memory: dict[str, FloatArray] = {}
        self.programs: Any = None
        self.calls: list[LexicographicCall] = []
        self.looped = 0
        self.conversions: set[tuple[str, str]] = set()

    def entered(self, counter: str, steps: Term) -> None:
        """A loop is met whose step is read once, for a name. counter: that name.  steps: how many there are."""

    def constant_value(self, value: object) -> Value:
        """A number or an array of the code: floats where all are the same."""
        if _kind(value) != "f":
            return super().constant_value(value)
        numbers = np.asarray(value).astype(np.float64)
        dtype = getattr(value, "dtype", np.dtype(np.float32))
        dims = tuple(numbers.shape)
        if not numbers.size or (numbers != numbers.flat[0]).any():
            return refused("an array of the code", dims, dtype)
        try:
            return number(rational(float(numbers.flat[0])), dims, dtype)
        except UnsupportedOp as problem:
            return refused(str(problem), dims, dtype)

    def _results(self, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        equation = _with_terms(equation)
        rule = self.rules.get(equation.primitive.name)
        floats = any(isinstance(o, FloatArray) for o in operands) or any(is_float(v.aval) for v in equation.outvars)
        if rule is None and floats:
            rule = _moved if equation.primitive.name in MOVES else _refused
        if rule is None:
            return super()._results(equation, operands)
        try:
            return self._made_by(rule, equation, operands)
        except UnsupportedOp as problem:
            self.refuse(str(problem))
            return [
                refused(str(problem), dims_of(v.aval), v.aval.dtype) if is_float(v.aval)
                else Value(dims_of(v.aval), v.aval.dtype, str(problem))
                for v in equation.outvars
            ]  # fmt: skip


def shape_terms(shape: Sequence[Amount]) -> tuple[int, ...]:
    """A shape whose dimensions are ints, or terms over names of sizes; as of `dims_of`, which says no type of these."""
    return tuple(n if isinstance(n, int | Term) else size_term(dimension(n)) for n in shape)  # type: ignore[misc]


def _with_terms(equation: Equation) -> Equation:
    """The equation, with terms for dimensions that are no numbers."""
    variables = [*equation.invars, *equation.outvars]
    if all(isinstance(n, int) for v in variables for n in getattr(v.aval, "shape", ())):
        return equation

    def seen(v: Variable | Literal) -> SimpleNamespace:
        aval = v.aval
        shape = shape_terms(getattr(aval, "shape", ()))
        return SimpleNamespace(aval=replace(aval, shape=shape) if hasattr(aval, "shape") else aval)

    # all that a rule asks of an equation; nobody finds its variables in a program
    found = SimpleNamespace(
        primitive=equation.primitive, params=equation.params, effects=equation.effects,
        invars=list(map(seen, equation.invars)), outvars=list(map(seen, equation.outvars)),
    )  # fmt: skip
    return cast(Equation, found)


def bounds(extent: Term, least: int = 1) -> tuple[int, int]:
    """The least and the greatest number that an extent may be. least: that each of its names may be."""
    names = dict.fromkeys(extent.names(), Interval(least, LARGEST))
    low, high = ends(extent.evaluate(names, IntervalNumbers()))
    return max(int(low), 0), int(high)


def is_float(aval: Aval) -> bool:
    """Whether an array holds floats; a reference is none."""
    return not isinstance(aval, MemRefType) and kind_of(getattr(aval, "dtype", np.dtype(bool))) == "f"


def _kind(value: object) -> str:
    if isinstance(value, bool | int | float):
        return "f" if isinstance(value, float) else "i"
    return kind_of(value.dtype) if hasattr(value, "dtype") else ""


def rational(value: float) -> Fraction:
    """The number that a literal stands for. UnsupportedOp where it is no rational."""
    if not abs(value) < LARGE:
        raise UnsupportedOp(f"the number {value:g} as a value")
    read = literals(np.array([value]))
    if read.root[0] != 1 or read.logs[0]:
        raise UnsupportedOp(f"the number {read.text(0)}, which is no rational,")
    scale = Fraction(2) ** int(read.twos[0]) * Fraction(10) ** int(read.tens[0])
    return Fraction(int(read.numerator[0]), int(read.denominator[0])) * scale


def _refused(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    """A value that is no sum of products; it is refused only if an element is used."""
    why = f"{equation.primitive.name} at {on.source()}"
    if any(isinstance(o, View) for o in operands) or equation.effects:
        raise UnsupportedOp(why)
    return [
        refused(why, dims_of(v.aval), v.aval.dtype) if is_float(v.aval) else Value(dims_of(v.aval), v.aval.dtype, why)
        for v in equation.outvars
    ]


MOVES: Mapping[str, ReadingRule] = {
    **shapes.PRIMITIVES, "gather": choosing.PRIMITIVES["gather"], "select_n": ARITHMETIC["select_n"],
}  # fmt: skip
"""Primitives that choose and move elements: run on arrays of element indices."""


def _moved(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    parts = {k: o for k, o in enumerate(operands) if isinstance(o, FloatArray)}
    if not parts:
        return _refused(on, equation, operands)
    tagged = [tag(k, parts[k]) if k in parts else o for k, o in enumerate(operands)]
    every = [parts.get(k, cast(FloatArray, operands[0])) for k in range(len(operands))]

    def array(value: Value) -> FloatArray:
        return FloatArray(value.dims, value.dtype, lambda index: chosen(value.number(index), every))

    return [array(as_array(value)) for value in MOVES[equation.primitive.name](on, equation, tagged)]


def _of(value: FloatArray, dims: Sequence[int]) -> Callable[[Index], Sum]:
    return lambda index: value.sum(aligned(value, dims, index))


def _elementwise(of: Callable[..., Sum]) -> ReadingRule:
    def rule(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        variable = equation.outvars[0]
        if not are_floats(operands):
            return Interpreter._results(on, equation, operands) if not is_float(variable.aval) else _refused(
                on, equation, operands
            )  # fmt: skip
        dims = shape_of(equation)
        floats = operands
        return [
            FloatArray(dims, variable.aval.dtype, lambda index: of(on, *(_of(o, dims)(index) for o in floats)))
        ]  # fmt: skip

    return rule


def _divided(on: Reading, a: Sum, b: Sum) -> Sum:
    if b.undefined or len(b.numbers) != 1 or b.numbers[0].factors or b.numbers[0].when or b.numbers[0].bound:
        raise UnsupportedOp(f"a division by what is no number of the code, at {on.source()}")
    return a.times(1 / b.numbers[0].coefficient)


def _power(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    (operand,), exponent = operands, int(equation.params["y"])
    if not isinstance(operand, FloatArray):
        return Interpreter._results(on, equation, operands)
    if exponent not in (1, 2, 3):
        return _refused(on, equation, operands)

    def element(index: Index) -> Sum:
        one = operand.sum(index)
        found = one
        for _ in range(exponent - 1):
            found = times(found, one, on.named)
        return found

    return [FloatArray(operand.dims, operand.dtype, element)]


def _converted(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    operand, old, new = as_array(operands[0]), equation.invars[0].aval.dtype, equation.params["new_dtype"]
    if kind_of(new) != "f":
        return Interpreter._results(on, equation, operands)
    if isinstance(operand, FloatArray):
        if min(ELEMENT_BITS.get(element_type(d), 0) for d in (old, new)) < NARROWEST:
            return _refused(on, equation, operands)
        if str(old) != str(new):
            on.conversions.add((str(old), str(new)))
        return [FloatArray(operand.dims, new, operand.sum)]

    def element(index: Index) -> Sum:
        term = operand.number(index)
        if kind_of(old) == "b":
            term = condition_of(term)
            return Sum((Monomial(when=(term,)),) if term is not FALSE else ())
        known = constant(term)
        if known is None:
            raise UnsupportedOp(f"an integer that is no constant, as a float, at {on.source()}")
        return Sum((Monomial(Fraction(known)),) if known else ())

    return [FloatArray(operand.dims, new, element)]


def _narrowed(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    p = equation.params
    if narrowed(p):
        return _refused(on, equation, operands)
    on.conversions.add((str(equation.invars[0].aval.dtype), f"{p['exponent_bits']} and {p['mantissa_bits']} bits"))
    return list(operands)


def _names(on: Reading, extents: Sequence[int]) -> tuple[list[Term], tuple[tuple[str, Term], ...]]:
    """Names below some extents: (index, what is bound)."""
    index, bound = [], []
    for n in extents:
        if n == 1:
            index.append(ZERO)
            continue
        name = on.named("k")
        index.append(Term("name", name))
        bound.append((name, extent_term(n)))
    return index, tuple(bound)


def _counted(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    """The indices along a dimension, whose size may be a name."""
    dims, dtype, d = shape_of(equation), equation.outvars[0].aval.dtype, int(equation.params["dimension"])
    if isinstance(dims[d], int) or dtype.kind not in "iu":
        return _refused(on, equation, operands) if is_float(equation.outvars[0].aval) else Interpreter._results(
            on, equation, operands
        )  # fmt: skip
    span = 0, max(bounds(extent_term(dims[d]))[1] - 1, 0)
    if span[1] > span_of_type(dtype)[1]:
        raise UnsupportedOp(f"indices of {dtype} along a size that is a name")
    return [Value(dims, dtype, lambda index: index[d], span=span)]


def _summed(on: Reading, equation: Equation, operands: list[FloatArray]) -> Sequence[BodyValue]:
    (operand,), axes = operands, {int(a) for a in equation.params["axes"]}

    def element(index: Index) -> Sum:
        inner, bound = _names(on, [n for k, n in enumerate(operand.dims) if k in axes])
        added_, kept = iter(inner), iter(index)
        whole = operand.sum(tuple(next(added_ if k in axes else kept) for k in range(len(operand.dims))))
        return whole.over(bound)

    return [FloatArray(shape_of(equation), operand.dtype, element)]


def _running(on: Reading, equation: Equation, operands: list[FloatArray]) -> Sequence[BodyValue]:
    (operand,), axis = operands, int(equation.params["axis"])
    back = bool(equation.params.get("reverse"))

    def element(index: Index) -> Sum:
        (k,), bound = _names(on, [operand.dims[axis]])
        within = fold("<=", index[axis], k) if back else fold("<=", k, index[axis])
        whole = operand.sum((*index[:axis], k, *index[axis + 1 :]))
        return whole.under(within).over(bound)

    return [FloatArray(operand.dims, operand.dtype, element)]


def _dot(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    (contract, batch), variable = equation.params["dimension_numbers"], equation.outvars[0]
    if not is_float(variable.aval) or not are_floats(operands):
        return _refused(on, equation, operands)
    left, right = operands
    free = [
        [d for d in range(len(side.dims)) if d not in (*contract[k], *batch[k])] for k, side in enumerate((left, right))
    ]

    def element(index: Index) -> Sum:
        count = len(batch[0])
        split = count + len(free[0])
        inner, bound = _names(on, [left.dims[d] for d in contract[0]])
        sides = []
        for k, (side, outer) in enumerate(((left, index[count:split]), (right, index[split:]))):
            at: dict[int, Term] = dict(zip(batch[k], index[:count], strict=True))
            at |= dict(zip(contract[k], inner, strict=True))
            at |= dict(zip(free[k], outer, strict=True))
            sides.append(side.sum(tuple(at[d] for d in range(len(side.dims)))))
        return times(sides[0], sides[1], on.named).over(bound)

    return [FloatArray(shape_of(equation), variable.aval.dtype, element)]


def _convolved(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    p, variable = equation.params, equation.outvars[0]
    numbers = p["dimension_numbers"]
    if p.get("batch_group_count", 1) != 1 or not are_floats(operands):
        return _refused(on, equation, operands)
    image, kernel = operands
    of_image, of_kernel, of_result = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    per = kernel.dims[of_kernel[1]]
    outs = kernel.dims[of_kernel[0]] // int(p["feature_group_count"])

    def element(index: Index) -> Sum:
        inner, bound = _names(on, [per, *(kernel.dims[d] for d in of_kernel[2:])])
        feature = index[of_result[1]]
        first = fold("*", fold("//", feature, Term("int", outs)), Term("int", per))
        at = {of_image[0]: index[of_result[0]], of_image[1]: linear([(1, first), (1, inner[0])])}
        to = {of_kernel[0]: feature, of_kernel[1]: inner[0]}
        when = []
        for k, d in enumerate(of_image[2:]):
            stride, (low, _) = int(p["window_strides"][k]), p["padding"][k]
            spread, apart = int(p["lhs_dilation"][k]), int(p["rhs_dilation"][k])
            place = linear([(stride, index[of_result[2 + k]]), (apart, inner[1 + k])], -int(low))
            at[d] = fold("//", place, Term("int", spread))
            last = Term("int", (image.dims[d] - 1) * spread)
            when += [fold("<=", ZERO, place), fold("<=", place, last)]
            if spread > 1:
                when.append(fold("==", fold("%", place, Term("int", spread)), ZERO))
            to[of_kernel[2 + k]] = inner[1 + k]
        sides = (image.sum(tuple(at[d] for d in range(len(at)))), kernel.sum(tuple(to[d] for d in range(len(to)))))
        # padding is 0, whatever the kernel has there
        inside = Sum(times(*sides, on.named).under(*when).numbers, sides[0].under(*when).undefined)
        return added(inside, Sum((), sides[1].undefined)).over(bound)

    return [FloatArray(shape_of(equation), variable.aval.dtype, element)]


# memory


def inside(view: View, index: Index) -> tuple[list[Term], Index]:
    """Where an element of a reference is in a view of it: (conditions that it is, its index there)."""
    when: list[Term] = []
    for step in view.steps:
        if step.kind == "slices":
            found = []
            for piece, term, extent in zip(step.slices, index, step.dims, strict=True):
                if piece.single:
                    when.append(fold("==", term, piece.start))
                    continue
                size, off = constant(piece.size), linear([(1, term), (-1, piece.start)])
                if size is None:
                    raise UnsupportedOp("a view whose shape depends on data")
                if piece.start is ZERO and size == extent and piece.stride == 1:
                    found.append(term)
                    continue
                when += [fold("<=", ZERO, off), fold("<", off, Term("int", size * piece.stride))]
                if piece.stride > 1:
                    by = Term("int", piece.stride)
                    when.append(fold("==", fold("%", off, by), ZERO))
                    off = fold("//", off, by)
                found.append(off)
            index = tuple(found)
        elif step.kind == "reshape" and step.after is not None:
            index = reshaped(index, step.dims, step.after)
        elif step.kind == "transpose":
            index = tuple(index[d] for d in step.permutation)
        else:
            raise UnsupportedOp(f"a view through a {step.kind}")
    return when, index


def _view(
    on: Reading, value: BodyValue | Transformed, transforms: Transform | tuple[Transform | None, ...] | None
) -> View:
    return through(on, view_of(on, value), transforms)


def _loaded(on: Reading, view: View, variable: Variable) -> FloatArray:
    held = on.memory[view.reference.name]
    dims = dims_of(variable.aval)

    def element(index: Index) -> Sum:
        at = places(view, index)
        if at is None:
            raise UnsupportedOp("a load through a bitcast")
        beyond = [
            fold("or", fold("<", term, ZERO), fold("<=", Term("int", n), term))
            for term, n in zip(at, view.reference.dims, strict=True)
        ]
        # that no access is out of bounds is asked elsewhere, and shown here where it is not plain
        plain = not view.steps or all(s.start is ZERO for step in view.steps for s in step.slices)
        outside = () if plain else tuple(Monomial(when=(b,)) for b in beyond if b is not FALSE)
        return added(held.sum(at), Sum((), outside))

    return FloatArray(dims, variable.aval.dtype, element)


def _stored(on: Reading, view: View, value: FloatArray, mask: Value | None = None) -> None:
    name, before, path = view.reference.name, on.memory[view.reference.name], on.path

    def element(index: Index) -> Sum:
        when, at = inside(view, index)
        if mask is not None:
            when.append(condition_of(mask.number(aligned(mask, view.dims or (), at))))
        within = all_of([*path, *when])
        kept = Sum() if negation(within) is FALSE else before.sum(index).under(negation(within))
        if within is FALSE:
            return kept
        return added(value.sum(aligned(value, view.dims or (), at)).under(within), kept)

    on.memory[name] = FloatArray(before.dims, before.dtype, element)


def _is_held(on: Reading, view: View) -> bool:
    return view.reference.name in on.memory


def _get(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    view = _view(on, operands[0], planted(equation.params["tree"], operands[1:]))
    if not _is_held(on, view):
        return Interpreter._results(on, equation, operands)
    return [_loaded(on, view, equation.outvars[0])]


def _swap(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    view = _view(on, operands[0], planted(equation.params["tree"], operands[2:]))
    if not _is_held(on, view):
        return Interpreter._results(on, equation, operands)
    before = _loaded(on, view, equation.outvars[0])
    _stored(on, view, as_floats(operands[1]))
    return [before]


def _added_to(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    view = _view(on, operands[0], planted(equation.params["tree"], operands[2:]))
    if not _is_held(on, view):
        return Interpreter._results(on, equation, operands)
    value = as_floats(operands[1])
    variable = equation.invars[1]
    before, dims = _loaded(on, view, variable), dims_of(variable.aval)
    _stored(on, view, FloatArray(dims, variable.aval.dtype, lambda index: added(before.sum(index), value.sum(index))))
    return []


def _masked_load(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    reference, transforms, mask, other = planted(equation.params["args_tree"], operands)
    view = _view(on, reference, transforms)
    if not _is_held(on, view):
        return Interpreter._results(on, equation, operands)
    found = _loaded(on, view, equation.outvars[0])
    if mask is None:
        return [found]

    def element(index: Index) -> Sum:
        held = condition_of(mask.number(aligned(mask, found.dims, index)))
        left = negation(held)
        rest = Sum((), (Monomial(),)) if other is None else other.sum(aligned(other, found.dims, index))
        return added(found.sum(index).under(held), rest.under(left))

    return [FloatArray(found.dims, found.dtype, element)]


def _masked_swap(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    reference, transforms, value, mask = planted(equation.params["args_tree"], operands)
    view = _view(on, reference, transforms)
    if not _is_held(on, view):
        return Interpreter._results(on, equation, operands)
    before = _loaded(on, view, equation.outvars[0])
    _stored(on, view, value, mask)
    return [before]


def unwritten(dims: tuple[int, ...], dtype: Dtype) -> FloatArray:
    """Memory that was never written."""
    return FloatArray(dims, dtype, lambda index: Sum((), (Monomial(),)))


def reference_of(on: Reading, aval: MemRefType, name: str, role: str) -> View:
    """A reference; its contents are in `on.memory`."""
    return View(BodyReference(name, role, dims_of(aval), element_type(aval.dtype), aval.memory))


def _run_scoped(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    jaxpr = equation.params["jaxpr"]
    fresh = []
    for variable in jaxpr.invars:
        view = reference_of(on, variable.aval, on.named("scoped"), "fresh")
        if kind_of(getattr(variable.aval, "dtype", np.dtype(bool))) == "f":
            on.memory[view.reference.name] = unwritten(view.reference.dims, variable.aval.dtype)
        fresh.append(view)
    return on.run(jaxpr, [*operands, *fresh])


# control


def _call(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    if not any(isinstance(o, FloatArray | View) for o in operands) and not any(
        is_float(v.aval) for v in equation.outvars
    ):
        return Interpreter._results(on, equation, operands)
    params = equation.params
    jaxpr = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr", params.get("call"))))
    if jaxpr is None:
        raise UnsupportedOp(f"a call of {params.get('name', 'a function')} without its body")
    return on.run(jaxpr, operands)


def _cond(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    which, rest = as_array(operands[0]), operands[1:]
    branches = equation.params["branches"]
    said = which.number()
    said = condition_of(said) if which.dtype.kind == "b" else said
    sides = []
    for k, branch in enumerate(branches):
        taken = takes(said, k, len(branches))
        if taken is FALSE:
            continue
        with on.under(taken):
            sides.append((taken, on.run(branch, rest)))
    return [
        _joined([(taken, side[k]) for taken, side in sides], shape_of(equation, k), variable.aval)
        for k, variable in enumerate(equation.outvars)
    ]


def _joined(cases: Sequence[tuple[Term, BodyValue]], dims: tuple[int, ...], aval: Array) -> BodyValue:
    if len(cases) == 1:
        return cases[0][1]
    if not is_float(aval):

        def said(index: Index) -> Term:
            found = as_array(cases[-1][1]).number(index)
            for condition, value in reversed(cases[:-1]):
                found = fold("select", condition, as_array(value).number(index), found)
            return found

        if aval.dtype.kind not in "iu":
            raise UnsupportedOp("truth values that branches give")
        return Value(dims, aval.dtype, said)
    floats = [(taken, as_floats(value)) for taken, value in cases]
    return FloatArray(
        dims, aval.dtype, lambda index: added(*(value.sum(index).under(taken) for taken, value in floats))
    )


def _same(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    return list(operands)


def _nothing(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    if equation.outvars:
        raise UnsupportedOp(f"the primitive {equation.primitive.name}")
    return []


def _of_floats(rule: ReadingRule) -> ReadingRule:
    """A rule for arrays of floats; of other arrays the interpreter's own."""
    return lambda on, equation, operands: (rule if isinstance(operands[0], FloatArray) else Interpreter._results)(
        on, equation, operands
    )


RULES: dict[str, ReadingRule] = {
    "add": _elementwise(lambda on, a, b: added(a, b)),
    "add_any": _elementwise(lambda on, a, b: added(a, b)),
    "sub": _elementwise(lambda on, a, b: added(a, b.times(Fraction(-1)))),
    "neg": _elementwise(lambda on, a: a.times(Fraction(-1))),
    "mul": _elementwise(lambda on, a, b: times(a, b, on.named)),
    "square": _elementwise(lambda on, a: times(a, a, on.named)),
    "div": _elementwise(_divided),
    "integer_pow": _power,
    "convert_element_type": _converted,
    "reduce_precision": _narrowed,
    "reduce_sum": _of_floats(_summed),
    "cumsum": _of_floats(_running),
    "iota": _counted,
    "dot_general": _dot,
    "conv_general_dilated": _convolved,
    "get": _get,
    "swap": _swap,
    "addupdate": _added_to,
    "masked_load": _masked_load,
    "load": _masked_load,
    "masked_swap": _masked_swap,
    "run_scoped": _run_scoped,
    "cond": _cond,
    **dict.fromkeys(
        ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
         "remat", "remat2", "checkpoint", "custom_vmap_call", "custom_lin", "xla_call"),
        _call,
    ),
    **dict.fromkeys(
        ("stop_gradient", "optimization_barrier", "copy", "copy_p", "name", "pvary",
         "sharding_constraint", "mesh_cast", "layout_constraint", "pcast"),
        _same,
    ),
    **dict.fromkeys(
        ("debug_print", "debug_callback", "delay", "trace_start", "trace_stop", "trace_value", "check"), _nothing
    ),
}  # fmt: skip
"""Primitive -> (pass, equation, operands) -> results."""
