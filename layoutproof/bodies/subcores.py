"""Primitives of the subcores of SparseCores: places by lists, masks that pack, loops without order, barriers.

Read from jax/_src/pallas/mosaic/sc_primitives.py (jax 0.10.2 and 0.12.0.1). Its primitives begin with `sc_` here, since
some have the names of others (`adapter.name_of`).
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.control import looped
from layoutproof.bodies.effects import Access, Mask, View
from layoutproof.bodies.memory import gather, load, through, view_of
from layoutproof.bodies.passes import BodyValue, Pass, Rule, as_array
from layoutproof.bodies.values import Index, Lost, Value, dims_of, maybe
from layoutproof.core.folding import all_of, any_of, negation
from layoutproof.core.term import Term
from layoutproof.ir.program import Equation, Transform, planted


def _anywhere(on: Pass, value: Value) -> Term:
    """The condition that some element of a value is undefined."""
    return value.undefined(tuple(on.witness(extent) for extent in value.dims))


def _gather(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`load_gather`: an element of each place, where the mask holds."""
    reference, transforms, indices, mask = planted(equation.params["tree"], operands)
    view = _places(on, reference, transforms, indices)
    return [load(on, view, equation.outvars[0], mask)]


def _scatter(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`store_scatter`, and `addupdate_scatter`, which adds atomically."""
    reference, transforms, indices, value, mask = planted(equation.params["tree"], operands)
    view = _places(on, reference, transforms, indices)
    if mask is not None:
        on.masks.append(Mask(mask, on.spot()))
    on.effects.append(Access("add" if equation.params["add"] else "write", view, on.spot(), value, mask))
    return []


def _places(on: Pass, reference: BodyValue, transforms: Sequence[Transform], indices: Sequence[Value]) -> View:
    view = through(on, view_of(on, reference), tuple(transforms))
    if view.dims is None:
        raise UnsupportedOp(problems.PLACES_IN_VIEW())
    return View(view.reference, (*view.steps, gather(on, view.dims, tuple(indices))))


def _addressed(on: Pass, equation: Equation, operands: list[BodyValue], before: int) -> tuple[View, Value | None]:
    """The view, and the mask. before: operands before those that the view is made of."""
    masked = bool(equation.params["has_mask"])
    rest = operands[before : len(operands) - masked]
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], rest))
    return view, as_array(operands[-1]) if masked else None


def _packed_mask(mask: Value) -> Value:
    """Which elements of memory a mask lets be touched that packs them: as many as it holds for, from the first on."""
    why = problems.MASK_COUNT()
    return Value(mask.dims, mask.dtype, why, None if mask.defined else lambda index: maybe(why))


def _load_expanded(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`load_expanded`: the elements from the first on go to where the mask holds; elsewhere nothing is defined."""
    view, mask = _addressed(on, equation, operands, 1)
    if mask is None:
        return [load(on, view, equation.outvars[0])]
    access = Access("read", view, on.spot(), mask=_packed_mask(mask))
    on.effects.append(access)
    on.masks.append(Mask(mask, access.spot))
    why = problems.MASK_LETS_IN()

    def undefined(index: Index) -> Term:
        try:
            left_out = negation(mask.number(index))
        except Lost as lost:
            left_out = maybe(str(lost))
        return any_of([left_out, mask.undefined(index), all_of([maybe(why), _leaf(on, access, view)])])

    return [Value(dims_of(equation.outvars[0].aval), equation.outvars[0].aval.dtype, why, undefined)]


def _leaf(on: Pass, access: Access, view: View) -> Term:
    """The condition that some element that a load may find is undefined."""
    return Term("leaf", access.name, *(on.witness(extent) for extent in view.dims or ()))


def _store_compressed(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`store_compressed`, `addupdate_compressed`: elements where the mask holds are put one after the other."""
    view, mask = _addressed(on, equation, operands, 2)
    value = as_array(operands[1])
    kind = "add" if equation.params["add"] else "write"
    if mask is None:
        on.effects.append(Access(kind, view, on.spot(), value))
        return [Value(value.dims, value.dtype, problems.STORE_RESULT())]
    on.masks.append(Mask(mask, on.spot()))
    why = problems.MASK_LETS_OUT()
    packed = Value(
        value.dims,
        value.dtype,
        why,
        None if value.defined else lambda index: all_of([_anywhere(on, value), maybe(why)]),
    )
    on.effects.append(Access(kind, view, on.spot(), packed, _packed_mask(mask)))
    return [Value(value.dims, value.dtype, problems.STORE_RESULT())]


def _barrier(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`subcore_barrier`."""
    on.barriers.append(on.spot())
    return []


def _parallel_loop(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`parallel_loop`: iterations in any order; carried values go from one to the next."""
    lower, upper, step, consts, carry = planted(equation.params["tree"], operands)
    return looped(on, equation.params["jaxpr"], (lower, upper, step), list(consts), list(carry))


def _lanes(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """An operation over all lanes at once: its numbers are unknown."""
    why = problems.RESULT_OF_OPERATION(equation.primitive.name)
    given = [o for o in operands if isinstance(o, Value) and not o.defined]

    def undefined(index: Index) -> Term:
        return all_of([any_of([_anywhere(on, one) for one in given]), maybe(why)])

    return [Value(dims_of(v.aval), v.aval.dtype, why, undefined if given else None) for v in equation.outvars]


PRIMITIVES: dict[str, Rule] = {
    "sc_gather": _gather,
    "sc_scatter": _scatter,
    "sc_load": _load_expanded,
    "sc_swap": _store_compressed,
    "sc_barrier": _barrier,
    "sc_parallel_loop": _parallel_loop,
    **dict.fromkeys(
        (
            "sc_bitcast", "sc_unique", "sc_masked_cummax", "sc_masked_cummin", "sc_masked_cumsum", "sc_masked_sort",
            "sc_pack", "sc_unpack", "sc_all_reduce_population_count", "sc_all_reduce_ffs",
        ),
        _lanes,
    ),
}  # fmt: skip
