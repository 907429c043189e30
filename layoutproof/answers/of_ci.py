"""`lp.ci`: the claims of spec files and the changes since a git revision, in one run that traces each function once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Annotated, NotRequired, TypedDict

from layoutproof.answers import problems
from layoutproof.answers.of_specs import Checked
from layoutproof.answers.of_states import Changes, gate
from layoutproof.compiler.tracing import NO_TRACE, NOT_TRACED, here, only
from layoutproof.compiler.workers import Workers
from layoutproof.core.document import VERSION, Doc, Document
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import MIB, read
from layoutproof.core.finding import ACCEPTED, Answer, Finding, Report, exit_code
from layoutproof.core.result import Verdict
from layoutproof.core.visible import json_text
from layoutproof.formats import render
from layoutproof.formats.json import GateDocument
from layoutproof.gating import states
from layoutproof.gating.problems import UNREADABLE_FILES
from layoutproof.specs.check import Outcome, check_paths, unasked_in
from layoutproof.specs.report import CheckDocument
from layoutproof.specs.spec import Check
from layoutproof.specs.traced import KEY, is_traced

MOST_BASELINE = 16 * MIB
_FORM = 1
_BOTH = ("text", "markdown", "github")
"""Forms for people: the report of the claims, then that of the changes. The others are one report of both."""


class ShareEntry(TypedDict):
    """How much is proved."""

    proved: Annotated[int, Doc("claims and facts that are as stated, sampled ones and accepted unknowns left out")]
    claims: int
    percent: Annotated[float, Doc("rounded down to hundredths")]
    least: NotRequired[Annotated[float, Doc("percent that --fail-under or the baseline asks for")]]


class CiDocument(Document):
    """Both halves of a run, as their own commands print them."""

    check: NotRequired[CheckDocument]
    gate: NotRequired[GateDocument]
    share: ShareEntry
    accepted: Annotated[int, Doc("unknowns that the baseline accepts")]
    skipped: Annotated[list[str], Doc("what was not judged, because code would have to be run for it")]
    shard: Annotated[str, Doc("which part of the claims this is, as 2/8; empty for all")]
    findings: Annotated[list[str], Doc("what is wrong with the share or the baseline")]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a committed file accepts.

    proved, claims: the share that was proved when it was written.  unknown: claims that were unknown, by `identity`.
    """

    proved: int = 0
    claims: int = 0
    unknown: Mapping[str, str] | None = None

    def __str__(self) -> str:
        said = {"version": _FORM, "proved": self.proved, "claims": self.claims, "unknown": dict(self.unknown or {})}
        return json_text(said)


@dataclass(frozen=True, slots=True)
class CiRun(Answer):
    """What one run found.

    checked: of the claims, None where none is asked.  changes: since the revision, None where none is given.
    demands: what is wrong with the share that is proved, or with the baseline.  least: the share that is asked for.
    shard: the part of the claims, "" for all.
    """

    checked: Checked | None
    changes: Changes | None
    demands: tuple[Finding, ...] = ()
    least: Fraction | None = None
    shard: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the claims, of the changes, and of what is demanded of both."""
        halves = (self.checked, self.changes)
        return (*(f for half in halves if half is not None for f in half.findings), *self.demands)

    @property
    def exit_code(self) -> int:
        """1 something refuted or denied or too little proved, 2 bad input, 3 something unknown, else 0."""
        report = self.report()
        return exit_code(report.findings, report.partial)

    @property
    def skipped(self) -> tuple[str, ...]:
        """What was not judged, because code would have to be run for it and none is with --no-trace."""
        why = NOT_TRACED + NO_TRACE
        return tuple(f"{f.question} {f.subject}" for f in self.findings if f.reason == why)

    def share(self) -> tuple[int, int]:
        """(proved, of how many) of the claims and facts.

        Returns:
            Two counts; what is sampled, accepted or not readable counts as not proved.
        """
        return _share(self.checked.outcomes if self.checked is not None else ())

    def report(self) -> Report:
        """Both halves as one, for the forms of reports.

        Returns:
            The findings with what they are about.
        """
        parts = self._parts()
        return Report(
            "; ".join(dict.fromkeys(part.title for part in parts)),
            tuple(f for part in parts for f in part.findings),
            max((part.compared for part in parts), default=0),
            (*dict.fromkeys(note for part in parts for note in part.notes),),
            sum(part.hidden for part in parts),
            any(part.partial for part in parts),
            tuple(f for part in parts for f in part.held),
            "all as stated and no change denied",
        )

    def _parts(self) -> list[Report]:
        parts = [self.checked.report()] if self.checked is not None else []
        changes = self._changes_alone()
        parts += [changes.report] if changes is not None else []
        share = Report(self.share_text(), self.demands, 0, self.notes())
        return [*parts, share] if self.demands or self.notes() else parts

    def _changes_alone(self) -> Changes | None:
        """The changes without the files that the claims' half reports as not readable: a reader is told once."""
        if self.changes is None or self.checked is None:
            return self.changes
        told = {_mistake(finding) for finding in self.checked.findings if finding.bad_input}
        report = self.changes.report
        twice = [f for f in report.findings if f.bad_input and _mistake(f) in told]
        if not twice:
            return self.changes
        files = dict.fromkeys(f.file for f in twice)
        report = replace(
            report,
            findings=tuple(f for f in report.findings if f not in twice),
            compared=max(0, report.compared - len(files)),
            notes=(*report.notes, UNREADABLE_FILES(", ".join(files))),
        )
        return replace(self.changes, report=report)

    def share_text(self) -> str:
        """The share that is proved, in words.

        Returns:
            One line.
        """
        proved, claims = self.share()
        asked = f", {_percent(self.least)} asked for" if self.least is not None else ""
        return f"{proved} of {claims} proved ({_percent(Fraction(proved, claims or 1))}{asked})"

    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader: what was skipped, accepted, and left to other shards.

        Returns:
            One line each.
        """
        notes = []
        if skipped := self.skipped:
            many = f"{len(skipped)} claim{'' if len(skipped) == 1 else 's'}"
            notes.append(
                f"skipped: {many} of which code would have to be run; with {NO_TRACE} none is, so none is judged"
            )
        if accepted := self.accepted():
            notes.append(f"{accepted} unknown {ACCEPTED} by the baseline, and not proved")
        if self.shard:
            notes.append(f"shard {self.shard}: the other claims are those of other jobs")
        return tuple(notes)

    def accepted(self) -> int:
        """How many unknowns the baseline accepts.

        Returns:
            A count.
        """
        outcomes = self.checked.outcomes if self.checked is not None else ()
        return sum(o.finding.policy.startswith(ACCEPTED) for o in outcomes)

    def text(self, form: str = "text", everything: bool = False) -> str:
        """The report of the run in one form.

        Args:
            form: Of `layoutproof.formats`.
            everything: With text, also a line for each claim that is as stated.

        Returns:
            The whole text of that form.

        Raises:
            LayoutError: There is no such form; the text lists the known ones.
        """
        if form == "json":
            return self.to_json()
        if form not in _BOTH:
            return render(form, self.report())
        halves = []
        if self.checked is not None:
            halves.append(self.checked.text(everything) if form == "text" else render(form, self.checked.report()))
        changes = self._changes_alone()
        if changes is not None:
            halves.append(changes.text(form))
        return ("\n" if form == "github" else "\n\n").join([*halves, *self._closing(form)])

    def _closing(self, form: str) -> list[str]:
        """What is said of the share, and of what was not judged, in a form for people."""
        if self.demands:
            return [render(form, Report(self.share_text(), self.demands, 0, self.notes()))]
        head, before = {"text": ("", "note     "), "markdown": ("### layoutproof: ", "- ")}.get(
            form, ("", "::notice::")
        )
        notes = [f"{before}{note}" for note in self.notes()]
        said = [f"{head}{self.share_text()}"] if self.checked is not None else []
        lines = (
            [*said, *([""] if notes and form == "markdown" else []), *notes] if form == "markdown" else [*notes, *said]
        )
        return ["\n".join(lines)] if lines else []

    def summary(self) -> str:
        """The lines that count, as one.

        Returns:
            One line.
        """
        from layoutproof.core.finding import summary

        halves = [self.checked.summary()] if self.checked is not None else []
        halves += [summary(self.changes.report)] if self.changes is not None else []
        return "; ".join([*halves, self.share_text(), *self.notes()])

    def __str__(self) -> str:
        return self.text()

    def as_dict(self) -> CiDocument:
        """What `layoutproof ci --json` prints."""
        proved, claims = self.share()
        share: ShareEntry = {"proved": proved, "claims": claims, "percent": _number(Fraction(proved, claims or 1))}
        if self.least is not None:
            share["least"] = _number(self.least)
        document: CiDocument = {
            "version": VERSION,
            "exit_code": self.exit_code,
            "share": share,
            "accepted": self.accepted(),
            "skipped": list(self.skipped),
            "shard": self.shard,
            "findings": [f.reason for f in self.demands],
        }
        if self.checked is not None:
            document["check"] = self.checked.as_dict()
        if self.changes is not None:
            document["gate"] = self.changes.as_dict()
        return document


def ci(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]] = "specs",
    *,
    against: str | None = None,
    gated: Sequence[str | PathLike[str]] = (),
    fail_under: str | None = None,
    baseline: str | PathLike[str] | None = None,
    shard: str = "",
    accept_approvals: bool = False,
    trace: bool = True,
    strict: bool = False,
    jobs: int = 1,
    workers: Workers | None = None,
    progress: Callable[[int, int], None] | None = None,
    new_only: bool = False,
    same_function: bool = False,
    compile_base: bool = False,
    libtpu: Sequence[str | PathLike[str]] = (),
) -> CiRun:
    """Decide every claim in spec files and, against a git revision, every change, in one run: each function that files
    name is traced once.

    Args:
        paths: Spec files or folders whose claims are asked; none where there is nothing to ask.
        against: A git revision; without it no change is judged.
        gated: The files and folders whose changes are judged, by default `paths`.
        fail_under: The least share of claims that is to be proved, e.g. "90%"; too few are an error.
        baseline: A file that `Baseline` writes. Claims that it lists may stay unknown, never refuted, and the share
            that it states may not fall. With `against` the revision's own file counts, and what is added to it only
            with `accept_approvals`: it grows by a review.
        shard: "2/8" for the second of eight parts of the claims; changes are judged in the first.
        accept_approvals: Whether approvals and lines of the baseline that the change itself adds count.
        trace: Whether functions that files name may be imported, where pyproject.toml allows it.
        strict: Whether sampled is not enough, and counts as unknown.
        jobs: Processes; 0 is one per core.
        workers: Where the work is done, instead of `jobs`.
        progress: Called with (done, of how many) checks.
        new_only: Whether to leave out changes that are allowed or approved.
        same_function: As of `gate`: every program has to compute what it did; the revision's code is run.
        compile_base: As of `gate`: the programs of the revision are compiled; its code is run.
        libtpu: As of `gate`: the compiler of the programs.

    Returns:
        Both halves: `checked` as of `check`, `changes` as of `gate`, the share that is proved, and `findings`.

    Raises:
        LayoutError: There is no file, no such revision, or a share, shard or baseline is not of its form.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> text = "layouts: {a: 'f32[3,5]{1,0}'}\\nchecks: [{injective: a}]\\n"
    >>> _ = pathlib.Path(folder, "a.yaml").write_text(text)
    >>> ci(folder, fail_under="100%", trace=False).share_text()
    '1 of 1 proved (100 %, 100 % asked for)'
    """
    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    names = tuple(str(path) for path in given)
    least = None if fail_under is None else share_of(fail_under)
    number, parts = shard_of(shard) if shard else (1, 1)
    if parts > 1 and least is not None:
        raise LayoutError(problems.SHARE_OF_SHARD())
    run = workers or Workers(jobs)
    demands: list[Finding] = []
    checked = changes = None
    with only(here(trace)):
        kept = _baseline(baseline, against, accept_approvals, demands)
        if names:
            mine = None if parts == 1 else lambda item: _part(item, parts) == number - 1
            outcomes = check_paths(names, run, progress, mine)
            outcomes = [outcome.strictly() for outcome in outcomes] if strict else outcomes
            outcomes = [_accepted(outcome, kept.unknown or {}) for outcome in outcomes]
            checked = Checked(tuple(outcomes), tuple(unasked_in(names)))
        if against is not None and number == 1:
            changes = gate(
                against=against,
                paths=tuple(map(str, gated)) or names,
                accept_approvals=accept_approvals,
                trace=trace,
                workers=run,
                new_only=new_only,
                same_function=same_function,
                compile_base=compile_base,
                libtpu=libtpu,
            )
    if parts == 1 and checked is not None:
        before = Fraction(kept.proved, kept.claims) if kept.claims else None
        least = max(filter(None, (least, before)), default=least)
        demands += _too_few(checked.outcomes, least, baseline if before == least else None)
    return CiRun(checked, changes, tuple(demands), least, shard if parts > 1 else "")


def baseline_of(run: CiRun) -> str:
    """The text of a baseline for a run: its share, and the claims that are unknown today.

    Args:
        run: Of all claims.

    Returns:
        A JSON text.

    Raises:
        LayoutError: The run is of a shard.
    """
    if run.shard or run.checked is None:
        raise LayoutError(problems.BASELINE_OF_SHARD())
    open_ = {
        identity(o): shorten(f"{o.finding.question} {o.finding.subject}", 120)
        for o in run.checked.outcomes
        if o.finding.verdict is Verdict.UNKNOWN and not o.finding.bad_input and o.check is not None
    }
    proved, claims = run.share()
    return str(Baseline(proved, claims, dict(sorted(open_.items())))) + "\n"


def share_of(text: str) -> Fraction:
    """A share such as 90% or 99.5%.

    Args:
        text: As a person writes it.

    Returns:
        A number from 0 to 1.

    Raises:
        LayoutError: It is no share.

    >>> share_of("99.5%")
    Fraction(199, 200)
    """
    number, percent, rest = text.partition("%")
    try:
        share = Fraction(number) / 100
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not percent or rest or not 0 <= share <= 1 or "/" in number:
        raise LayoutError(problems.SHARE_FORM(shorten(text, 40)))
    return share


def shard_of(text: str) -> tuple[int, int]:
    """(2, 8) of "2/8".

    Args:
        text: Which of how many, from 1.

    Returns:
        Which one, and of how many.

    Raises:
        LayoutError: It is not of that form.

    >>> shard_of("2/8")
    (2, 8)
    """
    one, slash, all_of = text.partition("/")
    if not (slash and one.isdecimal() and all_of.isdecimal() and 1 <= int(one) <= int(all_of) <= 10_000):
        raise LayoutError(problems.SHARD_FORM(shorten(text, 40)))
    return int(one), int(all_of)


def identity(outcome: Outcome) -> str:
    """A name of a claim that stays the same when lines are added above it: of its file, kind, name and layouts.

    Args:
        outcome: Of a check.

    Returns:
        Sixteen hexadecimal digits.
    """
    return _digest(outcome.check if outcome.check is not None else outcome)[:16]


def _part(item: Check | Outcome, parts: int) -> int:
    """Which part an item belongs to. By what it says and not by its number, so that a claim that is added moves no
    other; claims about one function go together, which is then traced by one job."""
    if isinstance(item, Check):
        traced = [json.dumps(layout[KEY], sort_keys=True, default=str) for layout in item.layouts if is_traced(layout)]  # type: ignore[index]
        if traced:
            return int(hashlib.sha256(traced[0].encode(errors="backslashreplace")).hexdigest(), 16) % parts
    return int(_digest(item), 16) % parts


def _digest(item: Check | Outcome) -> str:
    if isinstance(item, Check):
        said: list[object] = [
            os.path.relpath(item.file),
            item.kind,
            item.title,
            item.texts,
            item.options,
            item.fact,
            item.expect,
        ]
    else:
        said = [os.path.relpath(item.finding.file or "."), item.finding.question, item.finding.reason]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def _mistake(finding: Finding) -> tuple[str, int, int, str]:
    """A mistake in a file, by its place and its words."""
    return finding.file, finding.line, finding.column, finding.reason


def _share(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    claims = [o for o in outcomes if o.check is not None or o.finding.bad_input]
    return sum(o.finding.verdict is Verdict.PROVED and o.found != "unknown" for o in claims), len(claims)


def _accepted(outcome: Outcome, unknown: Mapping[str, str]) -> Outcome:
    """The outcome, where it is an unknown that the baseline lists as one that decides nothing."""
    finding = outcome.finding
    if finding.verdict is not Verdict.UNKNOWN or finding.bad_input or identity(outcome) not in unknown:
        return outcome
    return replace(outcome, finding=replace(finding, severity="warning", policy=f"{ACCEPTED}: in the baseline"))


def _too_few(outcomes: Sequence[Outcome], least: Fraction | None, file: object) -> list[Finding]:
    proved, claims = _share(outcomes)
    if least is None or (claims and Fraction(proved, claims) >= least):
        return []
    share = _percent(Fraction(proved, claims or 1))
    said = f"{proved} of {claims} are proved, {share}, and {_percent(least)} is asked for"
    if file is not None:
        return [Finding("share", "claims", f"{said} by {file}", str(file), str(file))]
    return [Finding("share", "claims", said)]


def _percent(share: Fraction | None) -> str:
    return f"{_number(share or Fraction(0)):g} %"


def _number(share: Fraction) -> float:
    """In percent, rounded down: 99.999 % of the claims are not all."""
    return float(share * 10_000 // 1) / 100


def _baseline(path: str | PathLike[str] | None, against: str | None, accept: bool, demands: list[Finding]) -> Baseline:
    """The baseline that counts: that of the revision where there is one, but for what may only shrink."""
    if path is None:
        return Baseline()
    name = Path(path).as_posix()
    now = _read(read(name, MOST_BASELINE), name) if os.path.lexists(path) else None
    if against is None or accept:
        if now is None:
            raise LayoutError(problems.NO_BASELINE(name))
        return now
    then = states.nearest_at(against, name)
    old = _read(then[1], f"{name} at {against}") if then is not None else Baseline()
    if now is None:
        return old
    added = sorted(set(now.unknown or {}) - set(old.unknown or {}))
    if added:
        shown = ", ".join((now.unknown or {})[each] for each in added[:3])
        why = f"{len(added)} more unknown than at {against}: {shown}; they count with a reviewer's label"
        demands.append(Finding("share", "the baseline", why, name, name, severity="warning"))
    both = {key: said for key, said in (now.unknown or {}).items() if key in (old.unknown or {})}
    return replace(old, unknown=both)


def _read(data: bytes, place: str) -> Baseline:
    try:
        said = json.loads(data)
        proved, claims, unknown = said["proved"], said["claims"], said["unknown"]
        sound = said["version"] == _FORM and all(type(n) is int and n >= 0 for n in (proved, claims))
        if sound and proved <= claims and all(isinstance(text, str) for text in unknown.values()):
            return Baseline(proved, claims, unknown)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise LayoutError(problems.NOT_A_BASELINE(place))
