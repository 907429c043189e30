"""Messages that one pattern each finds: the patterns of a reader with what each means, and the loop over the lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from layoutproof.core.errors import shorten
from layoutproof.messages.explanation import Explanation
from layoutproof.messages.pasted import PastedLine, search, unwrapped

AFTER = 14
"""Lines after a message in which its operation and location stand."""
SPEC = r"((?:PartitionSpec|P)?\((?:[^()]|\([^()]{0,60}\)){0,200}\))"
"""A PartitionSpec as JAX prints it: by its whole name before jax 0.7."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a message says. cause: one sentence, "" for unknown.  reason: why it is unknown.  fixes: what to do."""

    cause: str
    fixes: tuple[str, ...] = ()
    reason: str = ""


Kind = tuple[re.Pattern[str], Callable[[re.Match[str], str], Told]]
"""A pattern, and what it means: from its match and the lines from there on, as one text."""


def explained(
    kind: str,
    kinds: tuple[Kind, ...],
    lines: Sequence[PastedLine],
    notes: Callable[[str], tuple[str, ...]] = lambda block: (),
) -> Iterator[Explanation]:
    """The messages of these kinds in a text, each once.

    kind: the name of what they are.  kinds: the first that matches a line is taken.  lines: of the text.  notes: what
    else the lines from a message on say.
    """
    seen: set[tuple[str, Told]] = set()
    known = _any(tuple(pattern for pattern, _ in kinds))
    for at, line in enumerate(lines):
        if not known.search(unwrapped(lines, at)):
            continue
        for pattern, explain in kinds:
            match = search(pattern, lines, at)
            if match is None:
                continue
            block = "\n".join(each.text for each in lines[at : at + AFTER])
            told = explain(match, block)
            said = shorten(line.text[match.start() :].strip(), 160)
            if (said, told) not in seen:
                seen.add((said, told))
                yield Explanation(kind, line.number, said, told.cause, told.reason, (), told.fixes, notes(block))
            break


@cache
def _any(patterns: tuple[re.Pattern[str], ...]) -> re.Pattern[str]:
    """Any of them: most lines of a log are none, and are read once."""
    return re.compile("|".join(f"(?:{re.sub(r'[(][?]P<[a-z]+>', '(', pattern.pattern)})" for pattern in patterns))


def sizes_in(text: str) -> tuple[int, ...]:
    """The numbers that a shape prints.

    >>> sizes_in("(8, 128)")
    (8, 128)
    """
    return tuple(int(n) for n in re.findall(r"\d+", text))


def next_multiple(size: int, step: int) -> int:
    """The least multiple of a step that is at least a size.

    >>> next_multiple(96, 128), next_multiple(256, 128)
    (128, 256)
    """
    return -(-size // step) * step
