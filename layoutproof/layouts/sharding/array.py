"""An array together with its sharding, and its index map: which device, and where in that device's shard.

Source: openxla/xla `xla/hlo/ir/hlo_sharding.h`, `hlo_sharding.cc` (TileOffsetForDevice, TileShape).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import located
from layoutproof.core.shown import Shown
from layoutproof.core.size import Extent, ceil_div
from layoutproof.core.space import Space
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.mesh import to_tiles
from layoutproof.layouts.sharding.model import NamedSharding, TileSharding
from layoutproof.layouts.sharding.place import Shards, devices, position
from layoutproof.layouts.sharding.tiles import Tiles, iota
from layoutproof.layouts.xla.shape import XlaLayout


@dataclass(frozen=True, slots=True)
class ShardedArray(Shown):
    """An array and how it is sharded: `f32[64,128]{1,0:T(8,128)} sharded {devices=[2,2]<=[4]} on 4 devices`.

    layout: how each device stores its padded shard; None where only the index within the shard is asked for.
    devices: how many there are, or the number of each one, in the order in which the sharding counts them.
    """

    element_type: str
    dims: tuple[Extent, ...]
    layout: XlaLayout | None
    sharding: TileSharding | NamedSharding
    devices: int | tuple[int, ...] | None = None

    def __str__(self) -> str:
        shape = f"{self.element_type}[{','.join(map(str, self.dims))}]" if self.layout is None else str(self.layout)
        if isinstance(self.devices, tuple):
            where = f" on devices {','.join(map(str, self.devices))}"
        else:
            where = "" if self.devices is None else f" on {self.devices} devices"
        return f"{shape} sharded {self.sharding}{where}"

    def index_map(self) -> IndexMap:
        """Global index -> (device, offset) or (device, index within the shard).

        Replicas are the replicas; no memory, because there is one on every device.
        Raises LayoutError where the sharding does not say where elements go (unknown, an unsound assignment, replicated
        over an unknown number of devices) or does not fit the array's dimensions.

        >>> from layoutproof.layouts.sharding import read
        >>> read("f32[5,4] sharded {devices=[4,1]<=[4]}").index_map().at((3, 1))
        (1, 1, 1)
        """
        tiles, groups = self.assignment()
        data = tiles.dims[: len(self.dims)]
        shard = tuple(ceil_div(extent, count) for extent, count in zip(self.dims, data, strict=True))
        replicas = tuple((kind, size) for kind, size in zip(groups, tiles.dims[len(data) :], strict=True) if size > 1)
        device, most = devices(tiles, self.devices)
        counted = position(tiles, self.devices, most)
        names = tuple("ijklmnop"[: len(data)]) if len(data) <= 8 else tuple(f"i{k}" for k in range(len(data)))
        domain = Space(names, self.dims)
        box = Space(tuple(kind for kind, _ in replicas), tuple(size for _, size in replicas))
        if self.layout is None:
            place = Shards(self.dims, data, shard, replicas, device, most, lambda index, on: index, position=counted)
            return IndexMap(domain, Space(("device", *(f"local_{n}" for n in names)), (most, *shard)), place, box)
        one = replace(self.layout, dims=shard).index_map()
        flat, memory = one.flat(), one.memory
        if memory is None:
            raise LayoutError(problems.NO_MEMORY(self.layout))
        size = ceil_div(memory.allotted * memory.bits, 8) + memory.prefix_bytes
        local = lambda index, on: flat.place(index, (), on)  # noqa: E731  a name would say no more
        place = Shards(self.dims, data, shard, replicas, device, most, local, size, counted)
        return IndexMap(domain, Space(("device", "offset"), (most, memory.allotted)), place, box)

    def assignment(self) -> tuple[Tiles, tuple[str, ...]]:
        """(tiles with one dimension per array dimension and subgroup, kinds of the subgroups) of the sharding."""
        sharding = self.sharding
        rank = len(self.dims)
        if isinstance(sharding, NamedSharding):
            sharding = to_tiles(sharding)
        if sharding.kind == "unknown":
            raise LayoutError(problems.NO_PLACE(sharding))
        if "maximal" in sharding.subgroups:
            raise LayoutError(problems.MAXIMAL(sharding))
        count = _count(self.devices) or sharding.count
        if sharding.kind == "maximal":
            if sharding.device < 0 or (count is not None and sharding.device >= count):
                raise LayoutError(problems.NO_DEVICE(sharding, sharding.device, count or "any"))
            return Tiles((1,) * rank, devices=(sharding.device,)), ()
        if sharding.tiles is None:
            if count is None:
                raise LayoutError(problems.HOW_MANY_DEVICES(sharding, self))
            return iota((1,) * rank + (count,)), (sharding.kind,)
        problem = sharding.tiles.problem()
        if problem:
            raise LayoutError(located(str(sharding), problem))
        found = len(sharding.tiles.dims) - len(sharding.subgroups)
        if found != rank:
            raise LayoutError(problems.TILE_RANK(sharding, found, rank))
        _check_count(sharding, self.devices)
        return sharding.tiles, sharding.subgroups


def _check_count(sharding: TileSharding, named: int | tuple[int, ...] | None) -> None:
    tiles = sharding.tiles
    count = _count(named)
    if tiles is None or count is None:
        return
    if tiles.count() != count:
        raise LayoutError(problems.DEVICE_COUNT(sharding, tiles.count(), count))
    if not tiles.reshape and max(tiles.devices) >= count:
        raise LayoutError(problems.DEVICE_BEYOND(sharding, max(tiles.devices), count))


def _count(named: int | tuple[int, ...] | None) -> int | None:
    return len(named) if isinstance(named, tuple) else named
