"""Outcomes as text for people, as JSON for programs, and as findings for the other forms of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.document import document
from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding, Report, as_dict, split_place, unknown, wrong_input
from layoutproof.core.fingerprint import named
from layoutproof.core.result import Verdict, plain
from layoutproof.core.visible import visible
from layoutproof.pallas.judge import scope
from layoutproof.specs.check import Outcome, Status, exit_code
from layoutproof.specs.spec import Unasked


def text(outcomes: Sequence[Outcome], everything: bool = False, unasked: Sequence[Unasked] = ()) -> str:
    """What is not as stated, a line per file, one line that counts; the worst is last, where a terminal shows it.

    everything: first a line for each check that is as stated.  unasked: what the files state and never ask.
    """
    late = {Status.UNKNOWN: 0, Status.WRONG: 1, Status.ERROR: 2, Status.INTERRUPTED: 3}
    shown = sorted((o for o in outcomes if o.status in late), key=lambda o: late[o.status])
    held = [_held(o) for o in outcomes if o.status is Status.AS_EXPECTED] if everything else []
    notes = "\n".join(f"note     {visible(note)}" for note in never_asked(unasked, everything))
    blocks = ["\n".join(held), "\n".join(_files(outcomes)), *map(one, shown), notes, summary(outcomes)]
    return "\n\n".join(block for block in blocks if block)


def never_asked(unasked: Sequence[Unasked], everything: bool = False) -> list[str]:
    """One sentence about what is stated and never asked; () where nothing is. everything: name all of it."""
    if not unasked:
        return []
    most = len(unasked) if everything else 5
    more = f" and {len(unasked) - most} more, which -v names" if len(unasked) > most else ""
    return [f"stated and never asked, so nothing is proved of it: {', '.join(map(str, unasked[:most]))}{more}"]


def _held(outcome: Outcome) -> str:
    """One line of a check that is as stated."""
    check, result = outcome.check, outcome.result
    assert check is not None
    engine = f"  by {result.decided_by}" if result is not None and result.decided_by else ""
    word = "counterexample" if outcome.found == "refuted" else outcome.found
    line = f"{word:<14} {check.kind}  {_title(outcome)}{engine}, {_seconds(outcome.seconds)}   {outcome.place}"
    return visible("; ".join((line, *scopes([outcome]))))


def _files(outcomes: Sequence[Outcome]) -> list[str]:
    """A line per file: how many checks, what they showed, how long it took."""
    files: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status is not Status.INTERRUPTED:
            files.setdefault(visible(split_place(outcome.place)[0]), []).append(outcome)
    if len(files) < 2:
        # the last line says the same
        return []
    wide = max(map(len, files))
    return [f"{name:<{wide}}  {tally(found)}; {_seconds(_total(found))}" for name, found in files.items()]


def _total(outcomes: Iterable[Outcome]) -> float:
    return sum(outcome.seconds for outcome in outcomes)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds:.1f} s"


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
        word = "error" if outcome.status is Status.ERROR else "unknown"
        return f"{word:<8} {visible(outcome.place)}\n  because  {visible(outcome.because)}"
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
    return "\n".join(map(visible, lines))


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line that counts, over all files.

    >>> summary([Outcome(Status.AS_EXPECTED, "a.yaml:1:1", "proved"), Outcome(Status.WRONG, "a.yaml:2:1", "refuted")])
    '1 of 2 claims as stated: 1 proved; 1 NOT as stated'
    """
    files = len({split_place(o.place)[0] for o in outcomes if o.place})
    return "; ".join([tally(outcomes), *([f"in {files} files"] if files > 1 else []), *scopes(outcomes)])


def tally(outcomes: Sequence[Outcome]) -> str:
    """What some checks showed. A claim that states a refutation is as stated when its counterexample is found."""
    claims = [o for o in outcomes if o.found in _VERDICTS]
    held = [o for o in claims if o.status is Status.AS_EXPECTED]
    facts = [o for o in outcomes if o.found in ("holds", "wrong")]
    refuted = _count(held, "refuted")
    shown = {
        "proved": _count(held, "proved"),
        f"counterexample{_s(refuted)} as expected": refuted,
        "unknown and accepted": _count(held, "unknown"),
    }
    parts = []
    if claims or not facts:
        all_of = f"{len(held)} of " if len(held) < len(claims) else ""
        line = f"{all_of}{len(claims)} claim{_s(len(claims))} as stated"
        numbers = ", ".join(f"{count} {what}" for what, count in shown.items() if count)
        parts.append(f"{line}: {numbers}" if numbers else line)
    if facts:
        holds = _count(facts, "holds")
        parts.append(
            f"{holds} of {len(facts)} facts hold"
            if holds < len(facts)
            else f"{holds} {'fact holds' if holds == 1 else 'facts hold'}"
        )
    late = {
        "NOT as stated": sum(o.status is Status.WRONG for o in claims),
        "WRONG": _count(facts, "wrong"),
        "UNKNOWN": sum(o.status is Status.UNKNOWN for o in outcomes),
        "NOT readable": sum(o.status is Status.ERROR for o in outcomes),
    }
    return "; ".join([*parts, *(f"{count} {what}" for what, count in late.items() if count)])


def scopes(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """What was looked at of kernels that are proved, in words; () where no kernel is."""
    proved = (o.result for o in outcomes if o.found == "proved" and o.result is not None)
    said = tuple(dict.fromkeys(result.scope for result in proved if result.scope))
    # claims say themselves which property they are about
    return said if len(said) < 2 else (scope(None),)


def as_json(outcomes: Sequence[Outcome], unasked: Sequence[Unasked] = ()) -> dict[str, Any]:
    """The same for programs, as `core.document` says: `results`, one for each check, `summary`, and what is stated and
    `never_asked`."""
    counts = {verdict: _count(outcomes, verdict) for verdict in (*_VERDICTS, "holds", "wrong", "error")}
    as_expected = sum(o.status is Status.AS_EXPECTED for o in outcomes)
    body = {
        "summary": {"checks": len(outcomes), "as_expected": as_expected, **counts},
        "partial": any(o.status is Status.INTERRUPTED for o in outcomes),
        "results": [_entry(outcome) for outcome in outcomes],
        "never_asked": [_never_asked(each) for each in unasked],
    }
    return document(exit_code(outcomes), body)


def _never_asked(what: Unasked) -> dict[str, Any]:
    file, line, _ = split_place(what.place)
    return {"what": what.what, "subject": what.name, "file": file, "line": line}


def as_findings(outcomes: Sequence[Outcome], unasked: Sequence[Unasked] = ()) -> Report:
    """The same for `formats`: what is not as expected is a finding, the rest is held."""
    found = [_finding(o) for o in outcomes if o.status not in (Status.AS_EXPECTED, Status.INTERRUPTED)]
    held = [_finding(o) for o in outcomes if o.status is Status.AS_EXPECTED]
    files = {f.file for f in (*found, *held)}
    partial = any(o.status is Status.INTERRUPTED for o in outcomes)
    notes = tuple(never_asked(unasked, everything=True))
    title = summary(outcomes)
    return Report(title, tuple(named(found)), len(files), notes, 0, partial, tuple(held), "all as stated")


_VERDICT_OF = {Status.AS_EXPECTED: Verdict.PROVED, Status.WRONG: Verdict.REFUTED}
"""Of the claim that a check makes: that its question is answered as it expects. Unknown for the rest."""


def _finding(outcome: Outcome) -> Finding:
    check, result = outcome.check, outcome.result
    if check is None:
        file, line, column = split_place(outcome.place)
        make = wrong_input if outcome.status is Status.ERROR else unknown
        return make("spec file", outcome.because, file, file, line=line, column=column)
    return Finding(
        check.kind,
        _title(outcome),
        outcome.because or "; ".join((outcome.found, *scopes([outcome]))),
        check.file,
        check.file,
        check.line,
        check.column,
        after=" , ".join(_layout(layout) if isinstance(layout, dict) else str(layout) for layout in check.layouts),
        counterexample=result.counterexample if result is not None else None,
        figures=result.figures if result is not None else {},
        decided_by=result.decided_by if result is not None else "",
        verdict=_VERDICT_OF.get(outcome.status, Verdict.UNKNOWN),
        bad_input=outcome.status is Status.ERROR,
    )


_VERDICTS = ("proved", "refuted", "unknown")


def _entry(outcome: Outcome) -> dict[str, Any]:
    """One check: what was found, as every finding is written, and what the file says of it."""
    check, result = outcome.check, outcome.result
    answer = _finding(outcome) if check is None or result is None else result
    status = outcome.status.name.lower().replace("_", " ")
    if check is None:
        return {"status": status, **as_dict(replace(answer, relpath=""))}
    # what is wrong with a check may be more than what is wrong with the layout
    why = outcome.because or (result.reason if result is not None else "")
    at: dict[str, Any] = {"file": check.file, "line": check.line, "column": check.column, "relpath": "", "after": ""}
    entry = as_dict(replace(answer, question=check.kind, subject=_title(outcome), reason=why, **at))
    said = {"name": check.name, "source": check.source, "note": check.note, "expect": check.expect}
    return {"status": status, **entry, **said, "labels": list(check.labels), "layouts": plain(check.layouts)}


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


def _s(count: int) -> str:
    return "" if count == 1 else "s"
