"""The values that a search file gives a variable, and the expressions it writes, from plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_condition, parse_expression
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term, reads
from layoutproof.searching import problems
from layoutproof.searching.problem import Constraint, WeightedSizes

LARGEST_DOMAIN = 1 << 20
"""Values that one tile variable may take."""
LARGEST_POWER = 1024
"""Bits of a power written `2**20`."""


class NoNumber(LayoutError):
    """A range in which no number is."""


def domain(entry: int | Sequence[int] | Mapping[str, object], shapes: Sequence[WeightedSizes]) -> tuple[int, ...]:
    """The values of one variable, rising, from what `search_model` lets stand in a file.

    Raises LayoutError for no range, and of these NoNumber where nothing is in it.
    """
    values = _range(entry, shapes) if isinstance(entry, Mapping) else [entry] if isinstance(entry, int) else entry
    if not values:
        raise NoNumber(problems.NO_NUMBER(shorten(repr(entry), 60)))
    return tuple(sorted(set(values)))


def resolved(entry: Mapping[str, Any], shapes: Sequence[WeightedSizes]) -> dict[str, Any]:
    """A range with its ends and step as numbers. Of several sets of sizes the range reaches over all that any has.

    Raises LayoutError for an expression of anything but sizes, and for numbers below 1.

    >>> resolved({"from": 8, "to": "M // 2"}, [WeightedSizes({"M": 64}), WeightedSizes({"M": 32})])
    {'from': 8, 'to': 32}
    """
    found = dict(entry)
    for key, choose in (("from", min), ("to", max), ("multiple_of", gcd)):
        if isinstance(entry.get(key), str):
            try:
                numbers = [number_of(entry[key], shape) for shape in shapes or (WeightedSizes({}),)]
            except ZeroDivisionError:
                raise LayoutError(problems.DIVIDES_BY_0(shorten(entry[key], 60))) from None
            found[key] = choose(*numbers) if len(numbers) > 1 else numbers[0]
            if found[key] < 1:
                raise LayoutError(problems.BELOW_ONE(key, shorten(entry[key], 60), found[key]))
    return found


def _range(entry: Mapping[str, object], shapes: Sequence[WeightedSizes]) -> list[int]:
    entry = resolved(entry, shapes)
    step = entry.get("multiple_of", 1)
    largest = max((size for shape in shapes for size in shape.sizes.values()), default=1)
    low, high, whole = entry.get("from", step), entry.get("to", largest), 0
    if "divides" in entry:
        try:
            whole = gcd(*(number_of(entry["divides"], shape) for shape in shapes or (WeightedSizes({}),)))
        except ZeroDivisionError:
            raise LayoutError(problems.DIVIDES_BY_0(shorten(str(entry["divides"]), 60))) from None
        # nothing above a number divides it; all divide 0
        high = min(high, whole) if whole else high
    if "powers_of" in entry:
        values, power = [], 1
        while power <= high:
            values.append(power)
            power *= entry["powers_of"]
    else:
        start = -(-low // step) * step
        if (high - start) // step >= LARGEST_DOMAIN:
            raise LayoutError(problems.TOO_MANY_VALUES(LARGEST_DOMAIN, low, high, step))
        values = list(range(start, high + 1, step))
    return [v for v in values if low <= v <= high and v % step == 0 and whole % v == 0]


def number_of(text: object, shape: WeightedSizes) -> int:
    """An expression of sizes as a number. LayoutError for anything else, ZeroDivisionError where it divides by 0."""
    term = expression(text, set(shape.sizes))
    return int(term.evaluate(shape.sizes, INTS))


def expression(text: object, known: set[str] | None) -> Term:
    """An expression over the known names, None = any. LayoutError for anything else."""
    if type(text) is int:
        term = Term("int", text)
    elif isinstance(text, str):
        term = parse_expression(_powers(text))
    else:
        raise LayoutError(problems.EXPRESSION_FORM(shorten(repr(text), 40)))
    _check(term, known, str(text))
    return term


def condition_of(text: object, known: set[str] | None) -> Constraint:
    """A condition over the known names, None = any. LayoutError for anything else."""
    if not isinstance(text, str):
        raise LayoutError(problems.CONDITION_FORM(shorten(repr(text), 40)))
    condition = parse_condition(_powers(text))
    _check(condition, known, text)
    return Constraint(text, condition)


def _check(term: Term, known: set[str] | None, text: str) -> None:
    for name in term.names():
        if known is not None and name not in known:
            raise LayoutError(problems.UNKNOWN_NAME(name, ", ".join(sorted(known)) or "no name"), text=text)
    if reads((term,)):
        raise LayoutError(problems.READS_A_TABLE(shorten(text, 60)))


def _powers(text: str) -> str:
    # 2**20 is how people write it, and the grammar of expressions has no powers
    def power(found: re.Match[str]) -> str:
        value = int(found[1]) ** int(found[2])
        if value.bit_length() > LARGEST_POWER:
            raise LayoutError(problems.LARGER_THAN(found[0], LARGEST_POWER))
        return str(value)

    return re.sub(r"\b(\d{1,40})\s*\*\*\s*(\d{1,3})\b", power, text)
