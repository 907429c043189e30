"""Integers of a program that its constants alone decide: tables that a function closes over, or makes of such.

JAX itself computes them, on this machine, from integers and truth values alone: a chip's rounding does not matter
here. While loops, and operations with effects outside of the program, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from layoutproof.kernel.contents import MOST_ENTRIES
from layoutproof.pallas.from_jax.adapter import evaluated, inner_jaxprs, is_literal, opened, scan_parts
from layoutproof.pallas.from_jax.of_jax import EitherJaxpr, JaxAtom, JaxAval, JaxEquation

MOST_EQUATIONS = 500
"""Equations that are computed for one value, with those inside of them."""
MOST_ELEMENTS = 4 * MOST_ENTRIES
"""Elements of a value on the way."""
MOST_TURNS = 1 << 12
"""Iterations of a loop on the way."""
_AS_THEY_ARE = frozenset({"pjit", "jit", "closed_call", "core_call", "remat", "remat2", "checkpoint"})
"""Primitives that pass their operands to their one jaxpr, each in its place."""
_MOVES = frozenset(
    {"reshape", "transpose", "broadcast_in_dim", "squeeze", "expand_dims", "slice", "rev", "copy", "copy_p",
     "convert_element_type", "bitcast_convert_type", "optimization_barrier", "with_memory_space_constraint",
     "sharding_constraint", "device_put"}
)  # fmt: skip
"""Primitives whose results have the entries of their operands, each those of its own."""


Maker = tuple[Any, int]
"""An equation, and which of its results."""


class Constants:
    """The values of one jaxpr that constants alone decide.

    given: of an input, by its number, its value where the enclosing code has it.  maker: its equation there.
    """

    def __init__(
        self,
        jaxpr: EitherJaxpr,
        given: Callable[[int], object] = lambda k: None,
        maker: Callable[[int], Maker | None] = lambda k: None,
    ) -> None:
        self._inner, consts = opened(jaxpr)
        self._given, self._maker = given, maker
        self._held = dict(zip(map(id, self._inner.constvars), consts, strict=False))
        self._inputs = {id(variable): k for k, variable in enumerate(self._inner.invars)}
        self._made = {id(v): (k, e) for k, e in enumerate(self._inner.eqns) for v in e.outvars}

    def integers(self, atom: JaxAtom) -> tuple[int, ...] | None:
        """The entries of an atom of integers in row-major order; None where they are not known."""
        aval = atom.aval
        if getattr(getattr(aval, "dtype", None), "kind", "") not in ("i", "u", "b"):
            return None
        if prod(aval.shape) > MOST_ENTRIES:
            return None
        try:
            value = self.value(atom)
        except Exception:
            # what JAX cannot compute here is not known
            return None
        return None if value is None else tuple(int(n) for n in value.ravel())

    def inside(self, equation: JaxEquation, closed: EitherJaxpr) -> Constants:
        """Those of a jaxpr that an equation of this one runs."""
        inner, _ = opened(closed)
        name, first = equation.primitive.name, 0
        last = len(equation.invars)
        if name == "cond":
            first = 1
        elif name == "scan":
            # carried values, and rows, differ from one iteration to the next
            last = scan_parts(equation)[0]
        elif name not in _AS_THEY_ARE and not name.startswith("custom_"):
            return Constants(closed)
        if len(inner.invars) != len(equation.invars) - first:
            return Constants(closed)

        def given(k: int) -> object:
            return self.value(equation.invars[k + first]) if k + first < last else None

        def maker(k: int) -> Maker | None:
            return self.maker(equation.invars[k + first]) if k + first < last else None

        return Constants(closed, given, maker)

    def maker(self, atom: JaxAtom) -> Maker | None:
        """The equation that made an array, through what only moves its entries and through functions that hand it on.

        None of what the function is given, and of a part of an array that something has computed: perhaps it has left
        undefined another part alone.
        """
        cut = False
        while not is_literal(atom) and id(atom) in self._made:
            _, equation = self._made[id(atom)]
            name = equation.primitive.name
            position = next(k for k, variable in enumerate(equation.outvars) if variable is atom)
            if name in _AS_THEY_ARE:
                (closed,) = (closed for _, closed in inner_jaxprs(equation.params))
                return self.inside(equation, closed).maker(opened(closed)[0].outvars[position])
            if name not in _MOVES:
                return None if cut and name != "empty" else (equation, position)
            cut = cut or name == "slice"
            atom = equation.invars[position]
        return self._maker(self._inputs[id(atom)]) if id(atom) in self._inputs else None

    def value(self, atom: Any) -> Any:
        """An array of NumPy, or None."""
        import numpy

        if is_literal(atom):
            return numpy.asarray(atom.val)
        if id(atom) in self._held:
            held = self._held[id(atom)]
            known = hasattr(held, "__array__") and not hasattr(held, "_trace") and prod(held.shape) <= MOST_ELEMENTS
            return numpy.asarray(held) if known else None
        if id(atom) in self._inputs:
            return self._given(self._inputs[id(atom)])
        needed = self._needed(atom)
        if needed is None:
            return None
        equations, variables = needed
        values = [self.value(variable) for variable in variables]
        if any(value is None for value in values):
            return None
        self._held[id(atom)] = found = numpy.asarray(evaluated(self._inner, equations, variables, values, atom))
        return found

    def _needed(self, atom: JaxAtom) -> tuple[list[JaxEquation], list[JaxAtom]] | None:
        """The equations that make a value, in order, and what they start from; None for what is not computed here."""
        chosen: dict[int, Any] = {}
        starts: dict[int, Any] = {}
        todo = [atom]
        while todo:
            variable = todo.pop()
            if is_literal(variable) or id(variable) in starts:
                continue
            if id(variable) not in self._made:
                if id(variable) not in self._held and id(variable) not in self._inputs:
                    return None
                starts[id(variable)] = variable
                continue
            number, equation = self._made[id(variable)]
            if number in chosen:
                continue
            if not _computed(equation):
                return None
            chosen[number] = equation
            todo += equation.invars
            if len(chosen) > MOST_EQUATIONS:
                return None
        return [chosen[k] for k in sorted(chosen)], list(starts.values())


def _computed(equation: JaxEquation) -> bool:
    """Whether an equation, with all that is inside of it, is one that is computed here."""
    every = list(_every(equation))
    return len(every) <= MOST_EQUATIONS and all(map(_harmless, every))


def _every(equation: JaxEquation) -> Iterator[JaxEquation]:
    yield equation
    for _, closed in inner_jaxprs(equation.params):
        for inner in opened(closed)[0].eqns:
            yield from _every(inner)


def _harmless(equation: JaxEquation) -> bool:
    name = equation.primitive.name
    if getattr(equation, "effects", None) or name == "while" or "call" in name.split("_") or "callback" in name:
        return False
    if name in ("scan",) and int(equation.params["length"]) > MOST_TURNS:
        return False
    if name in ("shard_map", "pallas_call", "core_map", "mpmd_map", "axis_index") or name.startswith("custom_"):
        return False
    return all(map(_whole, _avals(equation.outvars)))


def _avals(variables: Sequence[JaxAtom]) -> Iterator[JaxAval]:
    yield from (variable.aval for variable in variables)


def _whole(aval: JaxAval) -> bool:
    kind = getattr(getattr(aval, "dtype", None), "kind", "")
    return kind in ("i", "u", "b") and prod(aval.shape) <= MOST_ELEMENTS
