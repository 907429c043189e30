"""Tile assignments: which device holds which tile, as a reshaped and transposed iota or as a list of device numbers.

Source: openxla/xla `xla/hlo/ir/tile_assignment.cc` (CanonicalizeIotaDims, IotaTileAssignment::Transpose) and
`hlo_sharding.cc` (GroupMinorIotaDimsSorted), read on 2026-09; behaviour re-checked against jaxlib 0.10.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import from_row_major, row_major
from layoutproof.core.size import product
from layoutproof.layouts.sharding import problems

MOST_LISTED = 1 << 20
"""Devices up to which an assignment is written out as a list."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """One device number for each tile of the box `dims`, row-major.

    As an iota: reshape(transpose(reshape(0..N-1, `reshape`), `perm`), dims). Otherwise `devices` lists them.
    """

    dims: tuple[int, ...]
    reshape: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"devices=[{_join(self.dims)}]{self.assignment('<=')}"

    def assignment(self, iota: str = "") -> str:
        """The part after the dims: `<=[4,2]T(1,0)` or `0,2,1,3`; `iota` goes before an iota."""
        if not self.reshape:
            return _join(self.devices)
        transpose = f"T({_join(self.perm)})" if len(self.reshape) > 1 else ""
        return f"{iota}[{_join(self.reshape)}]{transpose}"

    def count(self) -> int:
        """How many tiles."""
        tiles: int = product(self.dims)
        return tiles

    def problem(self) -> str:
        """Why this is no assignment of distinct devices to tiles, or ""."""
        empty = problems.TILES_EMPTY(_join(self.dims)) if min(self.dims, default=1) < 1 else ""
        if self.reshape:
            if sorted(self.perm) != list(range(len(self.reshape))):
                return problems.NO_PERMUTATION(_join(self.perm), len(self.reshape) - 1)
            if product(self.reshape) != self.count():
                return problems.TILES_NUMBERED(
                    _join(self.dims), self.count(), _join(self.reshape), product(self.reshape)
                )
            return empty
        if len(self.devices) != self.count():
            return problems.TILES_LISTED(_join(self.dims), self.count(), len(self.devices))
        seen: set[int] = set()
        for device in self.devices:
            if device < 0:
                return problems.DEVICE_NEGATIVE(device)
            if device in seen:
                return problems.DEVICE_TWICE(device)
            seen.add(device)
        return empty


def iota(dims: Sequence[int], reshape: Sequence[int] = (), perm: Sequence[int] = ()) -> Tiles:
    """An iota assignment in XLA's canonical form; without `reshape`, the devices in order.

    >>> str(iota((3, 20), (3, 4, 5), (1, 2, 0)))
    'devices=[3,20]<=[3,20]T(1,0)'
    """
    if not reshape:
        return Tiles(tuple(dims), (product(dims),), (0,))
    return Tiles(tuple(dims), *canonical(reshape, perm))


def canonical(reshape: Sequence[int], perm: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shortest (reshape, perm) of the same order: no extents of 1, no neighbours that stay neighbours.

    >>> canonical((1, 3, 1, 4, 1, 5), (4, 3, 2, 5, 1, 0))
    ((3, 20), (1, 0))
    """
    extents, order = list(reshape), list(perm)
    changed = len(extents) > 1
    while changed:
        kept = {old: new for new, old in enumerate(k for k, extent in enumerate(extents) if extent != 1)}
        order = [kept[k] for k in order if k in kept]
        extents = [extents[k] for k in kept]
        changed, base = False, 0
        for k in range(1, len(order)):
            if order[base] + (k - base) == order[k]:
                extents[order[base]] *= extents[order[k]]
                extents[order[k]] = 1
                changed = True
            else:
                base = k
    return (tuple(extents), tuple(order)) if extents else ((1,), (0,))


def listed(tiles: Tiles) -> tuple[int, ...]:
    """Every tile's device, row-major. LayoutError where that is more than a million.

    >>> listed(iota((3, 2), (2, 3), (1, 0)))
    (0, 3, 1, 4, 2, 5)
    """
    if not tiles.reshape:
        return tiles.devices
    if product(tiles.reshape) > MOST_LISTED:
        raise LayoutError(problems.MOST_LISTED(tiles, MOST_LISTED))
    strides = [product(tiles.reshape[k + 1 :]) for k in range(len(tiles.reshape))]
    steps = [range(0, tiles.reshape[k] * strides[k], strides[k]) for k in tiles.perm]
    return tuple(map(sum, itertools.product(*steps)))


def reshaped(tiles: Tiles, dims: Sequence[int]) -> Tiles:
    """The same order of devices in a box of other dims with as many tiles."""
    return Tiles(tuple(dims), tiles.reshape, tiles.perm, tiles.devices)


def transposed(tiles: Tiles, perm: Sequence[int]) -> Tiles:
    """Dimension k of the result is dimension perm[k] of `tiles`; an iota stays one where XLA keeps it one.

    >>> str(transposed(iota((2, 4)), (1, 0)))
    'devices=[4,2]<=[2,4]T(1,0)'
    """
    dims = tuple(tiles.dims[k] for k in perm)
    moved = [k for k in perm if tiles.dims[k] != 1]
    if moved == sorted(moved):
        return Tiles(dims, tiles.reshape, tiles.perm, tiles.devices)
    parts = _transposed_digits(tiles, perm) if tiles.reshape else None
    if parts is not None:
        return iota(dims, *parts)
    devices = listed(tiles)
    positions = itertools.product(*[range(extent) for extent in dims])
    back = [list(perm).index(k) for k in range(len(perm))]
    return Tiles(dims, devices=tuple(devices[row_major(tuple(p[k] for k in back), tiles.dims)] for p in positions))


def _transposed_digits(tiles: Tiles, perm: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """(reshape, perm) of the transposed iota: both sides are cut into common digits; None where they have none."""
    common = _common(tiles.dims, [tiles.reshape[k] for k in tiles.perm])
    if common is None:
        return None
    extents, pieces, turned = common
    sources = [turned[tiles.perm.index(k)] for k in range(len(tiles.reshape))]
    ordered = [digit for digits in sources for digit in digits]
    return [extents[digit] for digit in ordered], [ordered.index(digit) for k in perm for digit in pieces[k]]


def _common(left: Sequence[int], right: Sequence[int]) -> tuple[list[int], list[list[int]], list[list[int]]] | None:
    """Digits, major first, that both boxes are made of, and for each extent of both the digits it consists of."""
    rest = [list(left), list(right)]
    pieces: tuple[list[list[int]], list[list[int]]] = ([[] for _ in left], [[] for _ in right])
    extents: list[int] = []
    at = [0, 0]
    while True:
        for side in (0, 1):
            while at[side] < len(rest[side]) and rest[side][at[side]] == 1:
                at[side] += 1
        if at[0] == len(left) or at[1] == len(right):
            return extents, *pieces
        low, high = sorted(rest[side][at[side]] for side in (0, 1))
        if high % low:
            return None
        for side in (0, 1):
            rest[side][at[side]] //= low
            pieces[side][at[side]].append(len(extents))
        extents.append(low)


def grouped(tiles: Tiles, size: int) -> Tiles:
    """The devices sorted within each run of `size`, the innermost dimension: the order of replicas says nothing.

    >>> str(grouped(Tiles((2, 2), devices=(3, 2, 1, 0)), 2))
    'devices=[2,2]2,3,0,1'
    """
    if tiles.reshape:
        if tiles.reshape[tiles.perm[-1]] == size:
            return tiles
        parts = _sorted_minor(tiles.reshape, tiles.perm, size)
        if parts is not None:
            return iota(tiles.dims, *parts)
    devices = listed(tiles)
    runs = [sorted(devices[k : k + size]) for k in range(0, len(devices), size)]
    return Tiles(tiles.dims, devices=tuple(itertools.chain(*runs)))


def _sorted_minor(reshape: Sequence[int], perm: Sequence[int], size: int) -> tuple[list[int], list[int]] | None:
    """(reshape, perm) with the innermost `size` devices ascending, or None where no iota says that."""
    left, taken = size, 0
    extents, order = list(reshape), list(perm)
    for dim in reversed(perm):
        if left == 1:
            break
        taken += 1
        extent = reshape[dim]
        if extent <= left:
            if left % extent:
                return None
            left //= extent
            continue
        if extent % left:
            return None
        extents[dim : dim + 1] = [extent // left, left]
        order = [k + 1 if k > dim else k for k in order]
        order.insert(order.index(dim) + 1, dim + 1)
        left = 1
    inner = len(order) - taken
    return extents, order[:inner] + sorted(order[inner:])


def digits_of(devices: Sequence[int]) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """(base, ((extent, stride), ..)), major first, if position p holds base + sum of stride * digit of p; else None.

    >>> digits_of((0, 4, 1, 5, 2, 6, 3, 7))
    (0, ((4, 1), (2, 4)))
    >>> digits_of((0, 1, 3, 2)) is None
    True
    """
    count, base, span = len(devices), devices[0], 1
    found: list[tuple[int, int]] = []
    while span < count:
        stride, run = devices[span] - base, 2
        while span * run < count and devices[span * run] - base == stride * run:
            run += 1
        run = max(k for k in range(1, run + 1) if (count // span) % k == 0)
        if run == 1:
            return None
        found.insert(0, (run, stride))
        span *= run
    extents = [extent for extent, _ in found]
    for position, device in enumerate(devices):
        digits = from_row_major(position, extents)
        if base + sum(d * stride for d, (_, stride) in zip(digits, found, strict=True)) != device:
            return None
    return base, tuple(found)


def _join(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def recognised(tiles: Tiles) -> Tiles:
    """A list of devices as the iota that has the same order, where there is one.

    >>> str(recognised(Tiles((2, 4), devices=(0, 4, 1, 5, 2, 6, 3, 7))))
    'devices=[2,4]<=[2,4]T(1,0)'
    """
    found = digits_of(tiles.devices) if tiles.devices else None
    if found is None or found[0] != 0:
        return tiles
    digits = found[1]
    order = sorted(range(len(digits)), key=lambda k: -digits[k][1])
    step = 1
    for k in reversed(order):
        if digits[k][1] != step:
            return tiles
        step *= digits[k][0]
    return iota(tiles.dims, [digits[k][0] for k in order] or (1,), [order.index(k) for k in range(len(digits))] or (0,))
