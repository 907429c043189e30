"""The language of CuTe layouts: `((4,2),(2,4)):((1,16),(4,32))`, with swizzles `Sw<3,3,3> o 0 o (8,64):(64,1)`.

One logical index per top-level mode. An element type in front (`bf16 (8,128):(128,1)`) makes it a memory with bytes.
Mapping form: shape, and stride or order; optionally swizzle [B, M, S], offset, type. `order` gives compact strides as
CuTe's make_ordered_layout does; "col" is the first mode fastest (LayoutLeft, CuTe's default), "row" the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.nested import leaves
from layoutproof.layouts.cute import problems
from layoutproof.layouts.cute.layout import CuteLayout, Swizzle, checked
from layoutproof.layouts.cute.nested import congruent, refill, show
from layoutproof.layouts.cute.text import compact, from_nested, parse

__all__ = ["CuteLayout", "Swizzle", "looks_like", "parse", "read"]

_KEYS = ("shape", "stride", "order", "swizzle", "offset", "type")


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as a CuTe layout: `shape:stride` without brackets or arrows.

    Args:
        text: A layout without the name of a language.

    Returns:
        True where this language claims the text.
    """
    if any(mark in text for mark in "[]{}@=") or "->" in text:
        return False
    return ":" in text or text.lstrip().startswith(("Sw<", "S<", "Swizzle<"))


def read(value: object, mode: str = "strict") -> CuteLayout:
    """A CuTe layout from its text or mapping form.

    Args:
        value: Text, or a mapping with shape and stride or order.
        mode: "strict" or "xla"; this language has one mode.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: The text says the value, the rule it breaks and the column.

    >>> str(read("((4,2),(2,4)):((1,16),(4,32))"))
    '((4,2),(2,4)):((1,16),(4,32))'
    >>> str(read({"shape": [8, 64], "order": "row", "swizzle": [3, 3, 3]}))
    'Sw<3,3,3> o 0 o (8,64):(64,1)'
    """
    if isinstance(value, str):
        return parse(value)
    if not isinstance(value, Mapping):
        raise LayoutError(problems.FORM(shorten(repr(value), 60)))
    unknown = [key for key in value if key not in _KEYS]
    if unknown or "shape" not in value or ("stride" in value and "order" in value):
        raise LayoutError(problems.KEY(", ".join(map(str, value)) or "nothing"))
    shape = from_nested(value["shape"], "shape")
    stride = from_nested(value["stride"], "stride") if "stride" in value else _ordered(shape, value.get("order", "col"))
    if not congruent(shape, stride):
        raise LayoutError(problems.NESTING(show(shape), show(stride)))
    offset = from_nested(value.get("offset", 0), "offset")
    if isinstance(offset, tuple):
        raise LayoutError(problems.OFFSET(show(offset)))
    swizzle = _swizzle(value["swizzle"]) if "swizzle" in value else None
    if offset != 0 and swizzle is None:
        swizzle = Swizzle(0, 0, 0)
    return checked(CuteLayout(shape, stride, swizzle, offset, str(value.get("type", ""))))


def _ordered(shape: Any, order: object) -> Any:
    if order in ("col", "row"):
        places = count(0, 1 if order == "col" else -1)
        return compact(shape, refill(shape, lambda _: next(places)))
    ranks = from_nested(order, "order")
    if not congruent(shape, ranks) or not all(type(rank) is int for rank in leaves(ranks)):
        raise LayoutError(problems.ORDER(show(shape), show(ranks)))
    return compact(shape, ranks)


def _swizzle(value: object) -> Swizzle:
    if not isinstance(value, list | tuple) or len(value) != 3 or not all(type(entry) is int for entry in value):
        raise LayoutError(problems.SWIZZLE_INTEGERS(shorten(repr(value), 60)))
    return Swizzle(*value)
