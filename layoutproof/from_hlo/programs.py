"""An HLO module as a `Program`: the one place that says how its computations, tuples and calls become equations.

Fusions and calls are opened where they stand; bodies of loops and branches are programs of their own, each made once.
A tuple is a tuple of variables; what only says where or when something is done (copies, layouts, memory spaces,
asynchronous pairs) is the value itself. What an instruction computes is said by one function each, by families:
`elementwise`, `movement`, `sums`, `control`, `exchanges`. An opcode that none of them knows is an equation of its
own name, which whoever walks over the program refuses by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.from_hlo import control, elementwise, exchanges, movement, problems, sums
from layoutproof.from_hlo.body import ModuleReading, Rule
from layoutproof.hlo.replication import tiles_of
from layoutproof.hlotext.module import Module
from layoutproof.ir.program import Array, Atom, Equation, Program, Variable, primitive
from layoutproof.layouts.sharding.tiles import listed
from layoutproof.values.devices import MOST_DEVICES, Split

RULES: Mapping[str, Rule] = {
    **elementwise.RULES, **movement.RULES, **sums.RULES, **control.RULES, **exchanges.RULES,
}  # fmt: skip
"""Opcode -> (body, instruction, operands) -> its value."""


@dataclass(frozen=True)
class CompiledModule:
    """A module as a program of its parameters. program: its inputs are the parameters in order, tuples opened.

    converts: of conversions between element types, (from, to) -> how many.  expansions: functions that are written out
    as polynomials and read as what they are, by name -> how many.  devices: that run it, each on its parts.
    kernels: how many are read by their own bodies.  unread: why others are not, each.
    """

    program: Program
    converts: Mapping[tuple[str, str], int]
    expansions: Mapping[str, int]
    devices: int = 1
    kernels: int = 0
    unread: Sequence[str] = ()


def compiled(module: Module, file: str = "", of_text: bool = False) -> CompiledModule:
    """A module as a program. LayoutError for a text that is broken, cut short, or too large.

    file: what places are named by where the text does not say where its user's program stands.  of_text: whether all
    places are lines of the text.
    """
    for error in module.errors:
        raise error
    if module.entry is None:
        raise LayoutError(problems.NO_ENTRY())
    reading = ModuleReading(module, RULES, file or "the compiled text", of_text)
    program = reading.program(module.entry)
    return CompiledModule(
        program, dict(reading.converts), dict(reading.expansions), kernels=reading.kernels, unread=tuple(reading.unread)
    )


def partitioned(made: CompiledModule, devices: int, ins: Sequence[str], outs: Sequence[str]) -> CompiledModule:
    """A module that each of several devices runs, as one program of the whole arrays.

    ins, outs: the sharding of each parameter and result, as XLA prints it; LayoutError for one that does not say which
    device holds which part.
    """
    inner = made.program
    split_ins, split_outs = (
        [split_of(text, atom.aval, devices) for text, atom in _paired(what, texts, atoms)]
        for what, texts, atoms in (("parameters", ins, inner.invars), ("results", outs, inner.outvars))
    )
    return _over(made, inner, devices, split_ins, split_outs)


def side_by_side(made: CompiledModule, devices: int, known: Mapping[int, Split | None]) -> CompiledModule:
    """A module that each of several devices runs, as one program of what all of them hold, along a new first dimension.

    known: of a parameter, by its position, which part of one array each device holds, None where each holds all of it;
    every other one is another array on each device. LayoutError for more devices than are walked over.
    """
    if devices > MOST_DEVICES:
        raise LayoutError(problems.TOO_MANY_DEVICES(devices, MOST_DEVICES))
    inner = made.program

    def row(atom: Atom) -> Variable:
        return Variable(Array((1, *atom.aval.shape), atom.aval.dtype))

    def reshaped(given: Atom, result: Variable) -> Equation:
        params = {"new_sizes": result.aval.shape, "dimensions": None}
        return Equation(primitive("reshape"), (given,), (result,), params)

    def rows(aval: Array) -> Split:
        rest = len(aval.shape)
        return Split((devices, *(1,) * rest), tuple((d, *(0,) * rest) for d in range(devices)))

    given = [v if k in known else row(v) for k, v in enumerate(inner.invars)]
    results = [row(v) for v in inner.outvars]
    around = Program(
        tuple(given),
        (
            *(reshaped(g, v) for k, (g, v) in enumerate(zip(given, inner.invars, strict=True)) if k not in known),
            *inner.eqns,
            *map(reshaped, inner.outvars, results),
        ),
        tuple(results),
    )
    ins = [known[k] if k in known else rows(v.aval) for k, v in enumerate(inner.invars)]
    return _over(made, around, devices, ins, [rows(v.aval) for v in inner.outvars])


def _over(
    made: CompiledModule, inner: Program, devices: int, ins: Sequence[Split | None], outs: Sequence[Split | None]
) -> CompiledModule:
    """A program of each device, as one of the whole arrays."""
    given = tuple(Variable(_whole(v.aval, split)) for v, split in zip(inner.invars, ins, strict=True))
    results = tuple(Variable(_whole(v.aval, split)) for v, split in zip(inner.outvars, outs, strict=True))
    params = {"jaxpr": inner, "devices": devices, "ins": tuple(ins), "outs": tuple(outs)}
    around = Equation(primitive("partitioned"), given, results, params)
    return replace(made, program=Program(given, (around,), results), devices=devices)


def _paired(what: str, texts: Sequence[str], atoms: Sequence[Variable]) -> list[tuple[str, Variable]]:
    if len(texts) != len(atoms):
        raise LayoutError(problems.SHARDINGS_COUNT(len(texts), len(atoms), what))
    return list(zip(texts, atoms, strict=True))


def split_of(text: str, aval: Array, devices: int) -> Split | None:
    """Which part of an array each device holds; None where each holds all of it. aval: of one part.

    >>> import numpy as np
    >>> split_of("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", Array((4, 8), np.dtype(np.float32)), 4)
    Split(counts=(2, 1), at=((0, 0), (0, 0), (1, 0), (1, 0)))
    """
    found = tiles_of(text)
    if found is not None and found.kind == "replicated":
        return None
    tiles = None if found is None else found.tiles
    rank = len(aval.shape)
    if found is None or tiles is None or set(found.subgroups) - {"replicated"} or tiles.count() != devices:
        said = shorten(text or "(not given)", 80)
        raise LayoutError(problems.SHARDING_NOT_SAID(said))
    if len(tiles.dims) != rank + len(found.subgroups):
        raise LayoutError(problems.SHARDING_RANK(shorten(text, 80), rank))
    at: list[tuple[int, ...]] = [()] * devices
    for device, part in zip(listed(tiles), product(*(range(n) for n in tiles.dims)), strict=True):
        at[device] = part[:rank]
    return Split(tiles.dims[:rank], tuple(at))


def _whole(aval: Array, split: Split | None) -> Array:
    """The array of which a device holds a part; uneven ones are no such array, and do not fit the source's."""
    if split is None:
        return aval
    return Array(tuple(n * many for n, many in zip(aval.shape, split.counts, strict=True)), aval.dtype)
