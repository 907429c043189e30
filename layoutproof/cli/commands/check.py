"""`layoutproof check [PATHS]`: prove every claim in spec files.

In the list: claims and changes: Prove every claim of spec files.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
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
from layoutproof.compiler import cache
from layoutproof.compiler.workers import BACKENDS, Workers
from layoutproof.core.files import write_whole

if TYPE_CHECKING:
    from layoutproof.answers.of_specs import Checked


@click.command()
@click.argument("paths", nargs=-1, shell_complete=complete_file)
@form_option
@click.option("-v", "--verbose", is_flag=True, help="Also a line for each check that is as stated.")
@click.option("--output", metavar="FILE", help="Write the report there and only its last line here.")
@also_option
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@click.option("--backend", type=click.Choice(BACKENDS), help="Work on a cluster that is already there.")
@click.option("--scheduler", metavar="ADDRESS", default="", help="Its address, e.g. tcp://10.0.0.1:8786.")
@click.option("--strict", is_flag=True, help="Sampled is not enough: exit code 3.")
@no_trace_flag
@svg_option
@no_cache_flag
@json_flag
def command(
    paths: tuple[str, ...],
    form: str,
    verbose: bool,
    output: str | None,
    also: tuple[tuple[str, str], ...],
    jobs: int,
    backend: str | None,
    scheduler: str,
    strict: bool,
    no_trace: bool,
    svg: Path | None,
    as_json: bool,
) -> int:
    """Prove every claim in spec files (default: the folder specs).

    A run on files that have not changed since the last one repeats its answer; --no-cache proves anew.
    Functions that files name (trace:) are imported and traced, where pyproject.toml allows it; --no-trace imports none.
    Interrupted, it reports what is done by then and ends with 130.

    \b
    Example:
      layoutproof check specs --verbose
    """
    if scheduler and not backend:
        raise click.UsageError(problems.SCHEDULER_WITHOUT_BACKEND())
    form = "json" if as_json else form
    forms = (form, *(one for one, _ in also))
    made = False

    def make() -> tuple[str, int]:
        nonlocal made
        made = True
        from layoutproof.answers.of_specs import check

        with progress_bar("checks", sys.stderr.isatty() and form == "text") as progress:
            workers = Workers(jobs, backend or "", scheduler)
            answer = check(paths or ("specs",), trace=not no_trace, workers=workers, strict=strict, progress=progress)
        texts = [_text(answer, one, verbose) for one in forms]
        return json.dumps([texts, answer.summary(), answer.svg() if svg else ""]), answer.exit_code

    start = time.perf_counter()
    asked = ("check", forms, verbose, strict, svg is not None, no_trace)
    kept, code = cache.remembered(lambda: cache.key_of_paths(asked, paths or ("specs",)), make)
    (text, *others), summary, picture = json.loads(kept)
    for (_, file), other in zip(also, others, strict=True):
        write_whole(Path(file), f"{other}\n".encode())
    if svg is not None:
        write_whole(svg, picture.encode())
    took = f"; {time.perf_counter() - start:.1f} s" if made else "; nothing changed since the last run"
    if output:
        write_whole(Path(output), f"{text}\n".encode())
        if as_json:
            return print_json(summed_up(code, summary, output, svg))
        say(summary + took)
    elif svg is not None and as_json:
        return print_json(with_written(json.loads(text), svg))
    else:
        print_report(text + took if form == "text" else text, form)
    return code


def _text(answer: Checked, form: str, verbose: bool) -> str:
    if form == "text":
        return answer.text(verbose)
    if form == "json":
        return answer.to_json()
    from layoutproof.formats import render

    return render(form, answer.report())
