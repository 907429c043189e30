"""Whether a compiled program computes what another one computed: two texts of HLO, evaluated at the same points.

Nothing of them runs: a text is data, and what its instructions compute is known here (`from_hlo`). Parameters are
matched by their number, as callers give them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.from_hlo.kernels import TARGET, apart
from layoutproof.from_hlo.programs import CompiledModule, compiled, side_by_side, split_of
from layoutproof.hlotext.lines import read_hlo
from layoutproof.hlotext.module import Instruction, Module
from layoutproof.ir.program import Program
from layoutproof.programs import problems
from layoutproof.programs.differing import elements_differ
from layoutproof.programs.functions import Computed, attempted
from layoutproof.programs.same_source import LARGEST, difference, misfit
from layoutproof.questions.reduced import equations_in, work_of
from layoutproof.values.compare import Comparison
from layoutproof.values.devices import Split
from layoutproof.values.elementwise import kind_of
from layoutproof.values.pair import Input
from layoutproof.values.parting import ComputedEquation, parted
from layoutproof.values.readings import both_ways, told
from layoutproof.values.walk import Prepared
from layoutproof.values.work import MOST_STEPS

_ROUNDED = frozenset(("add", "sub", "mul", "div", "reduce_sum", "reduce_prod", "dot_general", "conv_general_dilated"))
"""Primitives whose results are rounded to the type that they have."""
NAMES = ("the new text", "the old text")
UNREAD_KERNELS = "kernels that are not read are of the same bytes in both texts, and are given the same"
_DOES = frozenset(("outfeed", "infeed", "send", "send-done", "recv", "recv-done", "rng-get-and-update-state"))
"""Opcodes that do more than give a result."""


def computed(old: str, new: str) -> Computed:
    """The comparison of the values of two texts. It never raises: a failed comparison is unknown."""
    return attempted(lambda: _computed(old, new))


def _computed(old: str, new: str) -> Computed:
    for name, text in zip(NAMES, (new, old), strict=True):
        if len(text) > LARGEST:
            return Computed("unknown", problems.TEXT_OF_SIDE_TOO_LONG(name, len(text), LARGEST))
    read = [_read(text, name) for name, text in zip(NAMES, (new, old), strict=True)]
    modules, sides = (read[0][0], read[1][0]), (read[0][1], read[1][1])
    many, before = (module.header.devices for module in modules)
    if many != before:
        return Computed("unknown", problems.DEVICES_DIFFER(_devices(many), _devices(before)))
    positions = range(len(sides[1].program.invars))
    if odd := misfit(sides[0].program, sides[1].program, positions, NAMES) or _other_integers(*sides):
        return Computed("unknown", odd)
    return _asked(modules, sides) if many == 1 else _on_devices(modules, sides, many)


def _devices(many: int) -> str:
    return "one device" if many == 1 else f"{many:,} devices"


def _on_devices(modules: tuple[Module, Module], sides: tuple[CompiledModule, CompiledModule], devices: int) -> Computed:
    """Programs of several devices, compared by the results of each device.

    A text need not say which devices hold the same. Programs that agree for all contents of the devices are the same;
    programs that differ where all devices hold the same differ for every sharding; otherwise it is unknown.
    """

    def ask(known: Mapping[int, Split | None]) -> Computed:
        ours, before = (side_by_side(each, devices, known) for each in sides)
        return _asked(modules, (ours, before))

    invars = sides[0].program.invars
    known = _shardings(modules, sides, devices)
    found = ask(known)
    single = [k for k, v in enumerate(invars) if kind_of(v.aval.dtype) == "i" and not v.aval.shape and k not in known]
    if found.state == "unknown" and single:
        # a number by which a loop or a branch goes is one on all devices: others could not exchange anything there
        again = ask({**known, **dict.fromkeys(single)})
        if again.state != "unknown":
            said = f"the same on all devices: {', '.join(f'parameter {k}' for k in single)}"
            found = replace(again, notes=(*again.notes, said))
    if found.state == "same" or len(known) == len(invars):
        return found
    alike = ask({k: known.get(k) for k in range(len(invars))})
    if found.state == "unknown" or alike.state == "other":
        return alike if alike.state == "other" else found
    what = "there is no difference" if alike.state == "same" else f"it is not known ({alike.reason})"
    return Computed(
        "unknown", problems.SAME_WHERE_ALL_HOLD_IT(what, found.reason), notes=found.notes,
    )  # fmt: skip


def _shardings(
    modules: tuple[Module, Module], sides: tuple[CompiledModule, CompiledModule], devices: int
) -> dict[int, Split | None]:
    """Who holds which part of a parameter, of those of which both texts say it."""
    said = []
    for module in modules:
        entry = module.entry
        parameters = () if entry is None else entry.parameters
        # of a tuple each of its arrays has a sharding of its own
        plain = all(not each.shape.startswith("(") for each in parameters)
        said.append([each.sharding for each in parameters] if plain else [])
    found: dict[int, Split | None] = {}
    for k, (now, then) in enumerate(zip(*said, strict=False)):
        if now and now == then:
            with suppress(LayoutError):
                found[k] = split_of(now, sides[0].program.invars[k].aval, devices)
    return found


def _asked(modules: tuple[Module, Module], sides: tuple[CompiledModule, CompiledModule]) -> Computed:
    """The comparison of two programs of the same parameters and results."""
    ours, before = sides
    program, was = ours.program, before.program
    work = max(map(work_of, (program, was)))
    if work > MOST_STEPS:
        return Computed("unknown", problems.TOO_MANY_STEPS(work, MOST_STEPS))
    inputs = inputs_of(program)
    read = both_ways(program, was)
    found, results = difference((program, was), inputs, Prepared(readings=read, foreign=True), NAMES)
    notes = (*found.drawn, *((f"folded: {told(read)}",) if read else ()))
    without = apart(program, was) if found.verdict is Verdict.UNKNOWN and found.witness is None else None
    if without is not None:
        again, _ = difference(without, inputs_of(without[0]), Prepared(readings=read, foreign=True), NAMES)
        if again.verdict is Verdict.SAMPLED:
            found, results = again, ""
            notes = (*again.drawn, *notes, UNREAD_KERNELS)
    state = {Verdict.SAMPLED: "same", Verdict.PROVED: "same", Verdict.REFUTED: "other"}.get(found.verdict, "unknown")
    said = Computed(state, found.reason, found.points, found.decided_by or "points", notes=notes, place=found.place)
    if state == "same":
        return replace(said, narrower=_narrower(ours, before), figures={"results": results} if results else {})
    if state == "unknown" or found.witness is None:
        return replace(said, state="unknown", points=0)
    return _other(said, found, modules, sides, inputs, read)


def program_of(text: str, name: str) -> Program:
    """The program of a text, of several devices as one of what each holds; LayoutError where there is none.

    name: of the text, in words.
    """
    module, made = _read(text, name)
    devices = module.header.devices
    return made.program if devices == 1 else side_by_side(made, devices, {}).program


def inputs_of(program: Program) -> list[Input]:
    """The drawn inputs for its parameters."""
    return [Input(f"parameter {k}", tuple(v.aval.shape), v.aval.dtype) for k, v in enumerate(program.invars)]


def _read(text: str, name: str) -> tuple[Module, CompiledModule]:
    """A text and its program. LayoutError where it is none, or one whose values are not compared."""
    (module,) = read_hlo(text.splitlines(keepends=True))
    for computation in module.computations:
        for each in computation.instructions:
            # a kernel has its effects in its own module
            if each.opcode in _DOES or (_has_effects(each) and f'"{TARGET}"' not in each.attributes):
                raise LayoutError(problems.MORE_THAN_RESULTS(name, each.name, each.opcode))
    try:
        made = compiled(module, name, of_text=True)
    except LayoutError as error:
        at = f", line {error.line}" if error.line else ""
        raise LayoutError(problems.SIDE_NO_PROGRAM(name, at, error.problem)) from None
    if made.unread and any(_has_effects(each) for c in module.computations for each in c.instructions):
        raise LayoutError(problems.MORE_IN_KERNEL(name, made.unread[0]))
    return module, made


def _has_effects(each: Instruction) -> bool:
    return each.opcode == "custom-call" and "has_side_effect=true" in each.attributes


def _other_integers(ours: CompiledModule, before: CompiledModule) -> str:
    """Why integers of both are not drawn alike; "" where they are."""
    for k, (a, b) in enumerate(zip(ours.program.invars, before.program.invars, strict=True)):
        if kind_of(a.aval.dtype) == "i" and a.aval.dtype != b.aval.dtype:
            return problems.TYPE_CHANGED(k, a.aval.dtype, b.aval.dtype)
    return ""


def _narrower(ours: CompiledModule, before: CompiledModule) -> str:
    """Where the new text rounds to fewer bits than the old one, in words; "" where it does not."""
    now, then = map(_rounding, (ours, before))
    return ", ".join(f"{what}: {many} more" for what, many in sorted((now - then).items()))


def _rounding(side: CompiledModule) -> Counter[str]:
    """The operations that round to fewer bits than float32 has, with their counts: conversions, and arithmetic."""
    found = Counter({f"{a} to {b}": many for (a, b), many in side.converts.items() if _rounds(a, b)})
    for equation in equations_in(side.program):
        for variable in equation.outvars:
            kind = element_type(getattr(variable.aval, "dtype", ""))
            if equation.primitive.name in _ROUNDED and _rounds("f32", kind):
                found[f"{equation.primitive.name} in {kind}"] += 1
    return found


def _rounds(source: str, target: str) -> bool:
    floats = all("f" in name and name != "pred" for name in (source, target))
    return floats and ELEMENT_BITS.get(target, 0) < ELEMENT_BITS.get(source, 0)


def _other(
    said: Computed, found: Comparison, modules: tuple[Module, Module], sides: tuple[CompiledModule, CompiledModule],
    inputs: Sequence[Input], read: Mapping[float, Any],
) -> Computed:  # fmt: skip
    """The first output that differs, and the first instructions at which the two part."""
    witness = found.witness
    assert witness is not None
    programs = sides[0].program, sides[1].program
    # integers are those on which it shows
    given = [
        replace(i, value=array.astype(i.dtype)) if kind_of(i.dtype) in "ib" and i.dtype.kind in "iub" else i
        for i, array in zip(inputs, witness.inputs, strict=True)
    ] if witness.inputs else list(inputs)  # fmt: skip
    steps = parted(programs, given, witness.output, read, numbers_too=True)
    words = [_step(step, module) for step, module in zip(steps, modules, strict=True)]
    lines = [_line(step) for step in steps]
    many = len(programs[0].outvars)
    name = f"result {witness.output}" if many > 1 else "the result"
    index = witness.index
    if sides[0].devices > 1:
        name, index = f"{name} of device {index[0]}", index[1:]
    return replace(
        said, output=name, place=words[0], before=words[1], line=lines[0],
        reason=elements_differ(name, witness, index),
        figures={"different": witness.different, "elements": witness.of},
    )  # fmt: skip


def _line(step: ComputedEquation | None) -> int:
    return int(step.place.rpartition(":")[2]) if step is not None else 0


def _step(step: ComputedEquation | None, module: Module) -> str:
    """An instruction as people find it: its text, where the user's program asked for it, and its line."""
    line = _line(step)
    found = next(filter(None, (_at(c.instructions, line) for c in module.computations)), None)
    if found is None:
        return ""
    where = ", ".join(filter(None, (found.op_name, module.header.source(found), f"line {line}")))
    return f"{found.opcode}({', '.join(found.operands) or found.inside[:40]}) ({where})"


def _at(instructions: Sequence[Instruction], line: int) -> Instruction | None:
    return next((each for each in instructions if each.line == line), None)
