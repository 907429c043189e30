"""Instructions that are not on one line each.

XLA's lexer takes line ends as any other space, and strings that it prints hold them. An instruction on one line is read
in `lines`; others are read here: an instruction over several lines, several on one line, comments in between.
Source: `hlo_lexer.cc` and `ParseInstruction`, `ParseInstructionRhs` of `hlo_parser.cc` of openxla/xla (2026-08).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from layoutproof.core.brackets import QUOTED, closing, without_remarks

_MARK = re.compile(r'"|/[*/]')
_TO_QUOTE = re.compile(QUOTED.removeprefix('"'), re.DOTALL)
_BLANK = re.compile(r"\s+")
_STRING = re.compile(QUOTED, re.DOTALL)
_HEAD = re.compile(r"(ROOT\s+)?%?([\w.\-]+)\s*=\s*")
_ARRAY = re.compile(r"[a-z]\w*+\[[^\]]*+\](?:\{[^}]*+\})?")
_OPCODE = re.compile(r"([a-z][\w\-]*)\s*(?=\()")
_BUFFER = re.compile(r"b\((?:[a-z]\w*\[|\()")
_NESTED = re.compile(r"[\w\-]\s*\(")
_KEY = re.compile(r"([A-Za-z_][\w\-]*)\s*=\s*")
_WORD = re.compile(r'[^\s,(){}\[\]"]+')
_LAYOUT = re.compile(r"\{[^{}]*+\}")
_BEGINS = re.compile(r"(?:ENTRY\s+)?%?[\w.\-]+\s*[({]")
MOST_LINES = 100_000
"""Lines of one instruction; a constant that is written out has a line for each of its rows."""


class InstructionText(NamedTuple):
    """One instruction as it is written. shape: "" where the text has none.  attributes: with `, `."""

    root: bool
    name: str
    shape: str
    opcode: str
    inside: str
    attributes: str
    line: int


class Gathered:
    """Lines as one text without comments, and what of it is still open; each line is looked at once.

    The ends of lines in a comment stay, so that lines can be counted.

    >>> Gathered('a /* b */ "/* c */" // d').text
    'a  "/* c */" '
    >>> [Gathered(text).is_open for text in ("add(b,", "add(b, c),", "add(b, c)", "ROOT a")]
    [True, True, False, True]
    """

    __slots__ = ("_called", "_depth", "_end", "_inside", "_last", "_pieces")

    def __init__(self, line: str = "") -> None:
        self._pieces, self._inside, self._depth = list[str](), "", 0
        self._end = self._last = ""
        self._called = False
        self.add(line)

    def add(self, line: str) -> None:
        """The next line, with its end."""
        at, length = 0, len(line)
        while at < length:
            if self._inside == '"':
                found = _TO_QUOTE.match(line, at)
                end = length if found is None else found.end()
                if found is not None and found[1]:
                    self._inside = ""
                self._add(line[at:end], quoted=True)
            elif self._inside:
                end = line.find("*/", at)
                self._inside = "" if end >= 0 else self._inside
                end = end + 2 if end >= 0 else length
                self._pieces.append("\n" * line.count("\n", at, end))
            else:
                mark = _MARK.search(line, at)
                end = length if mark is None else mark.start()
                self._add(line[at:end])
                if mark is not None and mark[0] == "//":
                    # to the end of the line
                    end = line.find("\n", end)
                    end = end if end >= 0 else length
                elif mark is not None:
                    self._inside = mark[0]
                    end = mark.end()
                    if self._inside == '"':
                        self._add('"', quoted=True)
            at = end

    def _add(self, piece: str, quoted: bool = False) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        if bare := piece.rstrip():
            self._end = bare[-1]
            if not quoted:
                self._last = bare[-1]
        if not quoted:
            self._depth += sum(map(piece.count, "([{")) - sum(map(piece.count, ")]}"))
            self._called = self._called or "(" in piece

    @property
    def text(self) -> str:
        """All of it."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    @property
    def is_quoted(self) -> bool:
        """Whether it ends inside a string."""
        return self._inside == '"'

    @property
    def goes_on(self) -> bool:
        """Whether a bracket, a string or a comment is not closed, or a comma ends it."""
        return bool(self._inside) or self._depth > 0 or self._last == ","

    @property
    def is_open(self) -> bool:
        """Whether it is no whole instruction yet: it goes on, `=` ends it, or it is one word."""
        return self.goes_on or self._end == "=" or (self._end not in (")", "]", "}") and not self._called)


def statements(text: str, line: int) -> tuple[list[InstructionText], str, str]:
    """(The instructions in a text without comments, the text after the computation's end, the mistake).

    line: the number of its first line. The text after the end is "" where the computation does not end, "}" and the
    rest where it does; the mistake is "" for none.

    >>> found, rest, wrong = statements("a = f32[] parameter(0) ROOT b =\\n add(a, a), metadata={} } c {", 7)
    >>> [(each.name, each.shape, each.opcode, each.line) for each in found], rest, wrong
    ([('a', 'f32[]', 'parameter', 7), ('b', '', 'add', 7)], '} c {', '')
    """
    found = list[InstructionText]()
    at, counted = _skipped(text, 0), 0
    while at < len(text):
        if text[at] == "}":
            return found, text[at:], ""
        line, counted = line + text.count("\n", counted, at), at
        one, end = _statement(text, at, line)
        if one is None:
            return found, "", f"not an instruction: {text[at : at + 80].strip()!r}"
        found.append(one)
        at = _skipped(text, end)
    return found, "", ""


def _statement(text: str, at: int, line: int) -> tuple[InstructionText | None, int]:
    """The instruction that begins somewhere, and where it ends; None where there is none, or only a part of it."""
    head = _HEAD.match(text, at)
    if head is None:
        return None, at
    start = at = head.end()
    opcode = None if _BUFFER.match(text, at) else _OPCODE.match(text, at)
    if opcode is None:
        array = _ARRAY.match(text, at)
        if array is not None:
            at = array.end()
        else:
            at += text.startswith("b(", at)
            at = closing(text, at) + 1 if text.startswith("(", at) else 0
        if at <= 0:
            return None, start
        opcode = _OPCODE.match(text, _skipped(text, at))
        if opcode is None:
            return None, start
    shape = _flat(text[start:at])
    begin = text.index("(", opcode.end())
    end = closing(text, begin)
    if end < 0:
        return None, start
    attributes, at = list[str](), end + 1
    while text.startswith(",", _skipped(text, at)):
        key = _KEY.match(text, _skipped(text, _skipped(text, at) + 1))
        until = _value(text, key.end()) if key is not None else -1
        if key is None or until < 0:
            return None, start
        attributes.append(f", {key[1]}={_flat(text[key.end() : until])}")
        at = until
    inside = _flat(text[begin + 1 : end])
    return InstructionText(bool(head[1]), head[2], shape, opcode[1], inside, "".join(attributes), line), at


def nested(inside: str) -> bool:
    """Whether there is an instruction among the operands, as people write it; XLA prints their names.

    >>> nested("f32[2]{0:T(8)} convert(%x), %y"), nested("(f32[2]{0:T(8)}, s32[]) %x, /*index=1*/%y")
    (True, False)
    """
    bare = _LAYOUT.sub("", without_remarks(inside))
    return "(" in bare and _NESTED.search(bare) is not None


def _value(text: str, at: int) -> int:
    """Where the value of an attribute ends; -1 where it is not there, or does not end."""
    begin = looked = at
    meshed = text.endswith("device_ids=", 0, begin)
    while at < len(text):
        mark = text[at]
        if mark in "([{":
            at = closing(text, at) + 1
            if at == 0:
                return -1
        elif mark == '"':
            string = _STRING.match(text, at)
            if string is None or not string[1]:
                return -1
            at = string.end()
        else:
            word = _WORD.match(text, at)
            if word is None:
                # `mesh['x'=2], device_ids=(1,0) {'x'}` has spaces in it, and no instruction begins with such a bracket
                after = _skipped(text, at)
                meshed, looked = meshed or text.find("mesh", looked, at) >= 0, max(begin, at - 3)
                if meshed and after > at > begin and text.startswith(("{", "["), after):
                    at = after
                    continue
                break
            at = word.end()
    return at if at > begin else -1


def header_of(text: str) -> tuple[str, str]:
    """A module's first line as XLA prints it, from one without comments that people wrote; and what follows it.

    The text itself, where it is none.

    >>> header_of("  HloModule m,\\n  is_scheduled=true,\\n replica_count=2\\n")
    ('HloModule m, is_scheduled=true, replica_count=2', '')
    """
    head = re.match(r"\s*HloModule\s+([^\s,]+)", text)
    if head is None:
        return text, ""
    said, at = [f"HloModule {head[1]}"], head.end()
    while text.startswith(",", _skipped(text, at)):
        key = _KEY.match(text, _skipped(text, _skipped(text, at) + 1))
        until = _value(text, key.end()) if key is not None else -1
        if key is None or until < 0:
            return text, ""
        said.append(f"{key[1]}={_flat(text[key.end() : until])}")
        at = until
    rest = text[at:].strip()
    return (", ".join(said), rest and f"{rest}\n") if not rest or _BEGINS.match(rest) else (text, "")


def _skipped(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _flat(text: str) -> str:
    """The text on one line."""
    return " ".join(line for each in text.split("\n") if (line := each.strip())) if "\n" in text else text.strip()
