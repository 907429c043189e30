"""`layoutproof hlo FILE|DIR|-`: audit an HLO dump: padding, copies, bitcasts, entry layouts.

In the list: kernels and programs: Audit an HLO dump: its padding and copies and bitcasts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.arguments import VERDICTS, complete_target, json_flag, no_cache_flag, print_json, say, waiting

if TYPE_CHECKING:
    from layoutproof.hlo.found import Audit
    from layoutproof.programs.advice import Advice

_FIRST = 64
"""Lines of a file in a folder that are looked at for the start of a dump."""

_STYLES = (
    *VERDICTS,
    (r"(?m): (refuted|bad input); .*$", "bold red"),
    (r"(?m): unknown; .*$", "bold magenta"),
    (r"(?m)^  (?!fix )[a-zX][^:\n]*", "bold"),
    (r"(?m)^ +first .*$", "dim"),
    (r"(?m)^ +(yours|candidate): ", "green"),
)


@click.command()
@click.argument("path", metavar="FILE|DIR|-", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=complete_target,
    help="The TPU generation that better layouts are for; default v4 and later.",
)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Lines of each table.")
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@click.option("--try", "try_", is_flag=True, help="Compile text from before optimization with each candidate for less.")
@no_cache_flag
@json_flag
def command(path: Path, target: str | None, top: int, jobs: int, try_: bool, as_json: bool) -> int:
    """Audit an HLO dump (a file, packed by gzip or not; - for standard input; or all dumps in a folder).

    Reports padding and what would pad less, copies that change a layout, bitcasts proved or refuted, entry layouts, and
    whether two locations that name one buffer agree. Of a buffer assignment, compares each of XLA's sizes with ours.

    With --try, text from before optimization is compiled for --target (or for cpu) as it is and with each candidate:
    other layouts of parameters and results, donation, parameters held padded or reshaped. A candidate that lessens
    memory, copies or estimated cycles, and increases none of them, is a fix. The text of a compiled program cannot be
    compiled again: that is unknown, and `layoutproof compile --try` is for its function.

    Exit codes: 0 all proved, 1 something refuted, 2 the text is wrong or cut short (what was read is reported), 3
    something unknown; 1 over 2 over 3.

    \b
    Example:
      layoutproof hlo dump.txt --target v5e
    """
    from layoutproof.answers.of_dumps import (
        Audited,
        advice_of,
        audits_of,
        dumps_of,
        rules_and_target,
        texts_of,
        tried_text,
    )

    target, chip = rules_and_target(target, try_)
    files, others = dumps_of(path)
    audits: list[Audit] = []
    tried: list[Advice] = []
    each = texts_of(path, files, target) if try_ else ((a, "") for a in audits_of(path, files, target, jobs))
    for found, text in each:
        if not as_json:
            # each as soon as it is there
            say(("\n" if audits else "") + str(Audited((found,), (), target, top)), _STYLES)
        audits.append(found)
        if try_:
            tried.append(advice_of(found, text, chip, waiting))
            if not as_json:
                say(f"\n{tried_text(tried[-1])}", _STYLES)
    answer = Audited(tuple(audits), tuple(others), target, top, tuple(tried))
    if as_json:
        return print_json(answer.as_dict())
    if others:
        say(f"\n{answer.passed_over()}")
    return answer.exit_code
