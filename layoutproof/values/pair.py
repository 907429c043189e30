"""Two programs of the same inputs, the one that is asked about and its reference, and runs of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from layoutproof.ir.program import Literal, Program, Variable
from layoutproof.values.control import called
from layoutproof.values.elementwise import kind_of
from layoutproof.values.kinds import D, NumberKind, Shaped
from layoutproof.values.known import Known, data_of
from layoutproof.values.refusals import NotModelled, OutOfBounds
from layoutproof.values.state import Auditing
from layoutproof.values.walk import Prepared, Walk

DRAWN = 4
"""Integers that were not given are drawn below it where they decide places or branches."""
PLACES_DRAWN = 3
"""How often they are drawn."""

Sides = tuple[Program, Program]
Retrace = Callable[[list[tuple[int, ...]]], Program | None]
"""The reference at other shapes of the inputs; None where it cannot be traced there."""


@dataclass(frozen=True)
class Input:
    """One array of the arguments. name: for people.  value: where it is given; None of what is drawn.

    span: the least and the greatest of integers that are drawn, where that is assumed.  sharding: of JAX, with which
    the function that is asked about is traced, and not its reference.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    value: Any = None
    span: tuple[int, int] | None = None
    sharding: Any = None


@dataclass(frozen=True)
class Pair:
    """Two programs of the same inputs, and which of their outputs are compared.

    sides: the one that is asked about, and its reference.  prepared: the programs of all walks.  outputs: positions of
    those that are compared, None for all.
    """

    sides: Sides
    inputs: Sequence[Input]
    prepared: Prepared
    outputs: Sequence[int] | None = None

    @property
    def elements(self) -> int:
        """Elements of the arguments, and of the results of both."""
        return elements_of(self.sides, self.inputs)

    @property
    def undrawn(self) -> list[Input]:
        """The inputs of integers and truth values that were not given."""
        return [i for i in self.inputs if i.value is None and kind_of(i.dtype) in "ib"]

    def position(self, compared: int) -> int:
        """The position of an output among all, of one among those that are compared."""
        return compared if self.outputs is None else self.outputs[compared]

    def compared(self, position: int) -> int:
        """The position of an output among those that are compared."""
        return position if self.outputs is None else list(self.outputs).index(position)

    def given(self, inputs: Sequence[Input]) -> Pair:
        """The same pair of other inputs."""
        return replace(self, inputs=inputs)

    def draw(self, numbers: NumberKind[D]) -> list[D | Known]:
        """The inputs: the given values, and a draw for the rest."""
        return drawn(numbers, self.inputs)

    def walked(
        self, numbers: NumberKind[D], side: int, values: Sequence[Shaped], audit: Auditing | None = None
    ) -> tuple[list[D], Walk]:
        """The outputs of one side that are compared, and the walk that gave them.

        side: 0 is the one that is asked about, 1 its reference.  values: the inputs.  audit: as of `Walk`.

        Raises:
            NotModelled: Of the reference also for an access out of bounds; its words say whose it is.
            OutOfBounds: Of the side that is asked about.
        """
        walk = Walk(numbers, self.prepared, audit)
        try:
            with np.errstate(all="ignore"):
                results = walk.run(self.sides[side], values)
                wanted = range(len(results)) if self.outputs is None else self.outputs
                return [data_of(numbers, results[k]) for k in wanted], walk
        except (NotModelled, OutOfBounds) as refusal:
            if not side:
                raise
            said = refusal.said if isinstance(refusal, OutOfBounds) else refusal.what
            raise NotModelled(f"the reference: {said}", refusal.place) from None

    def results(self, numbers: NumberKind[D], values: Sequence[Shaped]) -> tuple[list[D], list[D]]:
        """The outputs of both sides that are compared. Raises as `walked`."""
        return self.walked(numbers, 0, values)[0], self.walked(numbers, 1, values)[0]


def elements_of(sides: Sides, inputs: Sequence[Input]) -> int:
    """Elements of the arguments, and of the results of both."""
    shapes = [*(i.shape for i in inputs), *(a.shape for side in sides for a in side.out_avals)]
    return sum(map(prod, shapes))


def only(program: Program, outputs: Sequence[int]) -> Program:
    """A program of which some results alone are wanted, so that what only the others rest on is not walked over."""
    kept = tuple(v if k in outputs else Literal(np.zeros(()), v.aval) for k, v in enumerate(program.outvars))
    wanted = {v for v in kept if isinstance(v, Variable)}
    equations = []
    for equation in reversed(program.eqns):
        inner = called(equation)
        used = [k for k, v in enumerate(equation.outvars) if v in wanted]
        if inner is not None and used and len(used) < len(equation.outvars):
            (name,) = (name for name, value in equation.params.items() if value is inner)
            equation = replace(equation, params={**equation.params, name: only(inner, used)})
        if used or equation.effects:
            wanted.update(v for v in equation.invars if isinstance(v, Variable))
        equations.append(equation)
    return replace(program, outvars=kept, eqns=tuple(reversed(equations)))


def drawn(numbers: NumberKind[D], inputs: Sequence[Input]) -> list[D | Known]:
    """The given values, and a draw for the rest."""
    found: list[D | Known] = []
    for i in inputs:
        kind = kind_of(i.dtype)
        if i.value is not None and kind in "ib":
            found.append(Known(np.asarray(i.value)))
        elif i.value is not None and not hasattr(i.value, "astype"):
            found.append(Known(i.value))
        elif kind == "b":
            raise NotModelled("truth values that are data")
        elif kind == "i":
            found.append(numbers.draw(i.shape, range_of(i)))
        elif kind == "c":
            raise NotModelled("complex numbers")
        else:
            found.append(numbers.draw(i.shape))
    return found


def with_integers(inputs: Sequence[Input]) -> list[Input]:
    """The inputs with numbers for the integers that were not given."""
    rng = np.random.default_rng((17, 0))
    return [
        chosen(i, rng, i.span or (0, DRAWN - 1)) if i.value is None and kind_of(i.dtype) in "ib" else i for i in inputs
    ]


def range_of(i: Input) -> tuple[int, int]:
    """Of integers: the least and the greatest number, as is assumed, or of the type."""
    if i.span is not None:
        return i.span
    info = np.iinfo(_held(i))
    return int(info.min), int(info.max)


def _held(i: Input) -> DTypeLike:
    """The type of NumPy in which they are held."""
    return i.dtype if getattr(i.dtype, "kind", "") in "iu" else np.int8


def chosen(i: Input, rng: np.random.Generator, span: tuple[int, int]) -> Input:
    """An input of integers or truth values, with numbers from the first of `span` to the last."""
    if kind_of(i.dtype) == "b":
        return Input(i.name, i.shape, i.dtype, rng.integers(0, 2, i.shape).astype(bool))
    return Input(i.name, i.shape, i.dtype, rng.integers(*span, i.shape, endpoint=True).astype(_held(i)))
