"""`layoutproof gate`: what changed between two states of layouts, with proof, and whether that is allowed."""

from __future__ import annotations

import datetime
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.arguments import (
    form_option,
    json_flag,
    no_trace_flag,
    print_json,
    print_report,
    say,
    write_whole,
)
from layoutproof.cli.progress import Progress, progress_bar
from layoutproof.compiler.tracing import MAX_CONFIG, Tracing, here, only, stated
from layoutproof.compiler.workers import BACKENDS, Workers
from layoutproof.core.document import document
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import read
from layoutproof.core.finding import Report, summary, wrong_input
from layoutproof.core.result import Verdict
from layoutproof.formats import render

if TYPE_CHECKING:
    from layoutproof.changes.lock import Lock
    from layoutproof.changes.rules import Rules

_STYLES = (
    (r"(?m)^(deny|error)\b", "bold red"),
    (r"(?m)^unknown\b", "bold magenta"),
    (r"(?m)^warn\b", "yellow"),
    (r"(?m)^allow\b", "green"),
    (r"(?m)^  \w+ ", "dim"),
)


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--against", metavar="REF", help="A git revision to compare with, e.g. main; nothing is checked out.")
@click.option("--lock", is_flag=True, help="Write layoutproof.lock of PATHS, to compare with later.")
@form_option
@click.option("--output", metavar="FILE", help="Write the report there and only its last line here.")
@click.option("--new-only", is_flag=True, help="Leave out what is allowed or approved.")
@click.option("--approve", metavar="FINGERPRINT", help="Print what to add to pyproject.toml to approve one finding.")
@click.option(
    "--accept-approvals",
    "accept",
    is_flag=True,
    help="Approvals that only the new state has count too; for a protected workflow or a reviewer's label to set.",
)
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@click.option("--backend", type=click.Choice(BACKENDS), help="Work on a cluster that is already there.")
@click.option("--scheduler", metavar="ADDRESS", default="", help="Its address, e.g. tcp://10.0.0.1:8786.")
@no_trace_flag
@json_flag
def command(
    paths: tuple[str, ...],
    against: str | None,
    lock: bool,
    form: str,
    output: str | None,
    new_only: bool,
    approve: str | None,
    accept: bool,
    jobs: int,
    backend: str | None,
    scheduler: str,
    no_trace: bool,
    as_json: bool,
) -> int:
    """Compare two states of layouts: OLD NEW (files or folders of specs or HLO dumps), or --against a git revision.

    Without either, the files as they are now are compared with layoutproof.lock. Every change has a class and its
    proof; the old state's [tool.layoutproof.gate] in pyproject.toml says which classes are allowed, and has the
    approvals.

    Exit codes: 0 nothing denied, 1 something denied, 2 bad input or usage, 3 nothing denied but something unknown,
    130 interrupted (the report is partial).
    """
    if lock:
        with only(here(not no_trace)):
            return _write_lock(paths or ("specs",), as_json)
    if scheduler and not backend:
        raise click.UsageError("--scheduler needs --backend")
    form = "json" if as_json else form
    workers = Workers(jobs, backend or "", scheduler)
    with progress_bar("files", sys.stderr.isatty() and form == "text") as progress:
        allowed = _allowed(paths, against) if not no_trace else here(on=False)
        with only(allowed):
            report = _report(paths, against, workers, progress, new_only and not approve, accept)
    if approve:
        return _approve(report, approve, as_json)
    text = render(form, report)
    if output:
        write_whole(Path(output), text.encode())
        if as_json:
            return print_json(document(report.exit_code, {"summary": summary(report), "written": [output]}))
        say(summary(report))
    else:
        print_report(text, form, _STYLES)
    return report.exit_code


def _report(
    paths: tuple[str, ...],
    against: str | None,
    workers: Workers,
    progress: Progress | None,
    new_only: bool,
    accept: bool,
) -> Report:
    from layoutproof.changes import compare, rules, states

    today = datetime.datetime.now(tz=datetime.UTC).date()
    config = rules.pyproject()
    before: Rules | None = None
    lock: Lock | None = None
    if against is not None:
        old, new = states.against(against, paths or ("specs",))
        # the nearest one of the old state, which need not be where the nearest is now
        then = states.nearest_at(against, rules.PYPROJECT)
        before = rules.rules_in(then[1], f"{then[0]} at {against}") if then else {}
        lock = _lock_at(against, today, workers)
    elif len(paths) == 2:
        old, new = states.pair(*paths)
        first, second = map(rules.pyproject, map(Path, paths))
        if first == second:
            config = first or config
        else:
            # rules that neither state holds are nobody's change
            before = rules.rules_of(first if first or config == second else config)
            config = second
        lock = _lock_above(Path(paths[0]))
    elif not paths:
        return _against_lock(rules.rules_of(config), today, workers, progress, new_only)
    else:
        raise click.UsageError("give OLD NEW, or --against REF [PATHS], or nothing to compare with layoutproof.lock")
    return compare.compare(
        old,
        new,
        rules.rules_of(config),
        today=today,
        workers=workers,
        progress=progress,
        new_only=new_only,
        before=before,
        accept=accept,
        lock=lock,
    )


def _allowed(paths: tuple[str, ...], against: str | None) -> Tracing:
    """What code may be traced, as the old state says where it says something: no change allows itself."""
    from layoutproof.changes import rules, states

    old: Tracing | None = None
    if against is not None:
        then = states.nearest_at(against, rules.PYPROJECT)
        old = stated(then[1], f"{then[0]} at {against}") if then else None
    elif len(paths) == 2:
        path = rules.nearest(rules.PYPROJECT, Path(paths[0]))
        old = stated(read(path, MAX_CONFIG), path.as_posix()) if path else None
    return here() if old is None or old == Tracing() else old


def _lock_at(reference: str, today: datetime.date, workers: Workers) -> Lock | None:
    """The nearest lock file of a git revision, and what became of it; None where there is and was none."""
    from layoutproof.changes import drift, states
    from layoutproof.changes.lock_head import MAX_LOCK, NAME
    from layoutproof.core.finding import Finding, unknown

    then = states.nearest_at(reference, NAME)
    now = Path(NAME)
    if then is None and not os.path.lexists(now):
        return None
    from layoutproof.changes.lock import Lock, read_lock

    relpath, data = then if then is not None else (NAME, b"")
    lock = Lock() if then is None else read_lock(data, relpath, str(Path(relpath).parent))
    found = list(lock.findings)
    if then is not None and not states.is_here(relpath):
        found.append(Finding("removed", NAME, "the lock file is gone; the old one is compared with", relpath, relpath))
    elif os.path.lexists(now):
        try:
            # whoever rewrites the lock says what the next change is compared with
            drifted = drift.compare(now, {}, today, workers).findings if read(now, MAX_LOCK) != data else ()
        except LayoutError as error:
            return replace(lock, findings=(*found, *_unread_lock(error, now).findings))
        wrong = [f for f in drifted if f.severity != "allow"]
        if wrong:
            what = f"{wrong[0].question} {wrong[0].subject}: {wrong[0].reason}"
            why = f"the new lock file does not say what is here: {what}"
            closed = all(f.verdict is Verdict.UNKNOWN and not f.bad_input for f in wrong)
            found.append(
                unknown(NAME, why, relpath, relpath) if closed else Finding("lock", NAME, why, relpath, relpath)
            )
    return replace(lock, findings=tuple(found))


def _lock_above(state: Path) -> Lock | None:
    """The nearest lock file of a state on disk; None where there is none."""
    from layoutproof.changes.lock_head import MAX_LOCK, NAME
    from layoutproof.changes.rules import nearest

    path = nearest(NAME, state)
    if path is None:
        return None
    from layoutproof.changes.lock import read_lock

    # paths are within the state: of a folder its files, of a file given by name that file
    start = state.absolute() if state.is_dir() else state.absolute().parent
    try:
        return read_lock(read(path, MAX_LOCK), path.as_posix(), str(path.parent), str(start))
    except LayoutError as error:
        return _unread_lock(error, path)


def _unread_lock(error: LayoutError, path: Path) -> Lock:
    from layoutproof.changes.lock import Lock

    at = path.as_posix()
    return Lock(findings=(wrong_input("the lock file", error.problem, at, at),))


def _against_lock(
    rules: Rules, today: datetime.date, workers: Workers, progress: Progress | None, new_only: bool
) -> Report:
    from layoutproof.changes import drift
    from layoutproof.changes.lock_head import NAME

    if not os.path.lexists(NAME):
        raise click.UsageError(
            "nothing to compare with: give OLD NEW or --against REF, or write layoutproof.lock with --lock"
        )
    return drift.compare(Path(NAME), rules, today, workers, progress, new_only)


def _write_lock(paths: tuple[str, ...], as_json: bool) -> int:
    from layoutproof.changes import lock, states
    from layoutproof.changes.lock_head import NAME, known

    files = [file for file in states.here(paths).files if known(file)]
    if not files:
        raise LayoutError(f"no spec file or HLO dump in {', '.join(paths)}: nothing to lock")
    # half a surrogate pair, of a file's name that is no UTF-8, becomes the escape that JSON has for it
    write_whole(Path(NAME), lock.write(files, paths).encode(errors="backslashreplace"))
    said = f"{NAME}: {len(files)} file{'' if len(files) == 1 else 's'}"
    if as_json:
        return print_json(document(0, {"summary": said, "written": [NAME]}))
    say(said)
    return 0


def _approve(report: Report, fingerprint: str, as_json: bool) -> int:
    from layoutproof.changes.policy import approval_snippet
    from layoutproof.changes.states import whoami

    for finding in report.findings:
        if finding.fingerprint == fingerprint:
            if finding.verdict is Verdict.UNKNOWN or finding.bad_input:
                raise LayoutError("a finding that is unknown or bad input cannot be approved")
            snippet = approval_snippet(finding, datetime.datetime.now(tz=datetime.UTC).date(), whoami())
            if as_json:
                return print_json(document(0, {"approval": snippet}))
            say(snippet)
            return 0
    have = ", ".join(f.fingerprint for f in report.findings if f.fingerprint) or "none"
    raise LayoutError(f"no finding has the fingerprint {fingerprint}; there are {have}")
