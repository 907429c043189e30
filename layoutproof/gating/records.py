"""Changes between the records of two compiled programs: memory, copies, collectives, entry, kernels, cycles.

A record of another compiler version differs for the compiler's own reasons: cycles are then not compared, and all that
is found stands under `compiler`, which is unknown until the old record is made anew with the compiler of the new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Finding, unknown
from layoutproof.gating.dump_record import DumpRecord, EntryValue, title
from layoutproof.gating.entry import aligned, donations, entry
from layoutproof.gating.matching import Match, Round, match
from layoutproof.gating.placed import gone_or_new, placed
from layoutproof.gating.states import File
from layoutproof.hlotext.texts import logical
from layoutproof.programs.record import Collective, Copy, KernelCall, Often, ProgramValue, Record, read_record


def read(file: File) -> Record:
    """The record in a file. LayoutError, with the file, where there is none."""
    try:
        return read_record(json.loads(file.data), file.path)
    except (ValueError, RecursionError):
        raise LayoutError("not JSON, so not the record of a program", file=file.path) from None


def compare(old: File | None, new: File | None, relpath: str) -> list[Finding]:
    """The findings between the records in two files; None where a state lacks the file."""
    return drift(None if old is None else read(old), new, relpath)


def drift(old: Record | None, file: File | None, relpath: str) -> list[Finding]:
    """The changes since an old record; None where there was none."""
    if file is None:
        return placed([gone_or_new(False, relpath)], relpath, relpath)
    new = read(file)
    found = [gone_or_new(True, new.name)] if old is None else changes(old, new)
    return placed(found, relpath, file.path)


def changes(before: Record, after: Record, across: bool = False) -> list[Finding]:
    """Everything that changed between two programs, by what their records say.

    across: they were made with two compilers to see what these do otherwise, so that the differences are the answer.

    >>> from layoutproof.programs.record import MemoryStats, Provenance
    >>> one, two = (Record("step", memory=MemoryStats(size, 0, 0, 0)) for size in (1000, 1500))
    >>> [(f.question, f.reason) for f in changes(one, two)]
    [('peak_memory', '1000 bytes before, 1500 now: +50 %')]
    """
    other = before.made.compiler != after.made.compiler
    found = [*_memory(before, after), *_entry(before, after), *_collectives(before, after)]
    found += [*_copies(before, after), *_kernels(before, after, other)]
    if before.devices != after.devices:
        why = f"the program runs on {after.devices} devices now, on {before.devices} before"
        found.insert(0, Finding("devices", "number of devices", why))
    if not other:
        found += _amount("estimated_cycles", "estimated cycles", before.cycles, after.cycles, "cycles")
        return found or lowered(before, after)
    if not found or across:
        return found
    sides = {"before": before.made.compiler or "not said", "after": after.made.compiler or "not said"}
    why = f"{len(found)} differences may be the compiler's own; cycles are not compared"
    renew = f"{after.made.command or 'layoutproof compile ..'} -o DIR"
    fix = (
        "compile both with one compiler: layoutproof gate --against REF --compile-base for programs of spec files, "
        f"else {renew} at the old revision; where all is well, renew the lock: layoutproof gate --lock"
    )
    return [unknown("compiler", why, fix=fix, follows=tuple(found), **sides)]


def lowered(before: Record, after: Record) -> list[Finding]:
    """The finding where there is no other: another program was compiled, and its figures are the same."""
    one, other = before.made, after.made
    if one.lowered == other.lowered or not (one.lowered and other.lowered):
        return []
    why = "the program changed; nothing that a record holds did, and what it computes is not compared"
    if one.jax != other.jax:
        why += f"; it was lowered by jax {one.jax}, and is by {other.jax}"
    return [
        Finding("program", "lowered program", why, before=f"lowered {one.lowered}", after=f"lowered {other.lowered}")
    ]


def _memory(before: Record, after: Record) -> list[Finding]:
    one, other = before.memory, after.memory
    whole = _amount("peak_memory", "peak memory", one.taken, other.taken, "bytes")
    part = _amount("temporaries", "temporaries", one.temporaries, other.temporaries, "bytes")
    if [found.question for found in (*whole, *part)] == ["peak_memory", "temporaries"]:
        # more temporaries are a part of it, and no second thing
        return [replace(whole[0], follows=tuple(part))]
    return [*whole, *part]


def _amount(kind: str, subject: str, old: int | None, new: int | None, unit: str) -> list[Finding]:
    """An increase is of its own class, a decrease is `shrank`; an amount that only one side has is unknown."""
    if old == new:
        return []
    if old is None or new is None:
        return [unknown(subject, f"{'the old' if old is None else 'the new'} record does not say it")]
    share = {"percent": 100 * (new - old) / old} if old else {}
    figures: dict[str, Any] = {f"{unit}_before": old, f"{unit}_after": new, **share}
    if unit == "bytes":
        figures["bytes"] = new - old
    why = f"{old} {unit} before, {new} now" + (f": {share['percent']:+.4g} %" if share else "")
    return [Finding(kind if new > old else "shrank", subject, why, figures=figures)]


def _entry(before: Record, after: Record) -> Iterator[Finding]:
    """Parameters and results as of two dumps, and on how many devices each element is."""
    new = _seen(after)
    old = aligned(_seen(before), new)
    yield from entry(old, new)
    for kept, value in zip(old.parameters, after.parameters, strict=False):
        if kept.number >= 0:
            yield from _replicated("parameter", before.parameters[kept.number], value)
    for kept, value in zip(old.results, after.results, strict=False):
        if kept.number >= 0:
            yield from _replicated("result", before.results[kept.number], value)
    yield from donations(old, new)


def _replicated(what: str, old: ProgramValue, new: ProgramValue) -> Iterator[Finding]:
    if old.devices is not None and new.devices is not None and new.devices > old.devices:
        why = f"each element is on {new.devices} devices now, on {old.devices} before"
        sides: dict[str, Any] = {"before": old.sharding, "after": new.sharding}
        sides["figures"] = {"bytes": new.bytes} if new.bytes is not None else {}
        yield Finding("replicated", f"{what} {title(str(new.number), new.name)}", why, **sides)


def _seen(record: Record) -> DumpRecord:
    """The entry of a record, in the form of a dump's."""
    return DumpRecord(
        record.name,
        partitions=record.devices,
        donations={(each.number, ()): each.donated for each in record.parameters if each.donated},
        parameters=[*map(_value, record.parameters)],
        results=[*map(_value, record.results)],
    )


def _value(of: ProgramValue) -> EntryValue:
    # an array without elements is nowhere
    sharding = "" if of.unpadded == 0 else of.sharding
    return EntryValue(of.number, of.shape, sharding, of.name, line=0, whole=of.whole)


def _collectives(before: Record, after: Record) -> Iterator[Finding]:
    rounds: list[Round[Collective]] = [
        Round(lambda c: (c.does, c.operands, c.results, c.often, c.place.op_name), alike=True),
        Round(lambda c: (c.does, c.operands, c.results, c.often), alike=True),
        # one that moved to another line, with other arrays around it, is still one exchange
        Round(
            lambda c: (c.does, *(tuple(map(logical, side)) for side in (c.operands, c.results)), c.often), alike=True
        ),
        Round(lambda c: (c.kind, c.place.op_name) if c.place.op_name else None),
        Round(lambda c: (c.kind, c.operands, c.results), match_heuristic="by its shapes"),
        Round(lambda c: None if c.bytes is None else (c.does, c.bytes, c.often), alike=True),
    ]
    for pair in match(before.collectives, after.collectives, rounds):
        yield from _collective(pair)


def _collective(pair: Match[Collective]) -> Iterator[Finding]:
    each = pair.new or pair.old
    assert each is not None
    more: dict[str, Any] = {"match_heuristic": pair.match_heuristic}
    subject = f"{each.kind} {each.place}"
    if pair.old is None:
        why = f"{_said(each.bytes)} that did not move before, {_often(each.often)}, over {_over(each)}"
        yield Finding("new_collective", subject, why, after=each.does, figures={"bytes": each.bytes or 0})
    elif pair.new is None:
        yield Finding("vanished_collective", subject, f"{_said(each.bytes)} no longer move", before=each.does)
    elif pair.old.does != pair.new.does:
        why = f"over {_over(pair.new)} now, over {_over(pair.old)} before"
        yield Finding("regrouped", subject, why, before=pair.old.does, after=pair.new.does, **more)
    else:
        for old, new, what in ((_all(pair.old), _all(pair.new), "bytes each run"),):
            if new is None and old is not None:
                yield unknown(subject, f"it moves {pair.new.bytes} bytes {_often(pair.new.often)}")
            elif old is not None and new is not None and old != new:
                kind = "grown_collective" if new > old else "shrunk_collective"
                figures = {"bytes": new - old, "bytes_before": old, "bytes_after": new}
                yield Finding(kind, subject, f"{old} {what} before, {new} now", figures=figures, **more)


def _copies(before: Record, after: Record) -> Iterator[Finding]:
    rounds: list[Round[Copy]] = [
        Round(lambda c: (c.kind, c.source, c.target, c.boundary, c.often), alike=True),
        Round(lambda c: (c.kind, c.source, c.target, c.boundary)),
    ]
    # a layout that is not kept has no place in memory: only what moves elements is compared
    olds, news = ([c for c in r.copies if c.kind in ("relayout", "unknown")] for r in (before, after))
    for pair in match(olds, news, rounds):
        each = pair.new or pair.old
        assert each is not None
        subject = f"copy of {each.boundary}" if each.boundary else f"copy {each.place}"
        sides: dict[str, Any] = {"before": each.source, "after": each.target}
        old, new = (0 if c is None else _total(c) for c in (pair.old, pair.new))
        if each.kind == "unknown" and pair.old is None:
            yield unknown(subject, each.reason, **sides)
        elif new is None:
            yield unknown(subject, f"{_said(each.bytes)} {_often(each.often)}", **sides)
        elif old is not None and new > old:
            kind = "relaid_parameter" if each.boundary.startswith("parameter") and not old else "new_copy"
            why = f"{new} bytes are copied to another layout, {old} before, {_often(each.often)}"
            yield Finding(kind, subject, why, figures={"bytes": new - old}, **sides)
        elif old is None or new < old:
            why = f"{new} bytes are copied to another layout, {'an unknown number' if old is None else old} before"
            yield Finding("vanished_copy", subject, why, figures={"bytes": (old or new) - new}, **sides)


def _kernels(before: Record, after: Record, other: bool = False) -> Iterator[Finding]:
    """other: they were made with two compilers, whose cycles are not compared."""
    rounds: list[Round[KernelCall]] = [
        Round(lambda k: (k.name, k.digest, k.vmem), alike=True),
        Round(lambda k: (k.name, k.place.op_name)),
        Round(lambda k: k.name or None, match_heuristic="by its name"),
    ]
    for pair in match(before.kernels, after.kernels, rounds):
        each = pair.new or pair.old
        assert each is not None
        subject = f"kernel {each.name or each.place}"
        if pair.old is None:
            yield Finding("added", subject, "the program did not run it before")
        elif pair.new is None:
            yield Finding("vanished_call", subject, "the program no longer runs it")
        else:
            vmem = _amount("vmem", f"VMEM of {subject}", pair.old.vmem, pair.new.vmem, "bytes")
            why = "its text changed; a record has its digest alone: compare the compiled texts to have it proved"
            figures: Mapping[str, Any] = {}
            if pair.old.digest == pair.new.digest:
                yield from vmem
                continue
            if pair.old.cycles is not None and not other:
                # without cycles of the old one, as in older records, its text says that it changed
                cycles = _amount("estimated_cycles", f"cycles of {subject}", pair.old.cycles, pair.new.cycles, "cycles")
                yield from cycles
            if [each.question for each in vmem] == ["shrank"]:
                # smaller blocks are more steps: less VMEM is reported with this cost, and is no gain by itself
                figures, less = vmem[0].figures, vmem[0].reason
                why = f"it takes less VMEM, {less}, and {why}; its steps and cycles: layoutproof kernels --compile"
                vmem = []
            yield from vmem
            yield Finding("kernel_body", subject, why, figures=figures, match_heuristic=pair.match_heuristic)


def _all(of: Collective) -> int | None:
    return None if of.bytes is None or of.often.times is None else of.bytes * of.often.times


def _total(of: Copy) -> int | None:
    return None if of.bytes is None or of.often.times is None else of.bytes * of.count * of.often.times


def _said(size: int | None) -> str:
    return "an unknown number of bytes" if size is None else f"{size} bytes"


def _often(often: Often) -> str:
    if often.times is None:
        return f"in a loop whose trips are unknown ({shorten(often.why, 60)})"
    return ("at most " if often.sometimes else "") + ("once" if often.times == 1 else f"{often.times} times") + " a run"


def _over(of: Collective) -> str:
    if of.axes is not None:
        return f"mesh axes {', '.join(of.axes) or 'none'}"
    return shorten(of.does, 80)
