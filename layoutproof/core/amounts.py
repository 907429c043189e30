"""Amounts of memory, times and shares, as people write them and as reports show them."""

from __future__ import annotations

import re
from fractions import Fraction

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError, shorten

_BYTES = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*(KiB|MiB|GiB|TiB|bytes|byte|B)?")
_UNITS = {"B": 1, "byte": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

_TIME = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,12})?)\s*(ps|ns|us|ms|s)")
_PICO = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def amount(value: object, least: int = 1) -> int:
    """Bytes of memory: a number, or a text such as 16MiB or 0 bytes. LayoutError for anything else, and below `least`.

    >>> amount("1.5 KiB"), amount("0 bytes", least=0)
    (1536, 0)
    """
    if type(value) is int and value >= least:
        return value
    found = _BYTES.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or float(found[1]) * _UNITS[found[2] or "B"] < least:
        raise LayoutError(problems.MEMORY_FORM(shorten(repr(value), 40)))
    return int(float(found[1]) * _UNITS[found[2] or "B"])


def size(count: int) -> str:
    """Bytes for people.

    >>> size(900), size(5242880), size(10**400)[:6]
    ('900 B', '5.0 MiB', '909494')
    """
    if count < 10_000:
        return f"{count} B"
    power = min(4, (count.bit_length() - 1) // 10)
    # whole numbers: a file may state more bytes than a float can hold
    tenths, rest = divmod(10 * count, 1024**power)
    tenths += 2 * rest > 1024**power or (2 * rest == 1024**power and tenths % 2)
    return f"{tenths // 10}.{tenths % 10} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def duration(value: object) -> int:
    """Picoseconds, of a text such as 20 ms, 1.5us or 0 s. LayoutError for anything else.

    >>> duration("20 ms"), duration("1.5us")
    (20000000000, 1500000)
    """
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise LayoutError(problems.TIME_FORM(shorten(repr(value), 40)))
    return int(Fraction(found[1]) * _PICO[found[2]])


def seconds(pico: int) -> str:
    """Picoseconds for people, rounded down.

    >>> seconds(20_500_000_000), seconds(999), seconds(1_234_000)
    ('20.5 ms', '999 ps', '1.23 us')
    """
    unit = next((unit for unit in ("s", "ms", "us", "ns") if pico >= _PICO[unit]), "ps")
    whole, rest = divmod(pico * 100 // _PICO[unit], 100)
    return f"{whole}.{rest:02}".rstrip("0").rstrip(".") + f" {unit}"
