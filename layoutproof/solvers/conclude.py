"""From claims to a finding: the one path on which a verdict is made, for layouts and for kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.claim import Claim
from layoutproof.core.finding import Finding, split_place
from layoutproof.core.message import restated
from layoutproof.core.result import Counterexample, Point, Verdict, show_sizes
from layoutproof.solvers.decide import decide, pinned

How = tuple[tuple[str, ...], bool, int]
"""Engines, whether two must agree, and the factor on the step budgets: the arguments of `decide`."""
TO_SETTLE = "; to settle it, "
"""Joins, in a reason, why a question is open and the advice that may decide it."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict on some claims, of which a finding is made once all its parts are known.

    by: the engine.  hint: where to look, of a refutation.  broken: engines that were wrong, and their answers.
    """

    verdict: Verdict
    reason: str = ""
    counterexample: Counterexample | None = None
    by: str = ""
    hint: str = ""
    broken: str = ""

    def left_open(self, why: str) -> Conclusion:
        """As an unknown: whatever was found, it settles nothing."""
        return Conclusion(Verdict.UNKNOWN, _also(why, self.reason), broken=self.broken)

    def finding(self, question: str, subject: str, figures: Mapping[str, Any], place: str = "", **more: Any) -> Finding:
        """The answer to a question about a subject. figures: exact numbers.  more: further fields of it."""
        file, line, column = split_place(place) if place else ("", 0, 0)
        return Finding(
            question, subject, self.reason, file=file, line=line, column=column, verdict=self.verdict,
            counterexample=self.counterexample, hint=self.hint, decided_by=self.by,
            figures={**figures, "broken_engine": self.broken} if self.broken else figures, **more,
        )  # fmt: skip


def concluded(claims: Sequence[Claim], how: How, unknown: str = "") -> Conclusion:
    """The verdict on claims: refuted where one is, else unknown where one is, else proved.

    unknown: why the question is open even where all claims are proved, "" where it is not.
    """
    broken = ""
    decided: dict[str, None] = {}
    for claim in claims:
        point, by, reason, wrong, ways = decide(claim, *how)
        broken = wrong or broken
        if point is not None and all(_holds_at(point, claim, other, how) for other in claim.provided):
            on = claim.numbers(point)
            why = claim.explain(point, on)
            why = restated(f"{why} ({reason})", why, also=reason) if reason else why
            if "sizes" in point:
                sizes = show_sizes(on.sizes)
                why = restated(f"with {sizes}: {why}", why, sizes=sizes)
            return Conclusion(Verdict.REFUTED, why, claim.counterexample(point), by, claim.hint(point, on), broken)
        decided |= {by: None} if "+" not in by else dict.fromkeys(by.split("+"))
        # a violation at sizes at which nothing is provided is none
        unknown = unknown or ("" if point is not None else advised(reason, ways))
    if unknown:
        return Conclusion(Verdict.UNKNOWN, unknown, broken=broken)
    return Conclusion(Verdict.PROVED, by="+".join(decided), broken=broken)


def left_open(finding: Finding, why: str, **more: Any) -> Finding:
    """The same finding as an unknown: whatever was found, it settles nothing. more: further fields of it."""
    gone: dict[str, Any] = {"counterexample": None, "decided_by": "", "fix": "", "hint": ""}
    return replace(finding, verdict=Verdict.UNKNOWN, reason=_also(why, finding.reason), **gone, **more)


def advised(reason: str, ways: str) -> str:
    """The reason of an unknown with what would settle it, "" where nothing is known to."""
    return restated(f"{reason}{TO_SETTLE}{ways}", reason, ways=ways) if ways else reason


def _also(why: str, reason: str) -> str:
    return restated(f"{why} ({reason})", why, also=reason) if reason else why


def _holds_at(point: Point, refuted: Claim, claim: Claim, how: How) -> bool:
    """Whether a claim is proved for the sizes at which another is refuted."""
    fixed = replace(claim, where=pinned(refuted, point), symbols=refuted.sizes()) if refuted.sizes() else claim
    found, _, reason, *_ = decide(fixed, *how)
    return found is None and not reason
