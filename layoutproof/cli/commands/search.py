"""`layoutproof search FILE`: the best tilings, layouts or shardings under a target's constraints, with certificates."""

from __future__ import annotations

from pathlib import Path

import click

from layoutproof.cli.arguments import json_flag, no_trace_flag, print_json, say, write_whole

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("file", type=_FILE)
@click.option("--best", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many to show.")
@click.option(
    "--pareto", is_flag=True, help="Also show the Pareto front: no other beats these in time, VMEM and padding at once."
)
@click.option("--compile", "compiling", is_flag=True, help="Ask the real TPU compiler about the best ones too.")
@click.option(
    "--prune", type=_FILE, metavar="JSON", help="Say which of these candidates the rules allow, and why not the others."
)
@click.option("--png", type=_FILE, help="Draw the cost over two variables, and the Pareto front, to this file.")
@click.option(
    "--effort", type=click.IntRange(1, 1000), default=1, show_default=True, help="Multiply the budgets of steps."
)
@no_trace_flag
@json_flag
def command(
    file: Path,
    best: int,
    pareto: bool,
    compiling: bool,
    prune: Path | None,
    png: Path | None,
    effort: int,
    no_trace: bool,
    as_json: bool,
) -> int:
    """Find the best answers to the problem that FILE states, each with what is proved of it and a certificate.

    Exit codes: 0 the best is proved, 1 proved that there is none, 2 bad input or usage, 3 unknown.
    """
    from layoutproof.answers.of_search import search

    if prune is not None and (pareto or compiling or png):
        raise click.UsageError("--prune judges candidates that are given; it goes with --json and nothing else")
    answer = search(file, best=best, pareto=pareto, compiling=compiling, prune=prune, effort=effort, trace=not no_trace)
    drawn = None if png is None else answer.png()
    if png is not None and drawn is not None:
        write_whole(png, drawn)
    if as_json:
        return print_json(answer.as_dict() | {"written": [str(png)] if drawn else []})
    say(str(answer) + ("" if png is None else f"\nwritten         {png if drawn else 'nothing to draw'}"))
    return answer.exit_code
