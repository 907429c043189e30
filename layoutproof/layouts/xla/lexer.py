"""Tokens and extents of XLA shape text.

Source: openxla/xla at 183fa00cb5, `xla/hlo/parser/hlo_lexer.cc` (LexToken, LexInt64Impl) and
`hlo_parser.cc` ParseDimensionSizes. Size expressions in `[..]` are ours; XLA has integers, `<=n` and `?` only.
"""

from __future__ import annotations

import re

from layoutproof.core import problems as core_problems
from layoutproof.core.bounds import MOST_FACTORS, MOST_TERMS, check_box
from layoutproof.core.cursor import Cursor, tokens
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.size import Extent, Size, surely_less, symbol, symbols_of
from layoutproof.layouts.xla import problems

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64 = 2**64
MAX_RANK = 1000
MAX_DIGITS = 20
# A product of many sums has exponentially many terms; real sizes have a handful.
MAX_OPERATORS, MAX_PARENTHESES = 1000, 50

SKIPPED = r"(?:[ \t\r\n]++|/\*[^\0*]*+(?:\*(?!/)[^\0*]*+)*+\*/|//[^\r\n\0]*+)*+"
TOKEN = tokens(r"[A-Za-z_][A-Za-z0-9_.\-]*+", r"<=|[\[\](){},:*#+~?]", skipped=SKIPPED)
# Inside [..] a minus is an operator; any other visible character is a token, so that the message can show the extent.
EXTENT_TOKEN = tokens(r"[A-Za-z_][A-Za-z0-9_]*+", r"<=|[!-~]", r"[0-9]++", SKIPPED)
_SKIP = re.compile(SKIPPED)
_EXTENT_TEXT = re.compile(r"[^,\[\]{}\s]*")


class XlaCursor(Cursor):
    """A cursor over text that XLA's lexer reads.

    `strict` chooses the mode of `text.parse`; `fast` allows its one-regex path. `problem` is the first error that XLA
    overlooks; it explains a later one. `operators` counts those of sizes.
    """

    __slots__ = ("fast", "operators", "problem", "strict")

    def __init__(
        self, text: str, strict: bool, fast: bool = True, pattern: re.Pattern[str] = TOKEN, at: int = 0
    ) -> None:
        self.strict = strict
        self.fast = fast
        self.problem: LayoutError | None = None
        self.operators = 0
        super().__init__(text, pattern, at)

    def integer(self, what: str) -> int:
        """The int here, as int64. Mode `xla` reads 2**63 and up as negative, as XLA does; mode `strict` refuses it."""
        if self.kind != "int":
            raise self.expected(what)
        value = self.checked_int()
        if value > INT64_MAX:
            if self.strict:
                raise self.refuse(problems.INT64(value, INT64_MAX))
            value -= UINT64
        self.advance()
        return value

    def checked_int(self) -> int:
        """The value of this int token, within what XLA's lexer reads: INT64_MIN .. UINT64_MAX."""
        return self.number(MAX_DIGITS, INT64_MIN, UINT64)

    def no_token(self) -> LayoutError:
        """The error that no token can start after this one: comments are skipped."""
        skipped = _SKIP.match(self.text, self.end)
        at = skipped.end() if skipped else self.end
        if self.text.startswith("/*", at):
            return self.refuse(problems.COMMENT(), at)
        return self.refuse(core_problems.CHARACTER(self.text[at]), at)


def read_extents(cursor: XlaCursor, element_type: str) -> tuple[tuple[Extent, ...], tuple[str, ...]]:
    """The extents `[..]` at the cursor and how each is dynamic, as `XlaLayout.dims` and `.dynamic`.

    Mode `strict` also takes size expressions: + - * over names, ints and parentheses, at least 1 for all sizes.
    """
    if cursor.kind != "[":
        raise cursor.expected(f"[ and the dimensions after {element_type}")
    if cursor.strict:
        cursor.pattern = EXTENT_TOKEN
    cursor.advance()
    dims: list[Extent] = []
    dynamic: list[str] = []
    while cursor.kind != "]" or dims:
        if len(dims) == MAX_RANK:
            raise cursor.refuse(problems.RANK(MAX_RANK))
        extent, how = _extent(cursor, len(dims))
        dims.append(extent)
        dynamic.append(how)
        if cursor.kind != ",":
            break
        cursor.advance()
    if cursor.kind != "]":
        raise cursor.expected("] after the dimensions")
    if cursor.strict:
        try:
            check_box([extent for extent in dims if type(extent) is not int], f"the shape of {element_type}")
        except LayoutError as error:
            raise cursor.refuse(error.problem) from None
    cursor.pattern = TOKEN
    cursor.advance()
    if "?" in dynamic:
        named = symbols_of(e for e, how in zip(dims, dynamic, strict=True) if how != "?")
        for number, how in enumerate(dynamic):
            if how == "?" and f"d{number}" in named:
                raise cursor.refuse(problems.QUESTION_MARK_NAME(number))
    return tuple(dims), tuple(dynamic)


def _extent(cursor: XlaCursor, number: int) -> tuple[Extent, str]:
    start = cursor.start
    if cursor.kind == "?":
        cursor.advance()
        return symbol(f"d{number}"), "?"
    dynamic = "<=" if cursor.kind == "<=" else ""
    if dynamic:
        cursor.advance()
    if not cursor.strict:
        if cursor.kind == "name":
            raise cursor.refuse(problems.NO_DIMENSION(shorten(cursor.word, 40)))
        value: Extent = cursor.integer(f"an integer for dimension {number}")
        # Shape::kUnboundedSize is INT64_MIN, so this spelling of it is the same as "?"
        if dynamic and value == INT64_MIN:
            return symbol(f"d{number}"), "?"
    else:
        value = _sum(cursor, start, 0)
        if cursor.kind not in (",", "]"):
            raise _not_an_extent(cursor, start, ", or ] after the dimension")
    if isinstance(value, Size):
        if not surely_less(0, value):
            raise cursor.refuse(
                problems.EXTENT_LEAST(number, value),
                start,
            )
    elif not 0 <= value <= INT64_MAX:
        rule = "extents are not negative" if value < 0 else f"the largest extent is {INT64_MAX}"
        raise cursor.refuse(problems.DIMENSION_RULE(number, value, rule), start)
    return value, dynamic


def read_size(cursor: XlaCursor) -> Extent:
    """The size expression at the cursor, an int or a `Size`, as `read_extents` reads each; not checked to be >= 1.

    The cursor's pattern must be `EXTENT_TOKEN` since before this token.
    """
    return _sum(cursor, cursor.start, 0)


def _sum(cursor: XlaCursor, start: int, depth: int) -> Extent:
    total = _product(cursor, start, depth)
    while cursor.kind in ("+", "-"):
        sign = 1 if cursor.kind == "+" else -1
        cursor.advance()
        total = _bounded(cursor, start, total + sign * _product(cursor, start, depth))
    return total


def _product(cursor: XlaCursor, start: int, depth: int) -> Extent:
    total = _factor(cursor, start, depth)
    while cursor.kind == "*":
        cursor.advance()
        total = _bounded(cursor, start, total * _factor(cursor, start, depth))
    return total


def _factor(cursor: XlaCursor, start: int, depth: int) -> Extent:
    sign = 1
    while cursor.kind == "-":
        sign = -sign
        cursor.advance()
    if cursor.kind == "int":
        value: Extent = cursor.checked_int()
    elif cursor.kind == "name":
        value = symbol(cursor.word)
    elif cursor.kind == "(":
        if depth == MAX_PARENTHESES:
            raise cursor.refuse(problems.PARENTHESES(MAX_PARENTHESES))
        cursor.advance()
        value = _sum(cursor, start, depth + 1)
        if cursor.kind != ")":
            raise _not_an_extent(cursor, start, ") in the size")
    else:
        raise _not_an_extent(cursor, start, "a dimension: an integer, a size such as N or 2*N, <=size or ?")
    cursor.advance()
    return sign * value


def _bounded(cursor: XlaCursor, start: int, value: Extent) -> Extent:
    cursor.operators += 1
    if cursor.operators > MAX_OPERATORS:
        raise cursor.refuse(problems.OPERATORS(MAX_OPERATORS))
    terms = value.terms if isinstance(value, Size) else (((), value),)
    if len(terms) > MOST_TERMS or any(len(names) > MOST_FACTORS for names, _ in terms):
        limits = f"{MOST_TERMS} terms of {MOST_FACTORS} names each"
        raise cursor.refuse(problems.SIZE_TERMS(limits), start)
    if any(abs(coefficient) > INT64_MAX for _, coefficient in terms):
        raise cursor.refuse(problems.SIZE_INT64(INT64_MAX), start)
    return value


def _not_an_extent(cursor: XlaCursor, start: int, what: str) -> LayoutError:
    if cursor.text.startswith("/*", cursor.start):
        return cursor.refuse(problems.COMMENT())
    if cursor.kind == "end":
        hint = "; // starts a comment" if "//" in cursor.text else ""
        return cursor.refuse(problems.DIMENSIONS_END(hint))
    match = _EXTENT_TEXT.match(cursor.text, start)
    word = match[0] if match else ""
    if not word or start + len(word) < cursor.start:
        return cursor.expected(what)
    pieces = re.fullmatch(r"([0-9]{1,20})x([0-9]{1,20})", word)
    if pieces:
        fix = f"write {pieces[1]},{pieces[2]} for two dimensions, {pieces[1]}*{pieces[2]} for their product"
    elif re.fullmatch(r"[0-9.]+(?:[eE][0-9]+)?", word):
        fix = "extents are whole numbers, written with digits only"
    else:
        fix = "a dimension is an integer, <=integer, ?, or a size made of names, integers, + - * and parentheses"
    return cursor.refuse(problems.DIMENSION_FORM(shorten(word, 40), fix), start)
