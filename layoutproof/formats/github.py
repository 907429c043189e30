"""Annotations on a pull request: GitHub's workflow commands.

Source: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions (`::error file=..::message`);
in a message `%`, carriage return and line feed are escaped, in a property also `:` and `,`.
"""

from __future__ import annotations

from layoutproof.core.finding import Finding, Report, following, level, rank, summary

MOST = 10
"""Annotations of one step that GitHub shows, of each kind; the rest is counted."""
_NAMES = {"error": "error", "warning": "warning", "note": "notice"}
"""GitHub's names of levels."""


def render(report: Report) -> str:
    """An annotation per finding and note, ten at most, the worst first, bad input before what is denied; then the line
    that counts, which is none.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    notes = [f"::notice::{_message(note)}" for note in report.notes]
    said = [*map(_one, sorted(report.findings, key=rank)), *notes]
    if len(said) > MOST:
        rest = len(said) - MOST + 1
        said = [*said[: MOST - 1], f"::notice::{rest} more are in the other forms of this report, e.g. markdown"]
    return "\n".join([*said, _message(summary(report))])


def _one(finding: Finding) -> str:
    where = [("file", finding.file), ("line", finding.line), ("col", finding.column)]
    where.append(("title", f"layoutproof: {finding.question} {finding.subject}"))
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in where if value)
    lines = [finding.reason]
    lines += [f"cause: {finding.cause}"] if finding.cause else []
    lines += [f"hunk: {each}" for each in finding.hunks]
    lines += [f"{name}: {said}" for name, said in (("fix", finding.fix), ("hint", finding.hint)) if said]
    lines += [f"{name}: {text}" for name, text in (("before", finding.before), ("after", finding.after)) if text]
    lines += [following(finding)] if finding.follows else []
    lines += [f"matched: {finding.match_heuristic}"] if finding.match_heuristic else []
    lines += [f"fingerprint: {finding.fingerprint}"] if finding.fingerprint else []
    return f"::{_NAMES[level(finding)]} {properties}::{_message(chr(10).join(lines))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
