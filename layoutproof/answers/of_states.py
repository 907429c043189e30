"""`lp.gate`: the changes between two states of spec files and HLO dumps, and the rules' decisions on them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from layoutproof.answers import problems
from layoutproof.compiler.tracing import Tracing, here, only, stated
from layoutproof.compiler.workers import Workers
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_CONFIG, read
from layoutproof.core.finding import Answer, Finding, Report, wrong_input
from layoutproof.formats import render
from layoutproof.formats.json import GateDocument, as_json
from layoutproof.gating import compare, drift, rules, states
from layoutproof.gating.lock_head import MAX_LOCK, NAME, RENEW
from layoutproof.gating.report import Compared, Judges, Progress, Task, judged
from layoutproof.gating.rules import Rules

if TYPE_CHECKING:
    from layoutproof.gating.lock import Lock

MOST_COMPILES = 40
"""How many programs `blame` compiles by default; one hunk of 100 takes about 15."""
NOTHING = "nothing to compare: give two states, or a git revision, or write layoutproof.lock"


@dataclass(frozen=True, slots=True)
class Changes(Answer):
    """report: every difference that is shown, with the counts, for `layoutproof.formats`."""

    report: Report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every difference that is shown, in the order of the files."""
        return self.report.findings

    @property
    def exit_code(self) -> int:
        """0 nothing denied, 1 something denied, 2 bad input, 3 something unknown, 130 interrupted."""
        return self.report.exit_code

    def text(self, form: str = "text") -> str:
        """The report in one of the forms of `layoutproof.formats`. LayoutError lists them."""
        return render(form, self.report)

    def __str__(self) -> str:
        return self.text()

    def svg(self) -> str:
        """Each difference that can be drawn, with the moved elements marked."""
        # pictures read every language; a command that draws none does not wait for them
        from layoutproof.answers.of_pictures import findings_svg

        return findings_svg("gate", self.findings)

    def as_dict(self) -> GateDocument:
        """What `layoutproof gate --json` prints."""
        return as_json(self.report)


def gate(
    old: str | PathLike[str] | None = None,
    new: str | PathLike[str] | None = None,
    *,
    against: str | None = None,
    paths: Sequence[str | PathLike[str]] = (),
    compile_base: bool = False,
    same_function: bool = False,
    libtpu: Sequence[str | PathLike[str]] = (),
    blame: int = 0,
    new_only: bool = False,
    accept_approvals: bool = False,
    check_lock: bool = False,
    jobs: int = 1,
    trace: bool = True,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Compare two states of spec files and HLO dumps: each difference with its class, its proof and its place.

    The rules and approvals are those of the old state, where it has some: no change allows itself.

    Args:
        old: A file or a folder; with `new`, the state before; `layoutproof.lock` where nothing is given.
        new: The state after, as `old`.
        against: A git revision to compare `paths` with, instead of `old` and `new`; nothing is checked out.
        paths: With `against`, and with two of `libtpu`, files and folders; by default `specs`.
        compile_base: With `against`, whether the programs of spec files are compiled from that revision's code too, in
            a work tree and processes of its own: that code is run.
        same_function: Whether every program has to compute what it did: one that does not is denied, and one of which
            it is unknown is unknown. With `against`, that revision's functions are traced: that code is run.
        libtpu: Paths. One: the compiler of the programs of spec files. Two: the same programs compiled with both.
        blame: With `compile_base`, for each denied collective, copy, layout or growth of a program which hunks of the
            diff make it: parts of the diff are applied to that revision, and compiled, so many times at most; 0: not.
        new_only: Whether to leave out allowed and approved findings.
        accept_approvals: Whether approvals that the change itself adds count.
        check_lock: Whether to ask only if `layoutproof.lock` is what is here, line by line; `paths` are what it is to
            be of, by default what it says itself.
        jobs: Processes; 0 is one per core.
        trace: Whether functions that files name may be imported, where pyproject.toml allows it.
        workers: Where the work is done, instead of `jobs`.
        progress: Called with (done, of how many) files.

    Returns:
        The changes: `findings`, `exit_code`, `str` the report, `text(form)` one of its other forms.

    Raises:
        LayoutError: There is nothing to compare, or a state cannot be read. A mistake within a file is a finding.
    """
    given = (old is not None) + (new is not None)
    libraries: tuple[str, ...] = ()
    if libtpu:
        from layoutproof.compiler.libtpu import library_at

        libraries = tuple(map(library_at, libtpu))
    both = len(libraries) == 2
    if check_lock and (given or against is not None or libtpu):
        raise LayoutError(problems.LOCK_WITH_STATES())
    free = both or check_lock
    if given == 1 or (given and (against is not None or paths or both)) or (paths and against is None and not free):
        raise LayoutError(problems.STATES_OR_REVISION())
    if len(libraries) > 2 or (both and against is not None):
        raise LayoutError(problems.TWO_LIBTPU())
    _refuse_base(against, compile_base, blame)
    names = tuple(map(str, (old, new) if given else paths))
    run = workers or Workers(jobs)
    how = _How(run, progress, new_only, accept_approvals, compile_base, libraries, same_function, blame)
    with only(_allowed(names if given else (), against) if trace else here(on=False)):
        if check_lock:
            return Changes(_of_lock(names, how))
        report = _of_compilers(names, how) if both else _report(names, against, how)
        return Changes(_blamed(report, against, how))


def _refuse_base(against: str | None, compile_base: bool, blame: int) -> None:
    if compile_base and against is None:
        raise LayoutError(problems.BASE_WITHOUT_REVISION())
    if blame and not compile_base:
        raise LayoutError(problems.BLAME_WITHOUT_BASE())


def _blamed(report: Report, against: str | None, how: _How) -> Report:
    """The report with the hunks that make its findings, where they are asked for."""
    if not how.blame or against is None or report.partial:
        return report
    # compiling many times is another matter than comparing once
    from layoutproof.gating.blame import blamed

    return blamed(report, against, how.library, how.blame)


@dataclass(frozen=True, slots=True)
class _How:
    """How a report is made: the options of `gate` that are no states."""

    workers: Workers
    progress: Progress | None
    new_only: bool
    accept: bool
    compile_base: bool
    libraries: tuple[str, ...]
    same_function: bool = False
    blame: int = 0

    @property
    def library(self) -> str:
        return self.libraries[0] if self.libraries else ""


def _of_compilers(paths: tuple[str, ...], how: _How) -> Report:
    """The same programs under two compilers."""
    from layoutproof.gating import compilers

    function = next((path for path in paths if ":" in path and not os.path.lexists(path)), None)
    if function is not None:
        raise compilers.of_function(function)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    kept = rules.rules_of(rules.pyproject())
    state = states.here(paths or ("specs",))
    judges = Judges(kept, None, today, how.accept)
    return compilers.compare(state, how.libraries, judges, how.workers, how.progress, how.new_only)


def _of_lock(paths: tuple[str, ...], how: _How) -> Report:
    """Whether the lock file is what would be written now."""
    from layoutproof.gating.lock_check import stale

    if not os.path.lexists(NAME):
        raise LayoutError(problems.NO_LOCK(NAME, RENEW))
    today = datetime.datetime.now(tz=datetime.UTC).date()
    judges = Judges(rules.rules_of(rules.pyproject()), None, today, also=tuple(stale(Path(NAME), paths)))
    report = judged(f"{NAME} against what is here", Task(_nothing, [], [], how.workers), 1, judges, how.new_only)
    return replace(report, notes=(), nothing="up to date, no difference")


def _nothing(_: object) -> Compared:
    return Compared()


def _report(paths: tuple[str, ...], against: str | None, how: _How) -> Report:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    config = rules.pyproject()
    before: Rules | None = None
    lock: Lock | None = None
    if against is not None:
        old, new = states.against(against, paths or ("specs",))
        # the nearest one of the old state, which need not be where the nearest is now
        then = states.nearest_at(against, rules.PYPROJECT)
        before = rules.rules_in(then[1], f"{then[0]} at {against}") if then else {}
        lock = _lock_at(against)
    elif len(paths) == 2:
        old, new = states.pair(*paths)
        first, second = map(rules.pyproject, map(Path, paths))
        if first == second:
            config = first or config
        else:
            # rules outside of both states are no change of theirs
            before = rules.rules_of(first if first or config == second else config)
            config = second
        lock = _lock_above(Path(paths[0]))
    elif not paths:
        return _against_lock(rules.rules_of(config), today, how)
    else:
        raise LayoutError(NOTHING)
    runs = how.compile_base or how.same_function
    with states.work_tree_of(against) if against is not None and runs else nullcontext("") as base:
        return compare.compare(
            old,
            new,
            rules.rules_of(config),
            today=today,
            workers=how.workers,
            progress=how.progress,
            new_only=how.new_only,
            before=before,
            accept=how.accept,
            lock=lock,
            base=base,
            library=how.library,
            compiles=how.compile_base,
            same=how.same_function,
        )


def _allowed(paths: tuple[str, ...], against: str | None) -> Tracing:
    """Which code may be traced, by the old state where it has a setting: no change allows itself."""
    old: Tracing | None = None
    if against is not None:
        then = states.nearest_at(against, rules.PYPROJECT)
        old = stated(then[1], f"{then[0]} at {against}") if then else None
    elif len(paths) == 2:
        path = rules.nearest(rules.PYPROJECT, Path(paths[0]))
        old = stated(read(path, MAX_CONFIG), path.as_posix()) if path else None
    return here() if old is None or old == Tracing() else old


def _lock_at(reference: str) -> Lock | None:
    """The nearest lock file of a git revision, and what became of it; None where there is and was none."""
    then = states.nearest_at(reference, NAME)
    now = Path(NAME)
    if then is None and not os.path.lexists(now):
        return None
    # imported here because most runs do not need it
    from layoutproof.gating.lock import Lock, read_lock
    from layoutproof.gating.lock_check import stale

    relpath, data = then if then is not None else (NAME, b"")
    lock = Lock() if then is None else read_lock(data, relpath, str(Path(relpath).parent))
    found = list(lock.findings)
    kept = False
    if then is not None and not states.is_here(relpath):
        found.append(Finding("removed", NAME, "the lock file is gone; the old one is compared with", relpath, relpath))
    elif os.path.lexists(now):
        try:
            kept = read(now, MAX_LOCK) == data
            if not kept:
                # a rewritten lock is the baseline of the next change
                found += stale(now)
        except LayoutError as error:
            return replace(lock, findings=(*found, *_unread_lock(error, now).findings))
    return replace(lock, findings=tuple(found), kept=kept)


def _lock_above(state: Path) -> Lock | None:
    """The nearest lock file of a state on disk; None where there is none."""
    path = rules.nearest(NAME, state)
    if path is None:
        return None
    from layoutproof.gating.lock import read_lock

    # paths are within the state: of a folder its files, of a file given by name that file
    start = state.absolute() if state.is_dir() else state.absolute().parent
    try:
        return read_lock(read(path, MAX_LOCK), path.as_posix(), str(path.parent), str(start))
    except LayoutError as error:
        return _unread_lock(error, path)


def _unread_lock(error: LayoutError, path: Path) -> Lock:
    from layoutproof.gating.lock import Lock

    at = path.as_posix()
    return Lock(findings=(wrong_input("the lock file", error.problem, at, at),))


def _against_lock(kept: Rules, today: datetime.date, how: _How) -> Report:
    if not os.path.lexists(NAME):
        raise LayoutError(NOTHING)
    return drift.compare(
        Path(NAME), kept, today, how.workers, how.progress, how.new_only, how.library, how.same_function
    )
