"""Reading the text form of Axe layouts, with the column of every complaint."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from layoutproof.core.bounds import check_box
from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Extent
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter, admit
from layoutproof.layouts.axe.swizzle import Swizzle
from layoutproof.layouts.axe.values import AXIS, checked, positive

LONGEST = 100_000
"""Longest text in characters; longer ones are refused, not parsed."""

_CLAUSES = ("swizzle", "on", "within")
T = TypeVar("T")
Piece = tuple[str, int]
"""A part of the text, and its first character's number from 0."""


def parse(text: str) -> AxeLayout:
    """The layout that `text` writes.

    Several `R[..]` make one multiset, several offsets on one axis their sum. `R[2:4@gpu]` alone, or `S[] + ..`, is one
    element with replicas. Raises LayoutError with the column.

    >>> parse("S[(8,2):(4@lane,1)] + R[2:4@lane] + R[2:8@lane] + 3").R
    ((2, 4, 'lane'), (2, 8, 'lane'))
    >>> parse("S[(8,4):(1)]")
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: S has 2 extents but 1 strides; each extent has one stride
      S[(8,4):(1)]
       ^ column 2
    """
    if len(text) > LONGEST:
        raise LayoutError(f"an Axe layout may have {LONGEST} characters; this one has {len(text)}", text=text[:80])
    body, clauses = _clauses(text)
    shard: list[Iter] = []
    replicas: list[Iter] = []
    offset: dict[str, Extent] = {}
    started = False
    for number, (sign, piece) in enumerate(_terms(body, text)):
        letter = piece[0][:1]
        if piece[0][:2] in ("S[", "R["):
            if sign < 0:
                raise LayoutError(f"{letter} cannot be subtracted", text=text, column=piece[1] + 1)
            started = True
            if letter == "S" and number > 0:
                raise LayoutError("S stands once, and first", text=text, column=piece[1] + 1)
            (shard if letter == "S" else replicas).extend(_bracket(piece, text))
            continue
        if not started:
            break
        value, axis = _on_axis(piece, text)
        total = offset.get(axis, 0) + sign * value
        offset[axis] = total
    if not started:
        raise LayoutError("an Axe layout starts with S[extents:strides], or R[..] for one element", text=text, column=1)
    swizzle = _swizzle(clauses["swizzle"], text) if "swizzle" in clauses else None
    within = _within(clauses["within"], text) if "within" in clauses else None
    at = clauses["swizzle"][1] if swizzle is not None else 0
    layout = _at(lambda: checked(shard, replicas, offset, None, within, swizzle), text, at)
    if "on" not in clauses:
        return layout
    at = clauses["on"][1]
    scalar = "".join(clauses["on"][0].split()) == "()"
    shape = [] if scalar else [_size(piece, text) for piece in _tuple(clauses["on"], text)]
    _at(lambda: check_box(shape, "shape"), text, at)
    return _at(lambda: AxeLayout(layout.D, layout.R, layout.O, admit(layout, shape), within, swizzle), text, at)


def _clauses(text: str) -> tuple[Piece, dict[str, Piece]]:
    """The part before the first clause word, and each clause's rest."""
    starts: list[tuple[int, str]] = []
    depth, at = 0, 0
    while at < len(text):
        depth += (text[at] in "([") - (text[at] in ")]")
        if depth == 0 and text[at].isspace():
            word = next((w for w in _CLAUSES if re.match(rf"{w}[\s(]", text[at + 1 : at + 9])), None)
            if word is not None:
                starts.append((at, word))
                at += len(word)
        at += 1
    ends = [start for start, _ in starts[1:]] + [len(text)] * bool(starts)
    clauses: dict[str, Piece] = {}
    for (start, word), end in zip(starts, ends, strict=True):
        if word in clauses:
            raise LayoutError(f"'{word}' stands twice", text=text, column=start + 2)
        clauses[word] = (text[start + 1 + len(word) : end], start + 1 + len(word))
    return (text[: starts[0][0] if starts else len(text)], 0), clauses


def _terms(body: Piece, text: str) -> list[tuple[int, Piece]]:
    """The summands and their signs, split at + and - outside brackets."""
    terms: list[tuple[int, Piece]] = []
    start, sign, seen = 0, 1, False
    for at, char, depth in _walk(body[0], text):
        if depth == 0 and char in "+-" and seen:
            terms.append((sign, _trim((body[0][start:at], start))))
            start, sign, seen = at + 1, 1 if char == "+" else -1, False
        elif not char.isspace():
            # a sign right after a sign, as in `+ -3@m`, belongs to the number, and so does `*`, `//` before one
            seen = char not in "+-*/%"
    if not seen:
        raise LayoutError("a summand is missing", text=text, column=len(body[0]) + 1)
    return [*terms, (sign, _trim((body[0][start:], start)))]


def _bracket(piece: Piece, text: str) -> list[Iter]:
    part, start = piece
    letter = part[0]
    end = part.index("]")
    if end != len(part) - 1:
        raise LayoutError(f"'+' or the end must follow {letter}[..]", text=text, column=start + end + 2)
    inside = _split((part[2:-1], start + 2), ":", text)
    if all("".join(part.split()) in ("", "()") for part, _ in inside):
        return []
    if len(inside) > 2:
        raise LayoutError(f"{letter}[..] has one ':', between extents and strides", text=text, column=inside[2][1])
    extents = [_size(p, text, positive_=True) for p in _tuple(inside[0], text)]
    _at(lambda: check_box(extents, letter), text, start)
    if len(inside) == 1:
        # TVM: extents alone are row-major on m
        strides: list[tuple[Extent, str]] = []
        step: Extent = 1
        for extent in reversed(extents):
            strides.insert(0, (step, MEMORY))
            step = step * extent
    else:
        strides = [_on_axis(p, text) for p in _tuple(inside[1], text)]
    if len(strides) != len(extents):
        problem = f"{letter} has {len(extents)} extents but {len(strides)} strides; each extent has one stride"
        raise LayoutError(problem, text=text, column=start + 2)
    return [(extent, stride, axis) for extent, (stride, axis) in zip(extents, strides, strict=True)]


def _within(clause: Piece, text: str) -> dict[str, Extent]:
    bounds: dict[str, Extent] = {}
    for piece in _tuple(clause, text):
        extent, axis = _on_axis(piece, text)
        _at(lambda e=extent: positive(e, f"the extent {e}"), text, piece[1])  # type: ignore[misc]
        if axis in bounds:
            raise LayoutError(f"axis {axis} has two extents", text=text, column=piece[1] + 1)
        bounds[axis] = extent
    return bounds


def _swizzle(clause: Piece, text: str) -> Swizzle:
    part, start = _trim(clause)
    outer = part.startswith("outer")
    rest = (part[5:], start + 5) if outer else (part, start)
    numbers = [_size(piece, text) for piece in _tuple(rest, text)]
    if len(numbers) != 3 or not all(type(number) is int for number in numbers):
        problem = "a swizzle is written swizzle (per_element,swizzle_len,atom_len), three integers"
        raise LayoutError(problem, text=text, column=start + 1)
    per_element, swizzle_len, atom_len = (int(number) for number in numbers)
    return Swizzle(per_element, swizzle_len, atom_len, outer)


def _tuple(piece: Piece, text: str) -> list[Piece]:
    """The entries of `(a, b)`, or the one entry `a`."""
    part, start = _trim(piece)
    if part.startswith("(") and part.endswith(")") and _closes_at_end(part):
        entries = _split((part[1:-1], start + 1), ",", text)
        if len(entries) > 1 and not entries[-1][0]:
            entries.pop()
        return entries
    return [(part, start)]


def _closes_at_end(part: str) -> bool:
    depth = 0
    for at, char in enumerate(part):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return at == len(part) - 1
    return False


def _split(piece: Piece, mark: str, text: str) -> list[Piece]:
    part, start = piece
    pieces, begin = [], 0
    for at, char, depth in _walk(part, text, start):
        if depth == 0 and char == mark:
            pieces.append(_trim((part[begin:at], start + begin)))
            begin = at + 1
    return [*pieces, _trim((part[begin:], start + begin))]


def _walk(part: str, text: str, start: int = 0) -> list[tuple[int, str, int]]:
    """(position, character, depth of brackets) of each character; LayoutError where brackets do not match."""
    open_: list[str] = []
    found: list[tuple[int, str, int]] = []
    for at, char in enumerate(part):
        if char in ")]" and (not open_ or open_.pop() != {")": "(", "]": "["}[char]):
            raise LayoutError(f"{char!r} closes nothing", text=text, column=start + at + 1)
        found.append((at, char, len(open_)))
        if char in "([":
            open_.append(char)
    if open_:
        raise LayoutError(f"{open_[-1]!r} is not closed", text=text, column=start + len(part) + 1)
    return found


def _trim(piece: Piece) -> Piece:
    part, start = piece
    return part.strip(), start + len(part) - len(part.lstrip())


def _on_axis(piece: Piece, text: str) -> tuple[Extent, str]:
    part, start = piece
    number, mark, axis = part.rpartition("@")
    if not mark:
        return _size(piece, text), MEMORY
    name = axis.strip()
    if not AXIS.fullmatch(name):
        raise LayoutError(f"{name!r} is no axis; an axis is a name such as lane or m", text=text, column=start + 1)
    return _size((number, start), text), name


def _size(piece: Piece, text: str, positive_: bool = False) -> Extent:
    part, start = piece
    if not part.strip():
        raise LayoutError("a number is missing", text=text, column=start + 1)
    short = part.isascii() and part.isdigit() and len(part) < 20
    value = int(part) if short else _at(lambda: parse_size(part), text, start)
    if positive_:
        _at(lambda: positive(value, f"the extent {part.strip()}"), text, start)
    return value


def _at(make: Callable[[], T], text: str, start: int) -> T:
    """`make()`, with the place in the text put into its complaint."""
    try:
        return make()
    except LayoutError as error:
        raise LayoutError(error.problem, text=text, column=start + 1) from None
