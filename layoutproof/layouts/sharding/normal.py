"""The normal form that XLA gives every tiled sharding when it is made.

Source: openxla/xla `xla/hlo/ir/hlo_sharding.cc` (HloSharding::PartialTile, HloSharding::Subgroup), checked on random
assignments against jaxlib 0.10.2.
"""

from __future__ import annotations

from layoutproof.core.size import product
from layoutproof.layouts.sharding.model import TileSharding
from layoutproof.layouts.sharding.tiles import Tiles, grouped, listed, reshaped, transposed

ORDER = ("maximal", "manual", "unreduced", "replicated")
"""Subgroups in the order in which XLA sorts them."""


def subgrouped(tiles: Tiles, subgroups: tuple[str, ...]) -> TileSharding:
    """The sharding whose last dimensions are `subgroups`: size 1 removed, equal ones merged, replicas ascending.

    Requires as many dimensions as subgroups at least.

    >>> str(subgrouped(Tiles((2, 2, 2), (8,), (0,)), ("replicated", "manual")))
    '{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}}'
    >>> str(subgrouped(Tiles((1, 4), (4,), (0,)), ("replicated",)))
    '{replicated}'
    """
    if not subgroups:
        return TileSharding("tiled", tiles)
    data = len(tiles.dims) - len(subgroups)
    first = subgroups[0]
    if len(set(subgroups)) == 1 and product(tiles.dims[:data]) == 1 and first != "maximal":
        return TileSharding(first, count=_numbered(tiles))
    groups = {kind: [k for k, s in enumerate(subgroups, data) if s == kind and tiles.dims[k] != 1] for kind in ORDER}
    groups = {kind: found for kind, found in groups.items() if found}
    gone = [k for k in range(data, len(tiles.dims)) if tiles.dims[k] == 1]
    if gone or len(groups) > 1 or any(len(found) > 1 for found in groups.values()):
        moved = transposed(tiles, [*range(data), *(k for found in groups.values() for k in found), *gone])
        merged = [product(tiles.dims[k] for k in found) for found in groups.values()]
        tiles = reshaped(moved, (*tiles.dims[:data], *merged))
    kinds = tuple(groups)
    if kinds == ("manual",) and tiles.dims[-1] == tiles.count():
        return TileSharding("manual", count=_numbered(tiles))
    if kinds and kinds[-1] == "replicated":
        if len(tiles.dims) == 1 or tiles.dims[-1] == tiles.count():
            return TileSharding("replicated", count=_numbered(tiles))
        tiles = grouped(tiles, tiles.dims[-1])
    return TileSharding("tiled", tiles, kinds)


def _numbered(tiles: Tiles) -> int | None:
    """How many devices, if they are numbered from 0 up: only then does the number say which they are."""
    if tiles.reshape or sorted(listed(tiles)) == list(range(tiles.count())):
        return tiles.count()
    return None
