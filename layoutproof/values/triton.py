"""A Pallas call for Triton: blocks are views of arrays in global memory, and programs may run in any order.

They are run one after the other here. That any order gives the same is a premise of the answer (`body_races`), but for
what atomic operations do, which commute: over the reals, as sums are compared here.
Source: jax/_src/pallas/triton/lowering.py and primitives.py, jax 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from layoutproof.ir.program import Equation, Program, Window, planted, primitive
from layoutproof.values import elementwise
from layoutproof.values.kinds import Shaped
from layoutproof.values.memory import ElementView, HeldMemory
from layoutproof.values.references import (
    add_to,
    elements_at,
    load,
    mask_of,
    places_of,
    store,
    through,
    view_of,
)
from layoutproof.values.refusals import OutOfBounds
from layoutproof.values.state import GridPosition, Rule, Walking

Array = np.ndarray[Any, Any]
OPERATIONS = ("max", "min")
"""Atomic operations beside "add" that are computed, by the names of their primitives."""


def run_programs(
    on: Walking, body: Program, grid: tuple[int, ...], counted: tuple[int, ...], blocks: Sequence[Window],
    wholes: Sequence[HeldMemory], starts: Callable[[Window, tuple[int, ...]], Sequence[tuple[int, int]]],
) -> None:  # fmt: skip
    """Runs the programs of a grid. counted: as of `GridPosition`.  wholes: of each block its array.

    starts: block, ids -> of each dimension (first element, extent) of the block.
    """
    if on.watch is not None or on.lockstep is not None:
        raise on.refuse("a kernel for Triton, program by program, or beside other devices")
    for ids in product(*(range(n) for n in grid)):
        on.programs = GridPosition(grid, ids, counted)
        on.prepared.tick(grid, ids)
        on.run(body, [_seen(whole, block, starts(block, ids)) for whole, block in zip(wholes, blocks, strict=True)])


def _seen(whole: HeldMemory, block: Window, starts: Sequence[tuple[int, int]]) -> HeldMemory | ElementView:
    """A block as a view of its array; -1 stands for the places of elements that the array does not have."""
    squeezed = any(kind == "squeezed" for kind, *_ in block.block)
    if not squeezed and all(first == 0 and extent == n for (first, extent), n in zip(starts, whole.shape, strict=True)):
        return whole
    at, inside, size = np.zeros((), np.int64), np.ones((), bool), 1
    for (first, extent), n, (kind, *_) in reversed([*zip(starts, whole.shape, block.block, strict=True)]):
        place = np.arange(first, first + extent)
        there = (place >= 0) & (place < n)
        if kind == "squeezed":
            at, inside = at + size * place[0], inside & there[0]
        else:
            row = (-1, *(1,) * at.ndim)
            at, inside = at + size * place.reshape(row), inside & there.reshape(row)
        size *= n
    return ElementView(whole, np.where(inside, at, -1), at.shape)


def _rmw(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    reference, transforms, value, mask = planted(equation.params["args_tree"], operands)
    operation = str(equation.params["atomic_type"])
    if operation != "add" and operation not in OPERATIONS:
        raise on.refuse(f"atomic_{operation}")
    integers = equation.outvars[0].aval.dtype.kind in "iu"
    if integers and equation.outvars[0].aval.shape:
        raise on.refuse(f"atomic_{operation} of an array of integers, which JAX lowers as one of floats")
    view = through(on, view_of(on, reference), transforms, clip=mask is not None)
    held = mask_of(on, mask, view.shape)
    at = places_of(view)
    if bool((at[np.ones(at.shape, bool) if held is None else held] < 0).any()):
        raise OutOfBounds("an element that an atomic operation is to change")
    if on.is_used(equation.outvars[0]):
        # which programs came before decides what it is
        raise on.refuse("what an atomic operation has found in memory")
    at = at if held is None else np.where(held, at, -1)
    whole = ElementView(view.memory, at, at.shape)
    if operation == "add" and not integers:
        add_to(on, whole, value)
    else:
        _combined(on, equation, whole, value, operation)
    return [value]


def _combined(on: Walking, equation: Equation, view: ElementView, value: Shaped, operation: str) -> None:
    """Combines elements with those of a view, one after the other where one is named twice; -1 is left out."""
    out = equation.outvars[0]
    given = Equation(primitive(operation), (out, out), (out,), {}, equation.source)
    at = places_of(view).reshape(-1)
    left = np.flatnonzero(at >= 0)
    while left.size:
        _, first = np.unique(at[left], return_index=True)
        turn, left = left[first], np.delete(left, first)
        part = ElementView(view.memory, at[turn], turn.shape)
        (found,) = elementwise.PRIMITIVES[operation](on, given, [load(on, part), elements_at(on, value, turn)])
        store(on, part, found)


def _barrier(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    return []


PRIMITIVES: dict[str, Rule] = {"atomic_rmw": _rmw, "debug_barrier_p": _barrier}
