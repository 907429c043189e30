"""`layoutproof convert LAYOUT --to LANGUAGE`: the same layout as another tool writes it, with the proof.

In the list: layouts: Write a layout in another language where the two are proved equal.
"""

from __future__ import annotations

from typing import Annotated

import click

from layoutproof.cli.arguments import json_flag, layouts_of, print_json, say, target_option
from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.finding import FindingEntry, as_dict, exit_code
from layoutproof.core.result import Verdict


class ConvertDocument(Document):
    """A layout in another language."""

    subject: str
    to: str
    layout: Annotated[str | None, Doc("the text, where it is proved to be the same map")]
    nearest: str
    proof: FindingEntry


@click.command(name="convert")
@click.argument("layout")
@click.option("--to", "to", metavar="LANGUAGE", required=True, help="cute, axe, linear, xla, ..")
@target_option
@json_flag
def command(layout: str, to: str, target: str | None, as_json: bool) -> int:
    """Write LAYOUT in another language, if that is proved to be the same map.

    Prints the text, alone on stdout. If the nearest layout differs, prints the smallest element that differs.

    \b
    Example:
      layoutproof convert "f32[4,8]{1,0:T(2,4)}" --to cute
    """
    from layoutproof.questions.convert import attempt

    (read,) = layouts_of((layout,), target)
    found = attempt(read, to)
    proved = found.result.verdict is Verdict.PROVED
    if as_json:
        document: ConvertDocument = {
            **envelope(exit_code([found.result])),
            "subject": str(read),
            "to": to,
            "layout": str(found.layout) if proved else None,
            "nearest": str(found.layout),
            "proof": as_dict(found.result),
        }
        return print_json(document)
    if proved:
        say(str(found.layout))
    else:
        say(str(found.result))
    return exit_code([found.result])
