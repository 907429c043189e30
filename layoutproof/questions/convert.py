"""A layout in another language: returned only when the two are proved to be the same map.

`conversions/<from>_to_<to>.py` proposes, the engines decide: by same_map, or by bitcast where the other language has
other dimensions for the same elements.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import layoutproof.questions.conversions
from layoutproof.core.errors import LayoutError, Unsupported, shorten
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import Verdict, show_point
from layoutproof.questions import problems
from layoutproof.questions.ask import ask
from layoutproof.registry.read import map_of, read_layout


@dataclass(frozen=True, slots=True)
class Conversion:
    """A proposed layout of the other language, and whether it is the same: use it only where `result` is proved."""

    layout: Any
    result: Finding


def convert(layout: object, to: str) -> Any:
    """The same layout in another language, returned only when the two are proved to be the same.

    Args:
        layout: Text, a mapping `{language: value}`, or an object that `read_layout` takes.
        to: The language to write it in: axe, cute, linear, sharding, strided or xla.

    Returns:
        The layout of that language, every element at the same place; its `str` is the text.

    Raises:
        LayoutError: The language cannot say this layout (the text gives the reason), or the nearest one that it can say
            puts some element elsewhere (the text gives the smallest).
        Undecided: No engine decides whether the two are the same.

    >>> print(convert("bf16[16,256]{1,0:T(8,128)(2,1)}", "cute"))
    bf16 ((2,4,2),(128,2)):((1,256,2048),(2,1024))
    >>> print(convert("Sw<1,0,1> o 0 o (4):(1)", "linear"))
    i=1 -> (1); i=2 -> (3); where out dims are: [offset (size 4)]
    """
    found = attempt(layout, to)
    if found.result.verdict is Verdict.PROVED:
        return found.layout
    shown = shorten(str(found.layout), 120)
    if found.result.verdict is Verdict.UNKNOWN:
        raise Unsupported(problems.CONVERSION_UNDECIDED(shown, found.result.reason))
    where = show_point(found.result.counterexample or {})
    raise LayoutError(problems.NEAREST_DIFFERS(to, shown, where, found.result.reason))


def attempt(layout: object, to: str) -> Conversion:
    """The layout that the language `to` proposes, with the verdict whether it is the same.

    Raises LayoutError for a language without such a conversion, and with the reason when it cannot say the layout.
    """
    original = read_layout(layout)
    source = language_of(original)
    if source == to:
        module, proposed, proof = None, original, "same_map"
    else:
        module = _conversion(source, to)
        map_of(original)
        proposed, proof = module.convert(original), getattr(module, "PROVED_BY", "same_map")
        _written(proposed, to)
    compared: Any = getattr(module, "source", lambda layout: layout)(original)
    one, other = map_of(compared), map_of(proposed)
    if proof == "same_map" and one.domain.extents != other.domain.extents and one.memory and other.memory:
        proof = "bitcast"
    return Conversion(proposed, ask(proof, compared, proposed))


def _written(layout: object, to: str) -> None:
    """LayoutError where the language cannot read the text that the layout prints: sizes or ranks it does not know."""
    try:
        read_layout({to: str(layout)})
    except LayoutError as error:
        shown = shorten(str(layout), 120) or "nothing"
        raise LayoutError(problems.CONVERSION_UNREADABLE(to, shown, error.problem)) from None


def language_of(layout: object) -> str:
    """The language a layout is written in: the file or folder of `layouts` that its class is in.

    >>> language_of(read_layout("(8,64):(64,1)"))
    'cute'
    """
    parts = type(layout).__module__.split(".")
    if isinstance(layout, IndexMap) or parts[:2] != ["layoutproof", "layouts"]:
        raise LayoutError(problems.NO_LANGUAGE(type(layout).__name__))
    return parts[2]


@lru_cache(maxsize=1)
def conversions() -> tuple[tuple[str, str], ...]:
    """Every (from, to) there is: the files of `questions.conversions`.

    >>> ("xla", "cute") in conversions()
    True
    """
    names = [m.name.split("_to_") for m in pkgutil.iter_modules(layoutproof.questions.conversions.__path__)]
    return tuple(sorted((name[0], name[1]) for name in names if len(name) == 2))


def _conversion(source: str, to: str) -> ModuleType:
    if (source, to) not in conversions():
        known = [other for one, other in conversions() if one == source]
        have = f"{source} converts to {', '.join(known)}" if known else f"{source} converts to no other language"
        raise LayoutError(problems.NO_CONVERSION(source, shorten(to, 40), have))
    return importlib.import_module(f"layoutproof.questions.conversions.{source}_to_{to}")
