"""Reading `{minor_to_major:properties}`, the layout after an array's dimensions.

Source: openxla/xla at 183fa00cb5, `hlo_parser.cc` ParseLayout, ParseTiles, ParseSplitConfigs, ParseDimLevelTypes;
`layout_util.cc` MakeLayout (what aborts).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.size import Extent, surely_less
from layoutproof.layouts.xla import problems
from layoutproof.layouts.xla.lexer import EXTENT_TOKEN, INT64_MAX, INT64_MIN, TOKEN, XlaCursor, read_size
from layoutproof.layouts.xla.shape import COMBINE, ELEMENT_BITS, XlaLayout, wrong_order
from layoutproof.layouts.xla.text_rules import wrong_split, wrong_split_index

_ORDER = ("D", "T", "L", "#", "*", "E", "S", "SC", "P", "M")
_FIELDS = {
    "T": "tiles",
    "L": "tail_alignment",
    "#": "index_type",
    "*": "pointer_type",
    "E": "element_bits",
    "S": "memory_space",
    "SC": "splits",
    "M": "metadata_bytes",
}
_SPARSE = {
    "D": "dim-level types",
    "#": "an index type",
    "*": "a pointer type",
    "P": "a physical shape",
}
_NUMBERS = {
    "L": "the tail padding alignment in elements, e.g. L(1024)",
    "E": "the element size in bits, e.g. E(4)",
    "S": "the memory space, e.g. S(1)",
    "M": "the size of the dynamic shape metadata in bytes, e.g. M(8)",
}


def read_layout(cursor: XlaCursor, shape: XlaLayout) -> XlaLayout:
    """`shape` with the layout that starts at the cursor's `{`. LayoutError if the layout is not one of its mode."""
    cursor.advance()
    start = cursor.start
    order: list[int] = []
    if cursor.kind == "int":
        order.append(cursor.integer("a dimension number"))
        while cursor.kind == ",":
            cursor.advance()
            order.append(cursor.integer("a dimension number in minor_to_major"))
    shape = replace(shape, minor_to_major=tuple(order))
    problem = wrong_order(shape, valid=cursor.strict)
    if problem:
        raise cursor.refuse(problem, start)
    values: dict[str, Any] = {}
    if cursor.kind == ":":
        cursor.advance()
        for key in _ORDER:
            if cursor.word == key:
                _read_property(cursor, shape, key, values)
    if cursor.kind != "}":
        raise cursor.problem or _unexpected(cursor, list(values))
    cursor.advance()
    return replace(shape, **{_FIELDS[key]: value for key, value in values.items() if key in _FIELDS})


def _read_property(cursor: XlaCursor, shape: XlaLayout, key: str, values: dict[str, object]) -> None:
    if key == "P" or (cursor.strict and key in _SPARSE):
        raise cursor.refuse(problems.SPARSE(key, _SPARSE[key]))
    cursor.advance()
    if key == "D":
        _skip_level_types(cursor)
    elif key == "T":
        values[key] = _tiles(cursor)
    elif key == "SC":
        values[key] = _splits(cursor, shape)
    elif key in _NUMBERS:
        values[key] = _number(cursor, key)
    else:
        values[key] = _type(cursor)


def _take(cursor: XlaCursor, kind: str, what: str) -> bool:
    """Step over a token of this kind. Where it is missing: an error in mode `strict`, False in mode `xla`.

    ParseLayout drops the results of its property parsers, so XLA goes on with the next property and refuses the
    text only if that does not lead to the closing brace; the first problem is then the one worth reporting.
    """
    if cursor.kind == kind:
        if kind != "int":
            cursor.advance()
        return True
    error = cursor.expected(what)
    if cursor.strict:
        raise error
    cursor.problem = cursor.problem or error
    return False


def _number(cursor: XlaCursor, key: str) -> int:
    default = 1 if key == "L" else 0
    what = _NUMBERS[key]
    if not _take(cursor, "(", f"( after {key}: {what}") or not _take(cursor, "int", f"an integer in {key}(..): {what}"):
        return default
    start = cursor.start
    value = cursor.integer(what)
    # MakeLayout aborts the process
    if key == "L" and value < 1:
        raise cursor.refuse(problems.TAIL_ALIGNMENT(value), start)
    if cursor.strict and key in ("E", "M") and value < 0:
        what = "an element size in bits" if key == "E" else "a size in bytes"
        raise cursor.refuse(problems.NEGATIVE(key, value, what), start)
    if cursor.strict and key == "S" and not -128 <= value <= 127:
        raise cursor.refuse(problems.MEMORY_SPACE(value, _int8(value)), start)
    _take(cursor, ")", f") after {key}({value}")
    if key == "S":
        return _int8(value)
    return max(value, 0) if key == "M" else value


def _int8(value: int) -> int:
    return (value + 128) % 256 - 128


def _tiles(cursor: XlaCursor) -> tuple[tuple[Extent, ...], ...]:
    tiles: list[tuple[Extent, ...]] = []
    while not tiles or cursor.kind == "(":
        tile: list[Extent] = []
        complete = _tile(cursor, tile)
        tiles.append(tuple(tile))
        if not complete:
            break
    return tuple(tiles)


def _tile(cursor: XlaCursor, tile: list[Extent]) -> bool:
    if cursor.strict:
        cursor.pattern = EXTENT_TOKEN
    try:
        return _take(cursor, "(", "( and tile sizes after T, e.g. T(8,128)") and _sizes_of_tile(cursor, tile)
    finally:
        cursor.pattern = TOKEN


def _sizes_of_tile(cursor: XlaCursor, tile: list[Extent]) -> bool:
    if cursor.strict and cursor.kind == ")":
        raise cursor.refuse(problems.EMPTY_TILE())
    start = cursor.start
    while cursor.kind != ")" or tile:
        start = cursor.start
        if cursor.kind == "*":
            tile.append(COMBINE)
            cursor.advance()
        elif cursor.strict and cursor.kind in ("int", "name", "(", "-"):
            tile.append(_tile_expression(cursor))
        elif _take(cursor, "int", "a tile size: an integer or *"):
            tile.append(_tile_size(cursor))
        else:
            return False
        if cursor.kind != ",":
            break
        cursor.advance()
    if cursor.strict and tile[-1] == COMBINE:
        raise cursor.refuse(problems.MERGE_LAST(), start)
    # the next token is one of the layout again
    cursor.pattern = TOKEN
    return _take(cursor, ")", ", or ) in the tile")


def _tile_expression(cursor: XlaCursor) -> Extent:
    """A tile size in mode `strict`: an integer, or a size expression for a tile of any size (ours, not XLA's)."""
    start = cursor.start
    size: Extent = read_size(cursor)
    if type(size) is int:
        if size == -1:
            raise cursor.refuse(problems.TILE_MINUS_ONE(), start)
        if size < 1:
            raise cursor.refuse(problems.TILE_POSITIVE(size), start)
        if size > INT64_MAX:
            raise cursor.refuse(problems.INT64(size, INT64_MAX), start)
    elif not surely_less(0, size):
        rule = "must be at least 1 for all sizes (each name is any integer >= 1)"
        raise cursor.refuse(problems.TILE_RULE(size, rule), start)
    return size


def _tile_size(cursor: XlaCursor) -> int:
    # mode `xla`
    start = cursor.start
    size = cursor.integer("a tile size")
    # Tile::kCombineDimension is INT64_MIN; MakeLayout aborts the process on any other negative size
    if size == INT64_MIN:
        return COMBINE
    if size < 0:
        raise cursor.refuse(problems.TILE_POSITIVE(size), start)
    return size


def _splits(cursor: XlaCursor, shape: XlaLayout) -> tuple[tuple[int, tuple[int, ...]], ...]:
    splits: list[tuple[int, tuple[int, ...]]] = []
    while not splits or cursor.kind == "(":
        indices: list[int] = []
        example = "(dimension:index,..) after SC, e.g. SC(0:128)"
        if not _take(cursor, "(", example) or not _take(cursor, "int", f"a physical dimension in {example}"):
            break
        start = cursor.start
        dimension = cursor.integer("a physical dimension")
        problem = wrong_split(shape, [d for d, _ in splits], dimension) if cursor.strict else ""
        if problem:
            raise cursor.refuse(problem, start)
        complete = _split_indices(cursor, shape, dimension, indices)
        splits.append((dimension, tuple(indices)))
        if not complete:
            break
    return tuple(splits)


def _split_indices(cursor: XlaCursor, shape: XlaLayout, dimension: int, indices: list[int]) -> bool:
    if not _take(cursor, ":", f": and the split indices after SC({dimension}"):
        return False
    while cursor.kind != ")" or indices:
        if not _take(cursor, "int", "a split index"):
            return False
        start = cursor.start
        index = cursor.integer("a split index")
        before = indices[-1] if indices else 0
        problem = wrong_split_index(shape, dimension, before, index) if cursor.strict else ""
        if problem:
            raise cursor.refuse(problem, start)
        indices.append(index)
        if cursor.kind != ",":
            break
        cursor.advance()
    return _take(cursor, ")", ", or ) after the split indices")


def _type(cursor: XlaCursor) -> str:
    # mode `xla` only; ParseLayout ignores each of the three results
    read = ""
    if cursor.kind == "(":
        cursor.advance()
    if cursor.kind == "name" and (cursor.word in ELEMENT_BITS or cursor.word in ("token", "opaque")):
        # Layout::Print writes "invalid" for what is not integral
        read = cursor.word if cursor.word[0] in "su" else "invalid"
        cursor.advance()
    if cursor.kind == ")":
        cursor.advance()
    return read


def _skip_level_types(cursor: XlaCursor) -> None:
    # mode `xla` only: read and forgotten, up to where ParseDimLevelTypes gives up
    if not _take(cursor, "(", "( after D"):
        return
    first = True
    while cursor.kind != ")" or not first:
        first = False
        if cursor.kind != "name" or cursor.word not in ("D", "C", "S", "H"):
            return
        cursor.advance()
        for mark in ("+", "~"):
            if cursor.kind == mark:
                cursor.advance()
        if cursor.kind != ",":
            break
        cursor.advance()
    if cursor.kind == ")":
        cursor.advance()


def _unexpected(cursor: XlaCursor, seen: list[str]) -> LayoutError:
    key = cursor.word
    if key in seen:
        more = "; several tiles are written T(8,128)(2,1)" if key == "T" else ""
        return cursor.refuse(problems.GIVEN_TWICE(key, more))
    if key in _ORDER and cursor.kind in ("name", "#", "*"):
        later = [other for other in seen if _ORDER.index(other) > _ORDER.index(key)]
        if later:
            return cursor.refuse(problems.ORDER(key, later[0]))
    if cursor.kind == "name":
        known = ", ".join(f"{name}(..)" for name in _ORDER if name not in _SPARSE)
        return cursor.refuse(problems.PROPERTY(shorten(key, 40), known))
    return cursor.expected("} at the end of the layout")
