"""The equations that walks over a program did not reach, and the results that depend on unmodelled ones.

What was never walked over was not compared: a branch that no number took, the body of a loop that never ran. Where the
code alone decides that, nothing else is to be seen; where an input does, the answer is about other inputs too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.ir.program import Dtype, Equation, Number, Program, Variable, programs_in
from layoutproof.values.control import called
from layoutproof.values.kinds import Array
from layoutproof.values.mosaic_gpu import gives_what_code_computes
from layoutproof.values.walk import PRIMITIVES, REFUSED, Prepared

if TYPE_CHECKING:
    import numpy.typing as npt

Inputs = Sequence[bool]


LEAST = 3
"""Steps of a loop: a first, a middle and a last one. Another step, or another number to count by, shows by then."""


def unentered(program: Program, prepared: Prepared) -> Equation | None:
    """The first branch or loop that an input decides and that was not seen whole: a body that was never walked over, or
    a loop that never had a first, a middle and a last step; None for none."""
    return _unentered(program, prepared, [True] * len(program.invars))


def _unentered(program: Program, prepared: Prepared, inputs: Inputs) -> Equation | None:
    for equation, given in _rests(program, inputs):
        name = equation.primitive.name
        if not any(given) or not prepared.is_used(program, equation):
            continue
        inner = list(programs_in(equation))
        decided = given[:1] if name == "cond" else _first_test(equation, given) if name == "while" else []
        short = name == "while" and prepared.trips.get(equation, 0) < LEAST
        if any(decided) and (short or not all(map(prepared.walked, inner))):
            return equation
        for each in filter(prepared.walked, inner):
            # of what a body is given, all rests on an input where something does
            exact = called(equation) is each
            found = _unentered(each, prepared, given if exact else [True] * len(each.invars))
            if found is not None:
                return found
    return None


def _first_test(equation: Equation, given: Inputs) -> list[bool]:
    """Whether a loop's test before its first step depends on an input."""
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


def beyond(program: Program) -> dict[int, Equation]:
    """Of each result that rests on what no walk computes, the first equation that is that."""
    return _beyond(program, [True] * len(program.invars), {})


def _beyond(program: Program, inputs: Inputs, given_by: Mapping[int, Equation]) -> dict[int, Equation]:
    """given_by: of an argument that rests on what no walk computes, what that is."""
    known: dict[Any, Equation] = {program.invars[k]: why for k, why in given_by.items()}
    for equation, given in _rests(program, inputs):
        whys = {k: known[v] for k, v in enumerate(equation.invars) if isinstance(v, Variable) and v in known}
        inner = called(equation)
        if inner is not None:
            # each result of a call for itself
            results = _beyond(inner, given, whys)
            known.update((equation.outvars[k], why) for k, why in results.items())
            continue
        why = next(iter(whys.values()), None)
        if why is None and any(given):
            why = _not_modelled(equation)
        if why is not None:
            known.update(dict.fromkeys(equation.outvars, why))
    return {k: known[v] for k, v in enumerate(program.outvars) if isinstance(v, Variable) and v in known}


def share(missing: Mapping[int, Equation], of: Sequence[int]) -> str:
    """How many results rest on what is not modelled, and on what.

    missing: as of `beyond`.  of: the positions of all that are asked about.
    """
    rests: dict[str, int] = {}
    for equation in (missing[k] for k in of if k in missing):
        place = str(equation.source)
        what = f"{equation.primitive.name}{f' at {place}' if place else ''}"
        rests[what] = rests.get(what, 0) + 1
    count = sum(rests.values())
    said = ", ".join(what if len(rests) == 1 else f"{what} ({n})" for what, n in rests.items())
    return f"{count} of {len(of)} {'output rests' if len(of) == 1 else 'outputs rest' + 's' * (count == 1)} on {said}"


def _not_modelled(equation: Equation) -> Equation | None:
    name = equation.primitive.name
    if name not in PRIMITIVES or name in REFUSED or gives_what_code_computes(equation):
        return equation
    inner = (each for program in programs_in(equation) for each in program.eqns)
    return next(filter(None, map(_not_modelled, inner)), None)


def numbers_in(program: Program, wanted: Callable[[Dtype | None], bool]) -> Mapping[Dtype | None, list[Array]]:
    """The literals of a program, nested ones included: type -> the arrays of it. wanted: of an element type."""
    import numpy as np

    found: dict[Dtype | None, list[Array]] = {}

    def add(value: npt.ArrayLike | Number | None, dtype: Dtype | None) -> None:
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
