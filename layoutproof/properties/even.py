"""All shards of a sharded array are equally large: no device holds less than it allots.

A dimension of extent d over n tiles is cut into blocks of ceil(d/n), so the shards are even exactly when n blocks of
that size are d. If not, the last blocks are smaller or empty, and every device still allots the whole block.
Figures: `shard` (the extents that each device allots), `per_dimension` (extent, tiles, shard, and `last`, what the
last tile holds), `elements` (counting every replica), `padded_elements` (allotted on all devices together),
`padding_elements` (the difference) with `padding_elements_by_device` for up to 64 devices, and where the layout of a
shard is known `bytes_per_device` and `bytes` allotted, padding by tiles included.
Why it matters: uneven shards waste memory and leave devices idle, and some programs (JAX's arrays) refuse them.
Refuted by: the first `dimension` that does not divide and the number of its first smaller `tile`; for symbolic sizes
the smallest `sizes` that do not.
Example: `f32[5,4] sharded {devices=[4,1]<=[4]}` is refuted: blocks of 2, 2, 1 and 0 rows.
Fix: pad the dimension to a multiple of its tiles, or split it over fewer devices.
Incident: uneven shards, and local shapes that are padded otherwise than expected:
https://github.com/EnzymeAD/Reactant.jl/pull/822
Refuted:
    layoutproof ask even "f32[5,4] sharded {devices=[4,1]<=[4]}"
Proved:
    layoutproof ask even "f32[8,4] sharded {devices=[4,1]<=[4]}"
Limits: Bytes of what each device allots, not of what is sent.
"""

from __future__ import annotations

from math import prod
from typing import Any

from layoutproof.core.claim import Claim, SizeCondition
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import product
from layoutproof.core.term import Term, size_term

LAYOUTS = 1

NO_SHARDS = Template(
    "properties.even_no_shards",
    "even is about sharded arrays, e.g. 'f32[64,128] sharded {{devices=[2,2]<=[4]}}'; this map is not cut into shards",
)
TILE = Template(
    "properties.even_tile",
    "dimension {dimension} of extent {extent} over {tiles} tiles: tile {tile} holds {held} of {most}{last}",
)
MOST_NAMED = 64
"""Devices up to which figures name each one."""


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim per dimension: its tiles together are not larger than it is.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: The map is no sharding.
    """
    shards = _shards(m)
    rows = zip(shards.extents, shards.tiles, shards.shard, strict=True)
    return tuple([_divides(k, d, n, c) for k, (d, n, c) in enumerate(rows)]) or (_divides(0, 1, 1, 1),)


def figures(m: IndexMap) -> dict[str, object]:
    """The numbers of the module's text; closed forms as text when sizes are symbolic.

    Args:
        m: The map of one layout.

    Returns:
        Exact numbers by name; closed forms as text where sizes are symbolic.
    """
    shards = _shards(m)
    replicas = prod(size for _, size in shards.replicas)
    devices = prod(shards.tiles) * replicas
    elements: Any = product(shards.extents) * replicas
    padded: Any = product(shards.shard) * devices
    rows = list(zip(shards.extents, shards.tiles, shards.shard, strict=True))
    per_dimension = []
    for k, (d, n, c) in enumerate(rows):
        row = {"dimension": k, "extent": _plain(d), "tiles": n, "shard": _plain(c)}
        per_dimension.append(row | ({"last": max(0, d - (n - 1) * c)} if type(d) is int else {}))
    shown: dict[str, object] = {
        "shard": [_plain(c) for c in shards.shard],
        "per_dimension": per_dimension,
        "elements": _plain(elements),
        "padded_elements": _plain(padded),
        "padding_elements": _plain(padded - elements),
    }
    if m.domain.is_constant() and devices <= MOST_NAMED:
        room = prod(shards.shard)
        shown["padding_elements_by_device"] = {str(device): room - prod(held) for device, held in shards.holders()}
    if shards.shard_bytes is not None:
        shown["bytes_per_device"] = _plain(shards.shard_bytes)
        shown["bytes"] = _plain(shards.shard_bytes * devices)
    return shown


def _divides(dimension: int, extent: Any, tiles: int, shard: Any) -> Claim:
    def explain(at: Point, on: Numbers) -> str:
        d, c = on.size(extent), on.size(shard)
        blocks = [max(0, min((t + 1) * c, d) - t * c) for t in (d // c, tiles - 1)]
        last = f", and the last tile {blocks[1]}" if d // c != tiles - 1 else ""
        return TILE(dimension, d, tiles, d // c, blocks[0], c, last)

    constant = type(extent) is int and type(shard) is int and shard > 0
    witness: Point = {"dimension": (dimension,), "tile": (extent // shard,)} if constant else {}
    return Claim({}, SizeCondition(Term("<", size_term(extent), size_term(shard * tiles))), explain, witness)


def _shards(m: IndexMap) -> Any:
    """How the array is cut, as the map's `place` knows it."""
    shards = getattr(m.place, "shards", None)
    if shards is None:
        raise LayoutError(NO_SHARDS())
    return shards


def _plain(number: object) -> object:
    return number if type(number) is int else str(number)
