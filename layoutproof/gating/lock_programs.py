"""The lock file's record of an HLO dump: its entry layout, donations, number of devices, copies that change a layout,
bitcasts, collectives, custom calls and the Mosaic kernels in them with the facts proved of each.

The layout of every instruction would be the dump itself; two dumps are compared whole with `gate OLD NEW`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.document import JsonObject
from layoutproof.core.finding import Finding
from layoutproof.gating import problems, records
from layoutproof.gating.array_classes import bytes_of
from layoutproof.gating.causes import under_causes
from layoutproof.gating.compiled_changes import changes
from layoutproof.gating.compiled_program import (
    BitcastPair,
    CompiledProgram,
    EntryValue,
    Exchange,
    Inside,
    LayoutCopy,
    LayoutDemands,
    Verdicts,
)
from layoutproof.gating.custom_calls import of_body, seen
from layoutproof.gating.entry import aligned
from layoutproof.gating.functions import unknown
from layoutproof.gating.labels import computes
from layoutproof.gating.placed import gone_or_new, placed
from layoutproof.gating.program import DumpProgram, read
from layoutproof.gating.program_changes import read_and_audited
from layoutproof.gating.states import File
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
    lines: list[Line] = [("parameter", p.number, [p.shape, p.sharding, p.op_name]) for p in program.parameters]
    lines += [("result", r.number, r.shape) for r in program.results]
    copies = Counter((c.base, c.op_name, c.source, c.target, c.parameter) for c in program.copies)
    lines += [("copy", list(copy), count) for copy, count in copies.items()]
    casts = Counter((source, target) for source, target, *_ in program.bitcasts)
    lines += [("bitcast", list(pair), count) for pair, count in casts.items()]
    devices = program.devices
    lines.append(("module", "runs", [devices["partitions"], devices["replicas"], program.scheduled]))
    if any(each.base for each in program.parameters) or program.results:
        lines.append(("computes", "labels", computes(program)))
    lines += [("donation", [number, list(index)], words) for (number, index), words in program.donations.items()]
    exchanges = Counter(replace(each, line=0) for each in program.exchanges)
    lines += [("collective", _fields(each), count) for each, count in exchanges.items()]
    calls = Counter(replace(each, line=0) for each in program.customs if each.target != KERNEL)
    lines += [("call", _called(each), count) for each, count in calls.items()]
    kernels = [each for each in program.customs if each.target == KERNEL]
    for each, inside in seen(kernels):
        assert inside is not None
        said = [[list(pair) for pair in pairs] for pairs in (inside.verdicts, of_body(each, inside) or ())]
        value = [each.written, inside.digest, list(inside.kernels), *said]
        lines.append(("kernel", _called(each), value))
    return lines


def _fields(of: Exchange) -> list[object]:
    what = of.what
    said = [what.kind, what.over, what.along, what.reduction, of.base, of.op_name]
    return [*said, list(of.operands), list(of.results), of.size, of.depth, of.alone]


def _called(of: LayoutDemands) -> list[object]:
    return [of.target, of.base, of.op_name, list(of.operands), of.result, of.said]


def _exchange(fields: JsonObject) -> Exchange:
    *said, base, op_name, operands, results, size, depth, alone = fields
    what, (base, op_name) = CollectiveText(*_texts(*said)), _texts(base, op_name)
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


def _pairs(entries: Iterable[Sequence[object]]) -> Verdicts:
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


def program_of(lines: Sequence[Line]) -> CompiledProgram:
    """The program of a dump that was locked. ValueError, TypeError, KeyError for other lines."""
    entry: dict[str, list[EntryValue]] = {"parameter": [], "result": []}
    devices, scheduled, computed_ = dict[str, int](), False, ""
    donations: dict[tuple[int, tuple[int, ...]], str] = {}
    exchanges, customs = list[Exchange](), list[LayoutDemands]()
    copies, bitcasts = list[LayoutCopy](), list[BitcastPair]()
    for kind, what, value in lines:
        if kind == "result":
            entry[kind].append(EntryValue(int(what), str(value)))
        elif kind == "parameter":
            shape, sharding, op_name = map(str, value)
            entry[kind].append(EntryValue(int(what), shape, sharding, op_name, f"parameter{what}", 0))
        elif kind == "module":
            devices = dict(zip(("partitions", "replicas"), map(_whole, value[:2]), strict=True))
            scheduled = bool(value[2])
        elif kind == "computes":
            computed_ = _texts(value)[0]
        elif kind == "donation":
            donations[_whole(what[0]), tuple(map(_whole, what[1]))] = _texts(value)[0]
        elif kind == "collective":
            exchanges += [_exchange(what) for _ in _times(value)]
        elif kind == "call":
            customs += [_custom(what) for _ in _times(value)]
        elif kind == "kernel":
            customs.append(_custom(what, value))
        elif kind == "copy":
            base, op_name, source, target, parameter = what
            base, op_name, source, target = _texts(base, op_name, source, target)
            copy = LayoutCopy(source, target, bytes_of(target), int(parameter), base, op_name)
            copies += [copy for _ in _times(value)]
        elif kind == "bitcast":
            source, target = _texts(*what)
            bitcasts += [BitcastPair(source, target) for _ in _times(value)]
    # an earlier version kept nothing of these
    said = bool(devices)
    return CompiledProgram(
        "locked",
        devices=devices if said else None,
        scheduled=scheduled if said else None,
        donations=donations if said else None,
        parameters=sorted(entry["parameter"], key=lambda each: each.number),
        results=sorted(entry["result"], key=lambda each: each.number),
        exchanges=exchanges if said else None,
        customs=customs if said else None,
        copies=copies,
        bitcasts=bitcasts,
        computes=computed_,
    )


def drift(old: CompiledProgram | None, file: File | None, relpath: str, same: bool = False) -> list[Finding]:
    """The changes in one dump or record since the lock was written. same: whether a dump has to compute the same."""
    if file is None or file.is_program:
        return records.drift(old, file, relpath)
    after, errors = read_and_audited(file)
    found = [gone_or_new(True, relpath)] if old is None else under_causes(changes(aligned(old, after), after), after)
    if old is not None and not errors:
        found += _computed(old, after, same)
    return placed([*errors, *found], relpath, file.path)


def _computed(old: CompiledProgram, new: DumpProgram, same: bool) -> list[Finding]:
    """The computed values: a lock file has their labels, and no text whose values could be compared."""
    now = computes(new)
    known = old.computes.partition(":")[0] == now.partition(":")[0] != ""
    if known and old.computes == now:
        return []
    if same:
        why = "is labelled otherwise than when it was locked" if known else "is not in the lock file"
        why = problems.LOCK_WITHOUT_VALUES(why)
        return unknown(why, True, TEXTS).over([])
    if not known:
        return []
    why = problems.LABELLED_OTHERWISE()
    return [Finding("computation_differs", "what it computes", why, severity="warn", fix=TEXTS)]
