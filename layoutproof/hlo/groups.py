"""Which devices talk to which in a collective: `replica_groups` as XLA writes them, and `source_target_pairs`.

Forms: `{{0,2},{1,3}}` (V1), `[2,2]<=[2,2]T(1,0)` (V2, an iota), `mesh['x'=2,'y'=2] {'x'}` (V3). The meaning of the
numbers depends on the instruction (`GetCollectiveOpGroupMode` in `collective_ops_utils.cc` of openxla/xla at
183fa00cb5, 2026-08-22): replicas, partitions, or devices, of which number r * partitions + p is partition p of replica
r. Here all become devices, so that equal groups are equal however they were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from layoutproof.core.bounds import check_length
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hlo import problems
from layoutproof.layouts.sharding.lexer import cursor_at, extents, iota_parts
from layoutproof.layouts.sharding.mesh_text import read_axes, read_mesh
from layoutproof.layouts.sharding.tiles import iota, listed
from layoutproof.layouts.xla.lexer import XlaCursor

Groups = tuple[tuple[int, ...], ...]
MOST_DEVICES = 1 << 16
"""Devices of one program whose groups are listed one by one."""

_TEXT = re.compile(
    r"\{(?:\{[\d,\s]*\}|[,\s])*\}"
    r"|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?"
    r"|mesh\[[^\]]*\](?:, device_ids=\((?:\[[\d,]*\](?:T\([\d,]*\))?|[\d,]*)\))? ?\{[^}]*\}"
)


def groups_text(attributes: str, name: str = "replica_groups") -> str:
    """The text of the groups among an instruction's attributes; "" where it has none, or none of a form that is read.

    >>> groups_text("channel_id=1, replica_groups=mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}, dimensions={1}")
    "mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}"
    """
    at = attributes.find(f"{name}=")
    found = _TEXT.match(attributes, at + len(name) + 1) if at >= 0 else None
    return "" if found is None else found[0]


@lru_cache(maxsize=1024)
def read_groups(text: str, whole: int) -> Groups:
    """The groups as they are written, each in its order. whole: how many there are, all of which `{}` joins.

    >>> read_groups("[2,2]<=[2,2]T(1,0)", 4), read_groups("mesh['x'=2,'y'=2] {'x'}", 4)
    (((0, 2), (1, 3)), ((0, 2), (1, 3)))
    >>> read_groups("{}", 3)
    ((0, 1, 2),)

    Raises LayoutError for a text of another form, and for more than `MOST_DEVICES` devices.
    """
    if check_length(text).startswith("{"):
        inner = re.findall(r"\{([\d,\s]*)\}", text[1:-1])
        found = tuple([tuple([int(n) for n in re.findall(r"\d+", group)]) for group in inner])
        found = found or (tuple(range(_bounded(whole))),)
    else:
        cursor = cursor_at(text, True)
        found = _iota(cursor) if cursor.kind == "[" else _mesh(cursor)
    if len({n for group in found for n in group}) != sum(map(len, found)):
        raise LayoutError(problems.DEVICE_TWICE(shorten(text, 80)))
    return found


def devices(groups: Sequence[Sequence[int]], replicas: int, partitions: int, mode: str) -> Groups:
    """The groups by devices. mode: the meaning of a number in them: "replica", "partition", "device", or "all
    partitions", which are replicas with all of their partitions in one group.

    >>> devices([(0, 1)], 2, 2, "replica"), devices([(0, 1)], 2, 2, "all partitions")
    (((0, 2), (1, 3)), ((0, 1, 2, 3),))
    """
    _bounded(replicas * partitions)
    match mode:
        case "replica":
            made = [[r * partitions + p for r in group] for group in groups for p in range(partitions)]
        case "partition":
            made = [[r * partitions + p for p in group] for group in groups for r in range(replicas)]
        case "all partitions":
            made = [[r * partitions + p for r in group for p in range(partitions)] for group in groups]
        case _:
            made = [list(group) for group in groups]
    return tuple(sorted(map(tuple, made)))


def words(groups: Groups) -> str:
    """As V1 writes them.

    >>> words(((0, 2), (1, 3)))
    '{0,2},{1,3}'
    """
    return ",".join("{" + ",".join(map(str, group)) + "}" for group in groups)


def read_words(text: str) -> Groups | None:
    """The groups that `words` has written; None for any other text.

    >>> read_words("{0,2},{1,3}"), read_words("partitions [2,2]<=[4]")
    (((0, 2), (1, 3)), None)
    """
    if not re.fullmatch(r"(\{\d+(,\d+)*\},?)*", text):
        return None
    return tuple(tuple(map(int, group.split(","))) for group in re.findall(r"\{([\d,]+)\}", text))


def _bounded(count: int) -> int:
    if count > MOST_DEVICES:
        raise LayoutError(problems.TOO_MANY_DEVICES(MOST_DEVICES))
    return count


def _iota(cursor: XlaCursor) -> Groups:
    cursor.take("[", "and the dimensions of the groups")
    dims = extents(cursor, "an integer, how many groups or how many in each")
    cursor.take("]", "after the dimensions of the groups")
    cursor.take("<=", "and the order of the devices")
    reshape, perm = iota_parts(cursor)
    if len(dims) != 2:
        raise LayoutError(problems.DIMENSIONS_OF_GROUPS(len(dims)))
    _bounded(prod(dims))
    tiles = iota(dims, reshape, perm)
    if tiles.problem():
        raise LayoutError(tiles.problem())
    order = listed(tiles)
    return tuple(order[k : k + dims[1]] for k in range(0, len(order), dims[1]))


def _mesh(cursor: XlaCursor) -> Groups:
    """Groups along some axes of a mesh: devices that differ in these alone, the first named axis the most major."""
    mesh, _ = read_mesh(cursor)
    axes, _ = read_axes(cursor, mesh, False)
    sizes = mesh.tiles.dims
    _bounded(prod(sizes))
    steps: list[tuple[int, int]] = []
    left: list[tuple[int, ...]] = []
    strides = [prod(sizes[k + 1 :]) for k in range(len(sizes))]
    for axis in axes:
        size = mesh.size(axis)
        minor = sizes[axis.number] // (axis.pre * size)
        if axis.pre * size * minor != sizes[axis.number]:
            raise LayoutError(problems.AXIS_NOT_DIVIDED(mesh.show(axis), sizes[axis.number]))
        steps.append((size, strides[axis.number] * minor))
    order = listed(mesh.tiles)
    along = [0]
    for size, step in steps:
        along = [start + k * step for start in along for k in range(size)]
    taken: set[int] = set()
    for start in range(len(order)):
        if start not in taken:
            members = [start + step for step in along]
            taken.update(members)
            left.append(tuple(order[k] for k in members if k < len(order)))
    return tuple(left)


def pairs(text: str) -> Iterator[tuple[int, int]]:
    """The pairs of `source_target_pairs`.

    >>> list(pairs("{{0,1},{1,0}}"))
    [(0, 1), (1, 0)]
    """
    for source, target in re.findall(r"\{(\d+),\s*(\d+)\}", text):
        yield int(source), int(target)
