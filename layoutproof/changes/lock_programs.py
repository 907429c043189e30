"""What a lock file keeps of an HLO dump: its entry layout, what is donated, on how many devices it runs, copies that
change a layout, bitcasts, collectives, custom calls and the Mosaic kernels in them with what was proved of each.

The layout of every instruction would be the dump itself; two dumps are compared whole with `gate OLD NEW`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from layoutproof.changes.causes import under_causes
from layoutproof.changes.custom_calls import Inside, of_body, seen
from layoutproof.changes.functions import unknown
from layoutproof.changes.labels import computes
from layoutproof.changes.placed import gone_or_new, placed
from layoutproof.changes.program import DumpInstruction, DumpProgram, Exchange, LayoutDemands, read
from layoutproof.changes.program_changes import bitcast_pairs, changes, read_and_audited, relayouts
from layoutproof.changes.states import File
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.hlo.collectives import CollectiveText
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET as KERNEL

Line = tuple[str, Any, Any]
"""(kind, what, value), as one line of the lock file has it after the path."""
TEXTS = "compare the two texts: layoutproof gate OLD NEW, or gate --against REF where the old one is committed"
MOST_ALIKE = 100_000
"""Copies alike in one program; each is a thing of its own to be matched."""


def lines_of(file: File) -> list[Line]:
    """The lines of one dump. LayoutError for a dump that cannot be read: it is not locked."""
    program = read(file.data, file.path)
    if program.errors:
        raise program.errors[0]
    about = {i.number: [i.sharding, i.op_name] for i in program.entered}
    lines: list[Line] = []
    for k, shape in enumerate(program.parameters):
        lines.append(("parameter", k, [shape, *about.get(k, ["", ""])]))
    lines += [("result", k, shape) for k, shape in enumerate(program.results)]
    copies = Counter((c.what.base, c.what.op_name, c.source, c.target, c.parameter) for c in relayouts(program))
    lines += [("copy", list(copy), count) for copy, count in copies.items()]
    casts = Counter(pair for _, pair in bitcast_pairs(program))
    lines += [("bitcast", list(pair), count) for pair, count in casts.items()]
    lines.append(("module", "runs", [program.partitions, program.replicas, program.scheduled]))
    if program.entered or program.results:
        lines.append(("computes", "labels", computes(program)))
    lines += [("donation", [number, list(index)], words) for (number, index), words in program.donations.items()]
    exchanges = Counter(replace(each, line=0) for each in program.exchanges)
    lines += [("collective", _fields(each), count) for each, count in exchanges.items()]
    calls = Counter(replace(each, line=0) for each in program.customs if each.target != KERNEL)
    lines += [("call", _called(each), count) for each, count in calls.items()]
    kernels = [each for each in program.customs if each.target == KERNEL]
    for each, inside in seen(kernels):
        said = [[list(pair) for pair in pairs] for pairs in (inside.verdicts, of_body(each, inside) or ())]
        value = [each.written, inside.digest, list(inside.kernels), *said]
        lines.append(("kernel", _called(each), value))
    return lines


def _fields(of: Exchange) -> list[Any]:
    what = of.what
    said = [what.kind, what.over, what.along, what.reduction, of.base, of.op_name]
    return [*said, list(of.operands), list(of.results), of.size, of.depth, of.alone]


def _called(of: LayoutDemands) -> list[Any]:
    return [of.target, of.base, of.op_name, list(of.operands), of.result, of.said]


def _exchange(fields: Any) -> Exchange:
    kind, over, along, reduction, base, op_name, operands, results, size, depth, alone = fields
    what = CollectiveText(*_texts(kind, over, along, reduction))
    base, op_name = _texts(base, op_name)
    shapes = _texts(*operands), _texts(*results)
    return Exchange(what, base, op_name, 0, *shapes, _whole(size), _whole(depth), bool(alone))


def _custom(fields: Any, value: Any = None) -> LayoutDemands:
    target, base, op_name, operands, result, said = fields
    written, inside = "", None
    if value is not None:
        written, digest, kernels, verdicts, *body = value
        if not isinstance(kernels, list) or not isinstance(digest, str):
            raise TypeError(value)
        # an earlier version did not judge bodies
        inside = Inside(tuple(kernels), digest, _pairs(verdicts), _pairs(*body) if body else None)
    target, base, op_name, result, said, written = _texts(target, base, op_name, result, said, written)
    return LayoutDemands(target, base, op_name, 0, _texts(*operands), result, said, written, None, inside)


def _pairs(entries: Any) -> tuple[tuple[str, str], ...]:
    found = []
    for verdict, why in entries:
        verdict, why = _texts(verdict, why)
        found.append((verdict, why))
    return tuple(found)


def _texts(*values: object) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise TypeError(values)
    return tuple(map(str, values))


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _times(count: object) -> range:
    if not 0 < _whole(count) <= MOST_ALIKE:
        raise ValueError(count)
    return range(_whole(count))


def program_of(lines: Sequence[Line]) -> DumpProgram:
    """A program of which nothing is known but what was locked. ValueError, TypeError, KeyError for other lines."""
    program = DumpProgram("locked", named={"": {}})
    given = sorted((line for line in lines if line[0] in ("parameter", "result")), key=lambda line: int(line[1]))
    for kind, number, value in given:
        if kind == "result":
            program.results.append(str(value))
            continue
        shape, sharding, op_name = map(str, value)
        program.parameters.append(shape)
        name = f"parameter{number}"
        _add(program, DumpInstruction(name, "parameter", shape, "", 0, (), op_name, int(number), "", True, sharding))
    program.unsaid = all(line[0] != "module" for line in lines)
    for kind, what, count in lines:
        if kind == "module":
            program.partitions, program.replicas = map(_whole, count[:2])
            program.scheduled = bool(count[2])
        elif kind == "computes":
            program.computes = _texts(count)[0]
        elif kind == "donation":
            program.donations[_whole(what[0]), tuple(map(_whole, what[1]))] = _texts(count)[0]
        elif kind == "collective":
            program.exchanges += [_exchange(what) for _ in _times(count)]
        elif kind == "call":
            program.customs += [_custom(what) for _ in _times(count)]
        elif kind == "kernel":
            program.customs.append(_custom(what, count))
        elif kind == "copy":
            base, op_name, source, target, parameter = what
            for _ in _times(count):
                # as if another memory had it: so the copy is traced back to the parameter that it copies
                origin = (f"parameter{parameter}",) if int(parameter) >= 0 else ()
                operand = _add(program, DumpInstruction(_name(program), "copy-done", source, "", 0, origin))
                name = _name(program, base)
                _add(program, DumpInstruction(name, "copy", target, "", 0, (operand,), op_name))
        elif kind == "bitcast":
            source, target = what
            operand = _add(program, DumpInstruction(_name(program), "copy-done", source, "", 0))
            _add(program, DumpInstruction(_name(program), "bitcast", target, "", 0, (operand,)))
    return program


def drift(old: DumpProgram | None, file: File | None, relpath: str, same: bool = False) -> list[Finding]:
    """What changed in one dump since the lock was written. same: whether it is to compute what it did."""
    if file is None:
        return placed([gone_or_new(False, relpath)], relpath, relpath)
    after, errors = read_and_audited(file)
    found = [gone_or_new(True, relpath)] if old is None else under_causes(changes(old, after, whole=False), after)
    if old is not None and not errors:
        found += _computed(old, after, same)
    return placed([*errors, *found], relpath, file.path)


def _computed(old: DumpProgram, new: DumpProgram, same: bool) -> list[Finding]:
    """What is computed: a lock file has its labels, and no text whose values could be compared."""
    now = computes(new)
    known = old.computes.partition(":")[0] == now.partition(":")[0] != ""
    if known and old.computes == now:
        return []
    if same:
        why = "is labelled otherwise than when it was locked" if known else "is not in the lock file"
        why = f"what it computes {why}; values are compared of two texts, and a lock file has none"
        return unknown(why, True, TEXTS).over([])
    if not known:
        return []
    why = "it is labelled otherwise than when it was locked; whether values differ a lock file does not say"
    return [Finding("computation_differs", "what it computes", why, severity="warn", fix=TEXTS)]


def _name(program: DumpProgram, base: str = "locked") -> str:
    return f"{base}.{len(program.named[''])}"


def _add(program: DumpProgram, what: DumpInstruction) -> str:
    if not isinstance(what.shape, str):
        raise LayoutError("a shape is a text")
    program.named[""][what.name] = what
    return what.name
