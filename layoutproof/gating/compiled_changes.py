"""Changes between two compiled programs: memory, entry, copies, bitcasts, collectives, custom calls, cycles.

There is one comparison of each, whatever the programs were read from: two dumps, two records, a lock and what is here.
Programs of two compiler versions differ for the compiler's own reasons: cycles are then not compared, and all that is
found stands under `compiler`, which is unknown until the old one is made anew with the compiler of the new one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.message import extended
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.gating.amounts import amount
from layoutproof.gating.array_classes import HARMLESS, array_classes
from layoutproof.gating.compiled_program import (
    CompiledProgram,
    LayoutCopy,
    LayoutDemands,
    bytes_in_words,
    often_in_words,
    title,
    total,
)
from layoutproof.gating.custom_calls import customs
from layoutproof.gating.entry import entry, header
from layoutproof.gating.exchanges import exchanges
from layoutproof.gating.lock_head import RENEW
from layoutproof.gating.matching import Round, match
from layoutproof.hlo.shapes import read_array
from layoutproof.hlotext.texts import logical
from layoutproof.programs.record import Provenance, Schedule

if TYPE_CHECKING:
    from layoutproof.hlo.bitcasts import BitcastAnswer


def changes(before: CompiledProgram, after: CompiledProgram, across: bool = False) -> list[Finding]:
    """Everything that changed. before: as `entry.aligned` gives it.

    across: they were made with two compilers to see what these do otherwise, so that the differences are the answer.
    """
    one, other = before.made, after.made
    found = [*_memory(before, after), *entry(before, after), *_copies(before, after), *_bitcasts(before, after)]
    if before.exchanges is None or before.customs is None or after.exchanges is None or after.customs is None:
        why = problems.LOCK_WITHOUT_CALLS()
        return [*found, unknown("dump", extended(why, f"; write it anew with: {RENEW}"))]
    found += [*header(before, after), *exchanges(before.exchanges, after.exchanges)]
    found += customs(*(_calls(side, one.compiler == other.compiler) for side in (before.customs, after.customs)))
    if one.compiler == other.compiler:
        found += amount("estimated_cycles", "estimated cycles", before.cycles, after.cycles, "cycles")
        found += _schedule(before.schedule, after.schedule)
        return found or lowered(one, other)
    if not found or across:
        return found
    sides = {"before": one.compiler or "not said", "after": other.compiler or "not said"}
    why = problems.COMPILERS_DIFFER(len(found))
    renew = f"{other.command or 'layoutproof compile ..'} -o DIR"
    fix = (
        "compile both with one compiler: layoutproof gate --against REF --compile-base for programs of spec files, "
        f"else {renew} at the old revision; where all is well, renew the lock: layoutproof gate --lock"
    )
    return [unknown("compiler", why, fix=fix, follows=tuple(found), **sides)]


def _schedule(before: Schedule | None, after: Schedule | None) -> list[Finding]:
    """The change of the cycles by the schedule, where they were asked for."""
    subject, sides = "cycles by the schedule", (before, after)
    why = next((each.why for each in sides if each is not None and each.cycles is None), "")
    if why:
        return [unknown(subject, why)]
    one, other = (None if each is None else each.cycles for each in sides)
    return amount("estimated_cycles", subject, one, other, "cycles")


def _calls(calls: Sequence[LayoutDemands], cycles: bool) -> Sequence[LayoutDemands]:
    return calls if cycles else [replace(each, cycles=None) for each in calls]


def lowered(one: Provenance, other: Provenance) -> list[Finding]:
    """The finding where there is no other: another program was compiled, and its figures are the same."""
    if one.lowered == other.lowered or not (one.lowered and other.lowered):
        return []
    why: str = problems.LOWERED_OTHERWISE()
    if one.jax != other.jax:
        why = extended(why, f"; it was lowered by jax {one.jax}, and is by {other.jax}")
    return [
        Finding("program", "lowered program", why, before=f"lowered {one.lowered}", after=f"lowered {other.lowered}")
    ]


def _memory(before: CompiledProgram, after: CompiledProgram) -> list[Finding]:
    one, other = before.memory, after.memory
    whole = amount("peak_memory", "peak memory", one.taken, other.taken, "bytes")
    part = amount("temporaries", "temporaries", one.temporaries, other.temporaries, "bytes")
    if [found.question for found in (*whole, *part)] == ["peak_memory", "temporaries"]:
        # more temporaries are a part of it, and no second thing
        return [replace(whole[0], follows=tuple(part))]
    return [*whole, *part]


def _copies(before: CompiledProgram, after: CompiledProgram) -> list[Finding]:
    """New and vanished copies that change a layout; of an entry parameter, it is copied at every call."""

    def key(copy: LayoutCopy) -> Hashable:
        return (copy.source, copy.target, copy.parameter, copy.size, copy.often)

    rounds: list[Round[LayoutCopy]] = [
        Round(lambda c: (key(c), c.where), alike=True),
        Round(lambda c: (key(c), c.op_name, c.base), alike=True),
        Round(key, alike=True),
        Round(lambda c: (c.source, c.target, c.parameter, c.where)),
    ]
    pairs = match(before.copies, after.copies, rounds)
    found = [f for p in pairs if p.old and p.new and key(p.old) != key(p.new) for f in _copy(p.old, p.new)]
    # between layouts that are only written otherwise, a copy is the old one
    written: Round[LayoutCopy] = Round(lambda c: (logical(c.source), logical(c.target), c.parameter, c.op_name))
    gone, fresh = [p.old for p in pairs if p.old and not p.new], [p.new for p in pairs if p.new and not p.old]
    return [*found, *(f for pair in match(gone, fresh, [written]) for f in _copy(pair.old, pair.new))]


def _copy(old: LayoutCopy | None, new: LayoutCopy | None) -> list[Finding]:
    """The changes of one copy; None where there was or is none."""
    if new is None:
        return [] if old is None else [_copied(old, "vanished_copy", "no longer copies", total(old), 0)]
    if old is None:
        if new.reason or total(new) is None:
            return [_unknown_copy(new)]
        return [_copied(new, "relaid_parameter" if new.parameter >= 0 else "new_copy", "copies", total(new), new.line)]
    if not _respelled((old.source, old.target), (new.source, new.target)):
        return [*_copy(None, new), *_copy(old, None)]
    was, now = total(old), total(new)
    if now is None:
        return [_unknown_copy(new)]
    if was == now:
        return []
    verb = f"copies {now} bytes a run, {bytes_in_words(was)} before:"
    if was is None or now < was:
        return [_copied(new, "vanished_copy", verb, 0 if was is None else was - now, new.line)]
    return [_copied(new, "new_copy", verb, now - was, new.line)]


def _copied(copy: LayoutCopy, kind: str, verb: str, size: int | None, line: int) -> Finding:
    """One finding about a copy. size: bytes of the change."""
    sides: dict[str, Any] = {"before": copy.source, "after": copy.target, "line": line}
    return Finding(
        kind, _whose(copy), problems.PROGRAM_COPIES(verb, _moved(copy)), figures={"bytes": size or 0}, **sides
    )


def _unknown_copy(copy: LayoutCopy) -> Finding:
    why = f"the program copies {_moved(copy)}{f': {copy.reason}' if copy.reason else ''}"
    return unknown(_whose(copy), why, before=copy.source, after=copy.target, line=copy.line)


def _whose(copy: LayoutCopy) -> str:
    whose = f"parameter {copy.parameter}" if copy.parameter >= 0 else title(copy.base, copy.op_name)
    return copy.place or f"copy of {whose}"


def _moved(copy: LayoutCopy) -> str:
    return f"{bytes_in_words(copy.size)} from {copy.source} to {copy.target}{often_in_words(copy.often)}"


@lru_cache(maxsize=4096)
def _cast(source: str, target: str) -> BitcastAnswer:
    """The audit's answer on a bitcast between two shapes."""
    # two records have none, and need nothing that proves
    from layoutproof.hlo import bitcasts

    try:
        return bitcasts.judge(read_array(source), read_array(target))
    except LayoutError as error:
        return bitcasts.BitcastAnswer(Verdict.UNKNOWN, "", error.problem)


def _bitcasts(before: CompiledProgram, after: CompiledProgram) -> list[Finding]:
    """Bitcasts between layouts that the old program did not have, as the audit judges them."""
    if before.bitcasts is None or after.bitcasts is None:
        return []
    known = {(source, target) for source, target, *_ in before.bitcasts}
    gone = known - {(source, target) for source, target, *_ in after.bitcasts}
    found = []
    for source, target, named, line in after.bitcasts:
        if (source, target) in known:
            continue
        known.add((source, target))
        if any(_respelled(pair, (source, target)) for pair in gone):
            continue
        cast = _cast(source, target)
        if cast.verdict is Verdict.PROVED and not cast.reorders:
            continue
        kind = {Verdict.UNKNOWN: "unknown", Verdict.REFUTED: "bitcast_refuted", Verdict.PROVED: "reordered"}[
            cast.verdict
        ]
        if kind == "reordered" and any(_instead(pair, (source, target)) for pair in gone):
            kind = "moved"
        sides: dict[str, Any] = {"before": source, "after": target, "line": line, "decided_by": cast.decided_by}
        verdict = Verdict.UNKNOWN if cast.verdict is Verdict.UNKNOWN else Verdict.REFUTED
        found.append(
            Finding(kind, f"bitcast {named}", cast.reason, counterexample=cast.element, verdict=verdict, **sides)
        )
    return found


def _respelled(old: tuple[str, str], new: tuple[str, str]) -> bool:
    """Whether two pairs of shapes are the same ones, written otherwise."""
    return all(
        one == other
        or (logical(one) == logical(other) and all(f.question in HARMLESS for f in array_classes(one, other)))
        for one, other in zip(old, new, strict=True)
    )


def _instead(old: tuple[str, str], new: tuple[str, str]) -> bool:
    """Whether a bitcast that reordered nothing had one side of this one, and on the other the same array."""
    if _cast(*old).reorders:
        return False
    return any(old[k] == new[k] and logical(old[1 - k]) == logical(new[1 - k]) for k in (0, 1))
