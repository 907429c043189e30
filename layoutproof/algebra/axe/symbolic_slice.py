"""Slices whose begin, count or extents are run-time sizes: digits are peeled only where that holds for all sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layoutproof.core.errors import Reason
from layoutproof.core.size import Extent, as_size, divide, surely_less
from layoutproof.layouts.axe.layout import Iter


def symbolic(
    iters: Sequence[Iter], begin: Extent, count: Extent
) -> tuple[tuple[Iter, ...], dict[str, Extent]] | Reason:
    """Digits r and a place o with o + r(u) = f(begin + u) for 0 <= u < count and all sizes within the domain.

    Requires that begin + count stays within the domain at run time; then the slowest digit needs no remainder.
    Takes: whole fast digits from an aligned begin; then a part of one digit that does not carry.

    >>> from layoutproof.core.size import symbol
    >>> symbolic(((8, 100, "m"), (4, 1, "m")), 4 * symbol("n"), 4)
    (((4, 1, 'm'),), {'m': Size(100*n)})
    >>> str(symbolic(((8, 100, "m"), (4, 1, "m")), 4 * symbol("n"), 6))
    'it is not known that the slice of 6 from 4*n fits the digit of extent 4'
    """
    left = list(iters)
    start: Any = begin
    rest: Any = count
    peeled: list[Iter] = []
    while len(left) > 1:
        extent = left[-1][0]
        aligned, over = divide(start, extent)
        wanted, remains = divide(rest, extent)
        if over != 0 or remains != 0:
            break
        peeled.insert(0, left.pop())
        start, rest = aligned, wanted
    place: dict[str, Any] = {}
    if len(left) == 1:
        extent, stride, axis = left[0]
        return _parts(rest, left[0], peeled), {axis: start * stride}
    extent, stride, axis = left[-1]
    if rest != 1 and not _fits(start, rest, extent):
        return Reason(f"it is not known that the slice of {rest} from {start} fits the digit of extent {extent}")
    for number in range(len(left) - 1, -1, -1):
        extent, stride, axis = left[number]
        if number == 0:
            digit = start
        elif type(extent) is not int:
            quotient, over = divide(start, extent)
            if over != 0:
                return Reason(f"the digit of {start} in the run-time extent {extent} is not known")
            digit, start = 0, quotient
        else:
            digit, start = start - start // extent * extent, start // extent
        if type(digit) is not int or digit:
            place[axis] = place.get(axis, 0) + digit * stride
    return _parts(rest, left[-1], peeled), place


def _parts(count: Extent, digit: Iter, peeled: list[Iter]) -> tuple[Iter, ...]:
    if type(count) is int and count == 1 and peeled:
        return tuple(peeled)
    return ((count, digit[1], digit[2]), *peeled)


def _fits(start: Extent, count: Extent, extent: Extent) -> bool:
    """Whether start % extent + count <= extent for all sizes."""
    if type(count) is not int or type(extent) is not int:
        quotient, over = divide(start, extent)
        return quotient is not None and over == 0 and not surely_less(extent, count) and surely_less(count - 1, extent)
    terms = as_size(start).terms
    known = math.gcd(*[coefficient for mono, coefficient in terms if mono != ()], 0)
    constant = sum(coefficient for mono, coefficient in terms if mono == ())
    # start is constant plus a multiple of `known`: its rest by `step`, and so the last place it can take, is fixed
    step = math.gcd(known, extent)
    return bool(extent - step + constant % step + count <= extent)
