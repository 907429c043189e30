"""An answer in some lines, for who reads no JSON: what is not proved, with its reason, its place and its fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

MOST_LINES = 40
_MEANS = {0: "nothing is refuted or unknown", 1: "something is refuted", 2: "bad input", 3: "something is unknown"}


def spoken(document: Mapping[str, object]) -> str:
    """The object that a command prints with `--json`, in words.

    >>> print(spoken({"version": 2, "exit_code": 1, "question": "injective", "subject": "a", "verdict": "refuted",
    ...     "reason": "two at offset 4", "file": "s.yaml", "line": 3}))
    exit code 1: something is refuted
    refuted injective, a (s.yaml:3): two at offset 4
    """
    if isinstance(error := document.get("error"), dict):
        return f"exit code {document['exit_code']}: {_at(error)}{error['message']}"
    for key in ("page", "summary"):
        if isinstance(text := document.get(key), str):
            return text
    lines = [_line(finding) for finding in _findings(document)]
    lines = list(dict.fromkeys(line for line in lines if line))
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES} more; the object has all"]
    if not lines:
        lines = [f"the object has {', '.join(key for key in document if key not in ('version', 'exit_code'))}"]
    code = int(str(document["exit_code"]))
    return "\n".join([f"exit code {code}: {_MEANS.get(code, 'see the object')}", *lines])


def _findings(value: object) -> Iterator[Mapping[str, object]]:
    """Everything with a verdict in an answer, wherever it stands."""
    if isinstance(value, Mapping):
        if isinstance(value.get("verdict"), str):
            yield value
        for each in value.values():
            yield from _findings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _findings(each)


def _line(finding: Mapping[str, object]) -> str:
    """One finding; "" for what is proved, and for what nobody asked."""
    verdict = finding["verdict"]
    if verdict == "proved" or finding.get("asked") is False:
        return ""
    subject = finding.get("subject") or finding.get("name") or finding.get("function") or ""
    what = ", ".join(str(part) for part in (finding.get("question"), subject) if part)
    place = f" ({_at(finding).rstrip(': ')})" if _at(finding) else ""
    reason = finding.get("reason") or ""
    fix = f"; fix: {finding['fix']}" if finding.get("fix") else ""
    return f"{verdict} {what}{place}{f': {reason}' if reason else ''}{fix}"


def _at(entry: Mapping[str, object]) -> str:
    file, line = entry.get("file"), entry.get("line")
    return f"{file}:{line}: " if file and line else f"{file}: " if file else ""
