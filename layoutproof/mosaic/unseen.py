"""What the compiler's estimate of cycles cannot see of a kernel, from its jaxpr; and the flops that it surely does.

The estimate is a simulation in which what is read from memory is 0 (libtpu 0.0.52, v5e): a body under a condition on
data is left out, a loop whose end depends on data gets a made-up number of trips. Conditions on program ids are
evaluated, and loops with a known number of turns are counted. A loop whose first or last turn depends on a program id
gets a made-up number too: of 32 to 6,300 turns 0.4 to 0.5 of them, of 500 from `p * 500` to `p * 500 + 500` 215.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod
from operator import or_
from typing import Any

from layoutproof.pallas.from_jax.adapter import inner_jaxprs, is_literal, opened, place_of
from layoutproof.pallas.from_jax.bodies import JaxReader

_REMOTE = {"dma_start": ("tree", 4), "semaphore_signal": ("args_tree", 3)}
"""What may speak to another device or core -> the parameter with the tree of its operands, and where in it devices
and cores stand."""

_READER = JaxReader()

DATA, PROGRAM = 1, 2
"""What a value depends on: what is read, drawn or asked of the chip; which program it is. 0 = neither."""
_SOURCES = {"program_id": PROGRAM, "prng_random_bits": DATA, "axis_index": DATA}


def unseen(jaxpr: Any) -> list[str]:
    """Why the estimate of a kernel with this body says nothing, each reason once with its line."""
    inner, _ = opened(jaxpr)
    found: dict[str, None] = {}
    _walk(inner, [0] * len(inner.invars), found)
    return list(found)


def _any(kinds: Iterable[int]) -> int:
    return reduce(or_, kinds, 0)


def _walk(jaxpr: Any, given: Sequence[int], found: dict[str, None], constants: Sequence[int] = ()) -> list[int]:
    """What the results of a jaxpr depend on.

    given: the same of its arguments; references do not count.  constants: of what it has from outside, () = nothing.
    """
    on = {id(v): kind for v, kind in zip(jaxpr.invars, given, strict=True)}
    on |= {id(v): kind for v, kind in zip(jaxpr.constvars, constants, strict=False)}

    def depends(variable: Any) -> int:
        return 0 if is_literal(variable) else on.get(id(variable), 0)

    for equation in jaxpr.eqns:
        name = equation.primitive.name
        operands = [depends(v) for v in equation.invars]
        if name in _REMOTE and _elsewhere(equation, *_REMOTE[name]):
            found.setdefault(f"it speaks to another device or core{_at(equation)}")
        results = _inside(equation, name, operands, found)
        for variable, kind in zip(equation.outvars, results, strict=True):
            on[id(variable)] = kind | _SOURCES.get(name, 0)
    return [depends(v) for v in jaxpr.outvars]


def _elsewhere(equation: Any, tree: str, start: int) -> bool:
    """Whether an equation names another device or core; how one is named is a parameter that a local one has too."""
    return any(part is not None for part in _READER.unflatten(equation.params[tree], equation.invars)[start:])


def _inside(equation: Any, name: str, operands: Sequence[int], found: dict[str, None]) -> list[int]:
    """What the results of one equation depend on."""
    count = len(equation.outvars)
    if name == "cond":
        if operands[0] & DATA:
            found.setdefault(f"a condition on data, which it takes to be 0{_at(equation)}")
        branches = [_walk(opened(b)[0], operands[1:], found) for b in equation.params["branches"]]
        return [operands[0] | _any(each) for each in zip(*branches, strict=True)] if count else []
    if name == "while":
        return _while(equation, operands, found)
    if name == "scan":
        consts, carry = _READER.scan_parts(equation)
        inner, _ = opened(equation.params["jaxpr"])
        return _carried(inner, operands, consts, carry, found)
    bodies = [opened(closed)[0] for _, closed in inner_jaxprs(equation.params)]
    if len(bodies) == 1 and len(bodies[0].outvars) == count:
        body, some = bodies[0], _any(operands)
        if name == "run_scoped":
            # what it gives its body are references to memory of its own
            return _walk(body, [0] * len(body.invars), found, operands)
        if len(body.invars) == len(operands):
            return _walk(body, operands, found)
        return _walk(body, [some] * len(body.invars), found, [some] * len(body.constvars))
    for body in bodies:
        _walk(body, [_any(operands)] * len(body.invars), found)
    # what is read from a reference is data
    reads = DATA if any(_is_reference(v) for v in equation.invars) else 0
    return [0 if _is_reference(v) else reads | _any(operands) for v in equation.outvars]


def _while(equation: Any, operands: Sequence[int], found: dict[str, None]) -> list[int]:
    first, second = equation.params["cond_nconsts"], equation.params["body_nconsts"]
    test, body = opened(equation.params["cond_jaxpr"])[0], opened(equation.params["body_jaxpr"])[0]
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


def _carried(body: Any, operands: Sequence[int], consts: int, carry: int, found: dict[str, None]) -> list[int]:
    carried = list(operands[consts : consts + carry])
    while True:
        after = _walk(body, [*operands[:consts], *carried, *operands[consts + carry :]], found)
        new = [a | b for a, b in zip(carried, after[:carry], strict=True)]
        if new == carried:
            return [*new, *after[carry:]]
        carried = new


def flops(jaxpr: Any, programs: int) -> int:
    """Multiplications and additions of the matrix products that every program does, in those of bf16: of 8 bits units
    do twice as many in a cycle, of 4 bits four times. Of a condition the branch that does least counts.

    programs: of the grid.
    """
    return programs * _products(opened(jaxpr)[0])


def _products(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            many = 2 * prod(equation.outvars[0].aval.shape) * prod(left[d] for d in contracted)
            total += many * min(16, max(_bits(v.aval.dtype) for v in equation.invars[:2])) // 16
        elif name == "cond":
            total += min(_products(opened(branch)[0]) for branch in equation.params["branches"])
        elif name != "while":
            turns = equation.params["length"] if name == "scan" else 1
            total += turns * sum(_products(opened(closed)[0]) for _, closed in inner_jaxprs(equation.params))
    return total


def _bits(dtype: Any) -> int:
    """Of an element, by its name: 4 of float4_e2m1fn, whose array takes a byte each."""
    found = re.search("[0-9]+", str(dtype))
    return int(found[0]) if found else 8


def _is_reference(variable: Any) -> bool:
    return not is_literal(variable) and "Ref" in type(variable.aval).__name__


def _at(equation: Any) -> str:
    place = place_of(equation.source_info)
    line = place.rpartition(":")[2]
    return f" (line {line})" if line.isdigit() else ""
