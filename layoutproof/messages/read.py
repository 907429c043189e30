"""All messages in a pasted text, explained."""

from __future__ import annotations

import re

from layoutproof.core.errors import LayoutError
from layoutproof.messages import mosaic, out_of_memory, resharding, shapes
from layoutproof.messages.explanation import Explanation
from layoutproof.messages.pasted import lines_of

_NAME = re.compile(r"\S{1,200}\.\w{1,6}")
"""How a file may be called."""
MOST_BYTES = 64 << 20
"""Of a text that is read."""


def read(text: str, target: str | None = None) -> tuple[Explanation, ...]:
    """What the messages in a text mean, in the order of their lines.

    Args:
        text: As it was pasted; prefixes of loggers, colours and `\\n` as two characters do no harm.
        target: The TPU generation that fixes are computed for, None for v4 and later.

    Returns:
        One explanation for each message; of lines and shapes where there is no message.

    Raises:
        LayoutError: Nothing in the text is known.

    >>> [found] = read("Shared memory size limit exceeded: requested 4194304, available: 101376")
    >>> found.cause
    "the blocks of one program take 4194304 bytes of a GPU's shared memory, which has 101376"
    """
    if len(text) > MOST_BYTES:
        raise LayoutError(f"{len(text)} characters are pasted; at most {MOST_BYTES} are read: cut it to the message")
    if not text.strip():
        raise LayoutError("nothing is pasted: the text is empty")
    lines = lines_of(text)
    found = [each for reader in (out_of_memory, resharding, mosaic) for each in reader.read(lines, target)]
    found = found or list(shapes.read(lines, target))
    if not found:
        absent = "; there is no file of that name" if _NAME.fullmatch(text.strip()) else ""
        raise LayoutError(
            "nothing in the text is known: no out-of-memory report, resharding warning, error of Mosaic, line of HLO "
            f"or MLIR, or shape{absent}",
            text=text[:200],
        )
    return tuple(sorted(found, key=lambda each: each.line))
