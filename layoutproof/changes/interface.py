"""What the first line of a module says besides layouts: donated arguments, number of devices, whether it is final."""

from __future__ import annotations

from typing import Any

from layoutproof.changes.program import DumpProgram, bytes_of
from layoutproof.core.finding import Finding
from layoutproof.hlotext.texts import arrays, element_text


def interface(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    """What changed of it."""
    return [*_devices(before, after), *_schedule(before, after), *_donations(before, after)]


def _devices(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    found = []
    for what in ("partitions", "replicas"):
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            sides: dict[str, Any] = {"before": str(old), "after": str(new), "line": after.line}
            why = f"the program runs on {new} {what} now, on {old} before"
            found.append(Finding("devices", f"number of {what}", why, **sides))
    return found


def _schedule(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    if not before.scheduled or after.scheduled:
        return []
    why = "the text is not scheduled any more, so its layouts may not be those that run"
    sides: dict[str, Any] = {"before": "is_scheduled=true", "line": after.line}
    return [Finding("unscheduled", "module", why, **sides)]


def _donations(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    found = []
    names = {i.number: i for i in after.entered}
    for number, index in sorted({*before.donations, *after.donations}):
        old, new = (p.donations.get((number, index), "") for p in (before, after))
        if old == new or number >= min(len(before.parameters), len(after.parameters)):
            continue  # a parameter that only one side has is a change of the entry's shapes
        size = sum(map(bytes_of, arrays(element_text(after.parameters[number], index))))
        at = f"element {{{','.join(map(str, index))}}} of " if index else ""
        own = names.get(number)
        named = f" ({own.op_name or own.base})" if own is not None and (own.op_name or own.base) else ""
        if not new:
            kind, why = "lost_donation", f"its {size} bytes went to {old}, which now takes memory of its own"
        elif not old:
            kind, why = "new_donation", f"its {size} bytes go to {new}: the caller loses them with the call"
        else:
            kind, why = "lost_donation", f"its {size} bytes went to {old} and go to {new} now"
            if old.split(" (")[0] == new.split(" (")[0] and new.endswith("(must-alias)"):
                kind, why = "new_donation", f"its {size} bytes must go to {new} now: the caller has to give them away"
        sides: dict[str, Any] = {"before": old, "after": new, "figures": {"bytes": size}, "line": after.line}
        found.append(Finding(kind, f"donation of {at}parameter {number}{named}", why, **sides))
    return found
