"""Space: a named box of indices, `0 <= index < extent` in every dimension."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from layoutproof.core.size import Extent, product


@dataclass(frozen=True, slots=True)
class Space:
    """A box; `names[k]` runs over `0 <= names[k] < extents[k]`. The empty box has exactly one index, `()`.

    Attributes:
        names: One per dimension.
        extents: One per dimension, in elements: ints >= 0, or `Size`s (unknown until run time, every size symbol >= 1).

    >>> Space(("i", "j"), (3, 5)).count()
    15
    """

    names: tuple[str, ...] = ()
    extents: tuple[Extent, ...] = ()

    def __post_init__(self) -> None:
        if len(self.names) != len(self.extents):
            raise ValueError(f"{len(self.names)} names for {len(self.extents)} extents")

    def count(self) -> Extent:
        """How many indices there are.

        Returns:
            The product of the extents.
        """
        count: Extent = product(self.extents)
        return count

    def is_constant(self) -> bool:
        """Whether every extent is a plain int.

        Returns:
            False where a size symbol stands in one.
        """
        return all(type(e) is int for e in self.extents)

    def __str__(self) -> str:
        return ", ".join(f"{n} < {e}" for n, e in zip(self.names, self.extents, strict=True))


@lru_cache(maxsize=64)
def dimension_names(rank: int) -> tuple[str, ...]:
    """Names of logical dimensions that have none of their own: i, j, .. p; i0, i1, .. for more than eight."""
    return tuple("ijklmnop"[:rank]) if rank <= 8 else tuple([f"i{k}" for k in range(rank)])


@lru_cache(maxsize=64)
def axis_names(count: int) -> tuple[str, ...]:
    """Names of physical axes that have none of their own: p0, p1, .."""
    return tuple([f"p{k}" for k in range(count)])


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """The names, each with zeros behind it while another, or one that is taken, is the same.

    >>> distinct(("i", "N", "i"), taken=("N",))
    ('i', 'N0', 'i0')
    """
    seen, found = set(taken), []
    for name in names:
        while name in seen:
            name += "0"
        seen.add(name)
        found.append(name)
    return tuple(found)
