"""Which indices have given coordinates: the digits solved for, whatever the size of the array.

Coordinates with known values are linear equations over digits. They fall into lines without common digits
(`sets.lines`), each solved by itself; digits in none of them take every value. Of an index whose extent does not split
evenly, only those digits count that some index has.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from layoutproof.core.errors import BudgetExceeded
from layoutproof.core.index_map import IndexMap
from layoutproof.solvers.digits import DIGITS, placed
from layoutproof.solvers.digits.number import Digit
from layoutproof.solvers.digits.sets import forms_of, lines
from layoutproof.solvers.equations import solutions

STEPS = 100_000
"""Choices of digits looked at for one line, and combinations of what the lines give."""

Fixed = Mapping[Digit, int]
"""Values of some digits; the others are free."""


@dataclass(frozen=True, slots=True)
class Preimage:
    """The indices and replicas at a place: how many there are, and the first of them.

    rows: (index, replica) in lexicographic order, as many as were asked for.  elements: how many indices there are.
    pairs: how many (index, replica).
    """

    rows: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    elements: int
    pairs: int


def preimage(m: IndexMap, wanted: Mapping[int, int], most: int) -> Preimage:
    """Every index and replica whose coordinates, by number, have the wanted values; at most `most` are listed.

    Exact. Raises Undecided for maps that digits cannot follow, for sizes that are not known and over its budget.

    >>> from layoutproof.layouts.map import read
    >>> preimage(read("(i < 10) -> (i // 4, i % 4)").index_map(), {0: 2}, 5)
    Preimage(rows=(((8,), ()), ((9,), ())), elements=2, pairs=2)
    """
    box = (*m.domain.extents, *m.replicas.extents)
    if 0 in box:
        return Preimage((), 0, 0)
    roots, coordinates = placed(m, DIGITS)
    forms = forms_of(coordinates, roots)
    rank = len(m.domain.extents)
    wanted_forms = [(forms[k][0], forms[k][1] - value) for k, value in wanted.items()]
    per_line = []
    for form, constant in lines(wanted_forms):
        solved = _solved(form, -constant)
        if not solved:
            return Preimage((), 0, 0)
        per_line.append(solved)
    if prod(map(len, per_line)) > STEPS:
        raise BudgetExceeded(f"more than {STEPS} combinations of digits make these coordinates")
    mine = [root for root in roots if root.dimension < rank]
    pairs, elements = 0, 0
    seen: set[tuple[tuple[int, int], ...]] = set()
    choices = []
    for combination in itertools.product(*per_line):
        fixed = {digit: value for part in combination for digit, value in part.items()}
        many = prod(_count(root, root.extent, fixed) for root in roots)
        if not many:
            continue
        choices.append(fixed)
        pairs += many
        # digits of replicas may differ where the index is the same
        key = tuple([(id(digit), value) for digit, value in fixed.items() if digit.dimension < rank])
        if key not in seen:
            seen.add(key)
            elements += prod(_count(root, root.extent, fixed) for root in mine)
    found = heapq.merge(*[_rows(roots, len(box), fixed) for fixed in choices])
    rows = [(row[:rank], row[rank:]) for row in itertools.islice(found, most)]
    return Preimage(tuple(rows), elements, pairs)


def _solved(form: Mapping[Digit, int], target: int) -> list[Fixed]:
    digits = list(form)
    found = solutions([form[d] for d in digits], [(0, d.extent - 1) for d in digits], target, STEPS)
    return [dict(zip(digits, values, strict=True)) for values in found]


def _count(digit: Digit, bound: int, fixed: Fixed) -> int:
    """How many values below `bound` it has whose digits are as fixed."""
    if digit.split is None:
        bound = min(bound, digit.extent)
        return bound if digit not in fixed else 1 if fixed[digit] < bound else 0
    by, high, low = digit.split
    whole, rest = divmod(min(bound, digit.extent), by)
    below = _count(high, whole, fixed)
    many = below * _count(low, by, fixed) if below else 0
    if rest and _count(high, whole + 1, fixed) > below:
        many += _count(low, rest, fixed)
    return many


def _values(digit: Digit, bound: int, fixed: Fixed) -> Iterator[int]:
    """The same values, ascending."""
    if digit.split is None:
        bound = min(bound, digit.extent)
        if digit not in fixed:
            yield from range(bound)
        elif fixed[digit] < bound:
            yield fixed[digit]
        return
    by, high, low = digit.split
    bound = min(bound, digit.extent)
    for whole in _values(high, -(-bound // by), fixed):
        for rest in _values(low, min(by, bound - whole * by), fixed):
            yield whole * by + rest


def _rows(roots: Sequence[Digit], rank: int, fixed: Fixed) -> Iterator[tuple[int, ...]]:
    """The indices whose digits are as fixed, in lexicographic order."""
    by_dimension = {root.dimension: root for root in roots}

    def rest(dimension: int) -> Iterator[tuple[Any, ...]]:
        if dimension == rank:
            yield ()
            return
        root = by_dimension.get(dimension)
        for value in (0,) if root is None else _values(root, root.extent, fixed):
            for more in rest(dimension + 1):
                yield (value, *more)

    return rest(0)
