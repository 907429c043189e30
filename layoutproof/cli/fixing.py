"""`--fix` and `--diff` of `kernels` and `same`: an edit that is judged right is written, or shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from layoutproof.cli.arguments import say, told_of
from layoutproof.core.document import Document

if TYPE_CHECKING:
    from layoutproof.answers.of_repair import Repair, RepairEntry

fix_option = click.option(
    "--fix",
    is_flag=True,
    help="Search for an edit of the function's file that is judged right, and write it. It is imported for each edit.",
)
diff_option = click.option("--diff", is_flag=True, help="With --fix: show the edit, and write nothing.")


class _Repaired(Document):
    """A command's answer with the key of `answers.of_repair.RepairedEntry`."""

    repair: RepairEntry | None


class Fixing:
    """One search for an edit. found: the edit, None where there is none.  written: whether it stands in the file."""

    def __init__(self, diff: bool) -> None:
        self.found: Repair | None = None
        self.written = not diff

    def search(self, place: str, repair: Callable[[Callable[[str], None]], Repair | None]) -> None:
        """Searches, and writes what is found where that is wanted. repair: is given what hears of each edit."""
        self.found = repair(lambda what: told_of(place, what))
        if self.found is not None and self.written:
            self.found.write()


def with_repair(document: Document, fixing: Fixing | None) -> Document:
    """A command's answer with what `--fix` found; as it is where that was not asked for."""
    if fixing is None:
        return document
    found = fixing.found
    repaired: _Repaired = {**document, "repair": None if found is None else found.as_dict(fixing.written)}
    return repaired


def say_repair(fixing: Fixing | None, exit_code: int) -> None:
    """The edit and what was judged of it. exit_code: of the file as it was; 0 where there is nothing to repair."""
    if fixing is None or exit_code == 0:
        return
    if fixing.found is None:
        say("no repair: no edit of one place that was tried is judged right")
        return
    say(f"{fixing.found}".rstrip())
    say("written" if fixing.written else "not written: --fix without --diff writes it")
    if fixing.found.doubt:
        say(fixing.found.doubt)
