"""The parts of a kernel's body that the compiler's estimate of cycles cannot see; and the flops that it surely does.

The estimate is a simulation in which every value read from memory is 0 (libtpu 0.0.52, v5e): a body under a condition
on data is left out, a loop whose end depends on data gets a made-up number of trips. Conditions on program ids are
evaluated, and loops with a known number of turns are counted. A loop whose first or last turn depends on a program id
gets a made-up number too: of 32 to 6,300 turns 0.4 to 0.5 of them, of 500 from `p * 500` to `p * 500 + 500` 215.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod
from operator import or_
from typing import TYPE_CHECKING

from layoutproof.ir.program import Equation, Literal, MemRefType, Program, planted, programs_in, scan_parts

if TYPE_CHECKING:
    import numpy as np
    from jax.extend.core import Var

_REMOTE = {"dma_start": ("tree", 4), "semaphore_signal": ("args_tree", 3)}
"""Primitives that may reach another device or core -> the parameter with the tree of their operands, and the place of
devices and cores in it."""

DATA, PROGRAM = 1, 2
"""The dependences of a value: on data read, drawn or asked of the chip; on the program's id. 0 = neither."""
_SOURCES = {"program_id": PROGRAM, "prng_random_bits": DATA, "axis_index": DATA}


def unseen(body: Program) -> list[str]:
    """Why the estimate of a kernel with this body says nothing, each reason once with its line."""
    found: dict[str, None] = {}
    _walk(body, [0] * len(body.invars), found)
    return list(found)


def _any(kinds: Iterable[int]) -> int:
    return reduce(or_, kinds, 0)


def _walk(program: Program, given: Sequence[int], found: dict[str, None], constants: Sequence[int] = ()) -> list[int]:
    """The dependences of a program's results.

    given: those of its arguments; references do not count.  constants: those of captured values, () = none.
    """
    on = dict(zip(program.invars, given, strict=True))
    on |= dict(zip(program.constvars, constants, strict=False))

    def depends(variable: Var) -> int:
        return 0 if isinstance(variable, Literal) else on.get(variable, 0)

    for equation in program.eqns:
        name = equation.primitive.name
        operands = [depends(v) for v in equation.invars]
        if name in _REMOTE and _elsewhere(equation, *_REMOTE[name]):
            found.setdefault(f"it speaks to another device or core{_at(equation)}")
        results = _inside(equation, name, operands, found)
        for variable, kind in zip(equation.outvars, results, strict=True):
            on[variable] = kind | _SOURCES.get(name, 0)
    return [depends(v) for v in program.outvars]


def _elsewhere(equation: Equation, tree: str, start: int) -> bool:
    """Whether an equation names another device or core; how one is named is a parameter that a local one has too."""
    return any(part is not None for part in planted(equation.params[tree], equation.invars)[start:])


def _inside(equation: Equation, name: str, operands: Sequence[int], found: dict[str, None]) -> list[int]:
    """The dependences of the results of one equation."""
    count = len(equation.outvars)
    if name == "cond":
        if operands[0] & DATA:
            found.setdefault(f"a condition on data, which it takes to be 0{_at(equation)}")
        branches = [_walk(b, operands[1:], found) for b in equation.params["branches"]]
        return [operands[0] | _any(each) for each in zip(*branches, strict=True)] if count else []
    if name == "while":
        return _while(equation, operands, found)
    if name == "scan":
        consts, carry = scan_parts(equation)
        return _carried(equation.params["jaxpr"], operands, consts, carry, found)
    bodies = list(programs_in(equation))
    if len(bodies) == 1 and len(bodies[0].outvars) == count:
        body, some = bodies[0], _any(operands)
        if name == "run_scoped":
            # the arguments of its body are references to memory of its own
            return _walk(body, [0] * len(body.invars), found, operands)
        if len(body.invars) == len(operands):
            return _walk(body, operands, found)
        return _walk(body, [some] * len(body.invars), found, [some] * len(body.constvars))
    for body in bodies:
        _walk(body, [_any(operands)] * len(body.invars), found)
    # a value read from a reference is data
    reads = DATA if any(_is_reference(v) for v in equation.invars) else 0
    return [0 if _is_reference(v) else reads | _any(operands) for v in equation.outvars]


def _while(equation: Equation, operands: Sequence[int], found: dict[str, None]) -> list[int]:
    first, second = equation.params["cond_nconsts"], equation.params["body_nconsts"]
    test, body = equation.params["cond_jaxpr"], equation.params["body_jaxpr"]
    carried = list(operands[first + second :])
    while True:
        after = _walk(body, [*operands[first : first + second], *carried], found)
        new = [a | b for a, b in zip(carried, after, strict=True)]
        if new == carried:
            break
        carried = new
    ends = _any(_walk(test, [*operands[:first], *carried], found))
    if ends & DATA:
        found.setdefault(f"a loop whose end depends on data{_at(equation)}")
    elif ends:
        found.setdefault(f"a loop whose ends depend on the program, of whose turns it counts a part{_at(equation)}")
    return carried


def _carried(body: Program, operands: Sequence[int], consts: int, carry: int, found: dict[str, None]) -> list[int]:
    carried = list(operands[consts : consts + carry])
    while True:
        after = _walk(body, [*operands[:consts], *carried, *operands[consts + carry :]], found)
        new = [a | b for a, b in zip(carried, after[:carry], strict=True)]
        if new == carried:
            return [*new, *after[carry:]]
        carried = new


def flops(body: Program, programs: int) -> int:
    """Multiplications and additions of the matrix products that every program does, in those of bf16: of 8 bits units
    do twice as many in a cycle, of 4 bits four times. Of a condition the branch that does least counts.

    programs: of the grid.
    """
    return programs * _products(body)


def _products(program: Program) -> int:
    total = 0
    for equation in program.eqns:
        name = equation.primitive.name
        if name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            many = 2 * prod(equation.outvars[0].aval.shape) * prod(left[d] for d in contracted)
            total += many * min(16, max(_bits(v.aval.dtype) for v in equation.invars[:2])) // 16
        elif name == "cond":
            total += min(_products(branch) for branch in equation.params["branches"])
        elif name != "while":
            turns = equation.params["length"] if name == "scan" else 1
            total += turns * sum(map(_products, programs_in(equation)))
    return total


def _bits(dtype: np.dtype[np.generic]) -> int:
    """Of an element, by its name: 4 of float4_e2m1fn, whose array takes a byte each."""
    found = re.search("[0-9]+", str(dtype))
    return int(found[0]) if found else 8


def _is_reference(variable: Var) -> bool:
    return isinstance(variable.aval, MemRefType)


def _at(equation: Equation) -> str:
    line = str(equation.source).rpartition(":")[2]
    return f" (line {line})" if line.isdigit() else ""
