"""A property's options on hardware: a target's name becomes extents, and owners are the axes that are no memory.

A target module may have `EXTENTS` (target -> axis -> extent) and `MEMORY_AXES` (target -> axes); adding one is adding a
file to `layoutproof.hardware`, or a module of another package behind the entry point group `layoutproof.targets`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import layoutproof.hardware
from layoutproof.core import plugins
from layoutproof.core.claim import Claim
from layoutproof.core.errors import LayoutError, unknown_name
from layoutproof.core.index_map import IndexMap
from layoutproof.registry import problems

Claims = Callable[..., tuple[Claim, ...]]
"""The question of a property to the maps, given its options."""


def resolve(claims: Claims, maps: Sequence[IndexMap], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a property with target names and owners filled in; unknown options are left for it to refuse.

    >>> from layoutproof.core.space import Space
    >>> from layoutproof.properties import in_bounds
    >>> lanes = IndexMap(Space(("i",), (64,)), Space(("lane",), (64,)), lambda x, c, on: x)
    >>> resolve(in_bounds.claims, [lanes], {"within": "cuda"})
    {'within': {'lane': 32}}
    """
    filled = dict(options)
    if isinstance(filled.get("within"), str):
        filled["within"] = _extents(filled["within"], maps)
    if filled.get("owner") is None and "owner" in _parameters(claims):
        axes = maps[0].range.names
        memory = _memory_axes(all(axis in _own_axes() for axis in axes))
        filled["owner"] = [name for name in axes if name not in memory]
    return filled


@lru_cache(maxsize=64)
def _parameters(claims: Claims) -> frozenset[str]:
    return frozenset(inspect.signature(claims).parameters)


def _extents(target: str, maps: Sequence[IndexMap]) -> dict[str, int]:
    known = _tables("EXTENTS", target_modules())
    if target not in known:
        known = known | _tables("EXTENTS", other_targets(target))
    if target not in known:
        raise unknown_name("target", target, sorted(known))
    axes = dict.fromkeys([name for m in maps for name in m.range.names])
    found = {axis: known[target][axis] for axis in axes if axis in known[target]}
    if not found:
        have = ", ".join(axes) or "no names"
        raise LayoutError(problems.OTHER_AXES(target, ", ".join(known[target]), have))
    return found


@lru_cache(maxsize=2)
def _memory_axes(own: bool) -> frozenset[str]:
    """The axes that are memory. own: whether the targets of this package say it of every axis that is asked about."""
    modules = target_modules() if own else (*target_modules(), *other_targets())
    return frozenset(axis for axes in _tables("MEMORY_AXES", modules).values() for axis in axes) | {"offset"}


@lru_cache(maxsize=1)
def _own_axes() -> frozenset[str]:
    """Every axis that a target of this package speaks of."""
    bounded = _tables("EXTENTS", target_modules()).values()
    return _memory_axes(True) | {axis for extents in bounded for axis in extents}


def _tables(name: str, modules: Sequence[ModuleType]) -> dict[str, Any]:
    """Every target's entry of one table."""
    found: dict[str, Any] = {}
    for module in modules:
        found |= getattr(module, name, {})
    return found


@lru_cache(maxsize=1)
def target_modules() -> tuple[ModuleType, ...]:
    """The files of `layoutproof.hardware`."""
    names = [m.name for m in pkgutil.iter_modules(layoutproof.hardware.__path__)]
    return tuple(importlib.import_module(f"layoutproof.hardware.{name}") for name in names)


def other_targets(name: str | None = None) -> tuple[Any, ...]:
    """The modules of other packages that speak of targets, without what names one that is built in.

    name: of the target that is looked for; LayoutError where a module is broken that may be the one, or where two
    packages have the target.
    """
    found, broken = plugins.every("targets", *WANTED)
    modules = tuple(module for module in found.values() if not named(module) & _own_targets())
    having = [module for module in modules if name in named(module)]
    if len(having) > 1:
        raise LayoutError(problems.TARGET_TWICE(name, " and ".join(m.title for m in having)))
    if name is not None and broken and not having:
        raise LayoutError(problems.UNKNOWN_TARGET(name, "; ".join(broken)))
    return modules


def refused_targets() -> list[str]:
    """A sentence for each module of another package that is broken, or names a target that is built in."""
    found, broken = plugins.every("targets", *WANTED)
    taken = {module.title: sorted(named(module) & _own_targets()) for module in found.values()}
    return broken + [f"{title} is refused: {', '.join(names)} is built in" for title, names in taken.items() if names]


WANTED = (("EXTENTS",), ("MEMORY_AXES",), ("KERNEL_TARGETS", "kernel_target", "OTHER_NAMES", "page"))
"""The protocols of a target's module, at least one of them."""


def named(module: object) -> frozenset[str]:
    """The targets that a module speaks of."""
    return frozenset(getattr(module, "EXTENTS", ())) | frozenset(getattr(module, "KERNEL_TARGETS", ()))


@lru_cache(maxsize=1)
def _own_targets() -> frozenset[str]:
    return frozenset().union(*map(named, target_modules()))
