"""Several arrays of a GPU's program that have one place (`RefUnion`): who touches one touches others that lie there.

Scopes one after another may also get one barrier.

Each is a reference of its own, which says which bytes of the place it has; of tensor memory, which columns. What is
touched of one is a range of bytes, where the elements are known to lie next to each other, and of the others the
elements that have bytes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from layoutproof.bodies.cells import Box
from layoutproof.bodies.effects import Body, BodyReference, Freed, Signal, StartedCopy, StartedUse, Wait
from layoutproof.bodies.moments import box_of
from layoutproof.bodies.regions import ViewedRegion
from layoutproof.core.element_types import ELEMENT_BITS

_BYTE = 8
_SWIZZLED_ROWS = 8
"""Rows among which parts are permuted; each has as many bytes as the swizzle says."""


def in_others(
    reference: BodyReference, region: ViewedRegion, others: Sequence[BodyReference]
) -> list[tuple[ViewedRegion, bool]]:
    """Of some other arrays in the same place what lies where a part of one does, and whether all of that is touched.

    Those that have no byte of it are left out.

    Args:
        reference: The array.
        region: A part of it.
        others: References in the same place.
    """
    first, last, exact = _bytes(reference, region)
    found = []
    for other in others:
        if other is reference or other.within is None or other.within[:1] != (reference.within or ())[:1]:
            continue
        low, high = max(first, other.within[1]), min(last, other.within[2])
        if low < high:
            part, all_of_it = _elements(other, low - other.within[1], high - other.within[1])
            found.append((part, exact and all_of_it))
    return found


def _bytes(reference: BodyReference, region: ViewedRegion) -> tuple[int, int, bool]:
    """The first byte of a region in the place, one past its last, and whether it has all between."""
    assert reference.within is not None
    _, first, last = reference.within
    box = box_of(region)
    if box is None or box == _all_of(reference) or not _is_known(reference):
        return first, last, box == _all_of(reference)
    runs, extents, size, exact = (_columns if reference.memory == "tmem" else _tiles)(reference, box)
    start = end = 0
    several = False
    for (low, high), extent in zip(runs, extents, strict=True):
        # what comes after a dimension of which more than one is taken has to be taken whole
        exact = exact and not (several and (low, high) != (0, extent))
        several = several or high - low > 1
        start, end = start * extent + low, end * extent + high - 1
    start, end, swizzled = start * size, (end + 1) * size, _SWIZZLED_ROWS * reference.swizzle or 1
    exact = exact and start % swizzled == end % swizzled == 0
    return first + start // swizzled * swizzled, min(last, first - (-end // swizzled) * swizzled), exact


def _tiles(reference: BodyReference, box: Box) -> tuple[list[tuple[int, int]], list[int], int, bool]:
    """Of a box in shared memory: runs of tiles, how many there are, the bytes of a tile, and whether it has all."""
    tiling = reference.tilings[0] if reference.tilings else ()
    outer = len(reference.dims) - len(tiling)
    runs, extents = list(box[:outer]), list(reference.dims[:outer])
    exact = True
    for (low, high), extent, size in zip(box[outer:], reference.dims[outer:], tiling, strict=True):
        runs.append((low // size, -(-high // size)))
        extents.append(extent // size)
        exact = exact and low % size == high % size == 0
    return runs, extents, prod(tiling) * ELEMENT_BITS[reference.dtype] // _BYTE, exact


def _columns(reference: BodyReference, box: Box) -> tuple[list[tuple[int, int]], list[int], int, bool]:
    """The same of one in tensor memory, where a tile is a column."""
    *batch, rows, (low, high) = box
    packing = reference.packing
    exact = rows == (0, reference.dims[-2]) and low % packing == high % packing == 0
    extents = [*reference.dims[:-2], reference.dims[-1] // packing]
    return [*batch, (low // packing, -(-high // packing))], extents, 1, exact


def _elements(reference: BodyReference, low: int, high: int) -> tuple[ViewedRegion, bool]:
    """The elements that have some bytes of an array, as far as rows of its first dimension go; whether those are all.

    Of tensor memory, as far as columns go.  low, high: the first byte, counted from its own first one, and one past the
    last.
    """
    assert reference.within is not None
    runs = tuple((start, end - start, 1) for start, end in _all_of(reference))
    _, first, last = reference.within
    if reference.memory == "tmem" and _is_known(reference) and len(runs) == 2:
        columns = low * reference.packing, (high - low) * reference.packing, 1
        return ViewedRegion(reference.name, (runs[0], columns), True), True
    tiled = sum(map(len, reference.tilings))
    rows = reference.tilings[0][0] if tiled == len(reference.dims) > 0 else 1
    size = prod(reference.dims[1:]) * rows * ELEMENT_BITS[reference.dtype] // _BYTE
    by_rows = reference.memory != "tmem" and _is_known(reference) and bool(runs)
    if not by_rows or size % (_SWIZZLED_ROWS * reference.swizzle or 1):
        return ViewedRegion(reference.name, runs, True), (low, high) == (0, last - first)
    start, end = low // size, -(-high // size)
    runs = ((start * rows, (end - start) * rows, 1), *runs[1:])
    return ViewedRegion(reference.name, runs, True), low % size == high % size == 0


def _is_known(reference: BodyReference) -> bool:
    """Whether it is known how an array lies: in whole bytes, no tiles in tiles, one row in each lane."""
    if reference.memory == "tmem":
        return reference.lanes == "whole"
    tiling = reference.tilings[0] if reference.tilings else ()
    size = prod(tiling) if tiling else 1
    return len(reference.tilings) < 2 and size * ELEMENT_BITS[reference.dtype] % _BYTE == 0


def _all_of(reference: BodyReference) -> Box:
    return tuple((0, extent) for extent in reference.dims)


def gets_its_place(body: Body, freed: Freed, barrier: BodyReference) -> bool:
    """Whether a barrier of another scope may be the one of the hardware that a scope gives back.

    JAX keeps barriers of equal kinds, and gives them out anew without a new beginning: arrivals that nobody has waited
    for are there (`reserve_barrier` in lowering.py of jax 0.10.2).
    """
    kind = barrier.arrivals, barrier.dims, barrier.across, barrier.dtype
    for other in body.references:
        if other == barrier or (other.arrivals, other.dims, other.across, other.dtype) != kind or other.by_name:
            continue
        counting = (e for e in body.effects if isinstance(e, StartedCopy | StartedUse | Wait | Signal))
        uses = [e.spot for e in counting if e.semaphore.reference == other]
        ends = [e.spot.number for e in body.effects if isinstance(e, Freed) and other in e.references]
        beside = any(use.number < freed.spot.number for use in uses) and all(n > freed.spot.number for n in ends)
        again = any(use.number > freed.spot.number or {*use.loops} & {*freed.spot.loops} for use in uses)
        if again and not beside:
            return True
    return False
