"""The classes of one changed array of a compiled program, memory spaces included; and its bytes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from layoutproof.changes.classes import layouts
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, unknown
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
        why = f"from memory space {_space(old)} to {_space(new)}; laid out as before"
        sides: dict[str, Any] = {"before": old, "after": new, "figures": {"bytes": bytes_of(new)}}
        by = inner[0].decided_by if inner else "the same text"
        kind = "faster_memory" if (_space(old), _space(new)) == (0, FAST) else "memory_space"
        return (Finding(kind, "", why, decided_by=by, **sides),)
    return tuple(replace(f, before=old, after=new) for f in inner)


def _space(shape: str) -> int:
    return int(getattr(read_layout(shape, "xla"), "memory_space", 0))
