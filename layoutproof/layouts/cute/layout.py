"""CuTe layouts as frozen data, and the map they mean.

`shape:stride` with both nested alike. The logical index has one entry per top-level mode. Inside a mode the entry is
decomposed colexicographically, the first sub-mode fastest; the offset is the sum of digit times stride. A swizzle
Sw<B,M,S> is applied to the offset: bits [M+S, M+S+B) are xor-ed onto bits [M, M+B) (the other way round for S < 0).
Source: NVIDIA/cutlass include/cute/layout.hpp, include/cute/swizzle.hpp; python/pycute/{layout,swizzle}.py at 07a0238.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from layoutproof.core import problems as core_problems
from layoutproof.core.bounds import check_box
from layoutproof.core.element_types import near_type
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap, Memory, Permutation
from layoutproof.core.nested import leaves
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.shown import Shown
from layoutproof.core.size import Extent, surely_less, symbols_of
from layoutproof.core.space import Space
from layoutproof.layouts.cute import problems
from layoutproof.layouts.cute.nested import Nested, modes_of, show, size_of

_TYPE = re.compile(r"(?:pred|[a-z]+?(?P<bits>\d+)(?:e\d+m\d\w*)?)")


class Swizzle(NamedTuple):
    """Sw<bits,base,shift>: `bits` bits at base + shift are xor-ed onto those at base; for shift < 0 the other way."""

    bits: int
    base: int
    shift: int

    def apply(self, offset: Any, on: Numbers) -> Any:
        """The swizzled offset; an involution on 0 <= offset.

        >>> [Swizzle(1, 0, 1).apply(x, Numbers()) for x in range(4)]
        [0, 1, 3, 2]
        """
        if self.bits == 0:
            return offset
        source, target = self.base + max(0, self.shift), self.base - min(0, self.shift)
        field = (offset // 2**source if source else offset) % 2**self.bits
        return on.xor(offset, field * 2**target if target else field)

    def window(self) -> int:
        """Offsets move only within aligned windows of this many elements, each window alike."""
        return 1 << self.base + abs(self.shift) + self.bits

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True, slots=True)
class CuteLayout(Shown):
    """`shape:stride`, with a swizzle `swizzle o offset o shape:stride` if there is one.

    shape, stride: nested alike; extents >= 1, strides of known sign, in elements. offset: added before the swizzle.
    element_type: makes it a memory ("bf16"); "" for a layout of anything, which has offsets but no bytes.
    derivation: where an expression stands for it, how it was computed and what was proved of it.
    """

    shape: Nested
    stride: Nested
    swizzle: Swizzle | None = None
    offset: Extent = 0
    element_type: str = ""
    derivation: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        text = f"{show(self.shape)}:{show(self.stride)}"
        if self.swizzle is not None:
            text = f"{self.swizzle} o {self.offset} o {text}"
        return f"{self.element_type} {text}" if self.element_type else text

    def modes(self) -> tuple[tuple[Extent, Extent], ...]:
        """(extent, stride) of every leaf, fastest first."""
        return tuple(zip(leaves(self.shape), leaves(self.stride), strict=True))

    def size(self) -> Extent:
        """The number of elements."""
        return size_of(self.shape)

    def cosize(self) -> Extent:
        """One more than the largest offset of `shape:stride`, by absolute strides; as CuTe, swizzle left aside.

        >>> CuteLayout((4, 2), (1, 16)).cosize()
        20
        """
        largest: Any = self.offset + 1
        for extent, stride in self.modes():
            largest = largest + (extent - 1) * (stride if surely_less(-1, stride) else stride * -1)
        return largest  # type: ignore[no-any-return]

    def at(self, position: int) -> int:
        """The offset of the element at a linear position; past the last element the last mode goes on, as in CuTe.

        >>> [CuteLayout((4, 2), (1, 16)).at(x) for x in (3, 4, 8)]
        [3, 16, 32]
        """
        offset = self.offset + linear_offset(self.modes(), position)
        return int(self.swizzle.apply(offset, INTS) if self.swizzle else offset)

    def index_map(self) -> IndexMap:
        """One index per top-level mode -> one coordinate, `offset`; the range is CuTe's cosize.

        CuTe's cosize leaves the swizzle aside, so `in_bounds` is the question whether the swizzle stays inside.
        """
        return _index_map(self)


@lru_cache(maxsize=1024)
def _index_map(layout: CuteLayout) -> IndexMap:
    shapes, strides = modes_of(layout.shape), modes_of(layout.stride)
    modes = [tuple(zip(leaves(e), leaves(s), strict=True)) for e, s in zip(shapes, strides, strict=True)]
    columns = None if layout.swizzle is None or layout.offset != 0 else _columns(modes, layout.swizzle)
    extents = tuple([size_of(entry) for entry in shapes])
    box = None if columns is None else extents
    permutation, swizzle = None, layout.swizzle
    if swizzle is not None:
        plain = _CutePlace(modes, layout.offset)
        permutation = Permutation(plain, 0, swizzle.window(), lambda offset: int(swizzle.apply(offset, INTS)))
    place = _CutePlace(modes, layout.offset, layout.swizzle, (columns or [],), box, permutation)
    rank, cosize = len(modes), layout.cosize()
    names = tuple("ijklmnop"[:rank]) if rank <= 8 else tuple(f"i{k}" for k in range(rank))
    bits = element_bits(layout.element_type) if layout.element_type else 0
    memory = Memory(bits, max(8, bits), cosize) if bits else None
    # the stride of a mode of one element stands in no extent
    symbols = symbols_of((*leaves(layout.stride), layout.offset))
    return IndexMap(Space(names, extents), Space(("offset",), (cosize,)), place, memory=memory, symbols=symbols)


@dataclass(frozen=True, slots=True, eq=False)
class _CutePlace:
    """The function of the layout.

    bit_columns: the xor contribution of each bit of the index, the least significant bit of the last mode first, for
    the box `bit_box`; None where sums carry, or extents are no powers of two: then the engine of bits works it out, or
    cannot.
    """

    modes: list[tuple[tuple[Extent, Extent], ...]]
    offset: Extent
    swizzle: Swizzle | None = None
    bit_columns: tuple[list[int], ...] = ()
    bit_box: tuple[Extent, ...] | None = None
    permutation: Permutation | None = None

    def __call__(self, index: Index, replica: Index, on: Numbers) -> Index:
        terms = [] if self.offset == 0 else [on.size(self.offset)]
        for entry, digits in zip(index, self.modes, strict=True):
            terms += linear_terms(digits, entry, on)
        total = sum(terms[1:], terms[0]) if terms else 0
        return (total if self.swizzle is None else self.swizzle.apply(total, on),)


def _columns(modes: list[tuple[tuple[Extent, Extent], ...]], swizzle: Swizzle) -> list[int] | None:
    """The swizzled offset of each power of two of the index; None where the offsets are no sums without carries."""
    taken, columns = 0, []
    for digits in reversed(modes):
        for extent, stride in digits:
            if type(extent) is not int or type(stride) is not int or stride < 0 or extent & (extent - 1):
                return None
            reached = (extent - 1) * stride
            if stride & (stride - 1) or taken & reached:
                return None
            taken |= reached
            # a swizzle moves bits by xor, so it may be applied to each of them alone
            columns += [swizzle.apply(stride << bit, INTS) for bit in range(extent.bit_length() - 1)]
    return columns


def linear_offset(modes: tuple[tuple[Extent, Extent], ...], position: int) -> int:
    """Sum of digit times stride of a linear position, first mode fastest; the last digit is not reduced."""
    return int(sum(linear_terms(modes, position, INTS)))


def linear_terms(modes: tuple[tuple[Extent, Extent], ...], position: Any, on: Numbers) -> list[Any]:
    """Digit times stride for each mode, those that are always 0 left out."""
    terms = []
    for k, (extent, stride) in enumerate(modes):
        last = k + 1 == len(modes)
        if extent == 1 and not last:
            continue
        digit = position if last else position % on.size(extent)
        if not last:
            position = position // on.size(extent)
        if stride != 0:
            terms.append(digit if stride == 1 else digit * on.size(stride))
    return terms


def element_bits(element_type: str) -> int:
    """Width in bits by the number in the type's name (f32, bf16, s4, f8e4m3fn); pred is 8. Sub-byte types are packed.

    Source: cute/pointer.hpp, `subbyte_iterator`.
    """
    found = _TYPE.fullmatch(element_type)
    bits = int(found["bits"] or 8) if found else 0
    if not 1 <= bits <= 1024:
        raise LayoutError(core_problems.ELEMENT_TYPE(element_type, near_type(element_type)))
    return bits


def checked(layout: CuteLayout, text: str = "") -> CuteLayout:
    """The layout itself when its parts agree; LayoutError with the value and the rule otherwise."""
    try:
        check_box(list(leaves(layout.shape)), "shape")
    except LayoutError as error:
        raise LayoutError(error.problem, text=text) from None
    for extent in leaves(layout.shape):
        if not surely_less(0, extent):
            raise LayoutError(problems.EXTENT(extent), text=text)
    for stride in leaves(layout.stride):
        if not surely_less(-1, stride) and not surely_less(stride, 1):
            raise LayoutError(core_problems.STRIDE_SIGN(stride), text=text)
    if not surely_less(-1, layout.offset):
        raise LayoutError(problems.OFFSET_NEGATIVE(layout.offset), text=text)
    if layout.element_type:
        element_bits(layout.element_type)
    if layout.swizzle is not None:
        bits, base, shift = layout.swizzle
        if not (0 <= bits <= 64 and 0 <= base <= 64 and bits <= abs(shift) <= 64):
            raise LayoutError(problems.SWIZZLE_BOUNDS(layout.swizzle), text=text)
    return layout
