"""What a tool found: a finding, a report of many, the one rule of exit codes, and the line that counts.

A finding is plain data that can be sent to another process: what is wrong or changed, with the proof, and where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from layoutproof.core.result import Counterexample
from layoutproof.core.visible import visible, visible_data

SEVERITIES = ("allow", "warn", "deny")
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between two states, or one thing that stands in the way of comparing them.

    kind: its class, a name of `core.finding_kinds.KINDS`.  subject: what differs, e.g. "layout scores".
    because: one sentence with the numbers.  unit: the file's name in both states, the same on every machine.
    file, line, column: where to look now; for what is removed, where it was.  before, after: the texts, "" where none.
    point: the smallest counterexample.  figures: exact numbers, e.g. bytes_before and bytes_after.
    decided_by: the engine that proved or refuted.  guess: how the two sides were matched where that is a guess.
    undecided: nobody could tell, so that the whole can never count as harmless.  error: the input is wrong.
    severity, said, fingerprint: filled in by the policy: allow, warn or deny; who says so; a name that stays the same.
    """

    kind: str
    subject: str
    because: str
    unit: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    before: str = ""
    after: str = ""
    point: Counterexample | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    decided_by: str = ""
    guess: str = ""
    undecided: bool = False
    error: bool = False
    severity: str = "deny"
    said: str = ""
    fingerprint: str = ""

    @property
    def place(self) -> str:
        """`specs/a.yaml:12:5`."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one comparison.

    title: what was compared with what.  compared: how many files, the unchanged ones too.
    findings: what is shown, in the order of the files.  notes: what a reader must know besides.
    hidden: how many findings are left out because they are allowed or approved.  partial: it was interrupted.
    held: what was asked and is as it should be, for forms that list it.
    nothing: what to say where there is no finding.
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
        """130 interrupted, 2 bad input, 1 something denied, 3 something unknown, else 0."""
        if self.partial:
            return INTERRUPTED
        if any(f.error for f in self.findings):
            return 2
        if any(f.severity == "deny" and not f.undecided for f in self.findings):
            return 1
        return 3 if any(f.undecided for f in self.findings) else 0


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
    given = {f.name: getattr(finding, f.name) for f in fields(finding)}
    # a layout or a reason on several lines is one on one line
    given |= {name: " ".join(given[name].split()) for name in ("because", "before", "after", "guess")}
    return Finding(**visible_data(given))


def summary(report: Report) -> str:
    """One line that counts.

    >>> summary(Report("a against b", (), compared=3))
    'a against b: no change in 3 files'
    """
    count = len(report.findings)
    if not count:
        line = f"{report.nothing} in {_files(report.compared)}"
    else:
        errors = sum(f.error for f in report.findings)
        unknown = sum(f.undecided for f in report.findings)
        denied, warned, allowed = (
            sum(f.severity == s and not f.error and not f.undecided for f in report.findings)
            for s in reversed(SEVERITIES)
        )
        parts = [(denied, "denied"), (warned, "warned"), (allowed, "allowed"), (unknown, "unknown"), (errors, "error")]
        shown = ", ".join(f"{n} {word}" for n, word in parts if n or word == "denied")
        line = f"{count} finding{'' if count == 1 else 's'} in {_files(report.compared)}: {shown}"
    line += f"; {report.hidden} allowed or approved not shown" if report.hidden else ""
    return f"{report.title}: {line}" + ("; interrupted, so this is a part" if report.partial else "")


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def word(finding: Finding) -> str:
    """What the first column of a report says: error, unknown, or the severity."""
    return "error" if finding.error else "unknown" if finding.undecided else finding.severity


def as_dict(finding: Finding) -> dict[str, Any]:
    """One finding for programs."""
    from layoutproof.core.result import plain

    names_ = ("kind", "severity", "said", "subject", "because", "unit", "file", "line", "column", "before", "after")
    entry = {name: getattr(finding, name) for name in (*names_, "decided_by", "guess", "undecided", "error")}
    return {
        **entry,
        "counterexample": plain(finding.point),
        "figures": plain(finding.figures),
        "fingerprint": finding.fingerprint,
    }
