"""Brackets in a text: where one is closed, and what stands between commas outside of all of them."""

from __future__ import annotations

import re

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_MARK = {True: re.compile(rf"[(){{}}\[\]]|{_QUOTED}"), False: re.compile(rf"[()\[\]]|{_QUOTED}")}
_MARK_OR_COMMA = {True: re.compile(rf"[(){{}}\[\],]|{_QUOTED}"), False: re.compile(rf"[()\[\],]|{_QUOTED}")}


def closing(text: str, start: int, curly: bool = True) -> int:
    """Where the bracket at `start` is closed, text in double quotes skipped; -1 where it is not.

    Brackets are counted, of whatever kind: whether `(` is closed by `]` is for the grammar around it to say.
    curly: whether `{` and `}` are brackets too.

    >>> closing('x={a="}", b={1}} y', 2), closing("(2, (1, 0)", 0)
    (15, -1)
    """
    depth = 0
    for found in _MARK[curly].finditer(text, start):
        mark = found[0]
        if mark in "({[":
            depth += 1
        elif mark in ")}]":
            depth -= 1
            if depth <= 0:
                return found.start() if depth == 0 else -1
    return -1


def between_commas(text: str, curly: bool = True) -> list[str]:
    """What stands between the commas outside of brackets and quotes, without the spaces around it; always one or more.

    curly: as for `closing`.

    >>> between_commas("2, Element(8, (1, 0)),"), between_commas("")
    (['2', 'Element(8, (1, 0))', ''], [''])
    """
    found, depth, begin = [], 0, 0
    for match in _MARK_OR_COMMA[curly].finditer(text):
        mark = match[0]
        if mark == ",":
            if depth == 0:
                found.append(text[begin : match.start()].strip())
                begin = match.end()
        elif len(mark) == 1:
            depth += 1 if mark in "([{" else -1
    return [*found, text[begin:].strip()]
