"""Counts of the places of a map: exact numbers that no single violation can show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layoutproof.core.index_map import IndexMap


@dataclass(frozen=True, slots=True)
class Tally:
    """Exact numbers about a map of constant size, all replicas counted.

    places: different places that hold an element.  inside: how many of them are in the range's box.
    low, high: smallest and largest entry of each coordinate.
    fewest, most: elements at one of those places; an element with several replicas at a place counts once there.
    """

    places: int
    inside: int
    low: tuple[int, ...]
    high: tuple[int, ...]
    fewest: int
    most: int


Count = Callable[[IndexMap], Tally]
"""Counts, or raises Undecided for sizes that are not known and for maps too large to count."""
