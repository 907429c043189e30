"""Outcomes as text for people, as JSON for programs, and as findings for the other forms of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypedDict

from layoutproof.core.document import Doc, Document, Exactly, envelope
from layoutproof.core.errors import shorten
from layoutproof.core.finding import (
    Finding,
    FindingEntry,
    Report,
    VerdictWord,
    as_dict,
    block,
    headline,
    rows,
    split_place,
)
from layoutproof.core.finding import text as text_of
from layoutproof.core.fingerprint import named
from layoutproof.core.result import Verdict, plain
from layoutproof.core.visible import visible
from layoutproof.pallas.judge import ASKED, BODY, about_body, scope
from layoutproof.specs.check import INTERRUPTED, Outcome, exit_code
from layoutproof.specs.spec import Unasked
from layoutproof.specs.spec_model import OF_VALUES
from layoutproof.specs.traced import ALL


def text(outcomes: Sequence[Outcome], everything: bool = False, unasked: Sequence[Unasked] = ()) -> str:
    """The checks that failed, a line per file, one line of counts; the worst is last, where a terminal shows it.

    everything: first a line for each check that passed.  unasked: definitions without a check.
    """
    late = ("unknown", "wrong", "error", INTERRUPTED)
    shown = sorted((o for o in outcomes if o.status in late), key=lambda o: late.index(o.status))
    held = [_held(o) for o in outcomes if o.held] if everything else []
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
    finding = outcome.finding
    engine = f"  by {finding.decided_by}" if finding.decided_by else ""
    word = "counterexample" if outcome.found == "refuted" else outcome.found
    line = f"{word:<14} {finding.question}  {finding.subject}{engine}, {_seconds(outcome.seconds)}   {finding.place}"
    return visible("; ".join((line, *scopes([outcome]))))


def _files(outcomes: Sequence[Outcome]) -> list[str]:
    """A line per file: how many checks, their results, how long it took."""
    files: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.finding.file:
            files.setdefault(visible(outcome.finding.file), []).append(outcome)
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
      at       first=(0, 4) second=(1, 0)
      by       digits
      explain  layoutproof explain injective
    """
    check, finding = outcome.check, outcome.finding
    if outcome.status == INTERRUPTED:
        return f"interrupted {finding.reason}"
    if check is None:
        return text_of(finding)
    about = "program" if check.is_of_program else "function" if check.kind in OF_VALUES else "layout"
    lead: list[tuple[str, object]] = [(about, shorten(layout, 160)) for layout in check.texts]
    lead.append(("where", check.options.get("where", "")))
    more = [("note", shorten(check.note))]
    if check.is_fact:
        more.append(("source", shorten(check.source)))
    elif not finding.bad_input:
        # claims about values have no page of their own, and what came of them has one
        more.append(("explain", f"layoutproof explain {outcome.found if check.kind in OF_VALUES else check.kind}"))
    finding = replace(finding, after="")  # the layouts have rows of their own
    return block(headline(finding, _word(outcome)), [*lead, *rows(finding), *more])


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line that counts, over all files.

    >>> from layoutproof.core.finding import Finding
    >>> held, wrong = (Finding("covers", "a", verdict=verdict) for verdict in (Verdict.PROVED, Verdict.REFUTED))
    >>> summary([Outcome(held, "proved"), Outcome(wrong, "refuted")])
    '1 of 2 claims as stated: 1 proved; 1 NOT as stated'
    """
    files = len({o.finding.file for o in outcomes if o.finding.file})
    return "; ".join([tally(outcomes), *([f"in {files} files"] if files > 1 else []), *scopes(outcomes)])


def tally(outcomes: Sequence[Outcome]) -> str:
    """The results of some checks. A claim that states a refutation passes when its counterexample is found."""
    claims = [o for o in outcomes if o.found in _VERDICTS]
    held = [o for o in claims if o.held]
    facts = [o for o in outcomes if o.found in ("holds", "wrong")]
    refuted = _count(held, "refuted")
    shown = {
        "proved": _count(held, "proved"),
        "sampled": _count(held, "sampled"),
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
        "NOT as stated": sum(o.finding.verdict is Verdict.REFUTED for o in claims),
        "WRONG": _count(facts, "wrong"),
        "UNKNOWN": sum(o.status == "unknown" for o in outcomes),
        "NOT readable": sum(o.finding.bad_input for o in outcomes),
    }
    return "; ".join([*parts, *(f"{count} {what}" for what, count in late.items() if count)])


def scopes(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The scopes of proved kernels and of values, in words; () where there are none."""
    found = [o.finding for o in outcomes if o.found in ("proved", "sampled") and o.finding.scope]
    values = [f.scope for f in found if f.question in OF_VALUES]
    kernels = _of_kernels([f for f in found if f.question not in OF_VALUES])
    # a claim that is refuted has looked at the body, too
    looked = any(_of_body(o.finding) or o.finding.question in OF_VALUES for o in outcomes)
    return (*(text.replace(f"; {BODY}", "") if looked else text for text in kernels), *dict.fromkeys(values))


def _of_kernels(proved: Sequence[Finding]) -> tuple[str, ...]:
    """The one scope of several claims, which say themselves what property they are about."""
    said = tuple(dict.fromkeys(f.scope for f in proved))
    if len(said) < 2:
        return said
    bodies = sorted({name for f in proved for name in _of_body(f)})
    grid = any(not about_body(f.question) for f in proved)
    return (scope(None if grid else bodies, body=bodies if grid else ()),)


def _of_body(finding: Finding) -> Sequence[str]:
    """The questions about bodies that a claim asks."""
    if finding.question == ALL:
        asked = finding.scope.partition(ASKED)[2].partition(";")[0]
        return asked.split(", ") if asked else ()
    return [finding.question] if about_body(finding.question) else ()


class _Stated(TypedDict, total=False):
    name: Annotated[str, Doc("the title that the file gives it")]
    source: str
    note: str
    expect: VerdictWord
    labels: list[str]
    layouts: list[Any]


class CheckEntry(FindingEntry, _Stated):
    status: Annotated[str, Exactly(Literal["as expected", "wrong", "error", "unknown", "interrupted"])]


class UnaskedEntry(TypedDict):
    what: Annotated[str, Doc("layout, kernel, program, or which claim of the gate")]
    subject: str
    file: str
    line: int


class CheckDocument(Document):
    """The answer to every check of some spec files."""

    summary: dict[str, int]
    partial: Annotated[bool, Doc("it was interrupted")]
    results: list[CheckEntry]
    never_asked: Annotated[list[UnaskedEntry], Doc("what the files state and claim nothing of")]


def as_json(outcomes: Sequence[Outcome], unasked: Sequence[Unasked] = ()) -> CheckDocument:
    """The same for programs, as `core.document` says: `results`, one for each check, `summary`, and what is stated and
    `never_asked`."""
    counts = {verdict: _count(outcomes, verdict) for verdict in (*_VERDICTS, "holds", "wrong", "error")}
    as_expected = sum(o.held for o in outcomes)
    return {
        **envelope(exit_code(outcomes)),
        "summary": {"checks": len(outcomes), "as_expected": as_expected, **counts},
        "partial": any(o.status == INTERRUPTED for o in outcomes),
        "results": [_entry(outcome) for outcome in outcomes],
        "never_asked": [_never_asked(each) for each in unasked],
    }


def _never_asked(what: Unasked) -> UnaskedEntry:
    file, line, _ = split_place(what.place)
    return {"what": what.what, "subject": what.name, "file": file, "line": line}


def as_findings(outcomes: Sequence[Outcome], unasked: Sequence[Unasked] = ()) -> Report:
    """The same for `formats`: a failed check is a finding, the rest is held."""
    found = [o.finding for o in outcomes if o.status not in ("as expected", INTERRUPTED)]
    # held checks are listed with the findings
    held = [
        replace(o.finding, reason="; ".join((o.found, *scopes([o])))) for o in outcomes if o.status == "as expected"
    ]
    files = {f.file for f in (*found, *held)}
    partial = any(o.status == INTERRUPTED for o in outcomes)
    notes = tuple(never_asked(unasked, everything=True))
    title = summary(outcomes)
    return Report(title, tuple(named(found)), len(files), notes, 0, partial, tuple(held), "all as stated")


_VERDICTS = ("proved", "sampled", "refuted", "unknown")


def _entry(outcome: Outcome) -> CheckEntry:
    """One check: what was found, as every finding is written, and what the file says of it."""
    check, finding = outcome.check, outcome.finding
    stated: _Stated = {}
    if check is None:
        answer = replace(finding, relpath="")
    else:
        answer = finding if outcome.answer is None else outcome.answer
        # a check may have more mistakes than its layout
        at: dict[str, Any] = {"reason": finding.reason or answer.reason, "relpath": "", "after": ""}
        at |= {name: getattr(finding, name) for name in ("question", "subject", "file", "line", "column")}
        answer = replace(answer, **at)
        stated = {
            "name": check.name, "source": check.source, "note": check.note, "expect": check.expect,
            "labels": list(check.labels), "layouts": plain(check.layouts),
        }  # fmt: skip
    return {"status": outcome.status, **as_dict(answer), **stated}


def _word(outcome: Outcome) -> str:
    """The first line's word: the verdict, unless the verdict is the expected one and something else is not."""
    check = outcome.check
    matched = (
        outcome.finding.verdict is Verdict.REFUTED and check is not None and outcome.found in ("proved", check.expect)
    )
    return "wrong" if matched else outcome.found


def _count(outcomes: Iterable[Outcome], found: str) -> int:
    return sum(outcome.found == found for outcome in outcomes)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
