"""Along which axis of its grid a kernel keeps a state, and whether a state counts.

Where a function is compared at several numbers of blocks, a state that no data decide could change at the next one: a
counter that ends at four. Two draws of the inputs tell such elements: what is in them is the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.terms import names_in
from layoutproof.core.term import Term
from layoutproof.ir.program import Equation, Literal, Program, Variable, programs_in
from layoutproof.values.references import Memory
from layoutproof.values.relations.calls import CALLS, starts_of
from layoutproof.values.relations.reading import Reading
from layoutproof.values.walk import Prepared, Walk

Array = np.ndarray[Any, Any]
Axis = tuple[int, int]
"""An argument, and one of its axes."""
Origins = tuple[Axis | None, ...]
"""Of each dimension of an array the argument's that it is."""


@dataclass(frozen=True)
class Along:
    """An axis of a kernel's grid. blocks: how many programs.  widths: of each axis of an argument that goes along it,
    the extent of a block."""

    axis: int
    blocks: int
    widths: Mapping[Axis, int]


def axes(program: Program) -> tuple[Along, ...]:
    """The axes of the grid of the one kernel of a function, along which arguments go; none where there are several."""
    calls = list(_calls(program, [tuple((k, d) for d in range(len(_shape(v)))) for k, v in enumerate(program.invars)]))
    if len(calls) != 1:
        return ()
    ((equation, origins),) = calls
    mapping = equation.params["grid_mapping"]
    if mapping.tables or mapping.dynamic or not all(isinstance(n, int) for n in mapping.extents):
        return ()
    ids = [Term("name", f"id{k}") for k in range(len(mapping.extents))]
    spans = [(0, max(n - 1, 0)) for n in mapping.extents]
    widths: list[dict[Axis, int]] = [{} for _ in ids]
    try:
        for block, places in zip(mapping.windows[: mapping.inputs], origins, strict=False):
            if block.memory in ("any", "hbm"):
                return ()
            starts = starts_of(Reading(CALLS), block, ids, spans)
            for (kind, start), (_, extent, _), place in zip(starts, block.block, places, strict=True):
                for k, name in enumerate(ids):
                    if name.args[0] in names_in(start):
                        if place is None:
                            return ()
                        widths[k][place] = 1 if kind == "squeezed" else extent
    except (UnsupportedOp, ValueError):
        return ()
    found = (Along(k, int(n), widths[k]) for k, n in enumerate(mapping.extents))
    return tuple(a for a in found if a.widths and a.blocks > 1)


def _shape(atom: Any) -> tuple[Any, ...]:
    return tuple(getattr(atom.aval, "shape", ()))


def _nothing(shape: tuple[Any, ...]) -> Origins:
    return (None,) * len(shape)


def _calls(program: Program, given: Sequence[Origins]) -> Iterator[tuple[Equation, list[Origins]]]:
    """The kernels of a program, each with what the dimensions of its operands are."""
    known: dict[Any, Origins] = dict(zip(program.invars, given, strict=False))

    def of(atom: Any) -> Origins:
        return known.get(atom, _nothing(_shape(atom))) if isinstance(atom, Variable) else _nothing(_shape(atom))

    for equation in program.eqns:
        operands = [of(atom) for atom in equation.invars]
        name = equation.primitive.name
        if name == "pallas_call":
            yield equation, operands
            continue
        for inner in programs_in(equation):
            if name not in ("scan", "while", "cond") and len(inner.invars) == len(operands):
                yield from _calls(inner, operands)
        for variable in equation.outvars:
            known[variable] = _moved(equation, operands, _shape(variable))


def _moved(equation: Equation, operands: Sequence[Origins], shape: tuple[Any, ...]) -> Origins:
    """What the dimensions of a result are, where an operation moves or changes single elements."""
    name, nothing = equation.primitive.name, _nothing(shape)
    arrays = [(o, _shape(a)) for o, a in zip(operands, equation.invars, strict=True) if not isinstance(a, Literal)]
    if name == "transpose":
        return tuple(operands[0][d] for d in equation.params["permutation"])
    if name == "broadcast_in_dim":
        found: list[Axis | None] = list(nothing)
        for d, to in enumerate(equation.params["broadcast_dimensions"]):
            found[to] = operands[0][d]
        return tuple(found)
    if name in ("reshape", "squeeze", "expand_dims") and arrays:
        of, before = arrays[0]
        kept = [(n, o) for n, o in zip(before, of, strict=True) if n != 1]
        if [n for n, _ in kept] != [n for n in shape if n != 1]:
            return nothing
        rest = iter(kept)
        return tuple(None if n == 1 else next(rest)[1] for n in shape)
    if name == "pad" and arrays:
        return arrays[0][0]
    return next((of for of, before in arrays if before == shape and any(of)), nothing)


class _Seen:
    """What a walk is asked to tell: what a kernel's own memory holds before each program, and which ones read it."""

    def __init__(self) -> None:
        self.held: list[tuple[tuple[int, ...], list[Any]]] = []
        self.reads: set[int] = set()
        self._own: list[Any] = []
        self._stored: list[Any] = []
        self._inputs = 0

    def call(self, windows: Sequence[Any], scratch: Sequence[Any]) -> None:
        """A kernel begins."""
        self._inputs = sum(not w.output for w in windows)

    def program(self, on: Any, jaxpr: Any, arguments: Sequence[Any]) -> None:
        """A program begins: what the one before it left."""
        self._own, self._stored = [m for m in arguments[self._inputs :] if isinstance(m, Memory)], []
        values = [m.value for m in self._own]
        self.held.append((on.programs.ids, [np.asarray(v.array) for v in values]))

    def branch(self, equation: Any, chosen: int, operands: Sequence[Any]) -> int:
        """Which branch is taken."""
        return chosen

    def loads(self, on: Any, memory: Any) -> None:
        """Something is read: whether the programs before left it."""
        if any(memory is m for m in self._own) and not any(memory is m for m in self._stored):
            self.reads.add(len(self.held) - 1)

    def stores(self, on: Any, memory: Any, value: Any) -> bool:
        """Something is stored: whether it may be."""
        self._stored.append(memory)
        return True


@dataclass(frozen=True)
class State:
    """What a kernel keeps between two steps along an axis.

    kept: whether it is read.  counts: whether some of it changes though no data decide it.
    """

    kept: bool
    counts: bool


def state(program: Program, draws: Sequence[tuple[Any, Sequence[Any]]], axis: int) -> State:
    """What a kernel keeps along an axis of its grid. draws: two, of numbers of float64, each with the inputs."""
    walks = []
    for numbers, values in draws:
        seen = _Seen()
        with np.errstate(all="ignore"):
            Walk(numbers, Prepared(), watch=seen).run(program, values)
        walks.append(seen)
    one, other = walks
    kept = any(one.held[k][0][axis] > 0 and not any(one.held[k][0][axis + 1 :]) for k in one.reads)
    for k in range(1, len(one.held)):
        (ids, now), (_, again), (before, earlier) = one.held[k], other.held[k], one.held[k - 1]
        # what a middle step leaves, beside what the one before it left
        if ids[axis] != before[axis] + 1 or before[axis] < 1:
            continue
        for a, b, c in zip(now, again, earlier, strict=True):
            if a.shape != c.shape or (~_alike(a, c) & _alike(a, b)).any():
                return State(kept, True)
    return State(kept, False)


def _alike(a: Array, b: Array) -> Array:
    """Which elements are the same, or both no number."""
    found: Array = (a == b) | ((a != a) & (b != b))
    return found
