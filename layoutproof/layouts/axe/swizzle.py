"""Swizzles: exclusive or of address bits, as a map on addresses.

Both directions are involutions on addresses >= 0: inner changes low bits by higher ones that stay, outer the reverse
(atom_len >= swizzle_len keeps the two groups apart). So a swizzled layout collides exactly where its tile does.
Source: apache/tvm `tirx/ir/layout/compose_layout.cc` at 5d4dc87213.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.progressions import Progression, low_high, values

LARGEST_WINDOW = 1 << 20
"""Units of a swizzle's window that are looked at one by one."""


@dataclass(frozen=True, slots=True)
class Swizzle:
    """Exclusive or of some address bits into others: blocks of 2**per_element elements are permuted.

    With b = address // 2**per_element: inner, b xor (bits atom_len.. of b, swizzle_len of them, moved to bit 0); outer,
    b xor (the low swizzle_len bits of b, moved to bit atom_len). Requires atom_len >= swizzle_len >= 0.
    """

    per_element: int
    swizzle_len: int
    atom_len: int
    outer: bool = False

    def __str__(self) -> str:
        return f"{'outer ' if self.outer else ''}({self.per_element},{self.swizzle_len},{self.atom_len})"


def swizzled(address: Any, swizzle: Swizzle, on: Numbers = INTS) -> Any:
    """The address after the swizzle, on any kind of number that has xor. Requires address >= 0.

    >>> [swizzled(8 * x, Swizzle(3, 3, 3)) // 8 for x in (0, 7, 8, 15, 16)]
    [0, 7, 9, 14, 18]
    >>> all(swizzled(swizzled(x, s), s) == x for x in range(99) for s in (Swizzle(1, 2, 3), Swizzle(0, 2, 2, True)))
    True
    """
    if swizzle.swizzle_len == 0:
        return address
    unit, distance, count = 1 << swizzle.per_element, 1 << swizzle.atom_len, 1 << swizzle.swizzle_len
    block = address // unit if unit > 1 else address
    mixed = on.xor(block, block % count * distance if swizzle.outer else block // distance % count)
    return mixed * unit + address % unit if unit > 1 else mixed


def window(swizzle: Swizzle) -> int:
    """The swizzle moves addresses only within aligned windows of this many elements, each window alike.

    >>> window(Swizzle(3, 3, 3))
    512
    """
    return 1 << (swizzle.per_element + swizzle.atom_len + swizzle.swizzle_len)


def trivial(swizzle: Swizzle, highest: int) -> bool:
    """Whether the swizzle leaves every address 0..highest where it is."""
    if swizzle.swizzle_len == 0:
        return True
    changing = swizzle.per_element + (0 if swizzle.outer else swizzle.atom_len)
    return highest < 1 << changing


def reached(swizzle: Swizzle, iters: Sequence[Progression], start: int = 0) -> tuple[int, int]:
    """The smallest and the largest address after the swizzle of the sums of `iters`. Requires sums >= 0.

    Exact: by closed form where the sums cover 0..highest, by looking at every address otherwise. Raises Undecided
    beyond a million addresses.

    >>> reached(Swizzle(0, 3, 3), [(9, 1)])
    (0, 9)
    >>> reached(Swizzle(0, 2, 3, outer=True), [(8, 1)])
    (0, 31)
    """
    low, high = low_high(iters, start)
    if trivial(swizzle, high):
        return low, high
    unit, size = 1 << swizzle.per_element, window(swizzle)
    if low % size == 0 and size // unit <= LARGEST_WINDOW and _contiguous(iters):
        # windows are alike, and each whole one reaches its own ends: the last partial one decides
        rest = (high + 1) % size
        whole = high + 1 - rest
        tops = [swizzled(min(at + unit, rest) - 1, swizzle) for at in range(0, rest, unit)]
        return low, max([whole - 1, *(whole + top for top in tops)])
    addresses: list[int] = [swizzled(address, swizzle) for address in values(iters, start)]
    return min(addresses), max(addresses)


def _contiguous(iters: Sequence[Progression]) -> bool:
    """Whether the sums are exactly 0..highest."""
    reach = 0
    for stride, extent in sorted((abs(s), e) for e, s in iters):
        if stride > reach + 1:
            return False
        reach += (extent - 1) * stride
    return True
