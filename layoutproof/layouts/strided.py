"""NumPy-style shape and strides: `f32[3,5] strides (4,1)`, zero and negative strides included.

Strides, `offset` and `in` count elements; all of them, and the extents, may be size expressions:
`f32[N,M] strides (M,1)`. Element (0, .., 0) is at `offset`; without one, at the smallest that keeps every element
>= 0 (so `strides (-1)` is a reversed view of exactly its own memory, as `numpy.flip` gives). The memory reserved is
`in SIZE` elements; without it, just enough to reach the last element (for no elements, none).
Mapping form: `{"strided": {"shape": [3, 5], "strides": [5, 1], "type": "bf16", "offset": 2, "size": 24}}`; type, offset
and size may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core import problems
from layoutproof.core.bounds import check_box, check_length
from layoutproof.core.element_types import ELEMENT_BITS, element_type, near_type
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.core.message import Template, located
from layoutproof.core.numbers import Numbers
from layoutproof.core.shown import Shown
from layoutproof.core.size import Extent, surely_less, symbols_of
from layoutproof.core.space import Space, dimension_names

_BAD_KEY = Template("strided.key", "a strided layout has shape, strides, optionally type, offset, size; got {value}")
_BAD_FORM = Template("strided.form", "a strided layout is a text such as f32[3,5] strides (4,1), not {value!r}")
_BAD_TEXT_FORM = Template(
    "strided.text_form",
    "a strided layout is written f32[3,5] strides (4,1), optionally followed by 'offset 2' and 'in 24'",
)
_BAD_RANK = Template("strided.rank", "{steps} strides for {extents} dimensions; each dimension has one")
_BAD_LEAST = Template("strided.least", "{name} must be at least 0, not {number}")
_BAD_LIST = Template("strided.list", "{name} must be a list of integers, not {entries!r}")
_BAD_ENTRY = Template("strided.entry", "{name} holds {entry!r}; integers or size expressions may stand there")

_FORM = re.compile(
    r"\s*(?P<type>[a-z][a-z0-9_]*)\s*\[(?P<shape>[^\]]*)\]\s*strides\s*\((?P<strides>[^)]*)\)(?P<rest>.*)", re.DOTALL
)
LONGEST = 4096
"""Longest text in characters."""
_OFFSET = re.compile(r"\s*offset\s")
_IN = re.compile(r"(?<=\s)in(?=\s)")


@dataclass(frozen=True, slots=True)
class StridedLayout(Shown):
    """shape and strides in elements, dimension 0 first; `start` is where element (0, .., 0) is; `size` is reserved."""

    element_type: str
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    start: Extent | None = None
    size: Extent | None = None

    def __str__(self) -> str:
        text = f"{self.element_type}[{','.join(map(str, self.shape))}] strides ({','.join(map(str, self.strides))})"
        text += f" offset {self.start}" if self.start is not None else ""
        return text + (f" in {self.size}" if self.size is not None else "")

    def index_map(self) -> IndexMap:
        """Logical index -> one coordinate, the offset in elements."""
        forward: Any = 0
        backward: Any = 0
        empty = 0 in self.shape
        for stride, extent in zip(self.strides, self.shape, strict=True):
            if empty:
                continue
            if surely_less(-1, stride):
                forward = forward + stride * (extent - 1)
            else:
                backward = backward - stride * (extent - 1)
        start = backward if self.start is None else self.start
        size = start + forward + (0 if empty else 1) if self.size is None else self.size
        strides = self.strides

        def place(index: Index, replica: Index, on: Numbers) -> Index:
            total: Any = on.size(start)
            for entry, stride in zip(index, strides, strict=True):
                if stride != 0:
                    total = total + entry * on.size(stride)
            return (total,)

        bits = element_bits(self.element_type)
        return IndexMap(
            Space(dimension_names(len(self.shape)), self.shape),
            Space(("offset",), (size,)),
            place,
            memory=Memory(max(8, bits), max(8, bits), size),
            symbols=symbols_of((*strides, start)),
        )


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as a strided layout.

    Args:
        text: A layout without the name of a language.

    Returns:
        True where this language claims the text.
    """
    return " strides" in text


def read(value: object, mode: str = "strict") -> StridedLayout:
    """A strided layout from its text, or from a mapping with shape, strides and optionally type, offset, size.

    Args:
        value: Text, or a mapping with shape, strides and optionally type, offset, size; all in elements.
        mode: "strict" or "xla"; this language has one mode.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: An extent, an offset or a size may be negative, the sign of a stride depends on sizes, or there is
            not one stride per dimension.

    >>> str(read("f32[3,5] strides (4,1)"))
    'f32[3,5] strides (4,1)'
    >>> read({"shape": [3, 5], "strides": [5, 1]}).index_map().at((2, 3))
    (13,)
    """
    if isinstance(value, dict):
        unknown = set(value) - {"type", "shape", "strides", "offset", "size"}
        if unknown or not {"shape", "strides"} <= set(value):
            raise LayoutError(_BAD_KEY(", ".join(map(str, value))))
        kind = value.get("type", "f32")
        return _checked(str(kind), value["shape"], value["strides"], value.get("offset"), value.get("size"), str(value))
    if not isinstance(value, str):
        raise LayoutError(_BAD_FORM(value))
    found = _FORM.match(check_length(value, LONGEST))
    rest = found["rest"].rstrip() if found is not None else ""
    offset, size, begin = None, None, _OFFSET.match(rest)
    if (inside := _IN.search(rest)) is not None:
        rest, size = rest[: inside.start()].rstrip(), rest[inside.end() :].strip()
    if begin is not None:
        rest, offset = "", rest[begin.end() :].strip()
    if found is None or rest or offset == "" or size == "":
        raise LayoutError(
            _BAD_TEXT_FORM(),
            text=value,
        )
    return _checked(
        found["type"],
        found["shape"].split(",") if found["shape"].strip() else [],
        found["strides"].split(",") if found["strides"].strip() else [],
        offset,
        size,
        value,
    )


def element_bits(name: str) -> int:
    """Width in bits of a type that XLA or NumPy names: f32, bf16, s4, f8e4m3fn, float32; pred and bool are 8."""
    try:
        return ELEMENT_BITS[element_type(name)]
    except KeyError:
        raise LayoutError(problems.ELEMENT_TYPE(shorten(name, 40), near_type(name))) from None


def _checked(kind: str, shape: object, strides: object, start: object, size: object, text: str) -> StridedLayout:
    element_bits(kind)
    extents, steps = _sizes("shape", shape, text), _sizes("strides", strides, text)
    if len(extents) != len(steps):
        raise LayoutError(_BAD_RANK(len(steps), len(extents)), text=text)
    try:
        check_box(extents, "shape")
    except LayoutError as error:
        raise LayoutError(error.problem, text=text) from None
    for extent in extents:
        if not surely_less(-1 if type(extent) is int else 0, extent):
            raise LayoutError(problems.EXTENT_LEAST(extent, 0 if type(extent) is int else 1), text=text)
    for stride in steps:
        if not surely_less(-1, stride) and not surely_less(stride, 1):
            raise LayoutError(problems.STRIDE_SIGN(stride), text=text)
    first = None if start is None else _size("offset", start, text)
    room = None if size is None else _size("in", size, text)
    for name, number in (("offset", first), ("in", room)):
        if number is not None and not surely_less(-1, number):
            raise LayoutError(_BAD_LEAST(name, number), text=text)
    return StridedLayout(kind, extents, steps, first, room)


def _sizes(name: str, entries: object, text: str) -> tuple[Extent, ...]:
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise LayoutError(_BAD_LIST(name, entries), text=text)
    return tuple(_size(name, entry, text) for entry in entries)


def _size(name: str, entry: object, text: str) -> Extent:
    if type(entry) is int:
        return entry
    if not isinstance(entry, str):
        raise LayoutError(_BAD_ENTRY(name, entry), text=text)
    try:
        return parse_size(entry)
    except LayoutError as error:
        raise LayoutError(located(name, error.problem), text=text) from None
