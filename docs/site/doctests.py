"""For the reference: the examples of docstrings (`>>> ..`) are code, not text."""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

_EXAMPLE: Final = re.compile(r"^([ \t]*)>>> .*(?:\n(?![ \t]*$).+)*", re.MULTILINE)


def fenced(text: str) -> str:
    """A docstring with fences around each example; the tests show one."""
    return _EXAMPLE.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", text)


class Doctests(griffe.Extension):
    """Applies `fenced` to every docstring that is read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
