"""Reading CuTe's text: `((4,2),(2,4)):((1,16),(4,32))`, `Sw<3,3,3> o 0 o (8,64):(64,1)`, `bf16 (8,128):(128,1)`.

Static integers may carry CuTe's underscore (`_8`). Extents, strides and the offset may be size expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Extent
from layoutproof.layouts.cute.layout import CuteLayout, Swizzle, checked
from layoutproof.layouts.cute.nested import Nested, congruent, leaves, refill, show

LONGEST = 4096
"""Longest text in characters."""
DEEPEST = 32
"""Deepest nesting of a shape."""

_SWIZZLE = re.compile(r"\s*S(?:w|wizzle)?\s*<\s*(-?\d{1,4})\s*,\s*(-?\d{1,4})\s*,\s*(-?\d{1,4})\s*>\s*")
_PREFIX = re.compile(r"\s*([a-z][a-z0-9]*)\s+(?=[\w(])(?!o\s)")
_ENTRY = re.compile(r"[^(),:]+")
_JOIN = re.compile(r"\s*(?:\bo\b|∘)\s*")


def parse(text: str) -> CuteLayout:
    """A CuTe layout from its text.

    Raises LayoutError with the column where the text goes wrong, and for shape and stride that are not nested alike,
    extents below 1, strides of unknown sign, a swizzle with |S| < B.

    >>> parse("bf16 Sw<3,3,3> o 0 o (_8,_64):(_64,_1)")
    CuteLayout(shape=(8, 64), stride=(64, 1), swizzle=Swizzle(bits=3, base=3, shift=3), offset=0, element_type='bf16')
    """
    if len(text) > LONGEST:
        raise LayoutError(f"a cute layout may have {LONGEST} characters; this one has {len(text)}", text=text[:80])
    reader = _Reader(text)
    element_type = ""
    if (found := _PREFIX.match(text)) is not None:
        element_type, reader.at = found[1], found.end()
    swizzle: Swizzle | None = None
    offset: Extent = 0
    if (found := _SWIZZLE.match(text, reader.at)) is not None:
        swizzle, reader.at = Swizzle(int(found[1]), int(found[2]), int(found[3])), found.end()
        reader.join("after a swizzle")
        offset = reader.offset()
    elif "<" in text[reader.at :]:
        reader.fail("a swizzle is written Sw<3,4,3>: bits, base, shift")
    shape = reader.nested()
    reader.expect(":", "between shape and stride")
    stride = reader.nested()
    reader.end()
    if not congruent(shape, stride):
        raise LayoutError(f"shape {show(shape)} and stride {show(stride)} are not nested alike", text=text)
    return checked(CuteLayout(shape, stride, swizzle, offset, element_type), text)


@dataclass
class _Reader:
    text: str
    at: int = 0

    def fail(self, problem: str) -> NoReturn:
        raise LayoutError(problem, text=self.text, column=self.at + 1)

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def expect(self, mark: str, where: str) -> None:
        self.space()
        if not self.text.startswith(mark, self.at):
            self.fail(f"expected '{mark}' {where}")
        self.at += len(mark)

    def join(self, where: str) -> None:
        found = _JOIN.match(self.text, self.at)
        if found is None:
            self.fail(f"expected 'o' {where}, as in Sw<3,3,3> o 0 o (8,64):(64,1)")
        self.at = found.end()

    def offset(self) -> Extent:
        """The `0 o` between swizzle and layout; 0 where it is left out."""
        found = re.compile(r"([^():]+?)\s*(?:\bo\b|∘)\s*").match(self.text, self.at)
        if found is None:
            return 0
        value = self.size(found[1])
        self.at = found.end()
        return value

    def nested(self, depth: int = 0) -> Nested:
        """An integer or a tuple of nested tuples; one past `DEEPEST` is refused, not followed."""
        if depth > DEEPEST:
            self.fail(f"a shape nested more than {DEEPEST} deep")
        self.space()
        if not self.text.startswith("(", self.at):
            found = _ENTRY.match(self.text, self.at)
            if found is None:
                self.fail("expected an integer, a size or '('")
            value = self.size(found[0])
            self.at = found.end()
            return value
        self.at += 1
        entries = []
        while True:
            entries.append(self.nested(depth + 1))
            self.space()
            if self.text.startswith(",", self.at):
                self.at += 1
                self.space()
                if not self.text.startswith(")", self.at):
                    continue
            self.expect(")", "or ',' in a tuple")
            return tuple(entries)

    def size(self, text: str) -> Extent:
        # as CuTe prints static integers
        plain = re.sub(r"(?<![\w])_(?=\d)", "", text).strip()
        if "@" in plain:
            self.fail(f"{plain}: a stride along a named axis is understood but not modelled; use the axe language")
        try:
            return parse_size(plain)
        except LayoutError as error:
            raise LayoutError(error.problem, text=self.text, column=self.at + 1) from None

    def end(self) -> None:
        self.space()
        if self.at < len(self.text):
            self.fail("nothing may follow the stride")


def from_nested(value: object, what: str) -> Nested:
    """A shape or stride of a mapping: integers, size expressions and lists of them.

    >>> from_nested([[4, "N"], 2], "shape")
    ((4, Size(N)), 2)
    """
    return _from_nested(value, what, 0)


def _from_nested(value: object, what: str, depth: int) -> Nested:
    if depth > DEEPEST:
        raise LayoutError(f"{what} is nested more than {DEEPEST} deep")
    if type(value) is int:
        return value
    if isinstance(value, str):
        try:
            return parse_size(value)
        except LayoutError as error:
            raise LayoutError(f"{what}: {error.problem}") from None
    if isinstance(value, list | tuple) and value:
        return tuple([_from_nested(entry, what, depth + 1) for entry in value])
    raise LayoutError(f"{what} is an integer, a size expression or a list of them, not {value!r}")


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
