"""`layoutproof hlo FILE|DIR|-`: audit an HLO dump: padding, copies, bitcasts, entry layouts."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.arguments import json_flag, print_json, say
from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import DUMP_ENDS, lines
from layoutproof.core.finding import exit_code

if TYPE_CHECKING:
    from layoutproof.hlo.found import Audit

_FIRST = 64
"""Lines of a file in a folder that are looked at for the start of a dump."""

_STYLES = (
    (r"(?m)^(refuted|error) ", "bold red"),
    (r"(?m)^unknown ", "bold magenta"),
    (r"(?m): proved$", "bold green"),
    (r"(?m): (refuted|bad input)$", "bold red"),
    (r"(?m): unknown$", "bold magenta"),
    (r"(?m)^  [a-zX][^:\n]*", "bold"),
    (r"(?m)^ +first .*$", "dim"),
    (r"\bfix: ", "green"),
)


@click.command()
@click.argument("path", metavar="FILE|DIR|-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--target", metavar="NAME", help="The TPU generation that better layouts are for; default v4 and later.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Lines of each table.")
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@json_flag
def command(path: Path, target: str | None, top: int, jobs: int, as_json: bool) -> int:
    """Audit an HLO dump (a file, packed by gzip or not; - for standard input; or all dumps in a folder).

    Reports padding and what would pad less, copies that change a layout, bitcasts proved or refuted, entry layouts, and
    whether two locations that name one buffer agree. Of a buffer assignment, compares each of XLA's sizes with ours.

    Exit codes: 0 all proved, 1 something refuted, 2 the text is wrong or cut short (what was read is reported), 3
    something unknown; 1 over 2 over 3.
    """
    from layoutproof.hlo import report

    if target is not None:
        from layoutproof.hardware.tpu_chips import generation

        target = generation(target)
    files, others = _dumps(path)
    audits: list[Audit] = []
    work = partial(_audited, target=target, alone=files == [path])
    for found in spread(work, files, Workers(jobs)):
        if not as_json:
            say(("\n" if audits else "") + report.as_text(found, top, target), _STYLES)
        audits.append(found)
    if as_json:
        return print_json(report.as_json(audits, others, top, target))
    if others:
        say(f"\nnot HLO text, not read: {', '.join(others[:top])}" + (" .." if len(others) > top else ""))
    return exit_code(finding for audit in audits for finding in audit.findings())


def _audited(file: Path, target: str | None, alone: bool) -> Audit:
    from layoutproof.hlo.audit import audit_file
    from layoutproof.hlo.found import Audit
    from layoutproof.hlo.gc_pause import gc_disabled

    try:
        with gc_disabled():
            return audit_file(file, target)
    except LayoutError as error:
        if alone:
            raise
        # what cannot be read hides nothing of what lies beside it
        return Audit(file.as_posix(), errors=[error])


def _dumps(path: Path) -> tuple[list[Path], list[str]]:
    """The dumps that a path means, and the texts beside them that are none. LayoutError when there is no dump."""
    if not path.is_dir():
        return [path], []
    texts = sorted(each for each in path.iterdir() if each.name.endswith(DUMP_ENDS) and not each.is_dir())
    dumps = [each for each in texts if _is_dump(each)]
    if not dumps:
        raise LayoutError(f"{path}: no HLO dump here: no .txt or .hlo file has a line that starts with HloModule")
    return dumps, [each.name for each in texts if each not in dumps]


def _is_dump(path: Path) -> bool:
    from layoutproof.hlotext.lines import STARTS

    try:
        with lines(path) as text:
            return any(line.startswith(STARTS) for line in islice(text, _FIRST))
    except LayoutError:
        return True  # unknown; the audit says why
