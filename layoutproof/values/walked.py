"""What walks over a program did not reach, and which of its results rest on what no walk computes.

What was never walked over was not compared: a branch that no number took, the body of a loop that never ran. Where the
code alone decides that, nothing else is to be seen; where an input does, the answer is about other inputs too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layoutproof.ir.program import Equation, Program, Variable, programs_in
from layoutproof.values.control import CALLS
from layoutproof.values.walk import PRIMITIVES, REFUSED, Prepared

Inputs = Sequence[bool]


def unentered(program: Program, prepared: Prepared) -> Equation | None:
    """The first branch or loop that an input decides and of which a body was never walked over; None for none."""
    return _unentered(program, prepared, [True] * len(program.invars))


def _unentered(program: Program, prepared: Prepared, inputs: Inputs) -> Equation | None:
    for equation, given in _rests(program, inputs):
        name = equation.primitive.name
        if not any(given) or not prepared.is_used(program, equation):
            continue
        inner = list(programs_in(equation))
        decided = given[:1] if name == "cond" else _first_test(equation, given) if name == "while" else []
        if any(decided) and not all(map(prepared.walked, inner)):
            return equation
        for each in filter(prepared.walked, inner):
            # of what a body is given, all rests on an input where something does
            exact = name in CALLS and len(each.invars) == len(given)
            found = _unentered(each, prepared, given if exact else [True] * len(each.invars))
            if found is not None:
                return found
    return None


def _first_test(equation: Equation, given: Inputs) -> list[bool]:
    """Whether what a loop tests before its first step rests on an input."""
    p = equation.params
    fixed, skipped = int(p["cond_nconsts"]), int(p["body_nconsts"])
    inner = p["cond_jaxpr"]
    inputs = [*given[:fixed], *given[fixed + skipped :]]
    known = dict(zip(inner.invars, inputs, strict=True))
    for each, rests in _rests(inner, inputs):
        known.update(dict.fromkeys(each.outvars, any(rests)))
    return [known.get(v, False) for v in inner.outvars if isinstance(v, Variable)]


def _rests(program: Program, inputs: Inputs) -> list[tuple[Equation, list[bool]]]:
    """Each equation, with which of its operands rest on an input."""
    known: dict[Any, bool] = dict(zip(program.invars, inputs, strict=True))
    found = []
    for equation in program.eqns:
        given = [isinstance(v, Variable) and known.get(v, False) for v in equation.invars]
        known.update(dict.fromkeys(equation.outvars, any(given)))
        found.append((equation, given))
    return found


def beyond(program: Program, inputs: Inputs | None = None) -> dict[int, Equation]:
    """Of each result that rests on what no walk computes, the first equation that is that.

    inputs: which of the program's rest on data; None for all.
    """
    known: dict[Any, Equation] = {}
    for equation, given in _rests(program, [True] * len(program.invars) if inputs is None else inputs):
        why = next((known[v] for v in equation.invars if isinstance(v, Variable) and v in known), None)
        if why is None and (inner := _called(equation)) is not None:
            known |= {equation.outvars[k]: each for k, each in beyond(inner, given).items()}
        elif why is None and any(given):
            why = _not_modelled(equation)
        if why is not None:
            known.update(dict.fromkeys(equation.outvars, why))
    return {k: known[v] for k, v in enumerate(program.outvars) if isinstance(v, Variable) and v in known}


def _called(equation: Equation) -> Program | None:
    """The one program that an equation runs on all that it is given, and whose results it gives; None for another."""
    found = list(programs_in(equation)) if equation.primitive.name in (*CALLS, "partitioned", "shard_map") else []
    one = found[0] if len(found) == 1 else None
    fits = one is not None and (len(one.invars), len(one.outvars)) == (len(equation.invars), len(equation.outvars))
    return one if fits else None


def _not_modelled(equation: Equation) -> Equation | None:
    name = equation.primitive.name
    if name not in PRIMITIVES or name in REFUSED:
        return equation
    inner = (each for program in programs_in(equation) for each in program.eqns)
    return next(filter(None, map(_not_modelled, inner)), None)


def numbers_in(program: Program, wanted: Callable[[Any], bool]) -> Mapping[Any, Any]:
    """The literals of a program, nested ones included: type -> the arrays of it. wanted: of an element type."""
    import numpy as np

    found: dict[Any, list[Any]] = {}

    def add(value: Any, dtype: Any) -> None:
        if value is not None and wanted(dtype) and getattr(value, "value", value) is not None:
            found.setdefault(dtype, []).append(np.asarray(getattr(value, "value", value)))

    seen: set[Program] = set()
    todo = [program]
    while todo:
        each = todo.pop()
        if each in seen:
            continue
        seen.add(each)
        for value in each.consts:
            add(value, getattr(value, "dtype", np.dtype(np.float32)))
        for equation in each.eqns:
            for atom in equation.invars:
                if not isinstance(atom, Variable):
                    add(atom.val, getattr(atom.aval, "dtype", None))
            todo += programs_in(equation)
    return found
