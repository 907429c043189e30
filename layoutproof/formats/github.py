"""Annotations on a pull request: GitHub's workflow commands.

Source: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions (`::error file=..::message`);
in a message `%`, carriage return and line feed are escaped, in a property also `:` and `,`.
"""

from __future__ import annotations

from layoutproof.core.finding import Finding, Report, level, summary

_NAMES = {"error": "error", "warning": "warning", "note": "notice"}
"""GitHub's names of levels."""


def render(report: Report) -> str:
    """One annotation per finding and note, then the line that counts, which is no annotation.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    notes = [f"::notice::{_message(note)}" for note in report.notes]
    return "\n".join([*map(_one, report.findings), *notes, _message(summary(report))])


def _one(finding: Finding) -> str:
    where = [("file", finding.file), ("line", finding.line), ("col", finding.column)]
    where.append(("title", f"layoutproof: {finding.question} {finding.subject}"))
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in where if value)
    lines = [finding.reason]
    lines += [f"{name}: {text}" for name, text in (("before", finding.before), ("after", finding.after)) if text]
    lines += [f"matched: {finding.match_heuristic}"] if finding.match_heuristic else []
    lines += [f"fingerprint: {finding.fingerprint}"] if finding.fingerprint else []
    return f"::{_NAMES[level(finding)]} {properties}::{_message(chr(10).join(lines))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
