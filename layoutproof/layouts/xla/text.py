"""Reading XLA's text for shapes with layouts, e.g. `bf16[4096,11008]{1,0:T(8,128)(2,1)}`.

Source: openxla/xla at 183fa00cb5 (2026-08-22): `xla/hlo/parser/hlo_parser.cc` (ParseShape, ParseLayout, ParseTiles,
ParseSplitConfigs), `xla/layout_util.cc` (ValidateLayoutForShape), `xla/layout.cc` (Layout::Print),
`xla/shape_util.cc` (PrintHumanStringWithLayout). Whether a layout has a meaning is decided elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import replace

from layoutproof.core.bounds import check_length
from layoutproof.core.element_types import near_type
from layoutproof.core.errors import shorten
from layoutproof.core.message import located
from layoutproof.layouts.xla import problems
from layoutproof.layouts.xla.layout_text import read_layout
from layoutproof.layouts.xla.lexer import MAX_RANK, XlaCursor, read_extents
from layoutproof.layouts.xla.shape import ELEMENT_BITS, XlaLayout, XlaOpaque, XlaShape, XlaTuple
from layoutproof.layouts.xla.text_rules import wrong_in_tuple

MAX_DEPTH = 100
_INTS = r"[0-9]{1,18}+(?:,[0-9]{1,18}+)*+"
_COMMON = re.compile(
    rf"([a-z][a-z0-9]*+)\[({_INTS}|)\]"
    rf"(?:\{{(?:({_INTS})|(?=:))(?::(?:T((?:\({_INTS}\))++))?(?:E\(([0-9]{{1,4}}+)\))?(?:S\(([0-9]{{1,2}}+)\))?)?\}})?"
    r"(?=[,)]|\Z)"
)


def parse(text: str, mode: str = "strict") -> XlaShape:
    """The shape that `text` writes; a missing layout is the default, the last dimension fastest.

    Mode "strict" takes what XLA's parser and ValidateLayoutForShape both take, less what has no meaning (`T()`, a
    trailing `*`, S outside int8, sparse leftovers), plus size expressions such as `f32[2*N,M]`.
    Mode "xla" takes exactly what XLA takes, quirks included, save what aborts XLA. Tuples nest at most 100 deep.
    Raises LayoutError with the column of the trouble; ValueError for another mode.

    >>> parse("bf16[16,32]{1,0:T(8,128)(2,1)}").tiles
    ((8, 128), (2, 1))
    >>> parse("f32[3,5]{1,0:S(300)}", mode="xla").memory_space
    44
    """
    return _parse(text, mode, fast=True)


def _parse(text: str, mode: str, fast: bool) -> XlaShape:
    if mode not in ("strict", "xla"):
        raise ValueError(f"mode {mode!r} is neither 'strict' nor 'xla'")
    found = usual(text) if fast else None
    if found is not None:
        return found
    check_length(text)
    cursor = XlaCursor(text, mode == "strict", fast)
    shape = _shape(cursor, 0)
    if cursor.kind == "{":
        empty = cursor.peek() == "}"
        raise cursor.refuse(
            ("{} is not a layout" if empty else "'{' does not start a layout here")
            + ": after an array's dimensions write {minor_to_major}, e.g. {1,0}, or nothing for the default"
        )
    if cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_SHAPE(shorten(cursor.word, 40)))
    return shape


def usual(text: str) -> XlaLayout | None:
    """The array, if its text is of XLA's usual form and valid: a form that no other language has. None says nothing.

    >>> str(usual("f32[3,5]{1,0:T(2,2)}")), usual("f32[3,5] strides (4,1)")
    ('f32[3,5]{1,0:T(2,2)}', None)
    """
    common = _common(text, 0)
    return common[0] if common is not None and common[1] == len(text) else None


def _common(text: str, at: int) -> tuple[XlaLayout, int] | None:
    """The array at `at` and where it ends, if it is of the usual form and valid; None leaves it to the full parser."""
    match = _COMMON.match(text, at)
    if match is None:
        return None
    element_type, dims_text, order_text, tiles_text, bits, space = match.groups()
    dims = tuple(map(int, dims_text.split(","))) if dims_text else ()
    rank = len(dims)
    if element_type not in ELEMENT_BITS or rank > MAX_RANK:
        return None
    default = tuple(range(rank - 1, -1, -1))
    order = default
    if match.end() > match.end(2) + 1:
        order = tuple(map(int, order_text.split(","))) if order_text else ()
        if order != default and tuple(sorted(order, reverse=True)) != default:
            return None
    tiles: tuple[tuple[int, ...], ...] = ()
    if tiles_text:
        tiles = tuple([tuple(map(int, tile.split(","))) for tile in tiles_text[1:-1].split(")(")])
        if any(0 in tile for tile in tiles):
            return None
    shape = XlaLayout(
        element_type,
        dims,
        ("",) * rank,
        order,
        tiles,
        element_bits=int(bits) if bits else 0,
        memory_space=int(space) if space else 0,
    )
    return shape, match.end()


def _shape(cursor: XlaCursor, depth: int) -> XlaShape:
    if depth > MAX_DEPTH:
        raise cursor.refuse(problems.DEPTH(MAX_DEPTH))
    if cursor.kind == "name" and cursor.word == "b" and cursor.peek() == "(":
        cursor.advance()
        cursor.advance()
        start = cursor.start
        inner = _shape(cursor, depth + 1)
        if not isinstance(inner, XlaLayout) or inner.buffer:
            raise cursor.refuse(problems.BUFFER(), start)
        if cursor.kind != ")":
            raise cursor.expected(") after the array of b(..)")
        cursor.advance()
        return replace(inner, buffer=True)
    if cursor.kind == "(":
        return _tuple(cursor, depth)
    if cursor.fast and cursor.kind == "name":
        common = _common(cursor.text, cursor.start)
        if common is not None:
            cursor.end = common[1]
            cursor.advance()
            return common[0]
    return _array(cursor)


def _tuple(cursor: XlaCursor, depth: int) -> XlaTuple:
    elements: list[XlaShape] = []
    cursor.advance()
    while cursor.kind != ")" or elements:
        if elements and cursor.kind == ")":
            raise cursor.refuse(problems.TUPLE_COMMA())
        start = cursor.start
        element = _shape(cursor, depth + 1)
        problem = wrong_in_tuple(element) if isinstance(element, XlaLayout) else ""
        if problem:
            raise cursor.refuse(located("XLA validates what is in a tuple", problem), start)
        elements.append(element)
        if cursor.kind != ",":
            break
        cursor.advance()
    if cursor.kind != ")":
        raise cursor.expected(", or ) in the tuple")
    cursor.advance()
    return XlaTuple(tuple(elements))


def _array(cursor: XlaCursor) -> XlaLayout | XlaOpaque:
    element_type = cursor.word
    if cursor.kind != "name":
        raise cursor.expected("an element type such as f32, or ( for a tuple")
    opaque = element_type in ("token", "opaque")
    if not opaque and element_type not in ELEMENT_BITS:
        raise cursor.refuse(_unknown_type(element_type))
    cursor.advance()
    start = cursor.start
    dims, dynamic = read_extents(cursor, element_type)
    has_layout = cursor.kind == "{" and cursor.peek() in ("int", ":")
    if opaque:
        # XLA aborts the process on both (shape.h, Check failed: buffer != nullptr)
        if dims or has_layout:
            what = "dimensions" if dims else "layout"
            raise cursor.refuse(problems.WITHOUT_DIMENSIONS(element_type, what), start if dims else None)
        return XlaOpaque(element_type)
    shape = XlaLayout(element_type, dims, dynamic, tuple(range(len(dims) - 1, -1, -1)))
    return read_layout(cursor, shape) if has_layout else shape


def _unknown_type(word: str) -> str:
    shown = shorten(word, 40)
    if word in ("tuple", "buffer"):
        return f"'{word}' is not an element type: a tuple is written (f32[2], s32[]), a buffer b(f32[2])"
    lower = word.lower()
    if lower in ELEMENT_BITS:
        return f"upper case element type '{shown}': XLA writes element types in lower case: {lower}"
    return f"unknown element type '{shown}'{near_type(word)}"
