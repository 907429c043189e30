"""Sizes as XLA's reports print them, as bytes: rounded to two digits, so every sum of them is rounded too."""

from __future__ import annotations

import re
from fractions import Fraction

SIZE = r"(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)(?:i?B)?"
"""The pattern of one size, two groups: the number and the unit."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_WHOLE = re.compile(SIZE)


def size_of(text: str) -> int:
    """Bytes of a printed size, -1 for what is none.

    >>> size_of("32.00G"), size_of("0B"), size_of("unknown")
    (34359738368, 0, -1)
    """
    match = _WHOLE.fullmatch(text.strip())
    return round(float(match[1]) * _UNITS[match[2]]) if match else -1


def printed_as(size: int, text: str) -> bool:
    """Whether a text is a size in bytes, to the digits and in the unit that it has.

    >>> [printed_as(33554432, text) for text in ("32.00M", "32.0M", "32768K", "33554432", "33554431", "32.01M")]
    [True, True, True, True, False, False]
    """
    match = _WHOLE.fullmatch(text.strip())
    if match is None:
        return False
    unit, digits = _UNITS[match[2]], len(match[1].partition(".")[2])
    return bool(2 * abs(Fraction(match[1]) * unit - size) * 10**digits <= unit)
