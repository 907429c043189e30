"""Where two programs that differ part: the first step whose value the other one never has, and that reaches an output.

Both are walked over at one random point of the fields, where equal values are equal functions. From the output that
differs it is gone back through values that the other program never has; a step of them whose operands it all has is
where the two part. Steps that differ on the way to equal values are skipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from layoutproof.ir.program import Equation, Program, programs_in
from layoutproof.values.fields import Depth
from layoutproof.values.kinds import D, NumberKind, Shaped
from layoutproof.values.known import DeviceParts, Known
from layoutproof.values.literals import Reading
from layoutproof.values.pair import Input, drawn, with_integers
from layoutproof.values.points import KIND, Field, Points
from layoutproof.values.refusals import ChainTooShort, Collision, NotModelled, OutOfBounds
from layoutproof.values.walk import Prepared, Walk

TRIED = 8
"""Points that are tried until one of them has no collision."""


@dataclass(frozen=True)
class ComputedEquation:
    """One equation that was computed. within: the equations that it is in, the outermost first."""

    equation: Any
    within: tuple[Any, ...]
    operands: tuple[str, ...]

    @property
    def place(self) -> str:
        """`file:line`, of the innermost equation that has one; "" where none has."""
        return next(filter(None, (str(each.source) for each in (self.equation, *reversed(self.within)))), "")


class _StepsNoted(Walk):
    """A walk that notes what every value is made of. made: of each value the step that made it first, in order.

    digest: gives a value its name, "" where it has none.
    """

    def __init__(self, numbers: NumberKind[D], prepared: Prepared, digest: Callable[[Shaped], str]) -> None:
        super().__init__(numbers, prepared)
        self.made: dict[str, ComputedEquation] = {}
        self.digest = digest

    def _results(self, equation: Equation, operands: list[Shaped]) -> Sequence[Shaped]:
        before = len(self.made)
        found = super()._results(equation, operands)
        # what runs a program gives what its steps made, or rests on all of it, as the rows that a loop stacks
        inside = list(self.made)[before:] if [*programs_in(equation)] else []
        within = tuple(each for each in self.around if each is not None)
        step = ComputedEquation(equation, within, (*inside, *filter(None, map(self.digest, operands))))
        for value in found:
            if name := self.digest(value):
                self.made.setdefault(name, step)
        return found


def _digest(value: Shaped) -> str:
    """A name of a value, the same of equal ones; "" of numbers of the code, and of what is no array."""
    found = hashlib.sha256()
    for part in value.parts if isinstance(value, DeviceParts) else (value,):
        if not isinstance(part, Field):
            return ""
        level, residue = [(k, r) for k, r in enumerate(part.residues) if r is not None][-1]
        # a value in another shape, in the same order, is the same
        found.update(f"{level} {residue.size} ".encode() + np.ascontiguousarray(residue).tobytes())
        if part.flags is not None and (kinds := part.flags & KIND).any():
            found.update(np.ascontiguousarray(kinds).tobytes())
    return found.hexdigest()


def named(value: Shaped) -> str:
    """A name of a value, the same of equal ones; of numbers of the code by their entries, in any shape and type."""
    if not isinstance(value, Known):
        return _digest(value)
    array = np.asarray(value.array)
    return hashlib.sha256(f"known {array.size} ".encode() + array.astype(np.float64).tobytes()).hexdigest()


def parting(sides: tuple[Program, Program], inputs: Sequence[Input], output: int) -> tuple[str, str]:
    """(`file:line` of the first program, of the second), "" of each where it is not known.

    output: the position of the one that differs.
    """
    one, other = parted(sides, inputs, output)
    return one.place if one is not None else "", other.place if other is not None else ""


def parted(
    sides: tuple[Program, Program],
    inputs: Sequence[Input],
    output: int,
    readings: Mapping[float, Reading] = MappingProxyType({}),
    numbers_too: bool = False,
) -> tuple[ComputedEquation | None, ComputedEquation | None]:
    """(The step of the first program, that of the second), None of each where it is not known.

    readings: as of `points.Points`.  numbers_too: whether numbers of the code are compared like data.
    """
    draws = (inputs, with_integers(inputs))
    given = Prepared(readings=readings)
    digest = named if numbers_too else _digest
    return next(filter(any, (_parting(sides, draw, output, given, digest) for draw in draws)), (None, None))


def _parting(
    sides: tuple[Program, Program], inputs: Sequence[Input], output: int, prepared: Prepared,
    digest: Callable[[Shaped], str],
) -> tuple[ComputedEquation | None, ComputedEquation | None]:  # fmt: skip
    def of(numbers: Points) -> tuple[ComputedEquation | None, ComputedEquation | None]:
        walks = [_StepsNoted(numbers, prepared, digest) for _ in sides]
        values = drawn(numbers, inputs)
        given = set(map(digest, values))
        results = [w.run(side, values)[output] for w, side in zip(walks, sides, strict=True)]
        if digest(results[0]) == digest(results[1]):
            # at this point it does not show
            raise Collision
        mine, other = walks
        return (
            _first(mine, {*other.made, *given}, results[0]),
            _first(other, {*mine.made, *given}, results[1]),
        )

    return at_a_point(of, prepared) or (None, None)


Found = TypeVar("Found")


def at_a_point(of: Callable[[Points], Found], prepared: Prepared) -> Found | None:
    """The result of walks at the first point without a collision; None where it is not modelled."""
    depth, seed = Depth(prepared.levels), 0
    while seed < TRIED:
        seed += 1
        try:
            with np.errstate(all="ignore"):
                return of(Points(seed, depth.levels, False, oracles=depth.oracles, readings=prepared.readings))
        except ChainTooShort:
            deeper = prepared.deeper(depth)
            if deeper is None:
                return None
            depth, seed = deeper, seed - 1
        except Collision:
            continue
        except (NotModelled, OutOfBounds):
            return None
    return None


def _first(walk: _StepsNoted, known: set[str], result: Shaped) -> ComputedEquation | None:
    """The first step that a result depends on and whose value the other side lacks, all its operands known."""
    reached, left = set(), [walk.digest(result)]
    while left:
        name = left.pop()
        if name in known or name in reached or name not in walk.made:
            continue
        reached.add(name)
        left += walk.made[name].operands
    for name, step in walk.made.items():
        if name in reached and not reached.intersection(step.operands) and step.place:
            return step
    return None
