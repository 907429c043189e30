"""Space: a named box of indices, `0 <= index < extent` in every dimension."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.core.size import Extent, product


@dataclass(frozen=True, slots=True)
class Space:
    """A box; `names[k]` runs over `0 <= names[k] < extents[k]`. The empty box has exactly one index, `()`.

    Extents are ints >= 0, or `Size`s (unknown until run time, every size symbol >= 1).

    >>> Space(("i", "j"), (3, 5)).count()
    15
    """

    names: tuple[str, ...] = ()
    extents: tuple[Extent, ...] = ()

    def __post_init__(self) -> None:
        if len(self.names) != len(self.extents):
            raise ValueError(f"{len(self.names)} names for {len(self.extents)} extents")

    def count(self) -> Extent:
        """How many indices: the product of the extents, in elements."""
        count: Extent = product(self.extents)
        return count

    def is_constant(self) -> bool:
        """Whether every extent is a plain int."""
        return all(type(e) is int for e in self.extents)

    def __str__(self) -> str:
        return ", ".join(f"{n} < {e}" for n, e in zip(self.names, self.extents, strict=True))
