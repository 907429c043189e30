"""Numerical risks that a comparison over the reals does not see: large exponents, and the element types of sums.

An exponential does not overflow where its argument is at most 0: a difference from a maximum of a set that holds it,
the opposite of a square, a sum of such. A sum of n terms that is kept in a type of unit roundoff u is off by up to
n u times the sum of their magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, cast

from layoutproof.ir.program import Aval, Dtype, Equation, Literal, Program, Variable, programs_in, scan_parts

if TYPE_CHECKING:
    from layoutproof.values.kinds import Data
    from layoutproof.values.points import Points
    from layoutproof.values.state import Walking

PASSED = ("convert_element_type", "reshape", "broadcast_in_dim", "select_n", "mul", "squeeze", "transpose", "copy")
"""Operations between the addition of a carried sum and the place where it is kept."""
LOADS, STORES = ("get", "masked_load", "load"), ("swap", "masked_swap")


@dataclass(frozen=True)
class Exponent:
    """The exponentials of one place. bounded: whether no argument is above 0.

    beside: whether each is so by a maximum that also holds a number of the code, such as the 0 that it starts at: where
    the others are far below that number, all exponentials vanish.
    """

    place: str
    bounded: bool
    beside: bool


@dataclass(frozen=True)
class KeptSum:
    """One sum. place: `file:line`.  dtype: that it is kept in.  roundoff: the unit roundoff of the type.

    terms: how many are added at once; 0 where it is carried in memory from step to step.
    """

    place: str
    dtype: str
    terms: int
    roundoff: float

    @property
    def bound(self) -> float:
        """The relative error, to the sum of the magnitudes of the terms."""
        return self.terms * self.roundoff


@dataclass
class StabilityAudit:
    """The notes of one walk. sums: terms of each, by place, type, and whether memory carries it.

    exponents: of each equation with its place: all bounded, some beside, some not. Two may stand on one line, and only
    one of them vanish.
    """

    exponents: dict[tuple[str, int], tuple[bool, bool, bool]] = field(default_factory=dict)
    sums: dict[tuple[str, Any, bool], int] = field(default_factory=dict)
    _bodies: dict[Program, tuple[tuple[str, Any, int], ...]] = field(default_factory=dict)

    def exponent(self, on: Walking, argument: Data) -> None:
        """The argument of an exponential that is computed now."""
        key = on.place(), id(on.equation)
        from layoutproof.values.known import data_of

        # only of a point this is asked
        numbers = cast("Points", on.numbers)
        bounded, beside, plain = numbers.at_most_zero(data_of(numbers, argument))
        before = self.exponents.get(key, (True, False, False))
        self.exponents[key] = before[0] and bounded, before[1] or beside, before[2] or plain

    def body(self, program: Program) -> None:
        """A program that was walked, or read where sizes are names: sums over such a size have no number of terms."""
        if program not in self._bodies:
            self._bodies[program] = tuple(one for one in _sums(program) if isinstance(one[2], int))
        for place, dtype, terms in self._bodies[program]:
            key = place, dtype, terms == 0
            self.sums[key] = max(self.sums.get(key, 0), terms)

    def found(self) -> tuple[tuple[Exponent, ...], tuple[KeptSum, ...]]:
        """Both, by place."""
        exponents = [
            Exponent(
                place, all(bounded for bounded, _, _ in of_place),
                any(beside and not plain for _, beside, plain in of_place),
            )
            for place in sorted({place for place, _ in self.exponents})
            for of_place in [[found for (at, _), found in self.exponents.items() if at == place]]
        ]  # fmt: skip
        sums = [
            KeptSum(place, str(dtype), terms, _roundoff(dtype))
            for (place, dtype, _), terms in sorted(self.sums.items(), key=lambda kept: (*map(str, kept[0]), kept[1]))
        ]
        return tuple(exponents), tuple(sums)


def sums_in(program: Program) -> tuple[KeptSum, ...]:
    """The sums of a program and of those inside it, without a walk: those of a number of terms that is known."""
    audit, todo = StabilityAudit(), [program]
    while todo:
        inner = todo.pop()
        audit.body(inner)
        for equation in inner.eqns:
            todo += programs_in(equation)
    return audit.found()[1]


def _roundoff(dtype: Dtype) -> float:
    import numpy as np

    from layoutproof.values.known import numpy_type

    if np.dtype(numpy_type(dtype)).kind == "f":
        return float(np.finfo(numpy_type(dtype)).eps) / 2
    # comes with JAX
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).eps) / 2


def _is_float(aval: Aval) -> bool:
    from layoutproof.values.elementwise import kind_of

    return kind_of(getattr(aval, "dtype", None)) == "f"


def _sums(program: Program) -> Iterator[tuple[str, Dtype, int]]:
    """The sums of one program, those of programs inside apart: (place, dtype, terms)."""
    made = {v: e for e in program.eqns for v in e.outvars}
    for equation in program.eqns:
        name, place = equation.primitive.name, str(equation.source)
        if name in _TERMS and _is_float(equation.outvars[0].aval):
            yield place, equation.outvars[0].aval.dtype, _TERMS[name](equation.invars[0].aval.shape, equation.params)
        elif name == "wgmma_ref" and _is_float(equation.invars[0].aval):
            yield place, equation.invars[0].aval.dtype, 0
        elif name == "addupdate" and _is_float(equation.invars[1].aval):
            yield place, equation.invars[1].aval.dtype, 0
        elif name in STORES:
            reference, value = equation.invars[:2]
            loads = {
                v for e in program.eqns if e.primitive.name in LOADS and e.invars[0] is reference for v in e.outvars
            }
            if _is_float(value.aval) and _adds_to(made, value, loads):
                yield place, value.aval.dtype, 0
        elif name == "scan":
            yield from ((place, dtype, equation.params["length"]) for dtype in _carried_sums(equation))


_TERMS: Mapping[str, Callable[[Sequence[int], Mapping[str, Any]], int]] = {
    "reduce_sum": lambda shape, params: prod(shape[k] for k in params["axes"]),
    "cumsum": lambda shape, params: shape[params["axis"]],
    "dot_general": lambda shape, params: prod(shape[k] for k in params["dimension_numbers"][0][0]),
}
"""How many terms each element of a sum has, of the first operand's shape."""


def _carried_sums(scan: Equation) -> Iterator[Dtype]:
    """The element types of what a loop hands on and each step adds to."""
    inner = scan.params["jaxpr"]
    consts, carry = scan_parts(scan)
    made = {v: e for e in inner.eqns for v in e.outvars}
    for before, after in zip(inner.invars[consts : consts + carry], inner.outvars[:carry], strict=True):
        if not hasattr(after, "val") and _is_float(after.aval) and _adds_to(made, after, {before}):
            yield after.aval.dtype


def _adds_to(made: Mapping[Variable, Equation], value: Variable | Literal, before: Set[Variable]) -> bool:
    """Whether a value is a sum of one of some variables and others."""
    return any(
        _leads(made, operand, before)
        for equation in _through(made, value)
        if equation.primitive.name in ("add", "add_any", "sub")
        for operand in equation.invars
    )


def _through(made: Mapping[Variable, Equation], value: Variable | Literal) -> Iterator[Equation]:
    """The equations of which a value is made, as far back as it only passes through."""
    todo, seen = [value], set()
    while todo:
        variable = todo.pop()
        equation = None if hasattr(variable, "val") else made.get(variable)
        if equation is None or id(equation) in seen:
            continue
        seen.add(id(equation))
        yield equation
        if equation.primitive.name in PASSED:
            todo += equation.invars


def _leads(made: Mapping[Variable, Equation], value: Variable | Literal, before: Set[Variable]) -> bool:
    if hasattr(value, "val"):
        return False
    if value in before:
        return True
    return any(
        not hasattr(v, "val") and v in before
        for e in _through(made, value) if e.primitive.name in PASSED
        for v in e.invars
    )  # fmt: skip
