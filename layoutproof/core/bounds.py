"""Bounds on user input: numbers, nesting, extents together, sizes, expressions.

A text of 35 characters can name a number, a box or a polynomial that no machine holds, and what recursion reads can be
nested deeper than it can follow. Every language is held to these bounds while it is read, so that nothing after the
reading needs one. XLA's own grammar has its own, which are narrower.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.size import Extent, Size
from layoutproof.core.term import Term

MAX_CHARACTERS = 1_000_000
"""Characters of one layout, mesh, size or claim; a longer text is data."""
MOST_DIGITS = 20
LARGEST = 10**MOST_DIGITS - 1
"""Largest number, also below zero: XLA, MLIR and NumPy keep an extent, a stride or an offset in 64 bits."""
DEEPEST = 100
"""Brackets within brackets."""
MOST_VALUES = 100_000
"""Values of one mapping."""
MOST_EXTENTS = 1000
"""Dimensions, digits or replicas of one layout, as many as XLA has dimensions."""
MOST_BITS = 64
"""Bits of the product of all extents that are numbers: no machine has more places, and XLA no more elements."""
MOST_TERMS, MOST_FACTORS = 32, 8
"""Of one size, multiplied out."""
MOST_SIZES = 16
"""Size symbols in the product of all extents, each counted as often as it stands there."""
MOST_NODES = 2000
"""Operations and operands of one expression, with everything that `cdiv` writes twice."""
MOST_STEPS = 200
"""Operations within operations of one expression."""
EXPRESSION_BITS = 1024
"""Bits that a result can have where each name has 64: products of 16 names."""

_MARKS = re.compile(rf"[(\[{{]|[)\]}}]|[0-9]{{{MOST_DIGITS + 1},}}")


def check_length(text: str, most: int = MAX_CHARACTERS) -> str:
    """The text itself. LayoutError for one of more than `most` characters, before anything looks for a mark in it.

    >>> check_length("f32[8]", 4)
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: a text of 6 characters; at most 4 are read
      f32[8]
      ^ column 1
    """
    if len(text) > most:
        raise LayoutError(problems.MOST_CHARACTERS(len(text), most), text=text[:80], column=1)
    return text


def check_text(text: str) -> str:
    """The text itself. LayoutError, with the column, for a number of too many digits and for brackets too deep; for one
    that is too long as well.

    >>> check_text("S[(8,4):(4,1)]")
    'S[(8,4):(4,1)]'
    """
    depth = 0
    for found in _MARKS.finditer(check_length(text)):
        mark = found[0]
        if len(mark) > 1:
            if len(mark.lstrip("0")) > MOST_DIGITS:
                raise LayoutError(_number(mark), text=text, column=found.start() + 1)
            continue
        depth += 1 if mark in "([{" else -1
        if depth > DEEPEST:
            raise LayoutError(problems.BRACKETS_DEPTH(DEEPEST), text=text, column=found.start() + 1)
    return text


def check_data(value: object, what: str) -> None:
    """LayoutError for plain data with a number that is too large, nested too deep, or with too many values.

    >>> check_data({"D": [[8, 2**70]]}, "axe")
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: axe: the integer 11805916207174113034.. has more than 20 digits
    """
    todo: list[tuple[Collection[Any], int]] = [((value,), 0)]
    seen = 0
    while todo:
        values, depth = todo.pop()
        seen += len(values)
        if seen > MOST_VALUES:
            raise LayoutError(problems.MOST_VALUES(what, MOST_VALUES))
        for each in values:
            if type(each) is int:
                if abs(each) > LARGEST:
                    raise LayoutError(problems.OUT_OF_BOUNDS(what, _number(_shown(each))))
            elif type(each) is not str and isinstance(each, list | tuple | Mapping):
                if depth == DEEPEST:
                    raise LayoutError(problems.DEPTH(what, DEEPEST))
                todo.append((list(each.values()) if isinstance(each, Mapping) else each, depth + 1))


def check_size(size: Extent) -> Extent:
    """The size itself. LayoutError for a number of too many digits, and for a polynomial that is too long."""
    if type(size) is int:
        if abs(size) > LARGEST:
            raise LayoutError(_number(_shown(size)))
        return size
    terms = size.terms  # type: ignore[union-attr]
    if len(terms) > MOST_TERMS or any(len(names) > MOST_FACTORS for names, _ in terms):
        raise LayoutError(problems.SIZE_TERMS(MOST_TERMS, MOST_FACTORS))
    for _, coefficient in terms:
        check_size(coefficient)
    return size


def check_box(extents: Sequence[Extent], what: str) -> None:
    """LayoutError for extents that are too many, or whose product is too large to be counted or written.

    >>> check_box([2**62] * 5, "shape")
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: shape: the product of its 5 extents has more than 64 bits
    """
    if len(extents) > MOST_EXTENTS:
        raise LayoutError(problems.MOST_EXTENTS(what, len(extents), MOST_EXTENTS))
    bits, factors, terms = 0, 0, 1
    for extent in extents:
        if isinstance(extent, Size):
            factors += max((len(names) for names, _ in extent.terms), default=0)
            terms *= max(1, len(extent.terms))
        elif extent > 1:
            bits += extent.bit_length() - 1
    if bits > MOST_BITS:
        raise LayoutError(problems.BOX_BITS(what, len(extents), MOST_BITS))
    if factors > MOST_SIZES or terms > MOST_VALUES:
        raise LayoutError(problems.BOX_SIZES(what, MOST_SIZES))


def check_terms(terms: Iterable[Term], text: str) -> None:
    """LayoutError for expressions that are too long, too deep, or whose values can grow beyond what is worth asking."""
    known: dict[Term, _Weight] = {}
    for term in terms:
        weight = _weigh(term, known)
        if weight.nodes > MOST_NODES:
            raise LayoutError(problems.EXPRESSION_NODES(MOST_NODES), text=text)
        if weight.steps > MOST_STEPS:
            raise LayoutError(problems.EXPRESSION_STEPS(MOST_STEPS), text=text)
        if weight.bits > EXPRESSION_BITS:
            problem = f"an expression whose values can have over {EXPRESSION_BITS} bits: a product of too many factors"
            raise LayoutError(problem, text=text)
        if weight.terms > MOST_VALUES:
            raise LayoutError(problems.EXPRESSION_LENGTH(), text=text)


class _Weight(NamedTuple):
    """Of an expression: operations and operands as a tree, the longest way down, bits of its values, and summands."""

    nodes: int
    steps: int
    bits: int
    terms: int


def _weigh(root: Term, known: dict[Term, _Weight]) -> _Weight:
    # without recursion, each shared part once: a term may be too deep, and too large as a tree
    todo = [root]
    while todo:
        term = todo[-1]
        parts = [part for part in term.args if isinstance(part, Term)]
        open_ = [part for part in parts if part not in known]
        if open_:
            todo += open_
            continue
        known[todo.pop()] = _weight(term, [known[part] for part in parts])
    return known[root]


def _weight(term: Term, parts: Sequence[_Weight]) -> _Weight:
    nodes, steps = 1 + sum(p.nodes for p in parts), 1 + max((p.steps for p in parts), default=0)
    if term.op == "int":
        return _Weight(nodes, steps, abs(term.args[0]).bit_length(), 1)
    if term.op == "name":
        return _Weight(nodes, steps, 64, 1)
    bits, terms = max((p.bits for p in parts), default=1), sum(p.terms for p in parts)
    if term.op == "*":
        bits, terms = sum(p.bits for p in parts), min(parts[0].terms * parts[1].terms, MOST_VALUES + 1)
    elif term.op == "shl":
        bits, terms = parts[0].bits + 64, parts[0].terms
    return _Weight(nodes, steps, bits, terms)


def _number(digits: str) -> str:
    return f"the integer {digits[:MOST_DIGITS]}.. has more than {MOST_DIGITS} digits"


def _shown(value: int) -> str:
    # Python writes no number of thousands of digits
    return str(value) if value.bit_length() < 1024 else hex(value)
