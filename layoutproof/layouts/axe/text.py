"""Reading the text form of Axe layouts, with the column of every complaint."""

from __future__ import annotations

import re

from layoutproof.core.bounds import check_box, check_length
from layoutproof.core.cursor import TextSpan
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Extent
from layoutproof.layouts.axe import problems
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter, admit
from layoutproof.layouts.axe.swizzle import Swizzle
from layoutproof.layouts.axe.values import AXIS, checked, positive

LONGEST = 100_000
"""Longest text in characters; longer ones are refused, not parsed."""

_CLAUSE = r"\s(?=(?:swizzle|on|within)[\s(])"
_SIGN = "[+-]"
_WORD = re.compile(r"\w+")


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
    check_length(text, LONGEST)
    body, clauses = _clauses(TextSpan.whole(text))
    shard: list[Iter] = []
    copies: list[Iter] = []
    offset: dict[str, Extent] = {}
    started = False
    for number, (sign, term) in enumerate(_terms(body)):
        letter = text[term.start : term.start + 1]
        if text.startswith(("S[", "R["), term.start):
            if sign < 0:
                raise term.refuse(problems.SUBTRACTED(letter))
            started = True
            if letter == "S" and number > 0:
                raise term.refuse(problems.S_FIRST())
            (shard if letter == "S" else copies).extend(_bracket(term))
            continue
        if not started:
            break
        value, axis = _on_axis(term)
        offset[axis] = offset.get(axis, 0) + sign * value
    if not started:
        raise body.refuse(problems.START(), 0)
    swizzle = _swizzle(clauses["swizzle"]) if "swizzle" in clauses else None
    within = _within(clauses["within"]) if "within" in clauses else None
    at = clauses["swizzle"] if swizzle is not None else TextSpan.whole(text)
    layout = at.read(lambda _: checked(shard, copies, offset, None, within, swizzle))
    on = clauses.get("on")
    if on is None:
        return layout
    shape = [_size(entry) for entry in _entries(on)] if "".join(on.word.split()) != "()" else []
    on.read(lambda _: check_box(shape, "shape"))
    return on.read(lambda _: AxeLayout(layout.D, layout.R, layout.O, admit(layout, shape), within, swizzle))


def _clauses(text: TextSpan) -> tuple[TextSpan, dict[str, TextSpan]]:
    """The part before the first clause word, and each clause's rest."""
    body, *rest = text.split(_CLAUSE)
    clauses: dict[str, TextSpan] = {}
    for clause in rest:
        word = _WORD.match(clause.text, clause.start)[0]  # type: ignore[index]
        if word in clauses:
            raise clause.refuse(problems.TWICE(word))
        clauses[word] = clause.part(clause.start + len(word), clause.end)
    return body, clauses


def _terms(body: TextSpan) -> list[tuple[int, TextSpan]]:
    """The summands and their signs, split at + and - outside brackets."""
    terms: list[tuple[int, TextSpan]] = []
    start, sign = body.start, 1
    seen = start
    for found in body.outside(_SIGN):
        # a sign right after a sign, as in `+ -3@m`, belongs to the number, and so does `*`, `//` before one
        if _seen(body.text[seen : found.start()]):
            terms.append((sign, body.part(start, found.start())))
            start, sign = found.end(), 1 if found[0] == "+" else -1
        seen = found.end()
    if not _seen(body.text[seen : body.end]):
        raise body.refuse(problems.SUMMAND_MISSING(), body.end)
    return [*terms, (sign, body.part(start, body.end))]


def _seen(word: str) -> bool:
    return word.rstrip()[-1:] not in ("", *"+-*/%")


def _bracket(term: TextSpan) -> list[Iter]:
    letter = term.text[term.start]
    end = term.text.index("]", term.start)
    if end != term.end - 1:
        raise term.refuse(problems.PLUS_MISSING(letter), end + 1)
    inside = term.part(term.start + 2, end).split(":")
    if all("".join(part.word.split()) in ("", "()") for part in inside):
        return []
    if len(inside) > 2:
        raise inside[2].refuse(problems.COLON(letter), inside[2].start - 1)
    extents = [_size(entry, positive_=True) for entry in _entries(inside[0])]
    term.read(lambda _: check_box(extents, letter))
    if len(inside) == 1:
        # TVM: extents alone are row-major on m
        strides: list[tuple[Extent, str]] = []
        step: Extent = 1
        for extent in reversed(extents):
            strides.insert(0, (step, MEMORY))
            step = step * extent
    else:
        strides = [_on_axis(entry) for entry in _entries(inside[1])]
    if len(strides) != len(extents):
        problem = f"{letter} has {len(extents)} extents but {len(strides)} strides; each extent has one stride"
        raise term.refuse(problem, term.start + 1)
    return [(extent, stride, axis) for extent, (stride, axis) in zip(extents, strides, strict=True)]


def _within(clause: TextSpan) -> dict[str, Extent]:
    bounds: dict[str, Extent] = {}
    for entry in _entries(clause):
        extent, axis = _on_axis(entry)
        entry.read(lambda _, e=extent: positive(e, f"the extent {e}"))  # type: ignore[misc]
        if axis in bounds:
            raise entry.refuse(problems.AXIS_EXTENTS(axis))
        bounds[axis] = extent
    return bounds


def _swizzle(clause: TextSpan) -> Swizzle:
    outer = clause.text.startswith("outer", clause.start)
    rest = clause.part(clause.start + 5, clause.end) if outer else clause
    numbers = [_size(entry) for entry in _entries(rest)]
    if len(numbers) != 3 or not all(type(number) is int for number in numbers):
        raise clause.refuse(problems.SWIZZLE_FORM())
    per_element, swizzle_len, atom_len = (int(number) for number in numbers)
    return Swizzle(per_element, swizzle_len, atom_len, outer)


def _entries(span: TextSpan) -> list[TextSpan]:
    """The entries of `(a, b)`, or the one entry `a`."""
    inside = span.inside("(")
    if inside is None:
        return [span]
    found = inside.split(",")
    return found[:-1] if len(found) > 1 and not found[-1].word else found


def _on_axis(span: TextSpan) -> tuple[Extent, str]:
    at = span.text.rfind("@", span.start, span.end)
    if at < 0:
        return _size(span), MEMORY
    name = span.part(at + 1, span.end).word
    if not AXIS.fullmatch(name):
        raise span.refuse(problems.AXIS_NAME(name))
    return _size(span.part(span.start, at)), name


def _size(span: TextSpan, positive_: bool = False) -> Extent:
    word = span.word
    if not word:
        raise span.refuse(problems.NUMBER_MISSING())
    short = word.isascii() and word.isdigit() and len(word) < 20
    value = int(word) if short else span.read(parse_size)
    if positive_:
        span.read(lambda _: positive(value, f"the extent {word}"))
    return value
