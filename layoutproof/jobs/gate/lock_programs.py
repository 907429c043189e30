"""What a lock file keeps of an HLO dump: its entry layout, the copies that change a layout, its bitcasts.

The layout of every instruction would be the dump itself; two dumps are compared whole with `gate OLD NEW`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.jobs.formats import Finding
from layoutproof.jobs.gate.program import Instruction, Program, read
from layoutproof.jobs.gate.programs import bitcast_pairs, changes, gone_or_new, placed, read_and_audited, relayouts
from layoutproof.jobs.gate.states import File

Line = tuple[str, Any, Any]
"""(kind, what, value), as one line of the lock file has it after the unit."""
MOST_ALIKE = 100_000
"""Copies alike in one program; each is a thing of its own to be matched."""


def lines_of(file: File) -> list[Line]:
    """The lines of one dump. LayoutError for a dump that cannot be read: it is not locked."""
    program = read(file.data, file.path)
    if program.errors:
        raise program.errors[0]
    about = {i.number: [i.sharding, i.op_name] for i in program.instructions if i.entry and i.number >= 0}
    lines: list[Line] = []
    for k, shape in enumerate(program.parameters):
        lines.append(("parameter", k, [shape, *about.get(k, ["", ""])]))
    lines += [("result", k, shape) for k, shape in enumerate(program.results)]
    copies = Counter((c.what.base, c.what.op_name, c.source, c.target, c.parameter) for c in relayouts(program))
    lines += [("copy", list(copy), count) for copy, count in copies.items()]
    casts = Counter(pair for _, pair in bitcast_pairs(program))
    return lines + [("bitcast", list(pair), count) for pair, count in casts.items()]


def program_of(lines: Iterable[Line]) -> Program:
    """A program of which nothing is known but what was locked. ValueError, TypeError, KeyError for other lines."""
    program = Program("locked")
    given = sorted((line for line in lines if line[0] in ("parameter", "result")), key=lambda line: int(line[1]))
    for kind, number, value in given:
        if kind == "result":
            program.results.append(str(value))
            continue
        shape, sharding, op_name = map(str, value)
        program.parameters.append(shape)
        name = f"parameter{number}"
        _add(program, Instruction(name, "parameter", shape, "", 0, (), op_name, int(number), "", True, sharding))
    for kind, what, count in lines:
        if kind == "copy":
            base, op_name, source, target, parameter = what
            if not 0 < int(count) <= MOST_ALIKE:
                raise ValueError(count)
            for _ in range(int(count)):
                # as if another memory had it: so the copy is traced back to the parameter that it copies
                origin = (f"parameter{parameter}",) if int(parameter) >= 0 else ()
                operand = _add(program, Instruction(_name(program), "copy-done", source, "", 0, origin))
                name = _name(program, base)
                _add(program, Instruction(name, "copy", target, "", 0, (operand,), op_name))
        elif kind == "bitcast":
            source, target = what
            operand = _add(program, Instruction(_name(program), "copy-done", source, "", 0))
            _add(program, Instruction(_name(program), "bitcast", target, "", 0, (operand,)))
    return program


def drift(old: Program | None, file: File | None, unit: str) -> list[Finding]:
    """What changed in one dump since the lock was written."""
    if file is None:
        return placed([gone_or_new(False, unit)], unit, unit)
    after, errors = read_and_audited(file)
    found = [gone_or_new(True, unit)] if old is None else changes(old, after, whole=False)
    return placed([*errors, *found], unit, file.path)


def _name(program: Program, base: str = "locked") -> str:
    return f"{base}.{len(program.instructions)}"


def _add(program: Program, what: Instruction) -> str:
    if not isinstance(what.shape, str):
        raise LayoutError("a shape is a text")
    program.instructions.append(what)
    program.shapes["", what.name] = what
    return what.name
