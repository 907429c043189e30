"""Findings: one finding, the rule of exit codes, findings as text and as JSON, a report of many.

A finding is plain data that can be sent to another process. Every command answers with findings: `ask` with one,
`kernels` and `check` with one for each question, the gate with one for each difference.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, NoReturn, TypedDict

from layoutproof.core.document import Doc, Document, Exactly, envelope, without_empty
from layoutproof.core.errors import shorten
from layoutproof.core.message import Message
from layoutproof.core.result import Counterexample, Verdict, plain, show_point
from layoutproof.core.shown import Shown
from layoutproof.core.visible import json_text, visible, visible_data

SEVERITIES = ("allow", "warn", "deny")
"""The decisions of the gate's rules on a difference, the mildest first."""
_DECIDES = frozenset({"error", "deny"})
INTERRUPTED = 130
NOT_ASKED = "not asked: "
"""Starts the reason of an unknown that no engine was asked about: only the compiler decides it, or another call does.
Its severity is info: it is shown and counted as not asked, it is never proved, and it decides the exit code only if
nothing else was asked."""
ACCEPTED = "accepted"
"""Starts the policy of an unknown that a person has accepted: it is shown and counted as that, never as proved, and
decides no exit code."""
IDLE = "not asked"
"""The word under which such a finding is counted."""

VerdictWord = Annotated[str, Exactly(Literal["proved", "sampled", "refuted", "unknown"])]
"""A verdict's value, as JSON has it."""
PointEntry = dict[str, list[int] | dict[str, int]]
"""Named points, and `sizes` from symbol to value."""


class _Seldom(TypedDict, total=False):
    id: Annotated[str, Doc("which message the reason is; it stays the same where the words are bettered")]
    hint: Annotated[str, Doc("where to look, where no fix is known")]
    scope: Annotated[str, Doc("what was looked at, where that is not all there is")]
    assumes: Annotated[list[str], Doc("assumptions about run-time values that the answer rests on")]
    needs: Annotated[list[str], Doc("assumptions under which what is unknown is proved")]
    where: Annotated[str, Doc("the condition on sizes of the running program under which it is, too")]
    derivation: Annotated[list[str], Doc("how each layout given as an expression was computed and proved")]
    relpath: Annotated[str, Doc("of the gate: the file's name in both states")]
    before: str
    after: str
    match_heuristic: Annotated[str, Doc("how the two sides were matched, where that is a guess")]
    policy: Annotated[str, Doc("which rule or approval set the severity")]
    fingerprint: Annotated[str, Doc("a name that stays the same between runs, for approvals")]
    bad_input: Annotated[bool, Doc("there is no verdict, because the input is wrong")]
    follows: Annotated[list[FindingEntry], Doc("of a difference, the others that come from it")]
    cause: Annotated[str, Doc("of a difference, the source line, and the first value there that is not as it was")]
    hunks: Annotated[
        list[str], Doc("of a difference, the parts of the diff that make it, none of which can be left out")
    ]


class FindingEntry(_Seldom):
    """The answer to one question about one subject."""

    question: Annotated[str, Doc("a property, a rule, or the gate's class of difference")]
    subject: Annotated[str, Doc("what it is about, e.g. the text of a layout")]
    verdict: VerdictWord
    severity: Annotated[str, Exactly(Literal["error", "warning", "info", "deny", "warn", "allow"])]
    reason: Annotated[str, Doc("why it is refuted or unknown, in one sentence; empty where it is proved")]
    counterexample: Annotated[PointEntry | None, Doc("the smallest one; only of what is refuted")]
    file: str
    line: Annotated[int, Doc("from 1; 0 where there is none, as of column")]
    column: int
    figures: Annotated[dict[str, Any], Doc("exact numbers, or closed forms as text where sizes are symbolic")]
    fix: Annotated[str, Doc("what to write instead, where that is known; of a kernel it was tried")]
    decided_by: Annotated[str, Doc("the engine that proved or refuted")]


class FindingDocument(Document, FindingEntry):
    """The answer to one question."""


class Answer(Shown):
    """The answer of one call. Its `str` is the text that the command prints; its `bool` raises.

    Every class of answers has `findings`, `exit_code`, `as_dict` and `__str__`.
    """

    __slots__ = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings in the order of the report."""
        raise NotImplementedError

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, 1, 2, 3 or 130."""
        raise NotImplementedError

    def as_dict(self) -> Document:
        """The object that the command prints with `--json`; `core.document` says what its keys are."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The same as text, as the command prints it.

        Returns:
            One JSON object.
        """
        return json_text(self.as_dict())

    def __bool__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"a {name} has three outcomes; compare .exit_code with 0, or .verdict with lp.Verdict.PROVED")


@dataclass(frozen=True, slots=True)
class Finding(Answer):
    """The answer to one question about one subject.

    Attributes:
        question: A property, a rule, or the gate's class of difference (`core.finding_kinds.KINDS`).
        subject: Its subject, e.g. "layout scores", an operand of a kernel, the text of a layout.
        reason: Why it is refuted or unknown, one sentence with the numbers; "" where it is proved.
        relpath: Path of the file within a state of the gate, the same on every machine.
        file: Where to look now; for what is removed, where it was.
        line: 1-based, 0 where there is none.
        column: 1-based, 0 where there is none.
        verdict: Proved, refuted or unknown. Of a difference: refuted where it is there.
        counterexample: There iff refuted and there is one: points in the order of the claim; `sizes`, where some are
            symbolic, maps each symbol to its value.
        severity: Of a violation error, warning or info; of a difference deny, warn or allow. Only error and deny decide
            the verdict of several findings and the exit code.
        figures: Exact numbers: ints, or closed forms as text where sizes are symbolic.
        fix: The text to write instead; of a kernel it was tried, and every question asked again.
        hint: Where to look, where no fix is known.
        decided_by: The engine that proved or refuted ("digits", "isl", ..; two joined by "+" when confirmed).
        scope: The part that was checked, where it is not everything: of a kernel never its body.
        assumes: The assumptions about run-time values that the answer rests on.
        needs: The assumptions under which an unknown is proved.
        where: The condition on sizes of the running program under which it is, too; "" = none is needed.
        derivation: How each layout that an expression stands for was computed, with what was proved of it.
        before: The text of the old state, "" where there is none.
        after: The text of the new state, "" where there is none.
        match_heuristic: How the two sides were matched, where their identity does not say it.
        policy: Which rule or approval set the severity.
        fingerprint: A name that stays the same between runs.
        bad_input: There is no verdict, because the input is wrong.
        follows: Of a difference, the other differences that come from it; each keeps its own severity.
        cause: Of a difference between two programs the line of the source, and the first value there that is not as it
            was: `model.py:7: ..`; "" where none is convincing.
        hunks: Of a difference, with `gate --blame`, the parts of the diff that make it; none can be left out.
    """

    question: str
    subject: str
    reason: str = ""
    relpath: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    verdict: Verdict = Verdict.REFUTED
    counterexample: Counterexample | None = None
    severity: str = "error"
    figures: Mapping[str, Any] = field(default_factory=dict)
    fix: str = ""
    hint: str = ""
    decided_by: str = ""
    scope: str = ""
    assumes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    where: str = ""
    derivation: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    match_heuristic: str = ""
    policy: str = ""
    fingerprint: str = ""
    bad_input: bool = False
    follows: tuple[Finding, ...] = ()
    cause: str = ""
    hunks: tuple[str, ...] = ()

    @property
    def asked(self) -> bool:
        """Whether anybody was asked; if not, it is unknown, shown as not asked, and counted so."""
        return not self.reason.startswith(NOT_ASKED)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Itself."""
        return (self,)

    @property
    def exit_code(self) -> int:
        """By the rule of all commands."""
        return exit_code([self])

    def as_dict(self) -> FindingDocument:
        """What `layoutproof ask --json` prints.

        Returns:
            Plain data: dicts, lists, text and numbers.
        """
        return {**envelope(self.exit_code), **as_dict(self)}

    def __str__(self) -> str:
        return text(self)

    @property
    def place(self) -> str:
        """`specs/a.yaml:12:5`, relative to where we are if it lies below."""
        file = self.file.removeprefix(os.getcwd() + os.sep) if os.path.isabs(self.file) else self.file
        return ":".join(str(part) for part in (file, self.line, self.column) if part)


def unknown(subject: str, reason: str, relpath: str = "", file: str = "", **more: Any) -> Finding:
    """An unknown of the gate: it never counts as harmless, whatever the rules say."""
    return Finding("unknown", subject, reason, relpath, file, verdict=Verdict.UNKNOWN, severity="deny", **more)


def wrong_input(subject: str, reason: str, relpath: str = "", file: str = "", **more: Any) -> Finding:
    """Something that cannot be read."""
    return Finding(
        "error", subject, reason, relpath, file, verdict=Verdict.UNKNOWN, severity="deny", bad_input=True, **more
    )


def exit_code(findings: Iterable[Finding], interrupted: bool = False) -> int:
    """The one rule of all commands: 130 interrupted; 1 something refuted or denied; 2 bad input; 3 something unknown;
    0 everything proved. The first of these that holds.

    >>> exit_code([unknown("a", "no engine can tell"), Finding("injective", "b", "(0,) and (1,) share offset 4")])
    1
    >>> exit_code([Finding("revisits", "x", "each block is fetched twice", severity="warning")])
    0
    """
    if interrupted:
        return INTERRUPTED
    codes = {_code(finding) for finding in findings}
    return next((code for code in (1, 2, 3) if code in codes), 0)


def _code(finding: Finding) -> int:
    if finding.bad_input:
        return 2
    if finding.verdict is Verdict.PROVED or finding.severity not in _DECIDES:
        return 0
    return finding.verdict.exit_code


def word(finding: Finding) -> str:
    """The first column of a report: error for bad input, the decision of the gate's rules on a difference, the
    verdict where it decides, else the severity."""
    if finding.bad_input:
        return "error"
    if not finding.asked:
        return IDLE
    if finding.severity in SEVERITIES and finding.verdict is not Verdict.UNKNOWN:
        return finding.severity
    decides = finding.severity in _DECIDES or finding.verdict in (Verdict.PROVED, Verdict.SAMPLED)
    return finding.verdict.value if decides else finding.severity


_LEVELS = {
    "error": "error",
    "deny": "error",
    "refuted": "error",
    "unknown": "error",
    "warn": "warning",
    "warning": "warning",
    "allow": "note",
    "info": "note",
    IDLE: "note",
    Verdict.SAMPLED.value: "note",
    Verdict.PROVED.value: "note",
}
"""The level of each word for build servers, the worst first."""


def level(finding: Finding) -> str:
    """The level of a finding for build servers: error, warning or note. Unknown is an error: it is never green.

    >>> level(unknown("a", "no engine can tell"))
    'error'
    """
    return _LEVELS[word(finding)]


def rank(finding: Finding) -> int:
    """Where a finding stands in a report that has the worst first."""
    return [*_LEVELS].index(word(finding))


def block(head: str, rows: Iterable[tuple[str, object]]) -> str:
    """A headline and what belongs to it, a line each, as all reports for people are written; empty rows are left out.

    >>> print(block("refuted  injective  scores", [("because", "two elements share offset 4"), ("fix", "")]))
    refuted  injective  scores
      because  two elements share offset 4
    """
    lines = [head.rstrip(), *(f"  {name:<8} {value}" for name, value in rows if value not in ("", None))]
    return "\n".join(map(visible, lines))


def text(finding: Finding, more: Iterable[tuple[str, object]] = (), said: str = "") -> str:
    """One finding for people. more: rows of the caller's own, which come last.
    said: the first word, by default `word`.

    >>> print(text(Finding("moved", "layout a", "(0, 1) is elsewhere", file="a.yaml", line=3, severity="deny")))
    deny     moved  layout a   a.yaml:3
      because  (0, 1) is elsewhere
    """
    return block(headline(finding, said), [*rows(finding), *more])


def headline(finding: Finding, said: str = "") -> str:
    """The first line: its word (`said`, by default `word`), the question, the subject, the place."""
    place = f"   {finding.place}" if finding.file else ""
    return f"{said or word(finding):<8} {finding.question}  {finding.subject}{place}"


def rows(finding: Finding) -> list[tuple[str, object]]:
    """The further lines of a finding below its headline, by name, in the order of all reports."""
    return [
        ("before", shorten(finding.before, 160)),
        ("after", shorten(finding.after, 160)),
        ("because", finding.reason.removeprefix(NOT_ASKED)),
        ("cause", finding.cause),
        *(("hunk", each) for each in finding.hunks),
        ("at", show_point(finding.counterexample) if finding.counterexample else ""),
        ("by", finding.decided_by),
        *((name, plain(value)) for name, value in finding.figures.items() if not isinstance(value, list)),
        ("fix", finding.fix),
        ("hint", finding.hint),
        *(("assumes", each) for each in finding.assumes),
        ("scope", finding.scope),
        *(("derived", each) for each in finding.derivation),
        ("matched", finding.match_heuristic),
        ("policy", finding.policy),
        ("fingerprint", finding.fingerprint if finding.severity == "deny" and not finding.bad_input else ""),
        ("follows", following(finding)),
        *(("", f"{word(f)} {f.question}  {f.subject}{f'   {f.place}' if f.file else ''}") for f in worst(finding)),
    ]


MOST_FOLLOWING = 3
"""Differences that come from another one and are shown with it; all are in the JSON form."""


def worst(finding: Finding, most: int = MOST_FOLLOWING) -> list[Finding]:
    """The first of what comes from a difference, the worst first."""
    return sorted(finding.follows, key=rank)[:most]


def following(finding: Finding) -> str:
    """The consequences of a difference, counted by class; "" where there are none.

    >>> following(Finding("abi", "parameter 0", follows=(Finding("moved", "add"), Finding("moved", "copy"))))
    '2 more come from it: 2 moved'
    """
    counts = Counter(f.question for f in sorted(finding.follows, key=rank))
    many = sum(counts.values())
    shown = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{many} more {'come' if many > 1 else 'comes'} from it: {shown}" if many else ""


def as_dict(finding: Finding) -> FindingEntry:
    """One finding for programs: the keys of every finding, and the further ones of this finding.

    >>> as_dict(Finding("injective", "f32[4]", verdict=Verdict.PROVED, decided_by="digits"))["verdict"]
    'proved'
    """
    seldom: _Seldom = {
        "id": finding.reason.id if isinstance(finding.reason, Message) else "",
        "hint": finding.hint, "scope": finding.scope, "assumes": list(finding.assumes), "needs": list(finding.needs),
        "where": finding.where, "derivation": list(finding.derivation), "relpath": finding.relpath,
        "before": finding.before, "after": finding.after, "match_heuristic": finding.match_heuristic,
        "policy": finding.policy, "fingerprint": finding.fingerprint, "bad_input": finding.bad_input,
        "follows": list(map(as_dict, finding.follows)), "cause": finding.cause, "hunks": list(finding.hunks),
    }  # fmt: skip
    return {
        "question": finding.question, "subject": finding.subject, "verdict": finding.verdict.value,
        "severity": finding.severity, "reason": finding.reason, "counterexample": plain(finding.counterexample),
        "file": finding.file, "line": finding.line, "column": finding.column, "figures": plain(finding.figures),
        "fix": finding.fix, "decided_by": finding.decided_by, **without_empty(seldom),
    }  # fmt: skip


def split_place(place: str) -> tuple[str, int, int]:
    """File, line and column of a place, 0 where it does not say.

    >>> split_place("a.yaml:3:5"), split_place("a.yaml:3"), split_place("a.yaml")
    (('a.yaml', 3, 5), ('a.yaml', 3, 0), ('a.yaml', 0, 0))
    """
    found = re.fullmatch(r"(?s)(.*?)(?::(\d+))?(?::(\d+))?", place)
    assert found is not None
    return found[1], int(found[2] or 0), int(found[3] or 0)


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one comparison.

    title: the two sides.  compared: how many files, the unchanged ones too.
    findings: those that are shown, in the order of the files.  notes: further lines for the reader.
    hidden: how many findings are left out because they are allowed or approved.  partial: it was interrupted.
    held: checks that passed, for formats that list them.
    nothing: the text where there is no finding.
    """

    title: str
    findings: tuple[Finding, ...]
    compared: int = 0
    notes: tuple[str, ...] = ()
    hidden: int = 0
    partial: bool = False
    held: tuple[Finding, ...] = ()
    nothing: str = "no change"

    @property
    def exit_code(self) -> int:
        """By the rule of all commands."""
        return exit_code(self.findings, self.partial)


def harmless(report: Report) -> Report:
    """The report with every text in it as `core.visible` shows it, for the forms that people and build servers read."""
    return replace(
        report,
        title=visible(report.title),
        notes=tuple(map(visible, report.notes)),
        findings=tuple(map(_harmless, report.findings)),
        held=tuple(map(_harmless, report.held)),
    )


def _harmless(finding: Finding) -> Finding:
    given = {f.name: getattr(finding, f.name) for f in fields(finding) if f.name != "follows"}
    # a layout or a reason on several lines is one on one line
    given |= {name: " ".join(given[name].split()) for name in ("reason", "before", "after", "match_heuristic")}
    return Finding(**visible_data(given), follows=tuple(map(_harmless, finding.follows)))


def summary(report: Report) -> str:
    """One line that counts.

    >>> summary(Report("a against b", (), compared=3))
    'a against b: no change in 3 files'
    """
    count = len(report.findings)
    if not count:
        line = f"{report.nothing} in {_files(report.compared)}"
    else:
        words = [word(finding) for finding in report.findings]
        always = {"deny"} if any(f.severity in SEVERITIES for f in report.findings) else set()
        counted = ((words.count(each), said) for each, said in _COUNTED.items() if each in (*words, *always))
        shown = ", ".join(f"{number} {said}" for number, said in counted)
        line = f"{count} finding{'' if count == 1 else 's'} in {_files(report.compared)}: {shown}"
    line += f"; {report.hidden} allowed or approved not shown" if report.hidden else ""
    return f"{report.title}: {line}" + ("; interrupted, so this is a part" if report.partial else "")


_COUNTED = {
    "deny": "denied",
    "refuted": "refuted",
    "warn": "warned",
    "warning": "warning",
    "allow": "allowed",
    "info": "info",
    "proved": "proved",
    "sampled": "sampled",
    "unknown": "unknown",
    "error": "error",
}


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"
