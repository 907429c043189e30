"""`lp.drift`: the recorded facts about targets, found again with what is installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from layoutproof.compiler import libtpu
from layoutproof.core.document import Doc, Document, Exactly, envelope
from layoutproof.core.finding import NOT_ASKED, Answer, Finding, FindingEntry, as_dict
from layoutproof.core.finding import exit_code as code_of
from layoutproof.core.result import Verdict
from layoutproof.crosschecks.facts import Today, today
from layoutproof.hardware.facts import facts

_WORDS = {"same": "as recorded", "moved": "moved", "unanswered": "unanswered", "not asked": "not asked"}


class FactEntry(TypedDict):
    name: str
    target: Annotated[str, Doc("empty where it is of all that the compiler knows")]
    state: Annotated[str, Exactly(Literal["same", "moved", "unanswered", "not asked"])]
    recorded: str
    recorded_by: Annotated[str, Doc("who said so, with the version")]
    source: Annotated[str, Doc("how it was found")]
    now: Annotated[str, Doc("empty where nothing was found")]
    now_by: str
    reason: Annotated[str, Doc("why nothing was found")]


class FactsDocument(Document):
    """With --facts: the facts behind the rules of targets, measured again with the installed versions."""

    compiler: str
    facts: list[FactEntry]
    findings: Annotated[list[FindingEntry], Doc("the facts that have moved")]


@dataclass(frozen=True, slots=True)
class Drift(Answer):
    """facts: each with what is found now, in the order of their files.  compiler: that was asked, with its version."""

    compiler: str
    facts: tuple[Today, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One for each fact: proved as recorded, refuted where it has moved, unknown where it has no answer."""
        return tuple(map(_finding, self.facts))

    @property
    def exit_code(self) -> int:
        """0 all that was asked is as recorded, 1 something has moved, 3 something is unanswered, or all not asked."""
        if all(fact.state == "not asked" for fact in self.facts):
            return 3
        return code_of(finding for finding in self.findings if finding.asked)

    def __str__(self) -> str:
        counts = Counter(fact.state for fact in self.facts)
        shown = ", ".join(f"{counts[state]} {word}" for state, word in _WORDS.items() if counts[state])
        lines = [f"{len(self.facts)} facts about targets, {self.compiler}: {shown}"]
        for state in ("moved", "unanswered"):
            for fact in self.facts:
                lines += _lines(fact) if fact.state == state else []
        return "\n".join(lines)

    def as_dict(self) -> FactsDocument:
        """What `layoutproof crosscheck --facts --json` prints."""
        rows: list[FactEntry] = [
            {
                "name": each.fact.name, "target": each.fact.target, "state": each.state, "recorded": each.fact.value,
                "recorded_by": each.fact.version, "source": each.fact.source, "now": each.value, "now_by": each.version,
                "reason": each.why,
            }
            for each in self.facts
        ]  # fmt: skip
        found = [as_dict(finding) for finding in self.findings if finding.verdict is Verdict.REFUTED]
        return {**envelope(self.exit_code), "compiler": self.compiler, "facts": rows, "findings": found}


def _lines(each: Today) -> list[str]:
    fact = each.fact
    head = f"{each.state:<10} {f'{fact.target} ' if fact.target else ''}{fact.name}"
    if each.state == "unanswered":
        return [head, f"  because  {each.why}"]
    return [
        head,
        f"  recorded {fact.value} by {fact.version} ({fact.source})",
        f"  now      {each.value} by {each.version}",
    ]


def _finding(each: Today) -> Finding:
    fact = each.fact
    subject = f"{fact.target} {fact.name}".strip()
    if each.state == "same":
        return Finding("fact", subject, verdict=Verdict.PROVED, decided_by=each.version)
    if each.state == "moved":
        reason = f"{fact.value} by {fact.version}, {each.value} by {each.version}"
        return Finding("fact", subject, reason, verdict=Verdict.REFUTED, decided_by=each.version)
    asked = each.state == "unanswered"
    reason = each.why if asked else f"{NOT_ASKED}{each.why}"
    return Finding("fact", subject, reason, verdict=Verdict.UNKNOWN, severity="error" if asked else "info")


def drift(library: str | Path = "", progress: Callable[[str], None] | None = None) -> Drift:
    """Find every recorded fact about a target again, with the TPU compiler and the JAX that are installed.

    Args:
        library: Another libtpu than the installed one: its libtpu.so, or the folder into which it was installed.
        progress: Called with the name of each fact that is asked.

    Returns:
        The facts: `findings`, `exit_code` 1 where one has moved, 3 where one is unanswered or none was asked, `str`
        the report.

    Raises:
        LayoutError: There is no compiler at `library`.
    """
    path = libtpu.library_at(library) if str(library) else ""
    missing = libtpu.missing(path)
    if missing:
        return Drift(f"not asked: {missing}", tuple(Today(fact, why=missing) for fact in facts()))
    found = []
    for each in today(path):
        found.append(each)
        if progress is not None:
            progress(f"{each.fact.target} {each.fact.name}".strip())
    return Drift(libtpu.version(path), tuple(found))
