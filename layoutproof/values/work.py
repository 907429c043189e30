"""Steps of a walk over a program, counted before anything is computed."""

from __future__ import annotations

from math import prod

from layoutproof.ir.program import Equation, programs_in

MOST_STEPS = 2**33
"""Of a walk over what is not checked, some 20 s of a processor at three points."""
EACH = 2**18
"""Steps that any equation takes, whatever it makes: how often a loop runs is bounded, too."""
COSTLY = 64
"""Products that take as long as one element of anything else."""


def steps_of(equation: Equation) -> int:
    """Steps that one equation takes, about: products, and each other element for 64 of them.

    Primitives that run programs take the steps of these, which are not counted here.
    """
    made = sum(prod(getattr(v.aval, "shape", ())) for v in equation.outvars)
    p = equation.params
    match equation.primitive.name:
        case "dot_general":
            contracted = p["dimension_numbers"][0][0]
            return made * int(prod(equation.invars[0].aval.shape[k] for k in contracted))
        case "conv_general_dilated":
            return made * int(prod(equation.invars[1].aval.shape))
        case _:
            return 0 if any(True for _ in programs_in(equation)) else made * COSTLY
