"""Outcomes as text for people, as JSON for programs, and as findings for the other forms of reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.result import Result, plain
from layoutproof.jobs.check import Outcome, Status, exit_code
from layoutproof.jobs.formats import Finding, Report
from layoutproof.jobs.gate.fingerprint import named


def text(outcomes: Sequence[Outcome]) -> str:
    """Everything that is not as expected, then one line that counts; the worst is last, where a terminal shows it."""
    late = {Status.UNKNOWN: 0, Status.WRONG: 1, Status.ERROR: 2, Status.INTERRUPTED: 3}
    shown = sorted((o for o in outcomes if o.status in late), key=lambda o: late[o.status])
    return "\n".join([*(f"{one(o)}\n" for o in shown), summary(outcomes)])


def one(outcome: Outcome) -> str:
    """One outcome: what and where, of which layout, why, and where to read on.

    refuted  injective  scores   specs/model.yaml:12:5
      layout   f32[3,5] strides (4,1)
      because  (0, 4) and (1, 0) are both stored at offset 4
      explain  layoutproof explain injective
    """
    check = outcome.check
    if outcome.status is Status.INTERRUPTED:
        return f"interrupted {outcome.because}"
    if check is None:
        return f"error    {outcome.place}\n  because  {outcome.because}"
    lines = [f"{_word(outcome):<8} {check.kind}  {_title(outcome)}   {outcome.place}"]
    lines += [f"  layout   {shorten(_layout(layout), 160)}" for layout in check.layouts]
    if "where" in check.options:
        lines.append(f"  where    {check.options['where']}")
    lines.append(f"  because  {outcome.because}")
    if check.note:
        lines.append(f"  note     {shorten(check.note)}")
    if check.is_fact:
        lines.append(f"  source   {shorten(check.source)}")
    elif outcome.status is not Status.ERROR:
        lines.append(f"  explain  layoutproof explain {check.kind}")
    return "\n".join(lines)


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line that counts; "(1 expected)" stands behind the refuted and unknown that the files expect.

    >>> summary([Outcome(Status.AS_EXPECTED, "a.yaml:1:1", "proved"), Outcome(Status.WRONG, "a.yaml:2:1", "refuted")])
    '2 claims: 1 proved, 1 refuted, 0 unknown'
    """
    claims = [o for o in outcomes if o.found in ("proved", "refuted", "unknown")]
    facts = [o for o in outcomes if o.found in ("holds", "wrong")]
    errors = sum(o.found == "error" for o in outcomes)
    parts = [f"{_count(claims, verdict)} {verdict}{_expectations(claims, verdict)}" for verdict in _VERDICTS]
    line = f"{len(claims)} claim{_s(len(claims))}: {', '.join(parts)}"
    if facts:
        line += f"; {len(facts)} fact{_s(len(facts))}: {_count(facts, 'holds')} hold"
        wrong = _count(facts, "wrong")
        line += f", {wrong} wrong" if wrong else ""
    return line + (f"; {errors} error{_s(errors)}" if errors else "")


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same for programs: `exit_code`, `summary` and one entry per check."""
    counts = {verdict: _count(outcomes, verdict) for verdict in (*_VERDICTS, "holds", "wrong", "error")}
    as_expected = sum(o.status is Status.AS_EXPECTED for o in outcomes)
    return {
        "exit_code": exit_code(outcomes),
        "summary": {"checks": len(outcomes), "as_expected": as_expected, **counts},
        "partial": any(o.status is Status.INTERRUPTED for o in outcomes),
        "checks": [_entry(outcome) for outcome in outcomes],
    }


def as_findings(outcomes: Sequence[Outcome]) -> Report:
    """The same for `jobs.formats`: what is not as expected is a finding, the rest is held."""
    found = [_finding(o) for o in outcomes if o.status not in (Status.AS_EXPECTED, Status.INTERRUPTED)]
    held = [_finding(o) for o in outcomes if o.status is Status.AS_EXPECTED]
    files = {f.file for f in (*found, *held)}
    partial = any(o.status is Status.INTERRUPTED for o in outcomes)
    return Report(
        summary(outcomes), tuple(named(found)), len(files), partial=partial, held=tuple(held), nothing="as expected"
    )


def _finding(outcome: Outcome) -> Finding:
    check, result = outcome.check, outcome.result
    if check is None:
        file, line, column = _split(outcome.place)
        return Finding("error", "spec file", outcome.because, file, file, line, column, error=True)
    return Finding(
        check.kind,
        _title(outcome),
        outcome.because or outcome.found,
        check.file,
        check.file,
        check.line,
        check.column,
        after=" , ".join(_layout(layout) if isinstance(layout, dict) else str(layout) for layout in check.layouts),
        point=result.counterexample if result is not None else None,
        figures=result.figures if result is not None else {},
        decided_by=result.decided_by if result is not None else "",
        undecided=outcome.status is Status.UNKNOWN,
        error=outcome.status is Status.ERROR,
        severity="allow" if outcome.status is Status.AS_EXPECTED else "deny",
    )


def _split(place: str) -> tuple[str, int, int]:
    """File, line and column of a place, 0 where it does not say.

    >>> _split("a.yaml:3:5"), _split("a.yaml:3"), _split("a.yaml")
    (('a.yaml', 3, 5), ('a.yaml', 3, 0), ('a.yaml', 0, 0))
    """
    found = re.fullmatch(r"(.*?)(?::(\d+))?(?::(\d+))?", place)
    assert found is not None
    return found[1], int(found[2] or 0), int(found[3] or 0)


def result_json(result: Result) -> dict[str, Any]:
    """One answer for programs."""
    return {
        "property": result.property,
        "subject": result.subject,
        "verdict": result.verdict.value,
        "counterexample": plain(result.counterexample),
        "reason": result.reason,
        "decided_by": result.decided_by,
        "figures": plain(result.figures),
    }


def error_json(error: Exception, kind: str, message: str) -> dict[str, Any]:
    """One error for programs; kind: input, usage, unknown or internal."""
    entry: dict[str, Any] = {"kind": kind, "message": message}
    if isinstance(error, LayoutError):
        given = {"text": error.text, "column": error.column, "file": error.file, "line": error.line}
        entry |= {"message": error.problem, **{k: v for k, v in given.items() if v}}
    return {"error": entry}


_VERDICTS = ("proved", "refuted", "unknown")


def _entry(outcome: Outcome) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "status": outcome.status.name.lower().replace("_", " "),
        "found": outcome.found,
        "place": outcome.place,
        "because": outcome.because,
    }
    check = outcome.check
    if check is not None:
        entry |= {"kind": check.kind, "name": check.name, "source": check.source, "note": check.note}
        entry |= {"labels": list(check.labels), "layouts": plain(check.layouts)}
        entry |= {} if check.is_fact else {"expect": check.expect}
    if outcome.result is not None:
        entry["result"] = result_json(outcome.result)
    return entry


def _word(outcome: Outcome) -> str:
    """What the first line says: the verdict, unless the verdict is what was expected and something else is not."""
    check = outcome.check
    matched = outcome.status is Status.WRONG and check is not None and outcome.found in ("proved", check.expect)
    return "wrong" if matched else outcome.found


def _title(outcome: Outcome) -> str:
    check = outcome.check
    assert check is not None
    return check.name or " , ".join(shorten(label, 60) for label in check.labels)


def _layout(layout: object) -> str:
    if isinstance(layout, dict):
        return ", ".join(f"{language}: {value}" for language, value in layout.items())
    return str(layout)


def _count(outcomes: Iterable[Outcome], found: str) -> int:
    return sum(outcome.found == found for outcome in outcomes)


def _expectations(outcomes: Sequence[Outcome], verdict: str) -> str:
    """How many refuted or unknown were expected to be, and how many proved were not."""
    expected = sum(o.found == verdict and o.status is Status.AS_EXPECTED for o in outcomes)
    if verdict == "proved":
        other = _count(outcomes, verdict) - expected
        return f" ({other} not as expected)" if other else ""
    return f" ({expected} expected)" if expected else ""


def _s(count: int) -> str:
    return "" if count == 1 else "s"
