"""For programs: one JSON object with everything."""

from __future__ import annotations

from layoutproof.core.document import document
from layoutproof.core.finding import Report, as_dict, summary
from layoutproof.core.visible import json_text


def render(report: Report) -> str:
    """One object, as `core.document` says: `findings` in the order of the files, `summary`, `notes`, `partial`.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    body = {
        "title": report.title,
        "summary": summary(report),
        "compared": report.compared,
        "hidden": report.hidden,
        "partial": report.partial,
        "notes": list(report.notes),
        "findings": [as_dict(finding) for finding in report.findings],
    }
    return json_text(document(report.exit_code, body))
