"""Operations over many elements: the numbers are lost, and a result is undefined where some element it needs is.

"Some element" has one name for all elements of a result: "some k makes x[0, k] or x[1, k] undefined" says what two
names would. So a chain of n reductions, as of a state that each row of a loop updates, asks about n places, not 2^n.
What says that two conditions hold at once gives each its names (`apart`).
"""

from __future__ import annotations

from layoutproof.bodies import problems
from layoutproof.bodies.passes import Pass, Rule
from layoutproof.bodies.shapes import shape_of
from layoutproof.bodies.values import Index, Value
from layoutproof.core.folding import all_of, any_of
from layoutproof.core.term import ZERO, Term
from layoutproof.ir.program import Equation


def _reduced(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    axes = {int(a) for a in equation.params["axes"]}
    name = equation.primitive.name
    operand: Value = operands[0]
    some = {} if operand.defined else {k: on.witness(operand.dims[k]) for k in sorted(axes)}

    def inner(index: Index) -> Index:
        rest = iter(index)
        return tuple(some[k] if k in axes else next(rest) for k in range(len(operand.dims)))

    def one(index: Index) -> Term:
        rest = iter(index)
        return operand.number(tuple(Term("int", 0) if k in axes else next(rest) for k in range(len(operand.dims))))

    alone = all(operand.dims[a] == 1 for a in axes) and not name.startswith("arg")
    return [
        Value(
            shape_of(equation, k),
            variable.aval.dtype,
            one if alone else problems.RESULT_OF_OPERATION(name),
            None if operand.defined else lambda index: operand.undefined(inner(index)),
        )
        for k, variable in enumerate(equation.outvars)
    ]


def _cumulative(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    operand, axis = operands[0], int(equation.params["axis"])
    backward = bool(equation.params.get("reverse"))
    k = ZERO if operand.defined else on.witness(operand.dims[axis])

    def undefined(index: Index) -> Term:
        before = Term("<=", index[axis], k) if backward else Term("<=", k, index[axis])
        return all_of([before, operand.undefined((*index[:axis], k, *index[axis + 1 :]))])

    why = problems.RESULT_OF_OPERATION(equation.primitive.name)
    return [Value(operand.dims, equation.outvars[0].aval.dtype, why, None if operand.defined else undefined)]


def _dot(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    (contract, batch) = equation.params["dimension_numbers"]
    sides = [tuple(int(d) for d in side) for side in (*contract, *batch)]
    left, right = operands[0], operands[1]
    free = [
        [d for d in range(len(side.dims)) if d not in (*sides[k], *sides[2 + k])]
        for k, side in enumerate((left, right))
    ]

    defined = left.defined and right.defined
    witnesses = [] if defined else [on.witness(left.dims[d]) for d in sides[0]]

    def undefined(index: Index) -> Term:
        count = len(sides[2])
        split = count + len(free[0])
        parts = []
        for side, outer, k in ((left, index[count:split], 0), (right, index[split:], 1)):
            if side.defined:
                continue
            at: dict[int, Term] = dict(zip(sides[2 + k], index[:count], strict=True))
            at |= dict(zip(sides[k], witnesses, strict=True))
            at |= dict(zip(free[k], outer, strict=True))
            parts.append(side.undefined(tuple(at[d] for d in range(len(side.dims)))))
        return any_of(parts)

    dtype = equation.outvars[0].aval.dtype
    return [Value(shape_of(equation), dtype, problems.PRODUCT_RESULT(), None if defined else undefined)]


PRIMITIVES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "reduce_xor", "argmax",
            "argmin",
        ),
        _reduced,
    ),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _cumulative),
    "dot_general": _dot,
}  # fmt: skip
