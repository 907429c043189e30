"""XLA shapes with layouts, as XLA prints them: `bf16[4096,11008]{1,0:T(8,128)(2,1)}`.

An element type, the extents, and `{minor_to_major:properties}`; without braces the last dimension is fastest and
nothing is tiled. Extents may be size expressions, `f32[2*N,M]`; `<=5` is bounded dynamic, laid out as its bound, and
`?` is a size of its own (`d0`, `d1`, .. by dimension).
Properties, in this order:
    T(8,128)(2,1)   tile levels, outermost first; `*` merges a dimension into the next more minor one; sizes may be
                    size expressions, T(a,128), for tiles of any size (ours, as in the extents)
    L(1024)         what is allotted is a multiple of this many elements
    E(4)            bits of one element as stored
    S(1)            memory space
    SC(0:128)       split configurations: read and printed, not modelled
    M(8)            bytes of metadata before the first element
In structure: {"xla": {"shape": "f32[3,5]", "minor_to_major": [1, 0], "tiles": [[2, 2]]}}, with any of tail_alignment,
element_bits, memory_space and metadata_bytes for L, E, S and M; it means the text that it spells.
Also read: a buffer `b(f32[2]{0})`, tuples `(f32[2]{0}, s32[])`, `token[]` and `opaque[]`, which have no elements.
Source: xla/hlo/parser/hlo_parser.cc and docs/tiled_layout.md of openxla/xla at 183fa00cb5 (2026-08-22).
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.message import restated
from layoutproof.layouts.xla import problems
from layoutproof.layouts.xla.shape import XlaLayout, XlaOpaque, XlaShape, XlaTuple, to_text
from layoutproof.layouts.xla.text import parse, usual

__all__ = ["XlaLayout", "XlaOpaque", "XlaShape", "XlaTuple", "parse", "read", "to_text", "usual"]


def read(value: object, mode: str = "strict") -> XlaShape:
    """An XLA shape from its text, or from its parts.

    Args:
        value: Text such as `f32[3,5]{1,0:T(2,2)}`, or a mapping with `shape` and any of `minor_to_major`, `tiles`, ..
        mode: "strict" or "xla": "strict" refuses what XLA's verifier refuses.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: The text says the value, the rule it breaks and the column.

    >>> str(read("f32[3,5]"))
    'f32[3,5]{1,0}'
    >>> str(read({"shape": "f32[3,5]", "minor_to_major": [0, 1], "tiles": [["*", 2], [2, 1]], "memory_space": 1}))
    'f32[3,5]{0,1:T(*,2)(2,1)S(1)}'
    """
    if isinstance(value, str):
        return parse(value, mode)
    if not isinstance(value, Mapping):
        form = "a text such as f32[3,5]{1,0:T(2,2)}, or {shape: .., minor_to_major: .., tiles: ..}"
        raise LayoutError(problems.FORM(form, value))
    # most layouts are texts, and need none of the kernel language that it reads parts with
    from layoutproof.layouts.xla.structure import text_of

    text = text_of(value)
    try:
        return parse(text, mode)
    except LayoutError as error:
        # the column is one of a text that was put together here
        raise LayoutError(restated(f"{error.problem}; read as {shorten(text, 100)}", error.problem)) from None
