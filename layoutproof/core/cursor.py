"""Reading text by hand: pieces of it that know where they stand, and a cursor over its tokens.

A `TextSpan` is cut at marks outside of brackets, for forms whose parts are read by somebody else (a size, a map). A
`Cursor` goes through tokens, for grammars. Every complaint is a LayoutError with the whole text and the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

from layoutproof.core import problems
from layoutproof.core.brackets import closing
from layoutproof.core.errors import LayoutError, shorten

T = TypeVar("T")

_OPENS = {")": "(", "]": "[", "}": "{"}


class TextSpan(NamedTuple):
    """A part of a text: the whole text, and from where (0-based) to where before."""

    text: str
    start: int
    end: int

    @classmethod
    def whole(cls, text: str) -> TextSpan:
        """All of a text."""
        return cls(text, 0, len(text))

    @property
    def word(self) -> str:
        """Its text."""
        return self.text[self.start : self.end]

    def part(self, start: int, end: int) -> TextSpan:
        """The part of the same text between two places of it, without the spaces around it.

        >>> TextSpan.whole("a = 5 ").part(3, 6)
        TextSpan(text='a = 5 ', start=4, end=5)
        """
        text = self.text
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        return TextSpan(text, start, end)

    def refuse(self, problem: str, at: int | None = None) -> LayoutError:
        """The error `problem` at a place of the text, by default where this begins."""
        return LayoutError(problem, text=self.text, column=(self.start if at is None else at) + 1)

    def read(self, make: Callable[[str], T]) -> T:
        """The value that `make` reads from its word; a LayoutError of `make` gets this place."""
        try:
            return make(self.word)
        except LayoutError as error:
            raise self.refuse(error.problem) from None

    def outside(self, marks: str) -> Iterator[re.Match[str]]:
        """Where a pattern matches outside of all brackets. LayoutError, once there, for brackets that do not match.

        >>> [found.start() for found in TextSpan.whole("(a,b),[c,d]").outside(",")]
        [5]
        """
        text, opened = self.text, list[int]()
        for found in _marks(marks).finditer(text, self.start, self.end):
            sign = found[0]
            if sign in _OPENING:
                opened.append(found.start())
            elif sign in _OPENS:
                if not opened or text[opened.pop()] != _OPENS[sign]:
                    raise self.refuse(problems.CLOSES_NOTHING(sign), found.start())
            elif not opened:
                yield found
        if opened:
            raise self.refuse(problems.NOT_CLOSED(text[opened[-1]]), self.end)

    def split(self, marks: str) -> list[TextSpan]:
        """The parts between the matches of a pattern outside of all brackets; one more than there are matches.

        >>> [part.word for part in TextSpan.whole("8, (a, b), ").split(",")]
        ['8', '(a, b)', '']
        """
        found, begin = [], self.start
        for match in self.outside(marks):
            found.append(self.part(begin, match.start()))
            begin = match.end()
        return [*found, self.part(begin, self.end)]

    def cut(self, marks: re.Pattern[str]) -> list[TextSpan]:
        """The parts between all matches of a pattern, those within brackets too.

        >>> [line.word for line in TextSpan.whole("a (b; c)").cut(re.compile(";"))]
        ['a (b', 'c)']
        """
        found, begin, part = [], self.start, self.part
        for match in marks.finditer(self.text, begin, self.end):
            at, after = match.span()
            found.append(part(begin, at))
            begin = after
        found.append(part(begin, self.end))
        return found

    def inside(self, opening: str) -> TextSpan | None:
        """The text in its brackets, where all of it is in one pair that opens with one of these; else None.

        >>> TextSpan.whole("(2, (1, 0))").inside("([").word, TextSpan.whole("(2), (1)").inside("(")
        ('2, (1, 0)', None)
        """
        if self.start == self.end or self.text[self.start] not in opening:
            return None
        if closing(self.text, self.start) != self.end - 1:
            return None
        return self.part(self.start + 1, self.end - 1)


_OPENING = frozenset(_OPENS.values())


@lru_cache(maxsize=64)
def _marks(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"[()\[\]{{}}]|{pattern}")


def tokens(name: str, punctuation: str, integer: str = r"-?[0-9]++", skipped: str = r"\s*+") -> re.Pattern[str]:
    """The tokens of a grammar, as a `Cursor` takes them: patterns without groups, tried in the order below.

    skipped: stands between tokens.  integer, name, punctuation: the three kinds of token; the end of the text is one
    more.

    >>> [found.lastindex for found in tokens("[a-z]+", "[,:]").finditer("8,a")]
    [1, 3, 2, 4]
    """
    return re.compile(rf"{skipped}(?:({integer})|({name})|({punctuation})|(\Z))")


class Cursor:
    """One token of a text at a time.

    text: all of it.  kind: "int", "name", "end", or the punctuation itself; "" where no token can start.  word: the
    token.  start, end: where it stands (0-based).  pattern: made by `tokens`; another may take its place on the way,
    and reads from the next token on.
    """

    __slots__ = ("end", "kind", "pattern", "start", "text", "word")

    def __init__(self, text: str, pattern: re.Pattern[str], at: int = 0) -> None:
        """Stands at the first token from offset `at` on. LayoutError where none can start."""
        self.text = text
        self.pattern = pattern
        self.kind = self.word = ""
        self.start = self.end = at
        self.advance()

    def advance(self) -> None:
        """Moves to the next token. LayoutError where none can start."""
        match = self.pattern.match(self.text, self.end)
        if match is None:
            self.kind = ""
            raise self.no_token()
        group = match.lastindex or 0
        self.start, self.end = match.span(group)
        self.word = match[group]
        self.kind = self.word if group == 3 else ("", "int", "name", "", "end")[group]

    def move(self, at: int) -> None:
        """Moves to the first token from an offset on, as after a piece that another reader has read."""
        self.end = at
        self.advance()

    def peek(self) -> str:
        """The kind of the token after this one; "" if none can start there."""
        match = self.pattern.match(self.text, self.end)
        if match is None:
            return ""
        return match[3] or ("", "int", "name", "", "end")[match.lastindex or 0]

    @property
    def span(self) -> TextSpan:
        """This token in its text."""
        return TextSpan(self.text, self.start, self.end)

    def refuse(self, problem: str, at: int | None = None) -> LayoutError:
        """The error `problem` at offset `at`, by default at this token."""
        return LayoutError(problem, text=self.text, column=(self.start if at is None else at) + 1)

    def expected(self, what: str) -> LayoutError:
        """The error that something else stands here."""
        found = "the text ends" if self.kind == "end" else f"found '{shorten(self.word, 40)}'"
        return self.refuse(problems.EXPECTED(what, found))

    def take(self, kind: str, what: str) -> None:
        """Steps over a token of this kind. LayoutError for another one; `what` says what it would do."""
        if self.kind != kind:
            raise self.expected(f"{kind} {what}" if what else kind)
        self.advance()

    def took(self, kind: str) -> bool:
        """Steps over a token of this kind, if it is here."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def matched(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of a pattern from this token on; the cursor moves behind it. None, and it stays, for no match."""
        found = pattern.match(self.text, self.start)
        if found is not None:
            self.move(found.end())
        return found

    def number(self, digits: int, low: int, high: int) -> int:
        """The value of this int token. LayoutError above so many digits, below `low` and from `high` on.

        Digits are counted first: `int` takes quadratic time.
        """
        word = self.word
        if len(word) > digits:
            plain = word.lstrip("-0")
            if len(plain) > digits:
                shown = shorten(word, 40)
                raise self.refuse(problems.INTEGER_DIGITS(shown, digits))
            word = f"-{plain or 0}" if word[0] == "-" else plain or "0"
        value = int(word)
        if not low <= value < high:
            raise self.refuse(problems.INT64(value))
        return value

    def no_token(self) -> LayoutError:
        """The error that no token can start after this one."""
        rest = self.text[self.end :]
        at = self.end + len(rest) - len(rest.lstrip())
        return self.refuse(problems.CHARACTER(self.text[at]), at)
