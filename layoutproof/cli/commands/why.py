"""`layoutproof why TEXT|FILE|-`: what a pasted message means.

In the list: kernels and programs: Explain a pasted out-of-memory report or compiler message or shape.
"""

from __future__ import annotations

import os

import click

from layoutproof.cli.arguments import complete_file, complete_target, json_flag, no_cache_flag, print_json, say

_STYLES = (
    (r"(?m)^line [0-9]+: .*$", "bold"),
    (r"(?m)^  cause ", "bold red"),
    (r"(?m)^  unknown ", "bold magenta"),
    (r"(?m)^  fix ", "green"),
    (r"(?m)^  (said|note) ", "dim"),
)


@click.command()
@click.argument("given", metavar="TEXT|FILE|-", shell_complete=complete_file)
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=complete_target,
    help="The TPU generation that fixes are for; default v4 and later.",
)
@no_cache_flag
@json_flag
def command(given: str, target: str | None, as_json: bool) -> int:
    """Explain a message: the text itself, a file with a log, or - for standard input.

    Reads out-of-memory reports of TPUs and GPUs, the partitioner's warnings of full rematerialization, JAX's errors of
    shardings and donation, errors of Pallas kernels (shape casts, alignment, block shapes, layouts), lines of HLO and
    MLIR, bare shapes. Sizes are computed
    anew and compared with the printed ones; each fix is computed, too.

    Exit codes: 0 every cause is known, 1 a printed size is not the computed one, 2 nothing is known of the text, 3 a
    cause is not known; 1 over 2 over 3.

    \b
    Examples:
      layoutproof why "f32[1048576,8]{1,0:T(8,128)}"
      layoutproof why job.log --target v5e
    """
    from layoutproof.answers.of_messages import why

    answer = why(_text(given), target=target)
    if as_json:
        return print_json(answer.as_dict())
    say(str(answer), _STYLES)
    return answer.exit_code


def _text(given: str) -> str:
    """The text, or what a file holds that is named so."""
    from layoutproof.core.files import lines

    if given == "-" or (len(given) < 4096 and "\n" not in given and "\0" not in given and os.path.isfile(given)):
        with lines(given) as found:
            return "".join(found)
    return given
