"""Shardings as frozen data: what XLA's text says (V1, V2), and the mesh form (V3).

Source: openxla/xla `xla/hlo/ir/hlo_sharding.h`, `named_sharding.h`, `mesh_and_axis.h`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import product
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.tiles import Tiles

KINDS = ("replicated", "maximal", "manual", "unknown", "unreduced")
"""Shardings without tiles, in the order in which XLA's parser prefers them."""

REDUCTIONS = ("max", "min")
"""How unreduced values may combine where it is not their sum; newer than jaxlib 0.10.2."""


@dataclass(frozen=True, slots=True)
class TileSharding:
    """One sharding in XLA's own terms, e.g. `{devices=[2,2]<=[4] last_tile_dim_replicate}`.

    kind: "tiled" or one of `KINDS`.  tiles: of a tiled one; its last dimensions are the `subgroups`, one each.
    device: of a maximal one.  group: ("shard_as" or "shard_like", number).
    reduction: "", "max" or "min", how the values of an unreduced one combine; places do not depend on it.
    metadata: the text between the braces, one per operation; it says nothing of places and is not compared.
    count: devices it is over, where that is known although the text no longer says so; not compared either.
    """

    kind: str
    tiles: Tiles | None = None
    subgroups: tuple[str, ...] = ()
    device: int = 0
    group: tuple[str, int] | None = None
    metadata: tuple[str, ...] = field(default=(), compare=False)
    count: int | None = field(default=None, compare=False)
    reduction: str = ""

    def __str__(self) -> str:
        head = f"maximal device={self.device}" if self.kind == "maximal" else self.kind
        head += f"={self.reduction}" if self.reduction else ""
        if self.tiles is not None:
            head = str(self.tiles)
        parts = [head]
        if self.subgroups == ("replicated",):
            parts.append("last_tile_dim_replicate")
        elif self.subgroups:
            parts.append(f"last_tile_dims={{{', '.join(self.subgroups)}}}")
        if self.group is not None:
            parts.append(f"{self.group[0]} {self.group[1]}")
        if self.metadata:
            inner = self.metadata[0] if len(self.metadata) == 1 else ", ".join(f"{{{m}}}" for m in self.metadata)
            parts.append(f"metadata={{{inner}}}")
        return "{" + " ".join(parts) + "}"

    def index_map(self) -> IndexMap:
        """Always a LayoutError: a sharding places an array, so it needs one."""
        raise no_shape(self)


@dataclass(frozen=True, slots=True)
class Axis:
    """A mesh axis by number, or with `size` the part of it that has `pre` more major positions: `'a':(pre)size`."""

    number: int
    pre: int = 1
    size: int = 0


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes, and the device at each of their points; a maximal mesh has no axes but one device."""

    names: tuple[str, ...]
    tiles: Tiles
    maximal: bool = False

    def __str__(self) -> str:
        if self.maximal:
            return f"maximal_mesh[device_id={self.tiles.devices[0]}]"
        axes = ",".join(f"'{name}'={size}" for name, size in zip(self.names, self.tiles.dims, strict=True))
        plain = len(self.tiles.reshape) == 1 or not self.names
        return f"mesh[{axes}]" + ("" if plain else f", device_ids=({self.tiles.assignment()})")

    def size(self, axis: Axis) -> int:
        """How many positions an axis or a part of one has."""
        return axis.size or self.tiles.dims[axis.number]

    def show(self, axis: Axis) -> str:
        """An axis as its text has it."""
        return f"'{self.names[axis.number]}'" + (f":({axis.pre}){axis.size}" if axis.size else "")


@dataclass(frozen=True, slots=True)
class NamedSharding:
    """A sharding over a mesh (V3), e.g. `{mesh['a'=2,'b'=4], [{'a'}, {}], replicated={'b'}}`.

    dims: per array dimension the axes it is split over, most major first.  open: dimensions written with `?`.
    replicated, unreduced, manual: axes said to be so; axes not named anywhere are replicated.
    reduction: "", "max" or "min", how unreduced values combine.
    """

    mesh: Mesh
    dims: tuple[tuple[Axis, ...], ...] = ()
    open: tuple[bool, ...] = ()
    replicated: tuple[Axis, ...] = ()
    unreduced: tuple[Axis, ...] = ()
    manual: tuple[Axis, ...] = ()
    reduction: str = ""
    metadata: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        parts = [str(self.mesh)]
        word = self.word()
        if word:
            parts.append(f"{word}={self.reduction}" if self.reduction else word)
        elif not self.mesh.maximal:
            entries = []
            for axes, is_open in zip(self.dims, self.open, strict=True):
                shown = [self.mesh.show(axis) for axis in axes] + (["?"] if is_open else [])
                entries.append("{" + ", ".join(shown) + "}")
            parts.append("[" + ", ".join(entries) + "]")
            for name in ("replicated", "unreduced", "manual"):
                if getattr(self, name):
                    shown = [self.mesh.show(axis) for axis in getattr(self, name)]
                    reduction = self.reduction if name == "unreduced" else ""
                    parts.append(f"{name}={reduction}{{{', '.join(shown)}}}")
        if self.metadata:
            parts.append("metadata={" + ", ".join(f"{{{m}}}" for m in self.metadata) + "}")
        return "{" + ", ".join(parts) + "}"

    def word(self) -> str:
        """The one word that stands for all of it when no dimension is spoken of, or ""."""
        if self.mesh.maximal or self.dims:
            return ""
        if not self.unreduced and not self.manual:
            return "" if self.replicated else "replicated"
        sizes = [product(self.mesh.size(axis) for axis in axes) for axes in (self.unreduced, self.manual)]
        if self.unreduced and sizes[0] == self.mesh.tiles.count():
            return "unreduced"
        return "manual" if self.manual and sizes[1] == self.mesh.tiles.count() else ""

    def index_map(self) -> IndexMap:
        """Always a LayoutError: a sharding places an array, so it needs one."""
        raise no_shape(self)


@dataclass(frozen=True, slots=True)
class ShardingTuple:
    """One sharding per leaf of a tuple."""

    elements: tuple[TileSharding | NamedSharding, ...]

    def __str__(self) -> str:
        shown = [f"/*index={k}*/{e}" if k and k % 5 == 0 else str(e) for k, e in enumerate(self.elements)]
        return "{" + ", ".join(shown) + "}"

    def index_map(self) -> IndexMap:
        """Always a LayoutError: a tuple has no single map."""
        raise LayoutError(problems.TUPLE(len(self.elements)))


Sharding = TileSharding | NamedSharding | ShardingTuple


def no_shape(sharding: TileSharding | NamedSharding) -> LayoutError:
    """The error that a sharding alone places nothing."""
    return LayoutError(problems.OF_ARRAY(sharding))
