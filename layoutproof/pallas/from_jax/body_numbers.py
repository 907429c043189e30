"""Numbers that the body around a pipeline has computed, over the ids of its grid and over what it loads and counts.

`start = pl.program_id(0) * 2` outside of `lambda i: (start + i, 0)` is a number of the kernel's body. Its equations
stand in the trace before it, so it is followed back to ids of the enclosing grid, whose extents bound them, and to
unknowns: counters of loops, loads, results of branches, each one number of any value. Only results that surely fit in
32 bits are followed, so that arithmetic over the unbounded integers agrees; one that may wrap is a number of its own.
Source: jax/_src/interpreters/partial_eval.py, jax 0.10.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.integers import held, literal, number_of
from layoutproof.core.element_types import integer_range
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import folded
from layoutproof.core.operations import CONDITIONS, INT32, apply
from layoutproof.core.term import ZERO, Term, every
from layoutproof.pallas.from_jax.adapter import (
    enclosing_extent,
    enclosing_id,
    is_literal,
    is_tracer,
    made_by,
    opened,
)
from layoutproof.pallas.from_jax.jaxpr_terms import called, results_of
from layoutproof.pallas.from_jax.of_jax import JaxEquation
from layoutproof.solvers.interval import Interval, IntervalNumbers, ends

if TYPE_CHECKING:
    from jax.core import Tracer
    from jax.extend.core import Var

Captured = dict[int | str, tuple[str, Any]]
"""The values captured by a pipeline: by identity, or by name where it is an id; its name, and the value."""
MOST_EQUATIONS = 100
"""Equations that are followed for one number."""


def taken(value: Tracer, number: int) -> tuple[int | str, tuple[str, Tracer]]:
    """A value captured by a pipeline, and its name: all uses of an id of the enclosing grid are one value."""
    name = enclosing_id(value)
    return name or id(value), (name or f"captured{number}", value)


def body_number(value: Tracer | int, captured: Captured) -> Term:
    """A number that only the running kernel has, as a term over entries of tables of one entry; these are captured."""
    return _Followed(captured).number(value)


class _Followed:
    """One number, followed back through what is traced before it."""

    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.left = MOST_EQUATIONS
        self.bounds: dict[str, Interval] = {}

    def number(self, value: Tracer | int) -> Term:
        """The term of the number, or the number itself where it has none."""
        before = dict(self.captured)
        try:
            found: Term = number_of(self._computed(value))
        except UnsupportedOp:
            # values captured on the way are not needed
            self.captured.clear()
            self.captured.update(before)
            return self._itself(value)
        return found

    def _itself(self, value: Tracer) -> Term:
        low, high = integer_range(8 * value.aval.dtype.itemsize, value.aval.dtype.kind == "i")
        name, _ = self.captured.setdefault(*taken(value, len(self.captured)))
        extent = enclosing_extent(value)
        self.bounds[name] = Interval(low, high - 1) if extent is None else Interval(0, extent - 1)
        return Term("read", Term("name", name), ZERO)

    def _computed(self, value: Tracer | int) -> Term:
        if not is_tracer(value):
            return folded(literal(value))
        made = None if enclosing_id(value) else made_by(value)
        if made is None:
            if getattr(value.aval, "shape", None) != () or getattr(value.aval.dtype, "kind", "") not in ("i", "u"):
                raise UnsupportedOp("no integer")
            return self._itself(value)
        equation, given, position = made
        self._check(equation)
        operands = [self.number(v) if _whole(v) else self._computed(v) for v in given]
        return self._run(equation, dict(zip(equation.invars, operands, strict=True)))[position]

    def _check(self, equation: JaxEquation) -> None:
        """UnsupportedOp for what is no arithmetic of single numbers, or too much of it."""
        self.left -= 1
        single = all(getattr(v.aval, "shape", None) == () for v in (*equation.invars, *equation.outvars))
        if self.left < 0 or not single or getattr(equation, "effects", None):
            raise UnsupportedOp(f"the operation {equation.primitive.name}")

    def _run(self, equation: JaxEquation, values: Mapping[Var, Term]) -> Sequence[Term]:
        """The results of one equation, each of which its type holds for certain."""
        operands = [folded(literal(v.val)) if is_literal(v) else values[v] for v in equation.invars]
        inside = called(equation, operands)
        if inside is not None:
            inner, constants = opened(inside)
            known = dict(zip(inner.invars, operands, strict=True))
            known |= {v: literal(c) for v, c in zip(inner.constvars, constants, strict=True)}
            for each in inner.eqns:
                self._check(each)
                known |= dict(zip(each.outvars, self._run(each, known), strict=True))
            return [folded(literal(v.val)) if is_literal(v) else known[v] for v in inner.outvars]
        results = [held(r, v.aval) for r, v in zip(results_of(equation, values), equation.outvars, strict=True)]
        if not all(self._fits(r) for r in results):
            raise UnsupportedOp("a number that may wrap")
        return results

    def _fits(self, term: Term) -> bool:
        if term.op in CONDITIONS:
            return True
        found: dict[Term, Any] = {}
        on = IntervalNumbers()
        try:
            for part in every(term):
                if part.op == "read":
                    found[part] = self.bounds[part.args[0].args[0]]
                elif part.op != "name":
                    parts = [found[a] for a in part.args] if part.op != "int" else []
                    found[part] = part.args[0] if part.op == "int" else apply(part.op, on, parts)
            low, high = ends(found[term])
        except (Undecided, KeyError, TypeError, AttributeError, ValueError, OverflowError, ZeroDivisionError):
            return False
        return bool(low >= -INT32 and high < INT32)


def _whole(value: Tracer | int) -> bool:
    return is_tracer(value) and value.aval.shape == () and value.aval.dtype.kind in ("i", "u")
