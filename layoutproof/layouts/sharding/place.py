"""How an array is cut into shards: which device an index is on, and where in that device's shard.

Each dimension of extent d over n tiles is cut into blocks of c = ceil(d/n): index i is in tile i // c, at i % c. The
last tiles may hold less or nothing, and every device allots c all the same. Tile numbers, and one number per
subgroup that chooses the replica, then make the device number.

Source: openxla/xla `xla/hlo/ir/hlo_sharding.cc` (TileOffsetForDevice, TileLimitForDevice, TileShape, EachTile).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.index_map import Index, row_major
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.reshape import reshape
from layoutproof.core.size import Extent
from layoutproof.layouts.sharding.tiles import Tiles, digits_of, iota, listed

DeviceOf = Callable[[Index, Numbers], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """The cut itself, and the map's `place`: calling it gives (device, offset) or (device, index within the shard).

    extents: of the array.  tiles: how many there are of each dimension.  shard: the extents that a device allots.
    replicas: names and sizes of the subgroups.  device: device number from tile numbers ++ replica numbers.
    range_devices: device numbers are below it.  local: place within the shard from the index within it.
    shard_bytes: bytes that a device allots, where the layout of a shard is known.
    position: where a list gives each device its number, the position in the list, which is below range_devices too.
    """

    extents: tuple[Extent, ...]
    tiles: tuple[int, ...]
    shard: tuple[Extent, ...]
    replicas: tuple[tuple[str, int], ...]
    device: DeviceOf
    range_devices: int
    local: Callable[[Index, Numbers], Index]
    shard_bytes: Extent | None = None
    position: DeviceOf | None = None

    def __call__(self, index: Index, replica: Index, on: Numbers) -> Index:
        numbers: list[Any] = []
        within: list[Any] = []
        for entry, count, size in zip(index, self.tiles, self.shard, strict=True):
            # an array without elements has shards of 0, and no index that would be divided by it
            step = on.size(size) if size != 0 else 1
            numbers.append(entry // step if count > 1 else 0)
            within.append(entry % step if count > 1 else entry)
        return (self.device((*numbers, *replica), on), *self.local(tuple(within), on))

    @property
    def shards(self) -> Shards:
        """The cut of a map, found through its `place`."""
        return self

    @property
    def unnamed(self) -> Shards | None:
        """The same with the position in the list in place of the device's number; None where there is no list."""
        return None if self.position is None else replace(self, device=self.position, position=None)

    def holders(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """(device, extents of what it holds) of every device, for an array of known extents."""
        found = []
        for numbers in itertools.product(*[range(count) for count in self.tiles]):
            sizes: Any = zip(numbers, self.extents, self.shard, strict=True)
            held = tuple(max(0, min((t + 1) * c, d) - t * c) for t, d, c in sizes)
            for replica in itertools.product(*[range(count) for _, count in self.replicas]):
                found.append((self.device((*numbers, *replica), INTS), held))
        return tuple(sorted(found))


def devices(tiles: Tiles, named: int | tuple[int, ...] | None) -> tuple[DeviceOf, int]:
    """The device number as a function of tile numbers ++ replica numbers, and a number above all of them."""
    if isinstance(named, tuple):
        tiles = Tiles(tiles.dims, devices=tuple(named[device] for device in listed(tiles)))
    if tiles.reshape:
        turned = tuple(tiles.reshape[k] for k in tiles.perm)
        to_digits = reshape(tiles.dims, turned)

        def of_iota(numbers: Index, on: Numbers) -> Any:
            digits = to_digits(_whole(numbers, tiles.dims), on)
            return row_major(tuple(digits[tiles.perm.index(k)] for k in range(len(turned))), tiles.reshape, on)

        return of_iota, named if isinstance(named, int) else tiles.count()
    most = named if isinstance(named, int) else max(tiles.devices) + 1
    found = digits_of(tiles.devices)
    if found is None:
        runs = _runs(tiles.devices)

        def of_list(numbers: Index, on: Numbers) -> Any:
            position = row_major(_whole(numbers, tiles.dims), tiles.dims, on)
            return tiles.devices[position] if type(position) is int else _pick(runs, position, on)

        return of_list, most
    base, strides = found
    if not strides:
        return lambda numbers, on: base, most
    split = reshape(tiles.dims, [extent for extent, _ in strides])

    def of_strides(numbers: Index, on: Numbers) -> Any:
        total: Any = base
        for digit, (_, stride) in zip(split(_whole(numbers, tiles.dims), on), strides, strict=True):
            total = total + digit * stride
        return total

    return of_strides, most


def position(tiles: Tiles, named: int | tuple[int, ...] | None, most: int) -> DeviceOf | None:
    """The position in the list that gives each device its number below `most`; None where numbers are no such list."""
    numbers = named if isinstance(named, tuple) else tiles.devices
    if not numbers or len(set(numbers)) < len(numbers) or min(numbers) < 0 or max(numbers) >= most:
        return None
    # each tile has one of them, whichever it is, so that the order says nothing
    return devices(iota(tiles.dims), None)[0]


def _whole(numbers: Index, dims: tuple[int, ...]) -> Index:
    """The numbers with a 0 for every subgroup of one, which the box of replicas leaves out."""
    missing = len(dims) - len(numbers)
    return (*numbers, *(0,) * missing)


def _runs(values: Sequence[int]) -> list[tuple[int, int, int]]:
    """(first position after the run, value at position 0 if the run went on that far, step) of arithmetic runs."""
    runs, start = [], 0
    while start < len(values):
        end = start + 2
        step = values[start + 1] - values[start] if start + 1 < len(values) else 0
        while end < len(values) and values[end] - values[end - 1] == step:
            end += 1
        runs.append((end, values[start] - step * start, step))
        start = end
    return runs


def _pick(runs: list[tuple[int, int, int]], position: Any, on: Numbers) -> Any:
    _, base, step = runs[-1]
    value: Any = position * step + base
    for end, base, step in reversed(runs[:-1]):
        value = on.select(on.less(position, end), position * step + base, value)
    return value
