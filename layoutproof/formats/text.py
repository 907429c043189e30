"""For people at a terminal: each finding with its numbers, the worst last, then one line that counts."""

from __future__ import annotations

from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding, Report, summary, word
from layoutproof.core.result import show_point

_ORDER = {"allow": 0, "warn": 1, "unknown": 2, "deny": 3, "error": 4}


def render(report: Report) -> str:
    """The whole report; the worst stands last, where a terminal shows it."""
    findings = sorted(report.findings, key=lambda f: _ORDER[word(f)])
    notes = [f"note     {note}" for note in report.notes]
    return "\n".join([*(f"{one(f)}\n" for f in findings), *notes, summary(report)])


def one(finding: Finding) -> str:
    """One finding.

    >>> print(one(Finding("moved", "layout a", "(0, 1) is stored elsewhere", file="a.yaml", line=3, severity="deny")))
    deny     moved  layout a   a.yaml:3
      because  (0, 1) is stored elsewhere
    """
    lines = [f"{word(finding):<8} {finding.kind}  {finding.subject}   {finding.place}".rstrip()]
    rows = (
        ("before", shorten(finding.before, 160)),
        ("after", shorten(finding.after, 160)),
        ("because", finding.because),
        ("at", show_point(finding.point) if finding.point else ""),
        ("by", finding.decided_by),
        ("guess", finding.guess),
        ("policy", finding.said),
        ("fingerprint", finding.fingerprint if finding.severity == "deny" and not finding.error else ""),
    )
    return "\n".join([*lines, *(f"  {name:<8} {value}" for name, value in rows if value)])
