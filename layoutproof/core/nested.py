"""Nested tuples: shapes of CuTe, values of HLO that are tuples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def leaves(value: Any) -> Iterator[Any]:
    """The elements that are no tuples, at any depth, left to right.

    >>> list(leaves(((4, 2), (), 8)))
    [4, 2, 8]
    """
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value
