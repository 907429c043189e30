"""XLA's tiled layouts a second time, as moves of whole arrays: pad, reshape, transpose. Nothing here uses `place`.

docs/tiled_layout.md defines tiling twice: by an index formula, and by "tiling as pad-reshape-transpose". `place`
follows the first definition and this page the second, with NumPy's own pad, reshape and transpose, so that an error in
one of them shows as a disagreement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutproof.core.errors import LayoutError
from layoutproof.layouts.xla.shape import COMBINE, XlaLayout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def pad_reshape_transpose(layout: XlaLayout, array: NDArray[np.generic], fill: complex = 0) -> NDArray[np.generic]:
    """The allotted elements in memory order: 1-D, padding filled with `fill`.

    array: the logical shape, any dtype. Not modelled here and so not looked at: E, S, M, splits.
    Raises LayoutError for an array of another shape, and for a tile or a minor_to_major without meaning.

    >>> import numpy
    >>> from layoutproof.layouts.xla import parse
    >>> pad_reshape_transpose(parse("s32[3,5]{1,0:T(2,2)}"), numpy.arange(15).reshape(3, 5), fill=-1).tolist()
    [0, 1, 5, 6, 2, 3, 7, 8, 4, -1, 9, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, -1, -1, -1]
    """
    import numpy as np

    if array.shape != layout.dims:
        raise LayoutError(f"the array has shape {array.shape}, but {layout} has {layout.dims}")
    if sorted(layout.minor_to_major) != list(range(array.ndim)):
        raise LayoutError(f"minor_to_major {layout.minor_to_major} is not a permutation of 0..{array.ndim - 1}")
    physical = np.transpose(array, layout.minor_to_major[::-1])
    for tile in layout.tiles:
        physical = _tiled(physical, tuple(int(size) for size in tile), fill)
    line = physical.reshape(physical.size)
    return np.pad(line, (0, -line.size % layout.tail_alignment), constant_values=fill)


def _tiled(array: NDArray[np.generic], tile: tuple[int, ...], fill: complex) -> NDArray[np.generic]:
    """One level: the last len(tile) axes become as many axes of tiles and, at the end, as many within a tile."""
    import numpy as np

    if not tile or tile[-1] == COMBINE or any(size < 1 and size != COMBINE for size in tile):
        raise LayoutError(f"the tile {tile} has no meaning")
    array = array.reshape((1,) * (len(tile) - array.ndim) + array.shape)
    sizes = list(tile)
    while COMBINE in sizes:
        # the document's own words: delete dimension i, multiply the bound of dimension i - 1 by its bound
        star = sizes.index(COMBINE)
        axis = array.ndim - len(sizes) + star
        shape = array.shape
        array = array.reshape((*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
        del sizes[star]
    kept = array.ndim - len(sizes)
    overhang = [(0, -extent % size) for extent, size in zip(array.shape[kept:], sizes, strict=True)]
    array = np.pad(array, [(0, 0)] * kept + overhang, constant_values=fill)
    split = [part for extent, size in zip(array.shape[kept:], sizes, strict=True) for part in (extent // size, size)]
    array = array.reshape((*array.shape[:kept], *split))
    numbers = list(range(kept, array.ndim, 2))
    return array.transpose((*range(kept), *numbers, *[axis + 1 for axis in numbers]))
