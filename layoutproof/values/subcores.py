"""Primitives of the subcores of SparseCores: places by lists, masks that pack, loops without order, barriers.

Read from jax/_src/pallas/mosaic/sc_primitives.py (jax 0.10.2 and 0.12.0.1); the names are those of `bodies.subcores`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from layoutproof.ir.program import Equation, planted
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import Known
from layoutproof.values.memory import ElementView
from layoutproof.values.movement import numbers_of
from layoutproof.values.references import (
    Array,
    add_to,
    elements_at,
    index_of,
    load,
    mask_of,
    masked_load,
    places_of,
    store,
    through,
    touched,
    view_of,
)
from layoutproof.values.refusals import OutOfBounds
from layoutproof.values.state import Rule, Walking


def _listed(on: Walking, view: ElementView, indices: Sequence[Shaped], held: Array | None) -> ElementView:
    """The elements of a view at lists of places, one list for each dimension; -1 where a mask leaves one out."""
    at = np.broadcast_arrays(*(np.asarray(index_of(on, index)) for index in indices))
    inside = np.ones(at[0].shape, bool)
    for places, extent in zip(at, view.shape, strict=True):
        inside &= (places >= 0) & (places < extent)
    on.inside = on.inside and bool(inside.all())
    if not (inside if held is None else inside | ~held).all():
        raise OutOfBounds(f"an element of a list of places, of {list(view.shape)}")
    flat = places_of(view)[tuple(np.where(inside, places, 0) for places in at)]
    found = np.where(inside if held is None else inside & held, flat, -1)
    return ElementView(view.memory, found, found.shape)


def _gather(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`load_gather`."""
    reference, transforms, indices, mask = planted(equation.params["tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    held = _held(on, mask, indices)
    view = _listed(on, view, indices, held)
    touched(on, view, False)
    return [load(on, view) if held is None else masked_load(on, view, held, None)]


def _held(on: Walking, mask: Shaped | None, indices: Sequence[Shaped]) -> Array | None:
    shape = np.broadcast_shapes(*(tuple(index.shape) for index in indices))
    return mask_of(on, mask, shape)


def _scatter(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`store_scatter`, and `addupdate_scatter`, which adds what all lanes have for a place."""
    reference, transforms, indices, value, mask = planted(equation.params["tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    held = _held(on, mask, indices)
    view = _listed(on, view, indices, held)
    touched(on, view, True)
    _put(on, view, value, bool(equation.params["add"]))
    return []


def _put(on: Walking, view: ElementView, value: Shaped, add: bool) -> None:
    """Stores elements, or adds them; places of -1 are left out."""
    if add:
        add_to(on, view, value)
        return
    at = places_of(view).reshape(-1)
    lanes = np.flatnonzero(at >= 0)
    if np.unique(at[lanes]).size < lanes.size:
        raise on.refuse("two lanes that store to one place: their order is not defined")
    store(on, ElementView(view.memory, at[lanes], lanes.shape), elements_at(on, value, lanes))


def _addressed(
    on: Walking, equation: Equation, operands: list[Shaped], before: int
) -> tuple[ElementView, Array | None]:
    """The view, and the mask. before: operands before those that the view is made of."""
    masked = bool(equation.params["has_mask"])
    rest = operands[before : len(operands) - masked]
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], rest))
    return view, mask_of(on, operands[-1], view.shape) if masked else None


def _load_expanded(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`load_expanded`: the elements from the first on go to where the mask holds; elsewhere nothing is defined."""
    view, mask = _addressed(on, equation, operands, 1)
    if mask is not None:
        packed = np.full(view.shape, -1)
        packed[mask] = places_of(view).reshape(-1)[: mask.sum()]
        view = ElementView(view.memory, packed, packed.shape)
    touched(on, view, False)
    return [load(on, view) if mask is None else masked_load(on, view, mask, None)]


def _store_compressed(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`store_compressed`, `addupdate_compressed`: elements where the mask holds are put one after the other."""
    view, mask = _addressed(on, equation, operands, 2)
    if on.is_used(equation.outvars[0]):
        raise on.refuse("what a store of a subcore gives of what was there")
    at = places_of(view)
    if mask is not None:
        packed = np.full(view.shape, -1)
        packed[mask] = at.reshape(-1)[: mask.sum()]
        at = packed
    view = ElementView(view.memory, at, at.shape)
    touched(on, view, True)
    _put(on, view, operands[1], bool(equation.params["add"]))
    return [operands[1]]


def _barrier(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`subcore_barrier`: waits for all subcores of the core."""
    if on.lockstep is None:
        raise on.refuse("a barrier of subcores outside of a kernel over them")
    within = prod(extent for _, extent in on.mesh[1:])
    assert on.device is not None
    first = on.device // within * within
    on.lockstep.meets(on, range(first, first + within))
    return []


def _parallel_loop(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`parallel_loop`: its iterations one after the other; that they have no order is a premise (`body_races`)."""
    lower, upper, step, consts, carry = planted(equation.params["tree"], operands)
    first, end, by = numbers_of(on, [lower, upper, step], "a bound of a loop")
    held = list(carry)
    for k in range(first, end, by):
        held = on.run(equation.params["jaxpr"], [*consts, Known(np.asarray(k, np.int32)), *held])
    return held


PRIMITIVES: dict[str, Rule] = {
    "sc_gather": _gather,
    "sc_scatter": _scatter,
    "sc_load": _load_expanded,
    "sc_swap": _store_compressed,
    "sc_barrier": _barrier,
    "sc_parallel_loop": _parallel_loop,
}
