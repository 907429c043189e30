"""Where two programs that differ part: the first step whose value the other one never has, and that reaches an output.

Both are walked over at one random point of the fields, where equal values are equal functions. From the output that
differs it is gone back through values that the other program never has; a step of them whose operands it all has is
where the two part. What is computed otherwise on the way, and is equal again afterwards, is not gone through.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutproof.ir.program import Program, programs_in
from layoutproof.values.compare import Input, drawn, with_integers
from layoutproof.values.fields import LONGEST
from layoutproof.values.known import Held
from layoutproof.values.points import KIND, Field, Points
from layoutproof.values.refusals import Collision, Levels, NotModelled, OutOfBounds
from layoutproof.values.walk import Prepared, Walk

TRIED = 8
"""Points that are tried until one of them has no collision."""


@dataclass(frozen=True)
class Step:
    """One equation that was computed. within: the equations that it is in, the outermost first."""

    equation: Any
    within: tuple[Any, ...]
    operands: tuple[str, ...]

    @property
    def place(self) -> str:
        """`file:line`, of the innermost equation that has one; "" where none has."""
        return next(filter(None, (str(each.source) for each in (self.equation, *reversed(self.within)))), "")


class _Noted(Walk):
    """A walk that notes what every value is made of. made: of each value the step that made it first, in order."""

    def __init__(self, numbers: Any, prepared: Prepared) -> None:
        super().__init__(numbers, prepared)
        self.made: dict[str, Step] = {}

    def _results(self, equation: Any, operands: list[Any]) -> list[Any]:
        before = len(self.made)
        found = super()._results(equation, operands)
        # what runs a program gives what its steps made, or rests on all of it, as the rows that a loop stacks
        inside = list(self.made)[before:] if [*programs_in(equation)] else []
        within = tuple(each for each in self.around if each is not None)
        step = Step(equation, within, (*inside, *filter(None, map(_digest, operands))))
        for value in found:
            if name := _digest(value):
                self.made.setdefault(name, step)
        return found


def _digest(value: Any) -> str:
    """A name of a value, the same of equal ones; "" of numbers of the code, and of what is no array."""
    found = hashlib.sha256()
    for part in value.parts if isinstance(value, Held) else (value,):
        if not isinstance(part, Field):
            return ""
        level, residue = [(k, r) for k, r in enumerate(part.residues) if r is not None][-1]
        # a value in another shape, in the same order, is the same
        found.update(f"{level} {residue.size} ".encode() + np.ascontiguousarray(residue).tobytes())
        if part.flags is not None and (kinds := part.flags & KIND).any():
            found.update(np.ascontiguousarray(kinds).tobytes())
    return found.hexdigest()


def parting(sides: tuple[Program, Program], inputs: Sequence[Input], output: int) -> tuple[str, str]:
    """(`file:line` of the first program, of the second), "" of each where it is not known.

    output: the position of the one that differs.
    """
    return next(filter(any, (_parting(sides, given, output) for given in (inputs, with_integers(inputs)))), ("", ""))


def _parting(sides: tuple[Program, Program], inputs: Sequence[Input], output: int) -> tuple[str, str]:
    levels, seed = 1, 0
    while seed < TRIED:
        seed += 1
        numbers = Points(seed, levels, False)
        walks = [_Noted(numbers, Prepared()) for _ in sides]
        try:
            with np.errstate(all="ignore"):
                values = drawn(numbers, inputs)
                given = set(map(_digest, values))
                results = [w.run(side, values)[output] for w, side in zip(walks, sides, strict=True)]
        except Levels:
            if levels == LONGEST:
                return "", ""
            levels, seed = levels + 1, seed - 1
            continue
        except Collision:
            continue
        except (NotModelled, OutOfBounds):
            return "", ""
        mine, other = walks
        return (
            _first(mine, {*other.made, *given}, results[0]),
            _first(other, {*mine.made, *given}, results[1]),
        )
    return "", ""


def _first(walk: _Noted, known: set[str], result: Any) -> str:
    """The place of the first step that a result rests on and whose value nobody else has, all its operands known."""
    reached, left = set(), [_digest(result)]
    while left:
        name = left.pop()
        if name in known or name in reached or name not in walk.made:
            continue
        reached.add(name)
        left += walk.made[name].operands
    for name, step in walk.made.items():
        if name in reached and not reached.intersection(step.operands) and step.place:
            return step.place
    return ""
