"""What changed between two spec files: named layouts, and what is claimed of them.

A claim is *lost* when it was proved of the old layouts and is not of the new ones; it is the old claim that is asked of
both, so that a bound cannot be loosened along with the layout unseen. What is written alike on both sides is not asked
again: the same tool gives the same answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import plain
from layoutproof.engine.read import read_layout
from layoutproof.jobs.check import Outcome, run
from layoutproof.jobs.formats import Finding
from layoutproof.jobs.gate.classes import layouts, text_of
from layoutproof.jobs.gate.matching import Match, Round, match
from layoutproof.jobs.pallas.claims import KEY
from layoutproof.jobs.positions import Node, read_yaml
from layoutproof.jobs.spec import Check, read_spec
from layoutproof.jobs.spec_model import NAME


@dataclass(frozen=True, slots=True)
class Named:
    """A layout that a spec file names."""

    name: str
    value: object
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A check of a spec file. verdict: what a lock file says came of it, "" where it has to be asked."""

    check: Check
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec file as far as it could be read.

    gate: its own rules as plain data, None where it has none.  traced: Pallas calls of user code that it names.
    """

    file: str
    layouts: tuple[Named, ...] = ()
    claims: tuple[Claimed, ...] = ()
    errors: tuple[LayoutError, ...] = ()
    gate: object = None
    traced: tuple[Named, ...] = ()


def read(data: bytes, file: str) -> Spec:
    """A spec file from its bytes; mistakes are collected, none is raised."""
    try:
        root = read_yaml(data.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        return Spec(file, errors=(LayoutError(f"not UTF-8 text: byte {data[error.start]:#04x}", file=file, line=1),))
    except LayoutError as error:
        return Spec(file, errors=(error,))
    gate = None
    if type(root.value) is dict and "gate" in root.value:
        # the rules of the gate are read by gate.policy
        gate = root.value["gate"].plain()
        keys = {k: v for k, v in (root.keys or {}).items() if k != "gate"}
        root = root._replace(value={k: v for k, v in root.value.items() if k != "gate"}, keys=keys)
    checks, errors = read_spec(root, file)
    traced = tuple(replace(each, value={KEY: each.value}) for each in _named(root, "kernels"))
    return Spec(file, _named(root, "layouts"), tuple(map(Claimed, checks)), tuple(errors), gate, traced)


def compare(old: Spec | None, new: Spec | None, unit: str) -> list[Finding]:
    """The findings of one file, in its order; None where a state lacks the file."""
    before, after = old or Spec(unit), new or Spec(unit)
    found = [_mistake(error) for error in after.errors]
    if after.errors and not after.layouts and not after.claims:
        # nothing of it could be read, which says nothing about what was removed
        return [replace(finding, unit=unit, file=after.file) for finding in found]
    for pair in match(before.layouts, after.layouts, _NAMES):
        found += _layout(pair, before.file)
    for claim in match(before.claims, after.claims, _CLAIMS):
        found += _claim(claim, before.file)
    return [replace(finding, unit=unit, file=finding.file or after.file) for finding in found]


_NAMES: list[Round[Named]] = [
    Round(lambda named: named.name),
    Round(lambda named: _json(named.value), guess="by its text: the name is new", ordered=False),
]
_CLAIMS: list[Round[Claimed]] = [
    Round(lambda c: _json([c.check.kind, c.check.name, c.check.labels, plain(c.check.layouts), *_asked(c.check)])),
    Round(lambda c: (c.check.kind, c.check.name) if c.check.name else None, ordered=False),
    Round(lambda c: _json([c.check.kind, c.check.labels, *_asked(c.check)])),
    Round(lambda c: (c.check.kind, c.check.labels)),
    Round(lambda c: None if _about_names(c.check) else c.check.kind, guess="by its property: the layout is new"),
]


def _about_names(check: Check) -> bool:
    """Whether a claim is about named layouts, or about a published fact: then it is not that of another layout."""
    return check.is_fact or any(NAME.fullmatch(label) for label in check.labels)


def _layout(pair: Match[Named], old_file: str) -> list[Finding]:
    old, new = pair.old, pair.new
    if new is None:
        assert old is not None
        gone = Finding("removed", f"layout {old.name}", "it is no longer named", before=text_of(old.value))
        return [replace(gone, file=old_file, line=old.line, column=old.column)]
    at: dict[str, Any] = {"line": new.line, "column": new.column}
    if old is None:
        fresh = Finding("added", f"layout {new.name}", "it was not named before", after=text_of(new.value))
        return [replace(fresh, **at)]
    subject = f"layout {new.name}" if old.name == new.name else f"layout {new.name}, before {old.name}"
    found = _classes(old.value, new.value)
    if old.name != new.name:
        sides: dict[str, Any] = {"before": text_of(old.value), "after": text_of(new.value)}
        found = found or [Finding("respelled", "", "only its name is new", decided_by="the same text", **sides)]
    return [replace(f, subject=subject, guess=pair.guess, **at) for f in found]


def _classes(old: object, new: object) -> list[Finding]:
    """The classes of one change, also where one side is no layout."""
    sides: dict[str, Any] = {"before": text_of(old), "after": text_of(new)}
    try:
        read_layout(new)
    except LayoutError as error:
        return [Finding("unknown", "", f"it cannot be read: {error.problem}", undecided=True, **sides)]
    try:
        read_layout(old)
    except LayoutError as error:
        return [Finding("added", "", f"what stood here before is no layout: {error.problem}", **sides)]
    return layouts(old, new)


def _claim(pair: Match[Claimed], old_file: str) -> list[Finding]:
    if pair.new is None:
        assert pair.old is not None
        old = pair.old.check
        was = pair.old.verdict or run(old).found
        if was not in _GREEN:
            return []  # nothing was proved, so nothing is lost with it
        why = f"it was {'true' if old.is_fact else was}, and nobody claims it any more"
        gone = Finding("removed", _subject(old), why, before=_layouts(old))
        return [replace(gone, file=old_file, line=old.line, column=old.column)]
    new = pair.new.check
    at: dict[str, Any] = {"subject": _subject(new), "guess": pair.guess, "line": new.line, "column": new.column}
    if pair.old is None:
        return [replace(Finding("added", "", "it was not claimed before", after=_layouts(new)), **at)]
    old = pair.old.check
    same = _same(old, new)
    if same and not pair.old.verdict:
        return []
    found: list[Finding] = []
    for before, after, label in zip(old.layouts, new.layouts, new.labels, strict=False):
        if not NAME.fullmatch(label) and not old.is_fact:
            found += _classes(before, after)  # a named layout is compared where it is named
    return [replace(f, **at) for f in [*found, *_verdicts(pair.old, new)]]


def _verdicts(claimed: Claimed, new: Check) -> list[Finding]:
    """Whether the old claim still holds of the new layouts."""
    old = claimed.check
    sides: dict[str, Any] = {"before": _layouts(old), "after": _layouts(new)}
    was = claimed.verdict or run(old).found
    outcome = run(replace(old, layouts=new.layouts, labels=new.labels))
    now = outcome.found
    result = outcome.result
    by = result.decided_by if result is not None else ""
    if was in _GREEN and now not in _GREEN:
        why = f"{_claimed(old)} was {was}, now it is {now}" + (f": {_why(outcome)}" if _why(outcome) else "")
        point = result.counterexample if result is not None else None
        return [Finding("lost", "", why, point=point, decided_by=by, undecided=now == "unknown", **sides)]
    if now in _GREEN and was not in _GREEN:
        return [Finding("gained", "", f"{_claimed(old)} was {was}, now it is {now}", decided_by=by, **sides)]
    return []


_GREEN = ("proved", "holds")
"""What a file expects is its own affair: a claim is lost when it is not proved any more."""


def _why(outcome: Outcome) -> str:
    return outcome.because or (outcome.result.reason if outcome.result is not None else "")


def _same(old: Check, new: Check) -> bool:
    parts = ((_json([plain(c.layouts), *_asked(c)])) for c in (old, new))
    return len(set(parts)) == 1


def _asked(check: Check) -> list[object]:
    return [plain(check.options), plain(check.fact)]


def _claimed(check: Check) -> str:
    options = " ".join(f"{name} {value}" for name, value in check.options.items())
    return f"{check.kind} {options}".strip()


def _subject(check: Check) -> str:
    return f"{'fact' if check.is_fact else 'claim'} {check.kind} {check.name or ' , '.join(check.labels)}"


def _layouts(check: Check) -> str:
    return " , ".join(text_of(layout) for layout in check.layouts)


def _named(root: Node, section: str) -> tuple[Named, ...]:
    node = root.value.get(section) if type(root.value) is dict else None
    if node is None or type(node.value) is not dict:
        return ()
    return tuple(Named(name, value.plain(), value.line, value.column) for name, value in node.value.items())


def _mistake(error: LayoutError) -> Finding:
    why = f"{error.problem}; in {error.text}" if error.text else error.problem
    return Finding("error", "spec file", why, line=error.line or 0, column=error.column or 0, error=True)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
