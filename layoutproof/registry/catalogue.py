"""The properties there are: the modules of `layoutproof.properties`, and the options that each one's claims take.

Other packages add properties behind the entry point group `layoutproof.properties`; a module with `obligations` is one
of kernels, asked where it is named.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import layoutproof.properties
from layoutproof.core import plugins
from layoutproof.core.claim import Claim
from layoutproof.core.errors import LayoutError, unknown_name
from layoutproof.registry import problems

_RULES = "layoutproof.pallas.rules"
"""Found by name: this package lies above."""


@lru_cache(maxsize=1)
def properties() -> tuple[str, ...]:
    """The names of all properties of layouts: the modules of `layoutproof.properties`."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(layoutproof.properties.__path__) if not m.ispkg))


@lru_cache(maxsize=1)
def kernel_properties() -> tuple[str, ...]:
    """The names of all properties of kernels: the modules of `layoutproof.pallas.rules`."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(importlib.import_module(_RULES).__path__)))


WANTED = (("LAYOUTS", "claims"), ("TARGET", "obligations"))
"""The protocol of a property's module: of layouts, or of kernels."""


@lru_cache(maxsize=256)
def property_module(name: str) -> Any:
    """The module of one property, of layouts or of kernels; LayoutError lists the known ones."""
    if name in kernel_properties():
        return importlib.import_module(f"{_RULES}.{name}")
    if name in properties():
        return importlib.import_module(f"layoutproof.properties.{name}")
    found = plugins.load("properties", name, *WANTED)
    if found is None:
        own = (*properties(), *kernel_properties())
        raise unknown_name("property", name, (*own, *plugins.names("properties", own)))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class LayoutProperty:
    """The definitions of a module of a property of layouts; `figures`, `counted` and `vacuous` may be left out.

    layouts: how many layouts it speaks of (`LAYOUTS`).
    claims: (maps, options) -> what the engines decide; it holds where all are proved.
    figures: (maps, options) -> exact numbers that belong to the answer.
    counted: (how to count, maps, options) -> more figures, which have to be counted, and claims about them.
    vacuous: (maps, options) -> why a proof of the claims would say nothing, or ""; a refutation stands.
    """

    layouts: int
    claims: Callable[..., tuple[Claim, ...]]
    figures: Callable[..., Mapping[str, Any]] | None = None
    counted: Callable[..., tuple[Mapping[str, Any], tuple[Claim, ...]]] | None = None
    vacuous: Callable[..., str] | None = None


@lru_cache(maxsize=256)
def layout_property(name: str) -> LayoutProperty:
    """One property of layouts; LayoutError lists the known ones."""
    module = property_module(name)
    more = {part: getattr(module, part, None) for part in ("figures", "counted", "vacuous")}
    return LayoutProperty(module.LAYOUTS, module.claims, **more)


@lru_cache(maxsize=256)
def is_of_kernels(name: str) -> bool:
    """Whether a property is one of kernels, not of layouts; LayoutError lists the known ones."""
    if name in kernel_properties() or name in properties():
        return name in kernel_properties()
    return hasattr(property_module(name), "obligations")


def kernel_property(name: str) -> Any:
    """The module of one property of kernels; LayoutError lists the known ones, also for a property of layouts."""
    own = kernel_properties()
    if name in own or (name in plugins.names("properties", (*properties(), *own)) and is_of_kernels(name)):
        return property_module(name)
    raise unknown_name("property of kernels", name, own)


def layouts_of(name: str) -> int:
    """How many layouts a property speaks of."""
    return 1 if is_of_kernels(name) else int(property_module(name).LAYOUTS)


@lru_cache(maxsize=256)
def options_of(name: str) -> dict[str, tuple[Any, Any]]:
    """A property's own options: name -> (type, default), as its `claims` declares them.

    >>> options_of("padding")
    {'at_most': (str | None, None)}
    """
    if is_of_kernels(name):
        # other properties differ between platforms too: programs run one after the other, or at once
        return dict.fromkeys(("target", "compiler"), (str | None, None)) | {"strict_tables": (bool, False)}
    parameters = inspect.signature(property_module(name).claims, eval_str=True).parameters.values()
    return {p.name: (p.annotation, p.default) for p in parameters if p.default is not p.empty}


def check_options(name: str, options: dict[str, object]) -> None:
    """LayoutError for an option that the property does not have; names those it has."""
    for option in options:
        known = options_of(name)
        if option not in known:
            have = f"its options are {', '.join(known)}" if known else "it has no options"
            raise LayoutError(problems.UNKNOWN_OPTION(name, option, have))
