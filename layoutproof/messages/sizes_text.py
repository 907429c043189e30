"""Sizes as XLA's reports print them, as bytes: rounded to two digits, so every sum of them is rounded too."""

from __future__ import annotations

import re

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
