"""A layout as the objects of other tools, for who builds on them: a map of isl, terms of Z3, expressions of sympy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.questions import problems
from layoutproof.registry.read import map_of, read_layout


@dataclass(frozen=True, slots=True, eq=False)
class Expressions:
    """A layout's map as expressions over unknowns. A name that a size has too gets a 0 behind it.

    Attributes:
        index: The unknown of each dimension, by name, dimension 0 first.
        replica: The unknown of each axis of replicas, by name; empty where an element has one place.
        sizes: The unknown of each size symbol, by name.
        place: The coordinate on each axis, by name, the most major first.
        offset: The offset of the element, in elements; None where the layout is no memory.
        padding: Elements allotted beyond those that there are; None where the layout is no memory.
        assumptions: Conditions: each index below its extent and at least 0, each size at least 1, each divisor in
            doubt at least 1. An index at which the map divides by 0 or less satisfies not all of them.
    """

    index: Mapping[str, Any]
    replica: Mapping[str, Any]
    sizes: Mapping[str, Any]
    place: Mapping[str, Any]
    offset: Any
    padding: Any
    assumptions: tuple[Any, ...]


def as_isl(layout: object) -> Any:
    """The map of a layout as isl has it: the relation between each element and its places.

    Args:
        layout: Text, a mapping `{language: value}`, an object that `read_layout` takes, or a map.

    Returns:
        An `islpy.Map` in islpy's default context, from the logical index to the coordinates of the range (for the
        coordinates of tiles, see `IndexMap`). Its parameters are the size symbols, each at least 1. An element with
        several replicas is related to the place of each.

    Raises:
        LayoutError: The layout cannot be read, or divides by zero.
        Undecided: isl cannot say it: the map multiplies two values that vary, or divides by one, or takes the xor of
            values without a bound.

    >>> as_isl("f32[N,5] blockspec (4, 5) (i) -> (i, 0) grid (cdiv(N, 4))")
    Map("[N] -> { [i] -> [dim0, dim1] : i >= 0 and 4i < N and 4i <= dim0 <= 3 + 4i and 0 <= dim1 <= 4 }")
    """
    from layoutproof.solvers.isl.relation import relation

    try:
        return relation(map_of(read_layout(layout)))
    except ZeroDivisionError:
        raise LayoutError(problems.DIVISION_BY_ZERO()) from None


def as_z3(layout: object) -> Expressions:
    """The map of a layout as Z3 has it: integer terms over unknowns of Z3's main context.

    Args:
        layout: Text, a mapping `{language: value}`, an object that `read_layout` takes, or a map.

    Returns:
        The terms. Add `assumptions` to a solver, and ask what you like of `place` and `offset`.

    Raises:
        LayoutError: The layout cannot be read, or divides by zero.
        Undecided: The map divides by what is never positive, or takes the xor of values that have no bound.

    >>> import z3
    >>> swizzled = as_z3("Sw<1,0,2> o 0 o (8):(1)")
    >>> solver = z3.Solver()
    >>> solver.add(*swizzled.assumptions, swizzled.place["offset"] == 4)
    >>> solver.check(), solver.model()[swizzled.index["i"]]
    (sat, 5)
    """
    from layoutproof.solvers.smt.terms import terms

    t = terms(map_of(read_layout(layout)))
    return Expressions(t.index, t.replica, t.sizes, t.place, t.offset, t.padding, t.assumptions)
