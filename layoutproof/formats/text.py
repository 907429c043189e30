"""For people at a terminal: each finding with its numbers, the worst last, then one line that counts."""

from __future__ import annotations

from layoutproof.core.finding import Report, rank, summary, text


def render(report: Report) -> str:
    """The whole report; the worst stands last, where a terminal shows it.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    findings = sorted(report.findings, key=rank, reverse=True)
    notes = [f"note     {note}" for note in report.notes]
    return "\n".join([*(f"{text(f)}\n" for f in findings), *notes, summary(report)])
