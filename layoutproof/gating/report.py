"""The comparisons of all files, judged by the rules of both states: one report."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, Report, wrong_input
from layoutproof.core.fingerprint import named
from layoutproof.core.message import restated
from layoutproof.gating import policy, problems
from layoutproof.gating.folding import refolded, unfolded, with_classes
from layoutproof.gating.rules import PYPROJECT, Rules

if TYPE_CHECKING:
    from layoutproof.gating.specs import Loose, ReadSpec, SpecChanges

Progress = Callable[[int, int], None]
_ONE = re.compile(r"\((-?\d+),\)")
"""A tuple of one number as Python writes it; people do without the comma."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of one file. rules, before: of the gate in the new and the old file itself, as plain data, or
    None.

    gone, fresh: parts of a spec file that only the old and only the new state has; other files may have them.
    """

    findings: tuple[Finding, ...] = ()
    rules: object = None
    before: object = None
    gone: tuple[Loose, ...] = ()
    fresh: tuple[Loose, ...] = ()


def of_specs(
    changes: SpecChanges, before: ReadSpec | None, after: ReadSpec | None, match_heuristic: str = ""
) -> Compared:
    """The comparison of a spec file, with its rules; the rules of a removed file are no change."""
    old, new = (None if spec is None else spec.gate for spec in (before, after))
    findings = with_heuristic(changes.findings, match_heuristic)
    return Compared(findings, old if after is None else new, old, changes.gone, changes.fresh)


def with_heuristic(findings: Sequence[Finding], match_heuristic: str) -> tuple[Finding, ...]:
    """The findings of a file, with how its two states were matched where names do not say it."""
    return tuple(
        replace(f, match_heuristic="; ".join(part for part in (match_heuristic, f.match_heuristic) if part))
        for f in findings
    )


@dataclass(frozen=True, slots=True)
class Task:
    """Work to do: a function that can be sent to other processes, and its items. relpaths: whose rules apply."""

    function: Callable[[Any], Compared]
    items: Sequence[Any]
    relpaths: Sequence[str]
    workers: Workers
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Judges:
    """Whose rules judge. rules: of the new state.  before: of the old one, None where both have the same.

    accept: whether approvals count that only the new state has.  also: findings that no single file has.
    """

    rules: Rules
    before: Rules | None
    today: datetime.date
    accept: bool = False
    also: tuple[Finding, ...] = ()


def judged(title: str, work: Task, files: int, judges: Judges, new_only: bool) -> Report:
    """The report of some work, done and judged by the rules. An interrupt gives the part that was done."""
    both = judges.before is None
    general = _read(judges.rules) if both else _old(judges.before)
    done: list[Compared] = []
    partial = False
    try:
        for one in spread(work.function, work.items, work.workers):
            done.append(one)
            if work.progress is not None:
                work.progress(len(done), len(work.items))
    except KeyboardInterrupt:
        partial = True
    sides = [("", PYPROJECT, general, _new(judges.rules, PYPROJECT))] if not both else []
    own: dict[str, policy.Policy] = {}
    for relpath, one in zip(work.relpaths, done, strict=False):
        if one.before is not None:
            own[relpath] = _old(one.before)
        if one.rules != one.before:
            sides.append(
                (relpath, relpath, own.get(relpath, policy.Policy()).over(general), _new(one.rules, relpath, general))
            )
    causes = _found(work.relpaths, done, own, general)
    findings = [replace(f, reason=restated(_ONE.sub(r"(\1)", f.reason), f.reason)) for f in unfolded(causes)]
    changes = [(relpath, file, then, now) for relpath, file, then, now in sides if isinstance(now, policy.Policy)]
    findings = named(
        [
            *(now for _, _, _, now in sides if isinstance(now, Finding)),
            *(found for _, file, then, now in changes for found in _rules_changed(then, now, file)),
            *judges.also,
            *findings,
        ]
    )
    findings = [with_classes(f) for f in findings]
    known = {f.fingerprint: f for f in findings}
    for relpath, file, then, now in changes:
        added, found = policy.approvals_added(then, now, known, file, judges.today)
        findings += named(found)
        if judges.accept and relpath:
            mine = own.get(relpath, policy.Policy())
            own[relpath] = replace(mine, approvals=(*mine.approvals, *added))
        elif judges.accept:
            general = replace(general, approvals=(*general.approvals, *added))
    result, notes = policy.judge(findings, own, general, judges.today, judges.accept)
    if partial:
        # an approval of what was not reached is not an idle one
        notes = [problems.INTERRUPTED(len(done), len(work.items))]
    result = refolded(result)
    shown = [f for f in result if f.severity != "allow"] if new_only else result
    return Report(title, tuple(shown), files, tuple(notes), len(result) - len(shown), partial)


def _found(
    relpaths: Sequence[str], done: Sequence[Compared], own: Mapping[str, policy.Policy], general: policy.Policy
) -> list[Finding]:
    """The findings of all files; a part that moved between files is one finding, unless looser rules await it."""
    named_ = [*zip(relpaths, done, strict=False)]
    gone = [(relpath, each) for relpath, one in named_ for each in one.gone]
    fresh = [(relpath, each) for relpath, one in named_ for each in one.fresh]
    rules = {relpath: _new(one.rules, relpath, general) for relpath, one in named_}
    instead: dict[int, list[Finding]] = {}
    again, elsewhere = _of_both(gone, fresh)
    for new, finding in again:
        instead[id(new)] = [finding]
    for old, new, finding in elsewhere:
        was = own.get(old.finding.relpath, policy.Policy()).over(general)
        now = rules[new.finding.relpath]
        if isinstance(now, policy.Policy) and not policy.changed(was, now)[0]:
            instead |= {id(old): [], id(new): [finding]}
    found: list[Finding] = []
    for one in done:
        found += one.findings
        for each in (*one.fresh, *one.gone):
            found += instead.get(id(each), [each.finding])
    return found


def _of_both(
    gone: list[tuple[str, Loose]], fresh: list[tuple[str, Loose]]
) -> tuple[list[tuple[Loose, Finding]], list[tuple[Loose, Loose, Finding]]]:
    """The copied parts, and the parts that moved from one file to another."""
    if not gone or not fresh:
        return [], []
    from layoutproof.gating.specs import copied, moved

    return copied(gone, fresh), moved(gone, fresh)


def _read(rules: object, place: str = f"{PYPROJECT} [tool.layoutproof.gate]") -> policy.Policy:
    if isinstance(rules, LayoutError):
        raise rules
    return policy.read(rules, place)


def _old(rules: object) -> policy.Policy:
    """The old state's rules; the defaults where they could not be read, for which the new state is not to blame."""
    try:
        return _read(rules)
    except LayoutError:
        return policy.Policy()


def _new(rules: object, place: str, general: policy.Policy | None = None) -> policy.Policy | Finding:
    """The new state's rules, over the general ones; a mistake in them is a finding: the old ones judge."""
    try:
        if general is None:
            return _read(rules)
        return _read(rules or {}, f"{place}: gate").over(general)
    except LayoutError as error:
        return wrong_input("the gate's rules", error.problem, place, place)


def _rules_changed(before: policy.Policy, after: policy.Policy, file: str) -> list[Finding]:
    """The finding of loosened rules, or of tightened ones."""
    looser, tighter = policy.changed(before, after)
    if looser:
        why = problems.RULES_LOOSER("; ".join(looser))
        return [Finding("policy", "the gate's rules", why, file, file, 1, after="; ".join(looser))]
    if tighter:
        why = problems.RULES_TIGHTER("; ".join(tighter))
        return [Finding("tightened", "the gate's rules", why, file, file, 1, after="; ".join(tighter))]
    return []
