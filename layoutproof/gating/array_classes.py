"""The classes of one changed array of a compiled program: its layout, its memory space, its sharding.

The text has each device's part of a sharded array, and the change is one of the whole array. Where the size of the
whole is unknown, it is taken to be that of all parts together, which is exact for evenly divided dimensions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, unknown
from layoutproof.gating import problems
from layoutproof.gating.classes import layouts
from layoutproof.gating.compiled_program import EntryValue
from layoutproof.hlo.replication import tiles_of
from layoutproof.hlotext.texts import without_space
from layoutproof.registry.read import map_of, read_layout

HARMLESS = ("respelled",)
"""Classes of arrays that are laid out as before."""
FAST = 1
"""Memory space of the compiler's own fast memory (`Layout::kGenericFastMemorySpace`), VMEM on TPU; 0 is HBM."""


@lru_cache(maxsize=4096)
def bytes_of(shape: str) -> int:
    """Bytes allotted for an array's text; 0 where it is unknown."""
    try:
        memory = map_of(read_layout(shape)).memory
        return int(memory.bytes()) if memory is not None else 0
    except LayoutError:
        return 0


def array_classes(old: str, new: str) -> list[Finding]:
    """The classes of one changed array; another memory space is a class of its own where nothing else changed.

    >>> [found.question for found in array_classes("f32[8]{0}", "f32[8]{0:S(1)}")]
    ['faster_memory']
    """
    try:
        return list(_classes(old, new))
    except LayoutError as error:
        return [unknown("", str(error.problem), before=old, after=new)]


@lru_cache(maxsize=4096)
def _classes(old: str, new: str) -> tuple[Finding, ...]:
    one, other = without_space(old), without_space(new)
    if one == old and other == new:
        return tuple(layouts(old, new))
    inner = layouts(one, other) if one != other else []
    if all(f.question in HARMLESS for f in inner) and _space(old) != _space(new):
        why = problems.MEMORY_SPACE(_space(old), _space(new))
        sides: dict[str, Any] = {"before": old, "after": new, "figures": {"bytes": bytes_of(new)}}
        by = inner[0].decided_by if inner else "the same text"
        kind = "faster_memory" if (_space(old), _space(new)) == (0, FAST) else "memory_space"
        return (Finding(kind, "", why, decided_by=by, **sides),)
    return tuple(replace(f, before=old, after=new) for f in inner)


def _space(shape: str) -> int:
    return int(getattr(read_layout(shape, "xla"), "memory_space", 0))


def resharded(old: EntryValue, new: EntryValue) -> list[Finding]:
    """The class of a change of a sharding.

    >>> rows = EntryValue(0, "f32[4,8]{1,0}", "{devices=[2,1]<=[2]}")
    >>> columns = EntryValue(0, "f32[8,4]{1,0}", "{devices=[1,2]<=[2]}")
    >>> [found.reason for found in resharded(rows, columns)]
    ['as a whole f32[8,8]: (0, 4) goes from device 0 to device 1']
    """
    sides: dict[str, Any] = {"before": old.sharding or "not sharded", "after": new.sharding or "not sharded"}
    if same_sharding(old.sharding, new.sharding):
        return [Finding("respelled", "", problems.SAME_SHARDING(), decided_by="normal form", **sides)]
    wholes = [side.whole or _whole(side.shape, side.sharding) for side in (old, new)]
    if None in wholes or wholes[0] != wholes[1]:
        return [Finding("resharded", "", problems.SHARDING_CHANGED_PARTS(), **sides)]
    texts = [f"{wholes[0]} sharded {side.sharding}" for side in (old, new)]
    try:
        found = layouts(*texts)
    except LayoutError as error:
        return [Finding("resharded", "", problems.SHARDING_CHANGED_UNREAD(error.problem), **sides)]
    kept = [f for f in found if f.question in ("resharded", "respelled", "unknown")]
    if any(f.question not in ("resharded", "respelled", "unknown", "grew", "shrank") for f in found):
        return [Finding("resharded", "", problems.SHARDING_CHANGED(), **sides)]
    return [
        replace(f, subject="", reason=problems.AS_A_WHOLE(wholes[0], f.reason), figures={}, match_heuristic="", **sides)
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
