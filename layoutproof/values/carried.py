"""Along which axis of its grid, or in which loop, a function keeps a state, and whether a state counts.

Where a function is compared at several numbers of blocks, a state that no data decide could change at the next one: a
counter that ends at four. Two draws of the inputs tell such elements: their values are the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.terms import names_in
from layoutproof.core.term import Term
from layoutproof.ir.program import (
    Equation,
    Indexed,
    Literal,
    Program,
    Span,
    Transform,
    Variable,
    planted,
    programs_in,
    scan_parts,
)
from layoutproof.values.floats import Floats, array_of
from layoutproof.values.kinds import Shaped
from layoutproof.values.memory import HeldMemory, Semaphore
from layoutproof.values.relations.calls import CALLS, starts_of
from layoutproof.values.relations.reading import Reading
from layoutproof.values.state import SeenWindow, Walking
from layoutproof.values.walk import Prepared, Walk

Array = np.ndarray[Any, Any]
Axis = tuple[int, ...]
"""An argument, and one of its axes; of the blocks of an axis also how wide they are."""
Origins = tuple[Axis | None, ...]
"""Of each dimension of an array the argument's that it is."""


@dataclass(frozen=True)
class Along:
    """An axis of a kernel's grid, or a loop. axis: of the grid; -1 of a loop.  blocks: how many programs, or steps.

    widths: of each axis of an argument that goes along it, the extent of a block.  loop: `file:line` of a loop.
    """

    axis: int
    blocks: int
    widths: Mapping[Axis, int]
    loop: str = ""


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
            if not block.windowed:
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


def loops(program: Program) -> tuple[Along, ...]:
    """The loops of a function that read arguments block by block."""
    found: dict[Equation, dict[Axis, int]] = {}
    given = [tuple((k, d) for d in range(len(_shape(v)))) for k, v in enumerate(program.invars)]
    _blocks(program, given, None, {k: _shape(v) for k, v in enumerate(program.invars)}, found)
    return tuple(Along(-1, int(e.params["length"]), widths, str(e.source)) for e, widths in found.items() if widths)


def _blocks(
    program: Program,
    given: Sequence[Origins],
    loop: Equation | None,
    shapes: Mapping[int, tuple[int, ...]],
    found: dict[Equation, dict[Axis, int]],
) -> None:
    """The reads in loops of a program, of which the innermost around it is `loop`."""
    known: dict[Any, Origins] = dict(zip(program.invars, given, strict=False))

    def of(atom: Variable | Literal) -> Origins:
        return known.get(atom, _nothing(_shape(atom))) if isinstance(atom, Variable) else _nothing(_shape(atom))

    def reads(around: Equation, place: Axis | None, width: int) -> None:
        if place is None:
            return
        argument, axis = place[:2]
        width, length = int(width) * (place[2] if len(place) > 2 else 1), int(around.params["length"])
        if 0 <= length * width - shapes[argument][axis] < width:
            found.setdefault(around, {})[argument, axis] = width

    for equation in program.eqns:
        operands = [of(atom) for atom in equation.invars]
        name, params = equation.primitive.name, equation.params
        if loop is not None and operands:
            for place, width in _slices(equation, operands[0]):
                reads(loop, place, width)
        if name == "pallas_call":
            _blocks(params["jaxpr"], _seen(equation, operands), loop, shapes, found)
        elif name == "scan":
            consts, carry = scan_parts(equation)
            if params.get("reverse") or int(params["length"]) < 2:
                continue
            for rows in operands[consts + carry :] if loop is None else ():
                if rows:
                    reads(equation, rows[0], 1)
            seen = [*operands[: consts + carry], *(o[1:] for o in operands[consts + carry :])]
            _blocks(params["jaxpr"], seen, loop or equation, shapes, found)
        elif name == "cond":
            for branch in params["branches"]:
                _blocks(branch, operands[1:], loop, shapes, found)
        else:
            for inner in programs_in(equation):
                if len(inner.invars) == len(operands):
                    _blocks(inner, operands, loop, shapes, found)
        for variable in equation.outvars:
            known[variable] = _split(equation, operands, _shape(variable)) or _moved(
                equation, operands, _shape(variable)
            )


def _slices(equation: Equation, origins: Origins) -> Iterator[tuple[Axis | None, int]]:
    """The axes of the first operand that are read from a computed place on, and how many elements of each."""
    name, params = equation.primitive.name, equation.params
    if name in ("get", "swap", "addupdate"):
        transforms = planted(params["tree"], equation.invars[1 if name == "get" else 2 :])
        for place, index in zip(origins, (i for one in _indexed(transforms) for i in one), strict=False):
            start, size = (index.start, index.size) if isinstance(index, Span) else (index, 1)
            if isinstance(start, Variable):
                yield place, size
    elif name == "dynamic_slice":
        for place, start, width in zip(origins, equation.invars[1:], params["slice_sizes"], strict=True):
            if isinstance(start, Variable):
                yield place, width


def _seen(call: Equation, operands: Sequence[Origins]) -> list[Origins]:
    """The axes of each argument of a Pallas call of which every block has all."""
    mapping = call.params["grid_mapping"]
    seen: list[Origins] = [_nothing(_shape(v)) for v in call.params["jaxpr"].invars]
    given = operands[mapping.dynamic + mapping.tables :]
    for k, (window, places) in enumerate(zip(mapping.windows[: mapping.inputs], given, strict=False)):
        seen[mapping.tables + k] = tuple(
            p if d.extent == n else None
            for p, d, n in zip(places, window.block, window.aval.shape, strict=True)
            if d.kind != "squeezed"
        )
    return seen


def _indexed(
    transforms: Transform | tuple[Transform | None, ...] | None,
) -> list[tuple[Span | Variable | Literal | int, ...]]:
    found = transforms if isinstance(transforms, tuple) else (transforms,)
    return [t.indices for t in found if isinstance(t, Indexed)]


def _split(equation: Equation, operands: Sequence[Origins], shape: tuple[int, ...]) -> Origins:
    """Of a reshape that divides the first dimension into blocks what its dimensions are."""
    before = _shape(equation.invars[0]) if equation.invars else ()
    if equation.primitive.name != "reshape" or len(shape) != len(before) + 1 or shape[2:] != before[1:]:
        return ()
    (first, *rest) = operands[0]
    return (None if first is None or len(first) > 2 else (*first, shape[1]), None, *rest)


def _shape(atom: Variable | Literal) -> tuple[int, ...]:
    return tuple(getattr(atom.aval, "shape", ()))


def _nothing(shape: tuple[int, ...]) -> Origins:
    return (None,) * len(shape)


def _calls(program: Program, given: Sequence[Origins]) -> Iterator[tuple[Equation, list[Origins]]]:
    """The kernels of a program, each with what the dimensions of its operands are."""
    known: dict[Any, Origins] = dict(zip(program.invars, given, strict=False))

    def of(atom: Variable | Literal) -> Origins:
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


def _moved(equation: Equation, operands: Sequence[Origins], shape: tuple[int, ...]) -> Origins:
    """The origin of a result's dimensions, where an operation moves or changes single elements."""
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
    """The events that a walk reports: a kernel's own memory before each program, and which programs read it."""

    def __init__(self) -> None:
        self.held: list[tuple[tuple[int, ...], list[Any]]] = []
        self.reads: set[int] = set()
        self.steps: list[tuple[int, list[Any]]] = []
        self._own: list[Any] = []
        self._stored: list[Any] = []
        self._inputs = 0

    def call(self, windows: Sequence[SeenWindow], scratch: Sequence[Shaped]) -> None:
        """A kernel begins."""
        self._inputs = sum(not w.output for w in windows)

    def program(self, on: Walking, jaxpr: Program, arguments: Sequence[Shaped]) -> None:
        """A program begins: the memory that the one before it left."""
        self._own, self._stored = [m for m in arguments[self._inputs :] if isinstance(m, HeldMemory)], []
        values = [m.value for m in self._own]
        assert on.programs is not None
        self.held.append((on.programs.ids, [np.asarray(array_of(v)) for v in values]))

    def branch(self, equation: Equation, chosen: int, operands: Sequence[Shaped]) -> int:
        """Which branch is taken."""
        return chosen

    def handed_on(
        self, on: Walking, equation: Equation, step: int, before: Sequence[Shaped], after: Sequence[Shaped]
    ) -> Sequence[Shaped]:
        """A step of a loop is done: its carried values, and the kernel's memory."""
        arrays = [np.asarray(v.array) for v in (*after, *(m.value for m in self._own))]
        self.steps.append((step, [a for a in arrays if a.dtype.kind == "f"]))
        return after

    def loop(self, on: Walking, equation: Equation) -> None:
        """A loop begins."""

    def read(self, on: Walking, value: Shaped) -> None:
        """A value is taken from memory, or from a larger array."""

    def done(self) -> None:
        """A kernel ends."""

    def loads(self, on: Walking, memory: HeldMemory | Semaphore) -> None:
        """Something is read: whether the programs before left it."""
        if any(memory is m for m in self._own) and not any(memory is m for m in self._stored):
            self.reads.add(len(self.held) - 1)

    def stores(self, on: Walking, memory: HeldMemory | Semaphore, value: Shaped) -> bool:
        """Something is stored: whether it may be."""
        self._stored.append(memory)
        return True


@dataclass(frozen=True)
class CarriedState:
    """The state of a kernel between two steps along an axis.

    kept: whether it is read.  counts: whether some of it changes though no data decide it.
    """

    kept: bool
    counts: bool


def state(program: Program, draws: Sequence[tuple[Floats, Sequence[Shaped]]], axis: int) -> CarriedState:
    """The state of a kernel along an axis of its grid, or with -1 the values that loops carry.

    draws: two, of numbers of float64, each with the inputs.
    """
    walks = []
    for numbers, values in draws:
        seen = _Seen()
        with np.errstate(all="ignore"):
            Walk(numbers, Prepared(), watch=seen).run(program, values)
        walks.append(seen)
    one, other = walks
    if axis < 0:
        counts = any(
            step > 1 and len(now) == len(earlier) and _counts(now, again, earlier)
            for (step, now), (_, again), (_, earlier) in zip(one.steps[1:], other.steps[1:], one.steps, strict=False)
        )
        return CarriedState(bool(one.steps), counts)
    kept = any(one.held[k][0][axis] > 0 and not any(one.held[k][0][axis + 1 :]) for k in one.reads)
    for k in range(1, len(one.held)):
        (ids, now), (_, again), (before, earlier) = one.held[k], other.held[k], one.held[k - 1]
        # the state after a middle step, beside that after the one before it
        if ids[axis] != before[axis] + 1 or before[axis] < 1:
            continue
        if _counts(now, again, earlier):
            return CarriedState(kept, True)
    return CarriedState(kept, False)


def _counts(now: Sequence[Array], again: Sequence[Array], earlier: Sequence[Array]) -> bool:
    """Whether something changes from one step to the next, and is the same for another draw."""
    return any(
        a.shape != c.shape or bool((~_alike(a, c) & _alike(a, b)).any())
        for a, b, c in zip(now, again, earlier, strict=True)
    )


def _alike(a: Array, b: Array) -> Array:
    """Which elements are the same, or both no number."""
    found: Array = (a == b) | ((a != a) & (b != b))
    return found
