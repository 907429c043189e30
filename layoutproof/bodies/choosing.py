"""Elements at places that numbers say: gathers, and what is ordered by its values."""

from __future__ import annotations

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.passes import Pass, Rule
from layoutproof.bodies.shapes import clamped, shape_of
from layoutproof.bodies.values import Index, Lost, Value, extent_term, maybe
from layoutproof.core.folding import FALSE, all_of, any_of, folded, linear
from layoutproof.core.term import ZERO, Term
from layoutproof.ir.program import Dtype, Equation


def _gather(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """Slices of the operand, where the last dimension of `indices` says; a place outside is moved inside, or filled."""
    operand, indices = operands
    params = equation.params
    numbers, sizes = params["dimension_numbers"], [int(n) for n in params["slice_sizes"]]
    dims = shape_of(equation)
    offsets = [int(d) for d in numbers.offset_dims]
    moved = [int(d) for d in numbers.start_index_map]
    batching = {
        int(d): int(s) for d, s in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    }
    fills = "FILL" in str(params.get("mode"))
    gone = {int(d) for d in numbers.collapsed_slice_dims} | set(batching)
    if len(indices.dims) != len(dims) - len(offsets) + 1:
        raise UnsupportedOp(problems.GATHER_SHAPE())

    def batch(index: Index) -> Index:
        return tuple(term for k, term in enumerate(index) if k not in offsets)

    def place(index: Index, some: bool) -> Index:
        inner = iter([index[d] for d in offsets])
        found = []
        for d, extent in enumerate(operand.dims):
            offset = ZERO if d in gone else next(inner)
            if d in batching:
                found.append(batch(index)[batching[d]])
            elif d not in moved:
                found.append(offset)
            elif some:
                found.append(on.witness(extent))
            else:
                start = clamped(indices.number((*batch(index), Term("int", moved.index(d)))), extent - sizes[d])
                found.append(start if d in gone else linear([(1, start), (1, offset)]))
        return tuple(found)

    def within(index: Index) -> list[Term]:
        # a fill is defined
        found = []
        for k, d in enumerate(moved if fills else ()):
            start = indices.number((*batch(index), Term("int", k)))
            found += [Term("<=", ZERO, start), Term("<=", start, extent_term(operand.dims[d] - sizes[d]))]
        return list(map(folded, found))

    def undefined(index: Index) -> Term:
        which = [indices.undefined((*batch(index), Term("int", k))) for k in range(len(moved))]
        try:
            taken = all_of([*within(index), operand.undefined(place(index, False))])
        except Lost as lost:
            taken = operand.undefined(place(index, True))
            taken = taken if taken is FALSE else all_of([taken, maybe(str(lost))])
        return any_of([*which, taken])

    defined = operand.defined and indices.defined
    dtype = equation.outvars[0].aval.dtype
    number = problems.GATHER() if fills else lambda index: operand.number(place(index, False))
    return [Value(dims, dtype, number, None if defined else undefined)]


def _sorted(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    """Where one is undefined that orders, any may stand anywhere along the dimension."""
    params = equation.params
    keys = int(params.get("num_keys", 1))
    axis = int(params["dimension"])
    return [_along(on, [*operands[:keys], one], axis, one.dims, one.dtype, problems.SORT_RESULT()) for one in operands]


def _top(on: Pass, equation: Equation, operands: list[Value]) -> list[Value]:
    (operand,) = operands
    axis = int(equation.params.get("axis", len(operand.dims) - 1)) % len(operand.dims)
    why = problems.MAXIMUM_OF_MANY()
    return [
        _along(on, [operand], axis, shape_of(equation, k), variable.aval.dtype, why)
        for k, variable in enumerate(equation.outvars)
    ]


def _along(on: Pass, parts: list[Value], axis: int, dims: tuple[int, ...], dtype: Dtype, why: str) -> Value:
    open_ = [part for part in parts if not part.defined]

    def undefined(index: Index) -> Term:
        return any_of([p.undefined((*index[:axis], on.witness(p.dims[axis]), *index[axis + 1 :])) for p in open_])

    return Value(dims, dtype, why, undefined if open_ else None)


PRIMITIVES: dict[str, Rule] = {"gather": _gather, "sort": _sorted, "top_k": _top}
