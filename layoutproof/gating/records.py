"""The record of a compiled program as the gate compares it, and the changes between two."""

from __future__ import annotations

import json

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.gating import compiled_changes, problems
from layoutproof.gating.compiled_program import CompiledProgram, EntryValue, Exchange, LayoutCopy, LayoutDemands
from layoutproof.gating.entry import aligned
from layoutproof.gating.placed import gone_or_new, placed
from layoutproof.gating.states import File
from layoutproof.hlo.collectives import read_back
from layoutproof.hlotext.texts import logical
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET as KERNEL
from layoutproof.programs.record import Collective, Copy, KernelCall, ProgramValue, Record, read_record


def read(file: File) -> Record:
    """The record in a file. LayoutError, with the file, where there is none."""
    try:
        return read_record(json.loads(file.data), file.path)
    except (ValueError, RecursionError):
        raise LayoutError(problems.NO_RECORD(), file=file.path) from None


def compare(old: File | None, new: File | None, relpath: str) -> list[Finding]:
    """The findings between the records in two files; None where a state lacks the file."""
    return drift(None if old is None else program_of(read(old)), new, relpath)


def drift(old: CompiledProgram | None, file: File | None, relpath: str) -> list[Finding]:
    """The changes since an old program; None where there was none."""
    if file is None:
        return placed([gone_or_new(False, relpath)], relpath, relpath)
    new = program_of(read(file))
    found = [gone_or_new(True, new.name)] if old is None else compiled_changes.changes(aligned(old, new), new)
    return placed(found, relpath, file.path)


def changes(before: Record, after: Record, across: bool = False) -> list[Finding]:
    """Everything that changed between two programs, by what their records say. across: as of `compiled_changes`.

    >>> from layoutproof.programs.record import MemoryStats, Provenance
    >>> one, two = (Record("step", memory=MemoryStats(size, 0, 0, 0)) for size in (1000, 1500))
    >>> [(f.question, f.reason) for f in changes(one, two)]
    [('peak_memory', '1000 bytes before, 1500 now: +50 %')]
    """
    old, new = program_of(before), program_of(after)
    return compiled_changes.changes(aligned(old, new), new, across)


def program_of(record: Record) -> CompiledProgram:
    """A record as the gate compares it: custom calls besides kernels, bitcasts and channels are not known."""
    return CompiledProgram(
        record.name,
        made=record.made,
        memory=record.memory,
        cycles=record.cycles,
        schedule=record.schedule,
        devices={"devices": record.devices},
        scheduled=None,
        donations={(each.number, ()): each.donated for each in record.parameters if each.donated},
        parameters=[*map(_value, record.parameters)],
        results=[*map(_value, record.results)],
        exchanges=[*map(_exchange, record.collectives)],
        customs=[*map(_kernel, record.kernels)],
        # a layout that is not kept has no place in memory: only what moves elements is compared
        copies=[_copy(each) for each in record.copies if each.kind in ("relayout", "unknown")],
        bitcasts=None,
    )


def _value(of: ProgramValue) -> EntryValue:
    # an array without elements is nowhere
    sharding = "" if of.unpadded == 0 else of.sharding
    return EntryValue(of.number, of.shape, sharding, of.name, line=0, whole=of.whole, copies=of.devices)


def _exchange(of: Collective) -> Exchange:
    operands, results = (tuple(map(logical, side)) for side in (of.operands, of.results))
    return Exchange(
        read_back(of.kind, of.does),
        op_name=of.place.op_name,
        operands=operands,
        results=results,
        size=of.bytes,
        depth=None,
        alone=None,
        often=of.often,
        axes=of.axes,
        place=str(of.place),
    )


def _copy(of: Copy) -> LayoutCopy:
    size = None if of.bytes is None else of.bytes * of.count
    word, _, number = of.boundary.partition(" ")
    parameter = int(number) if word == "parameter" and number.isdecimal() else -1
    place = f"copy of {of.boundary}" if of.boundary else f"copy {of.place}"
    return LayoutCopy(
        of.source,
        of.target,
        size,
        parameter,
        "",
        of.place.op_name,
        where=(of.boundary if parameter < 0 else "", ""),
        often=of.often,
        reason=of.reason or "unknown" if of.kind == "unknown" else "",
        place=place if parameter < 0 else "",
    )


def _kernel(of: KernelCall) -> LayoutDemands:
    name = of.name or str(of.place)
    return LayoutDemands(
        KERNEL, of.name, of.place.op_name, written=of.digest, vmem=of.vmem, cycles=of.cycles, place=name
    )
