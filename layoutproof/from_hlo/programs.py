"""An HLO module as a `Program`: the one place that says how its computations, tuples and calls become equations.

Fusions and calls are opened where they stand; bodies of loops and branches are programs of their own, each made once.
A tuple is a tuple of variables; what only says where or when something is done (copies, layouts, memory spaces,
asynchronous pairs) is the value itself. What an instruction computes is said by one function each, by families:
`elementwise`, `movement`, `sums`, `control`. An opcode that none of them knows is an equation of its own name, which
whoever walks over the program refuses by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError
from layoutproof.from_hlo import control, elementwise, movement, sums
from layoutproof.from_hlo.body import Reading, Rule
from layoutproof.hlotext.module import Module
from layoutproof.ir.program import Program

RULES: Mapping[str, Rule] = {**elementwise.RULES, **movement.RULES, **sums.RULES, **control.RULES}
"""Opcode -> (body, instruction, operands) -> its value."""


@dataclass(frozen=True)
class Compiled:
    """A module as a program of its parameters. program: its inputs are the parameters in order, tuples opened.

    converts: of conversions between element types, (from, to) -> how many.  expansions: functions that are written out
    as polynomials and read as what they are, by name -> how many.
    """

    program: Program
    converts: Mapping[tuple[str, str], int]
    expansions: Mapping[str, int]


def compiled(module: Module, file: str = "", of_text: bool = False) -> Compiled:
    """A module as a program. LayoutError for a text that is broken, cut short, or too large.

    file: what places are named by where the text does not say where its user's program stands.  of_text: whether all
    places are lines of the text.
    """
    for error in module.errors:
        raise error
    if module.entry is None:
        raise LayoutError("the text has no ENTRY computation: was it cut short?")
    reading = Reading(module, RULES, file or "the compiled text", of_text)
    program = reading.program(module.entry)
    return Compiled(program, dict(reading.converts), dict(reading.expansions))
