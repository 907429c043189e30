"""From claims to a finding: the one path on which a verdict is made, for layouts and for kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.claim import Claim
from layoutproof.core.finding import Finding
from layoutproof.core.result import Point, Verdict, show_sizes
from layoutproof.solvers.decide import ENGINES, decide, pinned

How = tuple[tuple[str, ...], bool, int]
"""Engines, whether two must agree, and what multiplies the step budgets: the arguments of `decide`."""
TO_SETTLE = "; to settle it, "
"""What stands in a reason between why a question is open and what may settle it."""


def conclude(
    question: str,
    subject: str,
    claims: Sequence[Claim],
    how: How = (ENGINES, False, 1),
    figures: Mapping[str, Any] | None = None,
    unknown: str = "",
    **about: Any,
) -> Finding:
    """One finding for some claims: refuted where one is, else unknown where one is, else proved.

    figures: exact numbers that belong to the answer; an engine that was wrong is added as `broken_engine`.
    unknown: why the question is open even where all claims are proved, "" where it is not.
    about: further fields of the finding, e.g. severity, file, line.
    """
    figures = figures or {}
    decided: dict[str, None] = {}
    for claim in claims:
        point, by, reason, broken, ways = decide(claim, *how)
        if broken:
            figures = {**figures, "broken_engine": broken}
        if point is not None and all(_holds_at(point, claim, other, how) for other in claim.provided):
            on = claim.numbers(point)
            why = claim.explain(point, on) + (f" ({reason})" if reason else "")
            if "sizes" in point:
                why = f"with {show_sizes(on.sizes)}: {why}"
            about |= {"counterexample": claim.counterexample(point), "decided_by": by, "hint": claim.hint(point, on)}
            return Finding(question, subject, why, figures=figures, **about)
        decided |= {by: None} if "+" not in by else dict.fromkeys(by.split("+"))
        # a violation at sizes at which nothing is provided is none
        unknown = unknown or ("" if point is not None else f"{reason}{TO_SETTLE}{ways}" if ways else reason)
    if unknown:
        return Finding(question, subject, unknown, verdict=Verdict.UNKNOWN, figures=figures, **about)
    return Finding(question, subject, verdict=Verdict.PROVED, decided_by="+".join(decided), figures=figures, **about)


def left_open(finding: Finding, why: str) -> Finding:
    """The same finding as an unknown: whatever was found, it settles nothing."""
    reason = f"{why} ({finding.reason})" if finding.reason else why
    return replace(finding, verdict=Verdict.UNKNOWN, counterexample=None, reason=reason, decided_by="", fix="", hint="")


def _holds_at(point: Point, refuted: Claim, claim: Claim, how: How) -> bool:
    """Whether a claim is proved for the sizes at which another is refuted."""
    fixed = replace(claim, where=pinned(refuted, point), symbols=refuted.sizes()) if refuted.sizes() else claim
    found, _, reason, *_ = decide(fixed, *how)
    return found is None and not reason
