"""Several arrays of a GPU's program that have one place (`RefUnion`), in values.

What is stored to one leaves bits in the others of which nothing is said: who reads these is refused. Which elements
they are is a question of bytes, and of columns of tensor memory (`bodies.one_place`); where it is not known, all are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutproof.bodies.one_place import in_others
from layoutproof.bodies.regions import ViewedRegion

if TYPE_CHECKING:
    from layoutproof.bodies.effects import BodyReference

Array = np.ndarray[Any, Any]
Box = tuple[slice | int, ...]


class OnePlace:
    """The arrays of one place. doubts: of each the elements that hold bits of another one."""

    def __init__(self) -> None:
        self.doubts: dict[BodyReference, Array] = {}
        self._stored: set[BodyReference] = set()

    def add(self, reference: BodyReference) -> None:
        """Another array, which has in it what those have stored that were seen before."""
        self.doubts[reference] = np.zeros(reference.dims, bool)
        for other in self._stored:
            self._spoils(other, _runs(other.dims), [reference])

    def stores(self, reference: BodyReference, box: Box | None, at: Array | None, mask: Array | None = None) -> None:
        """Something is stored to elements of an array, as of `ElementView`. mask: which of them, None for all."""
        self._stored.add(reference)
        held = self.doubts[reference]
        if at is not None or mask is not None:
            at = np.arange(held.size).reshape(held.shape) if at is None else at
            chosen = at[at >= 0] if mask is None else at[(at >= 0) & np.broadcast_to(mask, at.shape)]
            if not chosen.size:
                return
            held.reshape(-1)[chosen] = False
            runs = [(int(k.min()), int(k.max() - k.min()) + 1) for k in np.unravel_index(chosen, held.shape)]
        else:
            box = box or tuple(slice(None) for _ in held.shape)
            held[box] = False
            runs = [_run(piece, extent) for piece, extent in zip(box, held.shape, strict=True)]
        self._spoils(reference, runs, list(self.doubts))

    def is_doubtful(self, reference: BodyReference, box: Box | None, at: Array | None) -> bool:
        """Whether some elements of an array hold bits of another one."""
        held = self.doubts[reference]
        if at is not None:
            return bool(held.reshape(-1)[np.maximum(at, 0)].any())
        return bool((held if box is None else held[box]).any())

    def _spoils(
        self, reference: BodyReference, runs: Sequence[tuple[int, int]], others: Sequence[BodyReference]
    ) -> None:  # fmt: skip
        """Marks what lies in others where a box of an array does."""
        region = ViewedRegion(reference.name, tuple((first, many, 1) for first, many in runs), True)
        for other in others:
            for found, _ in in_others(reference, region, [other]):
                part = tuple(slice(int(a), int(a) + int(n)) for a, n, _ in found.runs)  # type: ignore[arg-type]
                self.doubts[other][part] = True


def _run(piece: slice | int, extent: int) -> tuple[int, int]:
    """The first element of a piece of a dimension, and how many there are up to its last one."""
    found = range(extent)[piece] if isinstance(piece, slice) else range(piece, piece + 1)
    return (min(found), max(found) - min(found) + 1) if found else (0, 0)


def _runs(dims: Sequence[int]) -> list[tuple[int, int]]:
    return [(0, extent) for extent in dims]
