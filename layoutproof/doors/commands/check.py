"""`layoutproof check [PATHS]`: prove every claim in spec files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from layoutproof.doors.arguments import json_flag, print_json

Progress = Callable[[int, int], None]
PATIENCE = 1.0
"""Seconds before a progress bar appears."""


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@json_flag
def command(paths: tuple[str, ...], jobs: int, as_json: bool) -> int:
    """Prove every claim in spec files (default: the folder specs)."""
    from layoutproof.jobs import report
    from layoutproof.jobs.check import check_paths, exit_code

    with _progress(shown=sys.stderr.isatty() and not as_json) as progress:
        outcomes = check_paths(paths or ("specs",), jobs, progress)
    if as_json:
        print_json(report.as_json(outcomes))
    else:
        click.echo(report.text(outcomes))
    return exit_code(outcomes)


@contextmanager
def _progress(shown: bool) -> Iterator[Progress | None]:
    """A progress bar on stderr for runs that take long; rich is imported only then."""
    if not shown:
        yield None
        return
    start = time.monotonic()
    bar: list[Any] = []

    def progress(done: int, total: int) -> None:
        if not bar and time.monotonic() - start > PATIENCE:
            from rich.console import Console
            from rich.progress import Progress as Bar

            bar.append(Bar(console=Console(stderr=True), transient=True))
            bar[0].add_task("checks", total=total)
            bar[0].start()
        if bar:
            bar[0].update(bar[0].task_ids[0], completed=done)

    try:
        yield progress
    finally:
        if bar:
            bar[0].stop()
