"""NumPy-style shape and strides: `f32[3,5] strides (4,1)`, zero and negative strides included.

Strides, `offset` and `in` count elements. Element (0, .., 0) is at `offset`; without one, at the smallest offset that
keeps every element >= 0 (so `strides (-1)` is a reversed view of exactly its own memory, as `numpy.flip` gives). The
memory reserved is `in SIZE` elements; without it, just enough to reach the last element.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent
from layoutproof.core.space import Space

_FORM = re.compile(
    r"\s*(?P<type>[a-z][a-z0-9]*)\s*\[(?P<shape>[^\]]*)\]\s*strides\s*\((?P<strides>[^)]*)\)"
    r"(?:\s*offset\s+(?P<offset>\d{1,18}))?(?:\s+in\s+(?P<size>\d{1,18}))?\s*"
)
_TYPE = re.compile(r"(?:pred|[a-z]+?(?P<bits>\d+)(?:e\d+m\d+\w*)?)")


@dataclass(frozen=True, slots=True)
class StridedLayout:
    """shape and strides in elements, dimension 0 first; `start` is where element (0, .., 0) is; `size` is reserved."""

    element_type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int | None = None
    size: int | None = None

    def __str__(self) -> str:
        text = f"{self.element_type}[{','.join(map(str, self.shape))}] strides ({','.join(map(str, self.strides))})"
        text += f" offset {self.start}" if self.start is not None else ""
        return text + (f" in {self.size}" if self.size is not None else "")

    def index_map(self) -> IndexMap:
        """Logical index -> one coordinate, the offset in elements."""
        steps = [stride * (extent - 1) for stride, extent in zip(self.strides, self.shape, strict=True) if extent]
        start = -sum(step for step in steps if step < 0) if self.start is None else self.start
        size = start + sum(step for step in steps if step > 0) + 1 if self.size is None else self.size
        strides = self.strides

        def place(index: Index, copy: Index, on: Numbers) -> Index:
            total = start
            for entry, stride in zip(index, strides, strict=True):
                if stride:
                    total = total + entry * stride
            return (total,)

        bits = element_bits(self.element_type)
        rank = len(self.shape)
        names = tuple("ijklmnop"[:rank]) if rank <= 8 else tuple(f"i{k}" for k in range(rank))
        return IndexMap(
            Space(names, self.shape), Space(("offset",), (size,)), place, memory=Memory(max(8, bits), max(8, bits), size)
        )


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as a strided layout."""
    return " strides" in text


def read(value: object, mode: str = "strict") -> StridedLayout:
    """A strided layout from its text, or from a mapping with shape, strides and optionally type, offset, size.

    >>> str(read("f32[3,5] strides (4,1)"))
    'f32[3,5] strides (4,1)'
    >>> read({"shape": [3, 5], "strides": [5, 1]}).index_map().at((2, 3))
    (13,)
    """
    if isinstance(value, dict):
        unknown = set(value) - {"type", "shape", "strides", "offset", "size"}
        if unknown or not {"shape", "strides"} <= set(value):
            raise LayoutError(
                f"a strided layout has shape, strides and optionally type, offset, size; got {', '.join(map(str, value))}"
            )
        kind = value.get("type", "f32")
        return _checked(str(kind), value["shape"], value["strides"], value.get("offset"), value.get("size"), str(value))
    if not isinstance(value, str):
        raise LayoutError(f"a strided layout is a text such as f32[3,5] strides (4,1), not {value!r}")
    found = _FORM.fullmatch(value) if len(value) < 4096 else None
    if found is None:
        raise LayoutError(
            "a strided layout is written f32[3,5] strides (4,1), optionally followed by 'offset 2' and 'in 24'",
            text=value,
        )
    start, size = found["offset"], found["size"]
    return _checked(
        found["type"],
        _ints(found["shape"], value, found.start("shape")),
        _ints(found["strides"], value, found.start("strides")),
        None if start is None else int(start),
        None if size is None else int(size),
        value,
    )


def element_bits(element_type: str) -> int:
    """Width in bits by the number in the type's name (f32, bf16, s4, f8e4m3fn, c64); pred is 8."""
    found = _TYPE.fullmatch(element_type)
    if found is None:
        raise LayoutError(f"unknown element type {element_type!r}; write for instance f32, bf16, s8 or pred")
    return int(found["bits"] or 8)


def _checked(
    kind: str, shape: object, strides: object, start: object, size: object, text: str
) -> StridedLayout:
    element_bits(kind)
    for name, entries in (("shape", shape), ("strides", strides)):
        if not isinstance(entries, Sequence) or not all(type(e) is int for e in entries):
            raise LayoutError(f"{name} must be a list of integers, not {entries!r}", text=text)
    assert isinstance(shape, Sequence)
    assert isinstance(strides, Sequence)
    if len(shape) != len(strides):
        raise LayoutError(f"{len(strides)} strides for {len(shape)} dimensions; each dimension has one", text=text)
    for extent in shape:
        if extent < 0:
            raise LayoutError(f"the extent {extent} is negative", text=text)
    for name, number in (("offset", start), ("size", size)):
        if number is not None and (type(number) is not int or number < 0):
            raise LayoutError(f"{name} must be an integer >= 0, not {number!r}", text=text)
    extents: tuple[Extent, ...] = tuple(shape)
    return StridedLayout(kind, extents, tuple(strides), start, size)  # type: ignore[arg-type]


def _ints(part: str, text: str, start: int) -> tuple[int, ...]:
    entries: list[int] = []
    column = start + 1
    for piece in part.split(",") if part.strip() else []:
        if not re.fullmatch(r"\s*-?\d{1,18}\s*", piece):
            raise LayoutError(f"{piece.strip()[:30]!r} is not an integer of at most 18 digits", text=text, column=column)
        entries.append(int(piece))
        column += len(piece) + 1
    return tuple(entries)
