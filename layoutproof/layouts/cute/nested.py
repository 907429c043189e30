"""Nested tuples of extents or strides, as CuTe's shapes are: an integer, or a tuple of nested tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from layoutproof.core.nested import leaves
from layoutproof.core.size import Extent, product

Nested = Any
"""An `Extent`, or a tuple of `Nested`."""


def size_of(value: Nested) -> Extent:
    """The product of its integers."""
    size: Extent = product(leaves(value))
    return size


def congruent(left: Nested, right: Nested) -> bool:
    """Whether the two are nested alike.

    >>> congruent(((4, 2), 8), ((1, 4), 8)), congruent((4, 2), 8)
    (True, False)
    """
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(congruent, left, right))
    return not isinstance(left, tuple) and not isinstance(right, tuple)


def modes_of(value: Nested) -> tuple[Nested, ...]:
    """Its top-level entries; an integer alone is its own only entry."""
    return value if isinstance(value, tuple) else (value,)


def refill(pattern: Nested, make: Callable[[Extent], Nested]) -> Nested:
    """The same nesting with `make(leaf)` in place of every leaf, called left to right."""
    if isinstance(pattern, tuple):
        return tuple([refill(entry, make) for entry in pattern])
    return make(pattern)


def show(value: Nested) -> str:
    """As CuTe prints it, without the underscores of static integers.

    >>> show(((4, 2), 8))
    '((4,2),8)'
    """
    if isinstance(value, tuple):
        return f"({','.join(map(show, value))})"
    return str(value)
