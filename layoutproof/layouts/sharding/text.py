"""Reading XLA's text for shardings: V1 `{devices=[2,2]0,1,2,3}`, V2 `{devices=[2,2]<=[4]}`, V3 `{mesh[..], [..]}`.

Source: openxla/xla `xla/hlo/parser/hlo_parser.cc` (ParseSharding, ParseSingleSharding, ParseTileAssignment), checked
against jaxlib 0.10.2. Printing is `str` of what is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from layoutproof.core.bounds import check_length
from layoutproof.core.size import product
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.lexer import cursor_at, extents, integers, iota_parts, metadata
from layoutproof.layouts.sharding.mesh_text import read_named
from layoutproof.layouts.sharding.model import (
    KINDS,
    REDUCTIONS,
    NamedSharding,
    Sharding,
    ShardingTuple,
    TileSharding,
)
from layoutproof.layouts.sharding.normal import ORDER, subgrouped
from layoutproof.layouts.sharding.tiles import MOST_LISTED, Tiles, iota
from layoutproof.layouts.xla.lexer import XlaCursor

_OF_TILES = ("devices=", "last_tile_dim_replicate", "last_tile_dims=")


@dataclass(slots=True)
class _Braces:
    """The contents of one `{..}`, before it is checked."""

    words: list[str] = field(default_factory=list)
    reduction: str = ""
    device: list[int] = field(default_factory=list)
    tiles: list[tuple[list[int], list[int], list[int], list[int]]] = field(default_factory=list)
    replicate_last: bool = False
    subgroups: list[str] = field(default_factory=list)
    groups: list[tuple[str, int]] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)


def parse(text: str, mode: str = "strict") -> Sharding:
    """The sharding that `text` writes, in the normal form in which XLA prints it.

    Mode "strict" takes unambiguous texts: distinct devices, as many as tiles, one kind, each attribute once.
    Mode "xla" takes what XLA's parser takes, also texts that its verifier refuses later (duplicate devices, a transpose
    that is no permutation, too many or too few devices); a text that aborts XLA is refused in both.
    Raises LayoutError with the column of the trouble; ValueError for another mode.

    >>> str(parse("{devices=[2,2,1]0,1,2,3 last_tile_dim_replicate}"))
    '{devices=[2,2]0,1,2,3}'
    >>> str(parse("{mesh['a'=2,'b'=4], [{'b','a'}]}"))
    "{mesh['a'=2,'b'=4], [{'b', 'a'}]}"
    """
    if mode not in ("strict", "xla"):
        raise ValueError(f"mode {mode!r} is neither 'strict' nor 'xla'")
    check_length(text)
    cursor = cursor_at(text, mode == "strict")
    found = read_sharding(cursor)
    if cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_ALONE(cursor.word))
    return found


def read_sharding(cursor: XlaCursor) -> Sharding:
    """The sharding at the cursor, a single one or a tuple."""
    cursor.take("{", "to begin a sharding")
    if cursor.kind not in ("{", "}"):
        return _single(cursor)
    elements: list[TileSharding | NamedSharding] = []
    while cursor.kind != "}" or elements:
        cursor.take("{", "to begin a sharding of the tuple")
        elements.append(_single(cursor))
        if cursor.kind != ",":
            break
        cursor.advance()
    cursor.take("}", "after the shardings of the tuple")
    return ShardingTuple(tuple(elements))


def _single(cursor: XlaCursor) -> TileSharding | NamedSharding:
    """A sharding whose opening brace is read already."""
    if cursor.kind == "name" and cursor.word in ("mesh", "maximal_mesh"):
        return read_named(cursor)
    start = cursor.start
    found = _Braces()
    while cursor.kind != "}":
        _attribute(cursor, found)
    sharding = _untiled(cursor, found, start) if found.words else _tiled(cursor, found, start)
    cursor.advance()
    if found.groups:
        # XLA remembers the number that came last, and prefers shard_as over shard_like
        kind = "shard_as" if any(k == "shard_as" for k, _ in found.groups) else "shard_like"
        sharding = replace(sharding, group=(kind, found.groups[-1][1]))
    return replace(sharding, metadata=tuple(found.metadata))


def _attribute(cursor: XlaCursor, found: _Braces) -> None:
    word = cursor.word
    if cursor.kind != "name":
        raise cursor.expected("devices=, a word such as replicated, or }")
    if cursor.strict and word in found.seen:
        raise cursor.refuse(problems.GIVEN_TWICE(word))
    found.seen.append(word)
    start = cursor.start
    cursor.advance()
    if word in KINDS:
        found.words.append(word)
    elif word == "unreduced=":
        if cursor.word not in REDUCTIONS:
            raise cursor.expected(f"how values combine, one of {', '.join(REDUCTIONS)}: {{unreduced=max}}")
        found.words.append("unreduced")
        found.reduction = cursor.word
        cursor.advance()
    elif word == "device=":
        found.device = [cursor.integer("the device number of a maximal sharding")]
    elif word == "devices=":
        found.tiles.append(_assignment(cursor))
    elif word == "last_tile_dim_replicate":
        found.replicate_last = True
    elif word == "last_tile_dims=":
        found.subgroups += _subgroups(cursor)
    elif word in ("shard_as", "shard_like"):
        found.groups.append((word, cursor.integer(f"the group number of {word}")))
    elif word == "metadata=":
        found.metadata += metadata(cursor)
    else:
        raise cursor.refuse(
            problems.WORD(word),
            start,
        )


def _assignment(cursor: XlaCursor) -> tuple[list[int], list[int], list[int], list[int]]:
    """(dims, reshape, perm, devices) of `[2,2]<=[4]` or `[2,2]0,1,2,3`."""
    cursor.take("[", "and the number of tiles per dimension")
    dims = extents(cursor, "an integer, the number of tiles of a dimension")
    cursor.take("]", "after the numbers of tiles")
    if cursor.kind == "<=":
        cursor.advance()
        return dims, *iota_parts(cursor), []
    return dims, [], [], integers(cursor, "<=[..], or an integer, a device number")


def _subgroups(cursor: XlaCursor) -> list[str]:
    cursor.take("{", "and the kinds of the last tile dimensions")
    kinds: list[str] = []
    while cursor.kind != "}" or kinds:
        if cursor.word not in ORDER:
            raise cursor.expected(f"a kind of subgroup, one of {', '.join(ORDER)}")
        kinds.append(cursor.word)
        cursor.advance()
        if cursor.kind != ",":
            break
        cursor.advance()
    cursor.take("}", "after the kinds of subgroups")
    return kinds


def _untiled(cursor: XlaCursor, found: _Braces, start: int) -> TileSharding:
    kind = next(k for k in KINDS if k in found.words)
    devices = found.device + [d for *_, listed in found.tiles for d in listed]
    if cursor.strict:
        extra = [w for w in found.seen if w.removesuffix("=") in KINDS or w in _OF_TILES]
        if len(extra) > 1:
            raise cursor.refuse(problems.CONTRADICTION(extra[0], extra[1]), start)
    if kind == "maximal":
        if len(devices) != 1:
            raise cursor.refuse(problems.MAXIMAL_DEVICES(len(devices)), start)
        if cursor.strict and devices[0] < 0:
            raise cursor.refuse(problems.DEVICE_NEGATIVE(devices[0]), start)
        return TileSharding("maximal", device=devices[0])
    if devices:
        raise cursor.refuse(problems.NAMES_DEVICES(kind), start)
    return TileSharding(kind, reduction=found.reduction if kind == "unreduced" else "")


def _tiled(cursor: XlaCursor, found: _Braces, start: int) -> TileSharding:
    if not found.tiles:
        raise cursor.refuse(problems.KIND_MISSING(), start)
    if cursor.strict and found.device:
        raise cursor.refuse(problems.DEVICE_OF_MAXIMAL(), start)
    if found.replicate_last and found.subgroups:
        raise cursor.refuse(problems.REPLICATE_TWICE(), start)
    tiles = _tiles(cursor, found, start)
    subgroups = ("replicated",) if found.replicate_last else tuple(found.subgroups)
    if len(subgroups) > len(tiles.dims):
        raise cursor.refuse(problems.SUBGROUPS(len(subgroups), len(tiles.dims)), start)
    problem = tiles.problem()
    if not problem and not found.subgroups and not found.replicate_last and tiles.count() == 1:
        problem = f"{tiles} has a single tile: write {{replicated}} or {{maximal device=0}}"
    # XLA checks these only later, when the sharding meets a shape; its normal form of no permutation means nothing
    if problem and (cursor.strict or (subgroups and tiles.reshape)):
        raise cursor.refuse(problem, start)
    return subgrouped(tiles, subgroups)


def _tiles(cursor: XlaCursor, found: _Braces, start: int) -> Tiles:
    dims = [extent for one, *_ in found.tiles for extent in one]
    reshape = [extent for _, one, *_ in found.tiles for extent in one]
    perm = [number for *_, one, _ in found.tiles for number in one]
    devices = found.device + [device for *_, one in found.tiles for device in one]
    count = product(dims)
    if any(extent < 0 for extent in dims + reshape):
        raise cursor.refuse(problems.TILES_NEGATIVE(), start)
    if reshape:
        if devices or len(found.tiles) > 1:
            raise cursor.refuse(problems.DEVICES_TWICE(), start)
        if count != product(reshape):
            raise cursor.refuse(Tiles(tuple(dims), tuple(reshape), tuple(perm)).problem(), start)
        return iota(dims, reshape, perm)
    if len(devices) <= 1:
        raise cursor.refuse(
            problems.TILES_COUNT(",".join(map(str, dims)), count, len(devices)),
            start,
        )
    if not cursor.strict and len(devices) != count <= MOST_LISTED:
        # as jaxlib 0.10.2: surplus devices are dropped, missing ones are device 0
        devices = (devices + [0] * count)[:count]
    return Tiles(tuple(dims), devices=tuple(devices))
