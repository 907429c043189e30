"""Reading CuTe's text: `((4,2),(2,4)):((1,16),(4,32))`, `Sw<3,3,3> o 0 o (8,64):(64,1)`, `bf16 (8,128):(128,1)`.

Static integers may carry CuTe's underscore (`_8`). Extents, strides and the offset may be size expressions.
"""

from __future__ import annotations

import re

from layoutproof.core.bounds import check_length
from layoutproof.core.cursor import Cursor, TextSpan, tokens
from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_size
from layoutproof.core.message import located
from layoutproof.core.nested import leaves
from layoutproof.core.size import Extent
from layoutproof.layouts.cute import problems
from layoutproof.layouts.cute.layout import CuteLayout, Swizzle, checked
from layoutproof.layouts.cute.nested import Nested, congruent, refill, show

LONGEST = 4096
"""Longest text in characters."""
DEEPEST = 32
"""Deepest nesting of a shape."""

_SWIZZLE = re.compile(r"\s*S(?:w|wizzle)?\s*<\s*(-?\d{1,4})\s*,\s*(-?\d{1,4})\s*,\s*(-?\d{1,4})\s*>\s*")
_PREFIX = re.compile(r"\s*([a-z][a-z0-9]*)\s+(?=[\w(])(?!o\s)")
_JOIN = re.compile(r"\s*(?:\bo\b|∘)\s*")
_STATIC = re.compile(r"(?<![\w])_(?=\d)")
_OFFSET = re.compile(r"([^():\s∘]+(?:\s+[^():\s∘]+)*?)\s*(?:\bo\b|∘)\s*")
_TOKEN = tokens(r"[^(),:\s](?:[^(),:]*[^(),:\s])?", r"[(),:]", integer=r"(?!)")
"""An extent or a stride is one token, read by `parse_size`."""


def parse(text: str) -> CuteLayout:
    """A CuTe layout from its text.

    Raises LayoutError with the column where the text goes wrong, and for shape and stride that are not nested alike,
    extents below 1, strides of unknown sign, a swizzle with |S| < B.

    >>> found = parse("bf16 Sw<3,3,3> o 0 o (_8,_64):(_64,_1)")
    >>> found.shape, found.stride, found.swizzle, found.element_type
    ((8, 64), (64, 1), Swizzle(bits=3, base=3, shift=3), 'bf16')
    """
    check_length(text, LONGEST)
    cursor = Cursor(text, _TOKEN)
    found = cursor.matched(_PREFIX)
    element_type = found[1] if found is not None else ""
    swizzle: Swizzle | None = None
    offset: Extent = 0
    if (found := cursor.matched(_SWIZZLE)) is not None:
        swizzle = Swizzle(int(found[1]), int(found[2]), int(found[3]))
        if cursor.matched(_JOIN) is None:
            raise cursor.refuse(problems.SWIZZLE_O())
        # left out, it is 0
        start = cursor.start
        if (found := cursor.matched(_OFFSET)) is not None:
            offset = _size(TextSpan(text, start, start + len(found[1])))
    elif "<" in text[cursor.start :]:
        raise cursor.refuse(problems.SWIZZLE_FORM())
    shape = _nested(cursor, 0)
    cursor.take(":", "between shape and stride")
    stride = _nested(cursor, 0)
    if cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_STRIDE())
    if not congruent(shape, stride):
        raise LayoutError(problems.NESTING(show(shape), show(stride)), text=text)
    return checked(CuteLayout(shape, stride, swizzle, offset, element_type), text)


def _nested(cursor: Cursor, depth: int) -> Nested:
    """An integer or a tuple of nested tuples; one past `DEEPEST` is refused, not followed."""
    if depth > DEEPEST:
        raise cursor.refuse(problems.SHAPE_DEPTH(DEEPEST))
    if cursor.kind == "name":
        value = _size(cursor.span)
        cursor.advance()
        return value
    if not cursor.took("("):
        raise cursor.expected("an integer, a size or '('")
    entries = [_nested(cursor, depth + 1)]
    while cursor.took(","):
        if cursor.kind == ")":
            break
        entries.append(_nested(cursor, depth + 1))
    cursor.take(")", "or ',' in a tuple")
    return tuple(entries)


def _size(span: TextSpan) -> Extent:
    # as CuTe prints static integers
    plain = _STATIC.sub("", span.word).strip()
    if "@" in plain:
        raise span.refuse(problems.AXIS_STRIDE(plain))
    if plain.isascii() and plain.isdigit() and len(plain) < 19 and (plain[0] != "0" or plain == "0"):
        return int(plain)
    return span.read(lambda _: parse_size(plain))


def from_nested(value: object, what: str) -> Nested:
    """A shape or stride of a mapping: integers, size expressions and lists of them.

    >>> from_nested([[4, "N"], 2], "shape")
    ((4, Size(N)), 2)
    """
    return _from_nested(value, what, 0)


def _from_nested(value: object, what: str, depth: int) -> Nested:
    if depth > DEEPEST:
        raise LayoutError(problems.DEPTH(what, DEEPEST))
    if type(value) is int:
        return value
    if isinstance(value, str):
        try:
            return parse_size(value)
        except LayoutError as error:
            raise LayoutError(located(what, error.problem)) from None
    if isinstance(value, list | tuple) and value:
        return tuple([_from_nested(entry, what, depth + 1) for entry in value])
    raise LayoutError(problems.LEAF(what, value))


def compact(shape: Nested, order: Nested) -> Nested:
    """Strides without gaps: leaves of smaller `order` are faster, equal ones from left to right (make_ordered_layout).

    >>> compact(((4, 2), 8), ((2, 3), 1))
    ((8, 32), 1)
    """
    extents = list(leaves(shape))
    ranked = sorted(enumerate(leaves(order)), key=lambda entry: (entry[1], entry[0]))
    strides: dict[int, Extent] = {}
    step: Extent = 1
    for leaf, _ in ranked:
        strides[leaf] = step
        step = step * extents[leaf]
    values = iter([strides[k] for k in range(len(extents))])
    return refill(shape, lambda _: next(values))
