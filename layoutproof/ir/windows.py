"""Windows of convolutions: how many pairs of an element and a tap there are."""

from __future__ import annotations

from math import gcd


def pairs(extent: int, taps: int, out: int, stride: int = 1, low: int = 0, base: int = 1, dilation: int = 1) -> int:
    """In one dimension, the pairs of a result and a tap that meet an element, and neither padding nor a hole.

    extent: of what is convolved, in elements.  taps: of the window.  out: results.  low: elements of padding before it.
    base: how far its elements are spread apart.  dilation: how far the taps are.

    Source: HandleConvolution of `hlo_cost_analysis.cc`, openxla/xla at 183fa00cb5 (2026-08-22).

    >>> pairs(8, 3, 8, low=1), pairs(8, 3, 3, stride=2), pairs(4, 3, 7, low=1, base=2)
    (22, 9, 10)
    """
    found = 0
    for tap in range(taps):
        start = tap * dilation - low
        first = max(0, -(start // stride))
        last = min(out - 1, ((extent - 1) * base - start) // stride)
        common = gcd(stride, base)
        if start % common or last < first:
            continue
        # o * stride + start is a multiple of base at every period-th o
        period = base // common
        at = (-start // common * pow(stride // common, -1, period)) % period if period > 1 else 0
        found += (last - at) // period - (first - 1 - at) // period
    return found
