"""Who holds which element: devices of a sharding as boxes of the array, lanes and registers of a thread layout.

A cell is coloured by its owner and names it; where an element has several, its replicas stand joined by `|`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import ceil_div, product
from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.sharding.array import ShardedArray
from layoutproof.layouts.sharding.model import NamedSharding
from layoutproof.layouts.sharding.tiles import listed
from layoutproof.pictures import problems
from layoutproof.pictures.drawing import PADDING, Cell, CellGrid, Drawing, Panel, grid
from layoutproof.pictures.elements import gaps
from layoutproof.pictures.palette import FILLS, distinct
from layoutproof.properties.owners import claims
from layoutproof.registry.hardware import resolve

MOST_PLACES = 4096
"""Places of a layout whose owners are drawn."""
MOST_WALKED = 1 << 16
"""Rows and columns of a layout whose places are looked at one by one."""
MOST_DEVICES = 1024
"""Devices of a mesh that is drawn."""
_BEGIN, _END = 12, 4
_JOINED = 4
"""Replicas that a cell names."""


def sharding_drawing(array: ShardedArray) -> Drawing:
    """The array cut into its shards, each with the devices that hold it, and the mesh with the same colours.

    Raises LayoutError where the sharding does not say where elements go, and for sizes without a value.
    """
    m = array.index_map()
    if m.sizes():
        raise LayoutError(problems.ARRAY_SIZE(array, m.sizes()[0]))
    tiles, _ = array.assignment()
    dims = tuple(int(extent) for extent in array.dims)
    counts = tuple(min(count, max(1, extent)) for count, extent in zip(tiles.dims, dims, strict=False))
    shard = tuple(max(1, int(ceil_div(extent, count))) for extent, count in zip(dims, tiles.dims, strict=False))
    rank = len(dims)
    chosen = sorted(sorted(range(rank), key=lambda k: (-counts[k], -k))[:2])
    row, column = [None, None, *chosen][-2:]
    held: dict[int, str] = {}
    colours: dict[str, int] = {}

    def cell(r: int, c: int) -> Cell:
        first = [0] * rank
        inside = []
        for k, n in ((row, r), (column, c)):
            if k is None:
                inside.append(1.0)
                continue
            first[k] = n * shard[k]
            inside.append(max(0, min(shard[k], dims[k] - first[k])) / shard[k])
        if 0 in inside or 0 in dims:
            return PADDING
        owners = sorted({m.at(tuple(first), r)[0] for r in _replicas(m)})
        text = ",".join(map(str, owners[:_JOINED])) + ("…" if len(owners) > _JOINED else "")
        # of more shards than colours, at least those that touch differ
        number = r * sizes[1] + c if product(sizes) <= len(FILLS) else 3 * r + c
        colour = colours.setdefault(",".join(map(str, owners)), number)
        held.update(dict.fromkeys(owners, ",".join(map(str, owners))))
        return Cell(text, colour, "" if inside == [1.0, 1.0] else "ragged", (inside[0], inside[1]))

    sizes = [1 if k is None else counts[k] for k in (row, column)]
    down, across = (_ends(count) for count in sizes)
    names = [m.domain.names[k] if k is not None else "" for k in (row, column)]
    cells = tuple(tuple(cell(r, c) for c in across) for r in down)
    boxes = CellGrid(
        cells=cells,
        axes=(names[0], names[1]),
        row_labels=tuple("" if row is None else _range(r, shard[row], dims[row]) for r in down),
        column_labels=tuple("" if column is None else _range(c, shard[column], dims[column]) for c in across),
        row_gaps=gaps(down, sizes[0]),
        column_gaps=gaps(across, sizes[1]),
        rows=sizes[0],
        columns=sizes[1],
        caption=_cut(array, {k: m.domain.names[k] for k in (row, column) if k is not None}),
    )
    together = max([len(owners.split(",")) for owners in held.values()], default=0)
    facts = [f"{' x '.join(map(str, dims))}, a shard is {' x '.join(map(str, shard))}"]
    facts += [f"each shard is held by {together} devices, named together"] if together > 1 else []
    others = [k for k in range(rank) if k not in chosen and counts[k] > 1]
    facts += ["first shard of " + ", ".join(m.domain.names[k] for k in others)] if others else []
    panels: list[Panel] = [boxes]
    mesh = _mesh(array, held, colours)
    panels += [mesh] if mesh is not None else []
    return Drawing(str(array), tuple(facts), tuple(panels), meanings={"ragged": "the shard is padded: hatched"})


def _cut(array: ShardedArray, shown: Mapping[int, str]) -> str:
    """The caption of the shards. shown: the dimensions that are drawn, with their names."""
    axes = _mesh_axes(array)
    by = [f"{name} by {axes[k]}" for k, name in shown.items() if axes.get(k)]
    caption = "the array cut into shards; a cell is a shard with the devices that hold it, labels are its elements"
    return caption + (f"; split: {', '.join(by)}" if by else "")


def _mesh_axes(array: ShardedArray) -> dict[int, str]:
    """The mesh axes that each dimension is split over, as text."""
    named = array.sharding
    if not isinstance(named, NamedSharding) or named.mesh.maximal:
        return {}
    return {k: " x ".join(named.mesh.show(axis) for axis in axes) for k, axes in enumerate(named.dims) if axes}


def _mesh(array: ShardedArray, held: Mapping[int, str], colours: Mapping[str, int]) -> CellGrid | None:
    """The devices at their points of the mesh, coloured by what they hold; None for a sharding without a mesh."""
    named = array.sharding
    if not isinstance(named, NamedSharding) or named.mesh.maximal or named.mesh.tiles.count() > MOST_DEVICES:
        return None
    tiles, names = named.mesh.tiles, named.mesh.names
    dims = tiles.dims
    first = dims[0] if len(dims) > 1 else 1
    wide = product(dims[1:]) if len(dims) > 1 else product(dims)
    numbers = listed(tiles)

    def cell(at: int) -> Cell:
        device = numbers[at]
        return Cell(str(device), colours.get(held.get(device, ""), None))

    rest = " x ".join(names[1:]) if len(dims) > 1 else "".join(names)
    points = [",".join(map(str, p)) for p in itertools.product(*map(range, dims[1:] if len(dims) > 1 else dims))]
    return grid(
        tuple(tuple(cell(r * wide + c) for c in range(wide)) for r in range(first)),
        tuple(map(str, range(first))) if len(dims) > 1 else (),
        tuple(points),
        (names[0] if len(dims) > 1 else "", rest),
        "the mesh: a cell is a device, in the colour of its shard",
    )


def owned(m: IndexMap) -> Callable[[tuple[int, ...]], Cell] | None:
    """A cell of the array for a map to owners: the place of each replica, coloured by the first one's owner.

    None where there is no owner or too many places to draw.
    """
    names = resolve(claims, [m], {})["owner"]
    owners = [k for k, name in enumerate(m.range.names) if name in names]
    if m.memory is not None or not owners or product(m.domain.extents) * product(m.replicas.extents) > MOST_PLACES:
        return None
    replicas = _replicas(m)
    colours: dict[tuple[int, ...], int] = {}
    for index in itertools.product(*(range(int(extent)) for extent in m.domain.extents)):
        place = m.at(index, replicas[0])
        colours.setdefault(tuple(place[k] for k in owners), distinct(len(colours)))

    def cell(index: tuple[int, ...]) -> Cell:
        first = m.at(index, replicas[0])
        return Cell(joined([m.at(index, replica) for replica in replicas]), colours[tuple(first[k] for k in owners)])

    return cell


def box_drawing(layout: AxeLayout) -> Drawing | None:
    """A large layout as the boxes of its array in which places go on in equal steps, each with what it reaches.

    None where its digits do not follow its dimensions, for a swizzle, for more boxes than a page has and for one box.
    """
    m = layout.index_map()
    dims = tuple(int(extent) for extent in m.domain.extents)
    whole = {product(extent for extent, _, _ in layout.D[k:]) for k in range(len(layout.D) + 1)}
    fits = 1 <= len(dims) <= 2 and 0 not in dims and sum(dims) <= MOST_WALKED
    if layout.swizzle is not None or not fits or any(product(dims[k:]) not in whole for k in range(len(dims))):
        return None
    starts, steps = zip(*(_runs(m, d, extent) for d, extent in enumerate(dims)), strict=True)
    if product(map(len, starts)) == 1 or max(map(len, starts)) > _BEGIN + _END:
        return None
    replicas = _replicas(m)
    names = m.range.names
    owning = [k for k, name in enumerate(names) if name in resolve(claims, [m], {})["owner"]]
    colours: dict[tuple[int, ...], int] = {}

    def cell(*box: tuple[int, int]) -> Cell:
        place = m.at(tuple(first for first, _ in box), replicas[0])
        owner = tuple(place[k] for k in owning) or place
        return Cell(_reached(m, box, replicas), distinct(colours.setdefault(owner, len(colours))))

    parts = [
        list(zip(at, [*(start - 1 for start in at[1:]), extent - 1], strict=True))
        for at, extent in zip(starts, dims, strict=True)
    ]
    rows, columns = [[], *parts][-2:]
    said = "; ".join(
        f"{m.domain.names[d]} + 1 is " + ", ".join(f"{name} + {by}" for name, by in zip(names, step, strict=True) if by)
        for d, step in enumerate(steps)
        if any(step)
    )
    labels = [tuple(f"{first}:{last + 1}" for first, last in part) for part in (rows, columns)]
    shown = grid(
        tuple(tuple(cell(row, column) for column in columns) for row in rows) or (tuple(map(cell, columns)),),
        labels[0] or ("",),
        labels[1],
        (m.domain.names[0] if rows else "", m.domain.names[-1]),
    )
    reached = f"a cell is a box of the array with what it reaches of ({', '.join(names)})"
    facts = (" x ".join(map(str, dims)), reached, f"within a box, {said}")
    return Drawing(str(layout), facts, (shown,))


def _reached(m: IndexMap, box: Sequence[tuple[int, int]], replicas: Sequence[tuple[int, ...]]) -> str:
    """The places of a box's elements, from the least to the most of each coordinate, by replica."""
    texts = []
    for replica in replicas:
        # in equal steps, the least and the most are at corners
        corners = [m.at(corner, replica) for corner in itertools.product(*box)]
        ends = [(min(entries), max(entries)) for entries in zip(*corners, strict=True)]
        texts.append(",".join(str(a) if a == b else f"{a}..{b}" for a, b in ends))
    return " | ".join(dict.fromkeys(texts[:_JOINED])) + (" | …" if len(texts) > _JOINED else "")


def _runs(m: IndexMap, dim: int, extent: int) -> tuple[list[int], tuple[int, ...]]:
    """Where along a dimension places stop going on in the step that its first two have, and that step."""

    def at(entry: int) -> tuple[int, ...]:
        return m.at(tuple(entry if d == dim else 0 for d in range(len(m.domain.extents))), _replicas(m)[0])

    places = [at(entry) for entry in range(extent)]
    steps = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(places)]
    starts = [0]
    for entry, step in enumerate(steps, 1):
        # the step into a box is any; from its first element on it is the usual one
        if step != steps[0]:
            starts.append(entry)
    return starts, steps[0] if steps else ()


def joined(places: Sequence[tuple[int, ...]]) -> str:
    """Several places of one element as one text.

    >>> joined([(8, 6, 1), (8, 10, 1)]), joined([(0, 1), (1, 0)])
    ('8,6|10,1', '0,1 | 1,0')
    """
    found = sorted(set(places))
    values = [sorted(set(column)) for column in zip(*found, strict=True)]
    if product(map(len, values)) == len(found) and max(map(len, values), default=1) <= _JOINED:
        return ",".join("|".join(map(str, column)) for column in values)
    more = " | …" if len(found) > _JOINED else ""
    return " | ".join(",".join(map(str, place)) for place in found[:_JOINED]) + more


def inverse_grid(m: IndexMap, thread: int, caption: str) -> CellGrid | None:
    """A thread-value layout from the side of the data: which indices are at each place, coloured by the thread.

    Places of one coordinate stand in rows. None where there are too many places, and for more than two coordinates.

    Args:
        m: From (thread, value, ..) to places.
        thread: Which entry of an index numbers the thread.
        caption: What the grid shows.
    """
    extents = tuple(int(extent) for extent in m.range.extents)
    many, places = product(m.domain.extents), product(extents)
    if not 0 < many <= MOST_PLACES or not 0 < places <= MOST_PLACES or not 1 <= len(extents) <= 2:
        return None
    wide = extents[1] if len(extents) == 2 else min(places, 1 << ((places - 1).bit_length() + 1) // 2)
    held: dict[int, list[tuple[int, ...]]] = {}
    for index in itertools.product(*(range(int(e)) for e in m.domain.extents)):
        at = m.at(index)
        if not all(0 <= entry < extent for entry, extent in zip(at, extents, strict=True)):
            return None
        held.setdefault(at[0] * wide + at[1] if len(at) == 2 else at[0], []).append(index)

    def cell(at: int) -> Cell:
        who = held.get(at, [])
        if at >= places:
            return PADDING
        if not who:
            return Cell("", None, "hole")
        text = "|".join(",".join(map(str, index)) for index in who[:_JOINED]) + ("…" if len(who) > _JOINED else "")
        return Cell(text, distinct(who[0][thread]))

    rows = range(-(-places // wide))
    names = m.range.names or ("offset",)
    return grid(
        tuple(tuple(cell(r * wide + c) for c in range(wide)) for r in rows),
        tuple(str(r if len(extents) == 2 else r * wide) for r in rows),
        tuple(map(str, range(wide))),
        (names[0], names[1] if len(extents) == 2 else "+"),
        caption,
    )


def _replicas(m: IndexMap) -> Sequence[tuple[int, ...]]:
    ranges = [range(int(extent)) for extent in m.replicas.extents]
    return list(itertools.islice(itertools.product(*ranges), MOST_PLACES))


def _range(number: int, size: int, extent: int) -> str:
    return f"{number * size}:{min(extent, (number + 1) * size)}"


def _ends(count: int) -> list[int]:
    return list(range(count)) if count <= _BEGIN + _END + 1 else [*range(_BEGIN), *range(count - _END, count)]
