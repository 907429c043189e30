"""Axe layouts: `S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp` (arXiv:2601.19092; TVM's TIRx).

`S[extents:strides]` splits an index into digits, first slowest, and each digit steps along a hardware axis;
`R[..]` adds replicas (alone: of one element), numbers at the end an offset; a bare stride or offset is on axis `m`,
memory. Then, optionally,
`swizzle (3,3,3)` (elements per unit, bits, distance; `swizzle outer (..)` for the other direction), `on (8,16)`, the
logical shape, and `within (32@lane,16@warp)`, the extents that the hardware has. Extents, strides and offsets may be
size expressions: `S[(N,M):(M,1)]`. Mapping form: {"D": [[8, 4, "lane"], ..], "R": [..], "O": {"warp": 5},
"shape": [..], "within": {..}, "swizzle": [3, 3, 3]}.

The operations stand in `layoutproof.algebra.axe`. Each states what it needs and what holds of its result, and proves
that before it returns; where there is no result it returns a `Reason`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutproof.layouts.axe.layout import AxeLayout
    from layoutproof.layouts.axe.swizzle import Swizzle
    from layoutproof.layouts.axe.values import from_tvm

__all__ = ["AxeLayout", "Swizzle", "from_tvm", "looks_like", "read"]

_FILES = {"AxeLayout": "layout", "Swizzle": "swizzle", "from_tvm": "values"}


def __getattr__(name: str) -> Any:
    # every text that anybody reads is first shown to `looks_like`: only an Axe text pays for importing the language
    if name in _FILES:
        return getattr(importlib.import_module(f"layoutproof.layouts.axe.{_FILES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as an Axe layout.

    Args:
        text: A layout without the name of a language.

    Returns:
        True where this language claims the text.
    """
    return text.lstrip().startswith(("S[", "R["))


def read(value: object, mode: str = "strict") -> AxeLayout:
    """An Axe layout from its text, its mapping, or a layout object of TVM's.

    Args:
        value: Text, a mapping with D, R, O, or a layout object of TVM.
        mode: "strict" or "xla"; this language has one mode.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: The text says the value, the rule it breaks and the column.

    >>> str(read("S[(8,4):(4@lane, 1@lane)] + R[2:4@warp] + 5@warp on (4, 8)"))
    'S[(8,4):(4@lane,1@lane)] + R[2:4@warp] + 5@warp on (4,8)'
    >>> read({"D": [[16, 1, "m"]]}).index_map().at((3,))
    (3,)
    """
    from layoutproof.layouts.axe import layout, text, values

    if isinstance(value, layout.AxeLayout):
        return value
    if isinstance(value, str):
        return text.parse(value)
    return values.from_mapping(value) if isinstance(value, dict) else values.from_tvm(value)
