"""`layoutproof check [PATHS]`: prove every claim in spec files."""

from __future__ import annotations

import json
import sys

import click

from layoutproof.doors.arguments import json_flag
from layoutproof.doors.progress import progress_bar
from layoutproof.jobs import cache


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@json_flag
def command(paths: tuple[str, ...], jobs: int, as_json: bool) -> int:
    """Prove every claim in spec files (default: the folder specs).

    A run on files that have not changed since the last one repeats its answer; LAYOUTPROOF_CACHE=off proves anew.
    """

    def make() -> tuple[str, int]:
        from layoutproof.jobs import report
        from layoutproof.jobs.check import check_paths, exit_code

        with progress_bar("checks", sys.stderr.isatty() and not as_json) as progress:
            outcomes = check_paths(paths or ("specs",), jobs, progress)
        whole = report.as_json(outcomes) if as_json else None
        text = json.dumps(whole, indent=2, ensure_ascii=False) if as_json else report.text(outcomes)
        return text, exit_code(outcomes)

    text, code = cache.remembered(cache.key_of_paths(("check", as_json), paths or ("specs",)), make)
    click.echo(text)
    return code
