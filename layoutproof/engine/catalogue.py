"""The properties there are: the modules of `layoutproof.properties`, and the options that each one's claims take."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import lru_cache
from types import ModuleType
from typing import Any

import layoutproof.properties
from layoutproof.core.errors import LayoutError, shorten


def properties() -> tuple[str, ...]:
    """The names of all properties: the modules of `layoutproof.properties`."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(layoutproof.properties.__path__)))


@lru_cache(maxsize=256)
def property_module(name: str) -> ModuleType:
    """The module of one property; LayoutError lists the known ones."""
    if name not in properties():
        raise LayoutError(f"unknown property {shorten(str(name), 40)!r}; known: {', '.join(properties())}")
    return importlib.import_module(f"layoutproof.properties.{name}")


@lru_cache(maxsize=256)
def options_of(name: str) -> dict[str, tuple[Any, Any]]:
    """A property's own options: name -> (type, default), as its `claims` declares them.

    >>> options_of("padding")
    {'at_most': (str | None, None)}
    """
    parameters = inspect.signature(property_module(name).claims, eval_str=True).parameters.values()
    return {p.name: (p.annotation, p.default) for p in parameters if p.default is not p.empty}


def check_options(name: str, options: dict[str, Any]) -> None:
    """LayoutError for an option that the property does not have; names those it has."""
    for option in options:
        known = options_of(name)
        if option not in known:
            have = f"its options are {', '.join(known)}" if known else "it has no options"
            raise LayoutError(f"{name} does not know the option {option!r}; {have}")
