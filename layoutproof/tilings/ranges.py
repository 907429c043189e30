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
from layoutproof.tilings.problem import Constraint, Shape

LARGEST_DOMAIN = 1 << 20
"""Values that one tile variable may take."""
LARGEST_POWER = 1024
"""Bits of a power written `2**20`."""
_BYTES = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*(KiB|MiB|GiB|B)?")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def domain(name: str, entry: Any, shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The values of one variable, rising. LayoutError for what is no range."""
    if type(entry) is int:
        entry = [entry]
    if isinstance(entry, list):
        values = entry
    elif isinstance(entry, Mapping):
        values = _range(name, entry, shapes)
    else:
        raise LayoutError(f"{name} is a number, a list, or {{from, to, multiple_of}}; not {shorten(repr(entry), 60)}")
    if not all(type(v) is int and v >= 1 for v in values):
        raise LayoutError(f"the values of {name} are whole numbers of at least 1: {shorten(repr(entry), 60)}")
    if not values:
        raise LayoutError(f"{name} has no value: {shorten(repr(entry), 60)}")
    return tuple(sorted(set(values)))


def _range(name: str, entry: Mapping[str, Any], shapes: Sequence[Shape]) -> list[int]:
    known = ("from", "to", "multiple_of", "powers_of", "divides")
    for key in entry:
        if key not in known:
            raise LayoutError(f"{name} has no {key!r}; known: {', '.join(known)}")
    for key in ("from", "to", "multiple_of", "powers_of"):
        if key in entry and (type(entry[key]) is not int or entry[key] < (2 if key == "powers_of" else 1)):
            raise LayoutError(f"{name}: {key} is a whole number, not {shorten(repr(entry[key]), 40)}")
    step = entry.get("multiple_of", 1)
    largest = max(max(shape.sizes.values()) for shape in shapes)
    low, high = entry.get("from", step), entry.get("to", largest)
    if "powers_of" in entry:
        values, power = [], 1
        while power <= high:
            values.append(power)
            power *= entry["powers_of"]
    else:
        start = -(-low // step) * step
        if (high - start) // step >= LARGEST_DOMAIN:
            raise LayoutError(f"{name} may have {LARGEST_DOMAIN} values; {low}..{high} by {step} are more")
        values = list(range(start, high + 1, step))
    values = [v for v in values if low <= v <= high and v % step == 0]
    if "divides" in entry:
        try:
            whole = [_number(entry["divides"], shape) for shape in shapes]
        except ZeroDivisionError:
            raise LayoutError(f"{name}: {shorten(str(entry['divides']), 60)} divides by 0") from None
        values = [v for v in values if gcd(v, *whole) == v]
    return values


def _number(text: Any, shape: Shape) -> int:
    term = expression(text, set(shape.sizes))
    return int(term.evaluate(shape.sizes, INTS))


def expression(text: Any, known: set[str]) -> Term:
    term = Term("int", text) if type(text) is int else parse_expression(_powers(str(text)))
    _check(term, known, str(text))
    return term


def constraint(text: Any, known: set[str]) -> Constraint:
    condition = parse_condition(_powers(str(text)))
    _check(condition, known, str(text))
    return Constraint(str(text), condition)


def _check(term: Term, known: set[str], text: str) -> None:
    for name in term.names():
        if name not in known:
            raise LayoutError(f"{name} is not known here; known: {', '.join(sorted(known))}", text=text)
    if reads((term,)):
        raise LayoutError(f"{shorten(text, 60)} reads a table, and nobody knows what that holds")


def _powers(text: str) -> str:
    # 2**20 is how people write it, and the grammar of expressions has no powers
    def power(found: re.Match[str]) -> str:
        value = int(found[1]) ** int(found[2])
        if value.bit_length() > LARGEST_POWER:
            raise LayoutError(f"{found[0]} is larger than 2**{LARGEST_POWER}")
        return str(value)

    return re.sub(r"\b(\d{1,40})\s*\*\*\s*(\d{1,3})\b", power, text)


def amount(value: Any) -> int:
    if type(value) is int and value > 0:
        return value
    found = _BYTES.fullmatch(str(value).strip()) if type(value) is not bool else None
    if found is None:
        raise LayoutError(
            f"an amount of memory is a number of bytes or a text such as 16MiB, not {shorten(repr(value), 40)}"
        )
    return int(float(found[1]) * _UNITS[found[2] or "B"])


def word(value: Any, key: str, words: tuple[str, ...]) -> str:
    if value is None:
        return words[0]
    if value not in words:
        raise LayoutError(f"{key} is {' or '.join(words)}, not {shorten(repr(value), 40)}")
    return str(value)
