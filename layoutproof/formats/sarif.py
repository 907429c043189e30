"""SARIF 2.1.0, as code scanning reads it (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from layoutproof import __version__
from layoutproof.core.finding import Finding, Report, following, level
from layoutproof.core.finding_kinds import KINDS
from layoutproof.core.result import plain
from layoutproof.core.visible import json_text, visible_lines
from layoutproof.registry.catalogue import properties, property_module

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(report: Report) -> str:
    """One run. A result's fingerprint does not depend on line numbers; an approved finding is a suppressed result.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    kinds = sorted({finding.question for finding in report.findings})
    rules = [{"id": kind, "shortDescription": {"text": _described(kind)}} for kind in kinds]
    whole = not report.partial and not any(finding.bad_input for finding in report.findings)
    invocation: dict[str, Any] = {"executionSuccessful": whole}
    if report.notes:
        invocation["toolExecutionNotifications"] = [
            {"level": "note", "message": {"text": _message(note)}} for note in report.notes
        ]
    driver = {"name": "layoutproof", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(finding, kinds.index(finding.question)) for finding in report.findings],
        "properties": {"title": report.title, "compared": report.compared, "partial": report.partial},
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _described(kind: str) -> str:
    if kind in KINDS:
        return KINDS[kind]
    return (property_module(kind).__doc__ or kind).partition("\n")[0] if kind in properties() else kind


def _message(text: str) -> str:
    """Text that may quote a user's, and leads nowhere: `[text](where)` is a link in it (section 3.11.6).

    >>> _message("f32[3,5] [here](https://a.example)")
    'f32[3,5] [here] (https://a.example)'
    """
    return visible_lines(text).replace("](", "] (")


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    said = (
        ("cause", finding.cause), ("hunks", "; ".join(finding.hunks)), ("fix", finding.fix), ("hint", finding.hint),
        ("before", finding.before), ("after", finding.after),
    )  # fmt: skip
    sides = [f"{name}: {text}" for name, text in said if text]
    text = "\n".join([f"{finding.subject}: {finding.reason}", *sides])
    result: dict[str, Any] = {
        "ruleId": finding.question,
        "ruleIndex": rule,
        "level": level(finding),
        "message": {"text": _message(text)},
        "partialFingerprints": {"layoutproof/v1": finding.fingerprint},
    }
    if finding.file:
        spot: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file, errors="surrogateescape")}}
        if finding.line:
            column = {"startColumn": finding.column} if finding.column else {}
            spot["region"] = {"startLine": finding.line, **column}
        result["locations"] = [{"physicalLocation": spot}]
    more = {
        "decided_by": finding.decided_by,
        "match_heuristic": finding.match_heuristic,
        "counterexample": plain(finding.counterexample),
        "follows": following(finding),
    }
    more["figures"] = plain(finding.figures)
    result["properties"] = {name: value for name, value in more.items() if value}
    if finding.policy.startswith("approved"):
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": finding.policy}]
    return result
