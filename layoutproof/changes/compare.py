"""Two states in, one report out."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.changes import policy
from layoutproof.changes.classes import text_of
from layoutproof.changes.matching import Round, match
from layoutproof.changes.states import File, State, unreadable
from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MIB, read
from layoutproof.core.finding import Finding, Report
from layoutproof.core.fingerprint import named

if TYPE_CHECKING:
    from layoutproof.changes.program import Program
    from layoutproof.changes.specs import Changes, Loose, Named, Spec

Progress = Callable[[int, int], None]
Rules = Mapping[str, Any] | LayoutError
"""The gate's table of a pyproject.toml as plain data, or why there is none to be read."""
PYPROJECT = "pyproject.toml"

MAX_CONFIG = 4 * MIB
_TRACED = re.compile(rb"^kernels\s*:", re.MULTILINE)
_ONE = re.compile(r"\((-?\d+),\)")
"""A tuple of one number as Python writes it; people do without the comma."""
_NUMBER = re.compile(r"(?:^|(?<=[/.]))(?:\d+\.)?module_\d+\.")


@dataclass(frozen=True, slots=True)
class Pair:
    """One file in both states; None in the state that lacks it. guess: how they were matched where it is a guess.

    locked: the Pallas calls of user code that the file names, as the old state's lock has them.
    program: what that lock says of a dump that the old state does not hold itself.
    """

    unit: str
    old: File | None
    new: File | None
    guess: str = ""
    locked: tuple[Named, ...] = ()
    program: Program | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one file. rules, before: of the gate in the new and the old file itself, as plain data, or None.

    gone, fresh: what of a spec file only the old and only the new state has; other files may have it.
    """

    findings: tuple[Finding, ...] = ()
    rules: object = None
    before: object = None
    gone: tuple[Loose, ...] = ()
    fresh: tuple[Loose, ...] = ()


def compare(
    old: State,
    new: State,
    rules: Rules,
    *,
    today: datetime.date,
    workers: Workers = Workers(),  # noqa: B008
    progress: Progress | None = None,
    new_only: bool = False,
    before: Rules | None = None,
    accept: bool = False,
    lock: Lock | None = None,
) -> Report:
    """What changed from one state to the other, judged.

    rules: of the new state's pyproject.toml.  before: of the old one's, which judge; None where both have the same.
    new_only: leave out what is allowed or approved.  accept: whether approvals that only the new state has count.
    lock: the old state's, which says what Pallas calls of user code were; what they are now is traced.
    An interrupt ends the work and gives what has been found so far, said to be a part. Raises LayoutError when there
    is nothing to compare and for rules that cannot be read where there are no others.
    """
    pairs, skipped = pairs_of(old, new)
    closed = tuple(
        Finding("unknown", path, why, path, path, undecided=True)
        for path, why in dict([*old.unread, *new.unread]).items()
    )
    if not pairs and not closed:
        raise LayoutError(f"no spec file or HLO dump in {old.label} and {new.label}: nothing to compare")
    if lock is not None:
        pairs = [_with_lock(pair, lock) for pair in pairs]
    open_ = [pair for pair in pairs if _differs(pair)]
    work = Work(compare_pair, open_, [pair.unit for pair in open_], workers, progress)
    judges = Judges(rules, before, today, accept, (*closed, *(lock.findings if lock else ())))
    report = judged(f"{new.label} against {old.label}", work, len(pairs), judges, new_only)
    notes = []
    if skipped:
        notes.append(f"neither claims nor HLO, not compared: {_first(skipped)}")
    traced = [p.unit for p in pairs if p.new and p.new.is_spec and _TRACED.search(p.new.data) and not p.locked]
    if traced:
        why = "only user code that is here is run; layoutproof.lock, and kernels --spec, say what other code did"
        notes.append(f"kernels of {_first(traced)}: {why}")
    return replace(report, notes=(*report.notes, *notes))


@dataclass(frozen=True, slots=True)
class Lock:
    """The old state's lock file. calls: of user code, by the unit of the spec file that names them.

    programs: dumps by unit.  findings: what is wrong with the lock itself.
    """

    calls: Mapping[str, tuple[Named, ...]] = field(default_factory=dict)
    programs: Mapping[str, Program] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done: a function that can be sent to other processes, of each item. units: whose rules apply."""

    function: Callable[[Any], Compared]
    items: Sequence[Any]
    units: Sequence[str]
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


def judged(title: str, work: Work, files: int, judges: Judges, new_only: bool) -> Report:
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
    for unit, one in zip(work.units, done, strict=False):
        if one.before is not None:
            own[unit] = _old(one.before)
        if one.rules != one.before:
            sides.append((unit, unit, own.get(unit, policy.Policy()).over(general), _new(one.rules, unit, general)))
    findings = [replace(f, because=_ONE.sub(r"(\1)", f.because)) for f in _found(work.units, done, own, general)]
    changes = [(unit, file, then, now) for unit, file, then, now in sides if isinstance(now, policy.Policy)]
    findings = named(
        [
            *(now for _, _, _, now in sides if isinstance(now, Finding)),
            *(found for _, file, then, now in changes for found in _rules_changed(then, now, file)),
            *judges.also,
            *findings,
        ]
    )
    known = {f.fingerprint: f for f in findings}
    for unit, file, then, now in changes:
        added, found = policy.approvals_added(then, now, known, file, judges.today)
        findings += named(found)
        if judges.accept and unit:
            mine = own.get(unit, policy.Policy())
            own[unit] = replace(mine, approvals=(*mine.approvals, *added))
        elif judges.accept:
            general = replace(general, approvals=(*general.approvals, *added))
    result, notes = policy.judge(findings, own, general, judges.today, judges.accept)
    if partial:
        # an approval of what was not reached is not an idle one
        notes = [f"interrupted after {len(done)} of {len(work.items)} changed files"]
    shown = [f for f in result if f.severity != "allow"] if new_only else result
    return Report(title, tuple(shown), files, tuple(notes), len(result) - len(shown), partial)


def _found(
    units: Sequence[str], done: Sequence[Compared], own: Mapping[str, policy.Policy], general: policy.Policy
) -> list[Finding]:
    """The findings of all files; what one of them lost and another got is one finding, unless looser rules await it."""
    from layoutproof.changes.specs import copied, moved

    named_ = [*zip(units, done, strict=False)]
    gone = [(unit, each) for unit, one in named_ for each in one.gone]
    fresh = [(unit, each) for unit, one in named_ for each in one.fresh]
    rules = {unit: _new(one.rules, unit, general) for unit, one in named_}
    instead: dict[int, list[Finding]] = {}
    for new, finding in copied(gone, fresh) if gone and fresh else ():
        instead[id(new)] = [finding]
    for old, new, finding in moved(gone, fresh) if gone and fresh else ():
        was = own.get(old.finding.unit, policy.Policy()).over(general)
        now = rules[new.finding.unit]
        if isinstance(now, policy.Policy) and not policy.changed(was, now)[0]:
            instead |= {id(old): [], id(new): [finding]}
    found: list[Finding] = []
    for one in done:
        found += one.findings
        for each in (*one.fresh, *one.gone):
            found += instead.get(id(each), [each.finding])
    return found


def pairs_of(old: State, new: State) -> tuple[list[Pair], list[str]]:
    """The files to compare, and the units of text files that are no HLO in either state.

    Dumps are matched by name, then without the number that XLA gives a module, which changes from run to run; then by
    their contents.
    """
    unit: Round[File] = Round(lambda f: f.unit)
    by_name = match(old.files, new.files, [unit])
    pairs = [Pair(m.new.unit, m.old, m.new) for m in by_name if m.old and m.new]
    rounds: list[Round[File]] = [
        # a spec file under a name that no command reads as one is gone
        Round(lambda f: (f.is_spec, f.data), guess="by its contents: the file's name is new", ordered=False),
        Round(_unnumbered, guess="by its name without the module's number"),
    ]
    gone, fresh = ([f for f in (side(m) for m in by_name) if f] for side in (_gone, _fresh))
    rest = match(gone, fresh, rounds)
    pairs += [Pair((m.new or m.old).unit, m.old, m.new, m.guess) for m in rest]  # type: ignore[union-attr]
    # two files that were given by name are to be compared, whatever they are
    given = len(old.files) == len(new.files) == len(pairs) == 1
    known = [p for p in pairs if given or any(f and (f.is_spec or f.is_dump) for f in (p.old, p.new))]
    skipped = [p.unit for p in pairs if p not in known]
    return sorted(known, key=lambda p: p.unit), skipped


def compare_pair(pair: Pair) -> Compared:
    """What came of one pair; every failure becomes a finding. Sent to other processes."""
    try:
        return _compare_pair(pair)
    except LayoutError as error:
        file = (pair.new or pair.old).path  # type: ignore[union-attr]
        why = error.problem + (f"; in {error.text}" if error.text else "")
        at = {"file": error.file or file, "line": error.line or 0, "column": error.column or 0}
        return Compared((Finding("error", "file", why, pair.unit, error=True, **at),))  # type: ignore[arg-type]
    except Exception as error:
        why = f"this is a bug in layoutproof, please report it: {type(error).__name__}: {error}"
        return Compared((Finding("error", "file", why, pair.unit, error=True),))


def rules_in(text: str | bytes, place: str) -> Rules:
    """The gate's rules in a pyproject.toml; empty where it has none, a LayoutError where it is no TOML."""
    try:
        found: Any = tomllib.loads(text.decode() if isinstance(text, bytes) else text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return LayoutError(f"{place}: not TOML: {error}")
    except RecursionError:
        return LayoutError(f"{place}: not TOML that anybody can read: nested too deep")
    for key in ("tool", "layoutproof", "gate"):
        found = found.get(key, {})
        if not isinstance(found, dict):
            return LayoutError(f"{place}: {key} is a table, not {text_of(found)}")
    return found  # type: ignore[no-any-return]


def pyproject(above: Path | None = None) -> Path | None:
    """The nearest pyproject.toml, from a file or folder upwards, the current folder where none is given."""
    return nearest(PYPROJECT, above or Path())


def nearest(name: str, start: Path) -> Path | None:
    """The nearest file of a name, from a file or folder upwards."""
    found = (folder / name for folder in (start.absolute(), *start.absolute().parents))
    return next((p for p in found if os.path.lexists(p)), None)


def rules_of(path: Path | None) -> Rules:
    """The gate's rules in a pyproject.toml on disk; empty without one."""
    try:
        return {} if path is None else rules_in(read(path, MAX_CONFIG), path.as_posix())
    except LayoutError as error:
        return error


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
    """The new state's rules, over the general ones; what is wrong with them is a finding: the old ones judge."""
    try:
        if general is None:
            return _read(rules)
        return _read(rules or {}, f"{place}: gate").over(general)
    except LayoutError as error:
        return Finding("error", "the gate's rules", error.problem, place, place, error=True)


def _rules_changed(before: policy.Policy, after: policy.Policy, file: str) -> list[Finding]:
    """What the rules now deny less, or only more."""
    looser, tighter = policy.changed(before, after)
    if looser:
        why = f"the old rules judge; the new ones would let more through: {'; '.join(looser)}"
        return [Finding("policy", "the gate's rules", why, file, file, 1, after="; ".join(looser))]
    if tighter:
        why = f"they ask more: {'; '.join(tighter)}"
        return [Finding("tightened", "the gate's rules", why, file, file, 1, after="; ".join(tighter))]
    return []


def _compare_pair(pair: Pair) -> Compared:
    old, new = pair.old, pair.new
    for file in (old, new):
        if file is not None and unreadable(file):
            raise LayoutError(f"{file.path}: {unreadable(file)}")
    if any(f is not None and f.is_spec for f in (old, new)):
        from layoutproof.changes import specs

        before, after = (None if f is None else specs.read(f.data, f.path) for f in (old, new))
        changes = specs.compare(before, after, pair.unit)
        if pair.locked and after is not None:
            from layoutproof.changes.traced import drift

            changes = replace(changes, findings=(*changes.findings, *drift(pair.locked, after, pair.unit)))
        return of_specs(changes, before, after, pair.guess)
    if pair.program is not None:
        from layoutproof.changes import lock_programs

        return Compared(tuple(lock_programs.drift(pair.program, new, pair.unit)))
    from layoutproof.changes import programs

    return Compared(_guessed(programs.compare(old, new, pair.unit), pair.guess))


def of_specs(changes: Changes, before: Spec | None, after: Spec | None, guess: str = "") -> Compared:
    """What came of a spec file, with its rules; the rules of one that is gone are nobody's change."""
    old, new = (None if spec is None else spec.gate for spec in (before, after))
    findings = _guessed(changes.findings, guess)
    return Compared(findings, old if after is None else new, old, changes.gone, changes.fresh)


def _with_lock(pair: Pair, lock: Lock) -> Pair:
    if pair.old is not None:
        return replace(pair, locked=lock.calls.get(pair.old.unit, ()))
    # a dump that is made anew for each run is in no revision
    return replace(pair, program=lock.programs.get(pair.unit))


def _guessed(findings: Sequence[Finding], guess: str) -> tuple[Finding, ...]:
    return tuple(replace(f, guess="; ".join(part for part in (guess, f.guess) if part)) for f in findings)


def _differs(pair: Pair) -> bool:
    if pair.locked:
        return True  # what user code does is not in these files
    if pair.old is None or pair.new is None or pair.old.data != pair.new.data or pair.old.problem or pair.new.problem:
        return True
    return pair.new.is_spec and b"gate:" in pair.new.data  # nothing changed; its approvals may have expired


def _first(units: Sequence[str]) -> str:
    return ", ".join(units[:5]) + (" .." if len(units) > 5 else "")


def _unnumbered(file: File) -> str | None:
    short = _NUMBER.sub("module.", file.unit)
    return None if short == file.unit else short


def _gone(found: Any) -> File | None:
    return found.old if found.new is None else None


def _fresh(found: Any) -> File | None:
    return found.new if found.old is None else None
