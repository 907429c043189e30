"""Untrusted text, made harmless where it is shown.

A name in a spec file, in a dump, of a kernel, a file or a git revision may hold characters that a terminal obeys
(escape sequences, also the one-byte ones of C1), that reverse the order of a line (bidirectional overrides), that are
invisible, or that end the line; and a build server obeys whole lines: GitHub's runner takes `::error ..` at the start
of a line, blanks before it allowed, and `##[..]` anywhere in one (`ActionCommand.cs` of actions/runner). Their code
points are shown instead, as Python escapes them. Data for programs is unchanged: JSON escapes such characters.
"""

from __future__ import annotations

import re
from typing import Any

_COMMAND = re.compile(r"(?m)^([^\S\n]*+):(?=:)")
_UNUSUAL = re.compile("[^\n -~]")
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that Python takes for printable: Default_Ignorable_Code_Point of Unicode
(DerivedCoreProperties.txt), and the empty pattern of Braille."""


def visible(text: str) -> str:
    r"""One line of text without any character that a reader does not see as it is.

    >>> visible("a\x1b[31m\nb\u202ec"), visible("f32[3,5]{1,0} -> ok")
    ('a\\x1b[31m\\nb\\u202ec', 'f32[3,5]{1,0} -> ok')
    """
    if not text.isprintable() or not text.isascii():
        text = "".join(c if _is_seen(c) else ascii(c)[1:-1] for c in text)
    return text.replace("##[", "#\\x23[")


def visible_lines(text: str) -> str:
    r"""Some lines of text, each as `visible` shows it and none that a build server takes for a command.

    >>> visible_lines("all proved\n ::stop-commands::x")
    'all proved\n \\x3a:stop-commands::x'
    """
    return _COMMAND.sub(r"\1\\x3a", "\n".join(map(visible, text.split("\n"))))


def visible_data(value: Any) -> Any:
    """Plain data with every text in it, keys too, as `visible` shows it."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_data(key): visible_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(visible_data, value))
    return value


def json_text(value: object) -> str:
    r"""A value as JSON that a terminal can show: the same data, with unseen characters spelled as escapes.

    >>> print(json_text({"name": "a\u202eb\x9b"}))
    {
      "name": "a\u202eb\u009b"
    }
    """
    # outside of strings there are only blanks and ends of lines, which stay
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _UNUSUAL.sub(lambda c: c[0] if _is_seen(c[0]) else json.dumps(c[0])[1:-1], text)


def _is_seen(character: str) -> bool:
    return character.isprintable() and not _BLANK.match(character)
