"""A record for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from layoutproof.core.amounts import size
from layoutproof.core.counted import Counted
from layoutproof.core.errors import shorten
from layoutproof.core.visible import visible
from layoutproof.programs.record import Collective, Copy, Often, Place, PricedOperation, Record, Reshard

_LINES = 3
"""Lines of the source that are named with their cycles."""


def text(record: Record, top: int = 5) -> str:
    """A record as the command prints it. top: lines of each list."""
    return "\n".join(map(visible, [head(record), *_lines(record, top)]))


def head(record: Record) -> str:
    """One line that says which program, and what compiled it."""
    made = record.made
    where = " ".join(filter(None, (made.target, made.topology)))
    many = f"{record.devices} device{'' if record.devices == 1 else 's'}"
    said = (made.function or record.name, where, made.compiler, many)
    return "program  " + ", ".join(filter(None, said))


def _lines(record: Record, top: int) -> Iterator[str]:
    memory = record.memory
    parts = [
        f"{name} {size(value)}"
        for name, value in (
            ("arguments", memory.arguments if memory.arguments is not None else record.entry_bytes),
            ("outputs", memory.outputs),
            ("aliased", memory.aliased),
            ("temporaries", memory.temporaries),
            ("code", memory.generated_code),
        )
        if value is not None
    ]
    peak = "" if memory.taken is None else f"peak {size(memory.taken)}: "
    own = "" if memory.peak is None else f"; the compiler's own peak {size(memory.peak)}"
    yield f"  memory   {peak}{', '.join(parts)}{own}"
    work = _work(record)
    if work:
        yield f"  work     {', '.join(work)}"
    if record.priced:
        yield f"  cycles   {_cycles(record.cycles, 'estimated for', record.priced, record.operations)}"
    if record.schedule is not None:
        found = record.schedule
        why = f" ({shorten(found.why, 100)})" if found.why else ""
        known = _cycles(found.cycles, "simulated for", found.many, found.operations)
        yield f"  schedule {known if found.many else 'unknown'}{why}"
    if record.padded:
        waste = record.padded - record.unpadded
        yield f"  padding  {size(waste)} of {size(record.padded)} ({100 * waste / record.padded:.1f} %)"
    yield from _listed("sends", [_collective(each) for each in record.collectives], top)
    yield from _listed("reshards", [_reshard(each) for each in record.reshards if each.needed is not None], top)
    yield from _listed("copies", [_copy(each) for each in record.copies if each.kind in ("relayout", "unknown")], top)
    kernels = [
        f"{each.name}: {'VMEM unknown' if each.vmem is None else f'{size(each.vmem)} of VMEM'}"
        f"{'' if each.cycles is None else f', {each.cycles:,} cycles'}{_often(each.often)}{_at(each.place)}"
        for each in record.kernels
    ]
    yield from _listed("kernels", kernels, top)
    donated = [f"{each.name or each.number} -> {each.donated}" for each in record.parameters if each.donated]
    yield from _listed("donated", donated, top)
    yield from _listed("unknown", list(record.unknown), top)


def _work(record: Record) -> list[str]:
    """Flops, transcendental functions and bytes, loops by their trips."""
    done = record.work
    if done is None:
        found = [] if record.flops is None else [f"{record.flops:,.0f} flops (loop bodies once)"]
        moved = record.bytes_accessed
        return found + ([] if moved is None else [f"{size(int(moved))} accessed (loop bodies once)"])
    found = [f"{done.flops.words('flops')}{_open(done.flops)}"]
    kinds = [f"{each.words()} {kind}" for kind, each in done.products.items()]
    found += [f"products {', '.join(kinds)}"] if kinds else []
    if done.source is not None and done.source.most != 0:
        found.append(f"{done.source.words()} in the source on all devices")
    if done.transcendentals.most != 0:
        found.append(done.transcendentals.words("transcendental"))
    if done.bytes.most is None:
        return [*found, f"at least {size(done.bytes.least)} read and written{_open(done.bytes)}"]
    return [*found, f"{size(done.bytes.most)} read and written"]


def _cycles(total: int | None, by: str, many: int, operations: Sequence[PricedOperation]) -> str:
    """The sum of cycles, and the lines of the source that most of it is from; of one line of which nothing is known
    how often it runs, nothing is said."""
    lines: Counter[str] = Counter()
    for each in operations:
        if each.place.source and each.often.times:
            lines[each.place.source] += each.cycles * each.often.times
    whole = "an unknown number" if total is None else f"{total:,}"
    most = ", ".join(f"{line} {cycles:,}" for line, cycles in lines.most_common(_LINES))
    return f"{whole} {by} {many} operation{'' if many == 1 else 's'}{f': {most}' if most else ''}"


def _open(of: Counted) -> str:
    return f" ({shorten(of.why, 80)})" if of.most is None and of.why else ""


def _listed(name: str, rows: list[str], top: int) -> Iterator[str]:
    for k, row in enumerate(rows[:top]):
        yield f"  {name if k == 0 else '':<8} {shorten(row, 200)}"
    if len(rows) > top:
        yield f"           and {len(rows) - top} more"


def _collective(of: Collective) -> str:
    over = of.does.partition(" over ")[2] if of.axes is None else ", ".join(of.axes) or "no axis"
    amount = "an unknown number of bytes" if of.bytes is None else size(of.bytes)
    return f"{of.kind} over {shorten(over, 60)}: {amount}{_often(of.often)}{_at(of.place)}"


def _reshard(of: Reshard) -> str:
    """In bytes, not in KiB: a reader compares the two numbers."""
    place = " ".join(filter(None, (", ".join(of.collectives), of.place.source)))
    return f"{of.received} bytes received, {of.needed} would do{_often(of.often)}   {place}"


def _copy(of: Copy) -> str:
    amount = "an unknown number of bytes" if of.bytes is None else size(of.bytes * of.count)
    many = f" in {of.count}" if of.count > 1 else ""
    boundary = f", of {of.boundary}" if of.boundary else ""
    return f"{of.opcode} {of.source} -> {of.target}: {amount}{many}{_often(of.often)}{boundary}{_at(of.place)}"


def _often(often: Often) -> str:
    if often.times is None:
        return ", an unknown number of times"
    times = "" if often.times == 1 else f", {often.times} times"
    return f"{times}, in a branch" if often.sometimes else times


def _at(place: Place) -> str:
    return f"   {' '.join(filter(None, (place.instruction, place.source)))}"
