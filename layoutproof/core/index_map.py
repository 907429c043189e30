"""A layout is one pure function from logical indices to coordinates. This is the manual.

In one sentence
    A layout says where each element of a tensor lives, so we write it as a function `place(index) -> coordinates`
    made of `+ - * // %` only, and everything else (proofs, tables, pictures) is that function run on different
    kinds of number.

In a picture
    f32[3,5]{1,0:T(2,2)}: 2x2 tiles are laid over a 3x5 array, tiles in row-major order, elements within a tile in
    row-major order. Numbers are offsets in elements, dots are padding.

              j=0  1   2  3   4
        i=0     0  1 | 4  5 | 8  .          place(i, j) = (i // 2, j // 2, i % 2, j % 2)
        i=1     2  3 | 6  7 |10  .          range       =  2  x  3  x  2  x  2
               ------+------+------
        i=2    12 13 |16 17 |20  .          offset      = row-major position in that box
             .  . |  . |  .  .                  =  ((i//2 * 3 + j//2) * 2 + i%2) * 2 + j%2

    Element (2, 3) goes to tile (1, 1), place (0, 1) within it, offset ((1*3 + 1)*2 + 0)*2 + 1 = 17.

The rule
    `place` returns the *physical index*: tile numbers, then positions within tiles. It lies in a box (`range`), most
    major axis first. Memory is that box in row-major order, so the offset is derived, never stored; and because
    row-major order is a bijection of a box onto 0 .. count-1 for all extents (`row_major`, proved once in the
    tests), whatever is proved of coordinates is proved of offsets.

Named examples
    row-major        place(i, j) = (i, j)                                    range (3, 5)
    column-major     place(i, j) = (j, i)                                    range (5, 3)
    tiled 8x128      place(i, j) = (i // 8, j // 128, i % 8, j % 128)        range (ceil(M/8), ceil(N/128), 8, 128)
    bf16 packed      T(8,128)(2,1) splits i % 8 once more: (i//8, j//128, i%8//2, j%128, i%2, 0)
    strided          place(i, j) = (4*i + j,)                                range (13,)

Why logical -> physical, and not the other way
    A tensor is padded when its extents do not divide by the tile: then some places hold no element, and the map from
    places to elements would be partial. Elements always have a place. A layout with replicas has several places per
    element; `replicas` is the box of choices, and place(index, replica) is still a function.

What comes with it
    `domain`  the box of logical indices          `replicas`  the box of replicas (empty: one place each)
    `range`   the box that places must lie in      `memory`  bits per element and what is allotted, if the range is
                                                             one memory in row-major order
    `symbols` size symbols that `place` uses, for those that stand in no extent (a stride N within a given size)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.numbers import INTS, Numbers, Numeral
from layoutproof.core.shown import Shown
from layoutproof.core.size import Extent, ceil_div, divide, symbols_of
from layoutproof.core.space import Space

Index = tuple[Any, ...]
"""One entry per dimension or axis; ints, arrays, solver terms: whatever `place` is run on."""

Place = Callable[[Index, Index, Numbers], Index]
"""place(index, replica, numbers) -> coordinates."""


LARGEST_REST = 1 << 14
"""Numbers of a part of what is permuted in itself that are looked at one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Permutation:
    """The attribute `permutation` of a place: it permutes one coordinate at the end (swizzles).

    Attributes:
        before: The same place without that.
        axis: Number of the coordinate.
        window: Numbers are permuted only within aligned windows of this many, each window alike; a power of two.
        moved: The image of a number of the first window: its own inverse, and linear over exclusive or.
    """

    before: Place
    axis: int
    window: int
    moved: Callable[[int], int]

    def keeps(self, extent: Extent) -> bool:
        """Whether 0 .. extent - 1 are surely permuted among themselves.

        Args:
            extent: Of the coordinate.

        Returns:
            False also where it depends on sizes.

        >>> swap = Permutation(lambda x, c, on: x, 0, 4, lambda n: n ^ n // 2)
        >>> swap.keeps(8), swap.keeps(6), swap.keeps(7)
        (True, True, False)
        """
        if type(extent) is not int and divide(extent, self._block())[1] == 0:
            return True
        # windows are alike: how much of the last one there is is enough
        end = divide(extent, self.window)[1]
        if type(end) is not int:
            return False
        # the numbers below are those that agree with `end` above one of its bits, have a 0 there, and any bits below
        leading: dict[int, int] = {}
        for k, bit in enumerate(_bits(self.window)):
            if bit > end:
                break
            if end & bit:
                largest = self.moved(end >> k + 1 << k + 1)
                for length, column in sorted(leading.items(), reverse=True):
                    largest = largest if largest >> length - 1 & 1 else largest ^ column
                if largest >= end:
                    return False
            column = self.moved(bit)
            while column and (known := leading.get(column.bit_length())):
                column ^= known
            if column:
                leading[column.bit_length()] = column
        return True

    def apply(self, number: int) -> int:
        """The image of any number, which is also its preimage.

        Args:
            number: A coordinate.

        Returns:
            The number in its place.

        >>> Permutation(lambda x, c, on: x, 0, 4, lambda n: n ^ n // 2).apply(6)
        7
        """
        inside = number % self.window
        return number - inside + self.moved(inside)

    def same(self, other: Permutation) -> bool:
        """Whether both do the same to every number, of the same coordinate.

        Args:
            other: Another permutation.

        Returns:
            Whether they do, by what becomes of each bit.
        """
        bits = _bits(max(self.window, other.window))
        return self.axis == other.axis and all(self.apply(bit) == other.apply(bit) for bit in bits)

    def around(self, number: int) -> tuple[int, int]:
        """The smallest run of numbers around one that is permuted in itself.

        Args:
            number: A coordinate.

        Returns:
            The first of them, and the first that is beyond.

        >>> swap = Permutation(lambda x, c, on: x, 0, 4, lambda n: n ^ n // 2)
        >>> swap.around(5)
        (4, 6)
        """
        start = number - number % self._block()
        return start, start + self._block()

    def _block(self) -> int:
        """Every aligned run of so many numbers is permuted in itself; not each alike."""
        return 1 << max((bit ^ self.apply(bit) for bit in _bits(self.window)), default=0).bit_length()


def _bits(window: int) -> list[int]:
    return [1 << bit for bit in range(window.bit_length() - 1)]


Padded = tuple[tuple[tuple[int, ...], Extent, Extent], ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a map, which turns an offset into bytes.

    Attributes:
        bits: Width of one element as stored, in bits.
        natural_bits: Width of the element type itself, in bits.
        allotted: Elements reserved, padding included.
        space: Number of the memory space; 0 is the default one.
        prefix_bytes: Bytes before the element at offset 0.
        padded: Gives, for each group of dimensions padded together, (dimension numbers, extent, padded extent); nothing
            where padding is not per dimension.
    """

    bits: int
    natural_bits: int
    allotted: Extent
    space: int = 0
    prefix_bytes: int = 0
    padded: Callable[[], Padded] = tuple

    def bytes(self) -> Extent:
        """The bytes allotted.

        Returns:
            Bytes, the prefix included.

        >>> Memory(bits=4, natural_bits=8, allotted=3, prefix_bytes=8).bytes()
        10
        """
        return ceil_div(self.allotted * self.bits, 8) + self.prefix_bytes  # type: ignore[no-any-return]

    def byte_and_bit(self, offset: int) -> tuple[int, int]:
        """Where an element starts.

        Args:
            offset: Of the element, in elements.

        Returns:
            (byte, bit): the byte, the prefix included, and the bit in it.

        >>> Memory(bits=4, natural_bits=8, allotted=3, prefix_bytes=8).byte_and_bit(1)
        (8, 4)
        """
        byte, bit = divmod(offset * self.bits, 8)
        return byte + self.prefix_bytes, bit


@dataclass(frozen=True, slots=True, eq=False)
class IndexMap(Shown):
    """Where each index of `domain` goes in `range`; see the module's text.

    Two maps are never compared with `==`: equality of layouts is a claim (`same_map`).

    Attributes:
        domain: The box of logical indices.
        range: The box of coordinates; its extents are empty where nothing bounds them.
        place: place(index, replica, numbers) -> coordinates.
        replicas: The box of replicas: where one element has several places, which of them. Empty for one place each.
        memory: Turns offsets into bytes; None for a map to anything but memory.
        symbols: Size symbols in the order in which the user wrote them.
        unbounded: Axes of `range` that nothing bounds: their extents are how far the places reach.
    """

    domain: Space
    range: Space
    place: Place
    replicas: Space = Space()
    memory: Memory | None = None
    symbols: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()

    def at(self, index: Sequence[int], replica: Sequence[int] = ()) -> tuple[int, ...]:
        """The coordinates of one index, on plain ints.

        Args:
            index: One int per dimension of the domain.
            replica: One int per dimension of `replicas`.

        Returns:
            One int per coordinate.

        Raises:
            LayoutError: The map divides by zero there.

        >>> IndexMap(Space(("i",), (5,)), Space(("o",), (9,)), lambda x, c, on: (2 * x[0],)).at((3,))
        (6,)
        """
        return self._at(tuple(index), tuple(replica), INTS)

    def coordinates(self) -> int:
        """How many coordinates a place has, also where no range says so.

        Returns:
            The number of coordinates.

        Raises:
            LayoutError: As for `at`.
        """
        if self.range.extents or self.memory is not None:
            return len(self.range.extents)
        ones = Numbers(dict.fromkeys(self.sizes(), 1))
        return len(self._at((0,) * len(self.domain.extents), (0,) * len(self.replicas.extents), ones))

    def _at(self, index: Index, replica: Index, on: Numbers) -> Index:
        try:
            return self.place(index, replica, on)
        except ZeroDivisionError:
            raise LayoutError(problems.MAP_DIVIDES_BY_ZERO(index)) from None

    def sizes(self) -> tuple[str, ...]:
        """The size symbols it depends on.

        Returns:
            The names, those of `domain` first, each once.
        """
        extents = symbols_of((*self.domain.extents, *self.range.extents, *self.replicas.extents))
        return tuple(dict.fromkeys((*extents, *self.symbols))) if extents else self.symbols

    def show_place(self, index: Index, replica: Index = (), on: Numbers = INTS) -> str:
        """A place in words: the offset in a memory, the coordinates otherwise.

        Args:
            index: One number per dimension of the domain.
            replica: One number per dimension of `replicas`.
            on: The numbers that `place` runs on.

        Returns:
            For instance "offset 17" or "place (2, 1)".
        """
        if self.memory is not None:
            return f"offset {self.flat().place(index, replica, on)[0]}"
        return f"place {self.place(index, replica, on)}"

    def flat(self) -> IndexMap:
        """The same map to one coordinate, `offset`: the row-major position in the range box, in elements.

        Returns:
            A map with the same domain, replicas and memory.
        """
        if len(self.range.extents) == 1:
            return self
        extents, place = self.range.extents, self.place

        def to_offset(index: Index, replica: Index, on: Numbers) -> Index:
            return (row_major(place(index, replica, on), extents, on),)

        offset = Space(("offset",), (self.range.count(),))
        return IndexMap(self.domain, offset, to_offset, self.replicas, self.memory, self.sizes())


def permutation(m: IndexMap) -> Permutation | None:
    """The permutation of one coordinate with which a map ends.

    Args:
        m: A map.

    Returns:
        The permutation; None where the map says nothing of one.
    """
    found: Permutation | None = getattr(m.place, "permutation", None)
    return found


def unnamed(m: IndexMap) -> IndexMap | None:
    """The same map before it exchanges the numbers of one coordinate for others, one to one and within the range.

    A property of all places of this one (none outside, no two equal) holds of those of the map: numbers that a list
    permutes, as the devices of a sharding, need no look at the list.

    Args:
        m: A map.

    Returns:
        The map that its place says by its attribute `unnamed`; None where it says nothing of one.
    """
    place: Place | None = getattr(m.place, "unnamed", None)
    return None if place is None else replace(m, place=place)


def row_major(coordinates: Index, extents: Sequence[Extent], on: Numbers = INTS) -> Any:
    """The position of coordinates in a box, last axis fastest.

    Args:
        coordinates: One number per axis.
        extents: Of the box, in elements.
        on: The numbers that the arithmetic runs on.

    Returns:
        The position, in elements.

    >>> row_major((1, 1, 0, 1), (2, 3, 2, 2))
    17
    """
    total: Any = coordinates[0] if coordinates else 0
    for coordinate, extent in zip(coordinates[1:], extents[1:], strict=True):
        total = total * on.size(extent) + coordinate
    return total


def from_row_major(position: Numeral, extents: Sequence[Extent], on: Numbers = INTS) -> Index:
    """The coordinates at a row-major position: the inverse of `row_major` for 0 <= position < count.

    Args:
        position: In elements.
        extents: Of the box, in elements.
        on: The numbers that the arithmetic runs on.

    Returns:
        One number per axis.

    >>> from_row_major(17, (2, 3, 2, 2))
    (1, 1, 0, 1)
    """
    coordinates: list[Any] = []
    for extent in reversed(extents[1:]):
        size = on.size(extent)
        coordinates.append(position % size)
        position = position // size
    return (position, *reversed(coordinates)) if extents else ()
