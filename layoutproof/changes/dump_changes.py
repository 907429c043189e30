"""What changed between the records of two HLO dumps: entry, copies, bitcasts, devices, collectives, custom calls."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from layoutproof.changes.array_classes import HARMLESS, array_classes
from layoutproof.changes.custom_calls import customs
from layoutproof.changes.dump_record import DumpRecord, LayoutCopy, title
from layoutproof.changes.entry import entry, header
from layoutproof.changes.exchanges import exchanges
from layoutproof.changes.lock_head import RENEW
from layoutproof.changes.matching import Round, match
from layoutproof.changes.program import move
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.result import Verdict
from layoutproof.hlo import bitcasts
from layoutproof.hlo.bitcasts import REORDERING, BitcastAnswer
from layoutproof.hlo.shapes import read_array
from layoutproof.hlotext.texts import logical


def changes(before: DumpRecord, after: DumpRecord) -> list[Finding]:
    """Everything that changed. before: as `entry.aligned` gives it."""
    found = [*entry(before, after), *_copies(before, after), *_bitcasts(before, after)]
    if before.unsaid:
        why = "the lock file says nothing of donation, devices, collectives, custom calls and kernels"
        return [*found, unknown("dump", f"{why}; write it anew with: {RENEW}")]
    found += [*header(before, after), *exchanges(before.exchanges, after.exchanges)]
    return found + customs(before.customs, after.customs)


def _copies(before: DumpRecord, after: DumpRecord) -> list[Finding]:
    """New and vanished copies that change a layout; of an entry parameter, it is copied at every call."""

    def key(copy: LayoutCopy) -> Hashable:
        return (copy.source, copy.target, copy.parameter)

    rounds: list[Round[LayoutCopy]] = [
        Round(lambda c: (key(c), c.where), alike=True),
        Round(lambda c: (key(c), c.op_name, c.base), alike=True),
        Round(key, alike=True),
    ]
    open_ = [p for p in match(before.copies, after.copies, rounds) if p.old is None or p.new is None]
    # between layouts that are only written otherwise, a copy is the old one
    written: Round[LayoutCopy] = Round(lambda c: (logical(c.source), logical(c.target), c.parameter, c.op_name))
    found = []
    for pair in match([p.old for p in open_ if p.old], [p.new for p in open_ if p.new], [written]):
        if pair.old is not None and pair.new is not None:
            if not _respelled((pair.old.source, pair.old.target), (pair.new.source, pair.new.target)):
                found += [_copy(pair.new, fresh=True), _copy(pair.old, fresh=False)]
        elif pair.new is not None:
            found.append(_copy(pair.new, fresh=True))
        elif pair.old is not None:
            found.append(_copy(pair.old, fresh=False))
    return found


def _copy(copy: LayoutCopy, fresh: bool) -> Finding:
    kind = ("relaid_parameter" if copy.parameter >= 0 else "new_copy") if fresh else "vanished_copy"
    whose = f"parameter {copy.parameter}" if copy.parameter >= 0 else title(copy.base, copy.op_name)
    verb = "copies" if fresh else "no longer copies"
    why = f"the program {verb} {copy.size} bytes from {copy.source} to {copy.target}"
    sides: dict[str, Any] = {"before": copy.source, "after": copy.target, "line": copy.line if fresh else 0}
    judged = move(copy.source, copy.target)
    if fresh and judged.kind == "unknown":
        return unknown(f"copy of {whose}", f"{why}: {judged.reason}", **sides)
    return Finding(kind, f"copy of {whose}", why, figures={"bytes": copy.size}, **sides)


@lru_cache(maxsize=4096)
def _cast(source: str, target: str) -> BitcastAnswer:
    """What the audit says of a bitcast between two shapes."""
    try:
        return bitcasts.judge(read_array(source), read_array(target))
    except LayoutError as error:
        return BitcastAnswer(Verdict.UNKNOWN, "", error.problem)


def _bitcasts(before: DumpRecord, after: DumpRecord) -> list[Finding]:
    """Bitcasts between layouts that the old program did not have, as the audit judges them."""
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
        if cast.verdict is Verdict.PROVED and cast.how != REORDERING:
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
    if _cast(*old).how == REORDERING:
        return False
    return any(old[k] == new[k] and logical(old[1 - k]) == logical(new[1 - k]) for k in (0, 1))
