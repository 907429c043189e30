"""Shardings of a compiled program's parameters: the text has each device's part, the change is one of the whole.

The whole array is taken to be as large as all parts together, which is what evenly divided dimensions give.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from layoutproof.changes.classes import layouts
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.hlo.replication import tiles_of
from layoutproof.registry.read import read_layout


def resharded(old: tuple[str, str], new: tuple[str, str]) -> list[Finding]:
    """The class of a change from (shape of a part, sharding) to another; none where both say the same.

    >>> rows, columns = ("f32[4,8]{1,0}", "{devices=[2,1]<=[2]}"), ("f32[8,4]{1,0}", "{devices=[1,2]<=[2]}")
    >>> [found.reason for found in resharded(rows, columns)]
    ['as a whole f32[8,8]: (0, 4) goes from device 0 to device 1']
    """
    sides: dict[str, Any] = {"before": old[1] or "not sharded", "after": new[1] or "not sharded"}
    if same_sharding(old[1], new[1]):
        return [Finding("respelled", "", "the same sharding, as XLA converts both", decided_by="normal form", **sides)]
    wholes = [_whole(*side) for side in (old, new)]
    if None in wholes or wholes[0] != wholes[1]:
        return [Finding("resharded", "", "the sharding changed; each device's part is compared as it is", **sides)]
    texts = [f"{wholes[0]} sharded {sharding}" for _, sharding in (old, new)]
    try:
        found = layouts(*texts)
    except LayoutError as error:
        return [Finding("resharded", "", f"the sharding changed: {error.problem}", **sides)]
    kept = [f for f in found if f.question in ("resharded", "respelled", "unknown")]
    if any(f.question not in ("resharded", "respelled", "unknown", "grew", "shrank") for f in found):
        return [Finding("resharded", "", "the sharding changed", **sides)]
    return [
        replace(f, subject="", reason=f"as a whole {wholes[0]}: {f.reason}", figures={}, match_heuristic="", **sides)
        for f in kept
    ]


def same_sharding(old: str, new: str) -> bool:
    """Whether two texts stand for one sharding of whatever array: a mesh that cuts nothing is `{replicated}`.

    >>> same_sharding("{replicated}", "{mesh[], [{}, {}]}")
    True
    >>> same_sharding("{replicated}", "{mesh['x'=2], [{'x'}, {}]}")
    False
    """
    one, other = map(tiles_of, (old, new))
    return one is not None and one == other


def _whole(part: str, sharding: str) -> str | None:
    """The text of the whole array, without a layout."""
    try:
        shape, spread = read_layout(part, "xla"), tiles_of(sharding)
        if spread is None:
            return None
        shards = [1] * len(shape.dims) if spread.tiles is None else list(spread.tiles.dims)[: len(shape.dims)]
        dims = [extent * count for extent, count in zip(shape.dims, shards, strict=True)]
    except (LayoutError, AttributeError, TypeError):
        return None
    return f"{shape.element_type}[{','.join(map(str, dims))}]"
