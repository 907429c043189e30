"""Changes of one amount between two programs: bytes, cycles."""

from __future__ import annotations

from typing import Any

from layoutproof.core.finding import Finding, unknown
from layoutproof.gating import problems


def amount(kind: str, subject: str, old: int | None, new: int | None, unit: str) -> list[Finding]:
    """The change of one amount: an increase is of its own class, a decrease is `shrank`.

    One that only one side has is unknown, one that neither has is no change.

    >>> [(found.question, found.reason) for found in amount("vmem", "VMEM", 1000, 1500, "bytes")]
    [('vmem', '1000 bytes before, 1500 now: +50 %')]
    """
    if old == new:
        return []
    if old is None or new is None:
        return [unknown(subject, problems.RECORD_SILENT("the old" if old is None else "the new"))]
    share = {"percent": 100 * (new - old) / old} if old else {}
    figures: dict[str, Any] = {f"{unit}_before": old, f"{unit}_after": new, **share}
    if unit == "bytes":
        figures["bytes"] = new - old
    why = f"{old} {unit} before, {new} now" + (f": {share['percent']:+.4g} %" if share else "")
    return [Finding(kind if new > old else "shrank", subject, why, figures=figures)]
