"""CuTe's divide and product: `logical_*`, the same modes as `zipped_*`, `tiled_*`, `flat_*`; `blocked_*`, `raked_*`.

Each is defined by composition and complement, whose equations are checked there; here only modes are arranged.
Source: include/cute/layout.hpp and python/pycute/layout.py of NVIDIA/cutlass at 07a0238.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutproof.algebra.cute.algebra import (
    Answer,
    Tiler,
    by_mode,
    complement,
    composition,
    join,
    split,
)
from layoutproof.algebra.cute.laws import constants
from layoutproof.core.errors import Reason
from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.layouts.cute.nested import modes_of

Splitter = Callable[[CuteLayout, Tiler], Answer]


def logical_divide(a: CuteLayout, b: Tiler) -> Answer:
    """a split into the tile b (mode 0) and the repetitions of the tile (mode 1): a o (b, complement(b, size(a))).

    Requires: constants.  ensures: R((i, j)) == a(b(i) + c(j)), c the complement; a tuple divides mode by mode. Where
    the tile does not divide a, the last repetition goes past a's end, as in CuTe. Reason as for composition.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.

    >>> str(logical_divide(CuteLayout((4, 2, 3), (2, 1, 8)), CuteLayout(4, 2)))
    '((2,2),(2,3)):((4,1),(2,8))'
    """
    if not isinstance(b, CuteLayout):
        return by_mode(logical_divide, a, b)
    rest = complement(b, int(a.size()))
    if isinstance(rest, Reason):
        return rest
    return composition(a, CuteLayout((b.shape, rest.shape), (b.stride, rest.stride)))


def logical_product(a: CuteLayout, b: Tiler) -> Answer:
    """a repeated (mode 0 is a) at the places that b chooses (mode 1): (a, complement(a, size(a)*cosize(b)) o b).

    Requires: constants.  ensures: R((i, j)) == a(i) + c(b(j)), all different when a and b are injective; a tuple
    multiplies mode by mode, n is n:1 (pycute calls logical_divide there). Reason as for composition.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.

    >>> str(logical_product(CuteLayout((4, 2), (1, 4)), 3))
    '((4,2),3):((1,4),8)'
    """
    if not isinstance(b, CuteLayout):
        return by_mode(logical_product, a, b)
    constants(b)
    rest = complement(a, int(a.size() * b.cosize()))
    if isinstance(rest, Reason):
        return rest
    return join([a, composition(rest, b)])


def zipped_divide(a: CuteLayout, b: Tiler) -> Answer:
    """logical_divide with all tile modes gathered in mode 0 and all repetitions in mode 1.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.

    >>> str(zipped_divide(CuteLayout((9, (4, 8)), (59, (13, 1))), (CuteLayout(3, 3), CuteLayout((2, 4), (1, 8)))))
    '((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))'
    """
    return _zipped(logical_divide, a, b)


def tiled_divide(a: CuteLayout, b: Tiler) -> Answer:
    """zipped_divide with every repetition a mode of its own: (tile, rest 0, rest 1, ..).

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.
    """
    return _spread(zipped_divide(a, b), first=False)


def flat_divide(a: CuteLayout, b: Tiler) -> Answer:
    """zipped_divide with every tile mode and every repetition a mode of its own.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.
    """
    return _spread(zipped_divide(a, b), first=True)


def zipped_product(a: CuteLayout, b: Tiler) -> Answer:
    """logical_product with all modes of a gathered in mode 0 and all repetitions in mode 1.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.
    """
    return _zipped(logical_product, a, b)


def tiled_product(a: CuteLayout, b: Tiler) -> Answer:
    """zipped_product with every repetition a mode of its own.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.
    """
    return _spread(zipped_product(a, b), first=False)


def flat_product(a: CuteLayout, b: Tiler) -> Answer:
    """zipped_product with every mode a mode of its own.

    Args:
        a: A CuTe layout.
        b: A CuTe layout, an int, or a tuple that goes mode by mode.

    Returns:
        The layout, or the reason why there is none.
    """
    return _spread(zipped_product(a, b), first=True)


def blocked_product(block: CuteLayout, tiler: CuteLayout) -> Answer:
    """The block at every place of the tiler, dimension by dimension: along each, the block's elements are neighbours.

    Requires: constants.  ensures: mode k is (mode k of the block, mode k of its repetitions in logical_product); the
    operand of fewer modes gets modes 1:0 behind. Reason as for logical_product.

    Args:
        block: A CuTe layout.
        tiler: A CuTe layout: where the repetitions go, in blocks.

    Returns:
        The layout, or the reason why there is none.

    Source:
        include/cute/layout.hpp of NVIDIA/cutlass at 7107b05; releases before 3.8 write each mode coalesced, which
        is the same function.

    >>> str(blocked_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
    '((2,3),(5,4)):((5,10),(1,30))'
    """
    return _ranked(block, tiler, raked=False)


def raked_product(block: CuteLayout, tiler: CuteLayout) -> Answer:
    """The block dealt out over the tiler, dimension by dimension: along each, neighbours are of different blocks.

    Requires: constants.  ensures: mode k is (mode k of the repetitions in logical_product, mode k of the block); else
    as blocked_product.

    Args:
        block: A CuTe layout.
        tiler: A CuTe layout: where the repetitions go, in blocks.

    Returns:
        The layout, or the reason why there is none.

    >>> str(raked_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
    '((3,2),(4,5)):((10,5),(30,1))'
    """
    return _ranked(block, tiler, raked=True)


def _ranked(block: CuteLayout, tiler: CuteLayout, raked: bool) -> Answer:
    """The logical product of two layouts of one rank, with the modes of each dimension together."""
    parts = split(block), split(tiler)
    rank = max(map(len, parts))
    product = logical_product(*(_padded(modes, rank) for modes in parts))
    if isinstance(product, Reason):
        return product
    pairs = zip(*map(split, reversed(split(product)) if raked else split(product)), strict=True)
    return join([join(list(pair)) for pair in pairs])


def _padded(parts: list[CuteLayout], rank: int) -> CuteLayout:
    """The modes of a layout with modes 1:0 behind, up to a rank."""
    padded = join([*parts, *[CuteLayout(1, 0)] * (rank - len(parts))])
    assert isinstance(padded, CuteLayout)
    return padded


def _zipped(operation: Splitter, a: CuteLayout, b: Tiler) -> Answer:
    if b is None:
        return join([CuteLayout(1, 0), a])
    if not isinstance(b, tuple):
        return operation(a, b)
    parts = split(a)
    done = by_mode(lambda part, one: _zipped(operation, part, one), a, b)
    if isinstance(done, Reason):
        return done
    pairs = [split(mode) for mode in split(done)[: len(b)]]
    firsts, seconds = join([pair[0] for pair in pairs]), join([*(pair[1] for pair in pairs), *parts[len(b) :]])
    return join([firsts, seconds])


def _spread(zipped: Answer, first: bool) -> Answer:
    if isinstance(zipped, Reason):
        return zipped
    one, other = split(zipped)
    modes = [*(_entries(one) if first else [one]), *_entries(other)]
    return join(modes)


def _entries(layout: CuteLayout) -> list[CuteLayout]:
    return split(layout) if len(modes_of(layout.shape)) > 1 else [layout]
