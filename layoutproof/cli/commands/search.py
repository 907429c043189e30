"""`layoutproof search PROBLEM`: the best tilings, layouts or shardings under a target's constraints, certified.

In the list: kernels and programs: Find the best tilings or layouts and prove that none is better.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
    args_options,
    complete_file,
    complete_target,
    json_flag,
    no_cache_flag,
    no_trace_flag,
    print_json,
    say,
    told_of,
    waiting,
    with_written,
)
from layoutproof.core.errors import shorten
from layoutproof.core.files import write_whole

_FILE = click.Path(path_type=Path, dir_okay=False)


def _size(value: str) -> int:
    """One size of a ready kernel. click.UsageError for anything else."""
    if not re.fullmatch("[0-9]{1,19}", value) or int(value) < 1:
        raise click.UsageError(problems.SIZE_FORM(shorten(value, 40)), ctx=click.get_current_context(silent=True))
    return int(value)


class _Sizes(click.Command):
    """A command with numbers as arguments: one below 0 is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for before, given in zip(["", *args], args, strict=False):
            if re.fullmatch("-[0-9]+", given) and not before.startswith("--"):
                raise click.UsageError(problems.SIZE_FORM(given), ctx=ctx)
        return super().parse_args(ctx, args)


@click.command(cls=_Sizes)
@click.argument("problem", required=False, shell_complete=complete_file)
@click.argument("sizes", nargs=-1, type=_size)
@click.option("--dtype", help="Of a ready kernel: the element type of its arrays, e.g. bf16.")
@click.option(
    "--target",
    shell_complete=complete_target,
    help="Of a ready kernel or a function: the TPU generation, e.g. v5e.",
)
@click.option(
    "--headroom",
    metavar="25%|KIND",
    help="Of a ready kernel or a function: VMEM kept free for registers that spill, a percentage or a kind of body "
    "(elementwise, reduction, matmul, attention); default: the need of the kind of the body. Candidates that "
    "take more are set aside.",
)
@args_options('Of a function: an argument, e.g. "bf16[4096,4096]". Repeatable.')
@click.option("--kwarg", "kwargs", multiple=True, metavar="NAME=VALUE", help="How a variable is passed, by its name.")
@click.option(
    "--tune",
    multiple=True,
    metavar="NAME=VALUES",
    help="What a variable may be: bm=128..2048 (multiples of 128), bm=8..M:64, bm=128..2048:x2 (powers), bm=128,256.",
)
@click.option("--best", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many to show.")
@click.option("--keep", type=click.IntRange(1, 1000), help="No more candidates than so many; of --prune the cheapest.")
@click.option("--within", metavar="1.2x", help="No candidates that cost more than so many times the best.")
@click.option(
    "--pareto", is_flag=True, help="Also show the Pareto front: no other beats these in time, VMEM and padding at once."
)
@click.option("--why", is_flag=True, help="Also say the model and its sources, and what was left out and refused.")
@click.option("--compile", "compiling", is_flag=True, help="Ask the real TPU compiler about the best ones too.")
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Of shardings that are compiled: processes; 0: one per core.",
)
@click.option("--resume", metavar="FILE", help="Of the same: keep the rows there (.jsonl), and take those that it has.")
@click.option(
    "--prune",
    type=_FILE,
    metavar="JSON",
    help="Say which of these candidates are legal and fit, and why not the others.",
)
@click.option(
    "--init", is_flag=True, help="Write a commented search file to PROBLEM (default: search.yaml) to start from."
)
@click.option(
    "--effort", type=click.IntRange(1, 1000), default=1, show_default=True, help="Multiply the budgets of steps."
)
@no_trace_flag
@no_cache_flag
@json_flag
def command(
    problem: str | None,
    sizes: tuple[int, ...],
    dtype: str | None,
    target: str | None,
    headroom: str | None,
    args: tuple[str, ...],
    kwargs: tuple[str, ...],
    tune: tuple[str, ...],
    best: int,
    keep: int | None,
    within: str | None,
    pareto: bool,
    why: bool,
    compiling: bool,
    jobs: int,
    resume: str | None,
    prune: Path | None,
    init: bool,
    effort: int,
    no_trace: bool,
    as_json: bool,
) -> int:
    """Find the best answers to a problem, each with what is proved of it and a certificate.

    PROBLEM is a search file; the name of a ready kernel with its SIZES, e.g. matmul M N K (`explain search` lists
    them); or a function that makes Pallas calls, MODULE:FUNCTION, with --arg and --tune.

    Exit codes: 0 the best is proved, 1 proved that there is none, 2 bad input or usage, 3 unknown, as where headroom
    sets all of them aside.

    \b
    Example:
      layoutproof search matmul 4096 4096 4096 --dtype bf16 --target v5e
    """
    from layoutproof.answers.of_search import search

    if init:
        return _init(Path(problem or "search.yaml"), as_json)
    if not problem:
        raise click.UsageError(problems.PROBLEM_MISSING())
    if prune is not None and (pareto or compiling):
        raise click.UsageError(problems.PRUNE_WITH_PARETO())
    waiting(f"searching {problem}")
    answer = search(
        problem,
        best=best,
        pareto=pareto,
        compiling=compiling,
        prune=prune,
        effort=effort,
        trace=not no_trace,
        sizes=sizes,
        dtype=dtype,
        target=target,
        headroom=headroom,
        args=args,
        kwargs=_pairs(kwargs, "--kwarg"),
        tune=_pairs(tune, "--tune"),
        keep=keep,
        within=within,
        jobs=jobs,
        resume=resume,
        progress=told_of,
    )
    if as_json:
        return print_json(answer.as_dict())
    say(answer.why() if why else str(answer))
    return answer.exit_code


def _pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip().isidentifier() or name.strip() in found:
            raise click.UsageError(problems.NAME_VALUE_ONCE(option, text))
        found[name.strip()] = value.strip()
    return found


def _init(path: Path, as_json: bool) -> int:
    from layoutproof.core.document import envelope
    from layoutproof.core.errors import LayoutError
    from layoutproof.searching.ready import INIT

    if os.path.lexists(path):
        raise LayoutError(problems.INIT_OVER_FILE(path))
    write_whole(path, INIT.format(name=path).encode())
    if as_json:
        return print_json(with_written(envelope(0), path))
    say(f"written {path}; next: layoutproof search {path}")
    return 0
