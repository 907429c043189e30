"""Functions that a compiler writes out as polynomials, put back as what they are.

The instructions say in `op_name` which function of the source they come from. They are taken for it where they are one
piece, element by element, of one value, and give on float64 what the function gives, at `TRIED` numbers of its domain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import prod
from typing import Any, NamedTuple

from layoutproof.from_hlo.shapes import read_shape
from layoutproof.hlotext.module import Computation, Instruction
from layoutproof.ir.program import Array, Equation, Program, Variable, primitive

TRIED = 4096
"""Numbers at which the two are compared, at least."""
MOST_WALKS = 1024
"""Each of as many numbers as the array has elements."""
CLOSE, LEAST = 2e-6, 1e-12
"""Relative difference up to which they are the same, and the absolute one below which nothing is seen."""
_DOMAINS = {"erfc": (-12.0, 12.0), "erf": (-6.0, 6.0), "erf_inv": (-1.0, 1.0)}
"""Function of the source, which is a primitive -> where it is tried."""


class Region(NamedTuple):
    """Instructions that are one function. name: the function's.  members: names.  given, gives: of the one value that
    it takes, and of its result."""

    name: str
    members: frozenset[str]
    given: str
    gives: str


def regions(computation: Computation) -> list[Region]:
    """What may be a function that was written out: by where it comes from, and by what goes in and comes out."""
    named = {each.name: each.op_name.rpartition("/")[2] for each in computation.instructions}
    if not any(name in _DOMAINS for name in named.values()):
        return []
    fixed = _fixed(computation)
    whose: dict[str, set[str]] = {}
    for each in computation.instructions:
        if named[each.name] not in _DOMAINS or each.name in fixed or each.opcode == "parameter":
            continue
        mine = {each.name}
        for operand in each.operands:
            if operand in whose and named[operand] == named[each.name]:
                mine |= whose[operand]
        for name in mine:
            whose[name] = mine
    found = []
    for members in {id(group): group for group in whose.values()}.values():
        inside = [each for each in computation.instructions if each.name in members]
        given = {o for each in inside for o in each.operands if o not in members and o not in fixed}
        users = [each for each in computation.instructions if each.name not in members]
        gives = {o for each in users for o in each.operands if o in members}
        gives |= {each.name for each in inside if each.root}
        if len(given) == len(gives) == 1:
            found.append(Region(named[inside[0].name], frozenset(members), *given, *gives))
    return found


def _fixed(computation: Computation) -> set[str]:
    """The names of constants, and of what is made of these alone."""
    found: set[str] = set()
    for each in computation.instructions:
        if each.opcode == "constant" or (
            each.opcode in ("broadcast", "convert", "copy") and found.issuperset(each.operands)
        ):
            found.add(each.name)
    return found


def holds(region: Region, computation: Computation, made: Callable[[Computation], Program]) -> bool:
    """Whether a region gives what its function gives. made: a computation as a program."""
    import numpy as np

    from layoutproof.values.floats import Floats, Real, array_of
    from layoutproof.values.refusals import NotModelled, OutOfBounds
    from layoutproof.values.walk import Prepared, Walk

    known = computation.by_name
    if region.given not in known:
        return False
    source, result = known[region.given], known[region.gives]
    aval, out = read_shape(source.shape), read_shape(result.shape)
    if not isinstance(aval, Array) or not isinstance(out, Array) or aval.shape != out.shape or not prod(aval.shape):
        return False
    kept = region.members | _fixed(computation)
    inside = [each for each in computation.instructions if each.name in kept]
    given = Instruction(source.name, source.shape, "parameter", "0", "", source.line)
    body = [given, *(each._replace(root=each.name == region.gives) for each in inside)]
    written = made(Computation(f"{computation.name} of {region.gives}", False, computation.line, tuple(body)))
    variable, gives = Variable(aval), Variable(out)
    function = Program((variable,), (Equation(primitive(region.name), (variable,), (gives,)),), (gives,))
    low, high = _DOMAINS[region.name]
    size = prod(aval.shape)
    many = -(-TRIED // size)
    if many > MOST_WALKS:
        return False
    points = np.linspace(low, high, many * size + 2)[1:-1].reshape(many, *aval.shape)
    numbers, prepared = Floats(1), Prepared()
    try:
        for row in points:
            with np.errstate(all="ignore"):
                ours, theirs = (
                    array_of(Walk(numbers, prepared).run(side, [Real(row)])[0]) for side in (written, function)
                )
            if not (np.abs(ours - theirs) <= CLOSE * np.abs(theirs) + LEAST).all():
                return False
    except (NotModelled, OutOfBounds, AttributeError):
        return False
    return True


def skipped(found: Collection[Region]) -> Mapping[str, Region | None]:
    """Of the instructions of regions, the region that the last one stands for; None of the others."""
    table: dict[str, Any] = {name: None for region in found for name in region.members}
    return {**table, **{region.gives: region for region in found}}
