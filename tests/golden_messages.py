"""The words of the messages that tests assert by id, one of each.

What the readers refuse is shown as it is written on the tests' own cases; of a message that a test asserts by `Said`
the template is shown.

    python -m tests.golden_messages

writes `tests/golden/messages.md` anew. A message whose words are bettered changes one line there, and no test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from layoutproof.core.errors import LayoutError
from layoutproof.core.message import Message
from layoutproof.layouts import axe
from tests.layouts import test_axe_text, test_kernel_refused, test_xla_text
from tests.ratchet import suite
from tests.said import templates

PAGE = Path(__file__).with_name("golden") / "messages.md"


def cases() -> Iterator[Callable[[], object]]:
    """What the tests read, and is refused."""
    for value, *_ in (*test_axe_text.BAD_TEXTS, *test_axe_text.BAD_MAPPINGS):
        yield partial(axe.read, value)
    for text in test_xla_text.REFUSALS:
        yield partial(test_xla_text.parse, text)
    for made, rows in (
        (test_kernel_refused.kernel, test_kernel_refused.WRONG_KERNELS),
        (test_kernel_refused.operand, test_kernel_refused.WRONG_OPERANDS),
    ):
        for fields, _ in rows:
            yield partial(made, **fields)


def asserted() -> list[str]:
    """The ids that tests assert by `Said`, or whose words they look for in what a command prints."""
    return sorted(
        {
            id
            for text in suite().values()
            for id in re.findall(r'\b(?:Said|words|stretch)(?:_of)?\(\s*"([a-z0-9_]+\.\w+)"', text)
        }
    )


def table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Ids and words as Markdown."""
    shown = [f"| `{id}` | {words.replace('|', chr(92) + '|')} |" for id, words in rows]
    return ["| id | words |", "|---|---|", *shown, ""]


def page() -> str:
    """One row for each id, by id; of several cases the first."""
    found: dict[str, str] = {}
    for read in cases():
        try:
            read()
        except LayoutError as error:
            if isinstance(error.problem, Message):
                found.setdefault(error.problem.id, error.problem)
    known = templates()
    lines = ["# Messages", "", "Made by `python -m tests.golden_messages`.", "", *table(sorted(found.items()))]
    lines += ["## Templates", "", *table((id, known[id].words) for id in asserted() if id in known and id not in found)]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
