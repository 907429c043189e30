"""Reading a layout of any language: `layouts/<name>` is the language `<name>`, found by its file name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any, Protocol

import layoutproof.layouts
from layoutproof.core.bounds import check_data, check_text
from layoutproof.core.errors import LayoutError, shorten, unknown_name
from layoutproof.core.index_map import IndexMap

UNMARKED = "xla"
"""The language of a text that no other language claims: a bare shape, or a mistake, which its reader names best."""


class Layout(Protocol):
    """What a language's `read` returns: frozen, comparable data whose `str` is its text.

    It may also have `steps(index)`, which `locate` shows: (what was done, the index after it, the extents it lies in).
    """

    def index_map(self) -> IndexMap:
        """Where each element goes."""


def read_layout(value: object, mode: str = "strict") -> Any:
    """A layout from its text, from a mapping `{language: value}`, or of an object; layouts and maps pass through.

    value: also an array of NumPy or JAX, a `jax.ShapeDtypeStruct`, a sharding of JAX, a layout of TVM, CuTe or pycute;
        `registry.objects` says what is read of each.
    mode: "strict" refuses what its own tool's verifier would; "xla" accepts what XLA's parser accepts.
    Raises LayoutError with the value, the rule and the column.

    >>> str(read_layout("bf16[4096,11008]{1,0:T(8,128)(2,1)}"))
    'bf16[4096,11008]{1,0:T(8,128)(2,1)}'
    >>> str(read_layout({"strided": "f32[3,5] strides (4,1)"}))
    'f32[3,5] strides (4,1)'
    """
    if mode not in ("strict", "xla"):
        raise LayoutError(f"mode is 'strict' or 'xla', not {mode!r}")
    if isinstance(value, str):
        marked = (name for name in languages() if name != UNMARKED and language(name).looks_like(value))
        name = next(marked, UNMARKED)
        # XLA's own lexer has narrower bounds, and reads leading zeros
        return language(name).read(value if name == UNMARKED else check_text(value), mode)
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise LayoutError(
                f"a layout is a text or a mapping with one key, the language ({', '.join(languages())}); "
                f"got keys {', '.join(map(str, value)) or 'none'}"
            )
        ((name, inner),) = value.items()
        if name not in languages():
            raise unknown_name("layout language", name, languages())
        if isinstance(inner, str):
            inner = inner if name == UNMARKED else check_text(inner)
        else:
            check_data(inner, name)
        return language(name).read(inner, mode)
    if hasattr(value, "index_map") or isinstance(value, IndexMap):
        return value
    from layoutproof.registry.objects import layout_of

    found = layout_of(value)
    if found is None:
        raise LayoutError(
            f"a layout is a text, a mapping, or an object of JAX, NumPy, TVM or CuTe, not {shorten(repr(value), 60)}"
        )
    return found


def map_of(layout: Any) -> IndexMap:
    """The index map of a layout, or the map itself."""
    if isinstance(layout, IndexMap):
        return layout
    index_map: IndexMap = layout.index_map()
    return index_map


@lru_cache(maxsize=1)
def languages() -> tuple[str, ...]:
    """The names of all layout languages: the modules of `layoutproof.layouts`."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(layoutproof.layouts.__path__)))


@lru_cache(maxsize=64)
def language(name: str) -> ModuleType:
    """The module of one language."""
    return importlib.import_module(f"layoutproof.layouts.{name}")
