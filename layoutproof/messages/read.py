"""All messages in a pasted text, explained."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import replace
from functools import cache
from types import ModuleType

from layoutproof.core.errors import LayoutError
from layoutproof.messages import problems, readers, shapes
from layoutproof.messages.explanation import Explanation, human
from layoutproof.messages.pasted import lines_of

_NAME = re.compile(r"\S{1,200}\.\w{1,6}")
"""How a file may be called."""
MOST_BYTES = 64 << 20
"""Of a text that is read."""


@cache
def _readers() -> tuple[ModuleType, ...]:
    """Each file of `layoutproof.messages.readers`, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(readers.__path__))
    return tuple(importlib.import_module(f"{readers.__name__}.{name}") for name in names)


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
        raise LayoutError(problems.TOO_LONG(len(text), MOST_BYTES))
    if not text.strip():
        raise LayoutError(problems.NOTHING_PASTED())
    lines = lines_of(text)
    found = [_agreeing(each) for reader in _readers() for each in reader.read(lines, target)]
    # what one reader explains another one need not call unknown
    told = {each.line for each in found if each.cause}
    found = [each for each in found if each.cause or each.line not in told]
    found = found or list(shapes.read(lines, target))
    if not found:
        absent = "; there is no file of that name" if _NAME.fullmatch(text.strip()) else ""
        raise LayoutError(
            problems.NOTHING_KNOWN(absent),
            text=text[:200],
        )
    return tuple(sorted(found, key=lambda each: each.line))


def _agreeing(one: Explanation) -> Explanation:
    """An explanation, without its cause where a size in its own text is not the computed one."""
    wrong = next((each for each in one.arrays if each.agrees is False), None)
    if wrong is None or not one.cause:
        return one
    reason = (
        f"{wrong.shape} is printed with {wrong.printed} and takes {human(wrong.size)}: what this text is about is not "
        f"what "
        "was computed, so no cause is given"
    )
    return replace(one, cause="", reason=reason, fixes=())
