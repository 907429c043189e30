"""For programs: one JSON object with everything."""

from __future__ import annotations

from typing import Annotated

from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.finding import FindingEntry, Report, as_dict, summary
from layoutproof.core.visible import json_text


class GateDocument(Document):
    """The changes between two states."""

    title: Annotated[str, Doc("what was compared with what")]
    summary: str
    compared: Annotated[int, Doc("files, the unchanged ones too")]
    hidden: Annotated[int, Doc("findings that are allowed or approved and left out")]
    partial: bool
    notes: list[str]
    findings: list[FindingEntry]


def as_json(report: Report) -> GateDocument:
    """One object, as `core.document` says: `findings` in the order of the files, `summary`, `notes`, `partial`."""
    return {
        **envelope(report.exit_code),
        "title": report.title,
        "summary": summary(report),
        "compared": report.compared,
        "hidden": report.hidden,
        "partial": report.partial,
        "notes": list(report.notes),
        "findings": [as_dict(finding) for finding in report.findings],
    }


def render(report: Report) -> str:
    """The same as text.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    return json_text(as_json(report))
