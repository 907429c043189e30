"""Reading a layout of any language: `layouts/<name>` is the language `<name>`, found by its file name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

import layoutproof.layouts
from layoutproof.core import plugins
from layoutproof.core.bounds import check_data, check_length, check_text
from layoutproof.core.errors import LayoutError, Undecided, shorten, unknown_name
from layoutproof.core.index_map import IndexMap
from layoutproof.registry import problems

WANTED = (("read", "looks_like"),)
"""The protocol of a language's module."""
UNMARKED = "xla"
"""The language of a text that no other language claims: a bare shape, or a mistake, which its reader names best."""


class Layout(Protocol):
    """The result of a language's `read`: frozen, comparable data whose `str` is its text.

    It may also have `steps(index)`, which `locate` shows: (what was done, the index after it, the extents it lies in).
    """

    def index_map(self) -> IndexMap:
        """Where each element goes.

        Returns:
            The map from logical index to coordinates.
        """


def read_layout(value: object, mode: str = "strict") -> Any:
    """A layout from its text, from a mapping, or of an object. Layouts and maps pass through.

    Args:
        value: Text; a mapping `{language: value}`; an expression `{operator: [operand, ..]}` (`layoutproof explain`
            lists the operators), whose result has in `derivation` what was proved of it; an array of NumPy or JAX, a
            `jax.ShapeDtypeStruct`, a sharding of JAX, a layout of TVM, CuTe or pycute (`registry.objects` says what is
            read of each).
        mode: "strict" refuses what the language's own tool refuses; "xla" accepts what XLA's parser accepts.

    Returns:
        The layout: frozen data with `index_map()`; its `str` is its text.

    Raises:
        LayoutError: The text says the value, the rule it breaks and the column; of an expression, why there is no
            such layout.
        Undecided: Whether there is such a layout depends on sizes that have no value.

    >>> str(read_layout("bf16[4096,11008]{1,0:T(8,128)(2,1)}"))
    'bf16[4096,11008]{1,0:T(8,128)(2,1)}'
    >>> str(read_layout({"strided": "f32[3,5] strides (4,1)"}))
    'f32[3,5] strides (4,1)'
    >>> str(read_layout({"tile": ["S[(8,8):(8,1)]", "S[(2,3):(3,1)]"]}))
    'S[(8,2,8,3):(48,3,6,1)] on (16,24)'
    """
    if mode not in ("strict", "xla"):
        raise LayoutError(problems.MODE(mode))
    if isinstance(value, str):
        return _of_text(value, mode)
    if isinstance(value, IndexMap) or hasattr(value, "index_map"):
        return value
    if isinstance(value, Mapping):
        from layoutproof.registry.expressions import evaluate, operators

        if len(value) != 1:
            raise LayoutError(
                problems.LAYOUT_KEYS(
                    ", ".join(languages()), ", ".join(operators()), ", ".join(map(str, value)) or "none"
                )
            )
        ((name, inner),) = value.items()
        if name in operators():
            check_data(inner, name)
            return evaluate(name, inner, lambda operand: read_layout(operand, mode))
        if name not in languages() and name not in plugins.names("languages"):
            known = (*languages(), *plugins.names("languages"), *operators())
            raise unknown_name("layout language or operator", name, known)
        if isinstance(inner, str):
            inner = inner if name == UNMARKED else check_text(inner)
        else:
            check_data(inner, name)
        return language(name).read(inner, mode)
    from layoutproof.registry.objects import layout_of

    found = layout_of(value)
    if found is None:
        raise LayoutError(problems.LAYOUT_TYPE(shorten(repr(value), 60)))
    return found


def _of_text(text: str, mode: str) -> Any:
    """A layout from its text: of the language that claims it, else XLA's, else of another package's language."""
    check_length(text)
    # most texts are of a form that is XLA's alone: then no other language is asked, nor imported
    layout = language(UNMARKED).usual(text)
    if layout is not None:
        return layout
    marked = (name for name in languages() if name != UNMARKED and language(name).looks_like(text))
    name = next(marked, UNMARKED)
    # XLA's own lexer has narrower bounds, and reads leading zeros
    if name != UNMARKED:
        return language(name).read(check_text(text), mode)
    try:
        return language(name).read(text, mode)
    except LayoutError as error:
        found, broken = plugins.every("languages", *WANTED)
        claiming = [name for name in found if name not in languages() and found[name].looks_like(text)]
        if len(claiming) > 1:
            titles = " and ".join(found[name].title for name in claiming)
            raise LayoutError(problems.CLAIMED_BY_SEVERAL(titles, claiming[0]), text=text) from None
        if claiming:
            return found[claiming[0]].read(check_text(text), mode)
        if broken:
            problem = f"{error.problem} ({'; '.join(broken)})"
            raise LayoutError(problem, text=error.text, column=error.column) from None
        raise


def map_of(layout: Layout | IndexMap) -> IndexMap:
    """The index map of a layout, or the map itself. LayoutError where a layout of another package has none."""
    if isinstance(layout, IndexMap):
        return layout
    try:
        index_map: IndexMap = layout.index_map()
    except (LayoutError, Undecided):
        raise
    except Exception as error:
        kind = f"{type(layout).__module__}.{type(layout).__name__}"
        if kind.startswith("layoutproof."):
            raise
        raise LayoutError(problems.NO_INDEX_MAP(kind, type(error).__name__, shorten(str(error), 200))) from error
    return index_map


@lru_cache(maxsize=1)
def languages() -> tuple[str, ...]:
    """The names of all layout languages: the modules of `layoutproof.layouts`."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(layoutproof.layouts.__path__)))


@lru_cache(maxsize=64)
def language(name: str) -> Any:
    """The module of one language; of another package where it is not built in."""
    if name in languages():
        return importlib.import_module(f"layoutproof.layouts.{name}")
    return plugins.load("languages", name, *WANTED)
