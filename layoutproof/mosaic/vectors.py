"""Where a vector lies in a TPU's registers, as Mosaic writes it, and whether moving to another layout costs something.

`vpad<"16,{0,0},(8,128)">` is the width of an element in bits, the sublane and the lane at which the vector starts, and
the tile. A register has 8 sublanes of 128 lanes of 32 bits; narrower elements share a lane, rows side by side. A
register holds as many tiles as fit, one after the other along the last dimension. `*` in place of a start says that all
sublanes, or all lanes, hold the same: such an element has many places. `-1` or `-2` after the tile says that the last,
or the last but one, of the two dimensions in registers is no dimension of the vector, and has 1 element.

A relayout to a layout of which every place is a place of the first moves nothing: its registers are used as they are,
under other names. That is `refines`, asked of the two layouts without the numbers of registers along what the first
replicates.
Source: jaxlib's `mosaic/dialect/tpu/layout.h`, and which relayouts of libtpu 0.0.52 leave no instruction behind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from layoutproof.core.bounds import check_length
from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Verdict
from layoutproof.core.space import Space, axis_names
from layoutproof.hardware.tpu_tiles import LANES, SUBLANES
from layoutproof.mosaic import problems

_TEXT = re.compile(r"(\d+),\{(\*|\d+),(\*|\d+)\},\((\d+),(\d+)\)(?:,(-[12]))?")
_VECTOR = re.compile(r"((?:\d+x)*+)([a-zA-Z]\w*+)")
WORD = 32
"""Bits of one lane of one sublane."""


@dataclass(frozen=True, slots=True)
class VectorLayout:
    """A vector in registers. dims: its extents.  bits: of an element.  sublane, lane: where it starts, None = in all.

    rows, columns: of a tile.  implicit: -1 or -2 where that dimension in registers is none of the vector's, else 0.
    """

    dims: tuple[int, ...]
    bits: int
    sublane: int | None
    lane: int | None
    rows: int
    columns: int
    implicit: int = 0

    def __str__(self) -> str:
        starts = ",".join("*" if start is None else str(start) for start in (self.sublane, self.lane))
        more = f",{self.implicit}" if self.implicit else ""
        return f"{self.bits},{{{starts}}},({self.rows},{self.columns}){more}"

    @property
    def tiles(self) -> int:
        """Tiles in one register."""
        return SUBLANES * LANES * WORD // self.bits // (self.rows * self.columns)

    def index_map(self, rows: bool = True, columns: bool = True) -> IndexMap:
        """An element's places: registers by number, then sublane, lane, and place within the lane.

        rows, columns: whether registers have numbers along the last two dimensions; replicated values have one, 0.
        Raises Unsupported for tiles that fill no whole sublanes.
        """
        packing = WORD // self.bits
        if self.columns != LANES or self.rows % packing or self.tiles < 1:
            raise Unsupported(f"tiles of {self.rows} x {self.columns} elements of {self.bits} bits are not modelled")
        extents = {"tile": self.tiles, "lane": LANES} if self.lane is None else {}
        extents |= {"row": self.rows} if self.sublane is None else {}

        def place(index: Index, replica: Index, on: Numbers) -> Index:
            *leading, row, column = self._two(index)
            chosen = dict(zip(extents, replica, strict=True))
            at: list[Any] = list(leading)
            tile: Any = chosen.get("tile")
            lane: Any = chosen.get("lane")
            within: Any = chosen.get("row")
            first: Any = 0
            second: Any = 0
            if self.sublane is not None:
                first, within = (row + self.sublane) // self.rows, (row + self.sublane) % self.rows
            if self.lane is not None:
                number, lane = (column + self.lane) // LANES, (column + self.lane) % LANES
                second, tile = number // self.tiles, number % self.tiles
            at += [first] if rows else []
            at += [second] if columns else []
            return (*at, tile * (self.rows // packing) + within // packing, lane, within % packing)

        names = axis_names(len(self.dims))
        return IndexMap(Space(names, self.dims), Space(), place, Space(tuple(extents), tuple(extents.values())))

    def _two(self, index: Index) -> Index:
        """An index with the two dimensions in registers last."""
        if self.implicit == -1:
            return (*index, 0)
        if self.implicit == -2:
            return (*index[:-1], 0, index[-1])
        return index


def read_vector(text: str, vector: str) -> VectorLayout:
    """A layout from Mosaic's text, of a vector such as `512x128xbf16`.

    Raises LayoutError for another form.

    >>> str(read_vector("16,{0,*},(16,128)", "512x128xbf16"))
    '16,{0,*},(16,128)'
    """
    found, shape = _TEXT.fullmatch(check_length(text)), _VECTOR.fullmatch(check_length(vector))
    if found is None or shape is None:
        raise LayoutError(problems.VECTOR_LAYOUT(text[:60], vector[:60]))
    dims = tuple(int(n) for n in shape[1].split("x") if n)
    starts = [None if start == "*" else int(start) for start in (found[2], found[3])]
    made = VectorLayout(dims, int(found[1]), starts[0], starts[1], int(found[4]), int(found[5]), int(found[6] or 0))
    if made.bits not in (1, 2, 4, 8, 16, 32) or len(dims) + (1 if made.implicit else 0) < 2 or made.rows < 1:
        raise LayoutError(problems.VECTOR_LAYOUT(text[:60], vector[:60]))
    return made


@lru_cache(maxsize=1024)
def free(before: str, after: str, vector: str) -> tuple[Verdict, str]:
    """Whether a relayout is proved to move nothing, refuted, or unknown with the reason.

    before, after: Mosaic's texts.  vector: as `512x128xbf16`.

    >>> free("32,{*,*},(8,128)", "32,{0,0},(8,128)", "512x128xf32")[0].value
    'proved'
    >>> free("16,{0,0},(8,128)", "16,{0,0},(16,128)", "512x128xbf16")[0].value
    'refuted'
    """
    from layoutproof.questions.ask import ask

    try:
        one, other = read_vector(before, vector), read_vector(after, vector)
        if one.bits != other.bits:
            return Verdict.REFUTED, ""
        rows, columns = one.sublane is not None, one.lane is not None
        found = ask("refines", other.index_map(rows, columns), one.index_map(rows, columns))
    except (LayoutError, Unsupported) as error:
        return Verdict.UNKNOWN, str(error)
    return found.verdict, found.reason if found.verdict is Verdict.UNKNOWN else ""
