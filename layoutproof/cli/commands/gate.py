"""`layoutproof gate`: what changed between two states of layouts, with proof, and whether that is allowed.

In the list: claims and changes: Judge what changed in layouts between two states or git revisions.
"""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
    VERDICTS,
    also_option,
    complete_file,
    form_option,
    json_flag,
    no_cache_flag,
    no_trace_flag,
    print_json,
    print_report,
    say,
    summed_up,
    svg_option,
    with_written,
)
from layoutproof.cli.progress import progress_bar
from layoutproof.compiler.tracing import here, only
from layoutproof.compiler.workers import BACKENDS, Workers
from layoutproof.core.document import Document, envelope
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import write_whole
from layoutproof.core.finding import Report, summary
from layoutproof.core.result import Verdict

if TYPE_CHECKING:
    from layoutproof.answers.of_states import Changes

_STYLES = (*VERDICTS, (r"(?m)^  (?!fix )\w+ ", "dim"))


@click.command()
@click.argument("paths", nargs=-1, shell_complete=complete_file)
@click.option("--against", metavar="REF", help="A git revision to compare with, e.g. main; nothing is checked out.")
@click.option(
    "--compile-base",
    is_flag=True,
    help="With --against, compile the programs of spec files as that revision has them too. This runs its code.",
)
@click.option(
    "--same-function",
    is_flag=True,
    help="Programs have to compute what they did. With --against, that revision's functions are traced: its code runs.",
)
@click.option(
    "--libtpu",
    "libraries",
    metavar="PATH",
    multiple=True,
    help="A libtpu that compiles the programs of spec files; two of them: the same programs with both.",
)
@click.option("--blame", is_flag=True, help="With --compile-base, which hunks of the diff make each denied finding.")
@click.option(
    "--compilations",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --blame, how many programs are compiled at most; 40 by default.",
)
@click.option("--lock", is_flag=True, help="Write layoutproof.lock of PATHS, to compare with later.")
@click.option("--check", "check_lock", is_flag=True, help="With --lock, write nothing: is it what is here?")
@form_option
@click.option("--output", metavar="FILE", help="Write the report there and only its last line here.")
@also_option
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
@svg_option
@no_cache_flag
@json_flag
def command(
    paths: tuple[str, ...],
    against: str | None,
    compile_base: bool,
    same_function: bool,
    libraries: tuple[str, ...],
    blame: bool,
    compilations: int | None,
    lock: bool,
    check_lock: bool,
    form: str,
    output: str | None,
    also: tuple[tuple[str, str], ...],
    new_only: bool,
    approve: str | None,
    accept: bool,
    jobs: int,
    backend: str | None,
    scheduler: str,
    no_trace: bool,
    svg: Path | None,
    as_json: bool,
) -> int:
    """Compare two states of layouts: OLD NEW (files or folders), or --against a git revision.

    Files are specs, HLO dumps, and records of Pallas calls (kernels --record). Without either, the files as they are
    now are compared with layoutproof.lock. Programs that spec files name are compiled, and held against their records
    in the lock, or with --compile-base against what the old revision compiles to; --lock --check asks whether the lock
    is what is here. --blame applies hunks of the diff to the old revision, compiles, and names a smallest set of them
    that makes each denied finding. Every change has a class and its
    proof; the old state's [tool.layoutproof.gate] in pyproject.toml says which classes are allowed, and has the
    approvals.

    Exit codes: 0 nothing denied, 1 something denied, 2 bad input or usage, 3 nothing denied but something unknown,
    130 interrupted (the report is partial).

    \b
    Examples:
      layoutproof gate specs --against main
      layoutproof gate --against main --compile-base --blame
      layoutproof gate --lock --check
      layoutproof gate before.hlo after.hlo --format html --output gate.html
    """
    from layoutproof.answers.of_states import MOST_COMPILES, gate

    _refuse_lock(lock, check_lock, against is not None or bool(libraries))
    if lock and not check_lock:
        with only(here(not no_trace)):
            return _write_lock(paths or ("specs",), as_json)
    if scheduler and not backend:
        raise click.UsageError(problems.SCHEDULER_WITHOUT_BACKEND())
    both = len(libraries) == 2
    _refuse_libraries(libraries, against, compile_base)
    _refuse_blame(blame, compilations, compile_base)
    if against is None and not both and not lock:
        _refuse_paths(paths)
    form = "json" if as_json else form
    workers = Workers(jobs, backend or "", scheduler)
    with progress_bar("files", sys.stderr.isatty() and form == "text") as progress:
        answer = gate(
            *(() if against or both or lock else paths),
            against=against,
            paths=paths if against or both or lock else (),
            compile_base=compile_base,
            same_function=same_function,
            blame=(compilations or MOST_COMPILES) if blame else 0,
            libtpu=libraries,
            new_only=new_only and not approve,
            accept_approvals=accept,
            check_lock=check_lock,
            trace=not no_trace,
            workers=workers,
            progress=progress,
        )
    if approve:
        return _approve(answer.report, approve, as_json)
    if svg is not None:
        write_whole(svg, answer.svg().encode())
    for other, file in also:
        write_whole(Path(file), answer.text(other).encode())
    return _printed(answer, form, as_json, output, svg)


def _refuse_lock(lock: bool, check: bool, others: bool) -> None:
    if check and not lock:
        raise click.UsageError(problems.CHECK_WITHOUT_LOCK())
    if lock and others:
        raise click.UsageError(problems.LOCK_WITH_AGAINST())


def _refuse_blame(blame: bool, compilations: int | None, compile_base: bool) -> None:
    if blame and not compile_base:
        raise click.UsageError(problems.BLAME_WITHOUT_COMPILE_BASE())
    if compilations is not None and not blame:
        raise click.UsageError(problems.COMPILATIONS_WITHOUT_BLAME())


def _refuse_libraries(libraries: Sequence[str], against: str | None, compile_base: bool) -> None:
    if len(libraries) > 2 or (len(libraries) == 2 and against is not None):
        raise click.UsageError(problems.LIBTPUS_WITH_AGAINST())
    if compile_base and against is None:
        raise click.UsageError(problems.COMPILE_BASE_WITHOUT_AGAINST())


def _refuse_paths(paths: Sequence[str]) -> None:
    """Two states, or none where there is a lock file."""
    from layoutproof.gating.lock_head import NAME

    if len(paths) not in (0, 2):
        raise click.UsageError(problems.GATE_STATES())
    if not paths and not os.path.lexists(NAME):
        raise click.UsageError(problems.NOTHING_TO_COMPARE())


def _printed(answer: Changes, form: str, as_json: bool, output: str | None, svg: Path | None) -> int:
    """The report in one form, in a file or here; and the exit code."""
    report = answer.report
    text = answer.text(form)
    if output:
        write_whole(Path(output), text.encode())
        if as_json:
            return print_json(summed_up(report.exit_code, summary(report), output, svg))
        say(summary(report))
    elif svg is not None and as_json:
        return print_json(with_written(answer.as_dict(), svg))
    else:
        print_report(text, form, _STYLES)
    return report.exit_code


def _write_lock(paths: tuple[str, ...], as_json: bool) -> int:
    from layoutproof.gating import lock, states
    from layoutproof.gating.lock_head import NAME, known

    files = [file for file in states.here(paths).files if known(file)]
    if not files:
        raise LayoutError(problems.NOTHING_TO_LOCK(", ".join(paths)))
    # half a surrogate pair, of a file's name that is no UTF-8, becomes the escape that JSON has for it
    write_whole(Path(NAME), lock.write(files, paths).encode(errors="backslashreplace"))
    said = f"{NAME}: {len(files)} file{'' if len(files) == 1 else 's'}"
    if as_json:
        return print_json(summed_up(0, said, NAME))
    say(said)
    return 0


class ApprovalDocument(Document):
    """The text to add to pyproject.toml to approve one finding."""

    approval: str


def _approve(report: Report, fingerprint: str, as_json: bool) -> int:
    from layoutproof.gating.policy import approval_snippet
    from layoutproof.gating.states import whoami

    for finding in report.findings:
        if finding.fingerprint == fingerprint:
            if finding.verdict is Verdict.UNKNOWN or finding.bad_input:
                raise LayoutError(problems.APPROVAL_OF_UNKNOWN())
            snippet = approval_snippet(finding, datetime.datetime.now(tz=datetime.UTC).date(), whoami())
            if as_json:
                found: ApprovalDocument = {**envelope(0), "approval": snippet}
                return print_json(found)
            say(snippet)
            return 0
    have = ", ".join(f.fingerprint for f in report.findings if f.fingerprint) or "none"
    raise LayoutError(problems.UNKNOWN_FINGERPRINT(fingerprint, have))
