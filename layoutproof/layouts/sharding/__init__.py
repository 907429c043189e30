"""The language of shardings: which device holds which part of an array, XLA's HloSharding and what is written like it.

    f32[64,128] sharded {devices=[2,2]<=[4]}                              global index -> (device, index in the shard)
    f32[64,128]{1,0:T(8,128)} sharded {devices=[2,2]<=[4]}                global index -> (device, offset)
    f32[64,128] sharded {devices=[2,1,2]<=[4] last_tile_dim_replicate}    two replicas of each element
    f32[64,128] sharded {replicated} on 8 devices                         where the sharding does not say how many
    f32[64,128] sharded {mesh['x'=2,'y'=4], [{'x'}, {'y'}]}               the mesh form (V3)
    f32[64,128] sharded P('x', None) on x=2,y=4            as JAX prints it; also NamedSharding(mesh=Mesh(..), ..)
    f32[64,128] sharded (split(0), broadcast) on mesh['x'=2,'y'=2]        an SBP signature, one entry per mesh axis

Mappings: `{"sharding": "{devices=[2,2]<=[4]}", "shape": "f32[64,128]"}`, JAX's
`{"mesh": {"x": 2, "y": 4}, "spec": ["x", None], "shape": ..}` or `{"mesh": .., "sbp": "(split(0), broadcast)"}`;
"shape" is text or a list of extents, "devices" a number or a list of device numbers. JAX's own NamedSharding, Mesh
and PartitionSpec objects may stand where their text may. Without a shape a sharding reads and prints, no more.

Uneven shards are XLA's: contiguous blocks of ceil(d/n), the last ones smaller or empty, all of them padded alike.
Unreduced replicas hold parts of a sum and manual ones what the program put there; their places are those of replicas.
"""

from __future__ import annotations

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.array import ShardedArray
from layoutproof.layouts.sharding.jax_text import STARTS as JAX
from layoutproof.layouts.sharding.model import (
    Axis,
    Mesh,
    NamedSharding,
    Sharding,
    ShardingTuple,
    TileSharding,
)
from layoutproof.layouts.sharding.partition_spec import SBP, from_jax, is_jax
from layoutproof.layouts.sharding.reading import SHARDED, read_mapping, read_text
from layoutproof.layouts.sharding.text import parse

__all__ = [
    "Axis",
    "Mesh",
    "NamedSharding",
    "ShardedArray",
    "Sharding",
    "ShardingTuple",
    "TileSharding",
    "looks_like",
    "parse",
    "read",
]


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as a sharding: braces or `P(` first, ` sharded `, or SBP.

    Args:
        text: A layout without the name of a language.

    Returns:
        True where this language claims the text.
    """
    if text.lstrip().startswith("{") or SHARDED.search(text) is not None:
        return True
    return SBP.match(text) is not None or JAX.match(text) is not None


def read(value: object, mode: str = "strict") -> Sharding | ShardedArray:
    """A sharding, or an array with one, from text, a mapping or a JAX object; see the module's text.

    Args:
        value: Text, a mapping with mesh and spec, or a sharding of JAX.
        mode: "strict" or "xla", how much of XLA's grammar is taken.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: The text says the value, the rule and, of a text, the column.

    >>> str(read({"mesh": {"x": 2, "y": 4}, "spec": ["x", None, ["y"]]}))
    "{mesh['x'=2,'y'=4], [{'x'}, {}, {'y'}]}"
    >>> read("f32[64,128]{1,0} sharded {devices=[2,2]<=[4]}").index_map().at((33, 70))
    (3, 70)
    """
    if isinstance(value, str):
        return read_text(value, mode)
    if isinstance(value, dict):
        return read_mapping(value, mode)
    if is_jax(value):
        sharding, devices = from_jax(value)
        if devices is not None:
            raise LayoutError(problems.MESH_DEVICES(shorten(str(devices), 60)))
        return sharding
    raise LayoutError(problems.FORM(shorten(repr(value), 60)))
