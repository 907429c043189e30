"""`layoutproof same FUNCTION --reference FUNCTION`: does it compute what its reference computes?

In the list: kernels and programs: Compare the values of a function with those of a reference.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
    args_options,
    complete_file,
    complete_target,
    json_flag,
    no_cache_flag,
    print_json,
    say,
    waiting,
)
from layoutproof.cli.fixing import Fixing, diff_option, fix_option, say_repair, with_repair

if TYPE_CHECKING:
    from layoutproof.questions.same_answer import SameDocument


@click.command()
@click.argument("place", metavar="MODULE:FUNCTION|FILE.py:FUNCTION", shell_complete=complete_file)
@click.option("--reference", required=True, metavar="MODULE:FUNCTION", help="The function that says what is right.")
@args_options("bf16[4096,512], or a Python literal. In order.")
@click.option("--inputs", metavar="MODULE:FUNCTION", help="A function that makes the arguments, tables among them.")
@click.option("--output", "outputs", type=int, multiple=True, help="Compare only this output, from 0; repeatable.")
@click.option("--points", type=click.IntRange(1, 100), default=3, show_default=True, help="Random points.")
@click.option("--gradient", is_flag=True, help="Compare the gradients, for random cotangents.")
@click.option("--assume", metavar="CONDITION", multiple=True, help='Of tables, and drawn integers: "0 <= args[1] < 8".')
@click.option("--where", metavar="CONDITION", multiple=True, help='Of sizes of the running program: "grid1 <= 7".')
@click.option("--reduced", is_flag=True, help="Compare at the smallest sizes that keep every kind of program.")
@click.option("--target", shell_complete=complete_target, metavar="NAME", help="The TPU to trace for, e.g. v5e.")
@click.option("--strict", is_flag=True, help="Sampled is not enough: exit code 3.")
@fix_option
@diff_option
@no_cache_flag
@json_flag
def command(
    place: str,
    reference: str,
    args: tuple[str, ...],
    inputs: str | None,
    outputs: tuple[int, ...],
    points: int,
    gradient: bool,
    assume: tuple[str, ...],
    where: tuple[str, ...],
    reduced: bool,
    target: str | None,
    strict: bool,
    fix: bool,
    diff: bool,
    as_json: bool,
) -> int:
    """Compare the values of a function with those of a reference.

    Both are traced on shapes. Sums of products are compared as relations, which prove; the rest is walked over at
    random points of prime fields: no device, no tolerance. Sampled: no difference at these points, over the reals, at
    these sizes; that is not proved. Refuted: an element differs, shown on float64. Exit code 0 proved or sampled, 1
    refuted, 3 unknown. Kernels are those of TPUs, and of Mosaic GPU. With --fix the function's file is
    edited in one place, in many ways in turn; the first edit after which values and places are judged right is
    written, or shown by --diff.

    \b
    Example:
      layoutproof same ops.py:rms --reference ops.py:norm --args "f32[64,256]"
    """
    from layoutproof.core.result import Verdict
    from layoutproof.questions.same import same

    if inputs is not None and args:
        raise click.UsageError(problems.INPUTS_WITH_ARGUMENTS())
    if _spelled(place) == _spelled(reference):
        raise click.UsageError(problems.COMPARED_WITH_ITSELF(place))
    if diff and not fix:
        raise click.UsageError(problems.DIFF_WITHOUT_FIX())
    if fix and (inputs is not None or outputs or gradient or reduced):
        raise click.UsageError(problems.FIX_WITH_INPUTS())
    answer = same(
        place, reference, *args, where=where, assume=assume, inputs=inputs, outputs=list(outputs) or None,
        points=points, target=target, gradient=gradient, reduced=reduced, tick=_Progress().said,
    )  # fmt: skip
    code = 3 if strict and answer.verdict is Verdict.SAMPLED else answer.exit_code
    wanted = Fixing(diff) if fix else None
    if wanted is not None:
        from layoutproof.answers.of_repair import repair

        wanted.search(
            place,
            lambda tick: repair(
                place, *args, reference=reference, target=target, assume=assume, where=where, found=answer, tick=tick
            ),
        )
    if as_json:
        document: SameDocument = {**answer.as_dict(), "exit_code": code}
        return print_json(with_repair(document, wanted))
    say(str(answer))
    say_repair(wanted, code)
    return code


def _spelled(place: str) -> str:
    """A place, with the path of its file spelled in one way."""
    where, _, name = place.rpartition(":")
    return f"{os.path.realpath(where) if where.endswith('.py') else where}:{name}"


class _Progress:
    """Says what is done now, once a second at most."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def said(self, what: str) -> None:
        """what: in words."""
        if time.monotonic() - self._last > 1:
            self._last = time.monotonic()
            waiting(what)
