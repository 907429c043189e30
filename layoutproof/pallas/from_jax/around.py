"""Which kernels of a function hand semaphores to one another, and what the function does between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from layoutproof.kernel.calls_around import CallingFunction, FunctionStep
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.adapter import (
    MESH_KERNELS,
    inner_jaxprs,
    is_literal,
    is_pallas_call,
    is_semaphore,
    opened,
    place_of,
)
from layoutproof.pallas.from_jax.of_jax import EitherJaxpr, JaxAtom, JaxEquation, JaxSourced

ONCE = (
    "jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "shard_map", "custom_vmap_call",
    "custom_jvp_call", "custom_vjp_call",
)  # fmt: skip
"""Equations that run one jaxpr, once, on what they are given."""
MOVES = ("optimization_barrier", "with_memory_space_constraint")
"""Equations that give what they are given."""

Path = tuple[int, ...]
"""Where an equation stands: its number, and of each inner jaxpr around it its number before."""


def arounds(jaxpr: EitherJaxpr, found: dict[Path, Kernel]) -> dict[Path, Kernel]:
    """The kernels that take or give semaphores, each with the steps of the function around it.

    found: every kernel of the jaxpr, by the path of its equation as `paths` has it.
    """
    made: dict[Path, Kernel] = {}
    if not any(o.memory == "semaphore" for kernel in found.values() for o in kernel.operands):
        return made
    for paths, around in _functions(jaxpr, (), found):
        for k, (path, step) in enumerate(zip(paths, around.steps, strict=True)):
            if step.kernel is not None and {*step.given, *step.made} & around.semaphores:
                made[path] = found[path].changed(around=replace(around, mine=k))
    return made


class _FunctionSteps:
    """One function on its way: its steps, where they stand, and the numbers of its values."""

    def __init__(self, found: dict[Path, Kernel]) -> None:
        self.found = found
        self.steps: list[FunctionStep] = []
        self.paths: list[Path] = []
        self.semaphores: set[int] = set()
        self.given: set[int] = set()
        self.apart: list[tuple[Any, Path]] = []
        self._numbers = count()

    def new(self, variable: JaxAtom) -> int:
        number = next(self._numbers)
        if is_semaphore(variable.aval):
            self.semaphores.add(number)
        return number

    def read(self, jaxpr: EitherJaxpr, path: Path, inputs: Sequence[int]) -> list[int]:
        """Adds the steps of a jaxpr; the values that it returns."""
        jaxpr, _ = opened(jaxpr)
        numbers: dict[Any, int] = dict(zip(jaxpr.invars, inputs, strict=True))

        def of(atom: JaxAtom) -> int:
            if is_literal(atom):
                value = next(self._numbers)
            elif atom in numbers:
                return numbers[atom]
            else:
                value = numbers[atom] = self.new(atom)
            # constants may not be overwritten
            self.given.add(value)
            return value

        for k, equation in enumerate(jaxpr.eqns):
            given = [of(atom) for atom in equation.invars]
            here, inner = (*path, k), list(inner_jaxprs(equation.params))
            call = is_pallas_call(equation.params) or equation.primitive.name in MESH_KERNELS
            if not call and self._once(equation, inner):
                donated = equation.params.get("donated_invars") or ()
                self.given -= {v for v, gone in zip(given, donated, strict=False) if gone}
                results = self.read(inner[0][1], (*here, 0), given)
                numbers |= dict(zip(equation.outvars, results, strict=True))
                continue
            if not call:
                self.apart += [(closed, (*here, n)) for n, (_, closed) in enumerate(inner)]
            made = [self.new(variable) for variable in equation.outvars]
            numbers |= dict(zip(equation.outvars, made, strict=True))
            self.steps.append(self._step(equation, here, tuple(given), tuple(made)))
            self.paths.append(here)
        return [of(atom) for atom in jaxpr.outvars]

    def _once(self, equation: JaxEquation, inner: Sequence[tuple[str, EitherJaxpr]]) -> bool:
        if equation.primitive.name not in ONCE or len(inner) != 1:
            return False
        body, _ = opened(inner[0][1])
        return len(body.invars) == len(equation.invars) and len(body.outvars) == len(equation.outvars)

    def _step(self, equation: JaxSourced, path: Path, given: tuple[int, ...], made: tuple[int, ...]) -> FunctionStep:
        name, source = equation.primitive.name, place_of(equation.source_info)
        kernel = self.found.get(path)
        kept = bool(equation.effects)
        if kernel is None or not is_pallas_call(equation.params):
            moves = name in MOVES and len(given) == len(made)
            return FunctionStep(name, source, given, made, moves=moves, kept=kept)
        tables = len(kernel.tables)
        # the bounds of a dynamic grid come first
        given = given[len(given) - tables - len(kernel.inputs) :]
        same = tuple((a + tables, b) for a, b in kernel.aliases)
        kept = kept or bool(getattr(equation.params.get("compiler_params"), "has_side_effects", False))
        return FunctionStep(kernel.name, kernel.source or source, given, made, kernel, same, kept=kept)


def _functions(
    jaxpr: EitherJaxpr, path: Path, found: dict[Path, Kernel]
) -> Iterator[tuple[list[Path], CallingFunction]]:
    """A function, and those in its loops and branches: where its steps stand, and what is around each of them."""
    function = _FunctionSteps(found)
    inputs = [function.new(variable) for variable in opened(jaxpr)[0].invars]
    function.given |= set(inputs)
    returned = function.read(jaxpr, path, inputs)
    sets = (frozenset(function.given), frozenset(returned), frozenset(function.semaphores))
    yield function.paths, CallingFunction(tuple(function.steps), 0, *sets, inner=bool(path))
    for inner, there in function.apart:
        yield from _functions(inner, there, found)
