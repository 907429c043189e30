"""Unknowns of kernels that a person has accepted: by a comment at the call, or in a committed baseline.

An accepted unknown is shown and counted as that, decides no exit code, and is never called proved. A refutation
cannot be accepted. In code: `# layoutproof: accept[body_in_bounds] the caller checks the table`, at the line of the
call or right above it. A baseline is a JSON file of fingerprints: of a call's name, the question, the subject and the
reason, so that another unknown, or the same for another reason, is not in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from layoutproof.core.errors import LayoutError, unknown_name
from layoutproof.core.files import read, read_json
from layoutproof.core.finding import ACCEPTED, Finding, split_place
from layoutproof.core.result import Verdict
from layoutproof.pallas import problems
from layoutproof.pallas.findings import Judged
from layoutproof.registry.catalogue import kernel_properties

_COMMENT = re.compile(r"#\s*layoutproof:\s*accept\[")
_LINE = re.compile(r"(?<=\.py):\d+|(?<=\bline )\d+")
"""Where a reason says at which line something stands."""
MOST_BYTES = 16 << 20
"""Of a baseline, and of a source file whose line is quoted."""
WHOLE = "kernel"
"""The question of a call that could not be modelled at all."""


def accepted(call: Judged, baseline: Mapping[str, str]) -> Judged:
    """The call with its accepted unknowns marked.

    baseline: as `read_baseline` gives it. A comment that names no question, or gives no reason, is an unknown of its
    own.
    """
    comments, wrong = _comments(call)

    def said(finding: Finding) -> str:
        return comments.get(finding.question) or baseline.get(fingerprint(call, finding), "")

    found = [
        replace(finding, policy=f"{ACCEPTED}: {said(finding)}")
        if finding.verdict is Verdict.UNKNOWN and said(finding)
        else finding
        for finding in call.findings
    ]
    whole = call.whole()
    return replace(call, findings=(*found, *wrong), accepted=said(whole) if whole is not None else "")


def fingerprint(call: Judged, finding: Finding) -> str:
    """A name for one unknown that stays the same between runs, machines, and when lines are added above."""
    parts = (call.call.name, finding.question, finding.subject, _LINE.sub("", finding.reason))
    return hashlib.sha256("\0".join(parts).encode(errors="backslashreplace")).hexdigest()[:16]


def baseline_text(calls: Iterable[Judged]) -> str:
    """A baseline of what is unknown today."""
    entries = {
        fingerprint(call, finding): f"{call.call.name} {finding.question} {finding.subject}: {finding.reason}"
        for call in calls
        for finding in (*call.findings, *_whole(call))
        if finding.verdict is Verdict.UNKNOWN and finding.severity == "error" and finding.asked
    }
    return json.dumps({"version": 2, "accepted": entries}, indent=2, ensure_ascii=False) + "\n"


def _whole(call: Judged) -> tuple[Finding, ...]:
    whole = call.whole()
    return () if whole is None else (whole,)


def read_baseline(path: Path) -> dict[str, str]:
    """Fingerprint -> why it is accepted. Raises LayoutError for a file that is none."""
    try:
        data = read_json(path, MOST_BYTES)
    except LayoutError as error:
        raise LayoutError(problems.BASELINE(path, error.problem)) from None
    entries = data.get("accepted") if isinstance(data, dict) else None
    if not isinstance(data, dict) or data.get("version") != 2 or not isinstance(entries, dict):
        raise LayoutError(problems.BASELINE_FORM(path))
    return {str(name): f"in {path.as_posix()}" for name in entries}


def _comments(call: Judged) -> tuple[dict[str, str], list[Finding]]:
    """Question -> reason, of the comments at a call, and what is wrong with them."""
    file, line, _ = split_place(call.call.source)
    found: dict[str, str] = {}
    wrong: list[Finding] = []
    for number, text in _lines_at(file, line):
        match = _COMMENT.search(text)
        names, closed, why = text[match.end() :].partition("]") if match is not None else ("", "", "")
        for name in filter(None, map(str.strip, names.split(",") if closed else ())):
            problem = ""
            if name != WHOLE and name not in kernel_properties():
                problem = unknown_name("property of kernels", name, kernel_properties()).problem
            elif not why.strip():
                problem = problems.ACCEPT_REASON(name)
            if problem:
                wrong.append(Finding("accept", name, problem, file=file, line=number, verdict=Verdict.UNKNOWN))
            else:
                found[name] = f"{why.strip()} ({Path(file).name}:{number})"
    return found, wrong


def _lines_at(file: str, line: int) -> Sequence[tuple[int, str]]:
    """The line of a call, and the lines of comments right above it."""
    if not file.endswith(".py") or line < 1:
        return ()
    try:
        # the lines of bytes are those that Python counts; a text also ends them at form feeds and other characters
        text = [line.decode(errors="replace") for line in read(file, MOST_BYTES).splitlines()]
    except LayoutError:
        return ()
    if line > len(text):
        return ()
    found = [(line, text[line - 1])]
    for above in range(line - 1, 0, -1):
        if not text[above - 1].lstrip().startswith("#"):
            break
        found.append((above, text[above - 1]))
    return found
