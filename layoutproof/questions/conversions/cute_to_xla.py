"""CuTe to XLA: the order of dimensions and the tile levels that give the digits, found by trying and proved.

An XLA layout needs an element type. Tried are all orders of up to four dimensions, with any of them tiled down to its
last digit or further; other layouts of CuTe are not tiled layouts, or not found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.core.size import Extent, product
from layoutproof.layouts.cute.layout import CuteLayout, element_bits
from layoutproof.layouts.xla.shape import ELEMENT_BITS, XlaLayout
from layoutproof.questions import problems
from layoutproof.questions.ask import ask
from layoutproof.questions.conversions.modes import Modes, strided_digits
from layoutproof.registry.read import read_layout

MOST = 4
"""Dimensions whose orders are all tried."""


def convert(layout: CuteLayout) -> XlaLayout:
    """`bf16 ((2,4,2),(128,2)):((1,256,2048),(2,1024))` is `bf16[16,256]{1,0:T(8,128)(2,1)}`."""
    if layout.element_type not in ELEMENT_BITS:
        raise LayoutError(problems.TO_XLA_ELEMENT_TYPE(layout))
    m = layout.index_map()
    digits, start = strided_digits(m)
    if start != 0:
        raise LayoutError(problems.TO_XLA_OFFSET(start))
    if len(digits) > MOST:
        raise LayoutError(problems.TO_XLA_DIMENSIONS(MOST, len(digits)))
    width = element_bits(layout.element_type)
    suffix = f"E({width})" if width < 8 else ""
    dims = ",".join(map(str, m.domain.extents))
    orders = list(itertools.permutations(range(len(digits))))
    tiled = ((order, tiles) for order in orders for tiles in _tilings([digits[d] for d in order]))
    for order, tiles in itertools.chain(((order, []) for order in orders), tiled):
        text = ",".join(map(str, reversed(order)))
        after = "".join(f"({','.join(map(str, tile))})" for tile in tiles)
        tail = (f"T{after}" if after else "") + suffix
        found: XlaLayout = read_layout(f"{layout.element_type}[{dims}]{{{text}{':' if tail else ''}{tail}}}")
        if ask("same_map", m, found).verdict is Verdict.PROVED:
            return found
    raise LayoutError(problems.TO_XLA_TILES(layout))


def _tilings(digits: list[Modes]) -> Iterator[list[list[Extent]]]:
    """Tile levels, outermost first, for dimensions from major to minor, each dimension cut or whole."""
    extents = [[extent for extent, _ in modes if extent != 1] for modes in digits]
    for whole in itertools.product((False, True), repeat=len(digits)):
        left = [list(mode) if all_ else mode[:-1] for mode, all_ in zip(extents, whole, strict=True)]
        levels = []
        while any(left):
            level: list[Extent] = [product(mode) for mode in left]
            while level[0] == 1:
                del level[0]
            if not all(type(size) is int for size in level):
                break
            levels.append(level)
            left = [mode[:-1] for mode in left]
        if levels:
            yield levels
