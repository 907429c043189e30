"""What a property's options mean on hardware: a target's name becomes extents, and owners are what is not memory.

A target module may have `EXTENTS` (target -> axis -> extent) and `MEMORY_AXES` (target -> axes); adding one is adding a
file to `layoutproof.hardware`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import layoutproof.hardware
from layoutproof.core.errors import LayoutError, unknown_name
from layoutproof.core.index_map import IndexMap


def resolve(module: ModuleType, maps: Sequence[IndexMap], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a property with target names and owners filled in; unknown options are left for it to refuse.

    >>> from layoutproof.core.space import Space
    >>> from layoutproof.properties import in_bounds
    >>> lanes = IndexMap(Space(("i",), (64,)), Space(("lane",), (64,)), lambda x, c, on: x)
    >>> resolve(in_bounds, [lanes], {"within": "cuda"})
    {'within': {'lane': 32}}
    """
    filled = dict(options)
    if isinstance(filled.get("within"), str):
        filled["within"] = _extents(filled["within"], maps)
    if filled.get("owner") is None and "owner" in _parameters(module):
        memory = _memory_axes()
        filled["owner"] = [name for name in maps[0].range.names if name not in memory]
    return filled


@lru_cache(maxsize=64)
def _parameters(module: ModuleType) -> frozenset[str]:
    return frozenset(inspect.signature(module.claims).parameters)


def _extents(target: str, maps: Sequence[IndexMap]) -> dict[str, int]:
    known = _tables("EXTENTS")
    if target not in known:
        raise unknown_name("target", target, sorted(known))
    axes = dict.fromkeys([name for m in maps for name in m.range.names])
    found = {axis: known[target][axis] for axis in axes if axis in known[target]}
    if not found:
        have = ", ".join(axes) or "no names"
        raise LayoutError(f"{target} bounds the axes {', '.join(known[target])}, and the layout has {have}")
    return found


@lru_cache(maxsize=1)
def _memory_axes() -> frozenset[str]:
    return frozenset(axis for axes in _tables("MEMORY_AXES").values() for axis in axes) | {"offset"}


@lru_cache(maxsize=4)
def _tables(name: str) -> dict[str, Any]:
    """All targets' entries of one table."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(layoutproof.hardware.__path__):
        found |= getattr(importlib.import_module(f"layoutproof.hardware.{module.name}"), name, {})
    return found
