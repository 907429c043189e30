"""Mesh shardings (V3): which of them are sound, and the tile assignment (V2) of each one.

Source: openxla/xla `xla/hlo/ir/mesh_and_axis.cc` (ValidateMesh, AxisRef), `named_sharding.cc` (VerifyNamedSharding),
`hlo_sharding.cc` (V3ToV2Sharding), checked against `HloSharding.v3_to_v2_sharding` of jaxlib 0.10.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from layoutproof.core.size import product
from layoutproof.layouts.sharding.model import Axis, Mesh, NamedSharding, TileSharding
from layoutproof.layouts.sharding.normal import subgrouped
from layoutproof.layouts.sharding.tiles import Tiles, iota, reshaped, transposed


def wrong_mesh(mesh: Mesh, strict: bool) -> str:
    """Why XLA aborts on this mesh, or with `strict` why it has no meaning; "" for a sound one."""
    for k, name in enumerate(mesh.names):
        if name in mesh.names[:k]:
            return f"the mesh has two axes '{name}'"
    tiles = mesh.tiles
    if not tiles.reshape:
        if tiles.devices == tuple(range(tiles.count())):
            return "device_ids lists 0,1,2,.. in order, which XLA wants left out"
        if sorted(tiles.devices) != list(range(tiles.count())):
            return f"device_ids must be 0..{tiles.count() - 1} in some order"
    if strict and any(size < 1 for size in tiles.dims):
        return "a mesh axis has at least 1 device"
    return tiles.problem() if strict and tiles.reshape and mesh.names else ""


def wrong_axes(sharding: NamedSharding) -> str:
    """Why the axes of a sharding are none of its mesh, overlap, or are not in XLA's order; "" if they are sound."""
    mesh = sharding.mesh
    seen: list[Axis] = []
    lists = [*((axes, "") for axes in sharding.dims)]
    lists += [(getattr(sharding, name), name) for name in ("replicated", "unreduced", "manual")]
    for axes, name in lists:
        if name and list(axes) != sorted(axes, key=lambda a: (a.number, a.pre, mesh.size(a))):
            return f"the {name} axes must be in the order of the mesh"
        for before, axis in zip((None, *axes), axes, strict=False):
            whole = mesh.tiles.dims[axis.number]
            if axis.size and (axis.size >= whole or whole % (axis.pre * axis.size)):
                return f"{mesh.show(axis)} is no part of '{mesh.names[axis.number]}' of size {whole}"
            for other in seen:
                if not _apart(axis, other):
                    return f"{mesh.show(axis)} and {mesh.show(other)} overlap: each axis may be used once"
            if before and before.size and axis.size and _runs_on(before, axis):
                return f"{mesh.show(before)}, {mesh.show(axis)} must be written as one"
            seen.append(axis)
    return ""


def _apart(one: Axis, other: Axis) -> bool:
    if one.number != other.number:
        return True
    if not one.size or not other.size:
        return False
    low, high = sorted((one, other), key=lambda a: a.pre)
    return high.pre >= low.pre * low.size and high.pre % (low.pre * low.size) == 0


def _runs_on(before: Axis, axis: Axis) -> bool:
    return before.number == axis.number and before.pre * before.size == axis.pre


def to_tiles(sharding: NamedSharding) -> TileSharding:
    """The V1 or V2 sharding that a mesh sharding stands for, as XLA converts it.

    Axes named nowhere are replicated. The number of devices stays known where the text no longer says it.

    >>> from layoutproof.layouts.sharding.text import parse
    >>> str(to_tiles(parse("{mesh['a'=2,'b'=4,'c'=4], [{'c'}, {'a', 'b'}]}")))
    '{devices=[4,8]<=[8,4]T(1,0)}'
    """
    mesh = sharding.mesh
    if mesh.maximal:
        return TileSharding("maximal", device=mesh.tiles.devices[0], metadata=sharding.metadata)
    if not sharding.unreduced and not sharding.manual and not any(sharding.dims):
        return TileSharding("replicated", metadata=sharding.metadata, count=mesh.tiles.count())
    groups = {"manual": sharding.manual, "unreduced": sharding.unreduced}
    kinds = [kind for kind, axes in groups.items() if axes]
    lists = [*sharding.dims, *(groups[kind] for kind in kinds)]
    order = [axis for axes in lists for axis in axes if mesh.size(axis) > 1]
    parts = _parts(sharding)
    rest = tuple(axis for axis in parts if axis not in order)
    if rest:
        kinds.append("replicated")
        lists.append(rest)
    tiles = _tiles(mesh, parts, [*order, *rest], [product(map(mesh.size, axes)) for axes in lists])
    found = subgrouped(tiles, tuple(kinds))
    if not kinds and tiles.count() == 1:
        found = TileSharding("replicated")
    return replace(found, metadata=sharding.metadata, count=found.count or mesh.tiles.count())


def _tiles(mesh: Mesh, parts: Sequence[Axis], order: Sequence[Axis], dims: Sequence[int]) -> Tiles:
    """The devices of a mesh by the parts of its axes, these put into an order, as an array of `dims`."""
    extents = [mesh.size(axis) for axis in parts]
    perm = [parts.index(axis) for axis in order]
    if len(mesh.tiles.reshape) == 1:
        return iota(dims, extents or (1,), perm or (0,))
    return reshaped(transposed(reshaped(mesh.tiles, extents), perm), dims)


def _parts(sharding: NamedSharding) -> list[Axis]:
    """The axes of the mesh in order, cut wherever the sharding names a part of one; those of size 1 left out."""
    mesh = sharding.mesh
    named = [*sharding.dims, sharding.replicated, sharding.unreduced, sharding.manual]
    parts: list[Axis] = []
    for number, whole in enumerate(mesh.tiles.dims):
        cuts = {1, whole}
        for axis in (axis for axes in named for axis in axes if axis.number == number and axis.size):
            cuts |= {axis.pre, axis.pre * axis.size}
        ends = sorted(cuts)
        if len(ends) == 2:
            parts.append(Axis(number))
        elif len(ends) > 2:
            parts += [Axis(number, pre, after // pre) for pre, after in itertools.pairwise(ends)]
    return parts


def mesh_of(names: tuple[str, ...], sizes: tuple[int, ...], devices: tuple[int, ...] = ()) -> Mesh:
    """A mesh with named axes; `devices`, a permutation of 0.., only where they are not in order."""
    plain = not devices or devices == tuple(range(len(devices)))
    return Mesh(names, iota(sizes) if plain else Tiles(sizes, devices=devices))
