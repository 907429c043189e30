"""From the text of a shape to its arrays and their bytes. Equal texts are read once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.size import product
from layoutproof.hlo import problems
from layoutproof.hlotext.texts import parts
from layoutproof.layouts import xla
from layoutproof.layouts.xla import XlaLayout

_WORD = re.compile(r"b?\(?([a-z]\w*)\[")


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """One array in a shape.

    text: as `to_text` prints it.  layout: None for a token, an opaque value, and where `unknown` says why it has none.
    elements: how many.  unpadded: bytes that its elements alone would take, at the width at which they are stored or
    at their own where that is smaller.  padded: bytes allotted, all tiles included.
    """

    text: str
    layout: XlaLayout | None = None
    elements: int = 0
    unpadded: int = 0
    padded: int = 0
    unknown: str = ""

    @property
    def space(self) -> int:
        """The memory space, S(n)."""
        return 0 if self.layout is None else self.layout.memory_space

    @property
    def waste(self) -> int:
        """Bytes that hold no element."""
        return self.padded - self.unpadded


def bytes_of(arrays: Sequence[ArrayShape]) -> int | None:
    """The bytes allotted to all of them; None if one is unknown."""
    return None if any(array.unknown for array in arrays) else sum(array.padded for array in arrays)


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape. arrays: of all its parts, in order.  elements: a tuple's parts as shapes, None for what is no tuple."""

    text: str
    arrays: tuple[ArrayShape, ...]
    elements: tuple[Shape, ...] | None = None


MOST_NESTED = 100
"""Tuples within one another; XLA's own programs have a handful."""


class Shapes:
    """Shapes by their text, for one audit."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, Shape] = {}

    def of(self, text: str, depth: int = 0) -> Shape:
        """The shape that a text writes. LayoutError where it writes none.

        >>> [(a.text, a.unpadded, a.padded) for a in Shapes().of("(f32[3,5]{1,0:T(8,128)}, token[])").arrays]
        [('f32[3,5]{1,0:T(8,128)}', 60, 4096), ('token[]', 0, 0)]
        """
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._read(text, depth)
        return known

    def _read(self, text: str, depth: int) -> Shape:
        if not text.startswith("("):
            array = read_array(text)
            return Shape(array.text, (array,))
        if not text.endswith(")"):
            raise LayoutError(problems.TUPLE_NOT_CLOSED(), text=text)
        if depth >= MOST_NESTED:
            raise LayoutError(problems.TOO_MANY_TUPLES(MOST_NESTED), text=shorten(text))
        elements = tuple([self.of(part, depth + 1) for part in parts(text[1:-1])])
        arrays = tuple([array for element in elements for array in element.arrays])
        return Shape(f"({', '.join([element.text for element in elements])})", arrays, elements)


def read_array(text: str) -> ArrayShape:
    """One array with its bytes, or why they are `unknown`. LayoutError for a text that is no shape.

    >>> read_array("f32[<=5]{0}").unknown
    'dynamic dimensions: what is allotted is not in the text'
    >>> read_array("f3[5]{0}").unknown
    "unknown element type 'f3'"
    """
    word = _WORD.match(text)
    if word is not None and word[1] not in (*ELEMENT_BITS, "token", "opaque", "tuple", "buffer"):
        return ArrayShape(text, unknown=problems.UNKNOWN_TYPE(word[1]))
    layout = xla.read(text)
    if not isinstance(layout, XlaLayout):
        return ArrayShape(text)
    if any(layout.dynamic):
        return ArrayShape(str(layout), unknown=problems.DYNAMIC_DIMENSIONS())
    if any(type(extent) is not int for extent in layout.dims):
        raise LayoutError(problems.NO_SYMBOLIC_SIZES(), text=text)
    try:
        memory = layout.index_map().memory
    except LayoutError as error:
        return ArrayShape(str(layout), unknown=error.problem)
    if memory is None:
        return ArrayShape(str(layout), unknown="no memory")
    count = int(product(layout.dims))
    unpadded = -(-count * min(memory.bits, memory.natural_bits) // 8)
    return ArrayShape(str(layout), layout, count, unpadded, int(memory.bytes()))


def without_space(layout: XlaLayout) -> XlaLayout:
    """The same layout in memory space 0."""
    return replace(layout, memory_space=0) if layout.memory_space else layout
