"""Whether a compiled program computes what its source says: the compiled text against the jaxpr.

Both are programs of one list of arrays, so they are compared as two functions are (`values.compare`). Added here are
the features of compiled texts: folded constants, unmodelled operations on which only some results depend, and branches
that a drawn integer never takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, split_place
from layoutproof.core.message import extended
from layoutproof.core.result import Verdict
from layoutproof.from_hlo.expansions import TRIED
from layoutproof.from_hlo.kernels import with_those_of
from layoutproof.from_hlo.programs import CompiledModule, compiled, partitioned
from layoutproof.hlotext.lines import read_hlo
from layoutproof.ir.program import Array, Program, Variable
from layoutproof.programs import problems
from layoutproof.questions import problems as question_problems
from layoutproof.questions.reduced import work_of
from layoutproof.values.compare import Comparison, compare
from layoutproof.values.elementwise import kind_of
from layoutproof.values.pair import Input, Pair, elements_of
from layoutproof.values.partly import partly
from layoutproof.values.readings import readings, told
from layoutproof.values.ties import untied
from layoutproof.values.walk import Prepared
from layoutproof.values.walked import LEAST, numbers_in, unentered
from layoutproof.values.work import MOST_STEPS

QUESTION = "same"
NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
LARGEST = 2**25
"""Characters of a compiled text whose values are compared."""
MOST_ELEMENTS = 2**27
"""Elements of all arguments and results together."""
MOST_TIED = 8
"""How often integers are drawn where equal ones are looked for."""
MOST_DRAWS = 24
"""How many numbers, or pairs of them, are tried for single integers that decide something."""
HIGH = 1024
"""Numbers of the code near which integers are tried are below it: a loop runs so often."""


def compared(
    text: str, source: Program, kept: Sequence[int] | None = None, shardings: Mapping[str, Sequence[str]] = NONE
) -> dict[str, object]:
    """The comparison of a compiled text with its source program, as plain data.

    kept: the inputs of the source that are parameters of the compiled program, in order; None for all.
    shardings: of a text for several devices those of its `parameters` and `results`, as XLA prints them.
    """
    if len(text) > LARGEST:
        return unknown(problems.TEXT_TOO_LONG(len(text), LARGEST))
    try:
        (module,) = read_hlo(text.splitlines(keepends=True))
        made = compiled(module)
        devices = module.header.devices
        if devices > 1:
            made = partitioned(made, devices, shardings.get("parameters", ()), shardings.get("results", ()))
    except LayoutError as error:
        return unknown(problems.TEXT_NO_PROGRAM(error.problem))
    avals = [v.aval for v in source.invars]
    positions = list(range(len(avals))) if kept is None else list(kept)
    if odd := misfit(made.program, source, positions):
        return unknown(odd)
    inputs = [Input(f"argument {k}", tuple(a.shape), a.dtype) for k, a in enumerate(avals)]
    # an unused input is no parameter of the compiled program, and both are run on the same list
    every = tuple(v if k in positions else Variable(v.aval) for k, v in enumerate(source.invars))
    placed = dict(zip(positions, made.program.invars, strict=True))
    ours = replace(made.program, invars=tuple(placed.get(k, v) for k, v in enumerate(every)))
    return _answer(ours, source, inputs, made)


def misfit(
    ours: Program,
    source: Program,
    positions: Sequence[int],
    names: tuple[str, str] = ("the compiled program", "its source"),
) -> str:
    """Why parameters or results of both are not alike; "" where they are.

    positions: the inputs of the second that are parameters of the first, in order.  names: of the two.
    """
    one, other = names
    for what, mine, theirs in (
        ("parameters", [v.aval for v in ours.invars], [source.invars[k].aval for k in positions]),
        ("results", list(ours.out_avals), list(source.out_avals)),
    ):
        if len(mine) != len(theirs):
            return problems.COUNTS_DIFFER(one, len(mine), what, other, len(theirs))
        for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if not isinstance(a, Array) or tuple(a.shape) != tuple(b.shape) or kind_of(a.dtype) != kind_of(b.dtype):
                return problems.ONE_DIFFERS(what[:-1], k, one, _said(a), other, _said(b))
    return ""


def _said(aval: object) -> str:
    return f"{getattr(aval, 'dtype', 'no array')}{list(getattr(aval, 'shape', ()))}"


def _answer(ours: Program, source: Program, inputs: Sequence[Input], made: CompiledModule) -> dict[str, object]:
    alike = with_those_of(ours, source) if made.kernels or made.unread else None
    if made.unread and alike is not None:
        # an instruction that is not read is the same function on both sides
        ours = alike
    read = readings(ours, source)
    figures: dict[str, Any] = {"devices": made.devices} if made.devices > 1 else {}
    if made.converts:
        figures["conversions"] = ", ".join(f"{a} to {b}: {n}" for (a, b), n in sorted(made.converts.items()))
    if made.expansions:
        said = ", ".join(f"{name}: {n}" for name, n in sorted(made.expansions.items()))
        figures["written_out"] = f"{said}; as the function itself, which float64 confirms at {TRIED:,} numbers"
    if read:
        figures["folded"] = told(read)
    if made.unread and alike is not None:
        figures["kernels"] = f"taken as the source has them, since not all are read: {'; '.join(made.unread)}"
    elif made.kernels:
        figures["kernels"] = f"{made.kernels} by their own Mosaic modules"
    names = ("the compiled program", "the source")
    found, results = difference((ours, source), inputs, Prepared(readings=read), names)
    if made.kernels and not made.unread and alike is not None and found.verdict is Verdict.REFUTED:
        other, _ = difference((alike, source), inputs, Prepared(readings=read), names)
        if other.verdict is not Verdict.REFUTED:
            # either the compiler's kernel is another one, or its module is read wrongly
            alone = "with the kernels as the source has them there is no difference, and by their modules"
            found = replace(found, verdict=Verdict.UNKNOWN, reason=f"{alone}: {found.reason}")
    return _data(found, figures | ({"results": results} if results else {}))


def difference(
    sides: tuple[Program, Program], inputs: Sequence[Input], prepared: Prepared, names: tuple[str, str]
) -> tuple[Comparison, str]:
    """(The comparison of two programs, how many of their results were compared; "" where none were).

    prepared: the programs of all walks, new.  names: of the two, in words.
    """
    ours, source = sides
    if not any(prod(aval.shape) for aval in source.out_avals):
        return Comparison(Verdict.UNKNOWN, problems.NO_ELEMENT()), ""
    elements = elements_of((ours, source), inputs)
    if elements > MOST_ELEMENTS:
        why = f"arguments and results have {elements:,} elements, more than {MOST_ELEMENTS:,}"
        return Comparison(Verdict.UNKNOWN, extended(why, ": give smaller ones, which is another compilation")), ""

    def ask(outputs: Sequence[int] | None) -> Comparison:
        # relations believe the shapes that are said
        found = compare((ours, source), inputs, outputs=outputs, relations=not prepared.foreign, prepared=prepared)
        if found.drawn and found.verdict is Verdict.SAMPLED:
            for given in _tried(ours, source, inputs):
                again = compare((ours, source), given, 1, outputs, relations=False, prepared=prepared)
                if again.verdict is not Verdict.SAMPLED:
                    found = again
                    break
        for side, program in zip(names, sides, strict=True):
            never = unentered(program, prepared) if found.verdict is Verdict.SAMPLED else None
            if never is not None:
                loop = f"a loop that never ran {LEAST} times"
                what = loop if never.primitive.name == "while" else "a branch that was never taken"
                words = problems.NOT_REACHED(side, what)
                found = replace(found, verdict=Verdict.UNKNOWN, reason=words, place=str(never.source))
        if found.verdict is Verdict.SAMPLED and prepared.foreign:
            # of a source and what was made of it the compiler writes comparisons as it likes
            draws = list(islice(_tried(ours, source, inputs), MOST_TIED)) if found.drawn else []
            why, place = untied(Pair(sides, inputs, prepared, outputs), draws)
            if why:
                found = replace(found, verdict=Verdict.UNKNOWN, reason=why, place=place)
        return found

    found, outputs = partly(sides, None, ask)
    return found, f"{len(outputs)} of {len(ours.outvars)} compared" if outputs else ""


def _tried(ours: Program, source: Program, inputs: Sequence[Input]) -> Iterator[list[Input]]:
    """Integers near the numbers of the code, and beyond what arrays have as places."""
    numbers = {0, 1, 2}
    for program in (ours, source):
        for arrays in numbers_in(program, lambda dtype: getattr(dtype, "kind", "") in "iu").values():
            numbers |= {int(x) for a in arrays for x in np.unique(a)[:64] if 0 <= abs(int(x)) < HIGH}
    near = sorted({n + d for n in numbers for d in range(-1, LEAST + 1)}, key=lambda n: (abs(n), n < 0))
    singles = [k for k, i in enumerate(inputs) if kind_of(i.dtype) == "i" and prod(i.shape) == 1]
    many = max(numbers) + 2
    rng = np.random.default_rng(29)

    def given(chosen: Mapping[int, int], low: int, high: int) -> list[Input]:
        made = []
        for k, i in enumerate(inputs):
            if kind_of(i.dtype) == "b":
                i = replace(i, value=rng.integers(0, 2, i.shape).astype(bool))
            elif kind_of(i.dtype) == "i":
                dtype = i.dtype if i.dtype.kind in "iu" else np.dtype(np.int8)
                info = np.iinfo(dtype)
                value = np.full(i.shape, chosen[k]) if k in chosen else rng.integers(low, high, i.shape, endpoint=True)
                i = replace(i, value=np.clip(value, info.min, info.max).astype(dtype))
            made.append(i)
        return made

    for low, high in ((0, many), (-many, many)):
        yield given({}, low, high)
    for values in islice(product(near, repeat=len(singles)), MOST_DRAWS if singles else 0):
        yield given(dict(zip(singles, values, strict=True)), 0, 3)


def too_large(source: Program) -> str:
    """Why a program is not walked over at its sizes; "" where it is."""
    elements = sum(prod(a.shape) for a in (*(v.aval for v in source.invars), *source.out_avals))
    if elements > MOST_ELEMENTS:
        return question_problems.ELEMENTS_GIVEN(elements, MOST_ELEMENTS)
    work = work_of(source)
    return problems.TOO_MANY_STEPS(work, MOST_STEPS) if work > MOST_STEPS else ""


def unknown(reason: str) -> dict[str, object]:
    """An answer that nothing came of."""
    return _data(Comparison(Verdict.UNKNOWN, reason), {})


def _data(found: Comparison, figures: dict[str, object]) -> dict[str, object]:
    point = None
    if found.verdict is Verdict.REFUTED:
        if found.witness is not None:
            point = {"output": [found.witness.output], "element": list(found.witness.index)}
        elif found.differs is not None:
            point = {"output": [found.differs[0]], "element": list(found.differs[1])}
    figures = {"points": found.points} | figures if found.points else figures
    if found.sums:
        # the types in which the compiled program keeps sums, the coarsest first
        kinds = {each.dtype: each.roundoff for each in found.sums}
        figures["sums"] = ", ".join(sorted(kinds, key=lambda dtype: -kinds[dtype]))
    by = "points" if found.verdict is Verdict.SAMPLED else "float64" if point and found.witness else found.decided_by
    return {
        "verdict": found.verdict.value, "reason": found.reason, "place": found.place, "point": point, "by": by,
        "axioms": list(found.axioms), "drawn": list(found.drawn), "figures": figures, "hint": found.hint,
    }  # fmt: skip


def finding(said: JsonObject, title: str) -> Finding:
    """The comparison as a finding. title: the name of the program."""
    file, line, column = split_place(said["place"])
    point = None if said["point"] is None else {name: tuple(at) for name, at in said["point"].items()}
    figures = dict(said["figures"])
    if said["axioms"]:
        figures["axioms"] = ", ".join(said["axioms"])
    reduced = ", ".join(said.get("reduced", ()))
    title += f", another compilation, at {reduced}" if reduced else ""
    return Finding(
        QUESTION, f"{title}: compiled = source", said["reason"], file=file, line=line, column=column,
        verdict=Verdict(said["verdict"]), counterexample=point, figures=figures, decided_by=said["by"],
        hint=said["hint"], assumes=tuple(said["drawn"]),
        scope=f"over the reals, at {'smaller' if reduced else 'these'} sizes: rounding is not asked",
    )  # fmt: skip
