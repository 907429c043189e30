"""Two states in, one report out."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.jobs.formats import Finding, Report
from layoutproof.jobs.gate import policy
from layoutproof.jobs.gate.fingerprint import named
from layoutproof.jobs.gate.matching import Round, match
from layoutproof.jobs.gate.states import File, State, unreadable
from layoutproof.jobs.workers import Workers, spread

Progress = Callable[[int, int], None]

_TRACED = re.compile(rb"^kernels\s*:", re.MULTILINE)
_NUMBER = re.compile(r"(?:^|(?<=[/.]))(?:\d+\.)?module_\d+\.")


@dataclass(frozen=True, slots=True)
class Pair:
    """One file in both states; None in the state that lacks it. guess: how they were matched where it is a guess."""

    unit: str
    old: File | None
    new: File | None
    guess: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one pair. rules, before: of the gate in the new and the old file itself, as plain data, or None."""

    findings: tuple[Finding, ...] = ()
    rules: object = None
    before: object = None


def compare(
    old: State,
    new: State,
    rules: Mapping[str, Any],
    *,
    today: datetime.date,
    workers: Workers = Workers(),  # noqa: B008
    progress: Progress | None = None,
    new_only: bool = False,
    before: Mapping[str, Any] | None = None,
) -> Report:
    """What changed from one state to the other, judged.

    rules: of pyproject.toml.  before: those of the old state, where that has its own; they judge whether the rules may
    change.  new_only: leave out what is allowed or approved.
    An interrupt ends the work and gives what has been found so far, said to be a part. Raises LayoutError when there
    is nothing to compare and for rules that cannot be read.
    """
    pairs, skipped = pairs_of(old, new)
    if not pairs:
        raise LayoutError(f"no spec file or HLO dump in {old.label} and {new.label}: nothing to compare")
    open_ = [pair for pair in pairs if _differs(pair)]
    work = Work(compare_pair, open_, [pair.unit for pair in open_], workers, progress)
    report = judged(f"{new.label} against {old.label}", work, len(pairs), rules, today, new_only, before)
    notes = []
    if skipped:
        notes.append(f"neither claims nor HLO, not compared: {_first(skipped)}")
    traced = [pair.unit for pair in pairs if pair.new and pair.new.is_spec and _TRACED.search(pair.new.data)]
    if traced:
        why = "only user code that is here is run; layoutproof.lock, and kernels --spec, say what other code did"
        notes.append(f"kernels of {_first(traced)}: {why}")
    return replace(report, notes=(*report.notes, *notes))


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done: a function that can be sent to other processes, of each item. units: whose rules apply."""

    function: Callable[[Any], Compared]
    items: Sequence[Any]
    units: Sequence[str]
    workers: Workers
    progress: Progress | None = None


def judged(
    title: str,
    work: Work,
    files: int,
    rules: Mapping[str, Any],
    today: datetime.date,
    new_only: bool,
    before: Mapping[str, Any] | None = None,
) -> Report:
    """The report of some work, done and judged by the rules. An interrupt gives the part that was done."""
    general = policy.read(rules, "pyproject.toml [tool.layoutproof.gate]")
    also = [] if before is None else _rules_changed(before, rules, "pyproject.toml")
    done: list[Compared] = []
    partial = False
    try:
        for one in spread(work.function, work.items, work.workers):
            done.append(one)
            if work.progress is not None:
                work.progress(len(done), len(work.items))
    except KeyboardInterrupt:
        partial = True
    findings = named([*also, *(finding for one in done for finding in one.findings)])
    own = {
        unit: policy.read(one.rules, f"{unit}: gate")
        for unit, one in zip(work.units, done, strict=False)
        if one.rules is not None
    }
    then = {unit: _old(one.before) for unit, one in zip(work.units, done, strict=False) if one.before is not None}
    found, notes = policy.judge(findings, own, general, today, (then, general if before is None else _old(before)))
    if partial:
        # an approval of what was not reached is not an idle one
        notes = [f"interrupted after {len(done)} of {len(work.items)} changed files"]
    shown = [f for f in found if f.severity != "allow"] if new_only else found
    return Report(title, tuple(shown), files, tuple(notes), len(found) - len(shown), partial)


def pairs_of(old: State, new: State) -> tuple[list[Pair], list[str]]:
    """The files to compare, and the units of text files that are no HLO in either state.

    Dumps are matched by name, then without the number that XLA gives a module, which changes from run to run; then by
    their contents.
    """
    unit: Round[File] = Round(lambda f: f.unit)
    by_name = match(old.files, new.files, [unit])
    pairs = [Pair(m.new.unit, m.old, m.new) for m in by_name if m.old and m.new]
    rounds: list[Round[File]] = [
        Round(lambda f: f.data, guess="by its contents: the file's name is new", ordered=False),
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


def rules_in(text: str, place: str) -> Mapping[str, Any]:
    """The gate's rules in the text of a pyproject.toml; empty where it has none. LayoutError where it is no TOML."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LayoutError(f"{place}: not TOML: {error}") from None
    for key in ("tool", "layoutproof", "gate"):
        found = found.get(key, {})
        if not isinstance(found, dict):
            raise LayoutError(f"{place}: {key} is a table, not {found!r}")
    return found


def pyproject() -> Path | None:
    """The nearest pyproject.toml, from the current folder upwards."""
    here = Path.cwd()
    return next((p for p in (folder / "pyproject.toml" for folder in (here, *here.parents)) if p.is_file()), None)


def _old(rules: object) -> policy.Policy:
    """The old state's rules; the defaults where they could not be read, for which the new state is not to blame."""
    try:
        return policy.read(rules, "the old state")
    except LayoutError:
        return policy.Policy()


def _rules_changed(before: Mapping[str, Any], after: Mapping[str, Any], file: str) -> list[Finding]:
    """A finding when the gate's rules are not those of the old state: who changes them changes what is denied."""
    if before == after:
        return []
    sides: dict[str, Any] = {"before": str(dict(before)), "after": str(dict(after))}
    return [Finding("policy", "the gate's rules", "they changed along with what they judge", file, file, 1, **sides)]


def _compare_pair(pair: Pair) -> Compared:
    old, new = pair.old, pair.new
    for file in (old, new):
        if file is not None and unreadable(file):
            raise LayoutError(f"{file.path}: {unreadable(file)}")
    if any(f is not None and f.is_spec for f in (old, new)):
        from layoutproof.jobs.gate import specs

        before, after = (None if f is None else specs.read(f.data, f.path) for f in (old, new))
        found = specs.compare(before, after, pair.unit)
        gates = [None if spec is None else spec.gate for spec in (after, before)]
        return Compared(_guessed(found, pair.guess), *gates)
    from layoutproof.jobs.gate import programs

    return Compared(_guessed(programs.compare(old, new, pair.unit), pair.guess))


def _guessed(findings: Sequence[Finding], guess: str) -> tuple[Finding, ...]:
    return tuple(replace(f, guess="; ".join(part for part in (guess, f.guess) if part)) for f in findings)


def _differs(pair: Pair) -> bool:
    if pair.old is None or pair.new is None or pair.old.data != pair.new.data:
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
