"""Brackets and strings in a text: where one is closed, and what stands between commas outside of all of them.

An unclosed string is looked for once: no quote behind it is closed either, so the rest is read without strings.
A reader that searched again at each quote would take time quadratic in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

QUOTED = r'"(?:[^"\\]|\\.?)*+("?)'
"""A string in double quotes; its group is empty if it is unclosed, and it is then the rest of the text."""
_STRING = re.compile(QUOTED, re.DOTALL)
_COMMENT = re.compile(r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(\*/)?")
_MARKS = {
    signs: re.compile(rf"[{signs}]|{QUOTED}", re.DOTALL)
    for signs in (r"(){}\[\]", r"()\[\]", r"(){}\[\],", r"()\[\],", "{}")
}
_PLAIN = {signs: re.compile(rf"[{signs}]") for signs in _MARKS}


def _marks(signs: str, text: str, start: int = 0) -> Iterator[re.Match[str]]:
    """Where one of the signs, or a string, stands."""
    for found in _MARKS[signs].finditer(text, start):
        if found[1] == "":
            yield from _PLAIN[signs].finditer(text, found.start() + 1)
            return
        yield found


def without_strings(text: str) -> str:
    """The text without its quoted strings; an unclosed string stays.

    >>> without_strings('a="b, c" d="e')
    'a= d="e'
    """
    return _STRING.sub(lambda found: "" if found[1] else found[0], text)


def without_remarks(text: str) -> str:
    """The text without `/* .. */`; an unclosed comment stays.

    >>> without_remarks("a/*index=1*/ b /* c")
    'a b /* c'
    """
    return _COMMENT.sub(lambda found: "" if found[1] else found[0], text) if "/*" in text else text


def closing(text: str, start: int, curly: bool = True) -> int:
    """Where the bracket at `start` is closed, text in double quotes skipped; -1 where it is not.

    Brackets are counted, of whatever kind: whether `(` is closed by `]` is for the grammar around it to say.
    curly: whether `{` and `}` are brackets too.

    >>> closing('x={a="}", b={1}} y', 2), closing("(2, (1, 0)", 0)
    (15, -1)
    """
    depth = 0
    for found in _marks(r"(){}\[\]" if curly else r"()\[\]", text, start):
        mark = found[0]
        if mark in "({[":
            depth += 1
        elif mark in ")}]":
            depth -= 1
            if depth <= 0:
                return found.start() if depth == 0 else -1
    return -1


def closed(text: str) -> Iterator[int]:
    """Where a curly bracket is closed that stands within no other, or one that was never opened.

    >>> list(closed('a {b={1} c="}"} d {} }'))
    [14, 19, 21]
    """
    depth = 0
    for found in _marks("{}", text):
        if found[0] == "{":
            depth += 1
        elif found[0] == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                yield found.start()


def between_commas(text: str, curly: bool = True) -> list[str]:
    """The parts between the commas outside of brackets and quotes, stripped; always one or more.

    curly: as for `closing`.

    >>> between_commas("2, Element(8, (1, 0)),"), between_commas("")
    (['2', 'Element(8, (1, 0))', ''], [''])
    """
    found, depth, begin = [], 0, 0
    for match in _marks(r"(){}\[\]," if curly else r"()\[\],", text):
        mark = match[0]
        if mark == ",":
            if depth == 0:
                found.append(text[begin : match.start()].strip())
                begin = match.end()
        elif len(mark) == 1:
            depth += 1 if mark in "([{" else -1
    return [*found, text[begin:].strip()]
