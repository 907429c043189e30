"""Two states in, one report out: files are matched, and each pair is compared as specs or as dumps."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.workers import Workers
from layoutproof.core import problems as core_problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Report, unknown, wrong_input
from layoutproof.core.message import extended
from layoutproof.gating import problems
from layoutproof.gating.lock_head import RENEW
from layoutproof.gating.matching import Match, Round, match
from layoutproof.gating.report import Compared, Judges, Progress, Task, judged, of_specs, with_heuristic
from layoutproof.gating.rules import Rules
from layoutproof.gating.states import File, State, unreadable

if TYPE_CHECKING:
    from layoutproof.gating.compiled_program import CompiledProgram
    from layoutproof.gating.lock import Lock
    from layoutproof.gating.spec_programs import Was
    from layoutproof.gating.specs import ReadSpec

_TRACED = re.compile(rb"^kernels\s*:", re.MULTILINE)
_PROGRAMS = re.compile(rb"^programs\s*:", re.MULTILINE)
_NUMBER = re.compile(r"(?:^|(?<=[/.]))(?:\d+\.)?module_\d+\.")


@dataclass(frozen=True, slots=True)
class FilePair:
    """One file in both states; None in the state that lacks it.

    match_heuristic: how they were matched where names do not say it.
    locked: the Pallas calls of user code that the file names, as the old state's lock has them.
    program: that lock's record of a dump that the old state does not hold itself.
    was: the source of the old versions of the file's programs.  verdicts: of its claims about user code, by
    `lock.key_of`.
    """

    relpath: str
    old: File | None
    new: File | None
    match_heuristic: str = ""
    locked: ReadSpec | None = None
    program: CompiledProgram | None = None
    was: Was | None = None
    verdicts: Mapping[str, str] = field(default_factory=dict)


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
    base: str = "",
    library: str = "",
    compiles: bool = True,
    same: bool = False,
) -> Report:
    """The changes from one state to the other, judged.

    rules: of the new state's pyproject.toml.  before: of the old one's, which judge; None where both have the same.
    new_only: leave out allowed and approved findings.  accept: whether approvals that only the new state has count.
    lock: the old state's, which records the Pallas calls of user code; the new ones are traced.
    base: the folder of the old state's code, where it may be run.  compiles: whether the programs that it names are
    compiled.  same: whether every program is to compute what it did.  library: the path of a libtpu to compile with.
    An interrupt ends the work and gives what has been found so far, said to be a part. Raises LayoutError when there
    is nothing to compare and for rules that cannot be read where there are no others.
    """
    pairs, skipped = pairs_of(old, new)
    closed = tuple(unknown(path, why, path, path) for path, why in dict([*old.unread, *new.unread]).items())
    if not pairs and not closed:
        raise LayoutError(problems.NOTHING_TO_COMPARE(old.label, new.label))
    if lock is not None:
        pairs = [_with_lock(pair, lock) for pair in pairs]
    known = {"base": base, "library": library, "compiles": compiles, "same": same}
    pairs = [_with_programs(pair, lock, known) for pair in pairs]
    work = Task(compare_pair, pairs, [pair.relpath for pair in pairs], workers, progress)
    judges = Judges(rules, before, today, accept, (*closed, *(lock.findings if lock else ())))
    report = judged(f"{new.label} against {old.label}", work, len(pairs), judges, new_only)
    notes = []
    if skipped:
        notes.append(problems.NOT_COMPARED(_first(skipped)))
    traced = [p.relpath for p in pairs if p.new and p.new.is_spec and _TRACED.search(p.new.data) and not p.locked]
    if traced:
        why = problems.BASELINE_NOT_TRACED(RENEW)
        notes.append(problems.KERNELS_NOT_COMPARED(_first(traced), why))
    return replace(report, notes=(*report.notes, *notes))


def pairs_of(old: State, new: State) -> tuple[list[FilePair], list[str]]:
    """The files to compare, and the paths of text files that are no HLO in either state.

    Dumps are matched by name, then without the number that XLA gives a module, which changes from run to run; then by
    their contents.
    """
    relpath: Round[File] = Round(lambda f: f.relpath)
    by_name = match(old.files, new.files, [relpath])
    pairs = [FilePair(m.new.relpath, m.old, m.new) for m in by_name if m.old and m.new]
    rounds: list[Round[File]] = [
        # a spec file under a name that no command reads as one is gone
        Round(lambda f: (f.is_spec, f.data), match_heuristic="by its contents: the file's name is new", ordered=False),
        Round(_unnumbered, match_heuristic="by its name without the module's number"),
    ]
    gone, fresh = ([f for f in (side(m) for m in by_name) if f] for side in (_gone, _fresh))
    rest = match(gone, fresh, rounds)
    pairs += [FilePair((m.new or m.old).relpath, m.old, m.new, m.match_heuristic) for m in rest]  # type: ignore[union-attr]
    # two files that were given by name are to be compared, whatever they are
    given = len(old.files) == len(new.files) == len(pairs) == 1
    known = [
        p
        for p in pairs
        if given or any(f and (f.is_spec or f.is_dump or f.is_record or f.is_program) for f in (p.old, p.new))
    ]
    skipped = [p.relpath for p in pairs if p not in known]
    return sorted(known, key=lambda p: p.relpath), skipped


def compare_pair(pair: FilePair) -> Compared:
    """The comparison of one pair; every failure becomes a finding. Sent to other processes."""
    try:
        return _compare_pair(pair)
    except LayoutError as error:
        file = (pair.new or pair.old).path  # type: ignore[union-attr]
        why = extended(error.problem, f"; in {error.text}" if error.text else "")
        at = {"file": error.file or file, "line": error.line or 0, "column": error.column or 0}
        return Compared((wrong_input("file", why, pair.relpath, **at),))  # type: ignore[arg-type]
    except Exception as error:
        why = core_problems.INTERNAL_ERROR(type(error).__name__, error)
        return Compared((wrong_input("file", why, pair.relpath),))


def _compare_pair(pair: FilePair) -> Compared:
    old, new = pair.old, pair.new
    for file in (old, new):
        if file is not None and unreadable(file):
            raise LayoutError(f"{file.path}: {unreadable(file)}")
    if any(f is not None and f.is_spec for f in (old, new)):
        from layoutproof.gating import specs

        after = None if new is None else specs.read(new.data, new.path)
        alike = old is not None and new is not None and old.data == new.data
        before = after if alike else None if old is None else specs.read(old.data, old.path)
        changes = specs.compare(_with_verdicts(before, pair.verdicts), after, pair.relpath)
        if after is not None and after.traced:
            from layoutproof.gating.traced import drift

            locked = pair.locked or specs.ReadSpec(after.file)
            changes = replace(changes, findings=(*changes.findings, *drift(locked, before, after, pair.relpath)))
        if pair.was is not None and after is not None:
            from layoutproof.gating import spec_programs

            compiled = spec_programs.drift(pair.was, before, after, pair.relpath)
            changes = replace(changes, findings=(*changes.findings, *compiled))
        return of_specs(changes, before, after, pair.match_heuristic)
    if pair.program is not None:
        from layoutproof.gating import lock_programs

        found = lock_programs.drift(pair.program, new, pair.relpath)
        return Compared(with_heuristic(found, pair.match_heuristic))
    if any(f is not None and f.is_program for f in (old, new)):
        from layoutproof.gating import records

        return Compared(with_heuristic(records.compare(old, new, pair.relpath), pair.match_heuristic))
    if any(f is not None and f.is_record for f in (old, new)):
        from layoutproof.gating import kernel_records
        from layoutproof.gating.classes import layouts

        found = kernel_records.compare(old, new, pair.relpath, layouts)
        return Compared(with_heuristic(found, pair.match_heuristic))
    from layoutproof.gating import program_changes

    found = program_changes.compare(old, new, pair.relpath, by_cause=True, by_values=True)
    return Compared(with_heuristic(found, pair.match_heuristic))


def _with_lock(pair: FilePair, lock: Lock) -> FilePair:
    if pair.old is not None:
        known = pair.old.relpath
        return replace(pair, locked=lock.calls.get(known), verdicts=lock.verdicts.get(known, {}))
    # a dump that is made anew for each run is in no revision
    return replace(pair, program=lock.programs.get(pair.relpath))


def _with_programs(pair: FilePair, lock: Lock | None, known: Mapping[str, Any]) -> FilePair:
    """The pair with what is known of the programs that it names. known: fields of `Was`, but for what a lock says."""
    if pair.old is None or pair.new is None:
        return pair
    kernels = bool(known.get("same")) and pair.new.is_spec and _TRACED.search(pair.new.data) is not None
    if not kernels and not _names_programs(pair.new):
        return pair
    from layoutproof.gating.spec_programs import Was

    locked = None if lock is None else lock.records.get(pair.old.relpath)
    values = {} if lock is None else lock.values.get(pair.old.relpath, {})
    return replace(pair, was=Was(locked, values, kept=lock is not None and lock.kept, **known))


def _with_verdicts(before: ReadSpec | None, verdicts: Mapping[str, str]) -> ReadSpec | None:
    """The old state of a file, with what its lock says came of the claims about user code."""
    if before is None or not verdicts:
        return before
    from layoutproof.gating.lock import key_of

    claims = tuple(replace(each, verdict=verdicts.get(key_of(each.check), "")) for each in before.claims)
    return replace(before, claims=claims)


def _names_programs(file: File) -> bool:
    return file.is_spec and _PROGRAMS.search(file.data) is not None


def _first(relpaths: Sequence[str]) -> str:
    return ", ".join(relpaths[:5]) + (" .." if len(relpaths) > 5 else "")


def _unnumbered(file: File) -> str | None:
    short = _NUMBER.sub("module.", file.relpath)
    return None if short == file.relpath else short


def _gone(found: Match[File]) -> File | None:
    return found.old if found.new is None else None


def _fresh(found: Match[File]) -> File | None:
    return found.new if found.old is None else None
