"""Whether what a compiler made of a program computes what its source says: the compiled text beside the jaxpr.

Both are programs of one list of arrays, so they are compared as two functions are (`values.compare`). What is added is
what compiled texts have: numbers that were folded, results that rest on what nobody models while others do not, and
branches that a drawn integer never takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, split_place
from layoutproof.core.result import Verdict
from layoutproof.from_hlo.expansions import TRIED
from layoutproof.from_hlo.kernels import with_those_of
from layoutproof.from_hlo.programs import Compiled, compiled, partitioned
from layoutproof.hlotext.lines import read_hlo
from layoutproof.ir.program import Array, Program
from layoutproof.values.compare import Comparison, Input, compare, elements_of
from layoutproof.values.elementwise import kind_of
from layoutproof.values.readings import readings, told
from layoutproof.values.walk import Prepared
from layoutproof.values.walked import beyond, numbers_in, unentered

QUESTION = "same"
NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
LARGEST = 2**25
"""Characters of a compiled text whose values are compared."""
MOST_ELEMENTS = 2**27
"""Elements of all arguments and results together."""
MOST_DRAWS = 24
"""How many numbers, or pairs of them, are tried for single integers that decide something."""
HIGH = 1024
"""Numbers of the code near which integers are tried are below it: a loop runs so often."""


def compared(
    text: str, source: Program, kept: Sequence[int] | None = None, shardings: Mapping[str, Sequence[str]] = NONE
) -> dict[str, Any]:
    """What comes of comparing a compiled text with the program that it was made of, as plain data.

    kept: the inputs of the source that are parameters of the compiled program, in order; None for all.
    shardings: of a text for several devices those of its `parameters` and `results`, as XLA prints them.
    """
    if len(text) > LARGEST:
        return _unknown(f"the compiled text has {len(text):,} characters, more than the {LARGEST:,} that are compared")
    try:
        (module,) = read_hlo(text.splitlines(keepends=True))
        made = compiled(module)
        devices = module.header.partitions * module.header.replicas
        if devices > 1:
            made = partitioned(made, devices, shardings.get("parameters", ()), shardings.get("results", ()))
    except LayoutError as error:
        return _unknown(f"the compiled text is not read as a program: {error.problem}")
    avals = [v.aval for v in source.invars]
    positions = list(range(len(avals))) if kept is None else list(kept)
    if odd := _misfit(made, source, positions):
        return _unknown(odd)
    inputs = [Input(f"argument {k}", tuple(a.shape), a.dtype) for k, a in enumerate(avals)]
    # what the source does not use is no parameter of the compiled program, and both are run on the same list
    every = tuple(v if k in positions else replace_with(v) for k, v in enumerate(source.invars))
    placed = dict(zip(positions, made.program.invars, strict=True))
    ours = replace(made.program, invars=tuple(placed.get(k, v) for k, v in enumerate(every)))
    return _answer(ours, source, inputs, made)


def replace_with(variable: Any) -> Any:
    """Another variable of the same kind."""
    return type(variable)(variable.aval)


def _misfit(made: Compiled, source: Program, positions: Sequence[int]) -> str:
    """Why parameters or results of both are not alike; "" where they are."""
    for what, ours, theirs in (
        ("parameters", [v.aval for v in made.program.invars], [source.invars[k].aval for k in positions]),
        ("results", list(made.program.out_avals), list(source.out_avals)),
    ):
        if len(ours) != len(theirs):
            return f"the compiled program has {len(ours)} {what}, and its source {len(theirs)}"
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if not isinstance(a, Array) or tuple(a.shape) != tuple(b.shape) or kind_of(a.dtype) != kind_of(b.dtype):
                return f"{what[:-1]} {k} of the compiled program is {_said(a)}, and of its source {_said(b)}"
    return ""


def _said(aval: Any) -> str:
    return f"{getattr(aval, 'dtype', 'no array')}{list(getattr(aval, 'shape', ()))}"


def _answer(ours: Program, source: Program, inputs: Sequence[Input], made: Compiled) -> dict[str, Any]:
    alike = with_those_of(ours, source) if made.kernels or made.unread else None
    if made.unread and alike is not None:
        # what nobody reads is the same function on both sides
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
    missing = {k: ("the compiled program", e) for k, e in beyond(ours).items()}
    missing |= {k: ("the source", e) for k, e in beyond(source).items() if k not in missing}
    outputs = [k for k in range(len(ours.outvars)) if k not in missing]
    where = ""
    if missing:
        side, equation = missing[min(missing)]
        rests = f"{len(missing)} of {len(ours.outvars)} results rest on {equation.primitive.name}"
        where = f"{rests}, of {side}, which is not modelled"
        if not outputs:
            return _unknown(where, str(equation.source), figures)
    if not ours.outvars or not any(prod(source.out_avals[k].shape) for k in outputs):
        return _unknown("no result has an element, so there is nothing to compare", "", figures)
    elements = elements_of((ours, source), inputs)
    if elements > MOST_ELEMENTS:
        return _unknown(
            f"arguments and results have {elements:,} elements, more than {MOST_ELEMENTS:,}: give smaller ones, which "
            "is another compilation", "", figures,
        )  # fmt: skip
    prepared = Prepared(readings=read)
    chosen = None if len(outputs) == len(ours.outvars) else outputs
    found = compare((ours, source), inputs, outputs=chosen, prepared=prepared)
    if found.drawn and found.verdict is Verdict.SAMPLED:
        for given in _tried(ours, source, inputs):
            again = compare((ours, source), given, 1, chosen, relations=False, prepared=prepared)
            if again.verdict is not Verdict.SAMPLED:
                found = again
                break
    if found.verdict in (Verdict.SAMPLED, Verdict.PROVED):
        for side, program in (("the compiled program", ours), ("the source", source)):
            never = unentered(program, prepared)
            if never is not None and found.verdict is Verdict.SAMPLED:
                what = "a loop that never ran" if never.primitive.name == "while" else "a branch that was never taken"
                words = f"{side} has {what}, and an input decides it: it was not compared"
                found = replace(found, verdict=Verdict.UNKNOWN, reason=words, place=str(never.source))
                break
    if made.kernels and not made.unread and alike is not None and found.verdict is Verdict.REFUTED:
        other = compare((alike, source), inputs, 1, chosen, relations=False, prepared=Prepared(readings=read))
        if other.verdict is not Verdict.REFUTED:
            # either the compiler's kernel is another one, or its module is read wrongly
            words = (
                f"with the kernels as the source has them there is no difference, and by their modules: {found.reason}"
            )
            found = replace(found, verdict=Verdict.UNKNOWN, reason=words)
    if missing and found.verdict is not Verdict.REFUTED:
        words = where if found.reason == "" else f"{where}; of the others: {found.reason}"
        if not found.reason:
            words += f"; the other {len(outputs)} show no difference"
        found = replace(found, verdict=Verdict.UNKNOWN, reason=words, place=found.place or str(equation.source))
    return _data(found, figures | {"results": f"{len(outputs)} of {len(ours.outvars)} compared"})


def _tried(ours: Program, source: Program, inputs: Sequence[Input]) -> Iterator[list[Input]]:
    """Integers near the numbers of the code, and beyond what arrays have as places."""
    numbers = {0, 1, 2}
    for program in (ours, source):
        for arrays in numbers_in(program, lambda dtype: getattr(dtype, "kind", "") in "iu").values():
            numbers |= {int(x) for a in arrays for x in np.unique(a)[:64] if 0 <= abs(int(x)) < HIGH}
    near = sorted({n + d for n in numbers for d in (-1, 0, 1)}, key=lambda n: (abs(n), n < 0))
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


def _unknown(reason: str, place: str = "", figures: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return _data(Comparison(Verdict.UNKNOWN, reason, place), dict(figures or {}))


def _data(found: Comparison, figures: dict[str, Any]) -> dict[str, Any]:
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


def finding(said: Mapping[str, Any], title: str) -> Finding:
    """What was found, as all findings are. title: what the program is called."""
    file, line, column = split_place(said["place"])
    point = None if said["point"] is None else {name: tuple(at) for name, at in said["point"].items()}
    figures = dict(said["figures"])
    if said["axioms"]:
        figures["axioms"] = ", ".join(said["axioms"])
    return Finding(
        QUESTION, f"{title}: compiled = source", said["reason"], file=file, line=line, column=column,
        verdict=Verdict(said["verdict"]), counterexample=point, figures=figures, decided_by=said["by"],
        hint=said["hint"], assumes=tuple(said["drawn"]),
        scope="over the reals, at these sizes: rounding is not asked",
    )  # fmt: skip
