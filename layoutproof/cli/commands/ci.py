"""`layoutproof ci [PATHS]`: every claim and every change in one run, with every report.

In the list: claims and changes: Prove the claims and judge the changes in one run with every report.
"""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
    VERDICTS,
    complete_file,
    form_option,
    json_flag,
    no_cache_flag,
    no_trace_flag,
    print_report,
)
from layoutproof.cli.progress import progress_bar
from layoutproof.compiler import cache, reads
from layoutproof.compiler.workers import BACKENDS, Workers
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_YAML, YAML_ENDS, files_in, read, repository_of, write_whole

_STYLES = (*VERDICTS, (r"(?m)^  (?!fix )\w+ ", "dim"))


def _file(form: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    name = f"out-{form}" if form == "json" else form
    return click.option(f"--{name}", f"out_{form}", metavar="FILE", help=f"Write the report as {form} there.")


@click.command()
@click.argument("paths", nargs=-1, shell_complete=complete_file)
@click.option("--against", metavar="REF", help="Also judge what changed since this git revision, e.g. main.")
@click.option("--gate", "gated", metavar="PATH", multiple=True, help="Judge the changes of this one; default PATHS.")
@click.option("--only", type=click.Choice(["check", "gate"]), help="Only the claims, or only the changes.")
@_file("sarif")
@_file("junit")
@_file("markdown")
@_file("html")
@_file("json")
@form_option
@click.option("--fail-under", metavar="SHARE", help="Fail where fewer of the claims are proved, e.g. 90%.")
@click.option("--baseline", metavar="FILE", help="Accept the unknowns that it lists; the share in it may not fall.")
@click.option("--write-baseline", metavar="FILE", help="Write today's share and unknowns there, for --baseline.")
@click.option("--shard", metavar="K/N", default="", help="Only the K-th of N parts of the claims; the gate is in 1/N.")
@click.option("--new-only", is_flag=True, help="Leave out changes that are allowed or approved.")
@click.option(
    "--accept-approvals",
    "accept",
    is_flag=True,
    help="Approvals and baseline lines that only the new state has count too; for a reviewer's label to set.",
)
@click.option("--same-function", is_flag=True, help="Programs have to compute what they did; runs the revision's code.")
@click.option("--compile-base", is_flag=True, help="Compile the programs of the revision too; runs its code.")
@click.option("--libtpu", "libraries", metavar="PATH", multiple=True, help="A libtpu that compiles the programs.")
@click.option("-v", "--verbose", is_flag=True, help="Also a line for each claim that is as stated.")
@click.option("--strict", is_flag=True, help="Sampled is not enough: exit code 3.")
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@click.option("--backend", type=click.Choice(BACKENDS), help="Work on a cluster that is already there.")
@click.option("--scheduler", metavar="ADDRESS", default="", help="Its address, e.g. tcp://10.0.0.1:8786.")
@no_trace_flag
@no_cache_flag
@json_flag
def command(
    paths: tuple[str, ...],
    against: str | None,
    gated: tuple[str, ...],
    only: str | None,
    out_sarif: str | None,
    out_junit: str | None,
    out_markdown: str | None,
    out_html: str | None,
    out_json: str | None,
    form: str,
    fail_under: str | None,
    baseline: str | None,
    write_baseline: str | None,
    shard: str,
    new_only: bool,
    accept: bool,
    same_function: bool,
    compile_base: bool,
    libraries: tuple[str, ...],
    verbose: bool,
    strict: bool,
    jobs: int,
    backend: str | None,
    scheduler: str,
    no_trace: bool,
    as_json: bool,
) -> int:
    """Prove every claim in spec files (default: the folder specs) and, with --against, judge every change since a git
    revision, in one run: each function that files name is traced once, however many reports are written.

    A run repeats the answer of the last one, and imports nothing, while every file that it read holds what it held:
    spec files, the code that was imported, data; and git's revision, the packages and the options are the same.

    Exit codes: 0 all as stated and nothing denied, 1 something refuted or denied or too little proved, 2 bad input or
    usage, 3 something unknown, 130 interrupted (the report is partial).

    \b
    Examples:
      layoutproof ci --against main --sarif proofs.sarif --junit proofs.xml
      layoutproof ci --shard 2/8
      layoutproof ci --fail-under 90% --baseline layoutproof.baseline.json
    """
    if scheduler and not backend:
        raise click.UsageError(problems.SCHEDULER_WITHOUT_BACKEND())
    if only == "gate" and against is None:
        raise click.UsageError(problems.ONLY_GATE_WITHOUT_AGAINST())
    if shard and (fail_under or write_baseline):
        raise click.UsageError(problems.SHARD_WITH_SHARE())
    names = () if only == "gate" else paths or ("specs",)
    files = {"sarif": out_sarif, "junit": out_junit, "markdown": out_markdown, "html": out_html, "json": out_json}
    wanted = {each: file for each, file in files.items() if file is not None}
    form = "json" if as_json else form
    how: dict[str, Any] = {
        "new_only": new_only,
        "same_function": same_function,
        "compile_base": compile_base,
        "libtpu": libraries,
    }
    made = False

    def make() -> dict[str, str | int]:
        nonlocal made
        made = True
        from layoutproof.answers.of_ci import baseline_of, ci

        with progress_bar("checks", sys.stderr.isatty() and form == "text") as progress:
            answer = ci(
                names,
                against=None if only == "check" else against,
                gated=gated or paths or ("specs",),
                fail_under=fail_under,
                baseline=baseline,
                shard=shard,
                accept_approvals=accept,
                trace=not no_trace,
                strict=strict,
                workers=Workers(jobs, backend or "", scheduler),
                progress=progress,
                **how,
            )
        texts: dict[str, str | int] = {each: answer.text(each, verbose) for each in {form, *wanted}}
        written = {"baseline": baseline_of(answer)} if write_baseline else {}
        return {**texts, **written, "code": answer.exit_code}

    start = time.perf_counter()
    leave = [file for file in (*wanted.values(), write_baseline) if file and file != baseline]
    apart = jobs != 1 or backend is not None or same_function or compile_base
    asked = [names, gated, only, sorted({form, *wanted}), fail_under, baseline, bool(write_baseline), shard, accept]
    key = _key([*asked, sorted(how.items()), verbose, strict, no_trace, jobs, backend], against)
    said = _remembered(key, leave, apart or _compiles([*names, *gated]), make)
    for each, file in wanted.items():
        write_whole(Path(file), f"{said[each]}\n".encode())
    if write_baseline:
        write_whole(Path(write_baseline), str(said["baseline"]).encode())
    took = f"; {time.perf_counter() - start:.1f} s" if made else "; nothing changed since the last run"
    print_report(f"{said[form]}{took}" if form == "text" else str(said[form]), form, _STYLES)
    return int(said["code"])


def _key(asked: Sequence[object], against: str | None) -> list[object] | None:
    """What a run depends on besides the files that it reads; None where that is not known."""
    commit = ""
    if against is not None:
        from layoutproof.gating.git import commit_of, top_here

        commit = commit_of(top_here(), against)
    # approvals end at a date
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return ["ci", str(Path.cwd()), asked, commit, today, reads.surroundings()]


def _compiles(paths: Sequence[str]) -> bool:
    """Whether spec files may name programs: they are compiled by other processes."""
    for given in map(Path, paths):
        for path in files_in(given, YAML_ENDS) if given.is_dir() else [given]:
            try:
                if any(word in read(path, MAX_YAML) for word in (b"programs", b"\\", b"\0")):
                    return True
            except LayoutError:
                continue
    return False


def _remembered(
    key: list[object] | None, leave: Sequence[str], apart: bool, make: Callable[[], dict[str, str | int]]
) -> Mapping[str, str | int]:
    """What a run said: from before, where no file that it read has changed, else made now.

    apart: whether other processes read files too, which nobody notes here: then all code and data of the repository
    counts. A run that ends with 2 is not kept, nor one whose files were written meanwhile.
    """
    kept = None if key is None else cache.get(key)
    if isinstance(kept, dict) and reads.unchanged(kept["reads"], leave):
        said: Mapping[str, str | int] = kept["said"]
        return said
    root = repository_of(Path.cwd())
    before = reads.whole(root, leave) if apart else None
    with reads.recorded(leave) as read_now:
        made = make()
    found = read_now.list()
    if apart:
        found = before if before == reads.whole(root, leave) else None
    if found is not None and made["code"] in (0, 1, 3):
        cache.put(key, {"reads": found, "said": made})
    return made
