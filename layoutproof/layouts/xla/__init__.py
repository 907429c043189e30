"""The language of XLA shapes with layouts: `bf16[4096,11008]{1,0:T(8,128)(2,1)}`."""

from __future__ import annotations

from layoutproof.core.errors import LayoutError
from layoutproof.layouts.xla.shape import XlaLayout, XlaOpaque, XlaShape, XlaTuple
from layoutproof.layouts.xla.text import parse, to_text

__all__ = ["XlaLayout", "XlaOpaque", "XlaShape", "XlaTuple", "parse", "read", "to_text"]


def read(value: object, mode: str = "strict") -> XlaShape:
    """An XLA shape from its text; see `text.parse` for the modes and errors.

    >>> str(read("f32[3,5]"))
    'f32[3,5]{1,0}'
    """
    if not isinstance(value, str):
        raise LayoutError(f"an xla layout is a text such as f32[3,5]{{1,0:T(2,2)}}, not {value!r}")
    return parse(value, mode)
