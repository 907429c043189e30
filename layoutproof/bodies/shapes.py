"""Operations that move elements: each says which element of which operand a place of the result holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp, wrapped
from layoutproof.bodies.passes import Pass, Rule
from layoutproof.bodies.row_major import plus, quotient, reshaped, times
from layoutproof.bodies.values import Index, Value, aligned, dims_of, extent_term, hull, span_of_type
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, fold, linear, negation
from layoutproof.core.term import ZERO, Term
from layoutproof.ir.program import Dtype, Equation

Source = Callable[[Index], Index]


def shape_of(equation: Equation, k: int = 0) -> tuple[int, ...]:
    """The shape of a result."""
    return dims_of(equation.outvars[k].aval)


def moved(operand: Value, dims: tuple[int, ...], source: Source) -> Value:
    """An array of which each element is one of another array. source: index in the result -> index in the operand."""
    return Value(
        dims,
        operand.dtype,
        lambda index: operand.number(source(index)),
        None if operand.defined else lambda index: operand.undefined(source(index)),
        span=operand.span,
    )


def _iota(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    dimension = int(equation.params["dimension"])
    dtype = equation.outvars[0].aval.dtype
    if dtype.kind not in "iu":
        return [Value(shape_of(equation), dtype, problems.IOTA_DTYPE(dtype))]
    dims, (low, high) = shape_of(equation), span_of_type(dtype)
    if dims[dimension] - 1 > high:
        # it counts on from the least number of its type
        bits, signed = 8 * dtype.itemsize, dtype.kind == "i"
        return [Value(dims, dtype, lambda index: wrapped(index[dimension], bits, signed), span=(low, high))]
    return [Value(dims, dtype, lambda index: index[dimension], span=(0, max(dims[dimension] - 1, 0)))]


def _broadcast(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand = operands[0]
    dims, to = shape_of(equation), [int(d) for d in equation.params["broadcast_dimensions"]]

    def source(index: Index) -> Index:
        return tuple(
            ZERO if extent == 1 and dims[d] != 1 else index[d] for extent, d in zip(operand.dims, to, strict=True)
        )

    return [moved(operand, dims, source)]


def _broadcast_to(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, dims = operands[0], shape_of(equation)
    return [moved(operand, dims, lambda index: aligned(operand, dims, index))]


def _reshape(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    if equation.primitive.name == "reshape" and equation.params.get("dimensions") is not None:
        raise UnsupportedOp(problems.RESHAPE_TRANSPOSES())
    operand, dims = operands[0], shape_of(equation)
    return [moved(operand, dims, lambda index: reshaped(index, dims, operand.dims))]


def _transpose(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    order = [int(d) for d in equation.params["permutation"]]

    def source(index: Index) -> Index:
        back = list(index)
        for k, d in enumerate(order):
            back[d] = index[k]
        return tuple(back)

    return [moved(operands[0], shape_of(equation), source)]


def _slice(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    starts = [int(n) for n in equation.params["start_indices"]]
    steps = [int(n) for n in equation.params["strides"] or [1] * len(starts)]
    return [
        moved(
            operands[0],
            shape_of(equation),
            lambda index: tuple(plus(times(t, by), at) for t, at, by in zip(index, starts, steps, strict=True)),
        )
    ]


def _reversed(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, turned = operands[0], {int(d) for d in equation.params["dimensions"]}
    return [
        moved(
            operand,
            operand.dims,
            lambda index: tuple(
                Term("-", extent_term(operand.dims[k] - 1), t) if k in turned else t for k, t in enumerate(index)
            ),
        )
    ]


def _concatenate(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    axis = int(equation.params["dimension"])
    ends = [*accumulate(o.dims[axis] for o in operands)]
    return [_pieces(operands, [0, *ends[:-1]], ends, axis, shape_of(equation), equation.outvars[0].aval.dtype)]


def _stacked(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    axis = int(equation.params["axis"])
    rows = [
        moved(one, (*one.dims[:axis], 1, *one.dims[axis:]), lambda index: (*index[:axis], *index[axis + 1 :]))
        for one in operands
    ]
    count = len(rows)
    dtype = equation.outvars[0].aval.dtype
    return [_pieces(rows, range(count), range(1, count + 1), axis, shape_of(equation), dtype)]


def _pieces(
    parts: Sequence[Value], starts: Sequence[int], ends: Sequence[int], axis: int, dims: tuple[int, ...], dtype: Dtype
) -> Value:
    """Arrays one behind the other along an axis."""

    def inside(k: int, index: Index) -> Index:
        return (*index[:axis], plus(index[axis], -starts[k]), *index[axis + 1 :])

    def number(index: Index) -> Term:
        at = index[axis]
        if at.op == "int":
            k = next(k for k, end in enumerate(ends) if at.args[0] < end)
            return parts[k].number(inside(k, index))
        found = parts[-1].number(inside(len(parts) - 1, index))
        for k in range(len(parts) - 2, -1, -1):
            found = Term("select", Term("<", at, extent_term(ends[k])), parts[k].number(inside(k, index)), found)
        return found

    def undefined(index: Index) -> Term:
        found = []
        for k, part in enumerate(parts):
            within = [fold("<", index[axis], extent_term(ends[k]))]
            within += [fold("<=", extent_term(starts[k]), index[axis])] if k else []
            # a part is asked about its elements only: of rows that a loop updates, each would ask about all before it
            if FALSE not in within:
                found.append(all_of([*within, part.undefined(inside(k, index))]))
        return any_of(found)

    return Value(dims, dtype, number, None if all(p.defined for p in parts) else undefined, span=hull(parts))


def _undefined_of_two(inside: Term, one: Callable[[], Term], other: Callable[[], Term]) -> Term:
    """The condition that an element is undefined that is of one array inside, and else of another one.

    one, other: the condition for the element of each, which is asked of its own elements only.
    """
    held = FALSE if inside is FALSE else one()
    rest = FALSE if inside is TRUE else other()
    return any_of([all_of([inside, held]), all_of([negation(inside), rest])])


def _pad(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, filler = operands
    config = [tuple(int(n) for n in entry) for entry in equation.params["padding_config"]]
    if any(inner for _, _, inner in config):
        raise UnsupportedOp(problems.INTERIOR_PADDING())

    def back(index: Index) -> Index:
        return tuple(plus(t, -low) for t, (low, _, _) in zip(index, config, strict=True))

    def within(index: Index) -> Term:
        parts = []
        for term, extent, (low, high, _) in zip(index, operand.dims, config, strict=True):
            parts += [fold("<=", Term("int", low), term)] if low > 0 else []
            parts += [fold("<", term, extent_term(low + extent))] if high > 0 else []
        return all_of(parts)

    def number(index: Index) -> Term:
        return Term("select", within(index), operand.number(back(index)), filler.number())

    def undefined(index: Index) -> Term:
        return _undefined_of_two(within(index), lambda: operand.undefined(back(index)), filler.undefined)

    defined = operand.defined and filler.defined
    span = hull(operands)
    return [Value(shape_of(equation), operand.dtype, number, None if defined else undefined, span=span)]


def _split(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, axis = operands[0], int(equation.params["axis"])
    sizes = [int(n) for n in equation.params["sizes"]]
    starts = [0, *accumulate(sizes)]

    def part(k: int) -> Value:
        return moved(
            operand,
            shape_of(equation, k),
            lambda index: (*index[:axis], plus(index[axis], starts[k]), *index[axis + 1 :]),
        )

    return [part(k) for k in range(len(sizes))]


def _unstacked(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, axis = operands[0], int(equation.params["axis"])

    def part(k: int) -> Value:
        return moved(operand, shape_of(equation, k), lambda index: (*index[:axis], Term("int", k), *index[axis:]))

    return [part(k) for k in range(len(equation.outvars))]


def _tile(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand = operands[0]
    dims = shape_of(equation)
    return [
        moved(
            operand,
            dims,
            lambda index: tuple(
                quotient("%", t, n) if n != m else t for t, n, m in zip(index, operand.dims, dims, strict=True)
            ),
        )
    ]


def _repeat(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    params = equation.params
    operand, dims = operands[0], shape_of(equation)
    axis, times_ = int(params["axis"]), int(params["repeats"])
    # pltpu.repeat puts whole copies one behind the other, as jnp.tile does
    extent = operand.dims[axis]
    if dims[axis] != extent * times_:
        raise UnsupportedOp(problems.REPEAT_SHAPE())
    return [moved(operand, dims, lambda i: (*i[:axis], quotient("%", i[axis], extent), *i[axis + 1 :]))]


def _rolled(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, params = operands[0], equation.params
    axis = int(params["axis"])
    shift = on.scalar(operands[1]) if len(operands) > 1 else Term("int", int(params["shift"]))
    extent, stride = operand.dims[axis], params.get("stride")

    def source(index: Index) -> Index:
        # with a stride, each row along `stride_axis` is rolled by that much more than the one before
        more = () if stride is None else (times(index[int(params["stride_axis"])], int(stride)),)
        back = index[axis]
        for by in (shift, *more):
            back = Term("-", back, by)
        return (*index[:axis], Term("%", back, extent_term(extent)), *index[axis + 1 :])

    return [moved(operand, operand.dims, source)]


def _dynamic_slice(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, *starts = operands
    dims = shape_of(equation)
    at = [clamped(on.scalar(s), n - m) for s, n, m in zip(starts, operand.dims, dims, strict=True)]
    return [moved(operand, dims, lambda index: tuple(linear([(1, t), (1, s)]) for t, s in zip(index, at, strict=True)))]


def _dynamic_update_slice(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, update, *starts = operands
    at = [clamped(on.scalar(s), n - m) for s, n, m in zip(starts, operand.dims, update.dims, strict=True)]

    def within(index: Index) -> Term:
        parts = []
        for term, start, extent, whole in zip(index, at, update.dims, operand.dims, strict=True):
            if extent != whole:
                parts.append(fold("<=", start, term))
                parts.append(fold("<", term, plus(start, extent)))
        return all_of(parts)

    def inner(index: Index) -> Index:
        return tuple(t if s.op == "int" and s.args[0] == 0 else Term("-", t, s) for t, s in zip(index, at, strict=True))

    def number(index: Index) -> Term:
        return Term("select", within(index), update.number(inner(index)), operand.number(index))

    def undefined(index: Index) -> Term:
        new, old = lambda: update.undefined(inner(index)), lambda: operand.undefined(index)
        return _undefined_of_two(within(index), new, old)

    defined = operand.defined and update.defined
    span = hull([operand, update])
    return [Value(operand.dims, operand.dtype, number, None if defined else undefined, span=span)]


def clamped(start: Term, most: int) -> Term:
    """A start moved to 0 .. most."""
    if most == 0:
        return ZERO
    if start.op == "int" and isinstance(most, int):
        return Term("int", min(max(start.args[0], 0), most))
    return Term("min", Term("max", start, ZERO), extent_term(most))


PRIMITIVES: dict[str, Rule] = {
    "iota": _iota,
    "broadcast_in_dim": _broadcast,
    "broadcast_to": _broadcast_to,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "rev": _reversed,
    "concatenate": _concatenate,
    "stack": _stacked,
    "pad": _pad,
    "split": _split,
    "unstack": _unstacked,
    "tile": _tile,
    "repeat": _repeat,
    "roll": _rolled,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
}
